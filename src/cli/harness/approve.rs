//! Asks the user before a call that changes something: shows the call and the reasons, and reads the reply.

use crate::term::interrupt::Phase;
use crate::term::typed::typed_in_a_run;
use crate::term::ui::{Role, plural};
use crate::term::{clipboard, edit};
use crate::{Cx, Exit};
use caro_agent::runtime::{Approval, Question};
use caro_agent::tool::Hazard;
use caro_agent::{Args, Call};
use caro_host::ExecutionContext;
use serde_json::Value;

/// Most lines of a text shown at first; of a command every line is shown.
const MAX_LINES: usize = 12;
/// The word to type to allow a dangerous call.
const WORD: &str = "danger";

/// Asks the question; any reply that does not mean yes means no. Ctrl-C stops the run.
pub fn ask(cx: &Cx, question: &Question) -> (Approval, Option<Args>) {
    if cx.interrupt().is_cancelled() {
        return (Approval::No, None);
    }
    let Question { call, reasons, lasting } = question;
    let mut cut = present(cx, call, reasons, Some(MAX_LINES));
    let danger = call.effects.hazard == Hazard::Danger;
    let can_edit = editable(call).is_some();
    let reply = loop {
        let view_word = if cut { "/v(iew all)" } else { "" };
        let edit_word = if can_edit { "/e(dit)" } else { "" };
        if danger {
            let view = if cut { " (v shows all of it)" } else { "" };
            cx.ui.ask(&format!("type {} to allow it{view}:", cx.ui.paint_err(Role::Danger, WORD)));
        } else {
            let lasting_word =
                if *lasting { format!("/a(lways for `{}` in this run)", call.tool) } else { String::new() };
            cx.ui.ask(&format!("allow it? [y/N{lasting_word}{edit_word}{view_word}/?]"));
        }
        let Ok(Some(reply)) = typed_in_a_run(cx) else {
            cx.ui.tell("");
            return (Approval::No, None);
        };
        let reply = reply.to_lowercase();
        match reply.as_str() {
            "v" | "view" if cut => cut = present(cx, call, reasons, None),
            "?" | "h" | "help" => explain(question).iter().for_each(|line| cx.ui.aside(Role::Plain, line)),
            "c" | "copy" if can_edit => {
                let programs = ExecutionContext::detect(cx.dirs.cache.as_deref()).available_commands;
                let text = editable(call).and_then(|name| call.args.get(name)?.as_str()).unwrap_or_default();
                cx.ui.aside(Role::Dim, &clipboard::copy(text, &programs, cx));
            }
            _ => break reply,
        }
    };
    match reply.as_str() {
        WORD if danger => (Approval::Yes, None),
        _ if danger => (Approval::No, None),
        "y" | "yes" => (Approval::Yes, None),
        "a" | "always" if *lasting => (Approval::Always, None),
        "e" | "edit" if can_edit => {
            let _phase = cx.interrupt().during(Phase::Ends);
            match edit_args(call, cx) {
                // an edited call is checked again, and asked about again if necessary
                Some(args) => (Approval::Yes, Some(args)),
                None => (Approval::No, None),
            }
        }
        _ => (Approval::No, None),
    }
}

/// Shows the call and the reasons to ask, with at most `max_lines` lines of each text. Returns true if any was cut.
fn present(cx: &Cx, call: &Call, reasons: &[String], max_lines: Option<usize>) -> bool {
    let mut cut = false;
    let ui = &cx.ui;
    let line = |parts: &[(Role, &str)]| {
        let painted: String = parts.iter().map(|(role, text)| ui.paint_err(*role, text)).collect();
        ui.tell(&format!("  {painted}"));
    };
    for (name, value) in &call.args {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let lines: Vec<&str> = text.lines().collect();
        match lines.as_slice() {
            [] => line(&[(Role::Accent, &format!("{} {name}: ", call.tool)), (Role::Dim, "(empty)")]),
            [only] => line(&[(Role::Accent, &format!("{} {name}: ", call.tool)), (Role::Command, only)]),
            many => {
                line(&[(Role::Accent, &format!("{} {name}:", call.tool))]);
                // a command is shown whole: its last line may be the one that matters
                let shown = if name == "command" { usize::MAX } else { max_lines.unwrap_or(usize::MAX) };
                many.iter().take(shown).for_each(|text| line(&[(Role::Plain, &format!("  | {text}"))]));
                if many.len() > shown {
                    cut = true;
                    line(&[(Role::Dim, &format!("  | ... {}", plural(many.len() - shown, "more line")))]);
                }
            }
        }
    }
    let role = if call.effects.hazard == Hazard::Danger { Role::Danger } else { Role::Caution };
    reasons.iter().for_each(|reason| line(&[(role, reason)]));
    cut
}

/// Explains the question in lines: what would run, what it would change, the reasons to ask, and what each reply
/// leads to.
fn explain(Question { call, reasons, lasting }: &Question) -> Vec<String> {
    let effects = &call.effects;
    let is_danger = effects.hazard == Hazard::Danger;
    let mut lines = vec![format!("it would run: {} {}", call.tool, call.summary())];
    let files: Vec<String> = effects.writes.iter().map(|path| path.display().to_string()).collect();
    lines.push(match (files.is_empty(), effects.removes, effects.opaque) {
        (false, true, _) => format!("it would change or remove: {}", files.join(", ")),
        (false, false, _) => format!("it would change: {}", files.join(", ")),
        (true, _, true) => "what it would change cannot be told beforehand".into(),
        (true, ..) => "no file is known that it would change".into(),
    });
    if effects.net {
        lines.push("it reaches out to the network".into());
    }
    let why = if reasons.is_empty() { "it may change something".into() } else { reasons.join("; ") };
    lines.push(format!("it is asked for because: {why}"));
    let yes = if is_danger { format!("`{WORD}`, typed in full, lets") } else { "`y` lets".into() };
    lines.push(format!("{yes} it run this once; `n`, or nothing, does not, and the run looks for another way"));
    if *lasting && !is_danger {
        lines.push(format!(
            "`a` lets every call of `{}` run that would be asked for so, until this run ends",
            call.tool
        ));
    }
    if editable(call).is_some() && !is_danger {
        lines.push("`e` lets you change it first, `c` copies it".into());
    }
    lines.push("Ctrl-C stops the run".into());
    lines
}

/// Returns the name of the argument that can be edited, if its text is a single line that a terminal shows as it is.
fn editable(call: &Call) -> Option<&'static str> {
    let name = if call.tool == "shell" { "command" } else { "path" };
    let text = call.args.get(name)?.as_str()?;
    if text.contains('\n') || edit::check(text).is_err() { None } else { Some(name) }
}

/// Lets the user edit the call, and returns its new arguments.
fn edit_args(call: &Call, cx: &Cx) -> Option<Args> {
    let name = editable(call)?;
    let before = call.args.get(name).and_then(Value::as_str)?;
    let typed = edit::line(before);
    // the editor reads Ctrl-C as a key, so no signal arrives
    if typed.as_ref().is_err_and(|why| why.exit == Exit::Interrupted) {
        cx.interrupt().cancel_current();
    }
    let after = typed.ok().flatten().filter(|line| !line.trim().is_empty())?;
    let mut args = call.args.clone();
    args.insert(name.into(), after.into());
    Some(args)
}
