//! Tests of the state machine with a fake clock: rows D1 to D6, D10 to D16, D20 and D23.

use super::super::sexpr::{MULTI_FAILURE, REMINDER};
use super::*;

const SECOND: Millis = 1000;
const DAY: u64 = 86_400;

/// A machine, its clock, and a record of what it asked for.
struct Bench {
    machine: Perpetual,
    now: Millis,
    questions: Vec<Question>,
    runs: Vec<Run>,
    history: Vec<Entry>,
    sent: Vec<String>,
    messages: u64,
}

impl Bench {
    fn new(set: &[&str]) -> Self {
        let mut parameters = Parameters::default();
        set.iter().for_each(|one| parameters.set(one).unwrap());
        let machine = Perpetual::new(parameters);
        Self { machine, now: 0, questions: vec![], runs: vec![], history: vec![], sent: vec![], messages: 0 }
    }

    /// Creates a machine that has used up its first turns.
    fn idle(set: &[&str]) -> Self {
        let mut bench = Self::new(set);
        while !bench.machine.is_idle() {
            bench.step("()");
        }
        bench.questions.clear();
        bench
    }

    fn say(&mut self, text: &str) {
        self.messages += 1;
        self.machine.on(Event::Message(self.messages, text.into()), self.now);
    }

    /// Satisfies the next need; the model always answers `reply`.
    fn step(&mut self, reply: &str) {
        match self.machine.need() {
            Need::Receive(wait) => {
                self.now += u64::try_from(wait.as_millis()).unwrap();
                self.machine.on(Event::Tick, self.now);
            }
            Need::Ask(question) => {
                self.questions.push(question);
                self.machine.on(Event::Answered(reply.into()), self.now);
            }
            Need::Run(run) => {
                self.machine.on(Event::Began, self.now);
                self.runs.push(run);
                self.machine.on(Event::Ended(Returned::done("it is done")), self.now);
            }
        }
        if let Some((entries, outgoing)) = self.machine.take_changes() {
            self.history.extend(entries);
            self.sent.extend(outgoing);
        }
    }

    /// Advances the clock by `seconds`; returns how often the model was asked.
    fn seconds(&mut self, seconds: u64, reply: &str) -> usize {
        let (until, before) = (self.now + seconds * SECOND, self.questions.len());
        while self.now < until {
            self.step(reply);
        }
        self.questions.len() - before
    }

    /// Runs the remaining turns; returns how often the model was asked.
    fn until_idle(&mut self, reply: &str) -> usize {
        let before = self.questions.len();
        while !self.machine.is_idle() {
            self.step(reply);
        }
        self.questions.len() - before
    }
}

/// D1, D2
#[test]
fn turns_are_renewed_at_the_start_and_by_each_message() {
    let mut bench = Bench::new(&[]);
    assert_eq!(bench.seconds(500, "()"), 50, "before any message");
    bench.say("hello");
    assert_eq!(bench.seconds(60, r#"((pin "x"))"#), 50);
    assert_eq!(bench.seconds(60, "()"), 0);
    let mut three = Bench::idle(&["maxNewInputLoops=3"]);
    three.say("hello");
    assert_eq!(three.seconds(100, "()"), 3);
    // a message during the turns renews them
    three.say("and more");
    three.step("()");
    three.step("()");
    three.say("and even more");
    assert_eq!(three.seconds(100, "()"), 3, "the turn that was under way is not one of them");
}

/// D3, D4, D5
#[test]
fn it_wakes_once_per_interval_and_asks_nothing_in_between() {
    let mut bench = Bench::idle(&["maxNewInputLoops=2"]);
    assert_eq!(bench.seconds(590, "()"), 0);
    let calls = bench.seconds(DAY, "()");
    // each wake asks one turn later, and the next interval begins then
    let expected = usize::try_from(DAY / 602).unwrap();
    assert!((expected - 1..=expected + 1).contains(&calls), "{calls}, and not {expected}");
    assert!(bench.questions.iter().all(|question| question.woken && question.message.is_none()));
    bench.say("delete a.log");
    bench.seconds(1, "()");
    assert_eq!(bench.machine.worked_on(), "delete a.log");
    bench.seconds(700, "()");
    assert_eq!(bench.machine.worked_on(), "", "a wake has no right that a message has given");
    let mut thrice = Bench::idle(&["maxNewInputLoops=1", "maxWakeLoops=3", "wakeupInterval=60"]);
    assert_eq!(thrice.seconds(70, "()"), 3);
    let mut never = Bench::idle(&["maxNewInputLoops=1", "maxWakeLoops=0", "wakeupInterval=60"]);
    assert_eq!(never.seconds(DAY, "()"), 0);
    let mut slow = Bench::idle(&["maxNewInputLoops=1", "wakeupInterval=1e9"]);
    assert_eq!(slow.seconds(DAY, "()"), 0, "none while idle for a day");
    assert!(slow.machine.take_changes().is_none(), "and nothing to write down");
}

/// D4
#[test]
fn between_two_turns_it_sleeps() {
    let mut bench = Bench::new(&["sleepInterval=7", "maxNewInputLoops=3"]);
    assert_eq!(bench.machine.need(), Need::Receive(Duration::ZERO), "the first turn waits for nothing");
    bench.until_idle("()");
    assert_eq!(bench.now, 2 * 7 * SECOND);
}

/// D6
#[test]
fn a_repeated_message_renews_the_turns_only_after_the_first_is_done() {
    let mut bench = Bench::idle(&["maxNewInputLoops=3"]);
    bench.say("status?");
    bench.step("()");
    bench.step("()");
    bench.say("status?");
    assert_eq!(bench.until_idle("()"), 2);
    let seen = bench.questions.iter().filter(|question| question.message.is_some()).count();
    assert_eq!(seen, 2, "it was not lost");
    bench.say("status?");
    assert_eq!(bench.seconds(100, "()"), 3, "a message of its own");
    bench.say("  ");
    assert_eq!(bench.seconds(100, "()"), 0);
}

/// D21, D23
#[test]
fn messages_during_a_turn_wait_and_are_joined() {
    let mut bench = Bench::idle(&["maxNewInputLoops=2"]);
    bench.say("one");
    bench.step("()");
    assert!(matches!(bench.machine.need(), Need::Ask(_)));
    bench.say("two");
    bench.say("three");
    bench.machine.on(Event::Message(bench.messages, "three once more".into()), 0);
    bench.machine.on(Event::Answered(r#"((shell "ls") (shell "pwd"))"#.into()), 0);
    bench.step("");
    assert!(matches!(bench.machine.need(), Need::Run(_)), "the batch is finished first");
    bench.until_idle("()");
    let messages: Vec<_> = bench.questions.iter().filter_map(|question| question.message.as_deref()).collect();
    assert_eq!(messages, ["two | three"]);
    assert_eq!(bench.runs.len(), 2);
    assert_eq!(bench.history[0].message.as_deref(), Some("one"));
}

/// D10
#[test]
fn only_five_of_six_calls_are_made() {
    let mut bench = Bench::new(&["maxNewInputLoops=1", "grammar=off"]);
    let six: Vec<String> = (0..6).map(|n| format!("(shell \"echo {n}\")")).collect();
    bench.until_idle(&format!("({})", six.join(" ")));
    assert_eq!(bench.runs.len(), 5);
    assert!(bench.history[0].errors[0].contains("only the first 5 of 6"), "{:?}", bench.history);
}

/// D12, D13, D14, D15
#[test]
fn errors_are_in_the_next_prompt_and_other_calls_are_made() {
    let mut bench = Bench::new(&["maxNewInputLoops=1"]);
    bench.until_idle("I will look at it.");
    assert!(bench.machine.last_results().contains(REMINDER), "{}", bench.machine.last_results());
    bench.say("a");
    bench.until_idle(r#"((send "hi) (shell "rm x"))"#);
    assert!(bench.machine.last_results().contains(MULTI_FAILURE));
    assert_eq!((bench.runs.len(), bench.sent.len()), (0, 0), "nothing was done");
    bench.say("b");
    bench.until_idle(r#"((send) (metta "x") (shell "ls") (send "hi"))"#);
    let results = bench.machine.last_results();
    assert_eq!(results.matches(SINGLE_FAILURE).count(), 2, "{results}");
    assert!(results.contains(r#"(COMMAND_RETURN: ((shell "ls") "it is done"))"#), "{results}");
    assert_eq!((bench.runs.len(), bench.sent.as_slice()), (1, ["hi".to_owned()].as_slice()));
    let last = bench.history.last().unwrap();
    assert_eq!((last.message.as_deref(), last.errors.len()), (Some("b"), 2));
    bench.say("c");
    bench.until_idle("()");
    assert!(bench.history.last().unwrap().errors.is_empty(), "errors are those of the turn");
}

/// D16
#[test]
fn history_records_turns_with_a_message_or_calls() {
    let mut bench = Bench::new(&["maxNewInputLoops=3"]);
    bench.until_idle("()");
    assert!(bench.history.is_empty());
    bench.say("hello");
    bench.until_idle(r#"((pin "waiting"))"#);
    let messages: Vec<bool> = bench.history.iter().map(|entry| entry.message.is_some()).collect();
    assert_eq!(messages, [true, false, false]);
    assert_eq!((bench.machine.pinned(), bench.history[0].response.as_str()), ("waiting", r#"((pin "waiting"))"#));
}

/// D19
#[test]
fn the_same_text_is_not_sent_twice_in_a_row() {
    let mut bench = Bench::new(&["maxNewInputLoops=3"]);
    bench.until_idle(r#"((send "a") (send "a"))"#);
    bench.say("x");
    bench.until_idle(r#"((send "b") (send "a") (send ""))"#);
    assert_eq!(bench.sent, ["a", "b", "a", "b", "a", "b", "a"]);
    // the same answer to another message is sent, once
    bench.say("y");
    bench.until_idle(r#"((send "a"))"#);
    assert_eq!(bench.sent[7..], ["a"]);
}

/// An identical call is refused unless something has changed (decision 2 of the harness).
#[test]
fn a_repeated_call_is_not_made_and_excludes_its_skill() {
    let mut bench = Bench::idle(&["maxNewInputLoops=6"]);
    let turn = |bench: &mut Bench, reply: &str| {
        let before = bench.runs.len();
        bench.step("");
        while !bench.machine.is_between_turns() {
            bench.step(reply);
        }
        bench.runs.len() - before
    };
    bench.say("x");
    let ls = r#"((shell "ls"))"#;
    assert_eq!(turn(&mut bench, ls), 1);
    assert_eq!((turn(&mut bench, ls), bench.machine.repeated()), (0, ["shell".to_owned()].as_slice()));
    assert!(bench.machine.last_results().contains("with this result: it is done"), "{}", bench.machine.last_results());
    assert_eq!(turn(&mut bench, ls), 0, "nor after that");
    assert_eq!(bench.machine.last_results().matches("NOT-DONE-AGAIN").count(), 1);
    assert_eq!(turn(&mut bench, r#"((shell "pwd") (pin "x"))"#), 1);
    assert_eq!((turn(&mut bench, ls), bench.machine.repeated().len()), (1, 0), "something else was done in between");
    bench.say("x");
    assert_eq!(turn(&mut bench, ls), 1, "a message asks for it anew");
}

#[test]
fn an_empty_list_ends_the_turns_only_with_rest_on_empty() {
    let mut bench = Bench::idle(&["maxNewInputLoops=9"]);
    bench.say("x");
    assert_eq!(bench.until_idle("()"), 9);
    let mut rests = Bench::new(&["maxNewInputLoops=9", "restOnEmpty=true"]);
    assert_eq!(rests.until_idle("()"), 1);
    rests.say("x");
    assert_eq!(rests.until_idle("()"), 1);
    rests.say("y");
    assert_eq!(rests.until_idle(r#"((pin "z"))"#), 9);
}

#[test]
fn model_failures_only_use_up_turns() {
    let mut bench = Bench::new(&["maxNewInputLoops=3"]);
    let mut asked = 0;
    while !bench.machine.is_idle() {
        if let Need::Ask(_) = bench.machine.need() {
            asked += 1;
            bench.machine.on(Event::Failed("no model".into()), bench.now);
        } else {
            bench.step("");
        }
    }
    assert_eq!(asked, 3);
    assert!(bench.machine.last_results().contains("no model"));
}

/// A machine restored after every step behaves like one that was not.
#[test]
fn it_continues_from_any_stored_state() {
    let replies = [r#"((pin "p") (shell "ls") (send "a"))"#, "()", r#"((send "b"))"#];
    let run = |restored: bool| {
        let mut bench = Bench::new(&["maxNewInputLoops=4"]);
        for step in 0..60 {
            if step == 12 || step == 31 {
                bench.say("more");
            }
            bench.step(replies[step % replies.len()]);
            if restored {
                let text = serde_json::to_string(&bench.machine).unwrap();
                let phase = matches!(bench.machine.phase, Phase::Waiting(false));
                bench.machine = Perpetual::restore(&text, bench.machine.parameters.clone()).unwrap();
                if phase {
                    // undo the skipped wait before the first turn of a process
                    bench.machine.phase = Phase::Waiting(false);
                }
            }
        }
        (bench.history, bench.sent, bench.questions, bench.machine.pinned().to_owned())
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn begun_calls_are_marked_until_they_end() {
    let mut bench = Bench::new(&[]);
    bench.step("");
    bench.step(r#"((shell "ls") (shell "pwd"))"#);
    let begun = |machine: &Perpetual| match machine.need() {
        Need::Run(run) => (run.id, run.begun),
        other => panic!("{other:?}"),
    };
    assert_eq!(begun(&bench.machine), ("t1c1".into(), false));
    bench.machine.on(Event::Began, 0);
    assert_eq!(begun(&bench.machine), ("t1c1".into(), true));
    bench.machine.on(Event::Ended(Returned::done("x")), 0);
    assert_eq!(begun(&bench.machine), ("t1c2".into(), false));
}

proptest::proptest! {
    /// For any sequence of messages, ticks and answers, each message is in exactly one turn, in order.
    #[test]
    fn no_message_is_lost_or_taken_twice(steps in proptest::collection::vec((0u8..4, 0u8..5), 0..120)) {
        let mut bench = Bench::new(&["maxNewInputLoops=2"]);
        let mut messages = Vec::new();
        for (what, reply) in steps {
            if what == 0 {
                messages.push(format!("m{}", messages.len()));
                bench.say(messages.last().unwrap());
            }
            let replies = ["()", r#"((shell "a") (send "x"))"#, "prose", r#"((send "hi) ("#, r#"((pin "p"))"#];
            bench.step(replies[usize::from(reply)]);
        }
        bench.until_idle("()");
        bench.until_idle("()");
        let taken: Vec<&str> =
            bench.questions.iter().filter_map(|q| q.message.as_deref()).flat_map(|m| m.split(" | ")).collect();
        proptest::prop_assert_eq!(taken, messages);
    }
}
