//! Platform rules: usages that fail or do harm on some system or in some shell. The rules are data in
//! `platform-rules/`; this module reads and interprets them.

mod condition;
mod load;
mod rewrite;

use super::parse::{Invocation, Script};
use super::{Dialect, Finding, Severity, Target};
use std::collections::HashMap;
use std::sync::OnceLock;

pub use condition::option;

/// The verdict of a matching rule, from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Worth mentioning: a finding of [`Severity::Hint`].
    Hint,
    /// Probably not what was meant: [`Severity::Warning`].
    Warn,
    /// It fails or does something else: [`Severity::Error`].
    Error,
    /// The command works and may do harm: a reason of [`super::safety::Level::Caution`].
    Confirm,
    /// The command works and destroys something: a reason of [`super::safety::Level::Danger`].
    Deny,
}

/// A rule, as written in a file of `platform-rules/`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Unique, stable id in kebab case.
    pub id: String,
    /// The programs it is about, as parsed; empty for a rule about a construct, `*` for any program.
    #[serde(default)]
    pub tool: Vec<String>,
    /// The conditions under which it matches; all given ones must hold.
    #[serde(default)]
    pub when: condition::Condition,
    /// Its verdict.
    pub verdict: Verdict,
    /// One sentence, short and imperative, with the right alternative.
    pub why: String,
    /// The documentation that it is based on.
    pub source: String,
    /// For `confirm` and `deny`: the kind of harm (`delete`, `device` ...).
    #[serde(default)]
    pub effect: String,
    /// For `confirm` and `deny`: the extent of the harm, in a few words (`every row of the table`).
    #[serde(default)]
    pub scope: String,
    /// A mechanical fix, one of the forms of [`rewrite`](self).
    #[serde(default)]
    pub rewrite: Option<rewrite::Rewrite>,
    /// Commands that it must match; checked by the tests.
    pub matches: Vec<String>,
    /// Commands that it must not match; checked by the tests.
    pub not_matches: Vec<String>,
}

/// One file of rules.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    rule: Vec<Rule>,
}

/// The rules of one file, indexed by program.
#[derive(Debug, Default)]
struct Set {
    rules: Vec<Rule>,
    by_tool: HashMap<String, Vec<usize>>,
    constructs: Vec<usize>,
}

impl Set {
    fn new(rules: Vec<Rule>) -> Self {
        let mut set = Self { rules, ..Self::default() };
        for (index, rule) in set.rules.iter().enumerate() {
            if rule.tool.is_empty() {
                set.constructs.push(index);
            }
            for tool in &rule.tool {
                set.by_tool.entry(tool.clone()).or_default().push(index);
            }
        }
        set
    }

    /// Returns every match, with the word or construct that caused it.
    fn matching<'s>(&'s self, script: &'s Script) -> Vec<Match<'s>> {
        let mut found = Vec::new();
        for index in &self.constructs {
            let rule = &self.rules[*index];
            for (construct, span) in &script.constructs {
                if rule.when.construct == Some(*construct) {
                    let token = script.text.get(span.clone()).unwrap_or_default();
                    found.push(Match { rule, command: None, token: token.to_owned(), span: span.clone() });
                }
            }
        }
        for (index, command) in script.commands.iter().enumerate() {
            let Some(key) = command.key() else { continue };
            let cmdlet = super::effects::canonical(&key, script.dialect);
            let aliased = (cmdlet != key).then(|| self.by_tool.get(&cmdlet)).flatten();
            let named = self.by_tool.get(&key).into_iter().chain(aliased).chain(self.by_tool.get("*")).flatten();
            // `curl.exe` names the program itself, not an alias of the shell
            let exact = command.name().is_some_and(|n| n.to_ascii_lowercase().ends_with(".exe"));
            for rule in named.map(|i| &self.rules[*i]).filter(|r| !exact || r.verdict >= Verdict::Confirm) {
                if let Some(word) = rule.when.holds(script, index, command) {
                    let word = &command.words[word];
                    found.push(Match { rule, command: Some(index), token: word.raw.clone(), span: word.span.clone() });
                }
            }
        }
        found
    }
}

/// A match of a rule.
pub(crate) struct Match<'s> {
    pub rule: &'s Rule,
    pub command: Option<usize>,
    pub token: String,
    pub span: std::ops::Range<usize>,
}

/// Returns the findings of the rules against the script on a target, in the order of the text.
pub fn check(script: &Script, target: Target) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for found in matching(script, Some(target)) {
        let severity = match found.rule.verdict {
            Verdict::Hint => Severity::Hint,
            Verdict::Warn => Severity::Warning,
            Verdict::Error => Severity::Error,
            Verdict::Confirm | Verdict::Deny => continue,
        };
        if findings.iter().any(|f| f.id == found.rule.id) {
            continue;
        }
        let command = found.command.map(|i| &script.commands[i]);
        findings.push(Finding {
            id: found.rule.id.clone(),
            severity,
            token: found.token,
            span: Some(found.span),
            why: found.rule.why.clone(),
            evidence: Vec::new(),
            fix: found.rule.rewrite.as_ref().and_then(|r| r.apply(script, command?)),
        });
    }
    findings.sort_by_key(|f| f.span.as_ref().map_or(0, |s| s.start));
    findings
}

/// Returns every match; without a target only those of rules that apply everywhere.
pub(crate) fn matching(script: &Script, target: Option<Target>) -> Vec<Match<'_>> {
    let mut names = load::EVERYWHERE.to_vec();
    if let Some(target) = target {
        names.push(target.name());
        names.push(file_of(script.dialect));
    }
    let elsewhere = |found: &Match| found.command.is_some_and(|at| script.commands[at].remote);
    names
        .iter()
        .filter_map(|name| Some((name, builtin(name)?)))
        .flat_map(|(name, set)| set.matching(script).into_iter().map(move |found| (name, found)))
        // a command in a container or on another machine runs on another system
        .filter(|(name, found)| target.is_none_or(|target| **name != target.name()) || !elsewhere(found))
        .map(|(_, found)| found)
        .collect()
}

/// True if the rule is one of the target's own file: its `why` names the usage of this system.
pub fn is_own(id: &str, target: Target) -> bool {
    builtin(target.name()).is_some_and(|set| set.rules.iter().any(|rule| rule.id == id))
}

/// Returns the rules of all files with the names of the files, for tests and documentation.
pub fn catalogue() -> Vec<(&'static str, &'static Rule)> {
    load::NAMES
        .iter()
        .filter_map(|name| Some((*name, builtin(name)?)))
        .flat_map(|(name, set)| set.rules.iter().map(move |rule| (name, rule)))
        .collect()
}

/// True if the rule matches the script, regardless of its target and dialect.
pub fn rule_matches(rule: &Rule, script: &Script) -> bool {
    Set::new(vec![rule.clone()]).matching(script).iter().any(|m| m.rule.id == rule.id)
}

/// Applies the rule's rewrite to the script; `None` if it has none or it does not apply.
pub fn rewritten(rule: &Rule, script: &Script) -> Option<String> {
    let set = Set::new(vec![rule.clone()]);
    let found = set.matching(script).into_iter().next()?;
    let command: &Invocation = &script.commands[found.command?];
    rule.rewrite.as_ref()?.apply(script, command)
}

fn file_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sh => "posix-sh",
        _ => dialect.name(),
    }
}

/// Returns the rules of one file, indexed on first use: a run needs only a few of the files.
fn builtin(name: &str) -> Option<&'static Set> {
    static SETS: [OnceLock<Set>; load::NAMES.len()] = [const { OnceLock::new() }; load::NAMES.len()];
    let at = load::NAMES.iter().position(|n| *n == name)?;
    Some(SETS[at].get_or_init(|| Set::new(load::file(name).map(|f| f.rule.clone()).unwrap_or_default())))
}
