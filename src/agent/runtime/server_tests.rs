//! Tests runs whose model is on a server that fails, or that does not keep to the grammar.

use super::tests::{ANSWER, Bench, bench, call, report, step, task, turn};
use super::*;
use crate::guard::{Budget, GoalGuard, Guard, Guards};
use caro_model::{Completion, Finish, Flow, Limits, Model, Usage};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// A server: answers as given, `None` for a failure; checks no shape if it is told so.
#[derive(Default)]
struct Server {
    answers: Mutex<VecDeque<Option<String>>>,
    prompts: Mutex<Vec<String>>,
}

impl Server {
    fn new(answers: &[Option<&str>]) -> Arc<Self> {
        let answers = answers.iter().map(|answer| answer.map(str::to_owned)).collect();
        Arc::new(Self { answers: Mutex::new(answers), ..Self::default() })
    }
}

impl Model for Server {
    fn id(&self) -> &str {
        "openai:test"
    }

    fn limits(&self) -> Limits {
        Limits { context: 8000 }
    }

    fn is_local(&self) -> bool {
        false
    }

    fn count(&self, text: &str) -> usize {
        text.len() / 4
    }

    fn generate(&self, request: &Request, _: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        let url = "http://h/v1".to_owned();
        self.prompts.lock().unwrap().push(request.prompt.messages.last().unwrap().text.clone());
        let Some(text) = self.answers.lock().unwrap().pop_front().flatten() else {
            return Err(ModelError::Remote { url, reason: "connection refused".into() });
        };
        let answer = Completion { text, tokens: Vec::new(), end: None, finish: Finish::Stop, usage: Usage::default() };
        let reason = "the grammar does not allow it".into();
        Err(ModelError::WrongShape { url, reason, answer: Box::new(answer) })
    }
}

/// The latest checkpoint.
#[derive(Default)]
struct Latest(Mutex<String>);

impl Checkpoints for Latest {
    fn keep(&self, _: &str, text: &str) -> Result<(), String> {
        text.clone_into(&mut self.0.lock().unwrap());
        Ok(())
    }
}

fn bench_on(server: &Arc<Server>) -> Bench {
    let mut bench = bench(&[ANSWER]);
    bench.runtime.model = server.clone();
    bench
}

#[test]
fn a_run_whose_server_fails_can_be_resumed_where_it_stood() {
    let read = step(&[call("read", "a")]);
    let answers = [Some(read.as_str()), None, None, Some(ANSWER)];
    let server = Server::new(&answers);
    let mut bench = bench_on(&server);
    let latest = Arc::<Latest>::default();
    bench.runtime.checkpoints = latest.clone();
    let mut now = turn(8);
    for _ in 0..2 {
        let report = report(&bench, now);
        assert_eq!((report.status.as_str(), report.termination_reason.as_str()), ("stopped", "model_error"));
        assert!(report.response.contains("connection refused"), "{}", report.response);
        now = serde_json::from_str(&latest.0.lock().unwrap()).unwrap();
        assert!(matches!(now.next(), Step::Decide(_)), "{:?}", now.next());
    }
    let report = report(&bench, now);
    assert_eq!((report.status.as_str(), report.response.as_str()), ("completed", "ok"));
    assert_eq!(bench.read.load(Ordering::Relaxed), 1);
}

#[test]
fn a_server_that_fails_at_the_plan_costs_no_plan() {
    let server = Server::new(&[]);
    let mut bench = bench_on(&server);
    let latest = Arc::<Latest>::default();
    bench.runtime.checkpoints = latest.clone();
    let report = report(&bench, turn(8).planned_by_model(20));
    assert_eq!(report.status, "stopped");
    let stored: AgentRun = serde_json::from_str(&latest.0.lock().unwrap()).unwrap();
    assert!(matches!(stored.next(), Step::Plan(_)), "{:?}", stored.next());
}

#[test]
fn an_action_that_is_not_admitted_is_a_wrong_step_and_the_model_is_told_what_is() {
    let server = Server::new(&[Some("Thought: x\nAction: list {\"path\": \".\"}"), Some(ANSWER)]);
    let report = report(&bench_on(&server), turn(8));
    assert_eq!((report.status.as_str(), report.steps), ("completed", 2));
    let prompts = server.prompts.lock().unwrap();
    let told = "Nothing was done: `list` is not allowed now; allowed are `read`, `write`, `answer`, `cannot`.";
    assert!(prompts[1].contains(told), "{}", prompts[1]);
}

#[test]
fn an_answer_that_comes_too_early_is_sent_back_and_ends_unverified_if_it_stays() {
    let early = "Thought: x\nAction: answer {\"text\": \"it is in out.txt\"}";
    let server = Server::new(&[Some(early); 9]);
    let mut bench = bench_on(&server);
    let text = "write a haiku to out.txt";
    let guards: Vec<Arc<dyn Guard>> = vec![Arc::new(GoalGuard::new(text, "/w".as_ref())), Arc::new(Budget::default())];
    bench.runtime.guards = Guards::new(guards, &[]);
    let report = report(&bench, task(8, text));
    assert_eq!((report.termination_reason.as_str(), report.response.as_str()), ("unverified", "it is in out.txt"));
    assert!(report.missing.concat().contains("out.txt"), "{:?}", report.missing);
    let prompts = server.prompts.lock().unwrap();
    assert!(prompts.len() > 1 && prompts[1].contains("`answer` is not allowed now; allowed are `"), "{prompts:?}");
}
