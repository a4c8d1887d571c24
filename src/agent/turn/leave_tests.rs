//! Tests of runs that write their result into the workspace; the state machine is driven by hand.

use super::tests::TOKENS;
use super::*;
use crate::suggest::Suggestion;
use caro_base::id;
use serde_json::json;

fn worker(task: &str) -> AgentRun {
    let mut turn = AgentRun::new(super::tests::task(task, 12)).with_output("out.md");
    let text = || json!({"type": "string"});
    let file = |name: &str| ToolSpec::new(name, "does.", json!({"path": text(), "content": text()}), &["path"]);
    let shell = ToolSpec::new("shell", "runs.", json!({"command": text()}), &["command"]);
    turn.lead(true);
    let tools = vec![shell, file("read"), file("write"), file("workspace_write")];
    turn.assembled(Assembly::default(), tools, Vec::new(), &Guards::default());
    turn
}

/// Suggests a command and lets it succeed with this output.
fn suggest(turn: &mut AgentRun, command: &str, printed: &str) {
    let Step::Advise(_) = turn.next() else { panic!("{:?}", turn.next()) };
    let args = json!({ "command": command }).as_object().unwrap().clone();
    turn.advised(Some(Suggestion { tool: "shell".into(), args, confidence: 0.9, doubt: false }), &Guards::default());
    complete(turn, printed);
}

/// Makes the next call, which succeeds with this result; returns its tool and arguments.
fn complete(turn: &mut AgentRun, text: &str) -> (String, serde_json::Value) {
    let Step::Act(calls) = turn.next() else { panic!("{:?}", turn.next()) };
    let path = calls[0].args.get("path").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let writes = if calls[0].tool.ends_with("write") { vec![format!("/ws/{path}").into()] } else { Vec::new() };
    let call = Call { effects: Effects { writes, ..Effects::default() }, ..calls[0].clone() };
    let settled =
        ToolResult { call: call.clone(), outcome: Outcome::Succeeded, text: text.into(), hash: id::hash(text), ms: 1 };
    turn.acted(&[settled], &StepObservation::default(), &Guards::default());
    (call.tool, json!(call.args))
}

#[test]
fn the_output_of_commands_is_written_without_a_model() {
    let mut one = worker("count the errors in a.log");
    suggest(&mut one, "grep -c ERROR a.log", "3\n");
    assert_eq!(complete(&mut one, "wrote"), ("workspace_write".into(), json!({"path": "out.md", "content": "3"})));
    assert_eq!(one.end().unwrap().0, &End::Answered, "{:?}", one.end());
    assert_eq!(one.metric().total_requests, 0, "the model was not asked for a decision");
    // several results are written with the text of their parts
    let mut two = worker("count the errors in a.log, and list the users");
    suggest(&mut two, "grep -c ERROR a.log", "3\n");
    suggest(&mut two, "users", "ida\nmoss\n");
    let content = "count the errors in a.log: 3\nlist the users:\nida\nmoss";
    assert_eq!(complete(&mut two, "wrote").1["content"], content);
}

#[test]
fn the_model_writes_anything_else_and_only_that_file() {
    let offered = |turn: &AgentRun| {
        let Step::Decide(decide) = turn.next() else { panic!("{:?}", turn.next()) };
        (decide.actions.tools, decide.actions.answer, decide.actions.path)
    };
    let mut one = worker("summarise notes.txt");
    one.decided("Thought: x\nAction: read {\"path\": \"notes.txt\"}", Finish::Stop, TOKENS, &Guards::default());
    complete(&mut one, "The boat leaks.");
    assert_eq!(offered(&one), (vec!["workspace_write".to_owned()], false, Some("out.md".to_owned())));
    let wrote = "Thought: x\nAction: workspace_write {\"path\": \"out.md\", \"content\": \"leaks\"}";
    // a model that has written the file by itself is not asked to again
    let mut other = worker("summarise notes.txt");
    for turn in [&mut one, &mut other] {
        turn.decided(wrote, Finish::Stop, TOKENS, &Guards::default());
        complete(turn, "wrote");
        assert!(turn.end().is_some_and(|(end, _)| *end == End::Answered), "{:?}", turn.next());
    }
}

#[test]
fn a_worker_without_output_is_not_done() {
    let mut one = worker("count the errors in a.log");
    suggest(&mut one, "grep -c ERROR a.log", "3\n");
    assert_eq!(one.missing(), ["write what was found to out.md: Nothing was done for it."]);
}
