//! The tools of the workspace, which holds the agent's own notes, lists and files.

use super::{number, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Provider, Tool, ToolCx, ToolError, ToolSpec, Touch};
use crate::workspace::{Mode, Workspace, WorkspaceError};
use serde_json::json;
use std::sync::Arc;

/// The function of one of the tools.
type Work = fn(&Workspace, &Args) -> Result<String, WorkspaceError>;

struct WorkspaceTool {
    spec: ToolSpec,
    workspace: Arc<Workspace>,
    writes: bool,
    work: Work,
}

/// Returns the seven tools.
pub(crate) fn all(workspace: Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    let string = || json!({"type": "string"});
    let tool = |name, description, parameters, required: &[&str], writes: bool, work: Work| {
        let mut spec = ToolSpec::new(name, description, parameters, required);
        spec.provider = Provider::Workspace;
        spec.parallel = !writes;
        if name == "workspace_replace" {
            // replacing a line with itself and more lines inserts them
            spec.covers = vec!["workspace_insert".into()];
        }
        Arc::new(WorkspaceTool { spec, workspace: workspace.clone(), writes, work }) as Arc<dyn Tool>
    };
    let mode = json!({"type": "string", "enum": ["create", "append", "overwrite"]});
    vec![
        tool(
            "workspace_view",
            "shows a note of the workspace, or what is in it.",
            json!({"path": string()}),
            &["path"],
            false,
            |w, a| w.view(text(a, "path")),
        ),
        tool(
            "workspace_write",
            "writes a note into the workspace.",
            json!({"path": string(), "content": string(), "mode": mode}),
            &["path", "content"],
            true,
            |w, a| w.write(text(a, "path"), text(a, "content"), Mode::named(text(a, "mode"))),
        ),
        tool(
            "workspace_replace",
            "replaces text in a note of the workspace, wherever it stands.",
            json!({"path": string(), "old": string(), "new": string()}),
            &["path", "old", "new"],
            true,
            |w, a| w.replace(text(a, "path"), text(a, "old"), text(a, "new")),
        ),
        tool(
            "workspace_insert",
            "inserts lines into a note of the workspace, before a line.",
            json!({"path": string(), "line": super::line_number(), "content": string()}),
            &["path", "line", "content"],
            true,
            |w, a| w.insert(text(a, "path"), number(a, "line").unwrap_or(1), text(a, "content")),
        ),
        tool(
            "workspace_delete",
            "deletes a note of the workspace.",
            json!({"path": string()}),
            &["path"],
            true,
            |w, a| w.delete(text(a, "path")),
        ),
        tool(
            "workspace_rename",
            "renames a note of the workspace.",
            json!({"path": string(), "to": string()}),
            &["path", "to"],
            true,
            |w, a| w.rename(text(a, "path"), text(a, "to")),
        ),
        tool("workspace_clear", "deletes every note of the workspace.", json!({}), &[], true, |w, _| w.clear()),
    ]
}

impl Tool for WorkspaceTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self, args: &Args, _: &ToolCx) -> Effects {
        let paths = ["path", "to"].iter().map(|name| text(args, name)).filter(|p| !p.is_empty());
        let paths = paths.filter_map(|p| self.workspace.file(p).ok());
        if !self.writes {
            return Effects { reads: paths.collect(), ..Effects::default() };
        }
        let writes: Vec<_> = paths.collect();
        // a refused path writes nothing; `clear` writes everything
        let all = self.spec.name == "workspace_clear";
        Effects { writes: if all { vec![self.workspace.files()] } else { writes }, ..Effects::default() }
    }

    fn touches(&self, args: &Args) -> Vec<Touch> {
        let path = || text(args, "path").to_owned();
        match self.spec.name.as_str() {
            "workspace_view" => vec![Touch::Reads(path())],
            "workspace_delete" => vec![Touch::Deletes(path())],
            "workspace_rename" => vec![Touch::Deletes(path()), Touch::Writes(text(args, "to").to_owned())],
            "workspace_clear" => vec![Touch::Deletes(".".to_owned())],
            _ => vec![Touch::Writes(path())],
        }
    }

    fn call(&self, args: &Args, _: &ToolCx) -> Result<Raw, ToolError> {
        (self.work)(&self.workspace, args).map(Raw::text).map_err(|e| ToolError::Failed(e.to_string()))
    }
}
