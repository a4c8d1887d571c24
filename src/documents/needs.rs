//! Decides by its words, without a model, whether a task asks for the content of documents. A wrong yes costs only
//! one search, whose results are used only if they are near enough. An embedding model does not decide better
//! (benches/records/2026-11-27-intent.md).

use caro_intent::asks_documents;

/// Words and prefixes of words that ask for documents.
const WORDS: [&str; 17] = [
    "how to",
    "what is",
    "explain",
    "documentation",
    "guide",
    "tutorial",
    "example",
    "best practice",
    "architecture",
    "design",
    "reference",
    "api",
    "error",
    "fix",
    "debug",
    "config",
    "setting",
];

/// First words of questions.
const QUESTIONS: [&str; 5] = ["what", "how", "why", "where", "which"];

/// File name endings of documents.
const DOCUMENTS: [&str; 2] = [".md", ".rst"];

/// Returns the word because of which a task asks for documents, or `None`.
pub fn needs_knowledge(task: &str) -> Option<String> {
    asking_word(task).map(str::to_owned).or_else(|| {
        let begins = || task.split_whitespace().next().unwrap_or_default().to_lowercase();
        asks_documents(task).then(begins)
    })
}

/// Returns one of the words that ask for documents.
fn asking_word(task: &str) -> Option<&'static str> {
    let text = task.trim().to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = words.first()?.trim_matches(|c: char| !c.is_alphanumeric());
    if let Some(word) = WORDS.iter().find(|word| occurs_at_word_start(&text, word)) {
        return Some(word);
    }
    if let Some(question) = QUESTIONS.iter().find(|q| **q == first || first.strip_prefix(**q) == Some("'s")) {
        return Some(question);
    }
    if text.starts_with('?') || text.ends_with('?') {
        return Some("?");
    }
    let named = |end: &&&str| words.iter().any(|w| w.trim_end_matches(|c: char| !c.is_alphanumeric()).ends_with(**end));
    DOCUMENTS.iter().find(named).copied()
}

/// True if `word` occurs in the text at the beginning of a word.
fn occurs_at_word_start(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(|c: char| c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tasks that embeddings were measured on; compare changes with the record.
    #[test]
    fn a41_of_120_tasks_104_are_classified_correctly() {
        #[derive(serde::Deserialize)]
        struct Kinds {
            asks: Vec<String>,
            acts: Vec<String>,
        }
        #[derive(serde::Deserialize)]
        struct Set {
            examples: Kinds,
            tasks: Kinds,
        }
        let Set { examples, tasks } = toml::from_str(include_str!("../../benches/agent/intent.toml")).unwrap();
        assert_eq!((tasks.asks.len(), tasks.acts.len(), examples.asks.len(), examples.acts.len()), (60, 60, 16, 16));
        let known: Vec<&String> = examples.asks.iter().chain(&examples.acts).collect();
        assert!(tasks.asks.iter().chain(&tasks.acts).all(|task| !known.contains(&task)), "no example is a task");
        let asks = |all: &[String]| all.iter().filter(|task| needs_knowledge(task).is_some()).count();
        let (found, wrongly) = (asks(&tasks.asks), asks(&tasks.acts));
        assert!(found + 60 - wrongly >= 104, "{found} of 60 that ask, {wrongly} of 60 that order");
    }

    #[test]
    fn a15_a38_tasks_that_ask_for_documents_are_recognized() {
        for (task, why) in [
            ("How to deploy the api", Some("how to")),
            ("what is our release process", Some("what is")),
            ("explain the cache", Some("explain")),
            ("read the documentation of the parser", Some("documentation")),
            ("write a guide", Some("guide")),
            ("show examples of retries", Some("example")),
            ("best practices for naming", Some("best practice")),
            ("fix the failing job", Some("fix")),
            ("change the settings of nginx", Some("setting")),
            ("configure the proxy", Some("config")),
            ("where do backups go", Some("where")),
            ("which port has the proxy", Some("which")),
            ("What's new", Some("what")),
            ("is the server redundant?", Some("?")),
            ("? deploy", Some("?")),
            ("summarise NOTES.md", Some(".md")),
            ("open docs/index.rst.", Some(".rst")),
            ("tell me when the spring report is due", Some("tell")),
            ("who has the keys", Some("who")),
            ("commit my changes", None),
            ("status", None),
            ("run tests", None),
            ("remove the prefix of every name", None),
            ("show the largest files", None),
            ("somehow tidy up", None),
            ("", None),
        ] {
            assert_eq!(needs_knowledge(task).as_deref(), why, "{task}");
        }
    }
}
