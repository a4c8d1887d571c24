//! Finds missing quotes, and quotes that keep the shell from an expansion that is needed.

use super::super::{absent, torn};
use super::CheckContext;
use super::edit::{Edits, warning, warning_about};
use super::words::is_in;
use caro_shell::{Dialect, Finding, Invocation, Word, quote};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let of = |c| pattern(cx, c).or_else(|| quoted_home(cx, c)).or_else(|| escape(cx, c));
    let torn = unquoted_name(cx).or_else(|| existing_name(cx)).or_else(|| new_name(cx));
    cx.script.commands.iter().filter_map(of).chain(torn).collect()
}

/// `cp -a My Files /tmp`, where the folder `My Files` is here.
fn existing_name(cx: &CheckContext) -> Option<Finding> {
    if cx.script.commands.iter().any(absent::changes_folder) {
        return None;
    }
    let cwd = cx.cwd?;
    // other builtins take words rather than files
    let takes_files = |c: &&Invocation| c.via.is_empty() && !c.remote && !c.is_builtin(cx.dialect);
    let exists = |name: &str| cwd.join(name).symlink_metadata().is_ok();
    cx.script.commands.iter().filter(takes_files).find_map(|command| {
        let (words, name) = torn::existing_name(cx.script, command, exists)?;
        Some(torn_name(cx, words, &name))
    })
}

/// `mv a.bin my file.bin` and `echo x > my file.txt` for names that stand so in the request: the first fails, as
/// `file.bin` is no folder, and the second writes to `my`.
fn new_name(cx: &CheckContext) -> Option<Finding> {
    let stands = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || "_-/.".contains(c);
        cx.request.match_indices(name).any(|(at, _)| {
            let after = &cx.request[at + name.len()..];
            !cx.request[..at].ends_with(is_part) && !after.trim_start_matches('.').starts_with(is_part)
        })
    };
    let is_absent = |name: &str| cx.cwd.is_some_and(|cwd| matches!(cwd.join(name).try_exists(), Ok(false)));
    cx.script.commands.iter().filter(|c| c.via.is_empty() && !c.remote).find_map(|command| {
        let operands: Vec<&Word> = command.operands().collect();
        let last = *operands.last()?;
        if matches!(command.name(), Some("mv" | "cp")) && operands.len() > 2 && is_absent(&last.text) {
            let (words, name) = torn::joined_name(cx.script, command, |words, name| {
                words.last().is_some_and(|word| word.span == last.span)
                    && words.iter().all(|word| is_absent(&word.text) && !word.text.starts_with('-'))
                    && stands(name)
            })?;
            return Some(torn_name(cx, words, &name));
        }
        let target = command.redirects.iter().find(|r| r.writes() && r.target.value.is_some())?.target.clone();
        let next = command.args().iter().find(|word| word.span.start > target.span.end)?.clone();
        let name = cx.script.text.get(target.span.start..next.span.end)?;
        let is_plain = !target.quoted && !next.quoted && next.value.is_some() && !name.contains(['>', '<', '|']);
        (is_plain && stands(name)).then(|| torn_name(cx, &[target.clone(), next.clone()], name))
    })
}

/// The finding that a name is torn into words.
fn torn_name(cx: &CheckContext, words: &[Word], name: &str) -> Finding {
    let fix = Edits::new(cx.script).replace_span(words, &quote(name, cx.dialect)).apply();
    let why = format!("without quotes `{name}` is {} names to the shell", words.len());
    Finding { token: name.to_owned(), ..warning("torn-name", &words[0], why, fix) }
}

/// `mv old name.txt new.txt` for a file that the request calls "old name.txt", and `for f in My Photos/*` for an
/// existing folder.
fn unquoted_name(cx: &CheckContext) -> Option<Finding> {
    let is_here = |name: &str| cx.cwd.is_some_and(|cwd| cwd.join(name).exists());
    let mut names = quoted(cx.request).filter(|name| name.contains(' ') && (name.contains('.') || is_here(name)));
    let (name, at) = names.find_map(|name| Some((name, unquoted_at(&cx.script.text, name)?)))?;
    let (mut fix, span) = (cx.script.text.clone(), at..at + name.len());
    fix.replace_range(span.clone(), &quote(name, cx.dialect));
    let why = format!("without quotes `{name}` is {} names to the shell", name.split(' ').count());
    Some(warning_about("torn-name", name, Some(span), why, Some(fix)))
}

/// Returns the byte offset at which a name occurs as whole words, outside of quotes.
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

/// Returns the quoted texts of a request.
fn quoted(request: &str) -> impl Iterator<Item = &str> {
    ['"', '\'', '`'].into_iter().flat_map(|mark| request.split(mark).skip(1).step_by(2))
}

/// `find -name *.txt`, `zip -d a.zip *.tmp`: the shell replaces the pattern by the names in this folder.
fn pattern(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    const BEFORE: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex";
    let (id, word, why) = match command.name()? {
        "find" => {
            let pair = command.words.windows(2).find(|w| is_in(BEFORE, &w[0].text) && w[1].glob)?;
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
    let is_plain = !word.quoted && !word.expands && !word.raw.contains('\'');
    let quoted = format!("'{}'", word.raw);
    let fix = if is_plain { Edits::new(cx.script).replace(word, &quoted).apply() } else { None };
    Some(warning(id, word, why, fix))
}

/// `ls '~/x'` and `cd '$HOME'`: names that only the shell can expand.
fn quoted_home(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    const TAKE_FILES: &str = "ls cd cat cp mv mkdir du tar rm touch less find stat chmod tree wc";
    if !command.name().is_some_and(|n| is_in(TAKE_FILES, n)) {
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
    let is_plain = !rest.contains(['$', '`', '"', '\\', '*', '?', '[']);
    let slash = if text.contains('/') { "/" } else { "" };
    let quoted = format!("\"{home}{slash}{rest}\"");
    let fix = if is_plain { Edits::new(cx.script).replace(word, &quoted).apply() } else { None };
    Some(warning("quoted-home", word, "in these quotes the shell does not put in the home folder", fix))
}

/// `tr -d \r` deletes every `r`, and `touch a\r` creates the file `ar`.
fn escape(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    // an argument that is passed on is read by another shell, or by a program with its own rules
    if !command.via.is_empty() || command.remote || !matches!(cx.dialect, Dialect::Bash | Dialect::Zsh) {
        return None;
    }
    let word = command.args().iter().find(|w| is_unquoted_escape(&w.raw))?;
    // some programs interpret the escape themselves; for the others the shell has to
    let quoted = match command.name()? {
        "tr" | "printf" | "awk" | "sed" | "paste" => format!("'{}'", word.raw),
        _ => format!("$'{}'", word.raw),
    };
    let fix = Edits::new(cx.script).replace(word, &quoted).apply();
    let letter = word.raw.split('\\').nth(1)?.chars().next()?;
    let why = format!("without quotes the shell makes \\{letter} the letter {letter}");
    Some(warning("bare-escape", word, why, fix))
}

/// True for a word without quotes that contains `\r`, `\n` or `\t`.
fn is_unquoted_escape(raw: &str) -> bool {
    let mut parts = raw.split('\\');
    let is_plain = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    let is_first_plain = parts.next().is_some_and(|first| first.chars().all(is_plain));
    let mut rest = parts.peekable();
    // `a\names` is a path of another system, not a line break
    rest.peek().is_some() && is_first_plain && rest.all(|part| matches!(part, "r" | "n" | "t"))
}
