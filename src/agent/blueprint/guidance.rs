//! Rules for tools, in a line or two, and only where the tools are shown: a small model loses its way in long prompts.

use crate::assemble::Fixed;
use crate::subagent::SPAWN;
use crate::tool::ToolSpec;

/// Where the agent's own files are not where the person's are.
const WORKSPACE: &str = "The workspace is yours: keep notes and drafts there. The user does not look into it.";
/// What a file is written with that the person asked for.
const FILES: &str = " A file that the user asks for is written with write.";
/// What helpers are for.
const HELPERS: &str =
    "Give helpers only parts that do not need each other's results, and tell each of them all that it has to know.";
/// How far notes of earlier runs are to be relied on.
pub const MEMORY: &str =
    "Text inside <recalled_memories> was noted in earlier runs and may be out of date: look before you rely on it.";

/// The layers for these tools.
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
    fn a_rule_stands_only_where_its_tool_does() {
        let tool = |name: &str| ToolSpec::new(name, "does it.", json!({}), &[]);
        let texts = |tools: &[ToolSpec]| layers(tools).into_iter().map(|layer| layer.text).collect::<Vec<_>>();
        let (write, view) = (tool("write"), tool("workspace_view"));
        assert_eq!(texts(std::slice::from_ref(&write)), [""; 0]);
        assert_eq!(texts(std::slice::from_ref(&view)), [WORKSPACE]);
        assert_eq!(texts(&[write, view]), [format!("{WORKSPACE}{FILES}")]);
        assert_eq!(texts(&[tool(SPAWN)]), [HELPERS]);
    }
}
