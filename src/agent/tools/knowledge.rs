//! The tool `knowledge_search`: searches the user's own documents.

use super::text;
use crate::observe::Raw;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError, ToolSpec};
use caro_documents::Librarian;
use caro_documents::LibraryError;
use caro_policy::compress;
use serde_json::json;
use std::sync::Arc;

/// Most passages shown per call.
const LIMIT: usize = 4;
/// Most characters shown of a passage.
const MAX_SHOWN: usize = 450;

/// The tool `knowledge_search`. The first call opens the library.
pub struct KnowledgeSearch {
    spec: ToolSpec,
    librarian: Arc<Librarian>,
}

impl KnowledgeSearch {
    /// Creates the tool that searches in this library.
    pub fn new(librarian: Arc<Librarian>) -> Self {
        let description =
            "looks into the user's own documents, docs, notes and guides for what is written about a question.";
        let mut spec = ToolSpec::new("knowledge_search", description, json!({"query": {"type": "string"}}), &["query"]);
        spec.example = json!({"query": "how to restart the build server"});
        Self { spec, librarian }
    }
}

impl Tool for KnowledgeSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, _: &Args, _: &ToolCx) -> Effects {
        Effects::default()
    }

    fn call(&self, args: &Args, _: &ToolCx) -> Result<Raw, ToolError> {
        let query = text(args, "query");
        let answer = match self.librarian.query(query, LIMIT) {
            Ok(answer) => answer,
            Err(LibraryError::Empty(why)) => return Ok(Raw::text(why)),
            Err(error) => return Err(ToolError::Failed(error.to_string())),
        };
        if answer.hits.is_empty() {
            return Ok(Raw::text(format!("nothing about `{query}` in the user's documents")));
        }
        let hit = |hit: &caro_documents::Hit| format!("{}\n{}", hit.place(), compress(&hit.text, MAX_SHOWN));
        Ok(Raw::text(answer.hits.iter().map(hit).collect::<Vec<_>>().join("\n\n")))
    }
}
