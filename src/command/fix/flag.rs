//! Repairs flags that a program does not have.

use super::complaint::{self, Kind};
use super::near::{nearest, shortest_completion};
use super::{Case, Class, Repair, repair};
use caro_manual::Entry;
use caro_shell::{Invocation, Word};
use regex::Regex;
use std::sync::{Arc, LazyLock};

/// Matches flags in usage texts.
static FLAGS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:^|[\s\[(|,/'])(--?(?:\[no-\])?[A-Za-z][\w-]*)").ok());

/// A wrong flag with its word, and the flag that was meant.
struct WrongFlag<'c> {
    word: &'c Word,
    flag: String,
    meant: String,
    program: String,
}

/// Replaces unknown flags by the nearest ones that the installed program has.
pub(super) fn unknown(case: &Case) -> Option<Repair> {
    let is_complained = case.first(Kind::UnknownFlag).is_some();
    if !is_complained && !case.is_silent {
        return None;
    }
    let mut wrong: Vec<WrongFlag> = case.commands().flat_map(|command| by_manual(case, command)).collect();
    // a complaint about a flag that the manual has not found
    for complaint in case.all(Kind::UnknownFlag) {
        if !wrong.iter().any(|w| is_named(&w.flag, &complaint.name)) {
            wrong.extend(by_complaint(case, &complaint.name, &complaint.line));
        }
    }
    wrong.sort_by_key(|w| w.word.span.start);
    wrong.dedup_by_key(|w| w.word.span.start);
    let first = wrong.first()?;
    let why = format!("{} has no {}, it has {}", first.program, first.flag, first.meant);
    let edits =
        wrong.iter().fold(case.edits(), |edits, w| edits.replace(w.word, &w.word.raw.replacen(&w.flag, &w.meant, 1)));
    repair(Class::Flag, edits, why)
}

/// True if a complaint names that flag: with its dashes or without.
fn is_named(flag: &str, name: &str) -> bool {
    flag.trim_start_matches('-') == name.trim_start_matches('-')
}

/// Returns the manual of a command, and the number of arguments up to the subcommand that it is about.
fn manual(case: &Case, command: &Invocation) -> Option<(Arc<Entry>, usize)> {
    let program = command.name()?;
    let whole = (case.facts.manual)(program, None)?;
    let args: Vec<&str> = command.args().iter().map(|word| word.text.as_str()).collect();
    if let Some(at) = whole.subcommand_at(&args)
        && let Some(entry) = (case.facts.manual)(program, Some(args[at]))
    {
        return Some((entry, at + 1));
    }
    Some((whole, 0))
}

/// Finds flags that the manual does not have.
fn by_manual<'c>(case: &'c Case, command: &'c Invocation) -> Vec<WrongFlag<'c>> {
    let has_flags = command.args().iter().any(|word| word.text.len() > 1 && word.text.starts_with('-'));
    if !has_flags {
        return Vec::new();
    }
    let Some((entry, skip)) = manual(case, command) else { return Vec::new() };
    let args = command.args().get(skip..).unwrap_or_default();
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    let names: Vec<&str> = entry.options.iter().flat_map(|option| option.names()).collect();
    let unknown = entry.unknown_flags(&texts);
    let found = unknown.into_iter().filter_map(|wrong| {
        let word = args.get(wrong.word).filter(|word| word.raw.contains(&wrong.flag))?;
        let offers = complaint::offers(case.stderr);
        let meant = meant(&wrong.flag, &offers, &names)?;
        Some(WrongFlag { word, flag: wrong.flag, meant, program: entry.command.clone() })
    });
    found.collect()
}

/// Finds the flag that the program complains about, if its manual or usage text has a near one.
fn by_complaint<'c>(case: &'c Case, name: &str, line: &str) -> Option<WrongFlag<'c>> {
    let is_it = |word: &&Word| {
        let typed = word.text.split('=').next().unwrap_or_default();
        typed.starts_with('-') && is_named(typed, name)
    };
    let (command, word) = case.commands().find_map(|command| Some((command, command.args().iter().find(is_it)?)))?;
    let flag = word.text.split('=').next()?.to_owned();
    let entry = manual(case, command).map(|(entry, _)| entry);
    let of_manual = entry.iter().flat_map(|entry| entry.options.iter().flat_map(|option| option.names()));
    // the line of the complaint contains the wrong flag
    let usage = case.stderr.lines().filter(|other| !other.contains(line) && !other.contains(&flag));
    let usage = usage.collect::<Vec<_>>().join("\n");
    let of_usage: Vec<String> = FLAGS.as_ref().map(|flags| flags_of(flags, &usage)).unwrap_or_default();
    let names: Vec<&str> = of_manual.chain(of_usage.iter().map(String::as_str)).collect();
    let meant = meant(&flag, &complaint::offers(case.stderr), &names)?;
    Some(WrongFlag { word, flag, meant, program: command.name().unwrap_or_default().to_owned() })
}

fn flags_of(flags: &Regex, usage: &str) -> Vec<String> {
    flags.captures_iter(usage).map(|found| found[1].replace("[no-]", "")).collect()
}

/// Returns the flag that was meant: the nearest that the program offers, else the nearest it has, else the shortest
/// that begins so.
fn meant(flag: &str, offers: &[String], names: &[&str]) -> Option<String> {
    let is_kind = |name: &&str| flag.starts_with("--") == name.starts_with("--") && name.starts_with('-');
    // the dashes, which all flags share, allow no more edits
    let nearest_of = |names: &mut dyn Iterator<Item = &str>| {
        let dashes = if flag.starts_with("--") { "--" } else { "-" };
        let bare = names.filter_map(|name| name.strip_prefix(dashes)).collect::<Vec<_>>();
        let near = nearest(flag.strip_prefix(dashes)?, bare, |_| false)?;
        Some(format!("{dashes}{near}"))
    };
    let near = nearest_of(&mut offers.iter().map(String::as_str).filter(is_kind))
        .or_else(|| nearest_of(&mut names.iter().copied().filter(is_kind)));
    let completion =
        || if flag.len() > 3 { shortest_completion(flag, names.iter().copied().filter(is_kind)) } else { None };
    near.or_else(|| completion().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_near_by_its_letters_and_not_by_its_dashes() {
        let names = ["--inode", "--reverse", "--color", "-name"];
        for (flag, near) in [
            ("--revrese", Some("--reverse")),
            ("--colour", Some("--color")),
            ("--rev", Some("--reverse")),
            ("-nmae", Some("-name")),
            ("--nope", None),
        ] {
            assert_eq!(meant(flag, &[], &names).as_deref(), near, "{flag}");
        }
    }
}
