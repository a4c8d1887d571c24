//! Every rule of `platform-rules/` is run on its own examples.

use caro::shell::rules::{Verdict, catalogue, rewritten, rule_matches};
use caro::shell::{Dialect, Rules, Severity, Target, parse, platform_notes};
use std::collections::HashSet;

/// The dialects that a file's examples are read in: its own, or for a system those that run there.
fn dialect_of(file: &str) -> Dialect {
    match file {
        "zsh" => Dialect::Zsh,
        "fish" => Dialect::Fish,
        "posix-sh" | "linux-busybox" => Dialect::Sh,
        "powershell" | "windows" => Dialect::PowerShell,
        _ => Dialect::Bash,
    }
}

#[test]
fn every_rule_holds_on_its_examples() {
    let mut wrong = Vec::new();
    for (file, rule) in catalogue() {
        // `all` holds for every shell: its examples that begin with a cmdlet are read as PowerShell.
        let cmdlet = |text: &str| {
            text.split(' ').next().is_some_and(|w| w.contains('-') && w.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let dialect = |text: &str| if file == "all" && cmdlet(text) { Dialect::PowerShell } else { dialect_of(file) };
        for text in &rule.matches {
            if !rule_matches(rule, &parse(text, dialect(text))) {
                wrong.push(format!("{file}/{} must match {text}", rule.id));
            }
        }
        for text in &rule.not_matches {
            if rule_matches(rule, &parse(text, dialect(text))) {
                wrong.push(format!("{file}/{} must not match {text}", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_is_whole() {
    let rules = catalogue();
    let mut ids = HashSet::new();
    let mut wrong = Vec::new();
    for (file, rule) in &rules {
        let mut say = |what: &str| wrong.push(format!("{file}/{}: {what}", rule.id));
        if !ids.insert(rule.id.clone()) {
            say("the id is taken");
        }
        if rule.matches.is_empty() || rule.not_matches.is_empty() {
            say("needs examples of both kinds");
        }
        if rule.why.len() > 160 || rule.why.is_empty() || rule.source.is_empty() {
            say("needs a short why and a source");
        }
        if rule.tool.is_empty() == rule.when.construct.is_none() {
            say("needs either a tool or a construct");
        }
        let judged = matches!(rule.verdict, Verdict::Confirm | Verdict::Deny);
        if judged == rule.effect.is_empty() {
            say("effect is for confirm and deny, and required there");
        }
        if judged && *file != "all" {
            say("harm is judged on every system: it belongs to all.toml");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rules.len() >= 190, "only {} rules", rules.len());
}

#[test]
fn every_rewrite_mends() {
    let mut wrong = Vec::new();
    for (file, rule) in catalogue() {
        if rule.rewrite.is_none() {
            continue;
        }
        for text in &rule.matches {
            let dialect = dialect_of(file);
            match rewritten(rule, &parse(text, dialect)) {
                None => wrong.push(format!("{file}/{}: no rewrite of {text}", rule.id)),
                Some(new) if rule_matches(rule, &parse(&new, dialect)) => {
                    wrong.push(format!("{file}/{}: {text} became {new}, which matches still", rule.id));
                }
                Some(new) if !parse(&new, dialect).errors.is_empty() => {
                    wrong.push(format!("{file}/{}: {text} became {new}, which does not parse", rule.id));
                }
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn notes_are_short_and_there_is_some_for_all() {
    for (name, target) in Target::ALL {
        for (shell, dialect) in Dialect::ALL {
            let notes: Vec<_> = platform_notes(target, dialect).collect();
            assert!(notes.len() >= 2, "{name} and {shell}");
            assert!(notes.iter().all(|n| n.len() <= 120), "{name} and {shell}: {notes:?}");
        }
    }
}

#[test]
fn a_rule_becomes_a_finding_with_a_fix() {
    let target = Target::named("macos-bsd").unwrap();
    let script = parse("cat a | sed -i 's/a/b/' f.txt", Dialect::Zsh);
    let findings = caro::shell::rules::check(&script, target);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].severity, Severity::Error);
    assert_eq!(&script.text[findings[0].span.clone().unwrap()], "-i");
    assert_eq!(findings[0].fix.as_deref(), Some("cat a | sed -i '' 's/a/b/' f.txt"));
    let linux = Target::named("linux-gnu").unwrap();
    assert!(caro::shell::rules::check(&script, linux).is_empty());
}

#[test]
fn user_rules_add_and_tighten_but_never_loosen() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let rule = |id: &str, verdict: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ntool = [\"frobnicate\"]\nverdict = \"{verdict}\"\neffect = \"x\"\nwhy = \"no\"\nsource = \"me\"\nmatches = []\nnot_matches = []\n"
        )
    };
    write("all.toml", &rule("mine", "deny"));
    let rules = Rules::load(Some(dir.path())).unwrap();
    let script = parse("frobnicate x", Dialect::Bash);
    let risk = caro::shell::safety::assess_with(&script, &rules);
    assert_eq!(risk.level, caro::shell::Level::Danger);
    assert_eq!(risk.reasons[0].token, "frobnicate");

    write("all.toml", &rule("git-clean-force", "confirm"));
    let error = Rules::load(Some(dir.path())).unwrap_err();
    assert!(error.to_string().contains("git-clean-force") && error.hint().contains("stricter"), "{error}");

    write("all.toml", "[[rule]]\nid = \"x\"\ntool = [\"y\"]\nverdit = \"deny\"\n");
    let error = Rules::load(Some(dir.path())).unwrap_err().to_string();
    assert!(error.contains("all.toml, line 4"), "{error}");

    write("all.toml", "");
    write("atari.toml", "");
    let error = Rules::load(Some(dir.path())).unwrap_err();
    assert!(error.to_string().contains("atari.toml") && error.hint().contains("macos-bsd"), "{error}");
    assert!(Rules::load(Some(&dir.path().join("none"))).is_ok());
    assert!(Rules::load(None).is_ok());
}
