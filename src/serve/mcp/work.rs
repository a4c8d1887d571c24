//! One call of a tool: what it is handed to, and what its result looks like to a client.

use super::session::{Outcome, Start};
use super::tools::Name;
use caro_model::Cancel;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Told of each stage of a call, in a few words.
pub type Stages = Arc<dyn Fn(&str) + Send + Sync>;

/// The reason that a tool has no result, and what to do next.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// The reason.
    pub why: String,
    /// The next thing to do.
    pub next: String,
    /// A document that there is all the same.
    pub document: Option<Value>,
}

impl Trouble {
    /// A trouble with what to do about it.
    pub fn new(why: impl Into<String>, next: impl Into<String>) -> Self {
        Self { why: why.into(), next: next.into(), document: None }
    }

    /// The trouble of a call that was stopped.
    pub fn stopped() -> Self {
        Self::new("the call was stopped before it was done", "call the tool again if you still need its result")
    }
}

/// Does what the tools promise.
pub trait Toolbox: Send + Sync {
    /// Has a tool do its work, a JSON object as its output schema says. It ends soon after the switch is pulled.
    fn work(
        &self,
        tool: Name,
        arguments: Map<String, Value>,
        cancel: Cancel,
        stages: Stages,
    ) -> BoxFuture<'_, Result<Value, Trouble>>;
}

/// Does a call to its end, whatever happens on the way.
pub async fn done(toolbox: &dyn Toolbox, start: Start, stages: Stages) -> Outcome {
    let Start { tool, arguments, cancel, .. } = start;
    let work = AssertUnwindSafe(toolbox.work(tool, arguments, cancel, stages));
    let broke =
        |_| Err(Trouble::new("something inside broke", "call it in another way; `caro` on a terminal shows more"));
    outcome(work.catch_unwind().await.unwrap_or_else(broke))
}

/// The result of a call as the protocol has it: as a document, and as text for clients that read none.
pub fn outcome(result: Result<Value, Trouble>) -> Outcome {
    let content = |text: String| json!([{"type": "text", "text": text}]);
    let mut outcome = Outcome::new();
    match result {
        Ok(document) => {
            outcome.insert("content".into(), content(document.to_string()));
            outcome.insert("structuredContent".into(), document);
            outcome.insert("isError".into(), false.into());
        }
        Err(Trouble { why, next, document }) => {
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
        fn work(&self, _: Name, _: Map<String, Value>, _: Cancel, _: Stages) -> BoxFuture<'_, Result<Value, Trouble>> {
            Box::pin(async { panic!("on purpose") })
        }
    }

    #[tokio::test]
    async fn a_call_that_breaks_has_a_result_all_the_same() {
        let start = Start {
            call: 1,
            id: json!(1),
            tool: Name::CheckCommand,
            arguments: Map::new(),
            cancel: Cancel::new(),
            told: false,
        };
        let outcome = done(&Panics, start, Arc::new(|_| {})).await;
        assert_eq!(outcome["isError"], true);
        let text = outcome["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("broke") && text.contains("What to do next: "), "{text}");
    }

    #[test]
    fn a_document_is_text_too_and_a_trouble_says_what_to_do() {
        let good = outcome(Ok(json!({"cmd": "ls"})));
        assert_eq!(good["structuredContent"]["cmd"], "ls");
        assert_eq!(good["content"][0]["text"], "{\"cmd\":\"ls\"}");
        let bad = outcome(Err(Trouble { document: Some(json!({"a": 1})), ..Trouble::new("no", "say more") }));
        assert_eq!(bad["content"][0]["text"], "no\nWhat to do next: say more");
        assert_eq!((&bad["structuredContent"]["a"], &bad["isError"]), (&json!(1), &json!(true)));
    }
}
