//! Copies a command to the clipboard: through a program of the desktop, and through the terminal.

use crate::{Cx, env};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use caro_exec as exec;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Most time for a program to read the text.
const COPY_TIMEOUT: Duration = Duration::from_millis(800);

/// Most bytes of encoded text sent through a terminal: some accept no more.
const MAX_ENCODED: usize = 60_000;

/// A program that copies its input, with its arguments.
type Program = (&'static str, &'static [&'static str]);

/// The clipboard programs, each with the variable that its desktop sets.
const PROGRAMS: [(Program, Option<&str>); 5] = [
    (("wl-copy", &[]), Some("WAYLAND_DISPLAY")),
    (("xclip", &["-selection", "clipboard"]), Some("DISPLAY")),
    (("xsel", &["--clipboard", "--input"]), Some("DISPLAY")),
    (("pbcopy", &[]), None),
    (("clip.exe", &[]), None),
];

/// Copies a text, and returns a message that says what was done.
pub fn copy(text: &str, programs: &BTreeMap<String, PathBuf>, cx: &Cx) -> String {
    let is_set = |name: &str| env::everything().any(|(variable, value)| variable == name && !value.is_empty());
    let program = find_program(|name| programs.contains_key(name), is_set);
    let by_program = program.and_then(|(name, args)| {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let is_copied = exec::hand_over(programs.get(name)?, &args, text.as_bytes(), COPY_TIMEOUT);
        is_copied.unwrap_or(false).then_some(name)
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

/// Finds the first program that is installed and whose desktop runs.
fn find_program(is_installed: impl Fn(&str) -> bool, is_set: impl Fn(&str) -> bool) -> Option<Program> {
    let is_usable = |(program, needs): &&(Program, Option<&str>)| is_installed(program.0) && needs.is_none_or(&is_set);
    PROGRAMS.iter().find(is_usable).map(|(program, _)| *program)
}

/// Returns the terminal sequence that copies a text (OSC 52); `None` if the text is too long.
fn sequence(text: &str) -> Option<String> {
    let encoded = STANDARD.encode(text);
    if encoded.len() > MAX_ENCODED {
        return None;
    }
    Some(format!("\x1b]52;c;{encoded}\x07"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_program_of_the_running_desktop_is_found() {
        let choose = |here: &[&str], set: &[&str]| {
            find_program(|name| here.contains(&name), |name| set.contains(&name)).map(|(name, _)| name)
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
    fn a_text_is_encoded_for_the_terminal() {
        assert_eq!(sequence("ls \u{1b}]\u{7}é").unwrap(), "\x1b]52;c;bHMgG10Hw6k=\x07");
        assert_eq!(sequence(&"x".repeat(MAX_ENCODED)), None);
    }
}
