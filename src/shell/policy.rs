//! Policies: rules of a user or a project about commands, in addition to the built-in risk assessment. A rule names a
//! program, its subcommand, options, an effect or a path; all of them must apply to the same command of a script.
//! Every rule has examples, and a rule that fails its examples is reported and not used.
//!
//! The policy of a project may `confirm` and `deny`, but not `allow`; `allow` removes a caution, never a danger.

use super::Dialect;
use super::effects::{Effect, Kind, Place, effects, operands_of, place_of};
use super::parse::{Invocation, Script, parse};
use super::rules::option;
use super::safety::{Level, Reason, Risk};
use std::sync::OnceLock;
use toml::Spanned;

/// The effect of a reason by which a policy denies a command.
pub const DENIED: &str = "denied";

/// The effect of a reason by which a policy asks for confirmation.
const CONFIRMED: &str = "confirm";

/// The owner of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user's own policy, which may allow.
    User,
    /// The policy of a project, which may come with cloned files: it may only tighten.
    Project,
}

/// The verdict of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    Confirm,
    Deny,
}

/// Nothing, one text, or several of which one must apply.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(untagged)]
enum Words {
    #[default]
    None,
    One(String),
    Some(Vec<String>),
}

impl Words {
    fn all(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(word) => std::slice::from_ref(word),
            Self::Some(words) => words,
        }
    }

    /// True if nothing is named, or if one of the texts passes.
    fn pass(&self, test: impl FnMut(&String) -> bool) -> bool {
        self.all().is_empty() || self.all().iter().any(test)
    }
}

/// A rule, as written in a file.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    program: Words,
    /// The first operands: `push`, `s3 rm`.
    #[serde(default)]
    subcommand: Words,
    /// Options of which one must be present.
    #[serde(default)]
    flags: Words,
    /// Effects of which the command must have one: `delete`, `overwrite`, `network`, `privilege` ...
    #[serde(default)]
    effect: Words,
    /// Paths of which the command must touch one: a folder with everything below it, or a pattern with `*`.
    #[serde(default)]
    path: Words,
    #[serde(default)]
    why: String,
    #[serde(default)]
    matches: Vec<String>,
    #[serde(default)]
    not_matches: Vec<String>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    allow: Vec<Spanned<Rule>>,
    #[serde(default)]
    confirm: Vec<Spanned<Rule>>,
    #[serde(default)]
    deny: Vec<Spanned<Rule>>,
}

/// The rules of one file that hold for their own examples.
#[derive(Debug)]
pub struct Policy {
    /// The file name for messages.
    name: String,
    rules: Vec<(Verdict, usize, Rule)>,
}

impl Policy {
    /// Parses a policy. Also returns a message for each rule that is not used, with its line.
    ///
    /// # Errors
    /// If it is no valid TOML or has an unknown key: a message with the line. None of the file is used then.
    pub fn read(text: &str, name: &str, owner: Owner, dialect: Dialect) -> Result<(Self, Vec<String>), String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            format!("{name}:{line}: {}", error.message())
        })?;
        let File { allow, confirm, deny } = file;
        let all = [(Verdict::Deny, deny), (Verdict::Confirm, confirm), (Verdict::Allow, allow)];
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        for (verdict, rule) in
            all.into_iter().flat_map(|(verdict, rules)| rules.into_iter().map(move |rule| (verdict, rule)))
        {
            let line = line_of(text, rule.span().start);
            let rule = rule.into_inner();
            match rule.problem(verdict, owner, dialect) {
                Some(problem) => problems.push(format!("{name}:{line}: {problem}; the rule is not used")),
                None => rules.push((verdict, line, rule)),
            }
        }
        Ok((Self { name: name.to_owned(), rules }, problems))
    }

    /// Adds the reasons of this policy to a risk, or removes those it allows.
    fn apply(&self, script: &Script, mut risk: Risk, all: &[Effect]) -> Risk {
        for (verdict, line, rule) in &self.rules {
            for (index, command) in script.commands.iter().enumerate() {
                if !rule.applies(script, index, all, &risk) {
                    continue;
                }
                let Some(first) = command.words.first() else { continue };
                let because = if rule.why.is_empty() { String::new() } else { format!(": {}", rule.why) };
                let reason = |level, effect: &str, verb: &str| Reason {
                    level,
                    effect: effect.to_owned(),
                    token: first.raw.clone(),
                    span: Some(first.span.clone()),
                    why: format!("the rule at {}:{line} {verb} it{because}", self.name),
                    scope: None,
                };
                match verdict {
                    Verdict::Deny => risk.reasons.push(reason(Level::Danger, DENIED, "denies")),
                    Verdict::Confirm => risk.reasons.push(reason(Level::Caution, CONFIRMED, "asks about")),
                    Verdict::Allow => risk
                        .reasons
                        .retain(|r| r.level != Level::Caution || r.effect == CONFIRMED || !within(command, r)),
                }
            }
        }
        risk.reasons.sort_by_key(|r| std::cmp::Reverse(r.level));
        let mut seen = std::collections::HashSet::new();
        risk.reasons.retain(|r| seen.insert((r.why.clone(), r.span.clone())));
        risk.level = risk.reasons.iter().map(|r| r.level).max().unwrap_or(Level::Safe);
        risk
    }
}

/// True if the reason is about a word of the command.
fn within(command: &Invocation, reason: &Reason) -> bool {
    let own = command.span();
    reason.span.as_ref().is_some_and(|span| own.start <= span.start && span.end <= own.end)
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.get(..at).unwrap_or(text).matches('\n').count()
}

impl Rule {
    /// Returns the reason why the rule cannot be used, if there is one.
    fn problem(&self, verdict: Verdict, owner: Owner, dialect: Dialect) -> Option<String> {
        if owner == Owner::Project && verdict == Verdict::Allow {
            return Some("a project may `confirm` and `deny`, not `allow`".to_owned());
        }
        let named = [&self.program, &self.subcommand, &self.flags, &self.effect, &self.path];
        if named.iter().all(|words| words.all().is_empty()) {
            return Some("it names nothing: give `program`, `subcommand`, `flags`, `effect` or `path`".to_owned());
        }
        if self.matches.is_empty() {
            return Some("it has no example: give `matches = [\"...\"]`, a command that it is about".to_owned());
        }
        let fits = |text: &&String| {
            let script = parse(text, dialect);
            let all = effects(&script);
            let risk = super::safety::builtin_risk(&script);
            (0..script.commands.len()).any(|index| self.applies(&script, index, &all, &risk))
        };
        if let Some(missed) = self.matches.iter().find(|text| !fits(text)) {
            return Some(format!("it does not match its own example `{missed}`"));
        }
        self.not_matches.iter().find(fits).map(|hit| format!("it matches `{hit}`, which it says that it does not"))
    }

    /// True if everything that the rule names applies to the command.
    fn applies(&self, script: &Script, index: usize, all: &[Effect], risk: &Risk) -> bool {
        let command = &script.commands[index];
        let name = command.key().unwrap_or_default();
        let operands = || {
            let read = operands_of(command, script.dialect_of(command));
            read.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(" ")
        };
        let begins =
            |line: &str, word: &str| line == word || line.strip_prefix(word).is_some_and(|rest| rest.starts_with(' '));
        self.program.pass(|word| name.eq_ignore_ascii_case(word))
            && (self.subcommand.all().is_empty() || {
                let line = operands();
                self.subcommand.pass(|word| begins(&line, word))
            })
            && self.flags.pass(|flag| option(command, flag).is_some())
            && self.effect.pass(|word| {
                let done = all.iter().any(|e| e.command == Some(index) && kind_name(e.kind) == word.as_str());
                done || risk.reasons.iter().any(|r| r.effect == *word && within(command, r))
            })
            && self.path.pass(|pattern| {
                let own = all.iter().filter(|e| e.command == Some(index)).filter_map(|e| e.path.as_deref());
                own.filter(|p| place_of(p) != Place::Sink).any(|path| fits(pattern, path))
            })
    }
}

/// Returns the name of an effect in policies.
fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::None => "none",
        Kind::Read => "read",
        Kind::Create => "create",
        Kind::Overwrite => "overwrite",
        Kind::Append => "append",
        Kind::Delete => "delete",
        Kind::Move => "move",
        Kind::Mode | Kind::Owner => "permission",
        Kind::Fetch => "fetch",
        Kind::Send => "network",
        Kind::Privilege => "privilege",
        Kind::Kill => "process",
        Kind::System | Kind::Start => "system",
        Kind::Package => "package",
        Kind::Repository | Kind::Record => "repository",
        Kind::Run | Kind::Build | Kind::Compute => "code",
        Kind::Unknown => "unknown",
    }
}

/// True if the path is the pattern, lies below it, or matches it; `*` stands for any text.
fn fits(pattern: &str, path: &str) -> bool {
    let trim = |text: &str| text.trim_start_matches("./").trim_end_matches('/').to_owned();
    let (pattern, path) = (trim(pattern), trim(path));
    if pattern.is_empty() {
        return !path.starts_with(['/', '~']);
    }
    if !pattern.contains('*') {
        return path == pattern || path.strip_prefix(pattern.as_str()).is_some_and(|rest| rest.starts_with('/'));
    }
    let mut rest = path.as_str();
    let parts: Vec<&str> = pattern.split('*').collect();
    for (at, part) in parts.iter().enumerate() {
        let found = if at == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    parts.last().is_some_and(|last| last.is_empty()) || rest.is_empty() || path.ends_with(parts[parts.len() - 1])
}

static POLICIES: OnceLock<Vec<Policy>> = OnceLock::new();

/// Sets the policies of this process, the user's own first. Later calls have no effect.
pub fn enforce(policies: Vec<Policy>) {
    let _ = POLICIES.set(policies);
}

/// Applies the policies of this process to a risk.
pub(super) fn apply(script: &Script, risk: Risk) -> Risk {
    let policies = POLICIES.get().map(Vec::as_slice).unwrap_or_default();
    apply_all(policies, script, risk)
}

fn apply_all(policies: &[Policy], script: &Script, risk: Risk) -> Risk {
    if policies.iter().all(|policy| policy.rules.is_empty()) {
        return risk;
    }
    let all = effects(script);
    policies.iter().fold(risk, |risk, policy| policy.apply(script, risk, &all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::builtin_risk;

    fn policy(text: &str, owner: Owner) -> (Policy, Vec<String>) {
        Policy::read(text, "policy.toml", owner, Dialect::Bash).unwrap()
    }

    fn verdict(policies: &[Policy], text: &str) -> Risk {
        let script = parse(text, Dialect::Bash);
        apply_all(policies, &script, builtin_risk(&script))
    }

    const USER: &str = r#"
[[deny]]
program = "git"
subcommand = "push"
flags = ["--force", "-f"]
why = "history is shared"
matches = ["git push --force origin main"]
not_matches = ["git push origin main"]

[[allow]]
program = "git"
subcommand = ["add", "commit"]
matches = ["git commit -m x"]

[[allow]]
program = "rm"
matches = ["rm x"]

[[confirm]]
effect = "fetch"
matches = ["curl https://example.com"]

[[deny]]
path = "/srv/data"
effect = ["delete", "overwrite"]
matches = ["rm -r /srv/data/a", "cp x /srv/data/y"]
not_matches = ["cat /srv/data/a"]
"#;

    #[test]
    fn a_rule_denies_asks_or_allows_with_its_line() {
        let (own, faults) = policy(USER, Owner::User);
        assert!(faults.is_empty(), "{faults:?}");
        let own = [own];
        let denied = verdict(&own, "ls && git push -f");
        assert_eq!(denied.level, Level::Danger);
        let why = &denied.refused().unwrap().why;
        assert!(why.contains("policy.toml:2 denies it: history is shared"), "{why}");
        assert!(verdict(&own, "git push").refused().is_none());
        assert_eq!(verdict(&own, "git commit -m x").level, Level::Safe);
        assert_eq!(
            verdict(&own, "git commit -m x; git stash drop").level,
            Level::Caution,
            "only what is named is allowed"
        );
        assert_eq!(verdict(&own, "curl https://example.com").level, Level::Caution);
        assert!(verdict(&own, "sudo rm -rf /srv/data/old").refused().is_some());
        assert!(verdict(&own, "rm -rf /srv/database").refused().is_none(), "a folder is not the beginning of a name");
    }

    #[test]
    fn allowing_never_removes_a_danger() {
        let (own, _) = policy(USER, Owner::User);
        for text in ["rm -rf /", "sudo rm -rf ~", "rm notes.txt; rm -rf /etc"] {
            assert_eq!(verdict(std::slice::from_ref(&own), text).level, Level::Danger, "{text}");
        }
        assert_eq!(verdict(std::slice::from_ref(&own), "rm notes.txt").level, Level::Safe);
    }

    #[test]
    fn a_project_may_only_tighten() {
        let text =
            "[[allow]]\nprogram = 'rm'\nmatches = ['rm x']\n\n[[confirm]]\nprogram = 'git'\nmatches = ['git status']\n";
        let (project, faults) = policy(text, Owner::Project);
        assert!(faults.len() == 1 && faults[0].starts_with("policy.toml:1: a project may"), "{faults:?}");
        let (own, _) = policy("[[allow]]\nprogram = 'git'\nmatches = ['git status']\n", Owner::User);
        let both = [own, project];
        assert_eq!(verdict(&both, "rm x").level, Level::Caution);
        assert_eq!(verdict(&both, "git status").level, Level::Caution, "what the project asks about stays asked about");
    }

    #[test]
    fn a_rule_that_fails_its_examples_is_reported_and_not_used() {
        let text = "# mine\n[[deny]]\nprogram = 'rm'\nmatches = ['ls']\n\n[[deny]]\nprogram = 'ls'\n\n[[deny]]\nmatches = ['ls']\n\n[[deny]]\nprogram = 'ls'\nmatches = ['ls']\nnot_matches = ['ls -l']\n";
        let (own, faults) = policy(text, Owner::User);
        let lines: Vec<&str> = faults.iter().filter_map(|f| f.split(": ").next()).collect();
        assert_eq!(lines, ["policy.toml:2", "policy.toml:6", "policy.toml:9", "policy.toml:12"], "{faults:?}");
        assert!(verdict(&[own], "rm x").refused().is_none());
    }

    #[test]
    fn an_invalid_policy_is_reported_with_its_line() {
        for (text, told) in [
            ("[[deny]]\nprogramm = 'rm'\n", "policy.toml:2: "),
            ("[[deny]\n", "policy.toml:1: "),
            ("[[deny]]\nprogram = 3\nmatches = ['x']\n", "policy.toml:"),
            ("[[forbid]]\nprogram = 'x'\n", "policy.toml:1: "),
        ] {
            let why = Policy::read(text, "policy.toml", Owner::User, Dialect::Bash).unwrap_err();
            assert!(why.starts_with(told), "{text}: {why}");
        }
    }

    #[test]
    fn paths_match_folders_and_patterns() {
        for (pattern, path, wanted) in [
            ("/etc", "/etc/hosts", true),
            ("/etc", "/etc", true),
            ("/etc", "/etcetera", false),
            ("./build", "build/x", true),
            ("*.key", "certs/a.key", true),
            ("*.key", "a.keys", false),
            ("/srv/*/data", "/srv/a/data", true),
            ("~/.ssh", "~/.ssh/id", true),
            (".", "notes.txt", false),
        ] {
            assert_eq!(fits(pattern, path), wanted, "{pattern} {path}");
        }
    }
}
