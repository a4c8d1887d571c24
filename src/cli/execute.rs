//! `-x`: shows a command, asks, and runs it with the terminal as its own. Nothing ever runs unasked, and what is
//! dangerous runs only after a word of it has been typed.

use super::interrupt::Phase;
use super::request::{Place, typed};
use super::settings::LEVELS;
use super::ui::Role;
use super::undo::{Looked, Net};
use super::{Cx, Exit, Failure, Outcome, Settings, edit, present};
use crate::command::Answer;
use crate::exec;
use crate::host::ExecutionContext;
use crate::shell::safety::{self, Level, Risk};
use crate::shell::{self, Dialect};
use std::path::PathBuf;

/// How a command is run, beside that it is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct With {
    /// It is shown first what the command changes.
    pub preview: bool,
    /// The deleted files are laid into the trash, too.
    pub trash: bool,
}

/// Everything that running a command needs.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Where, and in which shell's language.
    pub place: &'a Place,
    /// The settings in force.
    pub settings: &'a Settings,
    /// The terminal and the rest.
    pub cx: &'a Cx,
    /// The machine.
    pub context: &'a ExecutionContext,
    /// True if it is to be shown first what the command changes.
    pub preview: bool,
    /// True if what it deletes is laid into the trash, too.
    pub trash: bool,
}

/// Asks and runs.
///
/// # Errors
/// If it may not be run, or cannot be started.
pub fn run(answer: Answer, run: &Run<'_>) -> Outcome {
    let Run { place, context, cx, .. } = *run;
    if place.target.os != context.target.os {
        return Err(Failure::no(format!("this command is for {}, not for this machine", place.target.name()))
            .hint("without -x it is printed"));
    }
    let shell = program(place.dialect, context).ok_or_else(|| {
        Failure::no(format!("there is no {} here to run it in", place.dialect.name()))
            .hint("without -x the command is printed; --shell names another shell")
    })?;
    let net = Net::new(run)?;
    let Some((cmd, looked)) = agreed(&answer, &net, run)? else {
        return Err(Failure::silent(Exit::No));
    };
    let caught = net.cast(looked, &cmd, run)?;
    let runtime = cx.runtime()?;
    let ended = {
        let _phase = cx.interrupt().during(Phase::Child);
        runtime.block_on(exec::foreground(&shell, &cmd, None))
    };
    let code = match ended {
        Ok(code) => code,
        Err(e) => {
            caught.dropped();
            return Err(Failure::internal(e).hint("`caro context` shows the shell that was found"));
        }
    };
    caught.ended(code, run);
    Ok(Exit::Child(u8::try_from(code).unwrap_or(1)))
}

/// The shell program that speaks the dialect: the calling one, or the first on PATH.
pub fn program(dialect: Dialect, context: &ExecutionContext) -> Option<PathBuf> {
    if context.shell.dialect == dialect
        && let Some(path) = &context.shell.path
    {
        return Some(path.clone());
    }
    let names: &[&str] = match dialect {
        Dialect::Bash => &["bash"],
        Dialect::Zsh => &["zsh"],
        Dialect::Fish => &["fish"],
        Dialect::Sh => &["sh", "dash", "bash"],
        Dialect::PowerShell => &["pwsh", "powershell"],
    };
    names.iter().find_map(|name| context.available_commands.get(*name)).cloned()
}

/// The command that the person agreed to, perhaps after editing or choosing, and what it was seen to change; `None` if to
/// none.
fn agreed(answer: &Answer, net: &Net, run: &Run<'_>) -> Result<Option<(String, Looked)>, Failure> {
    let Run { place, settings, cx, .. } = *run;
    let mut cmd = match chosen(answer, cx)? {
        Some(cmd) => cmd,
        None => return Ok(None),
    };
    let mut edited = cmd != answer.cmd;
    loop {
        let risk = if edited { safety::assess(&shell::parse(&cmd, place.dialect)) } else { answer.risk.clone() };
        cx.ui.tell(&cx.ui.paint_err(Role::Command, &cmd));
        if edited {
            present::verdict(&cx.ui, &risk);
        } else {
            present::all(&cx.ui, answer);
        }
        if let Some(reason) = risk.refused() {
            return Err(
                Failure::no(reason.why.clone()).hint("a policy forbids it: what it says is in that file, at that line")
            );
        }
        if risk.level > settings.run_up_to {
            let allowed = LEVELS.iter().find(|(_, l)| *l == settings.run_up_to).map_or("", |(name, _)| name);
            return Err(Failure::no(format!("-x is set to run nothing beyond `{allowed}`"))
                .hint("`caro config --origin` shows where `run_up_to` is set"));
        }
        let looked = net.look(&cmd, run);
        net.tell(&looked, run);
        let word = word_to_type(&risk);
        match &word {
            Some(word) => cx.ui.ask(&format!("type {} to run it, e to edit it:", cx.ui.paint_err(Role::Danger, word))),
            None => cx.ui.ask("run it? [y/N/e(dit)]"),
        }
        let Some(reply) = typed(cx)? else {
            cx.ui.tell("");
            return Ok(None);
        };
        match (&word, reply.as_str()) {
            (Some(word), reply) if reply == word => return Ok(Some((cmd, looked))),
            (None, "y" | "Y" | "yes" | "Yes") => return Ok(Some((cmd, looked))),
            (_, "e" | "E" | "edit") => {
                let _phase = cx.interrupt().during(Phase::Ends);
                match edit::line(&cmd)? {
                    Some(line) if !line.trim().is_empty() => cmd = line,
                    _ => return Ok(None),
                }
                edited = true;
            }
            _ => return Ok(None),
        }
    }
}

/// With `-n`, the one of the commands that the person picks.
fn chosen(answer: &Answer, cx: &Cx) -> Result<Option<String>, Failure> {
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

/// What must be typed before a dangerous command runs: the piece of it that is dangerous, or `danger` where that is long
/// or not easily typed.
fn word_to_type(risk: &Risk) -> Option<String> {
    if risk.level < Level::Danger {
        return None;
    }
    let token = risk.reasons.iter().find(|r| r.level == Level::Danger).map(|r| r.token.trim());
    let easy = |t: &&str| (2..=24).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    Some(token.filter(easy).unwrap_or("danger").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::safety::Reason;

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
