//! Operands that one command passes to another: `find -exec`, `fd -x`, `xargs`, `parallel`, a pipe of PowerShell.

use super::fd::{fd_operands, is_fd};
use super::find::{Action, narrowed};
use super::paths::resolve_paths;
use super::table::canonical;
use crate::parse::{How, Invocation, Script, Word};
use crate::unwrap::{Held, passes_on, unwrap};

/// Returns what a PowerShell pipeline passes to a command without operands: for each path, whether a filter selects a
/// part of it, and whether everything below it is included.
pub(super) fn piped(script: &Script, index: usize) -> Vec<(String, bool, bool)> {
    let mut narrowed = false;
    let mut at = index;
    for _ in 0..8 {
        let Some((feeder, command)) = script.commands.iter().enumerate().find(|(_, c)| c.feeds.contains(&at)) else {
            break;
        };
        let key = canonical(&command.key().unwrap_or_default(), script.dialect);
        let says = |names: &[&str]| command.args().iter().any(|w| names.iter().any(|n| w.text.eq_ignore_ascii_case(n)));
        if key == "get-childitem" || key == "get-item" {
            let filtered = narrowed || says(&["-filter", "-include", "-exclude"]);
            let mut roots: Vec<String> = command
                .operands()
                .flat_map(|w| resolve_paths(script, w))
                .filter(|p| filtered || !p.is_empty())
                .collect();
            if roots.is_empty() {
                roots.push("*".to_owned());
            }
            let deep = says(&["-recurse", "-r", "-rec", "-s"]);
            return roots.into_iter().map(|root| (root, filtered, deep)).collect();
        }
        narrowed |= matches!(key.as_str(), "where-object" | "select-object");
        at = feeder;
    }
    Vec::new()
}

/// A placeholder for a path that is passed on but unknown.
pub(super) const UNKNOWN: &str = "$(...)";

/// True if the operands passed to a command are appended to its words. `fd` does so unless a placeholder marks the
/// position.
pub(super) fn appends(script: &Script, index: usize) -> bool {
    let command = &script.commands[index];
    if !matches!(command.runner(), Some("xargs" | "gxargs" | "parallel" | "fd" | "fdfind")) {
        return false;
    }
    let braces = |w: &Word| w.text.contains('{') && w.text.contains('}');
    let around = |c: &&Invocation| script.commands.get(c.inside.filter(|i| i.how == How::Wrapped)?.command);
    let passes = |c: &&Invocation| c.name().is_some_and(passes_on);
    let between: Vec<&Invocation> = std::iter::successors(around(&command), around).take_while(passes).collect();
    // `xargs -I % ssh % rm -rf x`: the operand replaces the mark only
    let mark = around(between.last().unwrap_or(&command)).and_then(|xargs| {
        let mut words = xargs.args().iter().map(|w| w.text.as_str());
        words
            .find_map(|w| w.strip_prefix("-I"))
            .and_then(|mark| if mark.is_empty() { words.next() } else { Some(mark) })
    });
    let replaced = |w: &Word| braces(w) || mark.is_some_and(|mark| w.text.contains(mark));
    !command.words.iter().any(braces) && !between.iter().any(|c| c.words.iter().any(replaced))
}

/// Returns the command with a placeholder appended if the operands passed to it are unknown: `xargs -a list rm -rf`.
pub(super) fn with_unknown_operand(script: &Script, index: usize, handed: &[Handed]) -> Option<Invocation> {
    let with =
        || Some(Invocation { words: with_unknowns(&script.commands[index], 1)?, ..script.commands[index].clone() });
    if appends(script, index) && handed.is_empty() { with() } else { None }
}

/// Returns the command's words with `count` placeholders appended.
fn with_unknowns(command: &Invocation, count: usize) -> Option<Vec<Word>> {
    let Word { raw, span, .. } = command.words.first()?.clone();
    let word = Word { raw, text: UNKNOWN.to_owned(), span, expands: true, ..Word::default() };
    let behind = std::iter::repeat_n(word, count);
    Some(command.words.iter().cloned().chain(behind).collect())
}

/// True if the operands passed to a command become a command themselves: `xargs env`, `xargs timeout`.
pub(super) fn runs_operands(script: &Script, index: usize) -> bool {
    let command = &script.commands[index];
    let unwrapped = || unwrap(&with_unknowns(command, 2)?, script.dialect_of(command));
    command.name().is_some_and(passes_on)
        && appends(script, index)
        && unwrapped().is_some_and(|unwrapped| unwrapped.held.iter().any(|held| matches!(held, Held::Command(_))))
}

/// Returns the folders that `find` or `fd` searches.
pub(super) fn roots(script: &Script, command: &Invocation) -> Vec<String> {
    let mut roots = Vec::new();
    if is_fd(command) {
        roots.extend(fd_operands(command).into_iter().skip(1).flat_map(|w| resolve_paths(script, w)));
        let named = |w: &&Word| w.text.starts_with("--search-path") || w.text.starts_with("--base-directory");
        if let Some(at) = command.args().iter().position(|w| named(&w)) {
            roots.extend(command.args()[at..].iter().take(2).flat_map(|w| resolve_paths(script, w)));
        }
    } else {
        for word in command.args() {
            if word.text.starts_with(['-', '(', '!']) && word.text != "-" {
                if matches!(word.text.as_str(), "-H" | "-L" | "-P") || word.text.starts_with("-O") {
                    continue;
                }
                break;
            }
            roots.extend(resolve_paths(script, word));
        }
    }
    if roots.is_empty() { vec![".".to_owned()] } else { roots }
}

/// An operand passed to a command.
#[derive(Debug, Clone)]
pub(super) struct Handed {
    pub path: String,
    /// True if a filter selects a part of it.
    pub narrowed: bool,
    /// True if the path stands for everything below it, each passed individually by `find`.
    pub walked: bool,
}

/// Returns the operands that `{}` of `find -exec` or the end of an `xargs` command stands for.
pub(super) fn handed_operands(script: &Script, index: usize) -> Vec<Handed> {
    let mut at = index;
    while let Some(inside) = script.commands[at].inside.filter(|i| i.how == How::Wrapped) {
        let run = std::mem::replace(&mut at, inside.command);
        let wrapper = &script.commands[at];
        match wrapper.name() {
            Some("find" | "gfind" | "fd" | "fdfind") => {
                return walked_by(script, wrapper, Action::Runs(&script.commands[run]));
            }
            Some("xargs" | "gxargs") => {
                let feeders: Vec<&Invocation> = script.commands.iter().filter(|c| c.feeds.contains(&at)).collect();
                return feeders.iter().flat_map(|f| from_feeder(script, f)).collect();
            }
            Some("parallel") => {
                let after = wrapper.words.iter().skip_while(|w| !w.text.starts_with(":::")).skip(1);
                return after.flat_map(|w| resolve_paths(script, w)).map(single).collect();
            }
            _ => {}
        }
    }
    Vec::new()
}

fn single(path: String) -> Handed {
    Handed { path, narrowed: false, walked: false }
}

/// Returns the operands that a `find` or `fd` passes on.
fn walked_by(script: &Script, command: &Invocation, action: Action) -> Vec<Handed> {
    let narrowed = narrowed(command, action);
    roots(script, command).into_iter().map(|path| Handed { path, narrowed, walked: true }).collect()
}

fn from_feeder(script: &Script, feeder: &Invocation) -> Vec<Handed> {
    let of = |feeder: &Invocation| match feeder.name() {
        Some("echo" | "printf") => Some(
            feeder
                .operands()
                .flat_map(|w| resolve_paths(script, w))
                .filter(|p| !p.contains('%'))
                .map(|p| single(p.replace("\\0", "").replace("\\n", "")))
                .collect(),
        ),
        Some("find" | "gfind" | "fd" | "fdfind") => Some(walked_by(script, feeder, Action::Prints)),
        Some("ls" | "dir") => {
            let named: Vec<String> = feeder.operands().flat_map(|w| resolve_paths(script, w)).collect();
            let named = if named.is_empty() { vec!["*".to_owned()] } else { named };
            Some(named.into_iter().map(single).collect::<Vec<_>>())
        }
        _ => None,
    };
    // `find ... | grep x | xargs`: a filter passes on a part of its input, a sorter all of it
    let mut at = feeder;
    let mut filtered = false;
    for _ in 0..8 {
        if let Some(paths) = of(at) {
            return paths.into_iter().map(|h| Handed { narrowed: h.narrowed || filtered, ..h }).collect();
        }
        filtered |= matches!(at.name(), Some("grep" | "egrep" | "rg" | "head" | "tail" | "awk"));
        if !filtered && !matches!(at.name(), Some("sort" | "uniq" | "cat" | "tac" | "tr")) {
            break;
        }
        let Some(index) = script.commands.iter().position(|c| std::ptr::eq(c, at)) else { break };
        let Some(before) = script.commands.iter().find(|c| c.feeds.contains(&index)) else { break };
        at = before;
    }
    Vec::new()
}
