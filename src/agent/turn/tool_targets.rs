//! Parts that say who is to do them: a server of tools, or helpers. Left to choose among all tools, a small model takes those
//! that it knows best, and calls `shell` where the person wants another to be asked.

use super::AgentRun;
use super::progress::TRIES;
use crate::action::ActionSet;
use crate::plan::who;
use crate::retrieve::{has_name_of, is_about};
use crate::tool::{Provider, ToolSpec};
use caro_intent::Kind;

/// Shows a file that the task names: what a server is to be told may be in it.
const READ: &str = "read";

impl AgentRun {
    /// Whose tools the part wants, unless they have failed often enough: those that it names, and where a first way came to
    /// nothing, a server's that are about the same.
    pub(super) fn meant(&self, part: &str) -> Option<&Provider> {
        // what they have shown is written down without them
        let writes = matches!(self.kind_of(self.progress.part), Kind::Save(_) | Kind::Compose(_));
        if writes || self.progress.tries >= TRIES {
            return None;
        }
        let about = |spec: &&ToolSpec| matches!(spec.provider, Provider::Mcp(_)) && is_about(part, spec);
        let fits = || self.tools.iter().find(about).filter(|_| self.progress.tries > 0).map(|spec| &spec.provider);
        who(part, &self.tools).or_else(fits)
    }

    /// What may be done for such a part: call these tools, at first those whose names it has a word of if there are any, or,
    /// once one was tried, give up: the person knows of them more than a model that has not. `None` where none of them may be
    /// called now.
    pub(super) fn for_named(&self, part: &str, actions: &ActionSet) -> Option<ActionSet> {
        let meant = self.meant(part)?;
        let of = |tool: &String| self.tools.iter().find(|spec| spec.name == *tool && spec.provider == *meant);
        let mut theirs: Vec<&ToolSpec> = actions.tools.iter().filter_map(of).collect();
        if theirs.is_empty() {
            return None;
        }
        if self.progress.tries == 0 && theirs.iter().any(|spec| has_name_of(part, spec)) {
            theirs.retain(|spec| has_name_of(part, spec));
        }
        let mut tools: Vec<String> = theirs.iter().map(|spec| spec.name.clone()).collect();
        let reads = *meant != Provider::Subagent && self.names_files();
        tools.extend(actions.tools.iter().filter(|tool| *tool == READ && reads).cloned());
        Some(ActionSet { tools, answer: false, cannot: actions.cannot && self.progress.tries > 0, ..actions.clone() })
    }

    /// True if it is a tool of a server, or that of helpers.
    pub(super) fn is_theirs(&self, tool: &str) -> bool {
        let others = |provider: &Provider| matches!(provider, Provider::Mcp(_) | Provider::Subagent);
        self.tools.iter().any(|spec| spec.name == tool && others(&spec.provider))
    }

    /// True if the task names files that there are.
    fn names_files(&self) -> bool {
        self.layers.iter().any(|layer| !layer.trusted && layer.name == super::PLACE)
    }
}
