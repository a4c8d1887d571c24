//! Which calls of a batch stand beside each other, and what a call keeps whatever becomes of the others.
//!
//! Nothing here goes by how fast the machine is: calls wait for each other, and for as long as it takes.

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

/// How long a call waits for what is to come: longer than any machine needs.
const AMPLE: Duration = Duration::from_secs(60);
/// How long a call looks out for one that must not be there. Who is right waits in vain, so it may be short.
const LOOKOUT: Duration = Duration::from_millis(100);

/// Who has been where the calls are made.
#[derive(Debug, Default)]
struct Seen {
    /// Who is there now.
    inside: Vec<String>,
    /// The most that were there at once.
    most: usize,
    /// Everybody, as they came.
    began: Vec<String>,
    /// Who was told that the time is up.
    told: Vec<String>,
    /// Who has gone, as they went.
    ended: Vec<String>,
    /// Those beside whom somebody stood who must be alone.
    beside: Vec<String>,
}

/// The place where calls are made, and see each other.
#[derive(Default)]
struct Floor {
    seen: Mutex<Seen>,
    changed: Condvar,
}

impl Floor {
    fn note(&self, what: impl FnOnce(&mut Seen)) {
        what(&mut self.seen.lock().unwrap());
        self.changed.notify_all();
    }

    /// True once it is so; false if it is not within this time.
    fn within(&self, time: Duration, so: impl Fn(&Seen) -> bool) -> bool {
        let seen = self.seen.lock().unwrap();
        let (seen, _) = self.changed.wait_timeout_while(seen, time, |seen| !so(seen)).unwrap();
        so(&seen)
    }
}

/// Who stands on the floor; gone when dropped, after a panic too.
struct Stands<'a>(&'a Floor, &'a str);

impl<'a> Stands<'a> {
    fn new(floor: &'a Floor, who: &'a str) -> Self {
        floor.note(|seen| {
            seen.inside.push(who.to_owned());
            seen.began.push(who.to_owned());
            seen.most = seen.most.max(seen.inside.len());
            if seen.inside.len() > 1 && seen.inside.iter().any(|one| one.starts_with("alone")) {
                seen.beside.clone_from(&seen.inside);
            }
        });
        Self(floor, who)
    }
}

impl Drop for Stands<'_> {
    fn drop(&mut self) {
        self.0.note(|seen| {
            seen.inside.retain(|one| one != self.1);
            seen.ended.push(self.1.to_owned());
        });
    }
}

type Does = fn(&str, &Floor, &ToolCx) -> Result<Raw, ToolError>;

/// A tool whose calls stand on a floor.
struct Stander {
    spec: ToolSpec,
    floor: Arc<Floor>,
    does: Does,
}

impl Tool for Stander {
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
        let who = args["path"].as_str().unwrap_or_default();
        let _there = Stands::new(&self.floor, who);
        (self.does)(who, &self.floor, cx)
    }
}

/// A runtime with these tools on one floor: a name, whether it may run beside others, how long a call may take.
fn standing(tools: &[(&str, bool, Duration)], replies: &[&str], does: Does) -> (Bench, Arc<Floor>) {
    let mut bench = bench(replies);
    let floor = Arc::new(Floor::default());
    bench.runtime.registry = Registry::default();
    for (name, parallel, timeout) in tools {
        let mut spec = ToolSpec::new(name, "does it.", json!({"path": {"type": "string"}}), &["path"]);
        (spec.parallel, spec.core, spec.timeout) = (*parallel, true, *timeout);
        bench.runtime.registry.add(Arc::new(Stander { spec, floor: floor.clone(), does })).unwrap();
    }
    // whatever is asked for may be done
    bench.runtime.guards = Guards::default();
    (bench, floor)
}

/// Has a batch of `(tool, path)` made.
fn act(bench: &Bench, calls: &[(&str, &str)]) -> Vec<ToolResult> {
    let call = |(at, (tool, path)): (usize, &(&str, &str))| {
        let args = [("path".to_owned(), (*path).into())].into_iter().collect();
        Call { id: format!("s1c{}", at + 1), tool: (*tool).into(), args, effects: Effects::default() }
    };
    let calls = calls.iter().enumerate().map(call).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (settled, _) = runtime.block_on(bench.runtime.act(&mut turn(8), calls, false)).unwrap();
    // one that was given up may stand there still
    runtime.shutdown_background();
    settled
}

fn told(settled: &[ToolResult]) -> Vec<(&str, Outcome, &str)> {
    settled.iter().map(|one| (one.call.id.as_str(), one.outcome, one.text.as_str())).collect()
}

#[test]
fn two_calls_that_only_read_meet() {
    let (bench, floor) = standing(&[("read", true, 5 * AMPLE)], &[ANSWER], |who, floor, _| {
        let met = floor.within(AMPLE, |seen| seen.began.len() == 2);
        met.then(|| Raw::text(format!("{who} met the other"))).ok_or(ToolError::Failed("nobody came".into()))
    });
    let settled = act(&bench, &[("read", "a"), ("read", "b")]);
    assert_eq!(
        told(&settled),
        [("s1c1", Outcome::Succeeded, "a met the other"), ("s1c2", Outcome::Succeeded, "b met the other")]
    );
    assert_eq!(floor.seen.lock().unwrap().most, 2);
}

#[test]
fn so_many_calls_run_at_once_as_are_allowed_and_not_one_more() {
    // who comes waits until as many are there as may be, and then looks out for one too many
    let fills: [(usize, Does); 3] = [
        (1, |who, floor, _| fill(1, who, floor)),
        (2, |who, floor, _| fill(2, who, floor)),
        (4, |who, floor, _| fill(4, who, floor)),
    ];
    fn fill(limit: usize, who: &str, floor: &Floor) -> Result<Raw, ToolError> {
        if !floor.within(AMPLE, |seen| seen.most >= limit) {
            return Err(ToolError::Failed(format!("{limit} were never there at once")));
        }
        floor.within(LOOKOUT, |seen| seen.most > limit);
        Ok(Raw::text(who))
    }
    for (limit, does) in fills {
        let (mut bench, floor) = standing(&[("read", true, 5 * AMPLE)], &[ANSWER], does);
        bench.runtime.config.parallel = limit;
        let settled = act(&bench, &["a", "b", "c", "d", "e"].map(|path| ("read", path)));
        let said: Vec<&str> = settled.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(said, ["a", "b", "c", "d", "e"]);
        assert_eq!(floor.seen.lock().unwrap().most, limit);
    }
}

#[test]
fn a_call_that_changes_something_stands_alone_and_in_its_place() {
    // one tool by what its calls do, the other by what it says of itself
    let tools = [("read", true, 5 * AMPLE), ("write", true, 5 * AMPLE), ("ask", false, 5 * AMPLE)];
    let (bench, floor) = standing(&tools, &[ANSWER], |who, floor, _| {
        floor.within(LOOKOUT, |seen| !seen.beside.is_empty());
        Ok(Raw::text(who))
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
    let settled = act(&bench, &batch);
    assert!(settled.iter().all(|one| one.outcome == Outcome::Succeeded), "{settled:#?}");
    let seen = floor.seen.lock().unwrap();
    assert!(seen.beside.is_empty(), "{:?} were there at once", seen.beside);
    // the two that stand together come as they come
    let mut began: Vec<&str> = seen.began.iter().map(String::as_str).collect();
    began[..2].sort_unstable();
    assert_eq!(began, batch.map(|(_, path)| path), "what was read before a change was to be read before it");
}

#[test]
fn what_fails_leaves_the_other_results_whole_and_in_the_order_of_the_calls() {
    let batch = ["late", "fail", "panic", "ok"].map(|path| call("read", path));
    let replies = [step(&batch), ANSWER.into()];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let (bench, floor) = standing(&[("read", true, 5 * AMPLE)], &replies, |who, floor, _| match who {
        "fail" => Err(ToolError::Failed("no such file".into())),
        "panic" => panic!("on purpose"),
        "late" if !floor.within(AMPLE, |seen| seen.ended.len() == 3) => {
            Err(ToolError::Failed("the others have not ended".into()))
        }
        _ => Ok(Raw::text(format!("{who}: the first line\n{who}: the last line"))),
    });
    let report = report(&bench, AgentRun::new(Task { batch: 4, ..turn(8).task().clone() }));
    assert_eq!(report.status, "completed");
    assert_eq!(floor.seen.lock().unwrap().ended.last().map(String::as_str), Some("late"));
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
    // the model is told all of it at once
    let asked = of(&events, Kind::ModelCall);
    let prompt = asked[1].input.as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    assert!(prompt.starts_with("Partial success:\n<observations>"), "{prompt}");
    let places: Vec<usize> = results.iter().map(|(_, _, text)| prompt.find(text).unwrap()).collect();
    assert!(places.is_sorted(), "{prompt}");
}

#[test]
fn each_call_has_its_own_time_limit() {
    let tools = [("read", true, 5 * AMPLE), ("stuck", true, Duration::from_millis(50))];
    let (bench, floor) = standing(&tools, &[ANSWER], |who, floor, cx| {
        if who == "deaf" {
            // it hears that its time is up, and does not care
            while !cx.cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(5));
            }
            floor.note(|seen| seen.told.push(who.to_owned()));
            floor.within(AMPLE, |seen| seen.told.iter().any(|one| one == "enough"));
            return Ok(Raw::text("too late"));
        }
        if !floor.within(AMPLE, |seen| !seen.told.is_empty()) {
            return Err(ToolError::Failed("the other one was never told".into()));
        }
        // longer than it takes to give the other one up
        std::thread::sleep(Duration::from_secs(1));
        Ok(Raw::text(format!("content of {who}")))
    });
    let settled = act(&bench, &[("read", "a"), ("stuck", "deaf"), ("read", "b")]);
    let told = told(&settled);
    assert_eq!(
        (told[0], told[2]),
        (("s1c1", Outcome::Succeeded, "content of a"), ("s1c3", Outcome::Succeeded, "content of b"))
    );
    assert_eq!(told[1].1, Outcome::TimedOut);
    assert!(told[1].2.starts_with("Tool call timed out"), "{}", told[1].2);
    assert!(!floor.seen.lock().unwrap().ended.iter().any(|one| one == "deaf"), "it was waited for");
    floor.note(|seen| seen.told.push("enough".into()));
}
