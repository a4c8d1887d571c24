//! Parts that are for a server of tools. Left to choose among all tools, a small model takes those that it knows best, and
//! calls `shell` where the person wants a server to be asked.

use super::Turn;
use super::course::TRIES;
use crate::agent::action::ActionSet;
use crate::agent::plan::{Kind, kind, server};
use crate::agent::tool::Provider;

/// Shows a file that the task names: what a server is to be told may be in it.
const READ: &str = "read";

impl Turn {
    /// The server that the part is for: the one that it names, unless its tools have failed often enough.
    pub(super) fn server_of(&self, part: &str) -> Option<&str> {
        // what it has shown is written down without it
        let writes = matches!(kind(part, self.course.part > 0), Kind::Save(_) | Kind::Compose(_));
        if writes || self.course.tries >= TRIES { None } else { server(part, &self.tools) }
    }

    /// What may be done for such a part: call the server's tools, or give up. `None` where none of them may be called now.
    pub(super) fn for_server(&self, part: &str, actions: &ActionSet) -> Option<ActionSet> {
        let named = self.server_of(part)?;
        let of = |tool: &&String| {
            let spec = self.tools.iter().find(|spec| spec.name == **tool);
            spec.is_some_and(|spec| matches!(&spec.provider, Provider::Mcp(name) if name == named))
        };
        let mut tools: Vec<String> = actions.tools.iter().filter(of).cloned().collect();
        if tools.is_empty() {
            return None;
        }
        tools.extend(actions.tools.iter().filter(|tool| *tool == READ && self.names_files()).cloned());
        Some(ActionSet { tools, answer: false, ..actions.clone() })
    }

    /// True if it is a server's tool.
    pub(super) fn is_theirs(&self, tool: &str) -> bool {
        self.tools.iter().any(|spec| spec.name == tool && matches!(spec.provider, Provider::Mcp(_)))
    }

    /// True if the task names files that there are.
    fn names_files(&self) -> bool {
        self.layers.iter().any(|layer| !layer.trusted && layer.name == super::PLACE)
    }
}
