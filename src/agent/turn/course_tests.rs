//! The way through a plan, driven by hand: who is asked for which part, and what is carried from one to the next.

use super::tests::TOKENS;
use super::*;
use crate::agent::advise::Advice;
use crate::agent::evidence::{Changes, Entry};
use crate::agent::id;
use crate::agent::plan::Plan;
use serde_json::json;

fn led(task: &str) -> Turn {
    let mut turn = Turn::new(Task {
        run: "run_1".into(),
        session: "s_1".into(),
        agent: "agent".into(),
        text: task.into(),
        plan: Plan::heuristic(task),
        max_steps: 9,
        batch: 1,
        place: String::new(),
    });
    let text = || json!({"type": "string"});
    let shell = ToolSpec::new("shell", "runs.", json!({"command": text()}), &["command"]);
    let write = ToolSpec::new("write", "writes.", json!({"path": text(), "content": text()}), &["path", "content"]);
    turn.lead(true);
    turn.assembled(Assembly::default(), vec![shell, write], Vec::new(), &Guards::default());
    turn
}

fn advise(turn: &mut Turn, command: &str) -> String {
    let Step::Advise(brief) = turn.next() else { panic!("{:?}", turn.next()) };
    let args = json!({ "command": command }).as_object().unwrap().clone();
    let advice = Advice { tool: "shell".into(), args, confidence: 0.9 };
    turn.advised(Some(advice), &Guards::default());
    brief.part
}

fn act(turn: &mut Turn, outcome: Outcome, text: &str, names: &[&str]) -> Call {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let call = calls[0].clone();
    let writes = if call.tool == "write" { vec!["/w/report.md".into()] } else { Vec::new() };
    let foreseen = Call { effects: Effects { writes, ..Effects::default() }, ..call.clone() };
    let seen = Seen { names: names.iter().map(|n| n.to_string()).collect(), ..Seen::default() };
    let settled = Settled { call: foreseen, outcome, text: text.into(), hash: id::hash(text), ms: 1 };
    turn.acted(&[settled], &seen, &Guards::default());
    call
}

fn decide(turn: &Turn) -> Decide {
    let Step::Decide(decide) = turn.next() else { panic!("{:?}", turn.next()) };
    *decide
}

const TASK: &str = "find the two largest logs, show how many errors each has, and write a summary to report.md";

#[test]
fn a_plan_goes_from_command_to_command_to_text_to_answer() {
    let mut turn = led(TASK);
    assert_eq!(advise(&mut turn, "find . -name '*.log'"), "find the two largest logs below .");
    act(&mut turn, Outcome::Done, "./a.log\n./b.log\n", &["./a.log", "./b.log"]);
    let Step::Advise(brief) = turn.next() else { panic!() };
    assert_eq!(brief.done[0].command, "find . -name '*.log'");
    assert_eq!(
        advise(&mut turn, "grep -c ERR ./a.log ./b.log"),
        "show how many errors each of ./a.log and ./b.log has"
    );
    act(&mut turn, Outcome::Done, "./a.log:3\n./b.log:0\n", &["./a.log", "./b.log"]);
    let write = decide(&turn);
    assert_eq!((write.actions.tools, write.actions.path), (vec!["write".to_owned()], Some("report.md".to_owned())));
    assert!(format!("{:?}", write.shape).contains("report.md"), "the grammar has the file's name");
    let text = "Thought: now\nAction: write {\"path\": \"report.md\", \"content\": \"a.log: 3, b.log: 0\"}";
    turn.decided(text, Finish::Stop, TOKENS, &Guards::default());
    act(&mut turn, Outcome::Done, "wrote report.md", &[]);
    let (end, said) = turn.end().unwrap();
    assert_eq!(end, &End::Answered, "nothing is left to be asked");
    assert!(said.contains("has:\n./a.log:3\n./b.log:0\n") && said.ends_with("report.md: wrote report.md"), "{said}");
}

#[test]
fn who_wants_to_be_told_is_answered_by_the_model() {
    let mut turn = led("count the lines of a.txt and tell me the number");
    advise(&mut turn, "wc -l a.txt");
    act(&mut turn, Outcome::Done, "12 a.txt\n", &["a.txt"]);
    let end = decide(&turn);
    assert_eq!(end.actions.names(), ["answer"]);
    assert!(end.prompt.turns.last().unwrap().text.contains("Every part is done"));
    turn.decided("Thought: x\nAction: answer {\"text\": \"12\"}", Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap(), (&End::Answered, "12"), "of its own will, not because a limit was met");
}

#[test]
fn an_answer_that_is_not_the_number_is_not_given() {
    let mut turn = led("count the users and tell me the number");
    advise(&mut turn, "wc -l < users");
    act(&mut turn, Outcome::Done, "4\n", &[]);
    turn.decided("Thought: x\nAction: answer {\"text\": \"There are 3.\"}", Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap(), (&End::Answered, "count the users: 4"));
}

#[test]
fn what_finds_nothing_is_tried_in_another_way_and_then_stands() {
    let mut turn = led("find the file with the word teh, then tell me its name");
    for (command, told) in
        [("ls teh", "(no output)"), ("grep -rl teh docs", "(exit code 1)"), ("grep -rc teh .", "./a:0\n(exit code 1)")]
    {
        advise(&mut turn, command);
        act(&mut turn, Outcome::Done, told, &[]);
    }
    assert_eq!(decide(&turn).actions.names(), ["answer"], "there is nothing, and that is the answer");
    let mut turn = led("find the file with the word teh, then tell me its name");
    advise(&mut turn, "gerp teh");
    act(&mut turn, Outcome::Failed, "gerp: command not found", &[]);
    let Step::Advise(brief) = turn.next() else { panic!() };
    assert!(!brief.done[0].worked && brief.done[0].printed.contains("not found"));
    turn.advised(None, &Guards::default());
    assert!(decide(&turn).actions.tools.contains(&"shell".to_owned()), "the model decides");
}

#[test]
fn what_was_listed_is_counted_as_it_was() {
    let list = |printed: &str, names: &[&str]| {
        let mut turn = led("find the python files, count them, and save the number to n.txt");
        advise(&mut turn, "find . -name '*.py'");
        act(&mut turn, Outcome::Done, printed, names);
        turn
    };
    let mut turn = list("./a.py\n./b.py\n", &["./a.py", "./b.py"]);
    assert_eq!(act(&mut turn, Outcome::Done, "2\n", &[]).args["command"], "{ find . -name '*.py'; } | wc -l");
    assert_eq!(act(&mut turn, Outcome::Done, "wrote n.txt", &[]).args["content"], "2");
    // a heading is no item
    let mut turn = list("total 2\n./a.py\n./b.py\n", &["./a.py", "./b.py"]);
    assert_eq!(advise(&mut turn, "ls | wc -l"), "count ./a.py and ./b.py");
}

#[test]
fn what_was_only_counted_can_be_meant() {
    let mut turn = led("count the logs in old and delete them");
    advise(&mut turn, "ls old/*.log | wc -l");
    act(&mut turn, Outcome::Done, "3\n", &[]);
    assert_eq!(advise(&mut turn, "rm old/*.log"), "delete the logs in old");
}

#[test]
fn what_was_seen_is_saved_as_it_is() {
    let mut turn = led("list the files in notes and save the list to names.txt");
    advise(&mut turn, "ls notes");
    act(&mut turn, Outcome::Done, "a.md\nb.md\n", &[]);
    let saved = act(&mut turn, Outcome::Done, "wrote names.txt", &[]);
    assert_eq!((saved.tool.as_str(), &saved.args["content"]), ("write", &json!("a.md\nb.md")));
    // what was too long to be shown is printed again, into the file
    let mut turn = led("list the files in notes and save the list to names.txt");
    advise(&mut turn, "ls notes");
    let Step::Act(calls) = turn.next() else { panic!() };
    let cut =
        Settled { call: calls[0].clone(), outcome: Outcome::Done, text: "cut".into(), hash: id::hash("long"), ms: 1 };
    turn.acted(&[cut], &Seen::default(), &Guards::default());
    let saved = act(&mut turn, Outcome::Done, "(no output)", &[]);
    assert_eq!(saved.args["command"], "printf '%s\\n' \"$(ls notes)\" > names.txt");
}

#[test]
fn both_is_what_the_last_two_looks_showed() {
    let mut turn = led("find the word, count how often it occurs, and write both to word.txt");
    advise(&mut turn, "sort words | head -n 1");
    act(&mut turn, Outcome::Done, "the\n", &[]);
    advise(&mut turn, "grep -c the words");
    act(&mut turn, Outcome::Done, "5\n", &[]);
    let saved = act(&mut turn, Outcome::Done, "wrote word.txt", &[]);
    assert_eq!(saved.args["content"], "the\n5");
}

#[test]
fn a_text_that_is_refused_twice_is_put_together_from_what_was_seen() {
    let mut turn = led("count the lines of a.txt and write a report to report.md");
    advise(&mut turn, "wc -l a.txt");
    act(&mut turn, Outcome::Done, "12 a.txt\n", &["a.txt"]);
    for _ in 0..2 {
        let text = "Thought: x\nAction: write {\"path\": \"report.md\", \"content\": \"999\"}";
        turn.decided(text, Finish::Stop, TOKENS, &Guards::default());
        act(&mut turn, Outcome::Blocked, "Not written: no tool has shown you 999.", &[]);
    }
    let written = act(&mut turn, Outcome::Done, "wrote report.md", &[]);
    let content = written.args["content"].as_str().unwrap();
    assert!(content.contains("count the lines of a.txt") && content.contains("12 a.txt"), "{content}");
}

#[test]
fn without_an_adviser_the_model_decides_everything() {
    let mut turn = led(TASK);
    turn.lead(false);
    turn.advised(None, &Guards::default());
    assert!(decide(&turn).actions.answer);
}

#[test]
fn a_refusal_by_the_person_is_not_gone_about_again() {
    let mut turn = led("delete the old logs, then tell me what is left");
    advise(&mut turn, "rm a.log");
    act(&mut turn, Outcome::Denied, "The user did not allow this call.", &[]);
    assert!(decide(&turn).actions.answer);
}

/// What the calls of a step changed.
fn act_with(turn: &mut Turn, text: &str, changes: Changes) -> Call {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let call = calls[0].clone();
    let effects = Effects { writes: vec!["/w/x".into()], ..Effects::default() };
    let settled = Settled {
        call: Call { effects, ..call.clone() },
        outcome: Outcome::Done,
        text: text.into(),
        hash: id::hash(text),
        ms: 1,
    };
    turn.acted(&[settled], &Seen { changes: Some(changes), ..Seen::default() }, &Guards::default());
    call
}

fn made(path: &str) -> Changes {
    let entry = Entry { path: path.into(), folder: false, text: Some("x".into()) };
    Changes { created: vec![entry], ..Changes::default() }
}

#[test]
fn what_changed_nothing_is_gone_about_again_and_then_told() {
    let mut turn = led("rename a.txt to b.txt and show it");
    for _ in 0..3 {
        advise(&mut turn, "true > /dev/null");
        act_with(&mut turn, "(no output)", Changes::default());
    }
    let super::Entry::Observation { text, .. } = turn.entries.last().unwrap() else { panic!() };
    assert!(text.contains("(Checked: It changed nothing"), "{text}");
    let answer = "Thought: x\nAction: answer {\"text\": \"Renamed.\"}";
    assert!(decide(&turn).actions.answer);
    turn.decided(answer, Finish::Stop, TOKENS, &Guards::default());
    assert!(turn.end().is_none(), "it is told what is missing once");
    assert!(decide(&turn).prompt.turns.last().unwrap().text.contains("Not done yet:\nrename a.txt to b.txt: "));
    turn.decided(answer, Finish::Stop, TOKENS, &Guards::default());
    let (end, said) = turn.end().unwrap();
    let End::Unverified(missing) = end else { panic!("{end:?}") };
    assert_eq!((end.status(), end.reason(), said), ("incomplete", "unverified", "Renamed."));
    assert!(missing[0].contains("changed nothing") && missing[1].starts_with("show it: "), "{missing:?}");
}

#[test]
fn what_was_made_is_what_it_stands_for() {
    let mut turn = led("merge the parts into whole.txt and count its lines");
    advise(&mut turn, "cat part-* > whole.txt");
    act_with(&mut turn, "(no output)", made("whole.txt"));
    assert_eq!(advise(&mut turn, "wc -l < whole.txt"), "count its lines (whole.txt)");
    act(&mut turn, Outcome::Done, "6\n", &[]);
    let (end, said) = turn.end().unwrap();
    assert_eq!((end, said), (&End::Answered, "merge the parts into whole.txt: made whole.txt\ncount its lines: 6"));
}

#[test]
fn an_answer_before_the_work_is_sent_back() {
    let mut turn = led("fix the bug in main.py and delete old.py");
    let answer = "Thought: x\nAction: answer {\"text\": \"Done.\"}";
    turn.decided(answer, Finish::Stop, TOKENS, &Guards::default());
    assert!(turn.end().is_none());
    turn.decided(answer, Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap().0.reason(), "unverified");
}

#[test]
fn a_file_that_is_to_be_there_is_there_afterwards() {
    let task = "convert people.csv to people.json and show it";
    let convert = |name: &str| {
        let (mut turn, changes) = (led(task), made(name));
        advise(&mut turn, "convert");
        act_with(&mut turn, "(no output)", Changes { before: ["people.csv".to_owned()].into(), ..changes });
        advise(&mut turn, &format!("cat {name}"));
        act(&mut turn, Outcome::Done, "[]\n", &[]);
        turn.end().unwrap().0.clone()
    };
    assert_eq!(convert("people.json"), End::Answered);
    assert_eq!(convert("sub/people.json"), End::Answered, "in whatever folder");
    let End::Unverified(missing) = convert("other.json") else { panic!() };
    assert_eq!(missing, ["people.json is not there."]);
}
