//! The tools of the Model Context Protocol, done by what the other routes are done by: commands, manuals and runs, each
//! within the same queue. A transport says where those are to be had.

use super::Problem;
use super::commands::{CheckOrder, CommandOrder, Commands, ExplainOrder, SearchOrder};
use super::queue::{Place, Places};
use super::runs::RunOrder;
use crate::mcp::{Name, Stages, Toolbox, Trouble};
use caro_agent::event::{Event, Kind, Sink};
use caro_agent::turn::Report;
use caro_model::Cancel;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// Between two looks whether a call was stopped that does not look itself.
const LOOK: Duration = Duration::from_millis(50);
/// The next thing to do about arguments that do not fit.
const BY_SCHEMA: &str = "give the arguments as the tool's inputSchema says";
/// The next thing to do where nothing better is known.
const OTHERWISE: &str = "change the arguments, or do without it";

/// The means by which the tools do their work.
pub trait Means: Send + Sync {
    /// Makes commands and knows manuals. The model need not be there for all of it.
    ///
    /// # Errors
    /// If it is not there yet, or not any more.
    fn commands(&self) -> Result<Arc<dyn Commands>, Problem>;

    /// Works on a task with nobody to ask.
    fn run(&self, order: RunOrder, cancel: Cancel, sink: Arc<dyn Sink>) -> BoxFuture<'_, Result<Report, Problem>>;

    /// The places for answers, and those for runs.
    fn places(&self) -> (&Arc<Places>, &Arc<Places>);
}

/// The tools for one client.
pub struct Tools<M> {
    /// The means of their work.
    pub means: M,
    /// The client, as the queue tells them apart.
    pub client: String,
}

/// A task for an agent.
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
    ) -> Result<Value, Trouble> {
        match tool {
            Name::GenerateCommand => {
                let order: CommandOrder = read(arguments)?;
                let _place = self.place(tool, &cancel, &stages).await?;
                let told = Box::new(move |stage: Value| {
                    if let Some(text) = told(&stage) {
                        stages(&text);
                    }
                });
                found(self.means.commands()?.command(order, cancel, told).await?)
            }
            Name::CheckCommand => {
                let order: CheckOrder = read(arguments)?;
                let _place = self.place(tool, &cancel, &stages).await?;
                let commands = self.means.commands()?;
                unless(&cancel, commands.check(order)).await
            }
            Name::ExplainCommand => {
                let order: ExplainOrder = read(arguments)?;
                let _place = self.place(tool, &cancel, &stages).await?;
                let commands = self.means.commands()?;
                unless(&cancel, commands.explain(order)).await
            }
            Name::SearchManual => {
                let order: SearchOrder = read(arguments)?;
                let _place = self.place(tool, &cancel, &stages).await?;
                let commands = self.means.commands()?;
                unless(&cancel, commands.search(order)).await
            }
            Name::RunAgent => {
                let TaskOrder { task, session_id, max_steps } = read(arguments)?;
                let _place = self.place(tool, &cancel, &stages).await?;
                let order = RunOrder { query: task, session_id, max_steps, batch: None, approval_timeout: None };
                let report = self.means.run(order, cancel, Arc::new(Told(stages))).await?;
                reported(&report)
            }
        }
    }

    /// Waits for a place, unless the call is stopped meanwhile.
    async fn place(&self, tool: Name, cancel: &Cancel, stages: &Stages) -> Result<Place, Trouble> {
        let (answers, runs) = self.means.places();
        let places = if tool == Name::RunAgent { runs } else { answers };
        stages("waiting for a place");
        unless(cancel, places.take(&self.client)).await
    }
}

impl<M: Means> Toolbox for Tools<M> {
    fn work(
        &self,
        tool: Name,
        arguments: Map<String, Value>,
        cancel: Cancel,
        stages: Stages,
    ) -> BoxFuture<'_, Result<Value, Trouble>> {
        Box::pin(self.call(tool, arguments, cancel, stages))
    }
}

/// Does it, unless the call is stopped meanwhile.
async fn unless<T>(cancel: &Cancel, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Trouble> {
    let stopped = async {
        while !cancel.is_cancelled() {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        done = work => Ok(done?),
        () = stopped => Err(Trouble::stopped()),
    }
}

/// The arguments as an order.
fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Trouble> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|why| Trouble::new(format!("the arguments do not fit: {why}"), BY_SCHEMA))
}

impl From<Problem> for Trouble {
    fn from(problem: Problem) -> Self {
        let (why, next) = problem.said();
        let unfit = problem.status() == axum::http::StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(why, next.unwrap_or(if unfit { BY_SCHEMA } else { OTHERWISE }))
    }
}

/// The document of a command; the reason where there is none.
fn found(document: Value) -> Result<Value, Trouble> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    match (text("cmd"), text("refusal")) {
        (None, why) => {
            let next = text("hint").unwrap_or("say in other words what the command is to do");
            Err(Trouble::new(format!("there is no command: {}", why.unwrap_or("the model gave none")), next))
        }
        _ => Ok(document),
    }
}

/// The report of a run; one that failed is no result.
fn reported(report: &Report) -> Result<Value, Trouble> {
    let document = serde_json::to_value(report)
        .map_err(|why| Trouble::new(format!("the report cannot be written: {why}"), OTHERWISE))?;
    if report.status == "completed" {
        return Ok(document);
    }
    let why = format!("the task is {} ({}): {}", report.status, report.termination_reason, report.response);
    let next = format!(
        "ask for a smaller task, or do what was denied yourself; `caro events {}` on a terminal shows every step",
        report.run_id
    );
    Err(Trouble { document: Some(document), ..Trouble::new(why, next) })
}

/// A stage of a command in a few words; of those that say nothing to a person nothing.
fn told(stage: &Value) -> Option<String> {
    let text = |name: &str| stage.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match text("event") {
        "prompt" => format!("the model is asked (iteration {})", stage["iteration"]),
        "checked" => format!("checked: {}", text("cmd")),
        "decision" => text("what").to_owned(),
        _ => return None,
    })
}

/// Tells the events of a run.
struct Told(Stages);

impl Sink for Told {
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
    fn what_is_no_result_says_what_to_do() {
        let none = found(json!({"refusal": "that is no task", "hint": "say what it is to do"})).unwrap_err();
        assert_eq!(
            (none.why.as_str(), none.next.as_str()),
            ("there is no command: that is no task", "say what it is to do")
        );
        assert!(found(json!({"cmd": "ls"})).is_ok());
        let unfit = Trouble::from(Problem::unfit("`target` must be one of a, b"));
        assert_eq!((unfit.why.as_str(), unfit.next.as_str()), ("`target` must be one of a, b", BY_SCHEMA));
        let busy = Trouble::from(Problem::busy("too many requests are waiting", 2));
        assert_eq!(busy.next, "try again in 2 s");
        let Value::Object(arguments) = json!({"request": "x", "mood": 1}) else { unreachable!() };
        assert!(read::<CommandOrder>(arguments).unwrap_err().why.contains("unknown field `mood`"));
    }

    #[test]
    fn stages_are_told_without_prompts_and_raw_words() {
        assert_eq!(told(&json!({"event": "checked", "cmd": "ls -l"})).as_deref(), Some("checked: ls -l"));
        for silent in [json!({"event": "raw", "text": "x"}), json!({"event": "layer"}), json!({}), json!(3)] {
            assert_eq!(told(&silent), None, "{silent}");
        }
    }

    /// Holds the schemas against what is read: every argument of a tool, and no other one.
    #[test]
    fn the_arguments_that_are_described_are_those_that_are_read() {
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
