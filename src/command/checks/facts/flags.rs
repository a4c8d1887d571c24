//! Does every flag exist in the installed version?

use super::CheckContext;
use caro_manual::{Entry, relevant};
use caro_shell::{Finding, Invocation, Severity};

/// Option lines shown as evidence for one wrong flag.
const EVIDENCE: usize = 6;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    it.script.commands.iter().filter(|c| !c.remote).flat_map(|c| of_command(it, c)).collect()
}

fn of_command(it: &CheckContext, command: &Invocation) -> Vec<Finding> {
    let Some((entry, skip)) = it.manual_of(command) else { return Vec::new() };
    let args = &command.args()[skip.min(command.args().len())..];
    let texts: Vec<&str> = args.iter().map(|w| w.text.as_str()).collect();
    let unknown = entry.unknown_flags(&texts);
    // what the shell still has to expand is not known yet
    let literal = unknown.into_iter().filter(|u| args.get(u.word).is_some_and(|w| w.value.is_some()));
    literal
        .map(|u| Finding {
            id: "unknown-flag".into(),
            severity: Severity::Error,
            span: args.get(u.word).map(|w| w.span.clone()),
            why: format!("the installed {} has no option {}", entry.command, u.flag),
            evidence: evidence(entry, it.request, &u.flag),
            token: u.flag,
            fix: None,
        })
        .collect()
}

/// The manual's lines nearest to what was meant.
fn evidence(entry: &Entry, request: &str, flag: &str) -> Vec<String> {
    let words: Vec<&str> = request.split_whitespace().collect();
    relevant(entry, &words, &[flag], EVIDENCE).iter().map(caro_manual::OptionEntry::line).collect()
}
