//! Tests of workers on a scripted model: their output, their limits and the ways they end.

use super::order::WRITE;
use super::*;
use crate::event::Sink;
use crate::event::{Emitter, Event, Kind, Memory};
use crate::guard::Guards;
use crate::guard::{Budget, Guard, Policy, Rights};
use crate::observe::MemoryArtifacts;
use crate::plan::Plan;
use crate::runtime::{Approval, Approver, Config, DenyAll, Driven, NoCheckpoints, Question};
use crate::state::Limits;
use crate::tool::{Hazard, Registry};
use crate::turn::Task;
use crate::turn::{AgentRun, Report};
use caro_model::Cancel;
use caro_model::scripted::Scripted;
use caro_policy::Redactor;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const ANSWER: &str = "Thought: done\nAction: answer {\"text\": \"ok\"}";
const CANNOT: &str = "Thought: no\nAction: cannot {\"reason\": \"there are no pears\"}";

/// The function of a test tool.
type Work = Box<dyn Fn(&ToolCx) -> Result<Raw, ToolError> + Send + Sync>;

struct TestTool {
    spec: ToolSpec,
    effects: Effects,
    work: Work,
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn effects(&self, _: &Args, _: &ToolCx) -> Effects {
        self.effects.clone()
    }
    fn call(&self, _: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        (self.work)(cx)
    }
}

/// Collects the events of all workers; some tasks get a sink that panics, or fail to begin.
struct TestHire(Arc<Memory>);

struct Panics;

impl Sink for Panics {
    fn take(&self, _: &Event) {
        panic!("on purpose");
    }
}

fn guards() -> Guards {
    let policy = Policy { root: "/w".into(), own: vec![std::env::temp_dir()], rights: Rights::default() };
    let guards: Vec<Arc<dyn Guard>> = vec![Arc::new(Budget::default()), Arc::new(policy)];
    Guards::new(guards, &[])
}

impl Hire for TestHire {
    fn hire(&self, task: &Task) -> Result<Hired, String> {
        match task.text.as_str() {
            "count the plums" => Err("the disk is full".into()),
            "count the cherries" => Ok(Hired { guards: guards(), sinks: vec![Arc::new(Panics)] }),
            _ => Ok(Hired { guards: guards(), sinks: vec![self.0.clone()] }),
        }
    }
}

struct Bench {
    runtime: Runtime,
    /// The lead's events.
    lead: Arc<Memory>,
    /// The events of all workers.
    workers: Arc<Memory>,
    workspace: Arc<Workspace>,
    _folder: tempfile::TempDir,
}

/// A lead that replies `first` and then answers, and workers whose replies are found by a word of their task.
fn bench(first: &str, workers: &[(&str, &[&str])], tools: Vec<TestTool>) -> Bench {
    bench_for(TIMEOUT, first, workers, tools)
}

fn bench_for(time: Duration, first: &str, workers: &[(&str, &[&str])], tools: Vec<TestTool>) -> Bench {
    let mut rules: Vec<Value> = workers
        .iter()
        .map(|(word, replies)| json!({"match": format!("Task: count the {word}"), "replies": replies}))
        .collect();
    rules.push(json!({"replies": [first, ANSWER]}));
    let model: Scripted = json!({"context": 8000, "rules": rules}).to_string().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let workspace = Arc::new(Workspace::open(folder.path().join("ws")));
    let (lead, books) = (Arc::new(Memory::default()), Arc::new(Memory::default()));
    let mut registry = Registry::default();
    for tool in tools {
        registry.add(Arc::new(tool)).unwrap();
    }
    let runtime = Runtime {
        model: Arc::new(model),
        registry,
        guards: guards(),
        providers: Vec::new(),
        approver: Arc::new(DenyAll),
        artifacts: Some(Arc::new(MemoryArtifacts::default())),
        notes: None,
        checkpoints: Arc::new(NoCheckpoints),
        suggester: None,
        usage_ledger: None,
        emitter: Arc::new(Emitter::new("run_1", 1, Redactor::default(), vec![lead.clone()])),
        cancel: Cancel::new(),
        config: Config::new("/w".into()),
    };
    let runtime = equip_for(time, runtime, workspace.clone(), Arc::new(TestHire(books.clone()))).unwrap();
    Bench { runtime, lead, workers: books, workspace, _folder: folder }
}

fn tool(
    name: &str,
    effects: Effects,
    work: impl Fn(&ToolCx) -> Result<Raw, ToolError> + Send + Sync + 'static,
) -> TestTool {
    let mut spec = ToolSpec::new(name, "does it.", json!({}), &[]);
    spec.core = true;
    TestTool { spec, effects, work: Box::new(work) }
}

/// Returns a reply that spawns one worker for each fruit with the output `FRUIT.md`.
fn spawn(fruits: &[&str]) -> String {
    let worker = |fruit: &&str| {
        format!(
            r#"{{"name": "{fruit}", "role": "researcher", "task": "count the {fruit}", "output_path": "{fruit}.md"}}"#
        )
    };
    let workers: Vec<String> = fruits.iter().map(worker).collect();
    format!("Thought: go\nAction: {SPAWN} {{\"workers\": [{}]}}", workers.join(", "))
}

fn writes(path: &str) -> String {
    format!("Thought: write\nAction: workspace_write {{\"path\": \"{path}\", \"content\": \"3 of them\"}}")
}

fn turn() -> AgentRun {
    let text = "count all fruits";
    AgentRun::new(Task {
        run: "run_1".into(),
        session: "s".into(),
        agent: "agent".into(),
        text: text.into(),
        plan: Plan::heuristic(text),
        max_steps: 8,
        batch: 1,
        place: String::new(),
    })
}

fn drive(bench: &Bench, turn: AgentRun) -> Driven {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let driven = runtime.block_on(bench.runtime.run(turn));
    // cancelled workers need a moment to stop
    let start = Instant::now();
    let is_running = || of(&bench.workers, Kind::AgentEnd).len() < of(&bench.workers, Kind::AgentStart).len();
    while is_running() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    runtime.shutdown_timeout(Duration::from_secs(5));
    driven
}

fn report(bench: &Bench) -> Report {
    match drive(bench, turn()) {
        Driven::Done(report) => *report,
        Driven::Stopped(_) => panic!("stopped"),
    }
}

fn of(memory: &Memory, kind: Kind) -> Vec<Event> {
    memory.events().into_iter().filter(|e| e.event_type == kind).collect()
}

/// Returns the lead's only result of its call.
fn result(bench: &Bench) -> String {
    let results: Vec<Event> =
        [Kind::ToolResult, Kind::ToolError].into_iter().flat_map(|kind| of(&bench.lead, kind)).collect();
    let of_call: Vec<&Event> = results.iter().filter(|e| e.span_id == "s1c1").collect();
    assert_eq!(of_call.len(), 1, "{results:?}");
    of_call[0].output.as_str().unwrap().to_owned()
}

/// Asserts one `subagent_spawn` and one `subagent_result` with the same run for each worker.
fn assert_one_result_each(bench: &Bench, workers: usize) {
    let runs = |kind| -> Vec<String> {
        let mut runs: Vec<String> =
            of(&bench.lead, kind).iter().map(|e| e.metadata["run"].as_str().unwrap().to_owned()).collect();
        runs.sort();
        runs.dedup();
        runs
    };
    let spawned = runs(Kind::SubagentSpawn);
    assert_eq!((spawned.len(), of(&bench.lead, Kind::SubagentSpawn).len()), (workers, workers));
    assert_eq!((spawned, of(&bench.lead, Kind::SubagentResult).len()), (runs(Kind::SubagentResult), workers));
}

#[test]
fn workers_run_in_parallel_and_leave_their_output() {
    // each waits until the other has started
    let arrived = Arc::new(AtomicUsize::new(0));
    let meet = tool("meet", Effects::default(), move |_| {
        arrived.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        while arrived.load(Ordering::SeqCst) < 2 {
            if start.elapsed() > Duration::from_secs(60) {
                return Err(ToolError::Failed("nobody came".into()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Raw::text("met"))
    });
    let (apples, pears) = (writes("apples.md"), writes("pears.md"));
    let meet_reply = "Thought: meet\nAction: meet {}";
    let workers: [(&str, &[&str]); 2] =
        [("apples", &[meet_reply, &apples, ANSWER]), ("pears", &[meet_reply, &pears, ANSWER])];
    let bench = bench(&spawn(&["apples", "pears"]), &workers, vec![meet]);
    let run = report(&bench);
    assert_eq!((run.status.as_str(), run.response.as_str()), ("completed", "ok"));
    for fruit in ["apples", "pears"] {
        assert!(result(&bench).contains(&format!("count the {fruit}: 3 of them")));
        assert_eq!(bench.workspace.view(&format!("{fruit}.md")).unwrap(), "3 of them\n");
    }
    assert!(of(&bench.workers, Kind::ToolError).is_empty(), "they met");
    assert_one_result_each(&bench, 2);
    // the run's cost includes the workers': two requests of the lead, three of each worker
    assert_eq!(run.metric.total_requests, 8);
    let tokens: u64 = of(&bench.lead, Kind::SubagentResult).iter().map(|e| e.token_usage.unwrap().request).sum();
    assert!(tokens > 0 && run.metric.request_tokens > tokens, "{:?}", run.metric);
    // workers have runs of their own
    let ends = of(&bench.workers, Kind::AgentEnd);
    assert!(ends.len() == 2 && ends[0].trace_id != ends[1].trace_id && ends[0].trace_id.starts_with("worker_"));
    let asked = of(&bench.workers, Kind::ModelCall)[0].input.to_string();
    assert!(asked.contains("You are the helper") && asked.contains("- workspace_write: "), "{asked}");
}

#[test]
fn a_worker_without_output_has_failed_and_the_lead_gets_the_path() {
    let apples = writes("apples.md");
    let workers: [(&str, &[&str]); 2] = [("apples", &[&apples, ANSWER]), ("pears", &[CANNOT])];
    let bench = bench(&spawn(&["apples", "pears"]), &workers, Vec::new());
    report(&bench);
    let text = result(&bench);
    assert!(text.contains("count the apples: 3 of them"), "{text}");
    assert!(
        text.contains("count the pears: Error: it left no output in the workspace file `pears.md` (cannot)"),
        "{text}"
    );
    assert!(text.contains("It said: there are no pears"), "{text}");
    assert_one_result_each(&bench, 2);
    let alone = self::bench(&spawn(&["pears"]), &[("pears", &[CANNOT])], Vec::new());
    report(&alone);
    assert_eq!(of(&alone.lead, Kind::ToolError).len(), 1, "where none has left anything the call has failed");
    // an answer without the file is not offered before the last step
    let early = self::bench(&spawn(&["apples"]), &[("apples", &[ANSWER])], Vec::new());
    report(&early);
    assert!(result(&early).contains("(model_error)"), "{}", result(&early));
}

#[test]
fn a_long_output_is_shortened_and_its_file_named() {
    let bench = bench(ANSWER, &[], Vec::new());
    let hire = Arc::new(TestHire(Arc::default()));
    let pool = WorkerPool::new(without_workers(&bench), bench.workspace.clone(), hire, Arc::default());
    let left = |text: &str| {
        let path = format!("{}.md", text.len());
        bench.workspace.write(&path, text, crate::workspace::Mode::Create).unwrap();
        pool.output(&path, text.len() as u64)
    };
    assert_eq!(left("two\nlines\n"), "two\nlines");
    let long = left(&"many words ".repeat(500));
    assert!(long.len() < 2000 && long.ends_with("the whole, 5500 bytes, is the workspace file `5500.md`)"), "{long}");
}

#[test]
fn no_worker_has_workers() {
    let deeper = spawn(&["figs"]);
    let bench = bench(&spawn(&["apples"]), &[("apples", &[&deeper])], Vec::new());
    report(&bench);
    assert!(result(&bench).contains("count the apples: Error: it left no output"), "{}", result(&bench));
    assert_one_result_each(&bench, 1);
    assert!(of(&bench.workers, Kind::SubagentSpawn).is_empty());
    // even a call that the grammar did not prevent finds no such tool
    let Ok(lead) = bench.runtime.registry.get(SPAWN) else { panic!() };
    assert_eq!(lead.spec().provider, Provider::Subagent);
    let books = Arc::new(TestHire(Arc::default()));
    let pool = WorkerPool::new(without_workers(&bench), bench.workspace.clone(), books, Arc::default());
    let order = Order { name: "a".into(), role: "x".into(), task: "count".into(), output_path: "a.md".into() };
    let (worker, mut turn) = pool.begin(&order, "worker_1", &Cancel::new()).unwrap();
    assert!(matches!(worker.registry.get(SPAWN), Err(ToolError::Unknown { .. })));
    (turn, _) = worker.preview(turn);
    assert!(turn.tools().iter().all(|tool| tool.name != SPAWN) && turn.tools().iter().any(|tool| tool.name == WRITE));
}

/// Returns the lead's runtime without workers.
fn without_workers(bench: &Bench) -> Runtime {
    let mut registry = Registry::default();
    for name in bench.runtime.registry.specs().map(|spec| spec.name.clone()).filter(|name| name != SPAWN) {
        registry.add(bench.runtime.registry.get(&name).unwrap().clone()).unwrap();
    }
    Runtime { registry, usage_ledger: None, ..bench.runtime.clone() }
}

#[test]
fn limits_are_shared_by_lead_and_workers() {
    let look = || tool("look", Effects::default(), |_| Ok(Raw::text("nothing")));
    let looks: &[&str] = &["Thought: look\nAction: look {}"];
    let bench = bench(&spawn(&["apples", "pears"]), &[("apples", looks), ("pears", looks)], vec![look()]);
    let mut turn = turn();
    turn.limit(Limits { requests: 6, tokens: 0 });
    let Driven::Done(report) = drive(&bench, turn) else { panic!() };
    assert_eq!((report.termination_reason.as_str(), report.metric.total_requests), ("request_limit", 6));
    assert_eq!(of(&bench.workers, Kind::ModelCall).len(), 5, "one request was the lead's");
    assert!(result(&bench).contains("(request_limit)"), "{}", result(&bench));
    assert_one_result_each(&bench, 2);
    // nothing is left for the lead's next step
    assert_eq!(of(&bench.lead, Kind::ModelCall).len(), 1);
}

/// Returns a tool that hangs until it is cancelled.
fn hanging_tool() -> TestTool {
    tool("hang", Effects::default(), |cx| {
        while !cx.cancel.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Raw::text("late"))
    })
}

#[test]
fn cancelling_the_lead_cancels_its_workers() {
    let hang: &[&str] = &["Thought: wait\nAction: hang {}"];
    let bench = bench(&spawn(&["apples", "pears"]), &[("apples", hang), ("pears", hang)], vec![hanging_tool()]);
    let (cancel, workers) = (bench.runtime.cancel.clone(), bench.workers.clone());
    std::thread::spawn(move || {
        // both are running
        let start = Instant::now();
        while of(&workers, Kind::ToolCall).len() < 2 && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        cancel.cancel();
    });
    let Driven::Stopped(_) = drive(&bench, turn()) else { panic!() };
    assert!(result(&bench).contains("stopped after"), "{}", result(&bench));
    assert_one_result_each(&bench, 2);
    for result in of(&bench.lead, Kind::SubagentResult) {
        assert_eq!(result.metadata["status"], "stopped");
    }
    assert_eq!(of(&bench.workers, Kind::ToolCall).len(), 2, "none went on");
    let ends = of(&bench.workers, Kind::AgentEnd);
    assert!(ends.len() == 2 && ends.iter().all(|end| end.metadata["status"] == "stopped"), "{ends:?}");
}

#[test]
fn a_timeout_ends_the_workers_and_finished_output_is_returned() {
    let apples = writes("apples.md");
    let hang: &[&str] = &["Thought: wait\nAction: hang {}"];
    let workers: [(&str, &[&str]); 2] = [("apples", &[&apples, ANSWER]), ("pears", hang)];
    let bench = bench_for(Duration::from_secs(4), &spawn(&["apples", "pears"]), &workers, vec![hanging_tool()]);
    let run = report(&bench);
    assert_eq!(run.response, "ok");
    let text = result(&bench);
    assert!(text.contains("count the apples: 3 of them") && text.contains("`pears.md` (stopped)"), "{text}");
    assert_one_result_each(&bench, 2);
}

#[test]
fn a_failing_worker_does_not_affect_the_others() {
    let apples = writes("apples.md");
    let bench = bench(&spawn(&["apples", "cherries", "plums"]), &[("apples", &[&apples, ANSWER])], Vec::new());
    report(&bench);
    let text = result(&bench);
    assert!(text.contains("count the apples: 3 of them"), "{text}");
    assert!(text.contains("`cherries.md` (failed_inside)") && text.contains("`plums.md` (not_begun)"), "{text}");
    assert!(text.contains("It said: the disk is full"), "{text}");
    assert_one_result_each(&bench, 3);
}

#[test]
fn a_worker_asks_the_leads_approver_with_its_name() {
    #[derive(Default)]
    struct RecordingApprover(Mutex<Vec<String>>);
    impl Approver for RecordingApprover {
        fn ask(&self, question: Question) -> (Approval, Option<Args>) {
            self.0.lock().unwrap().push(format!("{}: {}", question.call.tool, question.reasons.join("; ")));
            (Approval::No, None)
        }
    }
    let danger = Effects { hazard: Hazard::Danger, reasons: vec!["it deletes".into()], ..Effects::default() };
    let done = Arc::new(AtomicUsize::new(0));
    let counts = done.clone();
    let wipe = tool("wipe", danger, move |_| {
        counts.fetch_add(1, Ordering::Relaxed);
        Ok(Raw::text("gone"))
    });
    let apples = writes("apples.md");
    let workers: [(&str, &[&str]); 1] = [("apples", &["Thought: wipe\nAction: wipe {}", &apples, ANSWER])];
    let mut bench = bench(&spawn(&["apples"]), &workers, vec![wipe]);
    let approver = Arc::new(RecordingApprover::default());
    bench.runtime = Runtime { approver: approver.clone(), ..without_workers(&bench) };
    let books = Arc::new(TestHire(bench.workers.clone()));
    bench.runtime = equip(bench.runtime, bench.workspace.clone(), books).unwrap();
    report(&bench);
    assert_eq!(*approver.0.lock().unwrap(), ["wipe: it deletes; it is dangerous; the helper `apples` wants it"]);
    assert_eq!(done.load(Ordering::Relaxed), 0, "no is no");
    assert!(result(&bench).contains("count the apples: 3 of them"));
}

#[test]
fn an_equipped_run_has_a_workspace_and_invalid_orders_are_refused() {
    let bench = bench(ANSWER, &[], Vec::new());
    for name in [WRITE, VIEW, "workspace_delete"] {
        assert!(bench.runtime.registry.get(name).is_ok(), "{name}");
    }
    bench.workspace.write("there.md", "x", crate::workspace::Mode::Create).unwrap();
    let books = Arc::new(TestHire(Arc::default()));
    let pool = WorkerPool::new(without_workers(&bench), bench.workspace.clone(), books, Arc::default());
    let spawn = Spawn::new(pool, bench.workspace.clone(), TIMEOUT);
    let order =
        |name: &str, task: &str, path: &str| json!({"name": name, "role": "x", "task": task, "output_path": path});
    let fine = order("a", "count the apples", "a.md");
    let check = |workers: Value| {
        let Value::Object(args) = json!({ "workers": workers }) else { unreachable!() };
        spawn.orders(&args).map(|orders| orders.len()).map_err(|e| e.to_string())
    };
    assert_eq!(check(json!([fine, order("b", "count the pears", "notes/b.md")])), Ok(2));
    for (workers, why) in [
        (json!([]), "1 to 4"),
        (json!([fine, fine, fine, fine, fine]), "1 to 4"),
        (json!([{"name": "a"}]), "missing field `role`"),
        (json!([fine, order("a", "count the pears", "b.md")]), "two workers are named `a`"),
        (json!([fine, order("b", "count the pears", "./a.md")]), "two workers have the output_path"),
        (json!([order("a\n", "count the pears", "b.md")]), "is not a name"),
        (json!([order("a", "do it", "b.md")]), "the task of `a`"),
        (json!([order("a", SAMPLES[0], "b.md")]), "is the example's"),
        (json!([order("a", "count the pears", "../b.md")]), "outside of the workspace"),
        (json!([order("a", "count the pears", "")]), "names no file"),
        (json!([order("a", "count the pears", "there.md")]), "in the workspace already"),
    ] {
        let error = check(workers.clone()).unwrap_err();
        assert!(error.starts_with("Argument Validation Error") && error.contains(why), "{workers}: {error}");
    }
}
