//! Implements the tools of the Model Context Protocol with the means of the other routes: commands, manuals and runs,
//! in the same queues. Each transport provides these means.

use super::Problem;
use super::commands::{CheckOrder, CommandOrder, Commands, ExplainOrder, SearchOrder};
use super::queue::{Place, Places};
use super::runs::RunOrder;
use crate::mcp::{Name, Stages, ToolError, Toolbox};
use caro_agent::event::{Event, Kind, Sink};
use caro_agent::turn::Report;
use caro_model::Cancel;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Interval at which [`unless_stopped`] checks for cancellation.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Advice for invalid arguments.
const BY_SCHEMA: &str = "give the arguments as the tool's inputSchema says";
/// Advice if there is no better one.
const OTHERWISE: &str = "change the arguments, or do without it";

/// The means by which the tools do their work.
pub trait Means: Send + Sync {
    /// The commands and manuals. Not all of their methods need the model.
    ///
    /// # Errors
    /// If the server is still starting, or is ending.
    fn commands(&self) -> Result<Arc<dyn Commands>, Problem>;

    /// Runs a task of the agent; approvals are denied, since no user can be asked.
    fn run(&self, order: RunOrder, cancel: Cancel, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<Report, Problem>>;

    /// The queue places for answers, and those for runs.
    fn places(&self) -> (&Arc<Places>, &Arc<Places>);
}

/// The tools for one client.
pub struct Tools<M> {
    /// The means of their work.
    pub means: M,
    /// The name of the client in the queue.
    pub client: String,
}

/// The arguments of a run of the agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskOrder {
    task: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    max_steps: Option<u32>,
}

impl<M: Means> Tools<M> {
    async fn call(
        &self,
        tool: Name,
        arguments: Map<String, Value>,
        cancel: Cancel,
        stages: Stages,
    ) -> Result<Value, ToolError> {
        match tool {
            Name::GenerateCommand => {
                let order: CommandOrder = read(arguments)?;
                let _place = self.place(&cancel, &stages).await?;
                let on_stage = Box::new(move |stage: Value| {
                    if let Some(text) = describe_stage(&stage) {
                        stages(&text);
                    }
                });
                command_result(self.means.commands()?.command(order, cancel, on_stage).await?)
            }
            Name::CheckCommand => {
                let order: CheckOrder = read(arguments)?;
                let _place = self.place(&cancel, &stages).await?;
                let commands = self.means.commands()?;
                unless_stopped(&cancel, commands.check(order)).await
            }
            Name::ExplainCommand => {
                let order: ExplainOrder = read(arguments)?;
                let _place = self.place(&cancel, &stages).await?;
                let commands = self.means.commands()?;
                unless_stopped(&cancel, commands.explain(order)).await
            }
            Name::SearchManual => {
                let order: SearchOrder = read(arguments)?;
                let _place = self.place(&cancel, &stages).await?;
                let commands = self.means.commands()?;
                unless_stopped(&cancel, commands.search(order)).await
            }
            Name::RunAgent => {
                let TaskOrder { task, session_id, max_steps } = read(arguments)?;
                stages("waiting for a place");
                let (_, places) = self.means.places();
                let _place = unless_stopped(&cancel, places.take(&self.client, session_id.as_deref())).await?;
                let order = RunOrder { query: task, session_id, max_steps, batch: None, approval_timeout: None };
                let report = self.means.run(order, cancel, Arc::new(StageSink(stages))).await?;
                run_result(&report)
            }
        }
    }

    /// Waits for a place for an answer, unless the call is stopped meanwhile.
    async fn place(&self, cancel: &Cancel, stages: &Stages) -> Result<Place, ToolError> {
        stages("waiting for a place");
        let (places, _) = self.means.places();
        unless_stopped(cancel, places.take(&self.client, None)).await
    }
}

impl<M: Means> Toolbox for Tools<M> {
    fn work(
        &self,
        tool: Name,
        arguments: Map<String, Value>,
        cancel: Cancel,
        stages: Stages,
    ) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(self.call(tool, arguments, cancel, stages))
    }
}

/// Awaits `work`, unless the call is stopped meanwhile.
async fn unless_stopped<T>(cancel: &Cancel, work: impl Future<Output = Result<T, Problem>>) -> Result<T, ToolError> {
    let stopped = async {
        while !cancel.is_cancelled() {
            tokio::time::sleep(CANCEL_POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        result = work => Ok(result?),
        () = stopped => Err(ToolError::stopped()),
    }
}

/// Deserializes the arguments.
fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|why| ToolError::new(format!("the arguments do not fit: {why}"), BY_SCHEMA))
}

impl From<Problem> for ToolError {
    fn from(problem: Problem) -> Self {
        let (why, next) = problem.message_and_detail();
        let is_invalid = problem.status() == axum::http::StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(why, next.unwrap_or(if is_invalid { BY_SCHEMA } else { OTHERWISE }))
    }
}

/// Returns the document, or an error if it has no command.
fn command_result(document: Value) -> Result<Value, ToolError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    match (text("cmd"), text("refusal")) {
        (None, why) => {
            let next = text("hint").unwrap_or("say in other words what the command is to do");
            Err(ToolError::new(format!("there is no command: {}", why.unwrap_or("the model gave none")), next))
        }
        _ => Ok(document),
    }
}

/// Returns the report of a run; an error with the report if the run was not completed.
fn run_result(report: &Report) -> Result<Value, ToolError> {
    let document = serde_json::to_value(report)
        .map_err(|why| ToolError::new(format!("the report cannot be written: {why}"), OTHERWISE))?;
    if report.status == "completed" {
        return Ok(document);
    }
    let why = format!("the task is {} ({}): {}", report.status, report.termination_reason, report.response);
    let next = format!(
        "ask for a smaller task, or do what was denied yourself; `caro events {}` on a terminal shows every step",
        report.run_id
    );
    Err(ToolError { document: Some(document), ..ToolError::new(why, next) })
}

/// Describes a stage of a command in a few words; `None` for stages of no interest to a user.
fn describe_stage(stage: &Value) -> Option<String> {
    let text = |name: &str| stage.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match text("event") {
        "prompt" => format!("the model is asked (iteration {})", stage["iteration"]),
        "checked" => format!("checked: {}", text("cmd")),
        "decision" => text("what").to_owned(),
        _ => return None,
    })
}

/// Reports the events of a run as stages.
struct StageSink(Stages);

impl Sink for StageSink {
    fn take(&self, event: &Event) {
        let tool = event.input.get("tool").and_then(Value::as_str).unwrap_or_default();
        let text = match event.event_type {
            Kind::ModelCall => "the model is asked".to_owned(),
            Kind::ToolCall => format!("{tool} is called"),
            Kind::ToolResult => "a result is looked at".to_owned(),
            Kind::ApprovalDenied => "a call is denied".to_owned(),
            _ => return,
        };
        let step = if event.span_id.is_empty() { String::new() } else { format!("{}: ", event.span_id) };
        (self.0)(&format!("{step}{text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_say_what_to_do() {
        let none =
            command_result(json!({"refusal": "that is not a task", "hint": "say what it is to do"})).unwrap_err();
        assert_eq!(
            (none.why.as_str(), none.next.as_str()),
            ("there is no command: that is not a task", "say what it is to do")
        );
        assert!(command_result(json!({"cmd": "ls"})).is_ok());
        let invalid = ToolError::from(Problem::unprocessable("`target` must be one of a, b"));
        assert_eq!((invalid.why.as_str(), invalid.next.as_str()), ("`target` must be one of a, b", BY_SCHEMA));
        let busy = ToolError::from(Problem::busy("too many requests are waiting", 2));
        assert_eq!(busy.next, "try again in 2 s");
        let Value::Object(arguments) = json!({"request": "x", "mood": 1}) else { unreachable!() };
        assert!(read::<CommandOrder>(arguments).unwrap_err().why.contains("unknown field `mood`"));
    }

    #[test]
    fn stages_are_described_without_prompts_and_raw_output() {
        assert_eq!(describe_stage(&json!({"event": "checked", "cmd": "ls -l"})).as_deref(), Some("checked: ls -l"));
        for silent in [json!({"event": "raw", "text": "x"}), json!({"event": "layer"}), json!({}), json!(3)] {
            assert_eq!(describe_stage(&silent), None, "{silent}");
        }
    }

    /// Compares the schemas with the types: a tool reads each described argument, and no other one.
    #[test]
    fn each_tool_reads_the_arguments_of_its_schema() {
        fn reads<T: DeserializeOwned>(tool: Name) {
            let schema = tool.input();
            let value = |property: &Value| match property["type"].as_str() {
                Some("boolean") => json!(true),
                Some("integer") => json!(1),
                _ => json!("x"),
            };
            let properties = schema["properties"].as_object().unwrap();
            let whole: Map<String, Value> =
                properties.iter().map(|(name, property)| (name.clone(), value(property))).collect();
            read::<T>(whole.clone()).unwrap_or_else(|why| panic!("{tool:?}: {why:?}"));
            for name in schema["required"].as_array().unwrap() {
                let mut without = whole.clone();
                without.remove(name.as_str().unwrap());
                assert!(read::<T>(without).is_err(), "{tool:?} without {name}");
            }
            let other = whole.into_iter().chain([("mood".to_owned(), json!(1))]).collect();
            assert!(read::<T>(other).is_err(), "{tool:?}");
        }
        reads::<CommandOrder>(Name::GenerateCommand);
        reads::<CheckOrder>(Name::CheckCommand);
        reads::<ExplainOrder>(Name::ExplainCommand);
        reads::<SearchOrder>(Name::SearchManual);
        reads::<TaskOrder>(Name::RunAgent);
    }
}
