//! Parts that name a server of tools, driven by hand.

use super::tests::TOKENS;
use super::*;
use crate::tool::Provider;
use caro_base::id;
use serde_json::json;

/// A led turn with our own tools and one of the server `archive`; `files` is how the files begin that the task names.
fn turn(task: &str, files: &str) -> AgentRun {
    with(task, files, &["archive.read"])
}

/// The same with these tools of the server.
fn with(task: &str, files: &str, theirs: &[&str]) -> AgentRun {
    let mut turn = AgentRun::new(super::tests::task(task, 12));
    let text = || json!({"type": "string"});
    let tool = |name: &str| ToolSpec::new(name, "does.", json!({"path": text(), "content": text()}), &["path"]);
    let shell = ToolSpec::new("shell", "runs.", json!({"command": text()}), &["command"]);
    let theirs = theirs.iter().map(|name| ToolSpec { provider: Provider::Mcp("archive".into()), ..tool(name) });
    let mut assembly = Assembly::default();
    if !files.is_empty() {
        let layer = Layer { name: PLACE.into(), priority: 50, text: files.into(), trusted: false, tokens: 1 };
        assembly.layers.push(layer);
    }
    turn.lead(true);
    let tools = [shell, tool("write"), tool("read")].into_iter().chain(theirs).collect();
    turn.assembled(assembly, tools, Vec::new(), &Guards::default());
    turn
}

fn offered(turn: &AgentRun) -> Vec<String> {
    let Step::Decide(decide) = turn.next() else { panic!("{:?}", turn.next()) };
    decide.actions.names().into_iter().map(str::to_owned).collect()
}

/// The model calls a tool, and this comes of it.
fn call(turn: &mut AgentRun, tool: &str, outcome: Outcome, text: &str) {
    let wrote = format!("Thought: x\nAction: {tool} {{\"path\": \"a\"}}");
    turn.decided(&wrote, Finish::Stop, TOKENS, &Guards::default());
    done(turn, outcome, text);
}

/// What comes of the call that is to be made; the call.
fn done(turn: &mut AgentRun, outcome: Outcome, text: &str) -> Call {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let opaque = calls[0].tool.starts_with("archive");
    let call = Call { effects: Effects { opaque, ..Effects::default() }, ..calls[0].clone() };
    let settled = ToolResult { call: call.clone(), outcome, text: text.into(), hash: id::hash(text), ms: 1 };
    turn.acted(&[settled], &StepObservation::default(), &Guards::default());
    call
}

#[test]
fn who_names_a_server_has_its_tools_called_and_nothing_else() {
    let mut one = turn("show the plan for May with the archive server", "");
    assert_eq!(offered(&one), ["archive.read"], "no shell, no answer and no giving up before it was asked");
    call(&mut one, "archive.read", Outcome::Succeeded, "May: paint the door\n");
    assert_eq!(one.end().unwrap(), (&End::Answered, "May: paint the door"), "in the server's own words");
    let mut asked = turn("what is the plan for May? Ask the archive server.", "");
    call(&mut asked, "archive.read", Outcome::Succeeded, "May: paint the door");
    assert_eq!(offered(&asked), ["answer"], "a question is answered");
    assert!(asked.missing().is_empty());
    let free = turn("show the plan for May in the archive", "");
    assert!(matches!(free.next(), Step::Advise(_)), "no server is named");
    // a model that chooses well by itself has its choice
    let mut unled = turn("show the plan for May with the archive server", "");
    unled.lead(false);
    unled.set_out(&Guards::default());
    assert!(offered(&unled).contains(&"shell".to_owned()));
}

#[test]
fn of_a_servers_tools_those_come_first_whose_names_the_part_has_a_word_of() {
    let mut one = with("show the variable SHELF with the archive server", "", &["archive.echo", "archive.variable"]);
    assert_eq!(offered(&one), ["archive.variable"]);
    call(&mut one, "archive.variable", Outcome::Failed, "no such row");
    assert_eq!(offered(&one), ["archive.echo", "archive.variable", "cannot"]);
}

#[test]
fn a_server_that_fails_again_and_again_is_done_without() {
    let mut one = turn("show the plan for May with the archive server", "");
    for tried in 0..progress::TRIES {
        let may = if tried == 0 { &["archive.read"][..] } else { &["archive.read", "cannot"] };
        assert_eq!(offered(&one), may);
        call(&mut one, "archive.read", Outcome::Failed, "no such row");
    }
    assert_eq!(offered(&one), ["shell", "write", "read", "archive.read", "answer", "cannot"]);
    assert_eq!(one.missing(), ["show the plan for May with the archive server: The last call for it failed."]);
}

#[test]
fn what_the_server_is_to_be_told_may_be_read_and_is_not_all() {
    let mut one = turn("translate notes.md with the archive server", "notes.md: Guten Tag");
    assert_eq!(offered(&one), ["archive.read", "read"]);
    call(&mut one, "read", Outcome::Succeeded, "Guten Tag");
    assert_eq!(offered(&one), ["archive.read", "read"], "it was not asked yet");
    call(&mut one, "archive.read", Outcome::Succeeded, "Good day");
    assert_eq!(one.end().unwrap().1, "Good day");
}

#[test]
fn what_no_command_did_is_for_a_server_that_is_about_it() {
    let fails = |task: &str| {
        let mut one = turn(task, "");
        let args = json!({"command": "paths"}).as_object().unwrap().clone();
        let advice = crate::suggest::Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
        one.advised(Some(advice), &Guards::default());
        done(&mut one, Outcome::Failed, "command not found");
        one
    };
    assert_eq!(offered(&fails("read the content of the path in the archive")), ["archive.read", "cannot"]);
    assert!(matches!(fails("list the users").next(), Step::Advise(_)), "it is about something else");
}

#[test]
fn what_a_server_said_is_saved_as_it_is_and_never_run_again() {
    let mut one =
        turn("list the logs, find the plans with the archive server, count them, and save them to out.txt", "");
    let args = json!({"command": "ls"}).as_object().unwrap().clone();
    let advice = crate::suggest::Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
    one.advised(Some(advice), &Guards::default());
    done(&mut one, Outcome::Succeeded, "a.log\n");
    call(&mut one, "archive.read", Outcome::Succeeded, "May\nJune\n");
    let Step::Advise(brief) = one.next() else { panic!("a server's answer has no command to count: {:?}", one.next()) };
    assert_eq!(brief.done.iter().map(|done| done.command.as_str()).collect::<Vec<_>>(), ["ls"]);
    let mut one = turn("list the logs, find the plans with the archive server, and save them to out.txt", "");
    let args = json!({"command": "ls"}).as_object().unwrap().clone();
    let advice = crate::suggest::Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
    one.advised(Some(advice), &Guards::default());
    done(&mut one, Outcome::Succeeded, "a.log\n");
    call(&mut one, "archive.read", Outcome::Succeeded, "May\nJune\n");
    assert_eq!(done(&mut one, Outcome::Succeeded, "wrote out.txt").args["content"], "May\nJune");
}
