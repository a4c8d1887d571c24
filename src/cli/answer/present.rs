//! Prints an answer for the user, and what `--verbose`, `--debug` and `--timing` add.

use crate::Ui;
use crate::flags::AnswerArgs;
use crate::term::ui::Role;
use caro_command::checks::NOT_INSTALLED;
use caro_command::{Answer, Timing, Trace};
use caro_shell::safety::{Level, Risk};
use caro_shell::{Dialect, Finding, Severity, changes_only_its_shell, parse};
use serde_json::Value;
use std::io;

/// Confidence below which the user is warned that an answer is more likely wrong than right.
const DOUBTFUL: f64 = 0.5;

/// The note about a command that would have no effect in a shell of its own.
const SHELL_ONLY: &str = "it changes only the shell that runs it: copy it";

/// Most reasons below a command.
const MAX_REASONS: usize = 4;

/// The hint for a request without a command.
pub const NO_COMMAND: &str = "say what the command is to do, for example: `caro \"find files larger than 1 GB\"`";

/// The reason that there is no command.
pub fn refusal(answer: &Answer) -> &str {
    answer.refusal.as_deref().unwrap_or("the model gave no command")
}

/// Returns the JSON document of an answer. Without a command it holds the reason, and nothing that could be taken for a
/// command or its rating.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn document(answer: &Answer) -> serde_json::Result<Value> {
    const ABOUT_THE_CALL: [&str; 6] = ["iterations", "model", "target", "shell", "timing", "resident"];
    let whole = serde_json::to_value(answer)?;
    if !answer.cmd.is_empty() {
        return Ok(whole);
    }
    let reason = [("refusal", refusal(answer)), ("hint", NO_COMMAND)].map(|(name, text)| (name.into(), text.into()));
    let about = ABOUT_THE_CALL.iter().filter_map(|name| Some(((*name).to_owned(), whole.get(name)?.clone())));
    Ok(Value::Object(reason.into_iter().chain(about).collect()))
}

/// Shows an answer that has a command: the bare command on stdout, notes about it on stderr.
///
/// # Errors
/// If stdout cannot be written.
pub fn answer(ui: &Ui, answer: &Answer) -> io::Result<()> {
    ui.command(&answer.cmd)?;
    if answer.alternatives.is_empty() {
        notes(ui, answer);
        return Ok(());
    }
    if ui.out_is_terminal() {
        slips(ui, answer);
    }
    rating(ui, &answer.cmd, &answer.risk, &answer.findings, answer);
    for other in &answer.alternatives {
        ui.command(&other.cmd)?;
        rating(ui, &other.cmd, &other.risk, &other.findings, answer);
    }
    Ok(())
}

/// Prints the notes about a command on stderr: at a terminal all of them; for a pipe, where it may be run unread,
/// only that it is dangerous or wrong.
pub fn notes(ui: &Ui, answer: &Answer) {
    if !ui.out_is_terminal() {
        if answer.risk.level == Level::Danger {
            verdict(ui, &answer.risk);
        }
        return errors(ui, &answer.findings);
    }
    all(ui, answer);
}

/// Prints all notes about a command, for a decision at a terminal.
pub fn all(ui: &Ui, answer: &Answer) {
    slips(ui, answer);
    if !answer.explanation.is_empty() {
        folded(&answer.explanation, ui.columns()).iter().for_each(|line| ui.aside(Role::Plain, line));
    }
    if let Some(known) = answer.documents.iter().find(|known| known.command == answer.cmd) {
        let missing = answer.findings.iter().find(|f| f.id == NOT_INSTALLED);
        let missing = missing.map_or(String::new(), |f| format!("; {}", f.why));
        ui.aside(Role::Plain, &format!("as in {}:{}{missing}", known.path, known.line));
    }
    verdict(ui, &answer.risk);
    if let Some(dialect) = Dialect::of_program(&answer.shell) {
        shell_only(ui, &answer.cmd, dialect);
    }
    doubts(ui, answer);
}

/// Prints that a command has no effect in a shell of its own, if it has none.
pub fn shell_only(ui: &Ui, cmd: &str, dialect: Dialect) {
    if changes_only_its_shell(&parse(cmd, dialect)) {
        ui.aside(Role::Caution, SHELL_ONLY);
    }
}

/// Prints what speaks against running a command as it is, for a user who can still change it.
pub fn cautions(ui: &Ui, answer: &Answer) {
    slips(ui, answer);
    if answer.risk.level != Level::Safe {
        verdict(ui, &answer.risk);
    }
    doubts(ui, answer);
}

fn doubts(ui: &Ui, answer: &Answer) {
    for finding in answer.findings.iter().filter(|f| f.severity != Severity::Hint) {
        ui.aside(Role::Caution, &finding.why);
    }
    if answer.confidence < DOUBTFUL {
        ui.aside(Role::Caution, &format!("not sure about this one ({:.0} %)", answer.confidence * 100.0));
    }
}

/// Breaks a text between words into lines that fit a terminal of `columns`, or of 80 if that is less.
fn folded(text: &str, columns: usize) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::term::fold::folded(&text, columns.saturating_sub(4).min(76), "").lines().map(str::to_owned).collect()
}

/// Prints the words of the request that were read as others, but for other forms of the same word.
fn slips(ui: &Ui, answer: &Answer) {
    for slip in answer.slips.iter().filter(|slip| !slip.is_other_form()) {
        ui.aside(Role::Caution, &format!("read `{}` as `{}`", slip.written, slip.read));
    }
}

/// Prints the risk and errors of one of several commands: at a terminal right below it; for a pipe only if it is
/// dangerous or wrong, and then with the command, since stdout goes elsewhere.
fn rating(ui: &Ui, cmd: &str, risk: &Risk, findings: &[Finding], of: &Answer) {
    if ui.out_is_terminal() {
        verdict(ui, risk);
        if let Some(dialect) = Dialect::of_program(&of.shell) {
            shell_only(ui, cmd, dialect);
        }
        errors(ui, findings);
    } else if risk.level == Level::Danger || findings.iter().any(|f| f.severity == Severity::Error) {
        ui.aside(Role::Command, cmd);
        if risk.level == Level::Danger {
            verdict(ui, risk);
        }
        errors(ui, findings);
    }
}

/// Prints the findings that are errors.
pub fn errors(ui: &Ui, findings: &[Finding]) {
    for finding in findings.iter().filter(|f| f.severity == Severity::Error) {
        ui.aside(Role::Danger, &format!("error: {}", finding.why));
    }
}

/// Prints the risk: its level in colour, with a line for each reason of that level.
pub fn verdict(ui: &Ui, risk: &Risk) {
    let (word, role) = level(risk.level);
    let (shown, more) = worst_reasons(risk);
    if shown.is_empty() {
        ui.aside(role, word);
    }
    for why in shown {
        ui.aside_parts(&[(role, word), (Role::Plain, &format!(": {why}"))]);
    }
    if more > 0 {
        ui.aside(Role::Dim, &format!("and {more} more"));
    }
}

/// The different reasons of the risk's own level, at most [`MAX_REASONS`], and the number of further ones.
fn worst_reasons(risk: &Risk) -> (Vec<&str>, usize) {
    let mut all: Vec<&str> = Vec::new();
    for reason in risk.reasons.iter().filter(|reason| reason.level == risk.level) {
        if !all.contains(&reason.why.as_str()) {
            all.push(&reason.why);
        }
    }
    let more = all.len().saturating_sub(MAX_REASONS);
    all.truncate(MAX_REASONS);
    (all, more)
}

/// The word for a level, and its role.
pub fn level(level: Level) -> (&'static str, Role) {
    match level {
        Level::Safe => ("safe", Role::Good),
        Level::Caution => ("caution", Role::Caution),
        Level::Danger => ("danger", Role::Danger),
    }
}

/// Prints a trace event as far as `--verbose` and `--debug` ask for it.
pub fn trace(ui: &Ui, args: &AnswerArgs, event: &Trace) {
    let head = |text: &str| ui.paint_err(Role::Accent, text);
    let plain = |text: &str| ui.paint_err(Role::Plain, text);
    match event {
        Trace::Layer { name, tokens, chars } if args.verbose || args.debug => {
            ui.tell(&format!("{} {tokens} tokens, {chars} characters", head(&format!("{name}:"))));
        }
        Trace::Decision { what } if args.verbose || args.debug => {
            ui.tell(&format!("{} {}", head("decision:"), plain(what)));
        }
        Trace::Prompt { iteration, text } if args.debug => {
            ui.tell(&format!("{}\n{}", head(&format!("--- prompt of iteration {iteration}")), plain(text)));
        }
        Trace::Raw { iteration, text } if args.debug => {
            ui.tell(&format!("{}\n{}", head(&format!("--- answer of iteration {iteration}")), plain(text)));
        }
        Trace::Checked { iteration, cmd, confidence, findings } if args.debug => {
            let title = format!("--- iteration {iteration}: confidence {confidence:.2}, {} findings", findings.len());
            ui.tell(&format!("{}\n{}", head(&title), ui.paint_err(Role::Command, cmd)));
            for finding in findings {
                let severity = format!("{:?}", finding.severity).to_lowercase();
                ui.tell(&plain(&format!("  {severity} {} `{}`: {}", finding.id, finding.token, finding.why)));
                for line in &finding.evidence {
                    ui.tell(&plain(&format!("    {line}")));
                }
            }
        }
        _ => {}
    }
}

/// Prints the table of `--timing`.
pub fn timing(ui: &Ui, timing: &Timing) {
    let rows = [
        ("context", timing.context),
        ("load", timing.load),
        ("prefill", timing.prefill),
        ("decode", timing.decode),
        ("  grammar", timing.grammar),
        ("manual", timing.manual),
        ("iteration 1", timing.iteration1),
        ("iteration 2", timing.iteration2),
        ("choice", timing.choice),
        ("total", timing.total),
    ];
    for (name, ms) in rows {
        ui.tell(&format!("{name:<12} {ms:>9.1} ms"));
    }
    let Timing { tokens, drafted, accepted, .. } = timing;
    ui.tell(&format!("{:<12} {tokens:>9}    {accepted} of {drafted} guessed rightly", "tokens"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is by what is lost, not by what stands first in the text.
    #[test]
    fn every_reason_of_the_worst_level_is_shown() {
        use caro_shell::assess;
        let shown = |command: &str| {
            let risk = assess(&parse(command, Dialect::Bash));
            let (shown, more) = worst_reasons(&risk);
            (shown.into_iter().map(str::to_owned).collect::<Vec<_>>(), more)
        };
        assert_eq!(shown("mv a.txt big.bin").0, ["it overwrites big.bin", "it moves or renames a.txt"]);
        assert_eq!(shown("ls"), (Vec::new(), 0));
        let (danger, _) = shown("mv a b; sudo rm -rf /");
        assert!(!danger.is_empty() && danger.iter().all(|why| !why.contains("moves")), "{danger:?}");
        let (many, more) = shown("rm a b c d e f");
        assert_eq!((many.len(), more), (MAX_REASONS, 2), "{many:?}");
    }

    #[test]
    fn a_long_explanation_is_broken_between_words() {
        let text = "ps: report a snapshot of the current processes; head: output the first part of files (-n 6: print the \
                    first 6 lines instead of the first 10)";
        for (columns, count) in [(200, 2), (80, 2), (40, 4)] {
            let lines = folded(text, columns);
            assert!(lines.len() == count && lines.iter().all(|line| line.len() + 4 <= columns), "{lines:?}");
            assert_eq!(lines.join(" "), text);
        }
        assert!(folded("", 80).is_empty());
    }
}
