//! Parts of a plan that name a server of tools or workers to do them. Left to choose among all tools, a small model
//! takes those that it knows best, and calls `shell` where the user wants another one.

use super::AgentRun;
use super::progress::MAX_TRIES;
use crate::action::ActionSet;
use crate::plan::named_provider;
use crate::retrieve::{has_name_of, is_about};
use crate::tool::{Provider, ToolSpec};
use caro_intent::Kind;

/// The tool that reads a file: the text for a server may be in a file that the task names.
const READ: &str = "read";

impl AgentRun {
    /// Returns the provider whose tools the part asks for: the one it names or, after a first attempt failed, a server
    /// with tools about the same subject. `None` if they have failed too often.
    pub(super) fn target_provider(&self, part: &str) -> Option<&Provider> {
        // their results are written to a file with our own tools
        let writes = matches!(self.kind_of(self.progress.part), Kind::Save(_) | Kind::Compose(_));
        if writes || self.progress.tries >= MAX_TRIES {
            return None;
        }
        named_provider(part, &self.tools).or_else(|| {
            if self.progress.tries == 0 {
                return None;
            }
            let about = |spec: &&ToolSpec| matches!(spec.provider, Provider::Mcp(_)) && is_about(part, spec);
            self.tools.iter().find(about).map(|spec| &spec.provider)
        })
    }

    /// Returns the actions for such a part: calls of its provider's tools, at first only those whose names share a
    /// word with it, if any, and after a first attempt also giving up. `None` if none of these tools may be called
    /// now. Answering is not allowed: it is the user who knows that the provider is needed.
    pub(super) fn actions_for_target(&self, part: &str, actions: &ActionSet) -> Option<ActionSet> {
        let target = self.target_provider(part)?;
        let of = |tool: &String| self.tools.iter().find(|spec| spec.name == *tool && spec.provider == *target);
        let mut specs: Vec<&ToolSpec> = actions.tools.iter().filter_map(of).collect();
        if specs.is_empty() {
            return None;
        }
        if self.progress.tries == 0 && specs.iter().any(|spec| has_name_of(part, spec)) {
            specs.retain(|spec| has_name_of(part, spec));
        }
        let mut tools: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let reads = *target != Provider::Subagent && self.names_existing_files();
        tools.extend(actions.tools.iter().filter(|tool| *tool == READ && reads).cloned());
        Some(ActionSet { tools, answer: false, cannot: actions.cannot && self.progress.tries > 0, ..actions.clone() })
    }

    /// True for the tools of servers and the tool of workers.
    pub(super) fn is_external_tool(&self, tool: &str) -> bool {
        let is_external = |provider: &Provider| matches!(provider, Provider::Mcp(_) | Provider::Subagent);
        self.tools.iter().any(|spec| spec.name == tool && is_external(&spec.provider))
    }

    /// True if the task names existing files.
    fn names_existing_files(&self) -> bool {
        self.layers.iter().any(|layer| !layer.trusted && layer.name == super::PLACE)
    }
}
