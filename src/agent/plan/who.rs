//! Finds the provider that a part of a task names: an MCP server, or subagents. No command can do such a part.

use crate::tool::{Provider, ToolSpec};

/// Words which, near the name of a server, show that the server is meant.
const SERVER_WORDS: [&str; 5] = ["server", "servers", "tool", "tools", "mcp"];
/// Largest distance of these words from the name, in words. `the time of the web server` does not name a server `time`.
const MAX_DISTANCE: usize = 3;
/// Words which, directly before a server's name, show the same.
const DIRECT_WORDS: [&str; 3] = ["ask", "through", "via"];

/// Words for subagents.
const HELPERS: [&str; 4] = ["helper", "helpers", "subagent", "subagents"];

/// Returns the provider among those of `tools` that a task or a part of it names: a server named as such (`with the
/// tracker server`, `use the tool of wiki`, `ask the archive`) or by a tool whose name is an identifier (`with
/// get_current_time`), or subagents.
pub fn named_provider<'a>(part: &str, tools: impl IntoIterator<Item = &'a ToolSpec>) -> Option<&'a Provider> {
    let words = words(part);
    let names_server = |server: &str| {
        let name = self::words(server);
        let mut places = words.windows(name.len().max(1)).enumerate().filter(|(_, place)| *place == name);
        places.any(|(at, _)| {
            let around = &words[at.saturating_sub(MAX_DISTANCE)..(at + name.len() + MAX_DISTANCE).min(words.len())];
            let before = words[..at].iter().rev().find(|word| *word != "the");
            around.iter().any(|word| SERVER_WORDS.contains(&word.as_str()))
                || before.is_some_and(|word| DIRECT_WORDS.contains(&word.as_str()))
        })
    };
    let names_tool = |tool: &ToolSpec| {
        let is_named = |name: &str| {
            let is_identifier = name.contains(['_', '.', '-']) || name.chars().skip(1).any(char::is_uppercase);
            is_identifier && tokens(part).any(|token| token.eq_ignore_ascii_case(name))
        };
        is_named(&tool.name) || is_named(tool.shown())
    };
    let wanted = |tool: &&ToolSpec| match &tool.provider {
        Provider::Mcp(server) => names_server(server) || names_tool(tool),
        Provider::Subagent => words.iter().any(|word| HELPERS.contains(&word.as_str())),
        _ => false,
    };
    tools.into_iter().find(wanted).map(|tool| &tool.provider)
}

/// Splits a text or a name into words in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Splits a text at whitespace and trims punctuation, so that identifiers stay whole.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools() -> Vec<ToolSpec> {
        let tool = |name: &str, provider| ToolSpec { provider, ..ToolSpec::new(name, "does.", json!({}), &[]) };
        let mut long = tool("getForecast-v2", Provider::Mcp("weather".into()));
        long.alias = Some("get_forecast_v2".into());
        vec![
            tool("read_all", Provider::Builtin),
            tool("find", Provider::Mcp("Archive".into())),
            tool("my-notes.read", Provider::Mcp("my-notes".into())),
            long,
        ]
    }

    #[test]
    fn a_part_names_a_server_only_if_it_calls_it_one() {
        for (part, want) in [
            ("list the plans with the tool of the archive server", Some("Archive")),
            ("use the MCP server `archive`: find plans", Some("Archive")),
            ("ask the archive for plans.txt", Some("Archive")),
            ("find plans via Archive", Some("Archive")),
            ("show the page with the my-notes server", Some("my-notes")),
            ("show the page with the my notes tool", Some("my-notes")),
            ("what does getForecast-v2 say about Oslo?", Some("weather")),
            ("use get_forecast_v2 for Oslo", Some("weather")),
            ("call my-notes.read", Some("my-notes")),
            // a folder, a plain word, a built-in tool
            ("list the files of the archive", None),
            ("find the tools in the shed", None),
            ("ask who looks after the archive", None),
            ("show the archive of the old web server", None),
            ("use read_all", None),
            ("find all logs", None),
            ("", None),
        ] {
            let tools = tools();
            let found = named_provider(part, &tools).map(|provider| match provider {
                Provider::Mcp(name) => name.as_str(),
                other => panic!("{other:?}"),
            });
            assert_eq!(found, want, "{part}");
        }
        assert_eq!(named_provider("ask the archive server", &[]), None);
    }

    #[test]
    fn helpers_name_subagents_if_there_are_any() {
        let mut tools = tools();
        let asks = "have two helpers count the errors in each log";
        assert_eq!(named_provider(asks, &tools), None);
        tools.push(ToolSpec { provider: Provider::Subagent, ..ToolSpec::new("spawn", "does.", json!({}), &[]) });
        assert_eq!(named_provider(asks, &tools), Some(&Provider::Subagent));
        assert_eq!(named_provider("help me count the errors", &tools), None);
    }
}
