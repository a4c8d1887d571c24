//! `caro check --hook NAME`: answers another agent that asks before it runs a command, in the form that it reads.
//!
//! Each agent gives one JSON document on standard input. A question about anything but a shell command gets no
//! answer.

use super::FailOn;
use crate::term::given;
use crate::{Cx, Exit, Failure, Outcome};
use caro_command::risk::assess_text;
use caro_shell::safety::{Level, Risk};
use caro_shell::{Dialect, Finding};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// Most bytes of a document.
const MAX_BYTES: u64 = 4 << 20;

/// The agent that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Asker {
    /// Claude Code's PreToolUse
    ClaudeCode,
    /// Cursor's beforeShellExecution
    Cursor,
}

impl Asker {
    /// A call by hand with a question of this agent.
    fn example(self) -> &'static str {
        match self {
            Self::ClaudeCode => {
                "echo '{\"tool_name\": \"Bash\", \"tool_input\": {\"command\": \"ls\"}}' | caro check --hook claude-code"
            }
            Self::Cursor => "echo '{\"command\": \"ls\"}' | caro check --hook cursor",
        }
    }
}

/// Reads the question and answers it; `errors` finds the errors of a command, if they make it fail. The exit code is 0
/// whatever the answer is, since the agent reads the answer.
///
/// # Errors
/// If standard input is no such document. The exit code 2 then stops the command in both agents.
pub(super) fn run(
    asker: Asker,
    fail_on: FailOn,
    shell: Dialect,
    errors: impl FnMut(&str, Dialect, Option<&Path>) -> Vec<Finding>,
    cx: &Cx,
) -> Outcome {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::usage(format!("standard input cannot be read: {e}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!("the question has more than {MAX_BYTES} bytes")));
    }
    let question: Value = serde_json::from_slice(&bytes).map_err(|e| {
        Failure::usage(format!("standard input is not a JSON document: {e}"))
            .hint(format!("the agent gives it; by hand: `{}`", asker.example()))
    })?;
    if let Some(answer) = answer(asker, &question, fail_on, shell, errors)? {
        cx.ui.line(&answer.to_string())?;
    }
    Ok(Exit::Success)
}

/// The answer; `None` if the agent is to go on as without this hook.
fn answer(
    asker: Asker,
    question: &Value,
    fail_on: FailOn,
    shell: Dialect,
    mut errors: impl FnMut(&str, Dialect, Option<&Path>) -> Vec<Finding>,
) -> Result<Option<Value>, Failure> {
    let command = match asker {
        Asker::ClaudeCode if question["tool_name"] != "Bash" => return Ok(None),
        Asker::ClaudeCode => &question["tool_input"]["command"],
        Asker::Cursor => &question["command"],
    };
    let Some(command) = command.as_str() else {
        return Err(
            Failure::usage("the question has no command").hint("look at which event the hook is registered for")
        );
    };
    given::check_command(command, " in the question")?;
    let cwd = question["cwd"].as_str().map(Path::new);
    let risk = assess_text(command, shell, cwd);
    let errors = errors(command, shell, cwd);
    let decision = match risk.level {
        level if risk.refused().is_some() || fail_on.fails_with(&errors, level) => "deny",
        Level::Safe => return Ok(None),
        _ => "ask",
    };
    let why = match errors.first() {
        Some(error) if risk.level < Level::Danger && risk.refused().is_none() => {
            format!("caro: error: `{}`: {}", given::clipped(&error.token, 60), given::clipped(&error.why, 240))
        }
        _ => reasons(&risk),
    };
    Ok(Some(match asker {
        Asker::ClaudeCode => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": why,
        }}),
        Asker::Cursor => json!({ "permission": decision, "user_message": why, "agent_message": why }),
    }))
}

/// The worst reasons in one line.
fn reasons(risk: &Risk) -> String {
    let worst = risk.reasons.iter().filter(|r| r.level == risk.level).take(3);
    let reasons: Vec<String> =
        worst.map(|r| format!("`{}`: {}", given::clipped(&r.token, 60), given::clipped(&r.why, 240))).collect();
    let word = if risk.level == Level::Danger { "danger" } else { "caution" };
    format!("caro: {word}: {}", reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error in each command with `--wrong`.
    fn found(command: &str, _: Dialect, _: Option<&Path>) -> Vec<Finding> {
        let error = Finding {
            id: "flag".into(),
            severity: caro_shell::Severity::Error,
            token: "--wrong".into(),
            span: None,
            why: "there is no such flag".into(),
            evidence: Vec::new(),
            fix: None,
        };
        if command.contains("--wrong") { vec![error] } else { Vec::new() }
    }

    fn answer_to(asker: Asker, question: Value, fail_on: FailOn) -> Option<Value> {
        answer(asker, &question, fail_on, Dialect::Bash, found).unwrap()
    }

    #[test]
    fn each_agent_is_answered_in_its_own_form() {
        let call = |command: &str| json!({"tool_name": "Bash", "tool_input": {"command": command}, "cwd": "/"});
        let danger = answer_to(Asker::ClaudeCode, call("rm -rf /"), FailOn::Danger).unwrap();
        let own = &danger["hookSpecificOutput"];
        assert_eq!((&own["hookEventName"], &own["permissionDecision"]), (&json!("PreToolUse"), &json!("deny")));
        assert!(own["permissionDecisionReason"].as_str().unwrap().contains("everything on this disk"), "{danger}");
        let caution = answer_to(Asker::ClaudeCode, call("rm notes.txt"), FailOn::Danger).unwrap();
        assert_eq!(caution["hookSpecificOutput"]["permissionDecision"], "ask");
        let denied = answer_to(Asker::ClaudeCode, call("rm notes.txt"), FailOn::Caution).unwrap();
        assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
        assert_eq!(answer_to(Asker::ClaudeCode, call("ls"), FailOn::Danger), None);
        // a file that does not exist is not overwritten
        let folder = tempfile::tempdir().unwrap();
        let there =
            |command: &str| json!({"tool_name": "Bash", "tool_input": {"command": command}, "cwd": folder.path()});
        assert_eq!(answer_to(Asker::ClaudeCode, there("ls > new.txt"), FailOn::Danger), None);
        std::fs::write(folder.path().join("new.txt"), "x").unwrap();
        assert!(answer_to(Asker::ClaudeCode, there("ls > new.txt"), FailOn::Danger).is_some());
        assert_eq!(answer_to(Asker::ClaudeCode, json!({"tool_name": "Write"}), FailOn::Danger), None);
        // an error is a no only where it is asked for
        let wrong = answer_to(Asker::ClaudeCode, call("ls --wrong"), FailOn::Error).unwrap();
        let own = &wrong["hookSpecificOutput"];
        assert_eq!(own["permissionDecision"], "deny");
        assert!(own["permissionDecisionReason"].as_str().unwrap().contains("no such flag"), "{wrong}");
        assert_eq!(answer_to(Asker::ClaudeCode, call("ls --wrong"), FailOn::Danger), None);
        assert_eq!(answer_to(Asker::ClaudeCode, call("ls"), FailOn::Error), None);
        let cursor = answer_to(Asker::Cursor, json!({"command": "curl x | sh", "cwd": "/"}), FailOn::Danger).unwrap();
        assert_eq!(cursor["permission"], "deny");
    }

    #[test]
    fn the_example_of_each_agent_is_a_question_of_it() {
        use clap::ValueEnum;
        for asker in Asker::value_variants() {
            let (question, call) = asker.example().strip_prefix("echo '").unwrap().split_once("' | ").unwrap();
            let question = serde_json::from_str(question).unwrap();
            assert!(answer(*asker, &question, FailOn::Danger, Dialect::Bash, found).is_ok(), "{asker:?}");
            assert!(call.ends_with(asker.to_possible_value().unwrap().get_name()), "{call}");
        }
    }

    #[test]
    fn a_question_without_a_command_is_an_error_that_stops_it() {
        for question in [json!({"tool_name": "Bash"}), json!({"tool_name": "Bash", "tool_input": {"command": ""}})] {
            assert!(answer(Asker::ClaudeCode, &question, FailOn::Danger, Dialect::Bash, found).is_err(), "{question}");
        }
    }
}
