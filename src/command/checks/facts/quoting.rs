//! Quotes that are missing, and quotes that keep the shell from expanding what it must.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Dialect, Finding, Invocation, Severity, quote};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let of = |c| pattern(it, c).or_else(|| kept(it, c)).or_else(|| escape(it, c));
    it.script.commands.iter().filter_map(of).chain(torn(it)).collect()
}

/// `mv old name.txt new.txt` for a file that the person calls "old name.txt", and `for f in My Photos/*` for a folder
/// that is here.
fn torn(it: &CheckContext) -> Option<Finding> {
    let is_here = |name: &str| it.cwd.is_some_and(|cwd| cwd.join(name).exists());
    let mut names = quoted(it.request).filter(|name| name.contains(' ') && (name.contains('.') || is_here(name)));
    let (name, at) = names.find_map(|name| Some((name, unquoted_at(&it.script.text, name)?)))?;
    let (mut fix, span) = (it.script.text.clone(), at..at + name.len());
    fix.replace_range(span.clone(), &quote(name, it.dialect));
    Some(Finding {
        id: "torn-name".into(),
        severity: Severity::Warning,
        token: name.to_owned(),
        span: Some(span),
        why: format!("without quotes `{name}` is {} names to the shell", name.split(' ').count()),
        evidence: Vec::new(),
        fix: Some(fix),
    })
}

/// Where a name stands as words of their own, outside of quotes.
fn unquoted_at(text: &str, name: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => {
                let begins =
                    text[..at].ends_with(|c: char| c.is_whitespace() || c == '=') && text[at..].starts_with(name);
                let after = text.get(at + name.len()..).unwrap_or_default();
                if begins && (after.is_empty() || after.starts_with([' ', '/', ';', ')', '|', '>'])) {
                    return Some(at);
                }
            }
        }
    }
    None
}

/// What stands in quotes in a request.
fn quoted(request: &str) -> impl Iterator<Item = &str> {
    ['"', '\'', '`'].into_iter().flat_map(|mark| request.split(mark).skip(1).step_by(2))
}

/// `find -name *.txt`, `zip -d a.zip *.tmp`: the shell replaces the pattern by the names in this folder.
fn pattern(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    const BEFORE: [&str; 8] = ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"];
    let (id, word, why) = match command.name()? {
        "find" => {
            let pair = command.words.windows(2).find(|w| BEFORE.contains(&w[0].text.as_str()) && w[1].glob)?;
            let why = format!("quote the pattern after {}, or the shell expands it first", pair[0].text);
            ("find-name-unquoted", &pair[1], why)
        }
        "zip" if !command.has_option(Some('d'), "delete") => return None,
        name @ ("unzip" | "zip") => {
            let entry = command.operands().skip(1).find(|w| w.glob && !w.raw.contains('/'))?;
            (
                "entry-unquoted",
                entry,
                format!("quote the pattern, for {name} itself is to compare it with what the archive holds"),
            )
        }
        _ => return None,
    };
    let plain = !word.quoted && !word.expands && !word.raw.contains('\'');
    let fix = plain.then(|| Edits::new(it.script).replace(word, &format!("'{}'", word.raw)).done()).flatten();
    Some(warning(id, word, why, fix))
}

/// `ls '~/x'` and `cd '$HOME'`: names that only the shell can turn into the ones meant.
fn kept(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    const TAKE_FILES: [&str; 16] = [
        "ls", "cd", "cat", "cp", "mv", "mkdir", "du", "tar", "rm", "touch", "less", "find", "stat", "chmod", "tree",
        "wc",
    ];
    if !command.name().is_some_and(|n| TAKE_FILES.contains(&n)) {
        return None;
    }
    let word = command.args().iter().find(|w| {
        let value = w.value.as_deref().unwrap_or_default();
        w.quoted
            && !w.raw.starts_with('\\')
            && !w.raw.contains('\\')
            && (value.starts_with("~/") || w.raw.starts_with('\'') && (value == "$HOME" || value.starts_with("$HOME/")))
    })?;
    let text = word.value.as_deref()?;
    let (home, rest) = text.split_once('/').map_or((text, ""), |(h, r)| (h, r));
    let home = if home == "~" { "$HOME" } else { home };
    let plain = !rest.contains(['$', '`', '"', '\\', '*', '?', '[']);
    let slash = if text.contains('/') { "/" } else { "" };
    let fix = plain.then(|| Edits::new(it.script).replace(word, &format!("\"{home}{slash}{rest}\"")).done()).flatten();
    Some(warning("quoted-home", word, "in these quotes the shell does not put in the home folder", fix))
}

/// `tr -d \r` deletes every r, and `touch a\r` makes the file `ar`.
fn escape(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    // what is handed on is read by another shell, or by a program with its own rules
    if !command.via.is_empty() || command.remote || !matches!(it.dialect, Dialect::Bash | Dialect::Zsh) {
        return None;
    }
    let word = command.args().iter().find(|w| is_bare(&w.raw))?;
    // some read the escape themselves; to the others the shell has to give the character
    let quoted = match command.name()? {
        "tr" | "printf" | "awk" | "sed" | "paste" => format!("'{}'", word.raw),
        _ => format!("$'{}'", word.raw),
    };
    let fix = Edits::new(it.script).replace(word, &quoted).done();
    let letter = word.raw.split('\\').nth(1)?.chars().next()?;
    let why = format!("without quotes the shell makes \\{letter} the letter {letter}");
    Some(warning("bare-escape", word, why, fix))
}

/// True for a word without quotes that has `\r`, `\n` or `\t` in it, or is one.
fn is_bare(raw: &str) -> bool {
    let mut parts = raw.split('\\');
    let plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let first = parts.next().is_some_and(|first| first.chars().all(plain));
    let mut rest = parts.peekable();
    // `a\names` is a name in another system, not a line break
    rest.peek().is_some() && first && rest.all(|part| matches!(part, "r" | "n" | "t"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::check;

    #[test]
    fn a_folder_with_a_blank_in_its_name_is_quoted_in_a_loop_too() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("My Photos")).unwrap();
        let fix = |request: &str, command: &str| {
            super::super::tests::findings_in(Some(here.path()), check, request, command).into_iter().find_map(|f| f.fix)
        };
        let asked = "replace all spaces in file names in \"My Photos\"";
        let wrong = "for f in My Photos/*' '*; do echo \"$f\"; done";
        assert_eq!(fix(asked, wrong).as_deref(), Some("for f in 'My Photos'/*' '*; do echo \"$f\"; done"));
        for (request, right) in [
            (asked, "for f in 'My Photos'/*; do echo \"$f\"; done"),
            (asked, "ls \"My Photos\""),
            (asked, "ls My\\ Photos"),
            ("list \"No Photos\"", "ls No Photos/*"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }

    #[test]
    fn a_name_with_a_blank_stays_one_name() {
        let fixed = |request, command| findings(check, request, command).first().and_then(|f| f.fix.clone());
        let request = "rename the file \"budget 2024.csv\" to budget.csv";
        assert_eq!(fixed(request, "mv budget 2024.csv budget.csv").as_deref(), Some("mv 'budget 2024.csv' budget.csv"));
        assert_eq!(fixed(request, "mv 'budget 2024.csv' budget.csv"), None);
        assert_eq!(fixed("print \"a b.\" with echo; it's fine", "echo a b"), None);
    }

    #[test]
    fn who_compares_a_pattern_gets_it_whole() {
        let fixed = |command| findings(check, "", command).first().and_then(|f| f.fix.clone());
        for (wrong, right) in [
            ("find . -name *.txt", "find . -name '*.txt'"),
            ("zip -qd a.zip *.tmp", "zip -qd a.zip '*.tmp'"),
            ("unzip a.zip *.pdf -d out", "unzip a.zip '*.pdf' -d out"),
        ] {
            assert_eq!(fixed(wrong).as_deref(), Some(right));
            assert_eq!(fixed(right), None);
        }
        for right in ["zip a.zip *.txt", "zip -r a.zip d/*", "unzip *.zip", "unzip a.zip"] {
            assert_eq!(fixed(right), None, "{right}");
        }
    }

    #[test]
    fn an_escape_needs_quotes() {
        let fixed = |command| findings(check, "", command).first().and_then(|f| f.fix.clone());
        for (wrong, right) in [
            ("tr -d \\r < a", "tr -d '\\r' < a"),
            ("touch a/Icon\\r", "touch $'a/Icon\\r'"),
            ("cut -f2 -d \\t a", "cut -f2 -d $'\\t' a"),
            ("tr '\\n' \\t < a", "tr '\\n' '\\t' < a"),
        ] {
            assert_eq!(fixed(wrong).as_deref(), Some(right));
            assert_eq!(fixed(right), None);
        }
        for right in ["find . -name a \\; -o -name b", "ls a\\ b", "echo C:\\new", "\\rm a", "grep a\\nb c"] {
            assert_eq!(fixed(right), None, "{right}");
        }
    }
}
