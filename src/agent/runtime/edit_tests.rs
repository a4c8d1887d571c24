//! A call that the person edits before it runs: what runs is the edited one, and nobody has agreed to that one yet.

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

/// A question as the person saw it.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    path: String,
    reasons: String,
    lasting: bool,
}

/// Says these words in their order, each with the arguments that it puts in the place of the asked ones; then no.
#[derive(Default)]
struct Person {
    says: Mutex<VecDeque<(Approval, Option<Args>)>>,
    asked: Mutex<Vec<Asked>>,
}

impl Approver for Person {
    fn ask(&self, question: Question) -> (Approval, Option<Args>) {
        let path = question.call.args["path"].as_str().unwrap_or_default().to_owned();
        let asked = Asked { path, reasons: question.reasons.join("; "), lasting: question.lasting };
        self.asked.lock().unwrap().push(asked);
        self.says.lock().unwrap().pop_front().unwrap_or((Approval::No, None))
    }
}

/// A tool that changes something, and knows with which arguments it was called.
struct Notes {
    fake: Fake,
    made: Arc<Mutex<Vec<String>>>,
}

impl Tool for Notes {
    fn spec(&self) -> &ToolSpec {
        self.fake.spec()
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        self.fake.effects(args, cx)
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        self.made.lock().unwrap().push(args["path"].as_str().unwrap_or_default().to_owned());
        self.fake.call(args, cx)
    }
}

/// Lets nobody touch what is locked.
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

/// A run in which the model writes these files in a step each, and what it came to.
struct Edited {
    bench: Bench,
    asked: Vec<Asked>,
    made: Vec<String>,
}

impl Edited {
    fn new(rights: Rights, writes: &[&str], says: Vec<(Approval, Option<Args>)>) -> Self {
        let mut replies: Vec<String> = writes.iter().map(|path| step(&[call("write", path)])).collect();
        replies.push(ANSWER.into());
        let mut bench = bench(&replies.iter().map(String::as_str).collect::<Vec<_>>());
        let person = Arc::new(Person { says: Mutex::new(says.into()), ..Person::default() });
        bench.runtime.approver = person.clone();
        let made = Arc::new(Mutex::default());
        bench.runtime.registry = Registry::default();
        let notes = Notes { fake: Fake::new("write", false), made: made.clone() };
        bench.runtime.registry.add(Arc::new(notes)).unwrap();
        let policy = Policy { root: "/w".into(), own: Vec::new(), rights };
        bench.runtime.guards = Guards::new(vec![Arc::new(policy), Arc::new(Locked)], &[]);
        assert_eq!(report(&bench, turn(8)).response, "ok");
        let (asked, made) = (person.asked.lock().unwrap().clone(), made.lock().unwrap().clone());
        Self { bench, asked, made }
    }

    fn asked(&self) -> Vec<&str> {
        self.asked.iter().map(|asked| asked.path.as_str()).collect()
    }

    /// Each result: how it ended, and what the model was told.
    fn results(&self) -> Vec<(Value, String)> {
        let events = self.bench.memory.events();
        let results = events.iter().filter(|e| matches!(e.event_type, Kind::ToolResult | Kind::ToolError));
        results.map(|e| (e.metadata["outcome"].clone(), e.output.as_str().unwrap().to_owned())).collect()
    }
}

#[test]
fn the_edited_call_is_asked_for_and_runs_in_the_place_of_the_original() {
    let says = vec![(Approval::Yes, path("/w/b")), (Approval::Yes, None)];
    let run = Edited::new(Rights::default(), &["/w/a"], says);
    assert_eq!((run.asked(), &run.made), (vec!["/w/a", "/w/b"], &vec!["/w/b".to_owned()]));
    assert_eq!(run.asked[1].reasons, "it writes /w/b", "what it is asked for is what the edited one does");
    assert_eq!(run.results(), [(json!("done"), "content of /w/b".to_owned())]);
    // and so it is recorded
    let events = run.bench.memory.events();
    let told = of(&events, Kind::ToolCall);
    assert_eq!((told.len(), &told[0].input["args"]["path"]), (1, &json!("/w/b")));
    assert_eq!(told[0].metadata["effects"]["writes"], json!(["/w/b"]));
    let edited: Vec<&Value> = of(&events, Kind::ApprovalGranted).iter().map(|e| &e.metadata["edited"]).collect();
    assert_eq!(edited, [&json!(true), &json!(false)]);
}

#[test]
fn an_edit_that_needs_no_question_runs_at_once() {
    // below the working folder nobody has to be asked here, outside of it always
    let changes = Rights { changes: true, removals: false };
    let run = Edited::new(changes, &["/etc/hosts"], vec![(Approval::Yes, path("/w/hosts"))]);
    assert_eq!((run.asked(), &run.made), (vec!["/etc/hosts"], &vec!["/w/hosts".to_owned()]));
}

#[test]
fn an_edit_that_leads_outside_or_is_dangerous_is_asked_for_anew() {
    for (edited, why) in [("/etc/passwd", "outside of /w"), ("rm", "dangerous")] {
        // also the word for the rest of the run was given to another call
        for first in [Approval::Yes, Approval::Always] {
            let no = Edited::new(Rights::default(), &["/w/a"], vec![(first, path(edited)), (Approval::No, None)]);
            assert_eq!(no.asked(), ["/w/a", edited], "{first:?}");
            assert!(no.asked[1].reasons.contains(why), "{:?}", no.asked[1]);
            assert!(!no.asked[1].lasting, "it is asked for each time");
            assert!(no.made.is_empty(), "{first:?}: {:?}", no.made);
            let (outcome, told) = no.results().remove(0);
            assert_eq!(outcome, "denied");
            assert!(told.starts_with("The user did not allow this call (") && told.contains(why), "{told}");
            // who agrees to that too has it
            let yes = Edited::new(Rights::default(), &["/w/a"], vec![(first, path(edited)), (Approval::Yes, None)]);
            assert_eq!((yes.asked(), &yes.made), (vec!["/w/a", edited], &vec![edited.to_owned()]));
        }
    }
}

#[test]
fn an_edit_that_a_guard_forbids_is_refused_and_one_that_is_no_call_too() {
    for (edited, outcome, why) in [
        (path("/w/locked"), "blocked", "It is locked."),
        (Some(Args::new()), "failed", "Argument Validation Error: `path` is required"),
    ] {
        let run = Edited::new(Rights::default(), &["/w/a"], vec![(Approval::Always, edited), (Approval::Yes, None)]);
        assert_eq!((run.asked(), run.made.len()), (vec!["/w/a"], 0));
        let (ended, told) = run.results().remove(0);
        assert_eq!(ended, outcome);
        assert!(told.starts_with(why), "{told}");
    }
}

#[test]
fn always_with_an_edit_holds_for_what_it_would_hold_for() {
    let says = vec![(Approval::Always, path("/w/b"))];
    let run = Edited::new(Rights::default(), &["/w/a", "/w/c", "/etc/passwd"], says);
    assert_eq!(run.asked(), ["/w/a", "/etc/passwd"]);
    assert_eq!(run.made, ["/w/b", "/w/c"]);
}

#[test]
fn who_goes_on_editing_or_says_no_with_an_edit_has_nothing_done() {
    let edits = |word| (1..9).map(|n| (word, path(&format!("/w/{n}")))).collect::<Vec<_>>();
    let run = Edited::new(Rights::default(), &["/w/a"], edits(Approval::Yes));
    assert_eq!((run.asked(), run.made.len()), (vec!["/w/a", "/w/1", "/w/2"], 0), "thrice is enough");
    assert_eq!(run.results()[0].0, "denied");
    let run = Edited::new(Rights::default(), &["/w/a"], edits(Approval::No));
    assert_eq!((run.asked(), run.made.len()), (vec!["/w/a"], 0));
}

/// The same with a tool that really writes: where a path leads is seen through its dots.
#[test]
fn an_edited_path_that_climbs_out_of_the_folder_writes_nothing_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("work");
    std::fs::create_dir(&root).unwrap();
    let args = |path: &str| {
        let fields = [("path".to_owned(), path.into()), ("content".to_owned(), "words".into())];
        fields.into_iter().collect::<Args>()
    };
    let written = "Thought: go\nAction: write {\"path\": \"in.txt\", \"content\": \"words\"}";
    let mut bench = bench(&[written, ANSWER]);
    let says = vec![(Approval::Always, Some(args("sub/../../out.txt"))), (Approval::No, None)];
    let person = Arc::new(Person { says: Mutex::new(says.into()), ..Person::default() });
    bench.runtime.approver = person.clone();
    bench.runtime.registry = Registry::default();
    bench.runtime.registry.add(Arc::new(Write::default())).unwrap();
    bench.runtime.config.root = root.clone();
    let policy = Policy { root: root.clone(), own: Vec::new(), rights: Rights::default() };
    bench.runtime.guards = Guards::new(vec![Arc::new(policy)], &[]);
    report(&bench, turn(8));
    let asked = person.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    let out =
        format!("it changes {}, which is outside of {}", root.with_file_name("out.txt").display(), root.display());
    assert_eq!(asked[1].reasons, out);
    assert!(!root.with_file_name("out.txt").exists() && !root.join("in.txt").exists());
}
