//! Assembles an entry from a man page and answers, and decides whether its options are complete.

use super::answer::{Answer, Page, kind_of};
use super::index::{Kind, Text, clean, mentions, read, usage, verbs};
use super::{Entry, OptionEntry};
use caro_exec::Status;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;

/// Longest stored help text, in bytes (the specification's 2 KB).
const MAX_HELP_TEXT: usize = 2048;
/// Most stored mentions; with more, a text is about everything and proves nothing.
const MAX_MENTIONS: usize = 1500;

/// The texts about a program.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Its man page.
    pub(super) page: Page,
    /// The answer to `--version`.
    pub(super) version: Option<Answer>,
    /// The answer to `--help`.
    pub(super) help: Option<Answer>,
}

/// Assembles the entry of a program.
pub(super) fn assemble(command: &str, path: &Path, sources: Sources) -> Entry {
    let page = sources.page.text().map(|text| read(text, Kind::Page)).unwrap_or_default();
    let help_text = sources.help.as_ref().and_then(help_of);
    let help = help_text.map(|text| read(text, kind_of(text))).unwrap_or_default();
    let texts: Vec<&str> = sources.page.text().into_iter().chain(help_text).collect();

    let name = command.replace(' ', "-");
    let usages: Vec<_> = texts.iter().map(|text| usage(&name, text)).collect();
    let options = merge(page.options.clone(), help.options.clone());
    let options = usages.iter().fold(options, |options, usage| merge(options, usage.options.clone()));
    let known: HashSet<&str> = options.iter().flat_map(OptionEntry::names).collect();
    let mentions: BTreeSet<String> =
        texts.iter().flat_map(|text| mentions(text)).filter(|flag| !known.contains(flag.as_str())).collect();
    let hurried = matches!(sources.page, Page::TimedOut);
    let complete =
        !hurried && is_complete(&sources, &page, &help, &mentions) && !texts.iter().any(|text| forwards_options(text));

    let subcommands: BTreeSet<String> = usages.iter().flat_map(|u| u.subcommands.iter().cloned()).collect();
    let synopsis = usages.iter().map(|u| u.line.as_str()).find(|line| !line.is_empty()).unwrap_or_default();
    let problem = problem(&sources, texts.is_empty());
    Entry {
        command: command.into(),
        path: path.into(),
        version: sources.version.as_ref().and_then(version).unwrap_or_default(),
        title: page.title.or(help.title).unwrap_or_default(),
        help_text: cut(help_text.unwrap_or(synopsis), MAX_HELP_TEXT).to_string(),
        man_summary: page.summary,
        options,
        complete: complete && mentions.len() <= MAX_MENTIONS,
        mentions: mentions.into_iter().take(MAX_MENTIONS).collect(),
        delegates: usages.iter().any(|u| u.delegates),
        subcommands: subcommands.into_iter().collect(),
        verbs: described_verbs(help_text.into_iter().chain(sources.page.text())),
        hurried,
        problem,
    }
}

/// Returns the subcommands with their texts; the first text that describes one counts, as that of a help is short.
fn described_verbs<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for verb in texts.flat_map(verbs) {
        if !found.iter().any(|(name, _)| *name == verb.0) {
            found.push(verb);
        }
    }
    found
}

/// Returns the answer to `--help`, unless it is an error message without a usage.
fn help_of(answer: &Answer) -> Option<&str> {
    let text = answer.text.as_deref()?;
    let help = answer.status == Some(Status::Exited(0))
        || text.to_ascii_lowercase().contains("usage")
        || !read(text, Kind::Help).options.is_empty();
    help.then_some(text)
}

/// True if the options are complete: from a page, or from a complete and successful help, and most of the mentioned
/// ones are defined.
fn is_complete(sources: &Sources, page: &Text, help: &Text, mentions: &BTreeSet<String>) -> bool {
    /// Phrases of a help text that is not complete.
    const PARTIAL: &[&str] =
        &["--help all", "--help-all", "--help=", "help category", "--help-hidden", "-hh", "--help-full", "--fullhelp"];
    let options = page.options.len().max(help.options.len());
    let undefined = mentions.iter().filter(|flag| flag.starts_with("--")).count();
    let defined = undefined <= 3 + options / 2;
    let from_page = !page.options.is_empty();
    let from_help = sources.help.as_ref().is_some_and(|answer| {
        let text = answer.text.as_deref().unwrap_or_default();
        answer.complete
            && matches!(answer.status, Some(Status::Exited(0)))
            && help.options.len() >= 2
            && (from_page || !PARTIAL.iter().any(|word| text.contains(word)))
    });
    // the page of a program with a longer help may be a stub
    let stub = help.options.len() > 2 * page.options.len() && !from_help;
    defined && (from_page && !stub || from_help)
}

/// True if the text says that the program takes the options of another one, as zgrep does those of grep.
fn forwards_options(text: &str) -> bool {
    const PHRASES: &[&str] = &[
        "All options specified are passed directly to",
        "OPTIONs are the same as for",
        "accepts any of the options accepted by",
        "[<log-options>]",
        "[<diff-options>]",
    ];
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Merges two lists of options; an option in both gets the parts that the first lacks.
fn merge(mut options: Vec<OptionEntry>, more: Vec<OptionEntry>) -> Vec<OptionEntry> {
    for other in more {
        let same = |option: &OptionEntry| other.names().any(|name| option.names().any(|n| n == name));
        // a line that names several options of the first list defines none of them
        if options.iter().filter(|option| same(option)).count() > 1 {
            continue;
        }
        let Some(option) = options.iter_mut().find(|option| same(option)) else {
            options.push(other);
            continue;
        };
        if option.argument.is_none() {
            option.argument.clone_from(&other.argument);
        }
        if option.text.is_empty() {
            option.text.clone_from(&other.text);
        }
        if option.forms.is_empty() {
            option.forms.clone_from(&other.forms);
        }
        if option.choices.is_empty() && option.text == other.text {
            option.choices.clone_from(&other.choices);
        }
        let new: Vec<String> =
            other.names().filter(|name| !option.names().any(|n| n == *name)).map(str::to_string).collect();
        for name in new {
            let slot = if name.starts_with("--") { &mut option.long } else { &mut option.short };
            if slot.is_none() { *slot = Some(name) } else { option.also.push(name) }
        }
    }
    options
}

/// Returns the first line that looks like a version.
fn version(answer: &Answer) -> Option<String> {
    if answer.status != Some(Status::Exited(0)) {
        return None;
    }
    let lines = || answer.text.as_deref().unwrap_or_default().lines().map(str::trim);
    let dotted = |line: &&str| {
        line.as_bytes().windows(3).any(|w| w[0].is_ascii_digit() && w[1] == b'.' && w[2].is_ascii_digit())
    };
    let line =
        lines().take(5).find(dotted).or_else(|| lines().find(|line| line.contains(|c: char| c.is_ascii_digit())))?;
    Some(line.chars().take(160).collect())
}

/// Returns the reason why there is no help.
fn problem(sources: &Sources, no_text: bool) -> Option<String> {
    let asked = [sources.help.as_ref(), sources.version.as_ref()];
    if !no_text {
        return None;
    }
    let why = asked.into_iter().flatten().find_map(Answer::problem);
    Some(why.unwrap_or("has neither a manual page nor a --help").to_string())
}

/// Returns at most the first `limit` bytes, in whole lines if possible.
fn cut(text: &str, limit: usize) -> &str {
    let text = text.trim();
    if text.len() <= limit {
        return text;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').filter(|at| *at > limit / 2).unwrap_or(end);
    &text[..end]
}

impl Entry {
    /// Creates an entry from given texts: a man page, and a complete answer to `--help` of a program that succeeded.
    pub fn from_texts(command: &str, page: Option<&[u8]>, help: Option<&[u8]>) -> Self {
        let answer = |text| Answer { status: Some(Status::Exited(0)), text: Some(text), complete: true };
        let page = page.map_or(Page::None, |page| Page::Text(clean(page)));
        assemble(command, Path::new(command), Sources { page, version: None, help: help.map(clean).map(answer) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, code: i32) -> Answer {
        Answer { status: Some(Status::Exited(code)), text: Some(text.into()), complete: true }
    }

    #[test]
    fn page_and_help_are_merged() {
        let page =
            "X(1)\n\nNAME\n       x - do x\n\nDESCRIPTION\n       Does x. See --other.\n\n       -a     Take all.\n";
        let help = "Usage: x [OPTION]\n  -a, --all=WHAT   take all\n  -b               take b\n";
        let sources = Sources {
            page: Page::Text(page.into()),
            version: Some(answer("x 1.2\nfree\n", 0)),
            help: Some(answer(help, 0)),
        };
        let entry = assemble("x", Path::new("/bin/x"), sources);
        assert_eq!(entry.version, "x 1.2");
        assert_eq!(entry.title, "do x");
        assert_eq!(
            entry.options.iter().map(OptionEntry::line).collect::<Vec<_>>(),
            ["-a, --all=WHAT  Take all.", "-b  take b"]
        );
        assert_eq!((entry.complete, entry.mentions.as_slice()), (true, ["--other".to_string()].as_slice()));
        assert_eq!(entry.problem, None);
    }

    #[test]
    fn an_option_that_only_the_synopsis_spells_is_defined() {
        let page = "NAME\n       x - do x\n\nSYNOPSIS\n       x [--tcp|-t] [--wide|-W] {--udp|-u} [-q|--loud] [-v|-w] [--nu-\n       meric|-n]\n\nDESCRIPTION\n       Does x.\n\n       --wide Be wide.\n";
        let entry = Entry::from_texts("x", Some(page.as_bytes()), None);
        let lines: Vec<_> = entry.options.iter().map(OptionEntry::line).collect();
        assert_eq!(lines, ["-W, --wide  Be wide.", "-t, --tcp", "-u, --udp"]);
        let flags = entry.read_args(&["-tuW"]);
        assert_eq!(flags.iter().map(|u| u.flag.as_str()).collect::<Vec<_>>(), ["-t", "-u", "-W"]);
        assert!(flags.iter().all(|u| u.option.is_some()));
    }

    #[test]
    fn a_program_that_forwards_options_is_not_complete() {
        let of = |more: &str| {
            let help = format!("Usage: x\n{more}\n\n  -a   take all\n  -b   take b\n");
            assemble("x", Path::new("/bin/x"), Sources { help: Some(answer(&help, 0)), ..Sources::default() })
        };
        assert!(of("Does x.").complete);
        assert!(!of("OPTIONs are the same as for 'grep'.").complete);
    }

    #[test]
    fn a_failed_or_truncated_help_is_not_complete() {
        let help = "Usage: x\n  -a   take all\n  -b   take b\n";
        let of = |help: Answer| assemble("x", Path::new("/bin/x"), Sources { help: Some(help), ..Sources::default() });
        assert!(of(answer(help, 0)).complete);
        assert!(!of(answer(help, 2)).complete);
        assert_eq!(of(answer(help, 2)).options.len(), 2);
        assert!(!of(Answer { complete: false, ..answer(help, 0) }).complete);
        assert!(!of(answer(&format!("{help}  --help-all  more\n"), 0)).complete);
        let late = Sources { page: Page::TimedOut, help: Some(answer(help, 0)), ..Sources::default() };
        let late = assemble("x", Path::new("/bin/x"), late);
        assert!(late.hurried && !late.complete, "its page may know more");
        let hung = Answer { status: Some(Status::TimedOut), text: None, complete: true };
        assert_eq!(of(hung).problem.as_deref(), Some("did not answer within a second"));
    }
}
