//! The tool `manual_search`: searches the manuals of the installed programs.

use super::text;
use crate::observe::Raw;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError, ToolSpec};
use serde_json::json;
use std::sync::Arc;

/// Searches the installed manuals.
pub trait ManualSource: Send + Sync {
    /// Returns the options that fit the words best, each as a line `program: option  what it does`.
    ///
    /// # Errors
    /// If the manuals cannot be read, as a sentence.
    fn search(&self, program: &str, words: &str) -> Result<Vec<String>, String>;
}

/// The tool `manual_search`.
pub struct ManualSearch {
    spec: ToolSpec,
    source: Arc<dyn ManualSource>,
}

impl ManualSearch {
    /// Creates the tool that searches in `source`.
    pub fn new(source: Arc<dyn ManualSource>) -> Self {
        let parameters = json!({"program": {"type": "string"}, "query": {"type": "string"}});
        let description = "finds options in the manual of an installed program.";
        let mut spec = ToolSpec::new("manual_search", description, parameters, &["program", "query"]);
        spec.example = json!({"program": "sort", "query": "numeric reverse"});
        Self { spec, source }
    }
}

impl Tool for ManualSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, _: &Args, _: &ToolCx) -> Effects {
        Effects::default()
    }

    fn call(&self, args: &Args, _: &ToolCx) -> Result<Raw, ToolError> {
        let (program, query) = (text(args, "program"), text(args, "query"));
        let lines = self.source.search(program, query).map_err(ToolError::Failed)?;
        if lines.is_empty() {
            return Ok(Raw::text(format!("nothing about `{query}` in the manual of {program}")));
        }
        Ok(Raw::text(lines.join("\n")))
    }
}
