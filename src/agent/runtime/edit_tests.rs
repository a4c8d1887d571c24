//! Tests calls that the user edits before they run: the edited call runs, and it needs consent of its own.

use super::tests::{ANSWER, Bench, Fake, bench, call, of, report, step, turn};
use super::*;
use crate::guard::Guards;
use crate::guard::{Finding, Guard, GuardError, Policy, Rights, Verdict};
use crate::observe::Raw;
use crate::state::RunState;
use crate::tool::Call;
use crate::tool::Registry;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError};
use crate::tools::Write;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Mutex;

/// A question as the user saw it.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    path: String,
    reasons: String,
    lasting: bool,
}

/// Gives these answers in order, each with the arguments that replace the original ones; then says no.
#[derive(Default)]
struct ScriptedUser {
    replies: Mutex<VecDeque<(Approval, Option<Args>)>>,
    asked: Mutex<Vec<Asked>>,
}

impl Approver for ScriptedUser {
    fn ask(&self, question: Question) -> (Approval, Option<Args>) {
        let path = question.call.args["path"].as_str().unwrap_or_default().to_owned();
        let asked = Asked { path, reasons: question.reasons.join("; "), lasting: question.lasting };
        self.asked.lock().unwrap().push(asked);
        self.replies.lock().unwrap().pop_front().unwrap_or((Approval::No, None))
    }
}

/// A tool that changes something and records the paths it was called with.
struct Notes {
    fake: Fake,
    executed: Arc<Mutex<Vec<String>>>,
}

impl Tool for Notes {
    fn spec(&self) -> &ToolSpec {
        self.fake.spec()
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        self.fake.effects(args, cx)
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        self.executed.lock().unwrap().push(args["path"].as_str().unwrap_or_default().to_owned());
        self.fake.call(args, cx)
    }
}

/// A guard that denies calls for one path.
struct Locked;

impl Guard for Locked {
    fn name(&self) -> &'static str {
        "locked"
    }

    fn check(&self, call: &Call, _: &RunState) -> Result<Verdict, GuardError> {
        Ok(match call.args["path"].as_str() {
            Some("/w/locked") => Verdict::Deny(Finding { id: "locked".into(), text: "It is locked.".into() }),
            _ => Verdict::Allow,
        })
    }
}

fn path(path: &str) -> Option<Args> {
    Some([("path".to_owned(), path.into())].into_iter().collect())
}

/// The record of a run in which the model writes these files, one per step.
struct Edited {
    bench: Bench,
    asked: Vec<Asked>,
    executed: Vec<String>,
}

impl Edited {
    fn new(rights: Rights, writes: &[&str], replies: Vec<(Approval, Option<Args>)>) -> Self {
        let mut steps: Vec<String> = writes.iter().map(|path| step(&[call("write", path)])).collect();
        steps.push(ANSWER.into());
        let mut bench = bench(&steps.iter().map(String::as_str).collect::<Vec<_>>());
        let user = Arc::new(ScriptedUser { replies: Mutex::new(replies.into()), ..ScriptedUser::default() });
        bench.runtime.approver = user.clone();
        let executed = Arc::new(Mutex::default());
        bench.runtime.registry = Registry::default();
        let notes = Notes { fake: Fake::new("write", false), executed: executed.clone() };
        bench.runtime.registry.add(Arc::new(notes)).unwrap();
        let policy = Policy { root: "/w".into(), own: Vec::new(), rights };
        bench.runtime.guards = Guards::new(vec![Arc::new(policy), Arc::new(Locked)], &[]);
        assert_eq!(report(&bench, turn(8)).response, "ok");
        let (asked, executed) = (user.asked.lock().unwrap().clone(), executed.lock().unwrap().clone());
        Self { bench, asked, executed }
    }

    fn asked(&self) -> Vec<&str> {
        self.asked.iter().map(|asked| asked.path.as_str()).collect()
    }

    /// Returns each result: its outcome and the text for the model.
    fn results(&self) -> Vec<(Value, String)> {
        let events = self.bench.memory.events();
        let results = events.iter().filter(|e| matches!(e.event_type, Kind::ToolResult | Kind::ToolError));
        results.map(|e| (e.metadata["outcome"].clone(), e.output.as_str().unwrap().to_owned())).collect()
    }
}

#[test]
fn an_edited_call_is_asked_for_and_replaces_the_original() {
    let replies = vec![(Approval::Yes, path("/w/b")), (Approval::Yes, None)];
    let run = Edited::new(Rights::default(), &["/w/a"], replies);
    assert_eq!((run.asked(), &run.executed), (vec!["/w/a", "/w/b"], &vec!["/w/b".to_owned()]));
    assert_eq!(run.asked[1].reasons, "it writes /w/b", "what it is asked for is what the edited one does");
    assert_eq!(run.results(), [(json!("done"), "content of /w/b".to_owned())]);
    // the events record the edited call
    let events = run.bench.memory.events();
    let calls = of(&events, Kind::ToolCall);
    assert_eq!((calls.len(), &calls[0].input["args"]["path"]), (1, &json!("/w/b")));
    assert_eq!(calls[0].metadata["effects"]["writes"], json!(["/w/b"]));
    let edited: Vec<&Value> = of(&events, Kind::ApprovalGranted).iter().map(|e| &e.metadata["edited"]).collect();
    assert_eq!(edited, [&json!(true), &json!(false)]);
}

#[test]
fn an_edit_that_needs_no_consent_runs_at_once() {
    // changes in the working directory are allowed here; outside of it consent is always needed
    let changes = Rights { changes: true, removals: false };
    let run = Edited::new(changes, &["/etc/hosts"], vec![(Approval::Yes, path("/w/hosts"))]);
    assert_eq!((run.asked(), &run.executed), (vec!["/etc/hosts"], &vec!["/w/hosts".to_owned()]));
}

#[test]
fn an_edit_to_an_outside_path_or_a_dangerous_call_is_asked_for_again() {
    for (edited, why) in [("/etc/passwd", "outside of /w"), ("rm", "dangerous")] {
        // `always` was given to the original call, not to the edited one
        for first in [Approval::Yes, Approval::Always] {
            let no = Edited::new(Rights::default(), &["/w/a"], vec![(first, path(edited)), (Approval::No, None)]);
            assert_eq!(no.asked(), ["/w/a", edited], "{first:?}");
            assert!(no.asked[1].reasons.contains(why), "{:?}", no.asked[1]);
            assert!(!no.asked[1].lasting, "it is asked for each time");
            assert!(no.executed.is_empty(), "{first:?}: {:?}", no.executed);
            let (outcome, text) = no.results().remove(0);
            assert_eq!(outcome, "denied");
            assert!(text.starts_with("The user did not allow this call (") && text.contains(why), "{text}");
            // with consent the edited call runs
            let yes = Edited::new(Rights::default(), &["/w/a"], vec![(first, path(edited)), (Approval::Yes, None)]);
            assert_eq!((yes.asked(), &yes.executed), (vec!["/w/a", edited], &vec![edited.to_owned()]));
        }
    }
}

#[test]
fn an_edit_that_is_denied_or_invalid_does_not_run() {
    for (edited, outcome, why) in [
        (path("/w/locked"), "blocked", "It is locked."),
        (Some(Args::new()), "failed", "Argument Validation Error: `path` is required"),
    ] {
        let run = Edited::new(Rights::default(), &["/w/a"], vec![(Approval::Always, edited), (Approval::Yes, None)]);
        assert_eq!((run.asked(), run.executed.len()), (vec!["/w/a"], 0));
        let (ended, text) = run.results().remove(0);
        assert_eq!(ended, outcome);
        assert!(text.starts_with(why), "{text}");
    }
}

#[test]
fn always_with_an_edit_applies_like_any_other() {
    let replies = vec![(Approval::Always, path("/w/b"))];
    let run = Edited::new(Rights::default(), &["/w/a", "/w/c", "/etc/passwd"], replies);
    assert_eq!(run.asked(), ["/w/a", "/etc/passwd"]);
    assert_eq!(run.executed, ["/w/b", "/w/c"]);
}

#[test]
fn nothing_runs_after_too_many_edits_or_a_denial_with_an_edit() {
    let edits = |word| (1..9).map(|n| (word, path(&format!("/w/{n}")))).collect::<Vec<_>>();
    let run = Edited::new(Rights::default(), &["/w/a"], edits(Approval::Yes));
    assert_eq!((run.asked(), run.executed.len()), (vec!["/w/a", "/w/1", "/w/2"], 0), "thrice is enough");
    assert_eq!(run.results()[0].0, "denied");
    let run = Edited::new(Rights::default(), &["/w/a"], edits(Approval::No));
    assert_eq!((run.asked(), run.executed.len()), (vec!["/w/a"], 0));
}

/// Uses the real write tool: the dots in a path are resolved.
#[test]
fn an_edited_path_that_leaves_the_folder_needs_consent() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("work");
    std::fs::create_dir(&root).unwrap();
    let args = |path: &str| {
        let fields = [("path".to_owned(), path.into()), ("content".to_owned(), "words".into())];
        fields.into_iter().collect::<Args>()
    };
    let written = "Thought: go\nAction: write {\"path\": \"in.txt\", \"content\": \"words\"}";
    let mut bench = bench(&[written, ANSWER]);
    let replies = vec![(Approval::Always, Some(args("sub/../../out.txt"))), (Approval::No, None)];
    let user = Arc::new(ScriptedUser { replies: Mutex::new(replies.into()), ..ScriptedUser::default() });
    bench.runtime.approver = user.clone();
    bench.runtime.registry = Registry::default();
    bench.runtime.registry.add(Arc::new(Write::new(None))).unwrap();
    bench.runtime.config.root = root.clone();
    let policy = Policy { root: root.clone(), own: Vec::new(), rights: Rights::default() };
    bench.runtime.guards = Guards::new(vec![Arc::new(policy)], &[]);
    report(&bench, turn(8));
    let asked = user.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    let out =
        format!("it changes {}, which is outside of {}", root.with_file_name("out.txt").display(), root.display());
    assert_eq!(asked[1].reasons, out);
    assert!(!root.with_file_name("out.txt").exists() && !root.join("in.txt").exists());
}
