//! Tests the limits of a run's cost, and calls that are refused, with a scripted model.

use super::tests::{ANSWER, TOKENS, bench, call, drive, of, report, step, turn};
use super::*;
use crate::event::Tokens;
use crate::state::Limits;
use crate::suggest::Suggester;
use crate::suggest::{SuggestFuture, SuggestRequest, Suggestion};
use crate::tool::Provider;
use crate::turn::Report;
use caro_inference::generate;
use caro_model::Cancel;
use caro_model::Model;
use caro_model::metered::{Meter, Metered};
use caro_model::scripted::Scripted;
use caro_model::{Completion, Finish, Flow, Limits as ModelLimits, ModelError, Prompt, Request, Role, Sampling, Shape};
use std::sync::atomic::Ordering;

/// Makes a number of requests, and then suggests a command if it `knows` one.
struct TestSuggester {
    model: Arc<dyn Model>,
    requests: usize,
    knows: bool,
}

impl Suggester for TestSuggester {
    fn suggest<'a>(
        &'a self,
        brief: &'a SuggestRequest,
        meter: Arc<dyn Meter>,
        cancel: &'a Cancel,
    ) -> SuggestFuture<'a> {
        Box::pin(async move {
            let model: Arc<dyn Model> = Arc::new(Metered::new(self.model.clone(), meter));
            for _ in 0..self.requests {
                let mut prompt = Prompt::system("The same every time.");
                prompt.stable_messages = 1;
                prompt.push(Role::User, &brief.part);
                let shape = Shape::Text { stop: Vec::new() };
                let request =
                    Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 9, cancel: cancel.clone() };
                generate(model.clone(), request, |_| Flow::Continue).await?;
            }
            let args = json!({"path": "a"}).as_object().cloned().unwrap_or_default();
            Ok(self.knows.then(|| Suggestion { tool: "shell".into(), args, confidence: 1.0, doubt: false }))
        })
    }
}

/// Runs a task of one part with a suggester that makes `requests` requests.
fn run_with_suggester(requests: usize, knows: bool, limits: Limits) -> (Report, Vec<crate::Event>) {
    let mut bench = bench(&["ls a", "ls b", ANSWER]);
    let script = r#"{"rules": [{"reply": "ls -l"}]}"#;
    let model: Arc<dyn Model> = Arc::new(script.parse::<caro_model::scripted::Scripted>().unwrap());
    bench.runtime.suggester = Some(Arc::new(TestSuggester { model, requests, knows }));
    bench.runtime.model = {
        let script = json!({"context": 3000, "rules": [{"replies": [ANSWER]}]}).to_string();
        Arc::new(script.parse::<caro_model::scripted::Scripted>().unwrap())
    };
    bench.runtime.registry.add(Arc::new(super::tests::Fake::new("shell", true))).unwrap();
    let mut turn = super::tests::task(8, "list the files");
    turn.limit(limits);
    let report = report(&bench, turn);
    (report, bench.memory.events())
}

#[test]
fn suggestions_cost_their_requests_even_without_a_result() {
    for knows in [true, false] {
        let (report, events) = run_with_suggester(3, knows, Limits::default());
        let calls = of(&events, Kind::ModelCall);
        let by_advice: Vec<_> = calls.iter().filter(|e| e.metadata["recipe"] == "command").collect();
        assert_eq!(by_advice.len(), 3, "{calls:#?}");
        for call in &by_advice {
            assert!(call.metadata["tokens"].as_u64() > Some(0), "{call:#?}");
            assert!(call.metadata["tokens"].as_u64() <= call.metadata["limit"].as_u64(), "{call:#?}");
            let turns = call.input["turns"].as_array().unwrap();
            assert_eq!((turns.len(), &turns[0]["role"]), (1, &json!("user")), "without what never changes: {call:#?}");
        }
        // the run's own requests and the suggester's
        assert_eq!(report.metric.total_requests, calls.len() as u64, "{report:#?}");
        let usages: Vec<Tokens> = of(&events, Kind::ModelResponse).iter().filter_map(|e| e.token_usage).collect();
        let (request, response) = usages.iter().fold((0, 0), |(a, b), t| (a + t.request, b + t.response));
        assert_eq!((report.metric.request_tokens, report.metric.response_tokens), (request, response));
        assert!(usages[0].request >= 3 * 4 && usages[0].response == 3 * 2, "{usages:?}");
    }
}

#[test]
fn a_part_that_names_a_server_gets_no_suggestion() {
    let asked = |text: &str| {
        let mut bench = bench(&[&step(&[call("archive.find", "look")]), ANSWER]);
        let model: Arc<dyn Model> =
            Arc::new(r#"{"rules": [{"reply": "ls"}]}"#.parse::<caro_model::scripted::Scripted>().unwrap());
        bench.runtime.suggester = Some(Arc::new(TestSuggester { model, requests: 1, knows: false }));
        let mut tool = super::tests::Fake::new("archive.find", true);
        tool.spec.provider = Provider::Mcp("archive".into());
        bench.runtime.registry.add(Arc::new(tool)).unwrap();
        bench.runtime.registry.add(Arc::new(super::tests::Fake::new("shell", true))).unwrap();
        report(&bench, super::tests::task(8, text));
        of(&bench.memory.events(), Kind::ModelCall).iter().any(|call| call.metadata["recipe"] == "command")
    };
    assert!(!asked("list the plans with the tool of the Archive server"));
    assert!(asked("list the files of the archive"), "that may be a folder");
    assert!(asked("list the tools in the shed folder"));
}

#[test]
fn a_suggester_stays_within_the_limits_of_the_run() {
    let (report, events) = run_with_suggester(5, false, Limits { requests: 2, tokens: 0 });
    assert_eq!(of(&events, Kind::ModelCall).len(), 2, "not even within one piece of advice is more asked");
    assert_eq!((report.metric.total_requests, report.termination_reason.as_str()), (2, "request_limit"));
    assert!(report.response.starts_with("Usage limit error: 2 request(s)"), "{report:#?}");
    let halts = of(&events, Kind::ResourceGuardHalt);
    assert_eq!((halts.len(), &halts[0].metadata["reason"]), (1, &json!("request_limit")));
    let (report, events) = run_with_suggester(5, false, Limits { requests: 0, tokens: 1 });
    assert_eq!((of(&events, Kind::ModelCall).len(), report.termination_reason.as_str()), (1, "total_tokens_limit"));
}

#[test]
fn limits_are_stored_with_the_run() {
    let replies = [step(&[call("read", "a")]), step(&[call("read", "b")]), ANSWER.into()];
    let bench = bench(&replies.iter().map(String::as_str).collect::<Vec<_>>());
    let mut turn = turn(8);
    turn.limit(Limits { requests: 2, tokens: 0 });
    let stored = serde_json::to_string(&turn).unwrap();
    let report = report(&bench, serde_json::from_str(&stored).unwrap());
    assert_eq!((report.termination_reason.as_str(), report.metric.total_requests), ("request_limit", 2));
    assert_eq!(of(&bench.memory.events(), Kind::ModelCall).len(), 2);
    // a run stored before limits existed has none
    let mut old: serde_json::Value = serde_json::from_str(&stored).unwrap();
    old["state"].as_object_mut().unwrap().remove("limits").unwrap();
    assert_eq!(serde_json::from_value::<AgentRun>(old).unwrap().state().limits, Limits::default());
}

/// A model that is stopped at its first token.
struct Stopped(Scripted, Cancel);

impl Model for Stopped {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn limits(&self) -> ModelLimits {
        self.0.limits()
    }

    fn count(&self, text: &str) -> usize {
        self.0.count(text)
    }

    fn generate(&self, request: &Request, on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        self.0.generate(request, &mut |token| {
            self.1.cancel();
            on(token)
        })
    }
}

#[test]
fn a_stopped_request_is_charged() {
    let script = json!({"context": 3000, "rules": [{"reply": ANSWER}]}).to_string();
    let mut bench = bench(&[ANSWER]);
    bench.runtime.model = Arc::new(Stopped(script.parse().unwrap(), bench.runtime.cancel.clone()));
    let Driven::Stopped(turn) = drive(&bench, turn(8)) else { panic!("it was to be stopped") };
    assert_eq!(turn.state().requests, 1);
    assert!(turn.state().tokens > 0);
}

#[test]
fn arguments_are_checked_before_anything_is_done() {
    let bench = bench(&[ANSWER]);
    for wrong in ["{\"path\": 5}", "{}", "{\"path\": \"a\", \"pth\": \"b\"}"] {
        // impossible under the grammar, but possible from a checkpoint
        let mut turn = turn(8);
        turn.assembled(Default::default(), bench.runtime.selected_tools("x"), Vec::new(), &bench.runtime.guards);
        turn.decided(&format!("Thought: go\nAction: read {wrong}"), Finish::Stop, TOKENS, &bench.runtime.guards);
        assert!(matches!(turn.next(), Step::Act(_)), "{wrong}");
        report(&bench, turn);
        let events = bench.memory.events();
        let text = of(&events, Kind::ToolError).last().unwrap().output.as_str().unwrap().to_owned();
        assert!(text.starts_with("Argument Validation Error: "), "{wrong}: {text}");
    }
    assert_eq!(bench.read.load(Ordering::Relaxed), 0, "none of them was made");
    assert!(of(&bench.memory.events(), Kind::ToolCall).is_empty());
}

#[test]
fn the_second_identical_call_is_refused_in_these_words() {
    let replies = [step(&[call("read", "look")]), step(&[call("read", "look")]), ANSWER.into()];
    let bench = bench(&replies.iter().map(String::as_str).collect::<Vec<_>>());
    report(&bench, turn(8));
    assert_eq!(bench.read.load(Ordering::Relaxed), 1);
    let events = bench.memory.events();
    let results = of(&events, Kind::ToolResult);
    assert_eq!((results.len(), &results[1].metadata["outcome"]), (2, &json!("blocked")));
    let text = results[1].output.as_str().unwrap();
    assert!(
        text.starts_with(
            "[System Warning] Loop Detected: You have already executed this tool with these exact arguments."
        ),
        "{text}"
    );
    assert_eq!(of(&events, Kind::GuardrailCheck).iter().filter(|e| e.metadata["finding"] == "loop").count(), 1);
}

#[test]
fn a_halted_run_emits_an_event() {
    let replies: Vec<String> = (1..5).map(|n| step(&[call("read", &format!("fail{n}"))])).collect();
    let bench = bench(&replies.iter().map(String::as_str).collect::<Vec<_>>());
    let report = report(&bench, turn(8));
    assert_eq!((report.termination_reason.as_str(), report.steps), ("consecutive_errors", 3));
    let events = bench.memory.events();
    let halts = of(&events, Kind::ResourceGuardHalt);
    assert_eq!((halts.len(), &halts[0].metadata["reason"]), (1, &json!("consecutive_errors")));
    assert!(halts[0].error.as_deref().unwrap().starts_with("3 steps in a row failed"), "{halts:#?}");
}

#[test]
fn a_failed_plan_request_counts() {
    let script = json!({"context": 3000, "rules": [
        {"system": "You plan a task", "error": "out of memory"}, {"reply": ANSWER}
    ]});
    let mut bench = bench(&[ANSWER]);
    bench.runtime.model = Arc::new(script.to_string().parse::<caro_model::scripted::Scripted>().unwrap());
    let report = report(&bench, turn(8).planned_by_model(8));
    let events = bench.memory.events();
    assert_eq!((of(&events, Kind::ModelCall).len(), of(&events, Kind::ModelError).len()), (2, 1));
    assert_eq!((report.status.as_str(), report.metric.total_requests), ("completed", 2));
    // the next request exceeds the limit
    let mut limited = turn(8).planned_by_model(8);
    limited.limit(Limits { requests: 1, tokens: 0 });
    let report = super::tests::report(&bench, limited);
    assert_eq!((report.termination_reason.as_str(), report.metric.total_requests), ("request_limit", 1));
}
