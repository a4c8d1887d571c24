//! One tool call: the trait that runs it, and the form of its result for a client.

use super::session::{Outcome, Start};
use super::tools::Name;
use caro_model::Cancel;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Called for each stage of a call, with a short description.
pub type Stages = Arc<dyn Fn(&str) + Send + Sync>;

/// The error of a tool call, and what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// The reason.
    pub why: String,
    /// The next thing to do.
    pub next: String,
    /// The result document, if there is one despite the error.
    pub document: Option<Value>,
}

impl ToolError {
    /// An error without a document.
    pub fn new(why: impl Into<String>, next: impl Into<String>) -> Self {
        Self { why: why.into(), next: next.into(), document: None }
    }

    /// The error of a call that was stopped.
    pub fn stopped() -> Self {
        Self::new("the call was stopped before it was done", "call the tool again if you still need its result")
    }
}

/// Implements the tools.
pub trait Toolbox: Send + Sync {
    /// Runs a tool; the result is a JSON object that follows its output schema. Ends soon after `cancel` is
    /// triggered.
    fn work(
        &self,
        tool: Name,
        arguments: Map<String, Value>,
        cancel: Cancel,
        stages: Stages,
    ) -> BoxFuture<'_, Result<Value, ToolError>>;
}

/// Runs a call to its end; a panic becomes an error result.
pub async fn run_call(toolbox: &dyn Toolbox, start: Start, stages: Stages) -> Outcome {
    let Start { tool, arguments, cancel, .. } = start;
    let work = AssertUnwindSafe(toolbox.work(tool, arguments, cancel, stages));
    let panicked =
        |_| Err(ToolError::new("something inside broke", "call it in another way; `caro` on a terminal shows more"));
    to_outcome(work.catch_unwind().await.unwrap_or_else(panicked))
}

/// Converts the result of a call to the protocol's form: a document, and text for clients that read no documents.
pub fn to_outcome(result: Result<Value, ToolError>) -> Outcome {
    let content = |text: String| json!([{"type": "text", "text": text}]);
    let mut outcome = Outcome::new();
    match result {
        Ok(document) => {
            outcome.insert("content".into(), content(document.to_string()));
            outcome.insert("structuredContent".into(), document);
            outcome.insert("isError".into(), false.into());
        }
        Err(ToolError { why, next, document }) => {
            outcome.insert("content".into(), content(format!("{why}\nWhat to do next: {next}")));
            if let Some(document) = document {
                outcome.insert("structuredContent".into(), document);
            }
            outcome.insert("isError".into(), true.into());
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Panics;

    impl Toolbox for Panics {
        fn work(
            &self,
            _: Name,
            _: Map<String, Value>,
            _: Cancel,
            _: Stages,
        ) -> BoxFuture<'_, Result<Value, ToolError>> {
            Box::pin(async { panic!("on purpose") })
        }
    }

    #[tokio::test]
    async fn a_call_that_panics_has_an_error_result() {
        let start = Start {
            call: 1,
            id: json!(1),
            tool: Name::CheckCommand,
            arguments: Map::new(),
            cancel: Cancel::new(),
            wants_progress: false,
        };
        let outcome = run_call(&Panics, start, Arc::new(|_| {})).await;
        assert_eq!(outcome["isError"], true);
        let text = outcome["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("broke") && text.contains("What to do next: "), "{text}");
    }

    #[test]
    fn a_result_has_document_and_text_and_an_error_says_what_to_do() {
        let good = to_outcome(Ok(json!({"cmd": "ls"})));
        assert_eq!(good["structuredContent"]["cmd"], "ls");
        assert_eq!(good["content"][0]["text"], "{\"cmd\":\"ls\"}");
        let bad = to_outcome(Err(ToolError { document: Some(json!({"a": 1})), ..ToolError::new("no", "say more") }));
        assert_eq!(bad["content"][0]["text"], "no\nWhat to do next: say more");
        assert_eq!((&bad["structuredContent"]["a"], &bad["isError"]), (&json!(1), &json!(true)));
    }
}
