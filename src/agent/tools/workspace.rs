//! The tools of the workspace: notes, lists and files of the agent's own.

use super::{number, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Provider, Tool, ToolCx, ToolError, ToolSpec, Touch};
use crate::workspace::{Mode, Workspace, WorkspaceError};
use serde_json::json;
use std::sync::Arc;

/// Does the work of one of the tools.
type Work = fn(&Workspace, &Args) -> Result<String, WorkspaceError>;

struct WorkspaceTool {
    spec: ToolSpec,
    workspace: Arc<Workspace>,
    writes: bool,
    work: Work,
}

/// The seven tools.
pub(crate) fn all(workspace: Arc<Workspace>) -> Vec<Arc<dyn Tool>> {
    let string = || json!({"type": "string"});
    let one = |name, description, parameters, required: &[&str], writes: bool, work: Work| {
        let mut spec = ToolSpec::new(name, description, parameters, required);
        spec.provider = Provider::Workspace;
        spec.parallel = !writes;
        if name == "workspace_replace" {
            // lines are inserted by replacing one with itself and them
            spec.covers = vec!["workspace_insert".into()];
        }
        Arc::new(WorkspaceTool { spec, workspace: workspace.clone(), writes, work }) as Arc<dyn Tool>
    };
    let mode = json!({"type": "string", "enum": ["create", "append", "overwrite"]});
    vec![
        one(
            "workspace_view",
            "shows a note of the workspace, or what is in it.",
            json!({"path": string()}),
            &["path"],
            false,
            |w, a| w.view(text(a, "path")),
        ),
        one(
            "workspace_write",
            "writes a note into the workspace.",
            json!({"path": string(), "content": string(), "mode": mode}),
            &["path", "content"],
            true,
            |w, a| w.write(text(a, "path"), text(a, "content"), Mode::named(text(a, "mode"))),
        ),
        one(
            "workspace_replace",
            "replaces text in a note of the workspace, wherever it stands.",
            json!({"path": string(), "old": string(), "new": string()}),
            &["path", "old", "new"],
            true,
            |w, a| w.replace(text(a, "path"), text(a, "old"), text(a, "new")),
        ),
        one(
            "workspace_insert",
            "inserts lines into a note of the workspace, before a line.",
            json!({"path": string(), "line": super::line_number(), "content": string()}),
            &["path", "line", "content"],
            true,
            |w, a| w.insert(text(a, "path"), number(a, "line").unwrap_or(1), text(a, "content")),
        ),
        one(
            "workspace_delete",
            "deletes a note of the workspace.",
            json!({"path": string()}),
            &["path"],
            true,
            |w, a| w.delete(text(a, "path")),
        ),
        one(
            "workspace_rename",
            "renames a note of the workspace.",
            json!({"path": string(), "to": string()}),
            &["path", "to"],
            true,
            |w, a| w.rename(text(a, "path"), text(a, "to")),
        ),
        one("workspace_clear", "deletes every note of the workspace.", json!({}), &[], true, |w, _| w.clear()),
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
        // a path that is refused writes nothing; `clear` writes all of it
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
