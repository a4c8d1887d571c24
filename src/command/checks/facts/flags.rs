//! Finds flags that the installed version of a program does not have.

use super::CheckContext;
use caro_manual::{Entry, relevant};
use caro_shell::{Finding, Invocation, Severity};

/// Most lines of the manual that are shown as evidence for one wrong flag.
const MAX_EVIDENCE: usize = 6;

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    cx.script.commands.iter().filter(|c| !c.remote).flat_map(|c| of_command(cx, c)).collect()
}

fn of_command(cx: &CheckContext, command: &Invocation) -> Vec<Finding> {
    let Some((entry, skip)) = cx.manual_of(command) else { return Vec::new() };
    let args = &command.args()[skip.min(command.args().len())..];
    let texts: Vec<&str> = args.iter().map(|w| w.text.as_str()).collect();
    let unknown = entry.unknown_flags(&texts);
    // the value of a word that the shell expands is not known
    let literal = unknown.into_iter().filter(|u| args.get(u.word).is_some_and(|w| w.value.is_some()));
    literal
        .map(|u| Finding {
            id: "unknown-flag".into(),
            severity: Severity::Error,
            span: args.get(u.word).map(|w| w.span.clone()),
            why: format!("the installed {} has no option {}", entry.command, u.flag),
            evidence: evidence(entry, cx.request, &u.flag),
            token: u.flag,
            fix: None,
        })
        .collect()
}

/// Returns the lines of the manual that are nearest to the flag and the request.
fn evidence(entry: &Entry, request: &str, flag: &str) -> Vec<String> {
    let words: Vec<&str> = request.split_whitespace().collect();
    relevant(entry, &words, &[flag], MAX_EVIDENCE).iter().map(caro_manual::OptionEntry::line).collect()
}
