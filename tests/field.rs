//! Tests the real model on requests of strangers that no fixture can judge: its commands are matched against patterns.
//! Requests whose commands can be run are in `benches/tasks/field.toml`.

use crate::real::Batch;
use crate::support::rows;
use regex::Regex;
use std::collections::BTreeMap;

/// Fewest right answers of the 23 cases; `benches/records/` says which.
const MIN_RIGHT: usize = 13;

/// A case of the list.
struct Case<'a> {
    id: &'a str,
    request: &'a str,
    /// A pattern that no right command matches; `-` for none.
    forbidden: &'a str,
    /// Patterns that every right command matches, joined by ` && `; `-` for none, `(none)` for a refusal.
    required: &'a str,
}

impl Case<'_> {
    /// True if the command is right; `None` is a refusal.
    fn is_right(&self, cmd: Option<&str>) -> bool {
        let matches = |pattern: &str, cmd: &str| Regex::new(pattern).unwrap().is_match(cmd);
        match cmd {
            None => self.required == "(none)",
            Some(_) if self.required == "(none)" => false,
            Some(cmd) => {
                let required = self.required.split(" && ").all(|e| e == "-" || matches(e, cmd));
                required && (self.forbidden == "-" || !matches(self.forbidden, cmd))
            }
        }
    }
}

/// The cases by target and shell.
fn cases() -> BTreeMap<(&'static str, &'static str), Vec<Case<'static>>> {
    let mut found: BTreeMap<_, Vec<Case>> = BTreeMap::new();
    for row in rows(include_str!("field.txt")) {
        let [id, target, shell, request, forbidden, required] = row[..] else { panic!("six columns: {row:?}") };
        found.entry((target, shell)).or_default().push(Case { id, request, forbidden, required });
    }
    found
}

#[test]
fn the_patterns_tell_right_from_wrong() {
    let cases: Vec<Case> = cases().into_values().flatten().collect();
    let case = |id: &str| cases.iter().find(|c| c.id == id).unwrap();
    for (id, right, wrong) in [
        ("f14", "fuser -k 8080/tcp", "lsof -i :8080 | grep -v grep | awk '{print $2}' | xargs kill -9"),
        ("f23", "journalctl -u nginx -p err --since yesterday", "journalctl -u nginx --since yesterday"),
        (
            "f26",
            "rsync -avn --exclude=.git --exclude=node_modules src/ web1:/srv/backup/",
            "rsync -avz --exclude='.git' --exclude='node_modules' src web1:/srv/backup",
        ),
        ("f27", "kubectl get pods -A --field-selector=status.phase!=Running", "kubectl get pods -A"),
        ("f30", "ssh -fN -L 5433:db.internal:5432 jump.example.com", "ssh -L 5433:db.internal:5432 jump.example.com &"),
        ("m01", "date -v+1H +%H:%M:%S", "date -v+1h +%H:%M:%S"),
        ("s03", "set -Ux EDITOR nano", "export EDITOR=nano"),
        (
            "p02",
            "Get-ChildItem -Recurse -Include *.jpg,*.png,*.gif",
            "Get-ChildItem -Recurse -File -Filter *.jpg,*.png",
        ),
        ("x04", "git switch (git branch --format='%(refname:short)' | fzf)", "git branch | fzf | git checkout"),
        (
            "d02",
            "find ~ -mindepth 1 -maxdepth 1 ! -name .ssh -exec rm -rf {} +",
            "find ~ -mindepth 1 ! -name .ssh -delete",
        ),
    ] {
        assert!(case(id).is_right(Some(right)), "{id}: {right}");
        assert!(!case(id).is_right(Some(wrong)), "{id}: {wrong}");
    }
    assert!(case("n01").is_right(None) && !case("n01").is_right(Some("echo hello")));
}

#[test]
#[ignore = "minutes of answers: benches/full.sh runs it"]
fn requests_of_strangers_are_answered() {
    if cfg!(debug_assertions) {
        println!("skipped: the answers take too long in a debug build");
        return;
    }
    let (mut all, mut missed) = (0, Vec::new());
    for ((target, shell), cases) in cases() {
        let args = ["--target", target, "--budget", "60", "--timeout", "120"];
        let Some(mut caro) = Batch::start_with(&args) else { return };
        for case in cases {
            let answer = caro.ask_in(shell, case.request);
            let cmd = answer["cmd"].as_str().filter(|cmd| !cmd.is_empty());
            all += 1;
            if !case.is_right(cmd) {
                missed.push(format!("{}: {} => {}", case.id, case.request, cmd.unwrap_or("(none)")));
            }
        }
    }
    println!("{} of {all}; missed: {missed:#?}", all - missed.len());
    assert!(all - missed.len() >= MIN_RIGHT, "{missed:#?}");
}
