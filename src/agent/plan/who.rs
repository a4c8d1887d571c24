//! The parts that say who is to do them: a server of tools, or helpers. No command does what these do.

use crate::tool::{Provider, ToolSpec};

/// Words for what has tools: with the name of a server they say that it is one.
const AS_ONE: [&str; 5] = ["server", "servers", "tool", "tools", "mcp"];
/// How many words from the name: `the time of the web server` is no server `time`.
const NEAR: usize = 3;
/// Words right before a server's name that say the same by themselves.
const ASKED: [&str; 3] = ["ask", "through", "via"];

/// Words for runs that work for this one.
const HELPERS: [&str; 4] = ["helper", "helpers", "subagent", "subagents"];

/// Whose tools a task or a part of it wants, if these are the tools that there are: a server's that it names as one (`with
/// the tracker server`, `use the tool of wiki`, `ask the archive`) or by a tool whose name is no word (`with
/// get_current_time`); or helpers.
pub fn who<'a>(part: &str, tools: impl IntoIterator<Item = &'a ToolSpec>) -> Option<&'a Provider> {
    let words = words(part);
    let named = |server: &str| {
        let name = self::words(server);
        let mut places = words.windows(name.len().max(1)).enumerate().filter(|(_, place)| *place == name);
        places.any(|(at, _)| {
            let around = &words[at.saturating_sub(NEAR)..(at + name.len() + NEAR).min(words.len())];
            let before = words[..at].iter().rev().find(|word| *word != "the");
            around.iter().any(|word| AS_ONE.contains(&word.as_str()))
                || before.is_some_and(|word| ASKED.contains(&word.as_str()))
        })
    };
    let called = |tool: &ToolSpec| {
        let is = |name: &str| {
            let no_word = name.contains(['_', '.', '-']) || name.chars().skip(1).any(char::is_uppercase);
            no_word && tokens(part).any(|token| token.eq_ignore_ascii_case(name))
        };
        is(&tool.name) || is(tool.shown())
    };
    let wanted = |tool: &&ToolSpec| match &tool.provider {
        Provider::Mcp(server) => named(server) || called(tool),
        Provider::Subagent => words.iter().any(|word| HELPERS.contains(&word.as_str())),
        _ => false,
    };
    tools.into_iter().find(wanted).map(|tool| &tool.provider)
}

/// The words of a text in lower case; a name of several is several.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// What a name could be: what stands between spaces, without what is around it.
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
    fn a_part_is_for_the_server_that_it_names_as_one() {
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
            // a folder, a word, a tool that is nobody's server's
            ("list the files of the archive", None),
            ("find the tools in the shed", None),
            ("ask who looks after the archive", None),
            ("show the archive of the old web server", None),
            ("use read_all", None),
            ("find all logs", None),
            ("", None),
        ] {
            let tools = tools();
            let named = who(part, &tools).map(|provider| match provider {
                Provider::Mcp(name) => name.as_str(),
                other => panic!("{other:?}"),
            });
            assert_eq!(named, want, "{part}");
        }
        assert_eq!(who("ask the archive server", &[]), None);
    }

    #[test]
    fn who_wants_helpers_has_them_if_there_are_any() {
        let mut tools = tools();
        let asks = "have two helpers count the errors in each log";
        assert_eq!(who(asks, &tools), None);
        tools.push(ToolSpec { provider: Provider::Subagent, ..ToolSpec::new("spawn", "does.", json!({}), &[]) });
        assert_eq!(who(asks, &tools), Some(&Provider::Subagent));
        assert_eq!(who("help me count the errors", &tools), None);
    }
}
