//! The help topics: each is a word that stands for sections of the documents beside the code.

use super::markdown::{Block, blocks, section};

/// A topic.
#[derive(Debug)]
pub struct Topic {
    /// The word it is looked up by.
    pub name: &'static str,
    /// Its subject, in a line.
    pub about: &'static str,
    /// Its parts: a document and a heading in it, or all of the document without a heading.
    parts: &'static [(&'static str, Option<&'static str>)],
}

const README: &str = include_str!("../../../README.md");
const CODE: &str = include_str!("../../README.md");
const CLI: &str = include_str!("../README.md");
const SETTINGS: &str = include_str!("../SETTINGS.md");
const MODELS: &str = include_str!("../../../models/README.md");
const DOCUMENTS: &str = include_str!("../../documents/README.md");
const AGENT: &str = include_str!("../../agent/README.md");
const SERVER: &str = include_str!("../../serve/README.md");
const SHELL: &str = include_str!("../../shell/README.md");

/// Every topic, in the order of the list.
pub const TOPICS: [Topic; 18] = [
    topic("start", "the commands to begin with", &[(README, Some("The commands to begin with"))]),
    topic("verbs", "every verb, in a line each", &[(CLI, None)]),
    topic("prompt", "caro in the prompt of a shell", &[(README, Some("In your prompt"))]),
    topic("keys", "the keys after an answer", &[(CLI, Some("Keys after an answer"))]),
    topic("fix", "a command that failed", &[(CLI, Some("A command that failed"))]),
    topic("undo", "putting back what a command has changed", &[(CLI, Some("Undo"))]),
    topic(
        "safety",
        "what the verdicts mean, and what holds commands back",
        &[(README, Some("Safety")), (CODE, Some("Safety in detail"))],
    ),
    topic("policies", "commands that are forbidden here, and verdicts for other agents", &[(SHELL, None)]),
    topic(
        "privacy",
        "what leaves this machine and what is kept",
        &[(README, Some("Privacy")), (CLI, Some("What is kept"))],
    ),
    topic("exit-codes", "how a call ends", &[(CLI, Some("Exit codes"))]),
    topic("settings", "every setting, its variable and its default", &[(SETTINGS, None)]),
    topic("targets", "commands for other systems and shells", &[(CODE, Some("Platforms"))]),
    topic("models", "models, adapters and servers", &[(MODELS, None)]),
    topic("documents", "your own documents, and notes", &[(DOCUMENTS, None)]),
    topic("steps", "tasks of several steps, and conversations", &[(AGENT, None)]),
    topic("server", "the model for other programs", &[(SERVER, None)]),
    topic(
        "answers",
        "why the answers fit, and how good they are",
        &[(README, Some("Why the answers fit")), (README, Some("How good, how fast"))],
    ),
    topic("how", "the way of a request through the program", &[(CODE, Some("The way of a request"))]),
];

const fn topic(
    name: &'static str,
    about: &'static str,
    parts: &'static [(&'static str, Option<&'static str>)],
) -> Topic {
    Topic { name, about, parts }
}

/// Finds a topic by its word.
pub fn find(word: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == word)
}

impl Topic {
    /// Returns the blocks of its text.
    pub fn blocks(&self) -> Vec<Block> {
        let texts: Vec<(Option<&str>, &str)> =
            self.parts.iter().filter_map(|(paper, heading)| Some((*heading, section(paper, *heading)?))).collect();
        let is_several = texts.len() > 1;
        texts
            .into_iter()
            .flat_map(|(heading, text)| {
                let heading = if is_several { heading } else { None };
                let heading = heading.map(|heading| Block::Heading(heading.into()));
                heading.into_iter().chain(blocks(text))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::plain;

    /// Fails if a heading in a document was renamed.
    #[test]
    fn every_topic_has_all_its_parts_and_no_mark_of_markdown() {
        for topic in &TOPICS {
            for (paper, heading) in topic.parts {
                assert!(section(paper, *heading).is_some_and(|text| text.len() > 100), "{}: {heading:?}", topic.name);
            }
            let lines = plain::lines(&topic.blocks());
            let text: Vec<String> =
                lines.iter().map(|line| line.iter().map(|(_, text)| text.as_str()).collect()).collect();
            assert!(text.len() > 3, "{}", topic.name);
            for line in &text {
                assert!(
                    !line.contains("](") && !line.contains("**") && !line.starts_with('#'),
                    "{}: {line}",
                    topic.name
                );
                // a URL or a long piece of code may exceed the width
                assert!(
                    line.chars().count() <= 80 || !line.trim().contains(' ') || line.starts_with("    "),
                    "{}: {line}",
                    topic.name
                );
            }
        }
    }

    #[test]
    fn topics_are_distinct_words() {
        let mut names: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOPICS.len());
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
    }
}
