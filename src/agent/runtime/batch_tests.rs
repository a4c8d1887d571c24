//! Tests which calls of a batch run in parallel, and that a call keeps its result whatever happens to the others.
//!
//! The tests do not depend on the speed of the machine: calls wait for each other as long as it takes.

use super::tests::{ANSWER, Bench, bench, call, of, report, step, turn};
use super::*;
use crate::guard::Guards;
use crate::observe::Raw;
use crate::tool::Call;
use crate::tool::Registry;
use crate::tool::{Args, Effects, Outcome, Tool, ToolCx, ToolError, ToolResult};
use crate::turn::Task;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Time a call waits for an expected event; longer than any machine needs.
const AMPLE: Duration = Duration::from_secs(60);
/// Time a call watches for another that must not run beside it. It passes in full if all is right, so it is short.
const OBSERVE_TIME: Duration = Duration::from_millis(100);

/// The calls by name, as they begin and end.
#[derive(Debug, Default)]
struct Log {
    /// The running calls.
    inside: Vec<String>,
    /// The most calls that ran at once.
    most: usize,
    /// The calls, in the order in which they began.
    began: Vec<String>,
    /// The calls that noticed their timeout.
    notified: Vec<String>,
    /// The calls, in the order in which they ended.
    ended: Vec<String>,
    /// The calls that ran beside one that must run alone.
    beside: Vec<String>,
}

/// Lets calls observe each other.
#[derive(Default)]
struct Observer {
    log: Mutex<Log>,
    changed: Condvar,
}

impl Observer {
    fn note(&self, what: impl FnOnce(&mut Log)) {
        what(&mut self.log.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until the condition holds; false after this time.
    fn wait_until(&self, time: Duration, condition: impl Fn(&Log) -> bool) -> bool {
        let log = self.log.lock().unwrap();
        let (log, _) = self.changed.wait_timeout_while(log, time, |log| !condition(log)).unwrap();
        condition(&log)
    }
}

/// Records a call as running until it is dropped, also by a panic.
struct Presence<'a>(&'a Observer, &'a str);

impl<'a> Presence<'a> {
    fn new(observer: &'a Observer, name: &'a str) -> Self {
        observer.note(|log| {
            log.inside.push(name.to_owned());
            log.began.push(name.to_owned());
            log.most = log.most.max(log.inside.len());
            if log.inside.len() > 1 && log.inside.iter().any(|one| one.starts_with("alone")) {
                log.beside.clone_from(&log.inside);
            }
        });
        Self(observer, name)
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.note(|log| {
            log.inside.retain(|one| one != self.1);
            log.ended.push(self.1.to_owned());
        });
    }
}

type Behaviour = fn(&str, &Observer, &ToolCx) -> Result<Raw, ToolError>;

/// A tool whose calls are observed.
struct ObservedTool {
    spec: ToolSpec,
    observer: Arc<Observer>,
    behaviour: Behaviour,
}

impl Tool for ObservedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, _: &ToolCx) -> Effects {
        let path = args["path"].as_str().unwrap_or_default().into();
        match self.spec.name.as_str() {
            "write" => Effects { writes: vec![path], ..Effects::default() },
            _ => Effects { reads: vec![path], ..Effects::default() },
        }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let name = args["path"].as_str().unwrap_or_default();
        let _presence = Presence::new(&self.observer, name);
        (self.behaviour)(name, &self.observer, cx)
    }
}

/// Creates a runtime with observed tools, each given by its name, whether it may run in parallel, and its timeout.
fn observed_bench(tools: &[(&str, bool, Duration)], replies: &[&str], behaviour: Behaviour) -> (Bench, Arc<Observer>) {
    let mut bench = bench(replies);
    let observer = Arc::new(Observer::default());
    bench.runtime.registry = Registry::default();
    for (name, parallel, timeout) in tools {
        let mut spec = ToolSpec::new(name, "does it.", json!({"path": {"type": "string"}}), &["path"]);
        (spec.parallel, spec.core, spec.timeout) = (*parallel, true, *timeout);
        bench.runtime.registry.add(Arc::new(ObservedTool { spec, observer: observer.clone(), behaviour })).unwrap();
    }
    // no guards: every call is allowed
    bench.runtime.guards = Guards::default();
    (bench, observer)
}

/// Executes a batch of calls, given as `(tool, path)`.
fn run_batch(bench: &Bench, calls: &[(&str, &str)]) -> Vec<ToolResult> {
    let call = |(at, (tool, path)): (usize, &(&str, &str))| {
        let args = [("path".to_owned(), (*path).into())].into_iter().collect();
        Call { id: format!("s1c{}", at + 1), tool: (*tool).into(), args, effects: Effects::default() }
    };
    let calls = calls.iter().enumerate().map(call).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (results, _) = runtime.block_on(bench.runtime.act(&mut turn(8), calls, false)).unwrap();
    // an abandoned call may still be running
    runtime.shutdown_background();
    results
}

fn outcomes(results: &[ToolResult]) -> Vec<(&str, Outcome, &str)> {
    results.iter().map(|one| (one.call.id.as_str(), one.outcome, one.text.as_str())).collect()
}

#[test]
fn two_calls_that_only_read_run_in_parallel() {
    let (bench, observer) = observed_bench(&[("read", true, 5 * AMPLE)], &[ANSWER], |name, observer, _| {
        let met = observer.wait_until(AMPLE, |log| log.began.len() == 2);
        met.then(|| Raw::text(format!("{name} met the other"))).ok_or(ToolError::Failed("nobody came".into()))
    });
    let results = run_batch(&bench, &[("read", "a"), ("read", "b")]);
    assert_eq!(
        outcomes(&results),
        [("s1c1", Outcome::Succeeded, "a met the other"), ("s1c2", Outcome::Succeeded, "b met the other")]
    );
    assert_eq!(observer.log.lock().unwrap().most, 2);
}

#[test]
fn as_many_calls_run_at_once_as_are_allowed() {
    // a call waits until the limit is reached, and then watches for one too many
    let fills: [(usize, Behaviour); 3] = [
        (1, |name, observer, _| fill(1, name, observer)),
        (2, |name, observer, _| fill(2, name, observer)),
        (4, |name, observer, _| fill(4, name, observer)),
    ];
    fn fill(limit: usize, name: &str, observer: &Observer) -> Result<Raw, ToolError> {
        if !observer.wait_until(AMPLE, |log| log.most >= limit) {
            return Err(ToolError::Failed(format!("{limit} were never there at once")));
        }
        observer.wait_until(OBSERVE_TIME, |log| log.most > limit);
        Ok(Raw::text(name))
    }
    for (limit, behaviour) in fills {
        let (mut bench, observer) = observed_bench(&[("read", true, 5 * AMPLE)], &[ANSWER], behaviour);
        bench.runtime.config.parallel = limit;
        let results = run_batch(&bench, &["a", "b", "c", "d", "e"].map(|path| ("read", path)));
        let texts: Vec<&str> = results.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d", "e"]);
        assert_eq!(observer.log.lock().unwrap().most, limit);
    }
}

#[test]
fn a_call_that_changes_something_runs_alone_and_in_order() {
    // `write` runs alone because of its effects, `ask` because of its spec
    let tools = [("read", true, 5 * AMPLE), ("write", true, 5 * AMPLE), ("ask", false, 5 * AMPLE)];
    let (bench, observer) = observed_bench(&tools, &[ANSWER], |name, observer, _| {
        observer.wait_until(OBSERVE_TIME, |log| !log.beside.is_empty());
        Ok(Raw::text(name))
    });
    let batch = [
        ("read", "a"),
        ("read", "b"),
        ("write", "alone1"),
        ("read", "c"),
        ("write", "alone2"),
        ("write", "alone3"),
        ("ask", "alone4"),
        ("ask", "alone5"),
        ("read", "d"),
    ];
    let results = run_batch(&bench, &batch);
    assert!(results.iter().all(|one| one.outcome == Outcome::Succeeded), "{results:#?}");
    let log = observer.log.lock().unwrap();
    assert!(log.beside.is_empty(), "{:?} were there at once", log.beside);
    // the two parallel calls may begin in either order
    let mut began: Vec<&str> = log.began.iter().map(String::as_str).collect();
    began[..2].sort_unstable();
    assert_eq!(began, batch.map(|(_, path)| path), "what was read before a change was to be read before it");
}

#[test]
fn a_failure_leaves_the_other_results_complete_and_in_order() {
    let batch = ["late", "fail", "panic", "ok"].map(|path| call("read", path));
    let replies = [step(&batch), ANSWER.into()];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let (bench, observer) = observed_bench(&[("read", true, 5 * AMPLE)], &replies, |name, observer, _| match name {
        "fail" => Err(ToolError::Failed("no such file".into())),
        "panic" => panic!("on purpose"),
        "late" if !observer.wait_until(AMPLE, |log| log.ended.len() == 3) => {
            Err(ToolError::Failed("the others have not ended".into()))
        }
        _ => Ok(Raw::text(format!("{name}: the first line\n{name}: the last line"))),
    });
    let report = report(&bench, AgentRun::new(Task { batch: 4, ..turn(8).task().clone() }));
    assert_eq!(report.status, "completed");
    assert_eq!(observer.log.lock().unwrap().ended.last().map(String::as_str), Some("late"));
    let events = bench.memory.events();
    let results: Vec<(&str, Kind, &str)> = events
        .iter()
        .filter(|e| matches!(e.event_type, Kind::ToolResult | Kind::ToolError))
        .map(|e| (e.span_id.as_str(), e.event_type, e.output.as_str().unwrap()))
        .collect();
    let defect = "the tool failed inside (a defect of the tool, not of the call): take another way";
    assert_eq!(
        results,
        [
            ("s1c1", Kind::ToolResult, "late: the first line\nlate: the last line"),
            ("s1c2", Kind::ToolError, "no such file"),
            ("s1c3", Kind::ToolError, defect),
            ("s1c4", Kind::ToolResult, "ok: the first line\nok: the last line"),
        ]
    );
    let errors: Vec<Option<&str>> = of(&events, Kind::ToolError).iter().map(|e| e.error.as_deref()).collect();
    assert_eq!(errors, [Some("no such file"), Some(defect)]);
    // the model gets all results in one prompt
    let asked = of(&events, Kind::ModelCall);
    let prompt = asked[1].input.as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    assert!(prompt.starts_with("Partial success:\n<observations>"), "{prompt}");
    let places: Vec<usize> = results.iter().map(|(_, _, text)| prompt.find(text).unwrap()).collect();
    assert!(places.is_sorted(), "{prompt}");
}

#[test]
fn each_call_has_its_own_time_limit() {
    let tools = [("read", true, 5 * AMPLE), ("stuck", true, Duration::from_millis(50))];
    let (bench, observer) = observed_bench(&tools, &[ANSWER], |name, observer, cx| {
        if name == "deaf" {
            // it notices its timeout and ignores it
            while !cx.cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(5));
            }
            observer.note(|log| log.notified.push(name.to_owned()));
            observer.wait_until(AMPLE, |log| log.notified.iter().any(|one| one == "enough"));
            return Ok(Raw::text("too late"));
        }
        if !observer.wait_until(AMPLE, |log| !log.notified.is_empty()) {
            return Err(ToolError::Failed("the other one was never told".into()));
        }
        // longer than the grace period of the other call
        std::thread::sleep(Duration::from_secs(1));
        Ok(Raw::text(format!("content of {name}")))
    });
    let results = run_batch(&bench, &[("read", "a"), ("stuck", "deaf"), ("read", "b")]);
    let outcomes = outcomes(&results);
    assert_eq!(
        (outcomes[0], outcomes[2]),
        (("s1c1", Outcome::Succeeded, "content of a"), ("s1c3", Outcome::Succeeded, "content of b"))
    );
    assert_eq!(outcomes[1].1, Outcome::TimedOut);
    assert!(outcomes[1].2.starts_with("Tool call timed out"), "{}", outcomes[1].2);
    assert!(!observer.log.lock().unwrap().ended.iter().any(|one| one == "deaf"), "it was waited for");
    observer.note(|log| log.notified.push("enough".into()));
}
