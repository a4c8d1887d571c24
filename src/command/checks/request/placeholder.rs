//! Finds placeholders in place of values that the request does not give, such as `--author="yourname"`.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::is_in;
use caro_shell::Finding;

/// Placeholders of manuals and answers, in lower case without separators.
const PLACEHOLDERS: &str = "yourname yourusername youruser yourpassword youremail yourfile yourfilename yourdirectory \
    yourhost yourhostname yourserver yourdomain yourprocess authorname filename foldername directoryname dirname \
    username hostname processname servicename pathtofile pathtodirectory pathtofolder pathtodir somefile \
    somedirectory placeholder";

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let request = plain(cx.request);
    // the operands of these are names of programs, such as `hostname`
    let takes_programs = |name: &str| matches!(name, "man" | "which" | "type" | "whatis" | "tldr" | "info" | "command");
    let commands = cx.script.commands.iter().filter(|c| !c.name().is_some_and(takes_programs));
    let is_search = |name: &str| matches!(name, "grep" | "egrep" | "fgrep" | "rg" | "sed" | "awk" | "gawk" | "mawk");
    let args = commands.flat_map(|c| c.args().iter().map(move |word| (word, c.name().is_some_and(is_search))));
    let found = args.filter(|(w, _)| w.value.is_some()).filter_map(|(word, searches)| {
        // the value of an option, or the word itself; the name of an option is no placeholder
        let value = match word.text.rsplit_once('=') {
            Some((_, value)) => value,
            None if word.text.starts_with('-') => return None,
            None => word.text.as_str(),
        };
        // a search text may be in brackets: `<none>`, `<defunct>`, `<tr>`
        let is_bracketed = !searches && value.len() > 2 && value.starts_with('<') && value.ends_with('>');
        let text = plain(value);
        // `user.name` and `user,name` are keys and columns
        let is_one_name = value.starts_with("Your ")
            || value.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '<' | '>' | '\'' | '"'));
        let is_placeholder = is_in(PLACEHOLDERS, &text) && is_one_name;
        // a word of the request is meant literally
        if !(is_bracketed || is_placeholder) || request.contains(&text) {
            return None;
        }
        const WHY: &str = "this only stands for a name that nobody gave: leave it out, or print that name instead";
        // an option whose value it is can be left out (`--author=NAME`)
        let is_option = word.raw.starts_with("--");
        let fix = if is_option { Edits::new(cx.script).replace(word, "").apply() } else { None };
        Some(warning("placeholder", word, WHY, fix))
    });
    found.collect()
}

/// Returns the letters and digits of a text, in lower case.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
