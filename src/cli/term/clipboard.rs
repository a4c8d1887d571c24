//! A command on the clipboard: through the terminal, and through a program of this machine that has one.

use crate::{Cx, env};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use caro_exec as exec;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long a program may take to take it over.
const PATIENCE: Duration = Duration::from_millis(800);

/// The longest text that is sent through a terminal: some take no more.
const LONGEST: usize = 60_000;

/// A program that takes over a text, with its arguments.
type Program = (&'static str, &'static [&'static str]);

/// The programs of a desktop, and the variable without which each has none.
const PROGRAMS: [(Program, Option<&str>); 5] = [
    (("wl-copy", &[]), Some("WAYLAND_DISPLAY")),
    (("xclip", &["-selection", "clipboard"]), Some("DISPLAY")),
    (("xsel", &["--clipboard", "--input"]), Some("DISPLAY")),
    (("pbcopy", &[]), None),
    (("clip.exe", &[]), None),
];

/// Copies a text, and tells in words what was done.
pub fn copy(text: &str, programs: &BTreeMap<String, PathBuf>, cx: &Cx) -> String {
    let has = |name: &str| env::everything().any(|(variable, value)| variable == name && !value.is_empty());
    let native = native(|name| programs.contains_key(name), has);
    let by_program = native.and_then(|(name, args)| {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let took = exec::hand_over(programs.get(name)?, &args, text.as_bytes(), PATIENCE);
        took.unwrap_or(false).then_some(name)
    });
    let by_terminal = cx.ui.may_draw() && sequence(text).is_some_and(|sequence| cx.ui.draw(&sequence));
    match (by_program, by_terminal) {
        (Some(name), _) => format!("copied ({name})"),
        (None, true) => "copied through the terminal, if yours takes that (OSC 52)".into(),
        (None, false) => {
            "not copied: there is no program for it here (wl-copy, xclip, xsel, pbcopy), and this terminal takes no text"
                .into()
        }
    }
}

/// The first program that is here and has its desktop.
fn native(is_here: impl Fn(&str) -> bool, has: impl Fn(&str) -> bool) -> Option<Program> {
    let usable = |(program, needs): &&(Program, Option<&str>)| is_here(program.0) && needs.is_none_or(&has);
    PROGRAMS.iter().find(usable).map(|(program, _)| *program)
}

/// The sequence that has a terminal copy a text: OSC 52.
fn sequence(text: &str) -> Option<String> {
    let encoded = STANDARD.encode(text);
    if encoded.len() > LONGEST {
        return None;
    }
    Some(format!("\x1b]52;c;{encoded}\x07"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_the_desktop_that_is_here_takes_it() {
        let choose = |here: &[&str], set: &[&str]| {
            native(|name| here.contains(&name), |name| set.contains(&name)).map(|(name, _)| name)
        };
        let all = ["xclip", "wl-copy", "xsel"];
        assert_eq!(choose(&all, &["DISPLAY", "WAYLAND_DISPLAY"]), Some("wl-copy"));
        assert_eq!(choose(&all, &["DISPLAY"]), Some("xclip"));
        assert_eq!(choose(&["xsel"], &["DISPLAY"]), Some("xsel"));
        assert_eq!(choose(&all, &[]), None);
        assert_eq!(choose(&["pbcopy"], &[]), Some("pbcopy"));
        assert_eq!(choose(&["clip.exe"], &[]), Some("clip.exe"));
        assert_eq!(choose(&[], &["DISPLAY"]), None);
    }

    #[test]
    fn a_text_goes_through_the_terminal_in_letters_that_do_nothing_there() {
        assert_eq!(sequence("ls \u{1b}]\u{7}é").unwrap(), "\x1b]52;c;bHMgG10Hw6k=\x07");
        assert_eq!(sequence(&"x".repeat(LONGEST)), None);
    }
}
