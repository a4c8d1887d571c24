//! Explains a command in one line: its programs and options, in the words of the installed manuals. Uses no model.
//! Clauses that do not fit are left out whole.

use caro_manual::{Entry, OptionEntry};
use caro_shell::{Invocation, Script};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most characters of the line.
pub const MAX_LINE: usize = 150;
/// Most characters of a clause. The manuals' texts are cut at twice this.
const MAX_CLAUSE: usize = 100;
/// Most characters of an argument that is shown with its option.
const MAX_VALUE: usize = 24;

/// A program of the command, with explanations of its options.
struct Part {
    name: String,
    title: String,
    /// Explanations of the options, those with an argument first, as they are more specific to this command.
    options: Vec<String>,
    /// The number of options that are shown.
    shown: usize,
}

impl Part {
    fn text(&self) -> String {
        let head = format!("{}: {}", self.name, self.title);
        if self.shown == 0 { head } else { format!("{head} ({})", self.options[..self.shown].join("; ")) }
    }
}

/// `ps: report a snapshot of the current processes; head: output the first part of files (-n 5: print the first 5
/// lines)`.
///
/// First come the programs that have a title, in order, as far as they fit, then their options, one of each program
/// in turn. Empty without manuals.
pub fn line(script: &Script, manuals: &BTreeMap<String, Arc<Entry>>) -> String {
    let mut parts: Vec<Part> = Vec::new();
    for command in script.commands.iter().filter(|c| !c.remote) {
        let Some(part) = part(command, manuals) else { continue };
        match parts.iter_mut().find(|known| known.name == part.name) {
            Some(known) => {
                let new: Vec<String> = part.options.into_iter().filter(|o| !known.options.contains(o)).collect();
                known.options.extend(new);
            }
            None => {
                parts.push(part);
                if length(&parts) > MAX_LINE {
                    parts.pop();
                }
            }
        }
    }
    let most = parts.iter().map(|part| part.options.len()).max().unwrap_or_default();
    for _ in 0..most {
        for at in 0..parts.len() {
            fit_option(&mut parts, at);
        }
    }
    join(&parts)
}

/// Shows one more option of a program: the next that fits into the line. Options that do not fit are dropped.
fn fit_option(parts: &mut [Part], at: usize) {
    if parts[at].options.len() <= parts[at].shown {
        return;
    }
    parts[at].shown += 1;
    while length(parts) > MAX_LINE {
        let part = &mut parts[at];
        part.options.remove(part.shown - 1);
        if part.options.len() < part.shown {
            part.shown -= 1;
            return;
        }
    }
}

fn join(parts: &[Part]) -> String {
    parts.iter().map(Part::text).collect::<Vec<_>>().join("; ")
}

fn length(parts: &[Part]) -> usize {
    join(parts).chars().count()
}

/// Describes one invocation from the manuals; `None` if its program has no title.
fn part(command: &Invocation, manuals: &BTreeMap<String, Arc<Entry>>) -> Option<Part> {
    let name = command.name()?;
    let whole = manuals.get(name)?;
    let words: Vec<&str> = command.args().iter().map(|w| w.text.as_str()).collect();
    let sub = whole.subcommand_at(&words).and_then(|at| Some((at + 1, manuals.get(&format!("{name} {}", words[at]))?)));
    let (skip, entry) = sub.unwrap_or((0, whole));
    let name = if skip > 0 { entry.command.clone() } else { name.to_owned() };
    let title = clause(&entry.title)?;
    let words = &words[skip..];
    let (mut valued, mut plain) = (Vec::new(), Vec::new());
    for found in entry.read_args(words) {
        let Some(effect) = found.option.and_then(|option| phrase(option, found.value.as_deref())) else { continue };
        let value = found.value.as_deref().filter(|value| is_short(value));
        let joint = match words.get(found.word) {
            Some(word) if word.starts_with(&format!("{}=", found.flag)) => "=",
            _ if found.flag.ends_with('=') => "",
            _ => " ",
        };
        match value {
            Some(value) => valued.push((Reverse(value.len()), format!("{}{joint}{value}: {effect}", found.flag))),
            None => plain.push(format!("{}: {effect}", found.flag)),
        }
    }
    // the longest value says most about this command: `-size +1024k` more than `-type f`
    valued.sort_by_key(|(length, _)| *length);
    let options = valued.into_iter().map(|(_, text)| text).chain(plain).collect();
    Some(Part { name, title, options, shown: 0 })
}

/// Describes the effect of an option in a clause, with the argument's value in place of its name.
fn phrase(option: &OptionEntry, value: Option<&str>) -> Option<String> {
    const CONDITIONS: [&str; 4] = ["if ", "when ", "see ", "same as "];
    let text = clause(&option.text_for(value))?;
    if CONDITIONS.iter().any(|word| text.to_lowercase().starts_with(word)) {
        return None;
    }
    let name = option.argument.as_deref().map(|argument| argument.trim_matches(|c: char| !c.is_alphanumeric()));
    // NUM and `c` are placeholders, while `date` is a word of the sentence ("more recent than a specific date")
    let is_placeholder = |name: &str| name.len() == 1 || !name.is_empty() && name == name.to_uppercase();
    // `-7` in place of `n` in "n*24 hours" would read as a sum
    let is_plain = |value: &&str| is_short(value) && value.starts_with(char::is_alphanumeric);
    match (name, value.filter(is_plain)) {
        (Some(name), Some(value)) if is_placeholder(name) => Some(with_argument(&text, name, value)),
        _ => Some(text),
    }
}

/// True for a value that is short enough, and free of the signs that separate clauses.
fn is_short(value: &str) -> bool {
    value.chars().count() <= MAX_VALUE && !value.contains(['\n', ';', '(', ')'])
}

/// Replaces the first whole word of a text that is the argument's name with the value.
fn with_argument(text: &str, name: &str, value: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "*-_=/".contains(c);
    let is_whole = |at: &usize| !text[..*at].ends_with(is_part) && !text[*at + name.len()..].starts_with(is_part);
    match text.match_indices(name).map(|(at, _)| at).find(is_whole) {
        Some(at) => format!("{}{value}{}", &text[..at], &text[at + name.len()..]),
        None => text.to_owned(),
    }
}

/// Returns the first clause of a manual's text, without the text in brackets; `None` if it is too long or incomplete.
fn clause(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut outside = String::new();
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    if depth > 0 {
        return None;
    }
    let outside = outside.split_whitespace().collect::<Vec<_>>().join(" ");
    // the period of "entries starting with ." is a name and ends nothing
    let is_name = |at: usize| outside[at..].starts_with('.') && is_folder_name(last_word(&outside[..=at]));
    let end_at = |end| outside.match_indices(end).map(|(at, _)| at).find(|at| !is_name(*at));
    let end = ["; ", ". ", ": ", " - "].into_iter().filter_map(end_at).min().unwrap_or(outside.len());
    // with the sign at its end, which tells `...` from a folder's name
    let first = without_end(outside.get(..=end).unwrap_or(&outside));
    let is_short = !first.is_empty() && first.chars().count() <= MAX_CLAUSE && !first.contains(';');
    // `e.g.` and other abbreviations do not end a sentence
    let last = first.rsplit([' ', ',']).next().unwrap_or(first);
    let is_whole = !["e.g", "i.e", "etc", "cf", "vs"].contains(&last);
    (is_short && is_whole).then(|| uncapitalized(first))
}

/// Removes the punctuation at the end of a clause. A folder's name at the end stays: `.` or `..`, while `...` is none.
fn without_end(mut text: &str) -> &str {
    loop {
        let trimmed = text.trim_end_matches([':', ';', ',', ' ']);
        let last = last_word(trimmed);
        let trimmed = if is_folder_name(last) { trimmed } else { trimmed.trim_end_matches('.') };
        if trimmed.len() == text.len() {
            return text;
        }
        text = trimmed;
    }
}

fn is_folder_name(word: &str) -> bool {
    matches!(word, "." | "..")
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

/// Puts the first letter of a text in lower case, unless the first word is in capitals.
fn uncapitalized(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), second) if second.is_none_or(|c| c.is_lowercase() || c == ' ') => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;
    use caro_shell::{Dialect, extract_commands, parse};
    use std::collections::BTreeSet;

    fn entry(command: &str, title: &str, options: &[(&str, &str, &str)]) -> (String, Arc<Entry>) {
        let options = options.iter().map(|(short, argument, text)| OptionEntry {
            short: Some((*short).into()),
            argument: (!argument.is_empty()).then(|| (*argument).into()),
            text: (*text).into(),
            ..OptionEntry::default()
        });
        let entry =
            Entry { command: command.into(), title: title.into(), options: options.collect(), ..Entry::default() };
        (command.to_owned(), Arc::new(entry))
    }

    fn manuals() -> BTreeMap<String, Arc<Entry>> {
        let first = "print the first NUM lines instead of the first 10; with the leading '-', all but the last NUM";
        let modified = "File's data was last modified less than, more than or exactly n*24 hours ago. See -atime.";
        BTreeMap::from([
            entry("ps", "report a snapshot of the current processes.", &[]),
            entry("head", "output the first part of files", &[("-n", "NUM", first), ("-q", "", "never print headers")]),
            entry("sort", "sort lines of text files", &[("-r", "", "reverse the result of comparisons")]),
            entry(
                "find",
                "search for files in a directory hierarchy",
                &[
                    ("-mtime", "n", modified),
                    ("-type", "c", "File is of type c:"),
                    ("-size", "n", "File uses less than, more than or exactly n units"),
                    ("-L", "", "If it is a link, follow"),
                ],
            ),
            entry(
                "du",
                "estimate file space usage",
                &[("-h", "", "print sizes in human readable format (e.g., 1K 2G)")],
            ),
            entry("log", "show logs", &[("--since", "date", "Show commits more recent than a specific date.")]),
            entry("mute", "", &[("-x", "", "do it")]),
        ])
    }

    fn of(cmd: &str) -> String {
        line(&parse(cmd, Dialect::Bash), &manuals())
    }

    #[test]
    fn programs_and_options_are_explained() {
        assert_eq!(
            of("ps aux | head -n 6"),
            "ps: report a snapshot of the current processes; head: output the first part of files \
             (-n 6: print the first 6 lines instead of the first 10)"
        );
        assert_eq!(
            of("du -h | sort -r"),
            "du: estimate file space usage (-h: print sizes in human readable format); \
             sort: sort lines of text files (-r: reverse the result of comparisons)"
        );
        assert_eq!(
            of("find . -L -type f"),
            "find: search for files in a directory hierarchy (-type f: file is of type f)"
        );
        let since = "log: show logs (--since=2 weeks ago: show commits more recent than a specific date)";
        assert_eq!(of("log --since='2 weeks ago'"), since);
        assert_eq!(of("mute -x | unknown | head f"), "head: output the first part of files");
        let sized = of("find . -type f -size +1024k");
        assert!(sized.find("-size +1024k: ").is_some_and(|at| Some(at) < sized.find("-type")), "{sized}");
        assert_eq!((of("mute"), of("ssh host head")), (String::new(), String::new()));
    }

    #[test]
    fn clauses_that_do_not_fit_are_left_out_whole() {
        let text = of("find . -mtime -7 -type f | sort -r | head -n 5 -q | sort -r | ps");
        assert!(text.chars().count() <= MAX_LINE, "{text}");
        for part in [
            "find: search for files in a directory hierarchy",
            "sort: sort lines",
            "head: output the first part of files",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("-mtime") && !text.contains("-n 5"), "{text}");
        // the next option takes the place of the one that was too long
        let text = of("find . -mtime -7 -type f | sort | head");
        assert!(text.contains("(-type f: file is of type f)"), "{text}");
    }

    #[test]
    fn an_incomplete_clause_is_none() {
        for (text, first) in [
            ("print sizes (e.g., 1K 2G) as they are; not rounded", Some("print sizes as they are")),
            ("Do not try to resolve names. Show numbers.", Some("do not try to resolve names")),
            ("URL to be fetched", Some("URL to be fetched")),
            ("do not ignore entries starting with .", Some("do not ignore entries starting with .")),
            ("do not list implied . and .. of a folder. More", Some("do not list implied . and .. of a folder")),
            ("the folder above: ..", Some("the folder above")),
            ("a name that is ..,", Some("a name that is ..")),
            ("files to search ...", Some("files to search")),
            ("read each FILE ... Then stop", Some("read each FILE")),
            ("go on and on....", Some("go on and on")),
            ("like the other one, e.g. that of sort", None),
            ("a bracket (that the store has cut", None),
            ("", None),
        ] {
            assert_eq!(clause(text).as_deref(), first, "{text}");
        }
        assert_eq!(clause(&"very ".repeat(40)), None);
    }

    /// Returns `count` pseudo-random words that depend on the seed.
    fn words(seed: u64, count: u64) -> String {
        let word = |i: u64| {
            let n =
                seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i.wrapping_mul(1_442_695_040_888_963_407))
                    >> 40;
            format!("{}{n:x}", ["so", "many", "files", "as", "it"][(n % 5) as usize])
        };
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn no_line_of_the_library_is_too_long_or_ends_within_a_word() {
        let mut explained = 0;
        for (seed, cmd) in library::commands().iter().enumerate() {
            let script = parse(cmd, Dialect::Bash);
            let seed = seed as u64;
            let mut manuals = BTreeMap::new();
            for name in extract_commands(&script) {
                let options = script.commands.iter().flat_map(|c| c.args()).filter(|w| w.text.starts_with('-'));
                let options = options.enumerate().map(|(i, w)| OptionEntry {
                    short: Some(w.text.clone()),
                    argument: (i % 2 == 0).then(|| "NUM".to_owned()),
                    text: format!(
                        "{} NUM ({}). {}",
                        words(seed + i as u64, 1 + i as u64 * 3),
                        words(seed, 2),
                        words(3, 9)
                    ),
                    ..OptionEntry::default()
                });
                let title = words(seed, seed % 22);
                let entry = Entry { command: name.clone(), title, options: options.collect(), ..Entry::default() };
                manuals.insert(name, Arc::new(entry));
            }
            let text = line(&script, &manuals);
            explained += usize::from(!text.is_empty());
            assert!(text.chars().count() <= MAX_LINE, "{cmd}\n{text}");
            let known: BTreeSet<String> = manuals
                .values()
                .flat_map(|e| std::iter::once(e.title.clone()).chain(e.options.iter().map(|o| o.text.clone())))
                .chain(script.commands.iter().flat_map(|c| c.words.iter().map(|w| w.text.clone())))
                .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect::<Vec<_>>())
                .collect();
            for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                assert!(known.contains(&word.to_lowercase()), "`{word}` is not a whole word: {cmd}\n{text}");
            }
            assert_eq!(text.matches('(').count(), text.matches(')').count(), "{cmd}\n{text}");
            let titled = script.commands.iter().find_map(|c| {
                let title = &manuals.get(c.name()?)?.title;
                (!c.remote && !title.is_empty() && title.chars().count() <= MAX_CLAUSE).then(|| c.name())?
            });
            assert!(titled.is_none_or(|first| text.contains(&format!("{first}: "))), "{cmd}\n{text}");
        }
        assert!(explained > 100, "{explained}");
    }
}
