//! Finds commands that respect case for "ignoring case", and commands that ignore it for "in capitals".

use super::CheckContext;
use super::edit::{Edits, is_cluster, warning, without_letter};
use super::words::{Words, is_in, without_punctuation};
use caro_shell::{Finding, Invocation, Userland};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    respects_case(cx).or_else(|| ignores_case(cx)).or_else(|| wrong_case(cx))
}

/// `grep -i ERROR` for "ERROR in capitals".
fn ignores_case(cx: &CheckContext) -> Option<Finding> {
    const PHRASES: &str = "in capitals|in capital letters|case sensitive|case sensitively|exactly this spelling|\
        exact case|respecting case|matching case";
    let words = Words::of(cx.request);
    if !words.contains_phrase(PHRASES) || words.has_negation() {
        return None;
    }
    let ignores =
        |c: &Invocation| c.name() == Some("grep") && c.option(Some('i'), "ignore-case").is_some_and(is_cluster);
    let greps: Vec<&Invocation> = cx.script.commands.iter().filter(|c| ignores(c)).collect();
    let word = greps.first()?.option(Some('i'), "ignore-case")?;
    let flags = greps.iter().filter_map(|c| c.option(Some('i'), "ignore-case"));
    let edits = flags.fold(Edits::new(cx.script), |edits, flag| edits.replace(flag, &without_letter(&flag.raw, 'i')));
    let fix = edits.apply();
    Some(warning("letter-case", word, "upper and lower case are to differ, and to grep -i they do not", fix))
}

/// `grep todo` for "files that contain TODO".
fn wrong_case(cx: &CheckContext) -> Option<Finding> {
    // only a word after these is a search text: "TCP connections" are `tcp` to netstat
    const BEFORE: &str = "contain contains containing for word string text mention mentioning";
    let words: Vec<&str> = cx.request.split_whitespace().map(without_punctuation).collect();
    let is_capital = |w: &str| w.len() > 2 && w.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let mut searched = words.windows(2).filter(|w| is_in(BEFORE, w[0]) && is_capital(w[1])).map(|w| w[1]);
    let mut greps = cx.script.commands.iter().filter(|c| matches!(c.name(), Some("grep" | "egrep" | "fgrep" | "rg")));
    let (pattern, word) = greps.find_map(|grep| {
        if ignores(grep) || grep.stdin_pipe || grep.option(Some('e'), "regexp").is_some() {
            return None;
        }
        let pattern = grep.operands().next()?;
        let word = searched.find(|w| pattern.value.as_deref() == Some(w.to_lowercase().as_str()))?;
        Some((pattern, word))
    })?;
    let fix = Edits::new(cx.script).replace(pattern, &pattern.raw.replace(&word.to_lowercase(), word)).apply();
    Some(warning("letter-case", pattern, format!("the request says {word}, in capitals"), fix))
}

/// `grep error` for "ignoring case".
fn respects_case(cx: &CheckContext) -> Option<Finding> {
    const PHRASES: &str = "any case|any letter case|regardless of upper|upper or lower case|case insensitive|\
        case insensitively|ignoring case|ignore case|ignoring the case|regardless of case|regardless of the case|\
        irrespective of case|no matter the case|whatever the case|in any case mix|case does not matter";
    const ELSEWHERE: &str = "tr awk gawk mawk perl python3 shopt";
    let words = Words::of(cx.request);
    // "in any case" often means "anyway"
    let is_unclear = words.contains_phrase("not case insensitive|not ignoring case|not ignore case|in any case");
    if !words.contains_phrase(PHRASES) || is_unclear && !words.contains_phrase("in any case mix") {
        return None;
    }
    let commands = &cx.script.commands;
    // an awk program without patterns and strings compares no letters
    let only_calculates =
        |c: &Invocation| c.name() == Some("awk") && !c.args().iter().any(|w| w.text.contains(['/', '"', '~', '(']));
    if commands.iter().any(|c| c.name().is_none_or(|n| is_in(ELSEWHERE, n) && !only_calculates(c)) || ignores(c)) {
        return None;
    }
    let comparing: Vec<&Invocation> = commands.iter().filter(|c| can_ignore(c, cx)).collect();
    let edits = Edits::new(cx.script);
    let program = comparing.first()?.words.first()?;
    let edits = match comparing.as_slice() {
        [one] => match one.name()? {
            "grep" | "egrep" | "fgrep" | "zgrep" | "rg" => edits.insert_after(program, " -i"),
            "sort" => edits.insert_after(program, " -f"),
            "uniq" => edits.insert_after(program, " -i"),
            "find" => one.args().iter().fold(edits, |edits, w| match w.text.as_str() {
                "-name" => edits.replace(w, "-iname"),
                "-path" => edits.replace(w, "-ipath"),
                _ => edits,
            }),
            "sed" => {
                let script = one.args().iter().find(|w| is_substitution(&w.text))?;
                let quote = script.raw.chars().last().filter(|c| matches!(c, '\'' | '"'))?;
                edits.replace(script, &format!("{}I{quote}", script.raw.strip_suffix(quote)?))
            }
            _ => return None,
        },
        // `sort` makes the lines adjacent that `uniq` then merges
        several if several.iter().all(|c| matches!(c.name(), Some("sort" | "uniq"))) => several
            .iter()
            .filter_map(|c| Some((c.name()?, c.words.first()?)))
            .fold(edits, |edits, (name, word)| edits.insert_after(word, if name == "sort" { " -f" } else { " -i" })),
        _ => return None,
    };
    let names: Vec<&str> = comparing.iter().filter_map(|c| c.name()).collect();
    Some(warning(
        "letter-case",
        program,
        format!("upper and lower case are not to differ, and to {} they do", names.join(" and ")),
        edits.apply(),
    ))
}

/// True for a program that respects case by default and has an option to ignore it.
fn can_ignore(command: &Invocation, cx: &CheckContext) -> bool {
    match command.name() {
        Some("grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "sort" | "uniq") => true,
        Some("find") => command.args().iter().any(|w| matches!(w.text.as_str(), "-name" | "-path")),
        Some("sed") => cx.target.userland != Userland::Bsd && command.args().iter().any(|w| is_substitution(&w.text)),
        _ => false,
    }
}

/// True if the command already ignores case.
fn ignores(command: &Invocation) -> bool {
    let letter = |letters: &[char]| {
        command.args().iter().any(|w| w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(letters))
            || command.args().iter().any(|w| w.text.starts_with("--ignore") || w.text.starts_with("--smart"))
    };
    match command.name() {
        Some("grep" | "egrep" | "fgrep" | "zgrep") => {
            letter(&['i', 'y']) || command.args().iter().any(|w| w.text.contains("(?i)"))
        }
        Some("rg") => letter(&['i', 'S']) || command.args().iter().any(|w| w.text.contains("(?i)")),
        Some("sort") => letter(&['f', 'n', 'h']),
        Some("uniq") => letter(&['i']),
        Some("find") => command.args().iter().any(|w| matches!(w.text.as_str(), "-iname" | "-ipath" | "-iregex")),
        Some("sed") => command.args().iter().any(|w| w.text.ends_with(['I', 'i']) && w.text.len() > 3),
        _ => false,
    }
}

/// True for `s/old/new/` with no flags but `g`.
fn is_substitution(text: &str) -> bool {
    let Some(delimiter) = text.strip_prefix('s').and_then(|t| t.chars().next()).filter(char::is_ascii_punctuation)
    else {
        return false;
    };
    let parts: Vec<&str> = text.split(delimiter).collect();
    parts.len() == 4 && parts[0] == "s" && matches!(parts[3], "" | "g") && !text.contains('\\')
}
