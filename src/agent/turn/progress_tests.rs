//! The way through a plan, driven by hand: who is asked for which part, and what is carried from one to the next.

use super::tests::TOKENS;
use super::*;
use crate::evidence::{Changes, Entry};
use crate::suggest::Suggestion;
use caro_base::id;
use serde_json::json;

fn led(task: &str) -> AgentRun {
    let mut turn = AgentRun::new(super::tests::task(task, 9));
    let text = || json!({"type": "string"});
    let shell = ToolSpec::new("shell", "runs.", json!({"command": text()}), &["command"]);
    let write = ToolSpec::new("write", "writes.", json!({"path": text(), "content": text()}), &["path", "content"]);
    turn.lead(true);
    turn.assembled(Assembly::default(), vec![shell, write], Vec::new(), &Guards::default());
    turn
}

fn advise(turn: &mut AgentRun, command: &str) -> String {
    let Step::Advise(brief) = turn.next() else { panic!("{:?}", turn.next()) };
    let args = json!({ "command": command }).as_object().unwrap().clone();
    let advice = Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
    turn.advised(Some(advice), &Guards::default());
    brief.part
}

fn act(turn: &mut AgentRun, outcome: Outcome, text: &str, names: &[&str]) -> Call {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let call = calls[0].clone();
    let writes = if call.tool == "write" { vec!["/w/report.md".into()] } else { Vec::new() };
    let foreseen = Call { effects: Effects { writes, ..Effects::default() }, ..call.clone() };
    let seen = StepObservation { names: names.iter().map(|n| n.to_string()).collect(), ..StepObservation::default() };
    let settled = ToolResult { call: foreseen, outcome, text: text.into(), hash: id::hash(text), ms: 1 };
    turn.acted(&[settled], &seen, &Guards::default());
    call
}

fn decide(turn: &AgentRun) -> Decide {
    let Step::Decide(decide) = turn.next() else { panic!("{:?}", turn.next()) };
    *decide
}

const TASK: &str = "find the two largest logs, show how many errors each has, and write a summary to report.md";

#[test]
fn a_plan_goes_from_command_to_command_to_text_to_answer() {
    let mut turn = led(TASK);
    assert_eq!(advise(&mut turn, "find . -name '*.log'"), "find the two largest logs below .");
    act(&mut turn, Outcome::Succeeded, "./a.log\n./b.log\n", &["./a.log", "./b.log"]);
    let Step::Advise(brief) = turn.next() else { panic!() };
    assert_eq!(brief.done[0].command, "find . -name '*.log'");
    assert_eq!(
        advise(&mut turn, "grep -c ERR ./a.log ./b.log"),
        "show how many errors each of ./a.log and ./b.log has"
    );
    act(&mut turn, Outcome::Succeeded, "./a.log:3\n./b.log:0\n", &["./a.log", "./b.log"]);
    let write = decide(&turn);
    assert_eq!((write.actions.tools, write.actions.path), (vec!["write".to_owned()], Some("report.md".to_owned())));
    assert!(format!("{:?}", write.shape).contains("report.md"), "the grammar has the file's name");
    let text = "Thought: now\nAction: write {\"path\": \"report.md\", \"content\": \"a.log: 3, b.log: 0\"}";
    turn.decided(text, Finish::Stop, TOKENS, &Guards::default());
    act(&mut turn, Outcome::Succeeded, "wrote report.md", &[]);
    let (end, said) = turn.end().unwrap();
    assert_eq!(end, &End::Answered, "nothing is left to be asked");
    assert!(said.contains("has:\n./a.log:3\n./b.log:0\n") && said.ends_with("report.md: wrote report.md"), "{said}");
}

#[test]
fn who_wants_to_be_told_is_answered_by_the_model() {
    let mut turn = led("count the lines of a.txt and tell me the number");
    advise(&mut turn, "wc -l a.txt");
    act(&mut turn, Outcome::Succeeded, "12 a.txt\n", &["a.txt"]);
    let end = decide(&turn);
    assert_eq!(end.actions.names(), ["answer"]);
    assert!(end.prompt.messages.last().unwrap().text.contains("Every part is done"));
    turn.decided("Thought: x\nAction: answer {\"text\": \"12\"}", Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap(), (&End::Answered, "12"), "of its own will, not because a limit was met");
}

#[test]
fn an_answer_that_is_not_the_number_is_not_given() {
    let mut turn = led("count the users and tell me the number");
    advise(&mut turn, "wc -l < users");
    act(&mut turn, Outcome::Succeeded, "4\n", &[]);
    turn.decided("Thought: x\nAction: answer {\"text\": \"There are 3.\"}", Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap(), (&End::Answered, "count the users: 4"));
}

#[test]
fn what_was_to_be_run_was_run_whatever_came_of_it() {
    let broken = "12 tests\n3 of them fail\n(exit code 1)";
    let mut turn = led("run check.sh and tell me how many tests fail");
    advise(&mut turn, "sh check.sh");
    act(&mut turn, Outcome::FailedLate, broken, &[]);
    assert_eq!(decide(&turn).actions.names(), ["answer"], "tests that fail were run");
    // who ordered no more than that is told that it broke; and one after the other they are no errors in a row
    let mut turn = led("run a.sh, then run b.sh, then run c.sh, then run d.sh");
    for script in ["a.sh", "b.sh", "c.sh", "d.sh"] {
        assert_eq!(advise(&mut turn, &format!("sh {script}")), format!("run {script}"));
        act(&mut turn, Outcome::FailedLate, broken, &[]);
    }
    let (end, said) = turn.end().unwrap();
    let End::Unverified(missing) = end else { panic!("{end:?}") };
    assert_eq!(missing.iter().filter(|why| why.contains("ended with an error")).count(), 4, "{missing:?}");
    assert!(said.contains("run a.sh:\n12 tests\n3 of them fail\n(exit code 1)"), "{said}");
    // what breaks was not made, and a program that never ran has said nothing
    for (task, command, outcome, told) in [
        (
            "compress a.log and tell me its size",
            "./pack.sh a.log",
            Outcome::FailedLate,
            "packing\nno space\n(exit code 1)",
        ),
        (
            "run check.sh and tell me how many tests fail",
            "sh chek.sh",
            Outcome::Failed,
            "sh: chek.sh: not found\n(exit code 127)",
        ),
        // what comes next may stand on it
        (
            "run backup.sh, then move old.log to the folder archive",
            "sh backup.sh",
            Outcome::FailedLate,
            "copying\nno space\n(exit code 2)",
        ),
    ] {
        let mut turn = led(task);
        advise(&mut turn, command);
        act(&mut turn, outcome, told, &[]);
        let Step::Advise(brief) = turn.next() else { panic!("{task}: {:?}", turn.next()) };
        assert!(!brief.part.starts_with("move") && !brief.part.starts_with("tell"), "{task}: {}", brief.part);
    }
}

#[test]
fn what_finds_nothing_is_tried_in_another_way_and_then_stands() {
    let mut turn = led("find the file with the word teh, then tell me its name");
    for (command, told) in
        [("ls teh", "(no output)"), ("grep -rl teh docs", "(exit code 1)"), ("grep -rc teh .", "./a:0\n(exit code 1)")]
    {
        advise(&mut turn, command);
        act(&mut turn, Outcome::Succeeded, told, &[]);
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
        act(&mut turn, Outcome::Succeeded, printed, names);
        turn
    };
    let mut turn = list("./a.py\n./b.py\n", &["./a.py", "./b.py"]);
    assert_eq!(act(&mut turn, Outcome::Succeeded, "2\n", &[]).args["command"], "{ find . -name '*.py'; } | wc -l");
    assert_eq!(act(&mut turn, Outcome::Succeeded, "wrote n.txt", &[]).args["content"], "2");
    // a heading is no item
    let mut turn = list("total 2\n./a.py\n./b.py\n", &["./a.py", "./b.py"]);
    assert_eq!(advise(&mut turn, "ls | wc -l"), "count ./a.py and ./b.py");
}

#[test]
fn what_was_only_counted_can_be_meant() {
    let mut turn = led("count the logs in old and delete them");
    advise(&mut turn, "ls old/*.log | wc -l");
    act(&mut turn, Outcome::Succeeded, "3\n", &[]);
    assert_eq!(advise(&mut turn, "rm old/*.log"), "delete the logs in old");
}

#[test]
fn what_was_seen_is_saved_as_it_is() {
    let mut turn = led("list the files in notes and save the list to names.txt");
    advise(&mut turn, "ls notes");
    act(&mut turn, Outcome::Succeeded, "a.md\nb.md\n", &[]);
    let saved = act(&mut turn, Outcome::Succeeded, "wrote names.txt", &[]);
    assert_eq!((saved.tool.as_str(), &saved.args["content"]), ("write", &json!("a.md\nb.md")));
    // what was too long to be shown is printed again, into the file
    let mut turn = led("list the files in notes and save the list to names.txt");
    advise(&mut turn, "ls notes");
    let Step::Act(calls) = turn.next() else { panic!() };
    let cut = ToolResult {
        call: calls[0].clone(),
        outcome: Outcome::Succeeded,
        text: "cut".into(),
        hash: id::hash("long"),
        ms: 1,
    };
    turn.acted(&[cut], &StepObservation::default(), &Guards::default());
    let saved = act(&mut turn, Outcome::Succeeded, "(no output)", &[]);
    assert_eq!(saved.args["command"], "printf '%s\\n' \"$(ls notes)\" > names.txt");
}

#[test]
fn both_is_what_the_last_two_looks_showed() {
    let mut turn = led("find the word, count how often it occurs, and write both to word.txt");
    advise(&mut turn, "sort words | head -n 1");
    act(&mut turn, Outcome::Succeeded, "the\n", &[]);
    advise(&mut turn, "grep -c the words");
    act(&mut turn, Outcome::Succeeded, "5\n", &[]);
    let saved = act(&mut turn, Outcome::Succeeded, "wrote word.txt", &[]);
    assert_eq!(saved.args["content"], "the\n5");
}

#[test]
fn a_text_that_is_refused_twice_is_put_together_from_what_was_seen() {
    let mut turn = led("count the lines of a.txt and write a report to report.md");
    advise(&mut turn, "wc -l a.txt");
    act(&mut turn, Outcome::Succeeded, "12 a.txt\n", &["a.txt"]);
    for _ in 0..2 {
        let text = "Thought: x\nAction: write {\"path\": \"report.md\", \"content\": \"999\"}";
        turn.decided(text, Finish::Stop, TOKENS, &Guards::default());
        act(&mut turn, Outcome::Blocked, "Not written: no tool has shown you 999.", &[]);
    }
    let written = act(&mut turn, Outcome::Succeeded, "wrote report.md", &[]);
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
fn act_with(turn: &mut AgentRun, text: &str, changes: Changes) -> Call {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let call = calls[0].clone();
    let effects = Effects { writes: vec!["/w/x".into()], ..Effects::default() };
    let settled = ToolResult {
        call: Call { effects, ..call.clone() },
        outcome: Outcome::Succeeded,
        text: text.into(),
        hash: id::hash(text),
        ms: 1,
    };
    turn.acted(
        &[settled],
        &StepObservation { changes: Some(changes), ..StepObservation::default() },
        &Guards::default(),
    );
    call
}

fn made(path: &str) -> Changes {
    let entry = Entry { path: path.into(), folder: false, text: Some("[]".into()) };
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
    assert!(decide(&turn).prompt.messages.last().unwrap().text.contains("Not done yet:\nrename a.txt to b.txt: "));
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
    act(&mut turn, Outcome::Succeeded, "6\n", &[]);
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
        act(&mut turn, Outcome::Succeeded, "[]\n", &[]);
        turn.end().unwrap().0.clone()
    };
    assert_eq!(convert("people.json"), End::Answered);
    assert_eq!(convert("sub/people.json"), End::Answered, "in whatever folder");
    let End::Unverified(missing) = convert("other.json") else { panic!() };
    assert_eq!(missing, ["people.json is not there."]);
}

/// A call that changed something.
fn change(turn: &mut AgentRun, changes: Changes) -> Call {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let call = calls[0].clone();
    let effects = Effects { writes: vec!["/w/x".into()], ..Effects::default() };
    let foreseen = Call { effects, ..call.clone() };
    let text = "(no output)";
    let settled =
        ToolResult { call: foreseen, outcome: Outcome::Succeeded, text: text.into(), hash: id::hash(text), ms: 1 };
    turn.acted(
        &[settled],
        &StepObservation { changes: Some(changes), ..StepObservation::default() },
        &Guards::default(),
    );
    call
}

fn entry(path: &str, text: &str) -> Entry {
    Entry { path: path.into(), folder: false, text: Some(text.into()) }
}

#[test]
fn what_a_change_did_is_told_by_who_saw_it() {
    let mut turn = led("delete the empty folders below tree and tell me how many there were");
    advise(&mut turn, "find tree -type d -empty -delete");
    let removed = vec!["tree/a".to_owned(), "tree/b".to_owned()];
    change(&mut turn, Changes { before: removed.iter().cloned().collect(), removed, ..Changes::default() });
    let (end, said) = turn.end().unwrap();
    assert_eq!(end, &End::Answered);
    assert!(said.ends_with("tell me how many there were: removed 2: tree/a, tree/b"), "{said}");

    // what was made is measured
    let mut turn = led("merge a.csv and b.csv into all.csv and tell me how many rows it has");
    advise(&mut turn, "cat a.csv b.csv > all.csv");
    change(&mut turn, Changes { created: vec![entry("all.csv", "1\n2\n")], ..Changes::default() });
    assert_eq!(advise(&mut turn, "wc -l < all.csv"), "tell me how many rows all.csv has");
    act(&mut turn, Outcome::Succeeded, "2\n", &[]);
    assert!(turn.end().unwrap().1.ends_with("has: 2"), "{:?}", turn.end());
}

#[test]
fn a_shell_script_is_the_command_that_does_its_work() {
    let mut turn = led("write a shell script clean.sh that deletes all .tmp files here and list what it would delete");
    assert_eq!(advise(&mut turn, "rm -f ./*.tmp"), "deletes all .tmp files here");
    let call = change(&mut turn, Changes { created: vec![entry("clean.sh", "rm")], ..Changes::default() });
    assert_eq!((call.tool.as_str(), &call.args["path"]), ("write", &json!("clean.sh")));
    assert_eq!(call.args["content"], "#!/usr/bin/env bash\nrm -f ./*.tmp\n");
}

#[test]
fn what_was_not_found_is_not_moved() {
    let mut turn = led("find the images that nobody uses and move them to unused");
    for command in ["grep -r a .", "grep -ri a .", "grep -rl a ."] {
        advise(&mut turn, command);
        act(&mut turn, Outcome::Succeeded, "(no output)", &[]);
    }
    let Step::Decide(_) = turn.next() else {
        let End::Unverified(missing) = turn.end().unwrap().0 else { panic!("{:?}", turn.end()) };
        assert!(missing.iter().any(|why| why.starts_with("move them to unused: Nothing was found")), "{missing:?}");
        return;
    };
    panic!("the model was asked to move something");
}

#[test]
fn a_command_that_is_more_likely_wrong_than_right_is_called_in_doubt() {
    for sure in [false, true] {
        let mut turn = led("count the words and save the number to n.txt");
        let args = json!({"command": "wc -w a"}).as_object().unwrap().clone();
        turn.advised(
            Some(Suggestion { tool: "shell".into(), args, confidence: 0.4, doubt: !sure }),
            &Guards::default(),
        );
        act(&mut turn, Outcome::Succeeded, "4\n", &[]);
        change(&mut turn, Changes { created: vec![entry("n.txt", "4\n")], ..Changes::default() });
        let (end, _) = turn.end().unwrap();
        assert_eq!(*end == End::Answered, sure, "{end:?}");
        if let End::Unverified(missing) = end {
            assert!(missing.iter().any(|why| why.contains("40 % sure")), "{missing:?}");
        }
    }
}

#[test]
fn what_the_disk_bears_out_is_not_in_doubt() {
    use crate::evidence::{Measured, Query};
    let file = |path: &str, bytes: u64| Measured {
        path: path.into(),
        bytes,
        taken: bytes,
        modified: std::time::SystemTime::UNIX_EPOCH,
    };
    let files = vec![file("a.log", 9), file("b.log", 7), file("c.log", 3)];
    for (named, right) in [(["./a.log", "./b.log"], true), (["./a.log", "./c.log"], false)] {
        let mut turn = led("find the two largest log files, then count the lines in them");
        let args = json!({"command": "ls"}).as_object().unwrap().clone();
        turn.advised(Some(Suggestion { tool: "shell".into(), args, confidence: 0.4, doubt: true }), &Guards::default());
        let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
        let text = named.join("\n");
        let call = calls[0].clone();
        let settled = ToolResult { call, outcome: Outcome::Succeeded, hash: id::hash(&text), text, ms: 1 };
        let query = Query::of(turn.part().unwrap()).unwrap();
        let names = named.map(String::from).to_vec();
        let seen = StepObservation { names, files: Some((query, files.clone())), ..StepObservation::default() };
        turn.acted(&[settled], &seen, &Guards::default());
        let went_on = turn.part().unwrap().starts_with("count");
        assert_eq!(went_on, right, "{named:?}");
        assert_eq!(turn.unsure().count(), 0, "the disk says so");
    }
}

#[test]
fn what_is_picked_from_a_list_or_sorted_is_not_saved_as_it_was() {
    let mut turn = led("count the words in a.txt and write the two most frequent words to top.txt");
    advise(&mut turn, "sort a.txt | uniq -c");
    act(&mut turn, Outcome::Succeeded, "3 we\n2 sea\n1 is\n", &[]);
    assert_eq!(
        advise(&mut turn, "sort a.txt | uniq -c | sort -rn | head -n 2 > top.txt"),
        "write the two most frequent words to top.txt"
    );

    let mut turn = led("compare old with new and write the names of the files that differ to diff.txt");
    advise(&mut turn, "diff -r old new");
    act(&mut turn, Outcome::Succeeded, "diff -r old/b.txt new/b.txt\n1c1\n< x\n> y\n(exit code 1)", &["old/b.txt"]);
    assert!(matches!(turn.next(), Step::Advise(_)), "what differs is no list of names");

    let mut turn = led("show the users in u.txt, tell me who has no password and save them to x.txt");
    advise(&mut turn, "cat u.txt");
    act(&mut turn, Outcome::Succeeded, "ida:x\nper:\n", &[]);
    assert_eq!(advise(&mut turn, "grep ':$' u.txt"), "tell me who has no password");
    act(&mut turn, Outcome::Succeeded, "per:\n", &[]);
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    assert_eq!(calls[0].args["content"], "per:", "and not all of them");

    let mut turn = led("extract the names in a.txt and save them sorted to b.txt");
    advise(&mut turn, "cut -f1 a.txt");
    let call = {
        act(&mut turn, Outcome::Succeeded, "Per\nIda\n", &[]);
        change(&mut turn, Changes { created: vec![entry("b.txt", "Ida\nPer\n")], ..Changes::default() })
    };
    assert_eq!(call.args["content"], "Ida\nPer");
}
