//! Decides whether a message is just talk and needs no tools. A small model that has tools uses them even to answer a
//! greeting. A message that is not recognised as talk, in any language, keeps its tools: without them the model could
//! only invent an answer.

/// First words of an order, in addition to those of [`caro_intent::begins_part`].
const ORDERS: &[&str] =
    &["start", "stop", "use", "kill", "download", "fetch", "calculate", "compute", "commit", "build"];

/// Words of messages about this computer.
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

/// Words that may precede an order or a question.
const POLITE: &[&str] = &["please", "can", "could", "would", "you", "now", "then", "and", "ok", "okay", "caro", "so"];

/// Words of talk: greetings, thanks, answers, and words about the speakers.
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

/// Words of talk that are as frequent in questions about this computer (`why do my tests fail`).
const AMBIGUOUS: &[&str] = &["i", "mean", "my", "name", "no", "why", "you", "your"];
/// Words that fit any message.
const FILLERS: &[&str] = &[
    "a", "about", "am", "an", "and", "are", "at", "be", "but", "did", "do", "does", "for", "have", "how", "if", "in",
    "is", "it", "me", "not", "of", "on", "or", "so", "that", "the", "then", "this", "to", "was", "we", "what",
    "what's", "where", "who", "with",
];

/// True if a message needs no tools: it is talk, gives no order, and names nothing that may be on this computer.
pub fn is_talk(message: &str) -> bool {
    let lower = message.to_lowercase();
    let edge = |c: char| !c.is_alphanumeric() && !"/.~".contains(c);
    let words: Vec<&str> =
        lower.split_whitespace().map(|word| word.trim_matches(edge)).filter(|word| !word.is_empty()).collect();
    let first = words.iter().find(|word| !POLITE.contains(word)).copied().unwrap_or_default();
    if ORDERS.contains(&first) || caro_intent::begins_part(first) {
        return false;
    }
    let is_known = |word: &&str| TALK.contains(&word.trim_end_matches('.'));
    if !words.is_empty() && !words.iter().any(is_known) {
        return false;
    }
    // a question about the user's own things may refer to the conversation, but these forms ask for something on the
    // computer
    let looks_up = ["how", "why"].contains(&first)
        || words.windows(2).any(|two| ["do", "have"].contains(&two[0]) && two[1] == "i");
    let is_clear = |word: &&str| is_known(word) && !AMBIGUOUS.contains(word);
    let is_harmless = |word: &&str| is_known(word) || FILLERS.contains(word);
    if looks_up && !words.iter().any(is_clear) && !words.iter().all(is_harmless) {
        return false;
    }
    words.iter().all(|word| {
        let inner = word.trim_end_matches(['.', '?', '!']);
        let singular = inner.strip_suffix('s').unwrap_or(inner);
        let is_path = inner.contains('/') || inner.starts_with('~') || inner.contains('.') || inner.contains('_');
        !is_path && !MACHINE.contains(&inner) && !MACHINE.contains(&singular)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn talk_is_recognised() {
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
