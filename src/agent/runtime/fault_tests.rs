//! Tests runs in which everything goes wrong: each call has one result, no prompt is too long, and the run ends.

use super::tests::{ANSWER, Bench, bench, call, of, step, turn};
use super::*;
use crate::event::Event;
use crate::guard::Guards;
use crate::guard::{ActionGuard, Budget, Guard, GuardError, LoopGuard, LoopLimits, Policy, Rights, Verdict};
use crate::observe::Artifacts;
use crate::observe::{Artifact, MemoryArtifacts, Raw};
use crate::reflect::Reflection;
use crate::state::RunState;
use crate::tool::Call;
use crate::tool::Registry;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError};
use crate::tools::Shell;
use crate::turn::{Mode as Fits, Task};
use caro_model::Model;
use caro_model::scripted::Scripted;
use caro_model::{Completion, Flow, Limits};
use caro_shell::Dialect;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A timeout longer than any machine needs.
const AMPLE: Duration = Duration::from_secs(60);

/// The fault of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Fine,
    /// The tool returns an error.
    Fails,
    Panics,
    Hangs,
    Floods,
    NoText,
    /// The child of a shell command is killed.
    Killed,
    /// From here on nothing can be stored: no artifact, no checkpoint, no note.
    DiskFull,
    /// A guard fails on it.
    NoVerdict,
}

use Fault::*;

const FAULTS: [Fault; 9] = [Fine, Fails, Panics, Hangs, Floods, NoText, Killed, DiskFull, NoVerdict];

impl Fault {
    /// Returns the outcome of a call with this fault, and a part of its text.
    fn ends(self) -> (&'static str, &'static str) {
        match self {
            Fine => ("done", "content of "),
            Fails => ("failed", "no such file"),
            Panics => ("failed", "failed inside"),
            Hangs => ("timed_out", "Tool call timed out"),
            Floods => ("done", "water"),
            NoText => ("done", "\u{fffd}"),
            Killed => ("failed", "(ended by signal 9)"),
            DiskFull => ("failed", "no storage space"),
            NoVerdict => ("blocked", "the guard `brittle` failed"),
        }
    }
}

/// A call: its fault, whether it changes something, and the number of its file.
type CallCase = (Fault, bool, u8);

/// Returns the model's text for a call.
fn action_text(&(fault, writes, number): &CallCase) -> String {
    match (fault, writes) {
        (Killed, _) => format!("Action: shell {{\"command\": \"kill -KILL $$ # {number}\"}}"),
        (Hangs, _) => call("wait", &format!("Hangs-{number}")),
        (_, true) => call("write", &format!("{fault:?}-{number}")),
        (_, false) => call("read", &format!("{fault:?}-{number}")),
    }
}

/// Returns the fault that a call's arguments ask for.
fn fault_of(about: &Value) -> Fault {
    let path = about["args"]["path"].as_str().unwrap_or("Killed");
    let name = path.split('-').next().unwrap_or_default();
    FAULTS.into_iter().find(|fault| format!("{fault:?}") == name).unwrap()
}

/// The storage of a run, which also holds the state shared by its tools.
#[derive(Default)]
struct TestStorage {
    /// True once nothing more can be stored.
    full: AtomicBool,
    /// True once the run has ended: hanging calls return.
    over: AtomicBool,
    artifacts: MemoryArtifacts,
}

impl TestStorage {
    fn check_space(&self) -> io::Result<()> {
        if self.full.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Artifacts for TestStorage {
    fn put(&self, artifact: &Artifact, text: &str) -> io::Result<()> {
        self.check_space().and_then(|()| self.artifacts.put(artifact, text))
    }

    fn get(&self, id: &str) -> io::Result<String> {
        self.artifacts.get(id)
    }

    fn list(&self) -> io::Result<Vec<Artifact>> {
        self.artifacts.list()
    }
}

impl Checkpoints for TestStorage {
    fn keep(&self, _: &str, _: &str) -> Result<(), String> {
        self.check_space().map_err(|e| e.to_string())
    }
}

impl Notes for TestStorage {
    fn take(&self, _: &AgentRun, _: &Reflection) -> Result<Option<String>, String> {
        self.check_space().map(|()| Some("note".into())).map_err(|e| e.to_string())
    }
}

/// A tool with the fault that its path names.
struct Faulty {
    spec: ToolSpec,
    storage: Arc<TestStorage>,
}

impl Faulty {
    fn new(name: &str, timeout: Duration, storage: &Arc<TestStorage>) -> Self {
        let mut spec = ToolSpec::new(name, "does it.", json!({"path": {"type": "string"}}), &["path"]);
        (spec.parallel, spec.core, spec.timeout) = (name != "write", true, timeout);
        Self { spec, storage: storage.clone() }
    }
}

impl Tool for Faulty {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let path = args["path"].as_str().unwrap_or_default();
        let file = cx.root.join(path);
        match self.spec.name.as_str() {
            "write" => Effects { writes: vec![file], ..Effects::default() },
            _ => Effects { reads: vec![file], shows: vec![path.into()], ..Effects::default() },
        }
    }

    fn call(&self, args: &Args, _: &ToolCx) -> Result<Raw, ToolError> {
        let path = args["path"].as_str().unwrap_or_default();
        match fault_of(&json!({"args": args})) {
            Fine | Killed | NoVerdict => Ok(Raw::text(format!("content of {path}"))),
            Fails => Err(ToolError::Failed("no such file".into())),
            Panics => panic!("on purpose"),
            Hangs => {
                // ignores its timeout until the run has ended
                let started = Instant::now();
                while !self.storage.over.load(Ordering::SeqCst) && started.elapsed() < AMPLE {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(Raw::text("too late"))
            }
            Floods => Ok(Raw::text("water ".repeat(5_000))),
            NoText => Ok(Raw::bytes([&[0xff, 0xfe, 0xc3, 0x28][..], path.as_bytes(), &[0xe2, 0x82]].concat())),
            DiskFull => {
                self.storage.full.store(true, Ordering::SeqCst);
                Err(ToolError::Io { what: path.into(), source: self.storage.check_space().unwrap_err() })
            }
        }
    }
}

/// A guard that fails on calls whose path asks for it.
struct Brittle;

impl Guard for Brittle {
    fn name(&self) -> &'static str {
        "brittle"
    }

    fn check(&self, call: &Call, _: &RunState) -> Result<Verdict, GuardError> {
        match call.args.get("path").and_then(Value::as_str) {
            Some(path) if path.starts_with("NoVerdict") => Err(GuardError("on purpose".into())),
            _ => Ok(Verdict::Allow),
        }
    }
}

/// Always gives the same answer.
struct FixedApprover(Approval);

impl Approver for FixedApprover {
    fn ask(&self, _: Question) -> (Approval, Option<Args>) {
        (self.0, None)
    }
}

/// A model held to the grammar: it writes the next scripted reply if allowed, else an allowed end.
struct GrammarModel {
    context: usize,
    counts: Scripted,
    replies: Mutex<VecDeque<String>>,
    /// The tokens of each prompt plus the most tokens of its answer.
    asked: Mutex<Vec<usize>>,
}

impl GrammarModel {
    fn new(context: usize, replies: impl Iterator<Item = String>) -> Self {
        let replies = Mutex::new(replies.collect());
        Self { context, counts: scripted(context, "x"), replies, asked: Mutex::default() }
    }
}

fn scripted(context: usize, reply: &str) -> Scripted {
    json!({"context": context, "rules": [{"reply": reply}]}).to_string().parse().unwrap()
}

impl Model for GrammarModel {
    fn id(&self) -> &str {
        "held"
    }

    fn limits(&self) -> Limits {
        Limits { context: self.context }
    }

    fn count(&self, text: &str) -> usize {
        self.counts.count(text)
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        let prompt: usize = request.prompt.messages.iter().map(|turn| self.count(&turn.text)).sum();
        self.asked.lock().unwrap().push(prompt + self.count(&request.prompt.prefill) + request.max_tokens);
        let next = self.replies.lock().unwrap().pop_front();
        let cannot = "Thought: no\nAction: cannot {\"reason\": \"no\"}";
        let mut completion = Err(ModelError::Script("there is nothing to say".into()));
        for reply in next.as_deref().into_iter().chain([ANSWER, cannot]) {
            completion = scripted(self.context, reply).generate(request, on);
            match &completion {
                Err(ModelError::Script(_)) => {}
                _ => break,
            }
        }
        completion
    }
}

/// A test case: the calls of each step, and the surroundings.
#[derive(Debug, Clone)]
struct Case {
    steps: Vec<Vec<CallCase>>,
    max_steps: u32,
    agrees: Approval,
    fits: Fits,
    context: usize,
}

/// The result of a case.
struct Ran {
    driven: Driven,
    events: Vec<Event>,
    /// The tokens of each prompt plus the most tokens of its answer, as the model counted them.
    asked: Vec<usize>,
}

impl Ran {
    /// Returns the result events.
    fn results(&self) -> Vec<&Event> {
        self.events.iter().filter(|e| matches!(e.event_type, Kind::ToolResult | Kind::ToolError)).collect()
    }

    fn result(&self, id: &str) -> (&str, &str) {
        let result = self.results().into_iter().find(|e| e.span_id == id).unwrap();
        (result.metadata["outcome"].as_str().unwrap(), result.output.as_str().unwrap())
    }
}

/// Runs a case in a folder of its own.
fn run(case: &Case) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let replies = case.steps.iter().map(|calls| step(&calls.iter().map(action_text).collect::<Vec<_>>()));
    let model = Arc::new(GrammarModel::new(case.context, replies));
    let storage = Arc::new(TestStorage::default());
    let Bench { mut runtime, memory, .. } = bench(&[ANSWER]);
    runtime.model = model.clone();
    runtime.registry = Registry::default();
    for (name, timeout) in [("read", 5 * AMPLE), ("write", 5 * AMPLE), ("wait", Duration::from_millis(50))] {
        runtime.registry.add(Arc::new(Faulty::new(name, timeout, &storage))).unwrap();
    }
    runtime.registry.add(Arc::new(PatientShell::new())).unwrap();
    let guards: Vec<Arc<dyn Guard>> = vec![
        Arc::new(ActionGuard),
        Arc::new(LoopGuard { limits: LoopLimits::STRICT }),
        Arc::new(Budget::default()),
        Arc::new(Policy { root: root.clone(), own: Vec::new(), rights: Rights::default() }),
        Arc::new(Brittle),
    ];
    runtime.guards = Guards::new(guards, &[]);
    runtime.approver = Arc::new(FixedApprover(case.agrees));
    runtime.artifacts = Some(storage.clone());
    runtime.checkpoints = storage.clone();
    runtime.notes = Some(storage.clone());
    runtime.config.root = root;
    runtime.config.decision_tokens = 300;
    runtime.config.fitting.mode = case.fits;
    let turn = AgentRun::new(Task { batch: 4, max_steps: case.max_steps, ..turn(8).task().clone() });
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let driven = tokio.block_on(runtime.run(turn));
    storage.over.store(true, Ordering::SeqCst);
    let asked = model.asked.lock().unwrap().clone();
    Ran { driven, events: memory.events(), asked }
}

#[test]
fn each_fault_is_reported_and_other_calls_keep_their_results() {
    let steps = vec![
        vec![(Fine, false, 0), (Panics, false, 0), (NoText, false, 0), (Fine, true, 1)],
        vec![(Hangs, false, 0), (Fails, true, 0), (Floods, false, 0), (Panics, true, 1)],
        vec![(Killed, false, 0), (NoVerdict, false, 0), (DiskFull, true, 0), (Fine, false, 2)],
        vec![(Floods, false, 1), (NoVerdict, true, 1), (Fine, true, 3)],
    ];
    let case =
        Case { steps: steps.clone(), max_steps: 8, agrees: Approval::Always, fits: Fits::TokenBudget, context: 4000 };
    let ran = run(&case);
    let Driven::Done(report) = &ran.driven else { panic!("{:?}", ran.driven) };
    assert_eq!((report.termination_reason.as_str(), report.steps), ("answered", 5));
    for (at, calls) in steps.iter().enumerate() {
        for (nth, (fault, ..)) in calls.iter().enumerate() {
            let (ended, text) = ran.result(&format!("s{}c{}", at + 1, nth + 1));
            let (ends, tells) = fault.ends();
            assert!(ended == ends && text.contains(tells), "{fault:?} {ended}: {text}");
        }
    }
    let (before, after) = (ran.result("s2c3").1, ran.result("s4c1").1);
    assert!(before.starts_with("[TOOL RESPONSE OFFLOADED]") && after.contains("hidden"), "{before}\n{after}");
    let errors: Vec<&str> = of(&ran.events, Kind::RuntimeError).iter().filter_map(|e| e.error.as_deref()).collect();
    for what in ["the run could not be kept: ", "no note could be kept: ", "no storage space"] {
        assert!(errors.iter().any(|one| one.starts_with(what)), "{what}: {errors:#?}");
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let faults: Vec<Fault> = FAULTS.into_iter().filter(|fault| *fault != Hangs).collect();
    // hanging calls cost their grace period, so there are fewer of them
    let fault = prop_oneof![12 => prop::sample::select(faults), 1 => Just(Hangs)];
    let steps = prop::collection::vec(prop::collection::vec((fault, any::<bool>(), 0u8..3), 1..=4), 1..=5);
    let agrees = prop::sample::select(vec![Approval::Yes, Approval::Always, Approval::No]);
    let fits = prop::sample::select(vec![Fits::TokenBudget, Fits::SlidingWindow(1), Fits::SlidingWindow(3)]);
    // mostly so small that a second or third result does not fit
    let context = prop_oneof![3 => 560usize..1000, 1 => 1000usize..3000];
    (steps, 1u32..8, agrees, fits, context).prop_map(|(steps, max_steps, agrees, fits, context)| Case {
        steps,
        max_steps,
        agrees,
        fits,
        context,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Holds for any faults in any batches, any answers of the user, and any window.
    #[test]
    fn in_any_run_each_call_has_one_result_prompts_fit_and_the_run_ends(case in cases()) {
        let ran = run(&case);
        let events = &ran.events;

        // each call that the model wrote is in a batch and has one result, in the order of the calls
        let responses: Vec<&str> = of(events, Kind::ModelResponse).iter().filter_map(|e| e.output.as_str()).collect();
        let actions = responses.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("Action: "));
        let calls = actions.filter(|action| !action.starts_with("answer ") && !action.starts_with("cannot ")).count();
        let ids: Vec<String> = of(events, Kind::ToolBatchStart).iter().flat_map(|start| {
            let calls = start.metadata["calls"].as_array().map_or(0, Vec::len);
            (1..=calls).map(|nth| format!("{}c{nth}", start.span_id))
        }).collect();
        let results: Vec<&str> = ran.results().iter().map(|e| e.span_id.as_str()).collect();
        prop_assert_eq!(&results, &ids);
        prop_assert_eq!(ids.len(), calls);
        let mut once = ids.clone();
        once.sort();
        once.dedup();
        prop_assert_eq!(once.len(), ids.len());

        // calls that were made show their own fault, and calls that a guard failed on were not made
        for made in of(events, Kind::ToolCall) {
            let fault = fault_of(&made.input);
            let (ended, result_text) = ran.result(&made.span_id);
            let (ends, tells) = fault.ends();
            let is_right = fault != NoVerdict && ended == ends && result_text.contains(tells);
            prop_assert!(is_right, "{:?} {}: {}", fault, ended, result_text);
        }

        // prompts fit by the runtime's count and by the model's
        for asked in of(events, Kind::ModelCall) {
            prop_assert!(asked.metadata["tokens"].as_u64() <= asked.metadata["limit"].as_u64(), "{:?}", asked.metadata);
        }
        prop_assert!(ran.asked.iter().all(|tokens| *tokens <= case.context), "{:?}", ran.asked);
        prop_assert_eq!(ran.asked.len(), of(events, Kind::ModelCall).len());

        // the run ended once, and not with a model error
        let Driven::Done(report) = &ran.driven else { return Err(TestCaseError::fail("it was stopped")) };
        let (status, reason) = (report.status.as_str(), report.termination_reason.as_str());
        prop_assert!(["completed", "incomplete", "failed"].contains(&status), "{}", status);
        let reasons = ["answered", "unverified", "cannot", "max_steps", "stuck", "consecutive_errors"];
        prop_assert!(reasons.contains(&reason), "{}: {}", reason, report.response);
        prop_assert!(ran.asked.len() <= case.max_steps as usize && !report.response.is_empty());
        prop_assert_eq!(of(events, Kind::FinalAnswer).len(), 1);
        prop_assert_eq!(of(events, Kind::AgentEnd).len(), 1);
        prop_assert_eq!(events.last().map(|e| e.event_type), Some(Kind::AgentEnd));
    }
}

/// The shell tool with a timeout longer than any machine needs.
struct PatientShell {
    shell: Shell,
    spec: ToolSpec,
}

impl PatientShell {
    fn new() -> Self {
        let shell = Shell::new("/bin/sh".into(), Dialect::Sh);
        let spec = ToolSpec { timeout: 5 * AMPLE, ..shell.spec().clone() };
        Self { shell, spec }
    }
}

impl Tool for PatientShell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        self.shell.effects(args, cx)
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        self.shell.call(args, cx)
    }
}

#[test]
fn a_command_killed_from_outside_reports_the_signal() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let command = "Action: shell {\"command\": \"echo $$ > pid; sleep 300; echo late\"}";
    let Bench { mut runtime, memory, .. } = bench(&[&step(&[command.into()]), ANSWER]);
    runtime.registry.add(Arc::new(PatientShell::new())).unwrap();
    runtime.approver = Arc::new(FixedApprover(Approval::Yes));
    runtime.config.root = root.clone();
    // another thread finds the process by the id it wrote, and kills it
    let killer = std::thread::spawn(move || {
        let started = Instant::now();
        while started.elapsed() < AMPLE {
            let line = std::fs::read_to_string(root.join("pid")).unwrap_or_default();
            if let Some(pid) = line.strip_suffix('\n') {
                let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
                return rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    });
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let driven = tokio.block_on(runtime.run(turn(8)));
    assert!(killer.join().unwrap(), "there was nobody to kill");
    assert!(matches!(driven, Driven::Done(report) if report.response == "ok"));
    let events = memory.events();
    let results: Vec<&Event> =
        events.iter().filter(|e| matches!(e.event_type, Kind::ToolResult | Kind::ToolError)).collect();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].output, "(ended by signal 15)", "by none of ours, and not by its time limit");
}
