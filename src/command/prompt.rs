//! Builds the model's prompts. Stable text (persona, examples) comes first and the request last, so that the stable
//! part is prefilled once per machine.
//!
//! More context is not better: facts about the host, lists of programs and directory listings lower a small model's
//! score, so they are left out (`benches/records/` has the measurements).

use super::answer::{FewShot, History, View};
use super::{examples, library};
use caro_model::{Prompt, Role};
use caro_shell::{Dialect, Finding, Os, Target, Userland};

/// Most findings that iteration 2 is shown; more confuse a small model.
const MAX_FINDINGS: usize = 3;

/// Builds the first iteration's prompt. After the stable part (persona and examples) come the `few_shot` pairs of the
/// example library, the nearest last, then the context `before`, then the request. Under [`View::Adapted`] the only
/// examples are those of [`FewShot::Nearest`], as the adapter was trained on examples.
pub fn first(
    request: &str,
    target: Target,
    dialect: Dialect,
    view: View,
    few_shot: FewShot,
    before: &History,
) -> Prompt {
    let mut prompt = Prompt::system(persona(target, dialect));
    prompt.adapted = view == View::Adapted;
    let opening = if prompt.adapted { &[][..] } else { examples::for_target(target) };
    for example in opening {
        prompt.push(Role::User, &example.request);
        prompt.push(Role::Assistant, &example.command);
    }
    prompt.stable_messages = prompt.messages.len();
    let near = match few_shot {
        FewShot::Alike if prompt.adapted => Vec::new(),
        FewShot::Alike => library::alike(request, target),
        FewShot::Nearest(k) => library::nearest(request, target, k),
    };
    // the library is written in bash, and fish cannot parse all of it
    let near = near.iter().filter(|e| caro_shell::parse(&e.command, dialect).errors.is_empty());
    let near = near.map(|e| (&e.request, &e.command)).rev();
    for (request, command) in near.chain(before.known.iter().map(|k| (&k.request, &k.command)).rev()) {
        prompt.push(Role::User, request);
        prompt.push(Role::Assistant, command);
    }
    let mut opening = before.place.join("\n");
    for said in &before.said {
        prompt.push(Role::User, after(&opening, &said.request));
        prompt.push(Role::Assistant, &said.command);
        opening.clone_from(&said.outcome);
    }
    // a small model invents a file name unless the request itself says where the data is
    let from_input = before.input.is_some() && before.said.is_empty();
    let request = if from_input { format!("from standard input: {request}") } else { request.to_owned() };
    prompt.push(Role::User, after(&opening, &request));
    prompt
}

/// Joins the context before a request and the request.
fn after(opening: &str, request: &str) -> String {
    let opening = opening.trim();
    if opening.is_empty() { request.to_owned() } else { format!("{opening}\n\n{request}") }
}

/// Builds the next iteration's prompt: continues the one before, whose prefill is cached, with the command that the
/// model gave, the findings against it, and lines of the manual.
pub fn next(mut before: Prompt, cmd: &str, request: &str, findings: &[Finding], manual: &[String]) -> Prompt {
    let mut text = String::new();
    if findings.is_empty() {
        text.push_str("Check that command against the manual and the request.\n");
    } else {
        text.push_str("That command is not right yet:\n");
        for f in findings.iter().take(MAX_FINDINGS) {
            text.push_str(&format!("- `{}`: {}\n", f.token, f.why));
            for line in f.evidence.iter().take(8) {
                text.push_str(&format!("    {line}\n"));
            }
        }
    }
    if !manual.is_empty() {
        text.push_str("From the manual:\n");
        for line in manual {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text.push_str(&format!("Write the whole corrected command for: {request}"));
    before.push(Role::Assistant, cmd);
    before.push(Role::User, text);
    before
}

/// Returns the system message: one sentence on the task, and one on how to refuse.
fn persona(target: Target, dialect: Dialect) -> String {
    format!(
        "Answer each request with one {} command for {}, on one line. If a request is no task for a shell, answer: {}",
        dialect_name(dialect),
        system_name(target),
        super::reply::REFUSAL,
    )
}

fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Bash => "bash",
        Dialect::Zsh => "zsh",
        Dialect::Fish => "fish shell",
        Dialect::Sh => "POSIX sh",
        Dialect::PowerShell => "PowerShell",
    }
}

fn system_name(target: Target) -> &'static str {
    match (target.os, target.userland) {
        (Os::Linux, Userland::Busybox) => "Linux (busybox)",
        (Os::Linux, _) => "Linux (GNU tools)",
        (Os::MacOs, _) => "macOS (BSD tools)",
        (Os::FreeBsd, _) => "FreeBSD (BSD tools)",
        (Os::Windows, _) => "Windows",
    }
}

/// Renders a prompt as one readable text, for `--debug`.
pub fn render(prompt: &Prompt) -> String {
    let mut text = String::new();
    for message in &prompt.messages {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        text.push_str(&format!("[{role}] {}\n", message.text));
    }
    text.push_str(&format!("[assistant] {}", prompt.prefill));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PastExchange;
    use caro_shell::Severity;

    const LINUX: Target = Target { os: Os::Linux, userland: Userland::Gnu };

    #[test]
    fn the_request_comes_last_and_all_before_it_is_stable() {
        let a = first("list files", LINUX, Dialect::Bash, View::Examples, FewShot::Nearest(0), &History::default());
        let b = first("show processes", LINUX, Dialect::Bash, View::Examples, FewShot::Nearest(0), &History::default());
        assert_eq!(a.stable_messages + 1, a.messages.len());
        assert_eq!(a.messages[..a.stable_messages], b.messages[..b.stable_messages]);
        assert_eq!(a.messages.last().map(|t| t.text.as_str()), Some("list files"));
    }

    #[test]
    fn retrieved_examples_follow_the_stable_part_with_the_nearest_last() {
        let plain = first(
            "size of a.bin in bytes",
            LINUX,
            Dialect::Bash,
            View::Examples,
            FewShot::Nearest(0),
            &History::default(),
        );
        let more = first(
            "size of a.bin in bytes",
            LINUX,
            Dialect::Bash,
            View::Examples,
            FewShot::Nearest(2),
            &History::default(),
        );
        assert_eq!(more.stable_messages, plain.stable_messages);
        assert_eq!(more.messages[..more.stable_messages], plain.messages[..plain.stable_messages]);
        assert_eq!(more.messages.len(), plain.messages.len() + 4);
        assert_eq!(more.messages.last(), plain.messages.last());
        let nearest = &library::nearest("size of a.bin in bytes", LINUX, 1)[0];
        assert_eq!(more.messages[more.messages.len() - 2].text, nearest.command);
    }

    #[test]
    fn earlier_requests_are_a_conversation() {
        let said = PastExchange {
            request: "find logs".into(),
            command: "ls *.log".into(),
            outcome: "It printed:\na.log".into(),
        };
        let before = History { place: vec!["Files here: a.log".into()], said: vec![said], ..History::default() };
        let plain =
            first("count its lines", LINUX, Dialect::Bash, View::Examples, FewShot::Nearest(0), &History::default());
        let prompt = first("count its lines", LINUX, Dialect::Bash, View::Examples, FewShot::Nearest(0), &before);
        assert_eq!(prompt.messages[..plain.stable_messages], plain.messages[..plain.stable_messages]);
        let texts: Vec<&str> = prompt.messages[prompt.stable_messages..].iter().map(|t| t.text.as_str()).collect();
        assert_eq!(texts, ["Files here: a.log\n\nfind logs", "ls *.log", "It printed:\na.log\n\ncount its lines"]);
    }

    #[test]
    fn the_request_itself_says_that_the_data_is_on_standard_input() {
        let of = |before: &History| {
            let prompt = first("sum it", LINUX, Dialect::Bash, View::Examples, FewShot::Nearest(0), before);
            prompt.messages.last().unwrap().text.clone()
        };
        let before =
            History { place: vec!["Standard input is text.".into()], input: Some("1\n".into()), ..History::default() };
        assert_eq!(of(&before), "Standard input is text.\n\nfrom standard input: sum it");
        // a follow-up request does not repeat it
        let said = PastExchange { request: "sum it".into(), command: "awk x".into(), outcome: String::new() };
        assert_eq!(of(&History { said: vec![said], place: Vec::new(), ..before }), "sum it");
    }

    #[test]
    fn the_second_prompt_continues_the_first() {
        let a = first("list files", LINUX, Dialect::Bash, View::Examples, FewShot::Nearest(0), &History::default());
        let finding = Finding {
            id: "unknown-flag".into(),
            severity: Severity::Error,
            token: "--sise".into(),
            span: None,
            why: "ls has no such option".into(),
            evidence: vec!["--size  print the size".into()],
            fix: None,
        };
        let b = next(a.clone(), "ls --sise", "list files", &[finding], &[]);
        assert_eq!(b.messages[..a.messages.len()], a.messages[..]);
        let last = &b.messages.last().map(|t| t.text.clone()).unwrap_or_default();
        assert!(last.contains("`--sise`: ls has no such option") && last.contains("--size  print the size"), "{last}");
    }
}
