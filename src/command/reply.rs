//! Defines the grammar of the model's reply, and parses the command out of it.

use caro_model::{Shape, repetition};

/// The reply to a request that is no task for a shell. It is a shell comment, so that it does nothing even if it is
/// run.
pub const REFUSAL: &str = "# not a shell task";

/// The rule for a command in the grammar of a reply (llguidance's Lark dialect): one line that begins with neither a
/// space, a backtick nor a hash, which rules out fences and comments.
const COMMAND: &str = "COMMAND: /[^\\s`#][^\\n\\r]*/\n";

/// Returns the grammar of a reply: a command, or the refusal. With `is_task` the model may not refuse, as the example
/// library has a command for the same request: a small model sometimes refuses only because of a question mark.
pub fn shape(is_task: bool) -> Shape {
    Shape::Lark(match is_task {
        true => format!("start: COMMAND\n{COMMAND}"),
        false => format!("start: COMMAND | REFUSAL\n{COMMAND}REFUSAL: {REFUSAL:?}\n"),
    })
}

/// A parsed reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A command.
    Command(String),
    /// The request is no task for a shell.
    Refused,
    /// Nothing that could be a command.
    Nothing,
}

/// Parses a reply. A model under [`shape`] writes the bare line; a remote one may wrap it in a fence, a JSON document
/// (`{"cmd": ...}`) or a prompt sign, which are removed.
pub fn read(text: &str) -> Reply {
    let text = text.trim();
    if let Some(cmd) = json_command(text) {
        return line(&cmd);
    }
    // backticks within a line belong to the command, such as a pattern
    let fence = text.match_indices("```").find(|(at, _)| *at == 0 || text[..*at].ends_with('\n'));
    let inside = match fence.map(|(at, _)| at) {
        // the first line of a fence is its language tag
        Some(at) => text[at + 3..].split_once('\n').map_or("", |(_, rest)| rest).split("```").next().unwrap_or(""),
        None => text,
    };
    inside.lines().map(str::trim).find(|l| !l.is_empty()).map_or(Reply::Nothing, line)
}

/// True if the text ends in the same few characters over and over, as a small model writes when it does not find an
/// end. A repeated punctuation mark does not count: it is meant as a drawn line.
pub fn is_repetitive(text: &str) -> bool {
    let repeats = |longest| repetition::ends_in_repetition(text, longest, |_| REPEATED_BYTES);
    let is_line = || text.ends_with(|c: char| c.is_ascii_punctuation()) && repeats(1);
    repeats(REPEATED_BYTES / 8) && !is_line()
}

/// The number of bytes at the end that are examined: eight repetitions of at most five bytes.
const REPEATED_BYTES: usize = 40;

fn line(text: &str) -> Reply {
    let text = text.trim();
    let text = text.strip_prefix("$ ").unwrap_or(text).trim();
    // one pair of backticks around everything is quoting, not command substitution
    let text = match text.strip_prefix('`').and_then(|t| t.strip_suffix('`')) {
        Some(inner) if !inner.contains('`') => inner.trim(),
        _ => text,
    };
    match text {
        "" => Reply::Nothing,
        // a refusal after a command takes the command back
        t if t.ends_with(REFUSAL) || t.starts_with(REFUSAL) => Reply::Refused,
        t if t.starts_with('#') => Reply::Nothing,
        t => Reply::Command(t.to_owned()),
    }
}

fn json_command(text: &str) -> Option<String> {
    let start = text.find('{')?;
    // a quoted document is an argument of the command
    if text[..start].ends_with(['\'', '"', '=']) {
        return None;
    }
    let value = serde_json::Deserializer::from_str(&text[start..]).into_iter::<serde_json::Value>().next()?.ok()?;
    Some(value.get("cmd")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Reply {
        Reply::Command(text.into())
    }

    #[test]
    fn endless_repetition_is_recognized() {
        assert!(is_repetitive(&format!("find . -perm{}", " -o".repeat(14))));
        assert!(is_repetitive(&format!("grep -B 1{}", "0".repeat(40))));
        assert!(is_repetitive(&format!("echo {}", "a, b".repeat(12))));
        for fine in [
            "find . -name '*.a' -o -name '*.b' -o -name '*.c' -o -name '*.d' -o -name '*.e'".to_owned(),
            format!("echo {}", "-".repeat(60)),
            format!("dd if=/dev/zero of=x bs=1 count=1{}", "0".repeat(20)),
            String::new(),
        ] {
            assert!(!is_repetitive(&fine), "{fine}");
        }
    }

    #[test]
    fn the_command_is_unwrapped() {
        for wrapped in [
            "ls -l",
            "  ls -l\n",
            "$ ls -l",
            "`ls -l`",
            "```bash\nls -l\n```",
            "Sure:\n```\nls -l\n```\nIt lists.",
            "{\"cmd\": \"ls -l\", \"confidence\": 0.9}",
            "Here: {\"cmd\": \"ls -l\"} done",
        ] {
            assert_eq!(read(wrapped), command("ls -l"), "{wrapped:?}");
        }
    }

    #[test]
    fn signs_that_belong_to_the_command_stay() {
        assert_eq!(read("echo `date` `id`"), command("echo `date` `id`"));
        assert_eq!(read("awk '{print $1}' f"), command("awk '{print $1}' f"));
        assert_eq!(read("grep '#' f"), command("grep '#' f"));
        for whole in ["grep -c '^```' README.md", "curl -d '{\"cmd\": \"restart\"}' localhost:8080/"] {
            assert_eq!(read(whole), command(whole));
        }
    }

    #[test]
    fn refusals_and_empty_replies_are_recognized() {
        assert_eq!(read(REFUSAL), Reply::Refused);
        assert_eq!(read("# not a shell task, but a greeting"), Reply::Refused);
        for nothing in ["", "  \n ", "# comment", "``````", "```\n```"] {
            assert_eq!(read(nothing), Reply::Nothing, "{nothing:?}");
        }
    }
}
