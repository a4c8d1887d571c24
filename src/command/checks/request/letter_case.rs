//! "Ignoring case", and no option for it; "in capitals", and an option that ignores case.

use super::CheckContext;
use super::edit::{Edits, is_cluster, warning, without};
use super::words::{Words, bare};
use caro_shell::{Finding, Invocation, Userland};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).or_else(|| exact(it)).or_else(|| lowered(it)).into_iter().collect()
}

/// `grep -i ERROR` for "ERROR in capitals".
fn exact(it: &CheckContext) -> Option<Finding> {
    const SAID: [&str; 8] = [
        "in capitals",
        "in capital letters",
        "case sensitive",
        "case sensitively",
        "exactly this spelling",
        "exact case",
        "respecting case",
        "matching case",
    ];
    let words = Words::of(it.request);
    let ignoring =
        |c: &Invocation| c.name() == Some("grep") && c.option(Some('i'), "ignore-case").is_some_and(is_cluster);
    let greps: Vec<&Invocation> = it.script.commands.iter().filter(|c| ignoring(c)).collect();
    let found = greps.first().filter(|_| words.contains_phrase(&SAID) && !words.has_negation())?;
    let word = found.option(Some('i'), "ignore-case")?;
    let flags = greps.iter().filter_map(|c| c.option(Some('i'), "ignore-case"));
    let fix = flags.fold(Edits::new(it.script), |edits, flag| edits.replace(flag, &without(&flag.raw, 'i'))).done();
    Some(warning("letter-case", word, "upper and lower case are to differ, and to grep -i they do not", fix))
}

/// `grep todo` for "files that contain TODO": a word that was written in capitals.
fn lowered(it: &CheckContext) -> Option<Finding> {
    // what is only spoken of may be written otherwise there: "TCP connections" are `tcp` to netstat
    const BEFORE: [&str; 9] =
        ["contain", "contains", "containing", "for", "word", "string", "text", "mention", "mentioning"];
    let words: Vec<&str> = it.request.split_whitespace().map(bare).collect();
    let capitals = |w: &str| w.len() > 2 && w.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let mut said = words.windows(2).filter(|w| BEFORE.contains(&w[0]) && capitals(w[1])).map(|w| w[1]);
    let mut greps = it.script.commands.iter().filter(|c| matches!(c.name(), Some("grep" | "egrep" | "fgrep" | "rg")));
    let (pattern, word) = greps.find_map(|grep| {
        let plain = !ignores(grep) && !grep.stdin_pipe && grep.option(Some('e'), "regexp").is_none();
        let pattern = grep.operands().next().filter(|_| plain)?;
        let word = said.find(|w| pattern.value.as_deref() == Some(w.to_lowercase().as_str()))?;
        Some((pattern, word))
    })?;
    let fix = Edits::new(it.script).replace(pattern, &pattern.raw.replace(&word.to_lowercase(), word)).done();
    Some(warning("letter-case", pattern, format!("the request says {word}, in capitals"), fix))
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    const SAID: [&str; 16] = [
        "any case",
        "any letter case",
        "regardless of upper",
        "upper or lower case",
        "case insensitive",
        "case insensitively",
        "ignoring case",
        "ignore case",
        "ignoring the case",
        "regardless of case",
        "regardless of the case",
        "irrespective of case",
        "no matter the case",
        "whatever the case",
        "in any case mix",
        "case does not matter",
    ];
    const ELSEWHERE: [&str; 7] = ["tr", "awk", "gawk", "mawk", "perl", "python3", "shopt"];
    let words = Words::of(it.request);
    // "in any case" is "anyway" as often
    let denied =
        words.contains_phrase(&["not case insensitive", "not ignoring case", "not ignore case", "in any case"]);
    if !words.contains_phrase(&SAID) || denied && !words.contains_phrase(&["in any case mix"]) {
        return None;
    }
    let commands = &it.script.commands;
    // who only adds up numbers compares no letters
    let adds =
        |c: &Invocation| c.name() == Some("awk") && !c.args().iter().any(|w| w.text.contains(['/', '"', '~', '(']));
    if commands.iter().any(|c| c.name().is_none_or(|n| ELSEWHERE.contains(&n) && !adds(c)) || ignores(c)) {
        return None;
    }
    let able: Vec<&Invocation> = commands.iter().filter(|c| can_ignore(c, it)).collect();
    let edits = Edits::new(it.script);
    let program = able.first()?.words.first()?;
    let fix = match able.as_slice() {
        [one] => match one.name()? {
            "grep" | "egrep" | "fgrep" | "zgrep" | "rg" => edits.after(program, " -i"),
            "sort" => edits.after(program, " -f"),
            "uniq" => edits.after(program, " -i"),
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
        // what sort puts together, uniq finds together
        several if several.iter().all(|c| matches!(c.name(), Some("sort" | "uniq"))) => several
            .iter()
            .filter_map(|c| Some((c.name()?, c.words.first()?)))
            .fold(edits, |edits, (name, word)| edits.after(word, if name == "sort" { " -f" } else { " -i" })),
        _ => return None,
    };
    let names: Vec<&str> = able.iter().filter_map(|c| c.name()).collect();
    Some(warning(
        "letter-case",
        program,
        format!("upper and lower case are not to differ, and to {} they do", names.join(" and ")),
        fix.done(),
    ))
}

/// True for a program that tells upper from lower case here, and has an option not to.
fn can_ignore(command: &Invocation, it: &CheckContext) -> bool {
    match command.name() {
        Some("grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "sort" | "uniq") => true,
        Some("find") => command.args().iter().any(|w| matches!(w.text.as_str(), "-name" | "-path")),
        Some("sed") => it.target.userland != Userland::Bsd && command.args().iter().any(|w| is_substitution(&w.text)),
        _ => false,
    }
}

/// True if it has the option already.
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
