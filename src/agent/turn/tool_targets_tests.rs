//! Tests of parts that name a server of tools; the state machine is driven by hand.

use super::tests::TOKENS;
use super::*;
use crate::tool::Provider;
use caro_base::id;
use serde_json::json;

/// A run with a suggester, our own tools and one of the server `archive`; `files` is the layer of file beginnings.
fn turn(task: &str, files: &str) -> AgentRun {
    turn_with(task, files, &["archive.read"])
}

/// Such a run with these tools of the server.
fn turn_with(task: &str, files: &str, server_tools: &[&str]) -> AgentRun {
    let mut turn = AgentRun::new(super::tests::task(task, 12));
    let text = || json!({"type": "string"});
    let tool = |name: &str| ToolSpec::new(name, "does.", json!({"path": text(), "content": text()}), &["path"]);
    let shell = ToolSpec::new("shell", "runs.", json!({"command": text()}), &["command"]);
    let server_tools =
        server_tools.iter().map(|name| ToolSpec { provider: Provider::Mcp("archive".into()), ..tool(name) });
    let mut assembly = Assembly::default();
    if !files.is_empty() {
        let layer = Layer { name: PLACE.into(), priority: 50, text: files.into(), trusted: false, tokens: 1 };
        assembly.layers.push(layer);
    }
    turn.lead(true);
    let tools = [shell, tool("write"), tool("read")].into_iter().chain(server_tools).collect();
    turn.assembled(assembly, tools, Vec::new(), &Guards::default());
    turn
}

fn offered(turn: &AgentRun) -> Vec<String> {
    let Step::Decide(decide) = turn.next() else { panic!("{:?}", turn.next()) };
    decide.actions.names().into_iter().map(str::to_owned).collect()
}

/// Lets the model call a tool, with this result.
fn call(turn: &mut AgentRun, tool: &str, outcome: Outcome, text: &str) {
    let wrote = format!("Thought: x\nAction: {tool} {{\"path\": \"a\"}}");
    turn.decided(&wrote, Finish::Stop, TOKENS, &Guards::default());
    complete(turn, outcome, text);
}

/// Gives the next call this result, and returns the call.
fn complete(turn: &mut AgentRun, outcome: Outcome, text: &str) -> Call {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let opaque = calls[0].tool.starts_with("archive");
    let call = Call { effects: Effects { opaque, ..Effects::default() }, ..calls[0].clone() };
    let settled = ToolResult { call: call.clone(), outcome, text: text.into(), hash: id::hash(text), ms: 1 };
    turn.acted(&[settled], &StepObservation::default(), &Guards::default());
    call
}

#[test]
fn a_part_that_names_a_server_gets_only_its_tools() {
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
    // without a suggester the model has its free choice
    let mut unled = turn("show the plan for May with the archive server", "");
    unled.lead(false);
    unled.choose_phase(&Guards::default());
    assert!(offered(&unled).contains(&"shell".to_owned()));
}

#[test]
fn tools_that_share_a_word_with_the_part_come_first() {
    let tools = ["archive.echo", "archive.variable"];
    let mut one = turn_with("show the variable SHELF with the archive server", "", &tools);
    assert_eq!(offered(&one), ["archive.variable"]);
    call(&mut one, "archive.variable", Outcome::Failed, "no such row");
    assert_eq!(offered(&one), ["archive.echo", "archive.variable", "cannot"]);
}

#[test]
fn after_repeated_failures_of_a_server_the_model_decides() {
    let mut one = turn("show the plan for May with the archive server", "");
    for tried in 0..progress::MAX_TRIES {
        let may = if tried == 0 { &["archive.read"][..] } else { &["archive.read", "cannot"] };
        assert_eq!(offered(&one), may);
        call(&mut one, "archive.read", Outcome::Failed, "no such row");
    }
    assert_eq!(offered(&one), ["shell", "write", "read", "archive.read", "answer", "cannot"]);
    assert_eq!(one.missing(), ["show the plan for May with the archive server: The last call for it failed."]);
}

#[test]
fn a_text_for_the_server_may_be_read_first_and_does_not_end_the_part() {
    let mut one = turn("translate notes.md with the archive server", "notes.md: Guten Tag");
    assert_eq!(offered(&one), ["archive.read", "read"]);
    call(&mut one, "read", Outcome::Succeeded, "Guten Tag");
    assert_eq!(offered(&one), ["archive.read", "read"], "it was not asked yet");
    call(&mut one, "archive.read", Outcome::Succeeded, "Good day");
    assert_eq!(one.end().unwrap().1, "Good day");
}

#[test]
fn a_failed_command_is_followed_by_a_server_about_the_subject() {
    let fails = |task: &str| {
        let mut one = turn(task, "");
        let args = json!({"command": "paths"}).as_object().unwrap().clone();
        let suggestion = crate::suggest::Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
        one.advised(Some(suggestion), &Guards::default());
        complete(&mut one, Outcome::Failed, "command not found");
        one
    };
    assert_eq!(offered(&fails("read the content of the path in the archive")), ["archive.read", "cannot"]);
    assert!(matches!(fails("list the users").next(), Step::Advise(_)), "it is about something else");
}

#[test]
fn a_servers_result_is_saved_as_it_is_and_never_run_as_a_command() {
    let mut one =
        turn("list the logs, find the plans with the archive server, count them, and save them to out.txt", "");
    let args = json!({"command": "ls"}).as_object().unwrap().clone();
    let suggestion = crate::suggest::Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
    one.advised(Some(suggestion), &Guards::default());
    complete(&mut one, Outcome::Succeeded, "a.log\n");
    call(&mut one, "archive.read", Outcome::Succeeded, "May\nJune\n");
    let Step::Advise(brief) = one.next() else { panic!("a server's answer has no command to count: {:?}", one.next()) };
    assert_eq!(brief.done.iter().map(|done| done.command.as_str()).collect::<Vec<_>>(), ["ls"]);
    let mut one = turn("list the logs, find the plans with the archive server, and save them to out.txt", "");
    let args = json!({"command": "ls"}).as_object().unwrap().clone();
    let suggestion = crate::suggest::Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false };
    one.advised(Some(suggestion), &Guards::default());
    complete(&mut one, Outcome::Succeeded, "a.log\n");
    call(&mut one, "archive.read", Outcome::Succeeded, "May\nJune\n");
    assert_eq!(complete(&mut one, Outcome::Succeeded, "wrote out.txt").args["content"], "May\nJune");
}
