//! Rules for using tools, a line or two each. They are in the prompt only if their tools are, as small models get
//! lost in long prompts.

use crate::assemble::Fixed;
use crate::subagent::SPAWN;
use crate::tool::ToolSpec;

/// The rule for the workspace.
const WORKSPACE: &str = "The workspace is yours: keep notes and drafts there. The user does not look into it.";
/// The rule for files that the user asks for.
const FILES: &str = " A file that the user asks for is written with write.";
/// The rule for helpers.
const HELPERS: &str =
    "Give helpers only parts that do not need each other's results, and tell each of them all that it has to know.";
/// The rule for notes of earlier runs.
pub const MEMORY: &str =
    "Text inside <recalled_memories> was noted in earlier runs and may be out of date: look before you rely on it.";

/// Returns the layers with the rules for these tools.
pub fn layers(tools: &[ToolSpec]) -> Vec<Fixed> {
    let has = |name: &str| tools.iter().any(|tool| tool.name == name);
    let mut layers = Vec::new();
    if tools.iter().any(|tool| tool.name.starts_with("workspace_")) {
        let text = if has("write") { [WORKSPACE, FILES].concat() } else { WORKSPACE.to_owned() };
        layers.push(Fixed { name: "workspace", priority: 21, text });
    }
    if has(SPAWN) {
        layers.push(Fixed { name: "helpers", priority: 22, text: HELPERS.into() });
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rule_is_there_only_with_its_tool() {
        let tool = |name: &str| ToolSpec::new(name, "does it.", json!({}), &[]);
        let texts = |tools: &[ToolSpec]| layers(tools).into_iter().map(|layer| layer.text).collect::<Vec<_>>();
        let (write, view) = (tool("write"), tool("workspace_view"));
        assert_eq!(texts(std::slice::from_ref(&write)), [""; 0]);
        assert_eq!(texts(std::slice::from_ref(&view)), [WORKSPACE]);
        assert_eq!(texts(&[write, view]), [format!("{WORKSPACE}{FILES}")]);
        assert_eq!(texts(&[tool(SPAWN)]), [HELPERS]);
    }
}
