//! Tests every rule of `platform-rules/` on its own examples.

use caro::shell::rules::{Verdict, catalogue, rewritten, rule_matches};
use caro::shell::{Dialect, Severity, Target, parse};
use std::collections::HashSet;

/// The files whose rules apply to every system.
const EVERYWHERE: [&str; 3] = ["all", "machine", "services"];

/// The dialect of a file's examples: its own, or that of its system.
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
fn every_rule_matches_its_examples() {
    let mut wrong = Vec::new();
    for (file, rule) in catalogue() {
        // in files for every system, examples that begin with a cmdlet are PowerShell
        let cmdlet = |text: &str| {
            text.split(' ').next().is_some_and(|w| w.contains('-') && w.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        let dialect = |text: &str| {
            if EVERYWHERE.contains(&file) && cmdlet(text) { Dialect::PowerShell } else { dialect_of(file) }
        };
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
fn every_rule_is_complete() {
    let rules = catalogue();
    let mut ids = HashSet::new();
    let mut wrong = Vec::new();
    for (file, rule) in &rules {
        let mut add_fault = |what: &str| wrong.push(format!("{file}/{}: {what}", rule.id));
        if !ids.insert(rule.id.clone()) {
            add_fault("the id is taken");
        }
        if rule.matches.is_empty() || rule.not_matches.is_empty() {
            add_fault("needs examples of both kinds");
        }
        if rule.why.len() > 160 || rule.why.is_empty() || rule.source.is_empty() {
            add_fault("needs a short why and a source");
        }
        if rule.tool.is_empty() == rule.when.construct.is_none() {
            add_fault("needs either a tool or a construct");
        }
        let judged = matches!(rule.verdict, Verdict::Confirm | Verdict::Deny);
        if judged == rule.effect.is_empty() {
            add_fault("effect is for confirm and deny, and required there");
        }
        if judged && !EVERYWHERE.contains(file) {
            add_fault("harm is judged on every system: it belongs to all.toml, machine.toml or services.toml");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rules.len() >= 370, "only {} rules", rules.len());
}

#[test]
fn every_rewrite_removes_the_match() {
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
fn no_rewrite_changes_the_format_of_output_that_is_parsed() {
    let target = Target::named("macos-bsd").unwrap();
    let fix = |text: &str| {
        let findings = caro::shell::rules::check(&parse(text, Dialect::Zsh), target);
        assert_eq!(findings.len(), 1, "{text}: {findings:?}");
        findings[0].fix.clone()
    };
    for parsed in [
        "free -m | awk '/Mem/ {print $4}'",
        "free | head -n 2 | tail -n 1 | awk '{print $2}'",
        "echo \"$(free -m)\"",
        "diff <(lscpu) cpu.txt",
        "cat /etc/passwd | cut -d: -f1",
    ] {
        assert_eq!(fix(parsed), None, "{parsed}");
    }
    assert_eq!(fix("free -h").as_deref(), Some("vm_stat"));
    assert_eq!(fix("free -h | tee memory.txt").as_deref(), Some("vm_stat | tee memory.txt"));
    assert_eq!(fix("cat /etc/passwd | less").as_deref(), Some("dscl . -list /Users | less"));
    // a command with the same output format may replace the other anywhere
    assert_eq!(fix("make -j$(nproc)").as_deref(), Some("make -j$(sysctl -n hw.ncpu)"));
}

/// Correct commands, by system and shell: no rule may match one.
const GOOD: &[(&str, &str, &[&str])] = &[
    (
        "linux-gnu",
        "bash",
        &[
            "ps aux --sort=-%cpu | head -n 6",
            "ps -eo pid,comm,%mem --sort=-%mem | head",
            "find . -type f -name '*.log' -size +10M -mtime -7 -exec ls -lh {} +",
            "find . -printf '%s %p\\n' | sort -rn | head -5",
            "find . -name '*.tmp' -print0 | xargs -0 -r rm -f",
            "du -ah . | sort -rh | head -n 20",
            "du -h --max-depth=1 | sort -h",
            "df -h --output=pcent,target",
            "ss -tulpn",
            "sed -i.bak 's/a/b/g' f.txt",
            "sed -i -e '/^$/d' f.txt",
            "grep -rnP '\\d{3}' --include='*.rs' src",
            "stat -c '%s %n' *",
            "date -d '2 days ago' +%F",
            "tar czf a.tgz --exclude=.git .",
            "awk -F: '{print $1}' /etc/passwd | sort | uniq -c | sort -rn",
            "ls -lhS | head -n 5",
            "tail -n +2 f | cut -d, -f1,3",
            "top -b -n 1 | head -n 15",
            "journalctl -u ssh --since '1 hour ago'",
            "kill -9 1234",
            "for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done",
            "ls -t | head -n 1",
            "wc -l *.rs | sort -n",
            "echo aGk= | base64 -d",
            "lsof -i :8080",
        ],
    ),
    (
        "macos-bsd",
        "zsh",
        &[
            "ps aux -r | head -n 6",
            "ps -axo pid,comm,%mem -m | head -n 6",
            "find . -type f -name '*.log' -size +10M -exec ls -lh {} +",
            "lsof -nP -iTCP -sTCP:LISTEN",
            "sed -i '' 's/a/b/g' f.txt",
            "stat -f '%z %N' *",
            "date -v-2d +%F",
            "du -h -d 1 | sort -h",
            "tail -r f",
            "pbpaste | wc -w",
            "netstat -rn",
            "sysctl -n hw.ncpu",
            "grep -rnE '[0-9]+' src",
            "ls -lhS | head -n 5",
            "find . -name '*.tmp' -print0 | xargs -0 rm -f",
            "top -l 1 -n 10 -o cpu",
            "vm_stat",
            "md5 -r f",
        ],
    ),
    (
        "linux-busybox",
        "sh",
        &[
            "ps",
            "ps -o pid,comm,rss",
            "netstat -tln",
            "du -d 1 | sort -n",
            "find . -type f -name '*.log' -exec ls -l {} +",
            "grep -rn x .",
            "top -b -n 1 | head -n 10",
            "stat -c %s f",
            "[ -f a ] && echo yes",
            "i=$((i + 1)); echo \"$i\" > f 2>&1",
        ],
    ),
    (
        "windows",
        "powershell",
        &[
            "Get-Process | Sort-Object CPU -Descending | Select-Object -First 5",
            "Get-ChildItem -Recurse -Filter *.log | Measure-Object -Property Length -Sum",
            "Get-Content f.txt | Select-String foo",
            "Get-NetTCPConnection -State Listen",
            "ls -Recurse | Where-Object { $_.Length -gt 1MB } | Select-Object -First 3 Name",
            "Remove-Item build -Recurse -Force",
            "ping -n 3 host",
            "Copy-Item a b -Recurse",
        ],
    ),
    (
        "linux-gnu",
        "fish",
        &[
            "for f in *.txt; wc -l $f; end",
            "set x (date +%F); echo $x",
            "test -f a; and echo yes",
            "ls | sort -h",
            "read -P 'Name? ' n",
        ],
    ),
    ("linux-gnu", "zsh", &["ls -l *.txt", "setopt extendedglob", "[[ a == b ]] && echo x", "read -r line"]),
    (
        "freebsd",
        "sh",
        &["ps aux | sort -nrk 3 | head -n 5", "sockstat -l", "sed -i '' 's/a/b/' f", "service nginx status"],
    ),
];

#[test]
fn no_rule_matches_a_correct_command() {
    let mut wrong = Vec::new();
    for (target, shell, commands) in GOOD {
        let target = Target::named(target).unwrap();
        let dialect = Dialect::ALL.iter().find(|(name, _)| name == shell).unwrap().1;
        for text in *commands {
            let script = parse(text, dialect);
            let found = caro::shell::rules::check(&script, target);
            if !found.is_empty() || !script.errors.is_empty() {
                wrong.push(format!(
                    "{shell}: {text}: {:?} {:?}",
                    found.iter().map(|f| &f.id).collect::<Vec<_>>(),
                    script.errors
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
