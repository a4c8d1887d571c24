//! Whether a message is just talk. A small model that has tools before it uses them, also to greet. What is not known to be
//! talk, in whatever language, keeps its tools: without them a model can only make an answer up.

/// First words that ask for something to be done, beside those of a task's parts.
const ASKS: &[&str] = &["start", "stop", "use", "kill", "download", "fetch", "calculate", "compute", "commit", "build"];

/// Words that a message about this computer has.
const MACHINE: &[&str] = &[
    "address",
    "battery",
    "branch",
    "clipboard",
    "code",
    "command",
    "commit",
    "computer",
    "cpu",
    "date",
    "directory",
    "disk",
    "display",
    "document",
    "error",
    "file",
    "folder",
    "git",
    "gpu",
    "home",
    "host",
    "hostname",
    "installed",
    "ip",
    "kernel",
    "line",
    "log",
    "machine",
    "memory",
    "mount",
    "network",
    "package",
    "password",
    "path",
    "permission",
    "port",
    "process",
    "program",
    "project",
    "ram",
    "repository",
    "running",
    "screen",
    "script",
    "server",
    "service",
    "shell",
    "size",
    "space",
    "system",
    "terminal",
    "time",
    "today",
    "uptime",
    "user",
    "version",
];

/// Words in front of what is asked for.
const POLITE: &[&str] = &["please", "can", "could", "would", "you", "now", "then", "and", "ok", "okay", "caro", "so"];

/// Words of talk: greetings, thanks, answers, and what is about the two who talk.
const TALK: &[&str] = &[
    "afternoon",
    "bonjour",
    "bye",
    "ciao",
    "cool",
    "danke",
    "evening",
    "favorite",
    "favourite",
    "feel",
    "fine",
    "goodbye",
    "gracias",
    "great",
    "hallo",
    "hello",
    "hey",
    "hi",
    "hola",
    "i",
    "i'm",
    "joke",
    "like",
    "love",
    "mean",
    "merci",
    "morning",
    "my",
    "name",
    "nice",
    "no",
    "ok",
    "okay",
    "opinion",
    "salut",
    "sorry",
    "sure",
    "thank",
    "thanks",
    "think",
    "thx",
    "welcome",
    "why",
    "yes",
    "you",
    "your",
    "yourself",
];

/// Words of talk that a question about this computer has as often (`why do my tests fail`), and words that say nothing.
const BOTH: &[&str] = &["i", "mean", "my", "name", "no", "why", "you", "your"];
const FILLERS: &[&str] = &[
    "a", "about", "am", "an", "and", "are", "at", "be", "but", "did", "do", "does", "for", "have", "how", "if", "in",
    "is", "it", "me", "not", "of", "on", "or", "so", "that", "the", "then", "this", "to", "was", "we", "what",
    "what's", "where", "who", "with",
];

/// True if a message needs no tools: it is talk, asks for nothing to be done, and names nothing that is on this computer.
pub fn is_talk(message: &str) -> bool {
    let lower = message.to_lowercase();
    let edge = |c: char| !c.is_alphanumeric() && !"/.~".contains(c);
    let words: Vec<&str> =
        lower.split_whitespace().map(|word| word.trim_matches(edge)).filter(|word| !word.is_empty()).collect();
    let first = words.iter().find(|word| !POLITE.contains(word)).copied().unwrap_or_default();
    if ASKS.contains(&first) || caro_intent::begins_part(first) {
        return false;
    }
    let is_known = |word: &&str| TALK.contains(&word.trim_end_matches('.'));
    if !words.is_empty() && !words.iter().any(is_known) {
        return false;
    }
    // what is asked after a person's own things may be about what was said before; these ask what somebody has to look up
    let looks_up = ["how", "why"].contains(&first)
        || words.windows(2).any(|two| ["do", "have"].contains(&two[0]) && two[1] == "i");
    let is_said = |word: &&str| is_known(word) && !BOTH.contains(word);
    let means_nothing = |word: &&str| is_known(word) || FILLERS.contains(word);
    if looks_up && !words.iter().any(is_said) && !words.iter().all(means_nothing) {
        return false;
    }
    words.iter().all(|word| {
        let inner = word.trim_end_matches(['.', '?', '!']);
        let singular = inner.strip_suffix('s').unwrap_or(inner);
        let named = inner.contains('/') || inner.starts_with('~') || inner.contains('.') || inner.contains('_');
        !named && !MACHINE.contains(&inner) && !MACHINE.contains(&singular)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn talk_is_told_from_work() {
        for message in [
            "hello, my name is Ada",
            "what is my name?",
            "thanks, that was good!",
            "who are you?",
            "and why is that so?",
            "hola, ¿qué tal?",
            "hi",
            "do you like rust?",
            "my dog is called Rex",
            "what is my dog called?",
            "how are you?",
            "",
        ] {
            assert!(is_talk(message), "{message}");
        }
        for message in [
            "how many errors are in app.log?",
            "list what is here",
            "please delete them",
            "which processes are running?",
            "what is in ~/notes?",
            "could you count the words",
            "what version of python is installed?",
            "is port 80 open?",
            "what time is it?",
            "use echo to say hi",
            "does src/main.rs have tests",
            "how big is this folder",
            "who is logged in?",
            "what is my ip?",
            "what is eating the ram",
            "wie viele Dateien sind hier?",
            "列出这里的文件",
            "how many pictures do I have?",
            "why do my tests fail?",
            "do I have docker?",
            "what's my hostname?",
            "how many TODOs are in my notes?",
        ] {
            assert!(!is_talk(message), "{message}");
        }
    }
}
