//! Implements `-x`: shows a command, asks, and runs it at the terminal. No command runs unasked, and a dangerous one
//! runs only after a word of it has been typed.

use super::run::{Run, program};
use super::undo::{Forecast, Undo};
use super::{explained, present};
use crate::setup::settings::LEVELS;
use crate::term::interrupt::Phase;
use crate::term::typed::{is_yes, typed};
use crate::term::ui::{Role, in_line};
use crate::term::{clipboard, edit, history};
use crate::{Cx, Exit, Failure, Outcome};
use caro_command::{Answer, risk};
use caro_exec as exec;
use caro_shell::Severity;
use caro_shell::safety::{Level, Risk};
use std::path::{Path, PathBuf};

/// Checks that there is a terminal at which the user can be asked. What comes through a pipe is no consent.
///
/// # Errors
/// If nobody can be asked.
pub fn check_can_ask(cx: &Cx) -> Result<(), Failure> {
    if cx.ui.can_ask_at_terminal() {
        return Ok(());
    }
    Err(Failure::no("-x asks before it runs anything, and here is nobody to ask")
        .hint("call it from a terminal; without -x the command is printed"))
}

/// Asks, and runs the command. `ran` is set to the command that was run and its exit code.
///
/// # Errors
/// If it may not be run, or cannot be started.
pub fn run(answer: Answer, run: &Run<'_>, ran: &mut Option<(String, i32)>) -> Outcome {
    check_can_ask(run.cx)?;
    let (shell, undo) = prepare(run)?;
    let Some((cmd, forecast)) = ask(answer, &undo, run)? else {
        run.cx.ui.note("not run");
        return Err(Failure::silent(Exit::No));
    };
    let code = start(&shell, &cmd, forecast, &undo, run)?;
    *ran = Some((cmd, i32::from(code)));
    Ok(Exit::Child(code))
}

/// Runs a shown command that the user has chosen to run, and returns its exit code; `None` if they declined. It asks
/// only if the command is dangerous, known to be wrong, or not safe and not covered by undo.
///
/// # Errors
/// As [`run`].
pub fn run_shown(answer: Answer, run: &Run<'_>) -> Result<Option<u8>, Failure> {
    let (shell, undo) = prepare(run)?;
    let ui = &run.cx.ui;
    check_limit(&answer.risk, run)?;
    let forecast = undo.forecast(&answer.cmd, run);
    undo.report(&forecast, run);
    let word = word_to_type(&answer.risk);
    let is_wrong = answer.draft || answer.findings.iter().any(|f| f.severity == Severity::Error);
    let is_agreed = match &word {
        Some(word) => {
            ui.ask(&format!("type {} to run it:", ui.paint_err(Role::Danger, word)));
            typed(run.cx)?.is_some_and(|reply| reply == *word)
        }
        None if is_wrong || answer.risk.level > Level::Safe && !undo.covers(&forecast) => {
            ui.ask("run it all the same? [y/N]");
            typed(run.cx)?.is_some_and(|reply| is_yes(&reply))
        }
        None => true,
    };
    if !is_agreed {
        return Ok(None);
    }
    start(&shell, &answer.cmd, forecast, &undo, run).map(Some)
}

/// Finds the shell that a command is run in, and opens undo.
fn prepare(run: &Run<'_>) -> Result<(PathBuf, Undo), Failure> {
    let Run { place, context, .. } = *run;
    if place.target.os != context.target.os {
        return Err(Failure::no(format!("this command is for {}, not for this machine", place.target.name()))
            .hint("without -x it is printed"));
    }
    let shell = program(place.dialect, context).ok_or_else(|| {
        Failure::no(format!("there is no {} here to run it in", place.dialect.name()))
            .hint("without -x the command is printed; --shell names another shell")
    })?;
    Ok((shell, Undo::new(run)?))
}

/// Saves what the command would change, runs it and returns its exit code.
fn start(shell: &Path, cmd: &str, forecast: Forecast, undo: &Undo, run: &Run<'_>) -> Result<u8, Failure> {
    let cx = run.cx;
    let record = undo.save(forecast, cmd, run)?;
    history::hand_to_shell(cmd, cx);
    let runtime = cx.runtime()?;
    let result = {
        let _phase = cx.interrupt().during(Phase::Child);
        runtime.block_on(exec::foreground(shell, cmd, None))
    };
    let code = match result {
        Ok(code) => code,
        Err(e) => {
            record.discard();
            return Err(Failure::internal(e).hint("`caro context` shows the shell that was found"));
        }
    };
    record.finish(code, run);
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Checks a risk against the policies, and against the setting `run_up_to`.
fn check_limit(risk: &Risk, run: &Run<'_>) -> Result<(), Failure> {
    if let Some(reason) = risk.refused() {
        return Err(
            Failure::no(reason.why.clone()).hint("a policy forbids it: what it says is in that file, at that line")
        );
    }
    let most = run.settings.run_up_to;
    if risk.level <= most {
        return Ok(());
    }
    let allowed = LEVELS.iter().find(|(_, level)| *level == most).map_or("", |(name, _)| name);
    Err(Failure::no(format!("-x is set to run nothing beyond `{allowed}`"))
        .hint("`caro config --origin` shows where `run_up_to` is set"))
}

/// Shows the command and asks whether to run it. Returns the accepted command, perhaps edited, and what it would
/// change; `None` if none was accepted.
fn ask(mut answer: Answer, undo: &Undo, run: &Run<'_>) -> Result<Option<(String, Forecast)>, Failure> {
    let Run { place, cx, .. } = *run;
    let ui = &cx.ui;
    let mut cmd = match choose(&answer, cx)? {
        Some(cmd) => cmd,
        None => return Ok(None),
    };
    'shown: loop {
        let edited = cmd != answer.cmd;
        let assess = || risk::assess_text(&cmd, place.dialect, Some(&place.cwd));
        let risk = if edited { assess() } else { answer.risk.clone() };
        ui.tell(&ui.paint_err(Role::Command, &cmd));
        if edited {
            present::verdict(ui, &risk);
            present::shell_only(ui, &cmd, place.dialect);
        } else {
            present::all(ui, &answer);
        }
        check_limit(&risk, run)?;
        let forecast = undo.forecast(&cmd, run);
        undo.report(&forecast, run);
        let word = word_to_type(&risk);
        loop {
            match &word {
                Some(word) => ui.ask(&format!("type {} to run it, e to edit it:", ui.paint_err(Role::Danger, word))),
                None if run.asker.is_some() => ui.ask("run it? [y/N/e(dit)/a(nother)/?]"),
                None => ui.ask("run it? [y/N/e(dit)/?]"),
            }
            let Some(reply) = typed(cx)? else {
                ui.tell("");
                return Ok(None);
            };
            if word.as_ref().map_or_else(|| is_yes(&reply), |word| reply == *word) {
                return Ok(Some((cmd, forecast)));
            }
            match (reply.to_lowercase().as_str(), run.asker) {
                ("e" | "edit", _) => {
                    if let Err(why) = edit::check(&cmd) {
                        ui.failure(&why);
                        continue;
                    }
                    let _phase = cx.interrupt().during(Phase::Ends);
                    match edit::line(&cmd)? {
                        Some(line) if !line.trim().is_empty() => cmd = line,
                        _ => return Ok(None),
                    }
                    continue 'shown;
                }
                ("a" | "another", Some(asker)) => match asker.another() {
                    Ok(other) => {
                        (cmd, answer) = (other.cmd.clone(), other);
                        continue 'shown;
                    }
                    Err(why) if why.exit == Exit::Interrupted => ui.aside(Role::Caution, "stopped"),
                    Err(why) => ui.aside(Role::Caution, &why.message),
                },
                ("c" | "copy", _) => {
                    ui.aside(Role::Dim, &clipboard::copy(&cmd, &run.context.available_commands, cx));
                }
                ("?" | "h" | "help", _) => explain(&cmd, &risk, word.as_deref(), run),
                _ => return Ok(None),
            }
        }
    }
}

/// Explains what the command does, the reasons for its rating, and what each reply leads to.
fn explain(cmd: &str, risk: &Risk, word: Option<&str>, run: &Run<'_>) {
    let ui = &run.cx.ui;
    // the rest is explained even if the manuals are not
    if let Err(why) = explained::tell(cmd, run.place.dialect, run.context, run.cx) {
        ui.warn(&why.message);
    }
    for reason in &risk.reasons {
        ui.aside_parts(&[
            (present::level(reason.level).1, &in_line(&reason.token)),
            (Role::Plain, &format!(": {}", reason.why)),
        ]);
    }
    let yes = match word {
        Some(word) => format!("`{word}`, typed in full, runs it"),
        None => "`y` runs it".to_owned(),
    };
    ui.aside(Role::Plain, &format!("{yes}; `e` lets you change it first; `c` copies it; anything else leaves it"));
    if run.asker.is_some() {
        ui.aside(Role::Plain, "`a` looks for another command");
    }
}

/// Asks which of several commands (`-n`) to run; returns the only one without asking.
fn choose(answer: &Answer, cx: &Cx) -> Result<Option<String>, Failure> {
    if answer.alternatives.is_empty() {
        return Ok(Some(answer.cmd.clone()));
    }
    let others = answer.alternatives.iter().map(|other| (&other.cmd, &other.risk, &other.findings));
    let all: Vec<_> = std::iter::once((&answer.cmd, &answer.risk, &answer.findings)).chain(others).collect();
    for (i, (cmd, risk, findings)) in all.iter().enumerate() {
        cx.ui.tell(&format!("{} {}", i + 1, cx.ui.paint_err(Role::Command, cmd)));
        if risk.level > Level::Safe {
            present::verdict(&cx.ui, risk);
        }
        present::errors(&cx.ui, findings);
    }
    cx.ui.ask(&format!("which one? [1-{}]", all.len()));
    let reply = typed(cx)?.unwrap_or_default();
    Ok(reply.parse::<usize>().ok().and_then(|n| all.get(n.checked_sub(1)?).map(|(cmd, ..)| (*cmd).clone())))
}

/// Returns the word to type before a dangerous command runs: its dangerous part, or `danger` if that is long or hard
/// to type.
fn word_to_type(risk: &Risk) -> Option<String> {
    if risk.level < Level::Danger {
        return None;
    }
    let token = risk.reasons.iter().find(|r| r.level == Level::Danger).map(|r| r.token.trim());
    let is_easy = |t: &&str| (2..=24).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    Some(token.filter(is_easy).unwrap_or("danger").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::safety::Reason;

    fn risk(level: Level, token: &str) -> Risk {
        let reason = Reason {
            level,
            effect: "delete".into(),
            token: token.into(),
            span: None,
            why: "it deletes".into(),
            scope: None,
        };
        Risk { level, reasons: vec![reason] }
    }

    #[test]
    fn only_danger_has_to_be_typed_and_the_word_is_typeable() {
        assert_eq!(word_to_type(&risk(Level::Caution, "mv")), None);
        assert_eq!(word_to_type(&risk(Level::Danger, "rm")).as_deref(), Some("rm"));
        for odd in ["", "e", "y", "r\u{202e}m", "a\nb", &"x".repeat(25)] {
            assert_eq!(word_to_type(&risk(Level::Danger, odd)).as_deref(), Some("danger"), "{odd:?}");
        }
        assert_eq!(word_to_type(&Risk { level: Level::Danger, reasons: Vec::new() }).as_deref(), Some("danger"));
    }
}
