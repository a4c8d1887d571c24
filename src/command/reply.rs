//! What the model's words mean: the grammar of a reply, and the command in it.

use caro_model::{Shape, repetition};

/// The reply to what is no task for a shell. A shell comment, so that even a program that takes it for a command does
/// nothing.
pub const REFUSAL: &str = "# not a shell task";

/// What a command is in the grammar of a reply (llguidance's Lark dialect): one line. It begins with neither a space, a
/// backtick nor a hash, so no fence, no prose in a comment.
const COMMAND: &str = "COMMAND: /[^\\s`#][^\\n\\r]*/\n";

/// The form of a reply to a request: a command, or the refusal. `is_task` where somebody else has a command for the very
/// same, and the model may not refuse it: a small one does at times, for no more than a question mark.
pub fn shape(is_task: bool) -> Shape {
    Shape::Lark(match is_task {
        true => format!("start: COMMAND\n{COMMAND}"),
        false => format!("start: COMMAND | REFUSAL\n{COMMAND}REFUSAL: {REFUSAL:?}\n"),
    })
}

/// What a reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// This command.
    Command(String),
    /// The request is no task for a shell.
    Refused,
    /// Nothing that could be a command.
    Nothing,
}

/// Reads a reply. A model under [`shape`] writes the bare line; a remote one may wrap it in a fence, a JSON document
/// (`{"cmd": ...}`) or a prompt sign, and all of those are taken off.
pub fn read(text: &str) -> Reply {
    let text = text.trim();
    if let Some(cmd) = json_command(text) {
        return line(&cmd);
    }
    // inside of a line it is something to look for
    let fence = text.match_indices("```").find(|(at, _)| *at == 0 || text[..*at].ends_with('\n'));
    let inside = match fence.map(|(at, _)| at) {
        // the first line of a fence is its language tag
        Some(at) => text[at + 3..].split_once('\n').map_or("", |(_, rest)| rest).split("```").next().unwrap_or(""),
        None => text,
    };
    inside.lines().map(str::trim).find(|l| !l.is_empty()).map_or(Reply::Nothing, line)
}

/// True if the text ends in the same few characters over and over: a small model that has lost the thread does not find an
/// end. A line drawn of one sign is meant.
pub fn goes_round(text: &str) -> bool {
    let is_line =
        || text.ends_with(|sign: char| sign.is_ascii_punctuation()) && repetition::goes_round(text, 1, |_| ROUND);
    repetition::goes_round(text, ROUND / 8, |_| ROUND) && !is_line()
}

/// Bytes that are looked at: eight rounds of five.
const ROUND: usize = 40;

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
        // behind a command too: the model took it back
        t if t.ends_with(REFUSAL) || t.starts_with(REFUSAL) => Reply::Refused,
        t if t.starts_with('#') => Reply::Nothing,
        t => Reply::Command(t.to_owned()),
    }
}

fn json_command(text: &str) -> Option<String> {
    let start = text.find('{')?;
    // in quotes it is something that the command hands on
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
    fn what_goes_round_is_noticed_and_what_repeats_a_little_is_not() {
        assert!(goes_round(&format!("find . -perm{}", " -o".repeat(14))));
        assert!(goes_round(&format!("grep -B 1{}", "0".repeat(40))));
        assert!(goes_round(&format!("echo {}", "a, b".repeat(12))));
        for fine in [
            "find . -name '*.a' -o -name '*.b' -o -name '*.c' -o -name '*.d' -o -name '*.e'".to_owned(),
            format!("echo {}", "-".repeat(60)),
            format!("dd if=/dev/zero of=x bs=1 count=1{}", "0".repeat(20)),
            String::new(),
        ] {
            assert!(!goes_round(&fine), "{fine}");
        }
    }

    #[test]
    fn takes_the_command_out_of_whatever_it_is_wrapped_in() {
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
    fn keeps_what_belongs_to_the_command() {
        assert_eq!(read("echo `date` `id`"), command("echo `date` `id`"));
        assert_eq!(read("awk '{print $1}' f"), command("awk '{print $1}' f"));
        assert_eq!(read("grep '#' f"), command("grep '#' f"));
        for whole in ["grep -c '^```' README.md", "curl -d '{\"cmd\": \"restart\"}' localhost:8080/"] {
            assert_eq!(read(whole), command(whole));
        }
    }

    #[test]
    fn knows_a_refusal_and_nothing() {
        assert_eq!(read(REFUSAL), Reply::Refused);
        assert_eq!(read("# not a shell task, but a greeting"), Reply::Refused);
        for nothing in ["", "  \n ", "# comment", "``````", "```\n```"] {
            assert_eq!(read(nothing), Reply::Nothing, "{nothing:?}");
        }
    }
}
