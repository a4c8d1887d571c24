//! The tools that read artifacts: results that were too long for the prompt.

use super::{number, text};
use crate::observe::{Artifacts, Raw};
use crate::tool::{Args, Effects, Provider, Tool, ToolCx, ToolError, ToolSpec, Touch};
use serde_json::json;
use std::sync::Arc;

/// The number of lines that `tail_artifact` shows by default.
const DEFAULT_TAIL: usize = 50;
/// Most matches that `search_artifact` shows.
const MAX_MATCHES: usize = 10;

/// The function of one of the tools.
type Work = fn(&dyn Artifacts, &Args) -> Result<String, ToolError>;

struct ArtifactTool {
    spec: ToolSpec,
    artifacts: Arc<dyn Artifacts>,
    work: Work,
}

/// Returns the four tools.
pub(super) fn all(artifacts: Arc<dyn Artifacts>) -> Vec<Arc<dyn Tool>> {
    let id = json!({"type": "string"});
    let count = super::line_number();
    let tool = |name, description, parameters, required: &[&str], work: Work| {
        let mut spec = ToolSpec::new(name, description, parameters, required);
        spec.provider = Provider::Workspace;
        Arc::new(ArtifactTool { spec, artifacts: artifacts.clone(), work }) as Arc<dyn Tool>
    };
    vec![
        tool("read_artifact", "shows a kept result from a line on.", json!({"id": id, "from": count}), &["id"], read),
        tool("tail_artifact", "shows the end of a kept result.", json!({"id": id, "lines": count}), &["id"], tail),
        tool(
            "search_artifact",
            "finds text in a kept result.",
            json!({"id": id, "query": {"type": "string"}}),
            &["id", "query"],
            search,
        ),
        tool("list_artifacts", "lists the kept results.", json!({}), &[], list),
    ]
}

fn whole(artifacts: &dyn Artifacts, args: &Args) -> Result<String, ToolError> {
    let id = text(args, "id");
    artifacts.get(id).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            let known: Vec<String> = artifacts.list().unwrap_or_default().into_iter().map(|a| a.id).collect();
            ToolError::Failed(format!("Error: Artifact '{id}' not found. There are: {}", known.join(", ")))
        }
        _ => ToolError::Io { what: format!("could not read the artifact {id}"), source: e },
    })
}

fn read(artifacts: &dyn Artifacts, args: &Args) -> Result<String, ToolError> {
    let text = whole(artifacts, args)?;
    let from = number(args, "from").unwrap_or(1).max(1);
    Ok(text.lines().skip(from - 1).collect::<Vec<_>>().join("\n"))
}

fn tail(artifacts: &dyn Artifacts, args: &Args) -> Result<String, ToolError> {
    let text = whole(artifacts, args)?;
    let lines: Vec<&str> = text.lines().collect();
    let wanted = number(args, "lines").unwrap_or(DEFAULT_TAIL);
    Ok(lines[lines.len().saturating_sub(wanted)..].join("\n"))
}

fn search(artifacts: &dyn Artifacts, args: &Args) -> Result<String, ToolError> {
    let whole = whole(artifacts, args)?;
    let query = text(args, "query").to_lowercase();
    let lines: Vec<&str> = whole.lines().collect();
    let found: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].to_lowercase().contains(&query)).collect();
    if found.is_empty() {
        return Ok(format!("no line has `{query}`"));
    }
    let mut shown = vec![format!("{} of {} matches:", found.len().min(MAX_MATCHES), found.len())];
    for &at in found.iter().take(MAX_MATCHES) {
        let around = at.saturating_sub(1)..=(at + 1).min(lines.len() - 1);
        shown.extend(around.map(|i| format!("{}{} {}", i + 1, if i == at { ':' } else { '-' }, lines[i])));
    }
    Ok(shown.join("\n"))
}

fn list(artifacts: &dyn Artifacts, _: &Args) -> Result<String, ToolError> {
    let all =
        artifacts.list().map_err(|source| ToolError::Io { what: "could not list the artifacts".into(), source })?;
    let lines: Vec<String> =
        all.iter().map(|a| format!("{}  {} bytes, {} lines, from {}", a.id, a.bytes, a.lines, a.tool)).collect();
    Ok(if lines.is_empty() { "there are no artifacts".into() } else { lines.join("\n") })
}

impl Tool for ArtifactTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, _: &Args, _: &ToolCx) -> Effects {
        Effects::default()
    }

    fn touches(&self, args: &Args) -> Vec<Touch> {
        vec![Touch::Reads(format!("artifacts/{}", text(args, "id")))]
    }

    fn call(&self, args: &Args, _: &ToolCx) -> Result<Raw, ToolError> {
        (self.work)(&*self.artifacts, args).map(Raw::text)
    }
}
