//! Chooses which of many tools a model is shown for a task, and under which names. Ranks them by BM25 over names,
//! descriptions and argument names.

use super::observe::ARTIFACT_TOOLS;
use super::tool::{Provider, RESERVED, ToolSpec};
use caro_intent::orders_removal;
use caro_intent::tokens::{STOP, is_significant, words};
use std::collections::{BTreeMap, BTreeSet};

/// BM25 parameter k1: how quickly repeats of a word stop counting. Source: Robertson and Zaragoza, "The Probabilistic
/// Relevance Framework".
const K1: f64 = 1.5;
/// BM25 parameter b: how much a long document is penalised. Same source.
const B: f64 = 0.75;

/// Most tools in a prompt, including the tools for artifacts that may be added during the run. Models confuse more
/// tools than that.
pub const MOST: usize = 20;
/// Most characters of a tool's name; a longer name gets an alias.
const MAX_NAME: usize = 32;
/// Built-in tools that are shown only for a task that orders a removal.
const REMOVING_TOOLS: [&str; 2] = ["workspace_clear", "workspace_delete"];
/// Built-in tools by need: a model that has the first can do without the others.
const BY_NEED: [&str; 5] = ["shell", "read", "write", "list", "edit"];
/// Least number of words that a task and a tool must share: a single word such as `write` or `file` is in most tasks.
const MIN_SHARED_WORDS: usize = 2;

/// Scores every document for the query by BM25; a document without any of its words scores 0.
pub fn bm25(query: &str, documents: &[String]) -> Vec<f64> {
    let documents: Vec<Vec<String>> = documents.iter().map(|d| words(d)).collect();
    let mut query = words(query);
    // a number in a task does not say which tool it needs
    query.retain(|w| is_significant(w));
    query.sort_unstable();
    query.dedup();
    let count = documents.len() as f64;
    let average = documents.iter().map(Vec::len).sum::<usize>().max(1) as f64 / count.max(1.0);
    let mut inverse_frequency: BTreeMap<&str, f64> = BTreeMap::new();
    for word in &query {
        let containing = documents.iter().filter(|d| d.contains(word)).count() as f64;
        inverse_frequency.insert(word, ((count - containing + 0.5) / (containing + 0.5) + 1.0).ln());
    }
    let score = |document: &Vec<String>| {
        let length = document.len() as f64;
        query
            .iter()
            .map(|word| {
                let frequency = document.iter().filter(|w| *w == word).count() as f64;
                let weight = frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length / average));
                inverse_frequency.get(word.as_str()).copied().unwrap_or_default() * weight
            })
            .sum()
    };
    documents.iter().map(score).collect()
}

/// Returns the tools that the model is shown for a task: at most `limit`, and never more than [`MOST`] together with
/// those for artifacts; without any that another shown tool covers; with aliases for names that are hard to write.
pub fn view(task: &str, specs: &[ToolSpec], limit: usize) -> Vec<ToolSpec> {
    let limit = limit.min(MOST - ARTIFACT_TOOLS.len());
    let mut shown: Vec<ToolSpec> = Vec::new();
    for spec in choose(task, specs, usize::MAX) {
        // a covered tool is dropped whether it comes before or after the tool that covers it
        let covers = |one: &ToolSpec, other: &ToolSpec| one.covers.contains(&other.name);
        let before = shown.len();
        if shown.iter().any(|other| covers(other, &spec)) {
            continue;
        }
        shown.retain(|other| !covers(&spec, other));
        if shown.len() < before || before < limit {
            shown.push(spec);
        }
    }
    set_aliases(&mut shown);
    shown
}

/// Returns the indices of tools, the most needed first, for a prompt that has no room for all. The order: tools of the
/// provider that the task names, the shell, core tools that are not built in, built-in tools, all others.
pub fn by_need(task: &str, specs: &[ToolSpec]) -> Vec<usize> {
    let named = super::plan::named_provider(task, specs);
    let need = |at: &usize| match BY_NEED.iter().position(|name| *name == specs[*at].name) {
        _ if Some(&specs[*at].provider) == named => 0,
        Some(0) => 1,
        None if specs[*at].core => 2,
        Some(rank) => 2 + rank,
        None => usize::MAX,
    };
    let mut indices: Vec<usize> = (0..specs.len()).collect();
    indices.sort_by_key(need);
    indices
}

/// Sets an alias in `snake_case` where a name is long or has characters that models rarely write in a name.
fn set_aliases(specs: &mut [ToolSpec]) {
    let mut taken: BTreeSet<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    taken.extend(RESERVED.into_iter().chain(ARTIFACT_TOOLS.iter().copied()).map(str::to_owned));
    for spec in specs {
        let alias = snake_case(&spec.name);
        if alias != spec.name && !alias.is_empty() && taken.insert(alias.clone()) {
            spec.alias = Some(alias);
        }
    }
}

/// Returns a name in `snake_case`; if it is too long, only its last words.
fn snake_case(name: &str) -> String {
    let mut plain = String::new();
    let mut before = '_';
    for c in name.chars() {
        let starts = c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if starts || !c.is_ascii_alphanumeric() {
            plain.push('_');
        }
        if c.is_ascii_alphanumeric() {
            plain.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    let mut words: Vec<&str> = plain.split('_').filter(|word| !word.is_empty()).collect();
    while words.len() > 1 && words.iter().map(|word| word.len() + 1).sum::<usize>() > MAX_NAME + 1 {
        words.remove(0);
    }
    words.join("_")
}

/// True if a tool and a task share at least two telling words.
pub fn is_about(task: &str, spec: &ToolSpec) -> bool {
    let asked = words(task);
    let mut known = words(&spec.search_text());
    known.sort_unstable();
    known.dedup();
    shared(&asked, &known).count() >= MIN_SHARED_WORDS
}

/// The words of the second list that are in the first too, without stop words.
fn shared<'a>(asked: &'a [String], known: &'a [String]) -> impl Iterator<Item = &'a String> {
    known.iter().filter(|w| w.len() > 1 && !STOP.contains(&w.as_str()) && asked.contains(w))
}

/// True if a task has a word of a tool's name that is not in its server's name.
pub fn has_name_of(task: &str, spec: &ToolSpec) -> bool {
    let server = if let Provider::Mcp(server) = &spec.provider { words(server) } else { Vec::new() };
    shared(&words(task), &words(spec.shown())).any(|word| !server.contains(word))
}

/// Returns at most `limit` tools for a task: every core tool, then those of the server that it names, then the best
/// of the others that match it. The order is stable: core tools as given, the others by score, then by name.
fn choose(task: &str, specs: &[ToolSpec], limit: usize) -> Vec<ToolSpec> {
    let (core, others): (Vec<&ToolSpec>, Vec<&ToolSpec>) = specs.iter().partition(|s| s.core);
    let scores = bm25(task, &others.iter().map(|s| s.search_text()).collect::<Vec<_>>());
    // all tools of a server that the task names are wanted, whatever words they have
    let server = super::plan::named_provider(task, specs);
    let named = |spec: &ToolSpec| matches!(spec.provider, Provider::Mcp(_)) && Some(&spec.provider) == server;
    // a tool that deletes notes must not be offered for a task that writes one
    let allowed = |spec: &ToolSpec| !REMOVING_TOOLS.contains(&spec.name.as_str()) || orders_removal(task);
    let fits = |(score, spec): &(f64, &ToolSpec)| named(spec) || *score > 0.0 && allowed(spec) && is_about(task, spec);
    let mut ranked: Vec<(f64, &ToolSpec)> = scores.into_iter().zip(others).filter(fits).collect();
    let order = |a: &(f64, &ToolSpec), b: &(f64, &ToolSpec)| named(b.1).cmp(&named(a.1)).then(b.0.total_cmp(&a.0));
    ranked.sort_by(|a, b| order(a, b).then_with(|| a.1.name.cmp(&b.1.name)));
    core.into_iter().chain(ranked.into_iter().map(|(_, spec)| spec)).take(limit).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_matching_tool_is_found_among_many() {
        let tool = |name: &str, what: &str| ToolSpec::new(name, what, json!({}), &[]);
        let mut specs: Vec<ToolSpec> = (0..32).map(|i| tool(&format!("tool_{i}"), "does something else")).collect();
        specs.push(tool("convert_currency", "Converts an amount of money between currencies."));
        specs[3].core = true;
        let chosen = choose("convert 5 euros into another currency", &specs, 5);
        assert_eq!(chosen.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["tool_3", "convert_currency"]);
        assert_eq!(choose("xyz", &specs, 5).len(), 1);
    }

    #[test]
    fn a_deleting_tool_is_shown_only_for_a_removal() {
        let tool = |name: &str| ToolSpec::new(name, "about every note of the workspace.", json!({}), &[]);
        let specs = [tool("workspace_clear"), tool("workspace_write")];
        let shown = |task: &str| names(&choose(task, &specs, 1)).join(" ");
        assert_eq!(shown("save the list in a note of the workspace"), "workspace_write");
        assert_eq!(shown("delete every note of the workspace"), "workspace_clear");
    }

    #[test]
    fn the_tools_of_a_named_server_are_shown() {
        let tool = |name: &str, server: &str| ToolSpec {
            provider: Provider::Mcp(server.into()),
            ..ToolSpec::new(name, "does.", json!({}), &[])
        };
        let mut specs = vec![spec("shell"), tool("read_plan", "other"), tool("fetch", "wiki"), tool("edit", "wiki")];
        specs.push(ToolSpec::new("plan", "shows the plan.", json!({}), &[]));
        let shown =
            |task: &str, limit| names(&view(task, &specs, limit)).into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(shown("show the plan", 9), ["shell", "plan"]);
        assert_eq!(shown("show the plan with the wiki server", 9), ["shell", "edit", "fetch", "plan"]);
        assert_eq!(shown("show the plan with the wiki server", 3), ["shell", "edit", "fetch"]);
    }

    fn spec(name: &str) -> ToolSpec {
        ToolSpec { core: true, ..ToolSpec::new(name, "does it.", json!({}), &[]) }
    }

    fn names(specs: &[ToolSpec]) -> Vec<&str> {
        specs.iter().map(ToolSpec::shown).collect()
    }

    #[test]
    fn the_number_of_tools_is_limited() {
        let many: Vec<ToolSpec> = (0..40).map(|i| spec(&format!("tool_{i}"))).collect();
        for (limit, expected) in [(0, 0), (6, 6), (16, 16), (17, 16), (500, 16)] {
            assert_eq!(view("x", &many, limit).len(), expected);
        }
        assert_eq!(16 + ARTIFACT_TOOLS.len(), MOST);
    }

    #[test]
    fn the_most_needed_tools_come_first() {
        let of = |name: &str, provider: Provider| ToolSpec { provider, ..spec(name) };
        let fetch = ToolSpec { core: false, ..of("fetch", Provider::Mcp("wiki".into())) };
        let search = ToolSpec { core: false, ..spec("search") };
        let ours = ["edit", "list", "read", "shell", "write"].map(spec);
        let specs: Vec<ToolSpec> =
            ours.into_iter().chain([of("run_script", Provider::Skill("x".into())), search, fetch]).collect();
        let order = |task: &str| by_need(task, &specs).into_iter().map(|at| specs[at].shown()).collect::<Vec<_>>();
        assert_eq!(
            order("count the files"),
            ["shell", "run_script", "read", "write", "list", "edit", "search", "fetch"]
        );
        assert_eq!(order("show the plan with the wiki server")[..3], ["fetch", "shell", "run_script"]);
    }

    #[test]
    fn a_covered_tool_is_hidden_and_takes_no_place() {
        let (mut high, low) = (spec("replace"), spec("insert"));
        high.covers = vec!["insert".into()];
        assert_eq!(names(&view("x", &[high.clone(), low.clone(), spec("view")], 2)), ["replace", "view"]);
        assert_eq!(names(&view("x", &[low.clone(), high.clone(), spec("view")], 2)), ["replace", "view"]);
        assert_eq!(names(&view("x", &[low.clone(), high.clone()], 1)), ["replace"]);
        // a tool that is not shown covers nothing
        high.core = false;
        assert_eq!(names(&view("x", &[high, low, spec("view")], 3)), ["insert", "view"]);
    }

    #[test]
    fn unusual_names_get_an_alias() {
        let shown = |all: &[&str]| {
            let specs: Vec<ToolSpec> = all.iter().map(|name| spec(name)).collect();
            view("x", &specs, 16).iter().map(|spec| spec.shown().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&["read", "read_text_file", "web2"]), ["read", "read_text_file", "web2"]);
        assert_eq!(shown(&["getForecast", "HTTPGet", "fetch-page.v2"]), ["get_forecast", "httpget", "fetch_page_v2"]);
        let long = "com.example.platform.server.files-and-folders.read_lines";
        assert_eq!(shown(&[long]), ["files_and_folders_read_lines"]);
        // an alias is never the name of another tool or of a final action
        let others = ["read", "Read", "Answer", "read-artifact", "a-b", "a.b"];
        assert_eq!(shown(&others), ["read", "Read", "Answer", "read-artifact", "a_b", "a.b"]);
    }
}
