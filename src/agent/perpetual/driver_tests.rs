//! Tests of the driver with a scripted model: rows D2, D7, D14 to D19 and D21 to D23.

use super::super::channel::{Lines, Received};
use super::super::machine::Perpetual;
use super::*;
use crate::event::Memory as Events;
use crate::harness::{Options, Setup as HarnessSetup};
use crate::store::Store;
use crate::tools::Shell;
use caro_model::scripted::Scripted;
use caro_shell::Dialect;
use serde_json::Value;
use std::io;
use std::sync::Mutex;

/// A loop in a folder of its own.
struct Bench {
    dir: tempfile::TempDir,
    store: Arc<Store>,
    memory: crate::memory::Memory,
    yes: bool,
    asks: bool,
}

/// The texts sent and the events of a loop that has ended.
struct Ran {
    sent: Vec<String>,
    events: Vec<crate::Event>,
}

impl Ran {
    fn count(&self, kind: Kind) -> usize {
        self.events.iter().filter(|event| event.event_type == kind).count()
    }

    /// Returns the prompts of the turns.
    fn prompts(&self) -> Vec<String> {
        let calls = self.events.iter().filter(|event| event.event_type == Kind::ModelCall);
        calls
            .map(|event| event.input.as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            store: Arc::new(Store::in_memory().unwrap()),
            memory: crate::memory::Memory::in_memory(),
            yes: false,
            asks: false,
        }
    }

    fn harness(&self, rules: Value) -> Harness {
        let model: Scripted = json!({"context": 16_000, "rules": rules}).to_string().parse().unwrap();
        let setup = HarnessSetup::new(Arc::new(model), self.dir.path().into());
        Harness::new(HarnessSetup {
            shell: Some(Shell::new("/bin/sh".into(), Dialect::Sh)),
            store: Some(self.store.clone()),
            memory: self.memory.clone(),
            options: Options { unasked: self.yes, ..Options::default() },
            ..setup
        })
        .unwrap()
    }

    /// Sends the lines as messages and runs the loop to its end.
    async fn say(&self, rules: Value, lines: &[&str], set: &[&str]) -> Ran {
        let harness = self.harness(rules);
        let mut parameters = Parameters::default();
        for one in ["sleepInterval=0", "maxNewInputLoops=1"].iter().chain(set) {
            parameters.set(one).unwrap();
        }
        let (send, receive) = std::sync::mpsc::channel();
        lines.iter().for_each(|line| send.send((*line).to_owned()).unwrap());
        drop(send);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (into, events) = (sent.clone(), Arc::new(Events::default()));
        let channel = Lines::new(receive, move |text: &str| {
            into.lock().unwrap().push(text.to_owned());
            Ok(())
        });
        let setup = Setup {
            session: "s".into(),
            parameters,
            channel: Box::new(channel),
            asks: self.asks,
            max_turns: None,
            sinks: vec![events.clone()],
            cancel: Cancel::new(),
        };
        assert_eq!(run(&harness, setup).await.unwrap(), Ended::Over);
        let sent = sent.lock().unwrap().clone();
        Ran { sent, events: events.events() }
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join(name)).ok()
    }
}

/// Returns rules for a model that gives these replies in turn, and then `()`.
fn in_turn(replies: &[&str]) -> Value {
    let replies: Vec<&str> = replies.iter().copied().chain(["()"]).collect();
    json!([{ "replies": replies }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_gets_its_turns_and_answers_are_sent_once() {
    let bench = Bench::new();
    let rules = json!([{"match": "HUMAN_MESSAGE: hello", "reply": r#"((send "hi"))"#}, {"reply": r#"((send "hi"))"#}]);
    let ran = bench.say(rules, &["hello"], &["maxNewInputLoops=3"]).await;
    assert_eq!(ran.count(Kind::ModelCall), 3);
    assert_eq!((ran.sent.as_slice(), ran.count(Kind::FinalAnswer)), (["hi".to_owned()].as_slice(), 1));
    let prompts = ran.prompts();
    assert!(prompts[0].contains("HUMAN_MESSAGE: hello") && !prompts[1].contains("\nHUMAN_MESSAGE"), "{prompts:#?}");
    assert!(prompts[1].contains(r#"(COMMAND_RETURN: ((send "hi") "SEND-SUCCESS"))"#), "{}", prompts[1]);
    assert!(prompts[1].contains(r#"(HUMAN_MESSAGE: "hello") (RESPONSE: ((send "hi")))"#), "{}", prompts[1]);
    assert!(prompts[2].contains("NOT-SENT"), "{}", prompts[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_memory_skills_are_in_the_next_prompt() {
    let bench = Bench::new();
    let replies =
        [r#"((remember "the backup disk is sdb1"))"#, r#"((query "backup disk"))"#, r#"((pin "one of two"))"#];
    let ran = bench.say(in_turn(&replies), &["remember the disk"], &["maxNewInputLoops=4"]).await;
    let prompts = ran.prompts();
    assert!(prompts[1].contains("REMEMBER-SUCCESS"), "{}", prompts[1]);
    assert!(prompts[2].contains("- the backup disk is sdb1"), "{}", prompts[2]);
    assert!(prompts[3].contains("PINNED: one of two"), "{}", prompts[3]);
    assert_eq!((ran.count(Kind::MemoryWrite), ran.count(Kind::MemoryRead)), (1, 1));
    // a new loop remembers all of it
    let time = crate::clock::stamp(now());
    let episodes = format!("((episodes \"{time}\") (query \"disk\") (episodes \"soon\"))");
    let ran = bench.say(in_turn(&[&episodes]), &["what was it?"], &["maxNewInputLoops=2"]).await;
    let prompts = ran.prompts();
    assert!(prompts[0].contains("PINNED: one of two") && prompts[0].contains("remember the disk"), "{}", prompts[0]);
    let results = &prompts[1][..prompts[1].find("HISTORY:").unwrap()];
    assert!(results.contains("remember the disk") && results.contains("- the backup disk is sdb1"), "{results}");
    assert!(prompts[1].contains("it takes a time"), "{}", prompts[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_time_out() {
    let bench = Bench::new();
    let started = Instant::now();
    let set = ["maxNewInputLoops=2", "skillTimeout=1"];
    let ran = bench.say(in_turn(&[r#"((shell "sleep 300"))"#]), &["wait"], &set).await;
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert!(ran.prompts()[1].contains("timeout_error"), "{}", ran.prompts()[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_skills_need_permission_and_fail_separately() {
    let write = r#"((append-file "a.txt" "x") (write-file "a.txt" "one") (append-file "a.txt" "two") (read-file "a.txt") (nothing "x"))"#;
    let mut bench = Bench::new();
    let set = ["maxNewInputLoops=2", "grammar=off"];
    let ran = bench.say(in_turn(&[write]), &["write it"], &set).await;
    assert_eq!(bench.file("a.txt"), None);
    assert!(ran.prompts()[1].contains("NOT-ALLOWED"), "{}", ran.prompts()[1]);
    bench.yes = true;
    let ran = bench.say(in_turn(&[write]), &["write it"], &set).await;
    assert_eq!(bench.file("a.txt").as_deref(), Some("one\ntwo\n"));
    let prompt = &ran.prompts()[1];
    let results = &prompt[..prompt.find("HISTORY:").unwrap()];
    assert_eq!(results.matches("SINGLE_COMMAND_FORMAT_ERROR").count(), 1, "of the skill that there is not: {prompt}");
    assert_eq!(results.matches("COMMAND_FAILED").count(), 1, "of the file that there is not: {prompt}");
    assert!(results.contains("one\\ntwo"), "{prompt}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consent_can_be_given_through_the_channel() {
    let write = in_turn(&[r#"((write-file "a.txt" "one"))"#]);
    for (answer, done) in [("yes", true), ("no", false), ("what is the time?", false)] {
        let bench = Bench { asks: true, ..Bench::new() };
        // the answer is sent after the question: earlier messages do not count
        let (send, receive) = std::sync::mpsc::channel::<String>();
        send.send("write it".into()).unwrap();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let answer_is_message = answer.ends_with('?');
        let (into, mut send, answer) = (sent.clone(), Some(send), answer.to_owned());
        let channel = Lines::new(receive, move |text: &str| {
            into.lock().unwrap().push(text.to_owned());
            if text.contains("[yes/no]")
                && let Some(send) = send.take()
            {
                send.send(answer.clone()).unwrap();
            }
            Ok(())
        });
        let mut parameters = Parameters::default();
        ["sleepInterval=0", "maxNewInputLoops=1"].iter().for_each(|one| parameters.set(one).unwrap());
        let harness = bench.harness(write.clone());
        let setup = Setup {
            session: "s".into(),
            parameters,
            channel: Box::new(channel),
            asks: true,
            max_turns: None,
            sinks: Vec::new(),
            cancel: Cancel::new(),
        };
        run(&harness, setup).await.unwrap();
        assert_eq!(bench.file("a.txt").is_some(), done);
        assert!(sent.lock().unwrap()[0].contains("May I? write"), "{sent:?}");
        let history = bench.store.loop_history("s", 9).unwrap().join("\n");
        // a reply that is no answer becomes the next message
        assert_eq!(history.contains("what is the time?"), answer_is_message, "{history}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_commands_are_repeated_only_if_idempotent() {
    for (call, is_made) in [(r#"(append-file "a.txt" "x")"#, false), (r#"(write-file "a.txt" "x")"#, true)] {
        let bench = Bench { yes: true, ..Bench::new() };
        std::fs::write(bench.dir.path().join("a.txt"), "").unwrap();
        bench.say(in_turn(&[]), &[], &[]).await;
        let mut machine = Perpetual::new(Parameters::default());
        machine.on(Event::Tick, 1);
        machine.on(Event::Answered(format!("({call} (send \"done\"))")), 1);
        machine.on(Event::Began, 1);
        let state = serde_json::to_string(&machine).unwrap();
        bench.store.keep_loop("s", &state, 0, &[], &[]).unwrap();
        let ran = bench.say(in_turn(&[]), &["go on"], &[]).await;
        assert_eq!(bench.file("a.txt").unwrap(), if is_made { "x\n" } else { "" });
        assert_eq!(ran.sent, ["done"]);
        assert_eq!(ran.prompts()[0].contains("nobody knows whether it was done"), !is_made);
    }
}

/// A channel that fails after sending.
struct Breaks(Vec<String>, Arc<Mutex<Vec<String>>>);

impl Channel for Breaks {
    fn receive(&mut self, _: &str) -> io::Result<Received> {
        Ok(Received { messages: std::mem::take(&mut self.0), cursor: String::new() })
    }
    fn send(&mut self, text: &str) -> io::Result<()> {
        self.1.lock().unwrap().push(text.to_owned());
        Err(io::Error::other("ended"))
    }
    fn has_sent(&mut self, _: &str, text: &str) -> bool {
        self.1.lock().unwrap().iter().any(|sent| sent == text)
    }
    fn is_over(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_sent_by_a_killed_process_is_not_sent_again() {
    let bench = Bench::new();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let mut parameters = Parameters::default();
    ["sleepInterval=0", "maxNewInputLoops=1"].iter().for_each(|one| parameters.set(one).unwrap());
    for attempt in 0..2 {
        let harness = bench.harness(in_turn(&[r#"((send "hi"))"#]));
        let messages = if attempt == 0 { vec!["hello".to_owned()] } else { Vec::new() };
        let setup = Setup {
            session: "s".into(),
            parameters: parameters.clone(),
            channel: Box::new(Breaks(messages, sent.clone())),
            asks: false,
            max_turns: Some(3),
            sinks: Vec::new(),
            cancel: Cancel::new(),
        };
        assert_eq!(run(&harness, setup).await.is_err(), attempt == 0);
    }
    assert_eq!(*sent.lock().unwrap(), ["hi"]);
    assert_eq!(bench.store.outgoing("s").unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn due_tasks_run_between_turns() {
    use crate::store::{StoredTask, TaskState};
    let bench = Bench::new();
    let rules = json!([
        {"match": "Task: say hello", "reply": "Thought: easy\nAction: answer {\"text\": \"hello\"}"}, {"reply": "()"}
    ]);
    let task = StoredTask {
        name: "greet".into(),
        text: "say hello to everybody".into(),
        schedule: "every 3600s".into(),
        root: bench.dir.path().canonicalize().unwrap(),
        retries: 0,
        delay: 0,
        timeout: 60,
        next: Some(1),
        created: 1,
    };
    bench.store.add_task(&task).unwrap();
    bench.say(rules, &["hello"], &[]).await;
    let runs = bench.store.task_runs("greet", 9).unwrap();
    assert_eq!((runs.len(), runs[0].state), (1, TaskState::Completed), "{runs:?}");
    let run = bench.store.run(&runs[0].run).unwrap();
    assert_eq!((run.answer.as_str(), run.session.as_str()), ("hello", "task-greet"));
    let kinds: Vec<Kind> = bench.store.events(&run.id, 0).unwrap().iter().map(|event| event.event_type).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), (Kind::BackgroundStart, Kind::BackgroundEnd));
    assert!(bench.store.tasks().unwrap()[0].next.unwrap() > now());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_loop_asks_no_model() {
    let bench = Bench::new();
    let cancel = Cancel::new();
    cancel.cancel();
    let (harness, events) = (bench.harness(in_turn(&[])), Arc::new(Events::default()));
    let setup = Setup {
        session: "s".into(),
        parameters: Parameters::default(),
        channel: Box::new(Breaks(Vec::new(), Arc::default())),
        asks: false,
        max_turns: None,
        sinks: vec![events.clone()],
        cancel,
    };
    assert_eq!(run(&harness, setup).await.unwrap(), Ended::Stopped);
    assert!(events.events().iter().all(|event| event.event_type != Kind::ModelCall));
}
