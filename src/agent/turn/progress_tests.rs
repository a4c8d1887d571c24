//! Tests of the way through a plan; the state machine is driven by hand.

use super::tests::TOKENS;
use super::*;
use crate::evidence::{Changes, Entry};
use crate::suggest::Suggestion;
use caro_base::id;
use serde_json::json;

fn led_run(task: &str) -> AgentRun {
    let mut turn = AgentRun::new(super::tests::task(task, 9));
    let text = || json!({"type": "string"});
    let shell = ToolSpec::new("shell", "runs.", json!({"command": text()}), &["command"]);
    let write = ToolSpec::new("write", "writes.", json!({"path": text(), "content": text()}), &["path", "content"]);
    turn.lead(true);
    turn.assembled(Assembly::default(), vec![shell, write], Vec::new(), &Guards::default());
    turn
}

/// Suggests a command, and returns the text of the part it is for.
fn suggest(turn: &mut AgentRun, command: &str) -> String {
    let Step::Advise(brief) = turn.next() else { panic!("{:?}", turn.next()) };
    let args = json!({ "command": command }).as_object().unwrap().clone();
    let suggestion = Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
    turn.advised(Some(suggestion), &Guards::default());
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
    let mut turn = led_run(TASK);
    assert_eq!(suggest(&mut turn, "find . -name '*.log'"), "find the two largest logs below .");
    act(&mut turn, Outcome::Succeeded, "./a.log\n./b.log\n", &["./a.log", "./b.log"]);
    let Step::Advise(brief) = turn.next() else { panic!() };
    assert_eq!(brief.done[0].command, "find . -name '*.log'");
    assert_eq!(
        suggest(&mut turn, "grep -c ERR ./a.log ./b.log"),
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
fn a_question_is_answered_by_the_model() {
    let mut turn = led_run("count the lines of a.txt and tell me the number");
    suggest(&mut turn, "wc -l a.txt");
    act(&mut turn, Outcome::Succeeded, "12 a.txt\n", &["a.txt"]);
    let end = decide(&turn);
    assert_eq!(end.actions.names(), ["answer"]);
    assert!(end.prompt.messages.last().unwrap().text.contains("Every part is done"));
    turn.decided("Thought: x\nAction: answer {\"text\": \"12\"}", Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap(), (&End::Answered, "12"), "of its own will, not because a limit was met");
}

#[test]
fn an_answer_with_another_number_is_replaced() {
    let mut turn = led_run("count the users and tell me the number");
    suggest(&mut turn, "wc -l < users");
    act(&mut turn, Outcome::Succeeded, "4\n", &[]);
    turn.decided("Thought: x\nAction: answer {\"text\": \"There are 3.\"}", Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap(), (&End::Answered, "count the users: 4"));
}

#[test]
fn a_part_that_runs_something_is_done_even_if_that_fails() {
    let broken = "12 tests\n3 of them fail\n(exit code 1)";
    let mut turn = led_run("run check.sh and tell me how many tests fail");
    suggest(&mut turn, "sh check.sh");
    act(&mut turn, Outcome::FailedLate, broken, &[]);
    assert_eq!(decide(&turn).actions.names(), ["answer"], "tests that fail were run");
    // without a part that reports it the error is reported, and several are not counted as errors in a row
    let mut turn = led_run("run a.sh, then run b.sh, then run c.sh, then run d.sh");
    for script in ["a.sh", "b.sh", "c.sh", "d.sh"] {
        assert_eq!(suggest(&mut turn, &format!("sh {script}")), format!("run {script}"));
        act(&mut turn, Outcome::FailedLate, broken, &[]);
    }
    let (end, said) = turn.end().unwrap();
    let End::Unverified(missing) = end else { panic!("{end:?}") };
    assert_eq!(missing.iter().filter(|why| why.contains("ended with an error")).count(), 4, "{missing:?}");
    assert!(said.contains("run a.sh:\n12 tests\n3 of them fail\n(exit code 1)"), "{said}");
    // a change that failed is not done, nor is a program that did not start
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
        // the next part may depend on it
        (
            "run backup.sh, then move old.log to the folder archive",
            "sh backup.sh",
            Outcome::FailedLate,
            "copying\nno space\n(exit code 2)",
        ),
    ] {
        let mut turn = led_run(task);
        suggest(&mut turn, command);
        act(&mut turn, outcome, told, &[]);
        let Step::Advise(brief) = turn.next() else { panic!("{task}: {:?}", turn.next()) };
        assert!(!brief.part.starts_with("move") && !brief.part.starts_with("tell"), "{task}: {}", brief.part);
    }
}

#[test]
fn a_search_without_results_is_tried_in_other_ways_and_then_accepted() {
    let mut turn = led_run("find the file with the word teh, then tell me its name");
    for (command, told) in
        [("ls teh", "(no output)"), ("grep -rl teh docs", "(exit code 1)"), ("grep -rc teh .", "./a:0\n(exit code 1)")]
    {
        suggest(&mut turn, command);
        act(&mut turn, Outcome::Succeeded, told, &[]);
    }
    assert_eq!(decide(&turn).actions.names(), ["answer"], "there is nothing, and that is the answer");
    let mut turn = led_run("find the file with the word teh, then tell me its name");
    suggest(&mut turn, "gerp teh");
    act(&mut turn, Outcome::Failed, "gerp: command not found", &[]);
    let Step::Advise(brief) = turn.next() else { panic!() };
    assert!(!brief.done[0].worked && brief.done[0].printed.contains("not found"));
    turn.advised(None, &Guards::default());
    assert!(decide(&turn).actions.tools.contains(&"shell".to_owned()), "the model decides");
}

#[test]
fn a_listing_is_counted_with_its_command() {
    let list = |printed: &str, names: &[&str]| {
        let mut turn = led_run("find the python files, count them, and save the number to n.txt");
        suggest(&mut turn, "find . -name '*.py'");
        act(&mut turn, Outcome::Succeeded, printed, names);
        turn
    };
    let mut turn = list("./a.py\n./b.py\n", &["./a.py", "./b.py"]);
    assert_eq!(act(&mut turn, Outcome::Succeeded, "2\n", &[]).args["command"], "{ find . -name '*.py'; } | wc -l");
    assert_eq!(act(&mut turn, Outcome::Succeeded, "wrote n.txt", &[]).args["content"], "2");
    // a heading is not an item
    let mut turn = list("total 2\n./a.py\n./b.py\n", &["./a.py", "./b.py"]);
    assert_eq!(suggest(&mut turn, "ls | wc -l"), "count ./a.py and ./b.py");
}

#[test]
fn files_that_were_only_counted_can_be_referred_to() {
    let mut turn = led_run("count the logs in old and delete them");
    suggest(&mut turn, "ls old/*.log | wc -l");
    act(&mut turn, Outcome::Succeeded, "3\n", &[]);
    assert_eq!(suggest(&mut turn, "rm old/*.log"), "delete the logs in old");
}

#[test]
fn a_result_is_saved_as_it_is() {
    let mut turn = led_run("list the files in notes and save the list to names.txt");
    suggest(&mut turn, "ls notes");
    act(&mut turn, Outcome::Succeeded, "a.md\nb.md\n", &[]);
    let saved = act(&mut turn, Outcome::Succeeded, "wrote names.txt", &[]);
    assert_eq!((saved.tool.as_str(), &saved.args["content"]), ("write", &json!("a.md\nb.md")));
    // output that was too long to be shown is printed again, into the file
    let mut turn = led_run("list the files in notes and save the list to names.txt");
    suggest(&mut turn, "ls notes");
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
fn both_refers_to_the_last_two_results() {
    let mut turn = led_run("find the word, count how often it occurs, and write both to word.txt");
    suggest(&mut turn, "sort words | head -n 1");
    act(&mut turn, Outcome::Succeeded, "the\n", &[]);
    suggest(&mut turn, "grep -c the words");
    act(&mut turn, Outcome::Succeeded, "5\n", &[]);
    let saved = act(&mut turn, Outcome::Succeeded, "wrote word.txt", &[]);
    assert_eq!(saved.args["content"], "the\n5");
}

#[test]
fn a_text_that_is_refused_twice_is_composed_of_the_results() {
    let mut turn = led_run("count the lines of a.txt and write a report to report.md");
    suggest(&mut turn, "wc -l a.txt");
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
fn without_a_suggester_the_model_decides_everything() {
    let mut turn = led_run(TASK);
    turn.lead(false);
    turn.advised(None, &Guards::default());
    assert!(decide(&turn).actions.answer);
}

#[test]
fn a_denied_part_is_not_tried_again() {
    let mut turn = led_run("delete the old logs, then tell me what is left");
    suggest(&mut turn, "rm a.log");
    act(&mut turn, Outcome::Denied, "The user did not allow this call.", &[]);
    assert!(decide(&turn).actions.answer);
}

/// Lets the next call succeed with this output and these changes.
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
fn a_change_without_effect_is_tried_again_and_then_reported() {
    let mut turn = led_run("rename a.txt to b.txt and show it");
    for _ in 0..3 {
        suggest(&mut turn, "true > /dev/null");
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
fn it_refers_to_the_file_just_made() {
    let mut turn = led_run("merge the parts into whole.txt and count its lines");
    suggest(&mut turn, "cat part-* > whole.txt");
    act_with(&mut turn, "(no output)", made("whole.txt"));
    assert_eq!(suggest(&mut turn, "wc -l < whole.txt"), "count its lines (whole.txt)");
    act(&mut turn, Outcome::Succeeded, "6\n", &[]);
    let (end, said) = turn.end().unwrap();
    assert_eq!((end, said), (&End::Answered, "merge the parts into whole.txt: made whole.txt\ncount its lines: 6"));
}

#[test]
fn an_answer_before_the_work_is_sent_back() {
    let mut turn = led_run("fix the bug in main.py and delete old.py");
    let answer = "Thought: x\nAction: answer {\"text\": \"Done.\"}";
    turn.decided(answer, Finish::Stop, TOKENS, &Guards::default());
    assert!(turn.end().is_none());
    turn.decided(answer, Finish::Stop, TOKENS, &Guards::default());
    assert_eq!(turn.end().unwrap().0.reason(), "unverified");
}

#[test]
fn a_promised_file_must_exist_in_the_end() {
    let task = "convert people.csv to people.json and show it";
    let convert = |name: &str| {
        let (mut turn, changes) = (led_run(task), made(name));
        suggest(&mut turn, "convert");
        act_with(&mut turn, "(no output)", Changes { before: ["people.csv".to_owned()].into(), ..changes });
        suggest(&mut turn, &format!("cat {name}"));
        act(&mut turn, Outcome::Succeeded, "[]\n", &[]);
        turn.end().unwrap().0.clone()
    };
    assert_eq!(convert("people.json"), End::Answered);
    assert_eq!(convert("sub/people.json"), End::Answered, "in whatever folder");
    let End::Unverified(missing) = convert("other.json") else { panic!() };
    assert_eq!(missing, ["people.json is not there."]);
}

/// Lets the next call succeed with these changes and without output.
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
fn a_question_about_a_change_is_answered_from_the_observed_changes() {
    let mut turn = led_run("delete the empty folders below tree and tell me how many there were");
    suggest(&mut turn, "find tree -type d -empty -delete");
    let removed = vec!["tree/a".to_owned(), "tree/b".to_owned()];
    change(&mut turn, Changes { before: removed.iter().cloned().collect(), removed, ..Changes::default() });
    let (end, said) = turn.end().unwrap();
    assert_eq!(end, &End::Answered);
    assert!(said.ends_with("tell me how many there were: removed 2: tree/a, tree/b"), "{said}");

    // a property of a new file is measured
    let mut turn = led_run("merge a.csv and b.csv into all.csv and tell me how many rows it has");
    suggest(&mut turn, "cat a.csv b.csv > all.csv");
    change(&mut turn, Changes { created: vec![entry("all.csv", "1\n2\n")], ..Changes::default() });
    assert_eq!(suggest(&mut turn, "wc -l < all.csv"), "tell me how many rows all.csv has");
    act(&mut turn, Outcome::Succeeded, "2\n", &[]);
    assert!(turn.end().unwrap().1.ends_with("has: 2"), "{:?}", turn.end());
}

#[test]
fn a_shell_script_contains_the_suggested_command() {
    let mut turn =
        led_run("write a shell script clean.sh that deletes all .tmp files here and list what it would delete");
    assert_eq!(suggest(&mut turn, "rm -f ./*.tmp"), "deletes all .tmp files here");
    let call = change(&mut turn, Changes { created: vec![entry("clean.sh", "rm")], ..Changes::default() });
    assert_eq!((call.tool.as_str(), &call.args["path"]), ("write", &json!("clean.sh")));
    assert_eq!(call.args["content"], "#!/usr/bin/env bash\nrm -f ./*.tmp\n");
}

#[test]
fn files_that_were_not_found_are_not_moved() {
    let mut turn = led_run("find the images that nobody uses and move them to unused");
    for command in ["grep -r a .", "grep -ri a .", "grep -rl a ."] {
        suggest(&mut turn, command);
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
fn a_doubtful_command_is_reported() {
    for sure in [false, true] {
        let mut turn = led_run("count the words and save the number to n.txt");
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
fn a_result_confirmed_by_the_disk_is_not_in_doubt() {
    use crate::evidence::{Measured, Query};
    let file = |path: &str, bytes: u64| Measured {
        path: path.into(),
        bytes,
        taken: bytes,
        modified: std::time::SystemTime::UNIX_EPOCH,
    };
    let files = vec![file("a.log", 9), file("b.log", 7), file("c.log", 3)];
    for (named, right) in [(["./a.log", "./b.log"], true), (["./a.log", "./c.log"], false)] {
        let mut turn = led_run("find the two largest log files, then count the lines in them");
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
        assert_eq!(turn.doubtful_parts().count(), 0, "the disk says so");
    }
}

#[test]
fn selected_or_sorted_lines_are_not_saved_as_they_were() {
    let mut turn = led_run("count the words in a.txt and write the two most frequent words to top.txt");
    suggest(&mut turn, "sort a.txt | uniq -c");
    act(&mut turn, Outcome::Succeeded, "3 we\n2 sea\n1 is\n", &[]);
    assert_eq!(
        suggest(&mut turn, "sort a.txt | uniq -c | sort -rn | head -n 2 > top.txt"),
        "write the two most frequent words to top.txt"
    );

    let mut turn = led_run("compare old with new and write the names of the files that differ to diff.txt");
    suggest(&mut turn, "diff -r old new");
    act(&mut turn, Outcome::Succeeded, "diff -r old/b.txt new/b.txt\n1c1\n< x\n> y\n(exit code 1)", &["old/b.txt"]);
    assert!(matches!(turn.next(), Step::Advise(_)), "what differs is not a list of names");

    let mut turn = led_run("show the users in u.txt, tell me who has no password and save them to x.txt");
    suggest(&mut turn, "cat u.txt");
    act(&mut turn, Outcome::Succeeded, "ida:x\nper:\n", &[]);
    assert_eq!(suggest(&mut turn, "grep ':$' u.txt"), "tell me who has no password");
    act(&mut turn, Outcome::Succeeded, "per:\n", &[]);
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    assert_eq!(calls[0].args["content"], "per:", "and not all of them");

    let mut turn = led_run("extract the names in a.txt and save them sorted to b.txt");
    suggest(&mut turn, "cut -f1 a.txt");
    let call = {
        act(&mut turn, Outcome::Succeeded, "Per\nIda\n", &[]);
        change(&mut turn, Changes { created: vec![entry("b.txt", "Ida\nPer\n")], ..Changes::default() })
    };
    assert_eq!(call.args["content"], "Ida\nPer");
}
