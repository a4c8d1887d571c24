//! Which of many tools fit a task: BM25 over names, descriptions and argument names.

use super::tool::ToolSpec;
use std::collections::BTreeMap;

/// How fast more of the same word counts less. Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework".
const K1: f64 = 1.5;
/// How much a long text is held against it.
const B: f64 = 0.75;

/// Words that say nothing about what a text is about.
const STOP: &[&str] = &[
    "and", "are", "for", "from", "how", "into", "its", "of", "the", "them", "then", "this", "that", "to", "what",
    "with", "in", "is", "it", "on", "or", "by", "an", "at", "be", "me", "my",
];

/// So many words must be shared: one alone (`write`, `file`) is in every task.
const SHARED: usize = 2;

/// The words of a text, in lower case; `snake_case` and `camelCase` are split, plurals lose their `s`.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before_lower = false;
    for c in text.chars() {
        let starts = c.is_uppercase() && before_lower;
        if (!c.is_alphanumeric() || starts) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before_lower = c.is_lowercase() || c.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    for word in &mut words {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
    }
    words
}

/// True for a word that says something about what a text is about.
pub fn tells(word: &str) -> bool {
    word.chars().count() > 1 && !word.chars().all(char::is_numeric) && !STOP.contains(&word)
}

/// Scores every document for the query; a document without any of its words scores 0.
pub fn bm25(query: &str, documents: &[String]) -> Vec<f64> {
    let documents: Vec<Vec<String>> = documents.iter().map(|d| words(d)).collect();
    let mut query = words(query);
    // a number in a task says nothing about which tool it takes
    query.retain(|w| tells(w));
    query.sort_unstable();
    query.dedup();
    let count = documents.len() as f64;
    let average = documents.iter().map(Vec::len).sum::<usize>().max(1) as f64 / count.max(1.0);
    let mut holding: BTreeMap<&str, f64> = BTreeMap::new();
    for word in &query {
        let holders = documents.iter().filter(|d| d.contains(word)).count() as f64;
        holding.insert(word, ((count - holders + 0.5) / (holders + 0.5) + 1.0).ln());
    }
    let score = |document: &Vec<String>| {
        let length = document.len() as f64;
        query
            .iter()
            .map(|word| {
                let frequency = document.iter().filter(|w| *w == word).count() as f64;
                let weight = frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length / average));
                holding.get(word.as_str()).copied().unwrap_or_default() * weight
            })
            .sum()
    };
    documents.iter().map(score).collect()
}

/// The tools to show for a task: every core tool, then the best of the others that fit it at all, `limit` in all. The order
/// is stable: core tools as given, then by score, then by name.
pub fn choose(task: &str, specs: &[ToolSpec], limit: usize) -> Vec<ToolSpec> {
    let (core, others): (Vec<&ToolSpec>, Vec<&ToolSpec>) = specs.iter().partition(|s| s.core);
    let scores = bm25(task, &others.iter().map(|s| s.search_text()).collect::<Vec<_>>());
    let asked = words(task);
    let shared = |spec: &ToolSpec| {
        let mut known = words(&spec.search_text());
        known.sort_unstable();
        known.dedup();
        known.iter().filter(|w| w.len() > 1 && !STOP.contains(&w.as_str()) && asked.contains(w)).count()
    };
    let fits = |(score, spec): &(f64, &ToolSpec)| *score > 0.0 && shared(spec) >= SHARED;
    let mut ranked: Vec<(f64, &ToolSpec)> = scores.into_iter().zip(others).filter(fits).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
    core.into_iter().chain(ranked.into_iter().map(|(_, spec)| spec)).take(limit).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("read_file listDirs HTTP2 naïve's"), ["read", "file", "list", "dir", "http2", "naïve", "s"]);
        assert_eq!(words("  "), [""; 0]);
    }

    #[test]
    fn the_tool_that_fits_is_found_among_many() {
        let tool = |name: &str, what: &str| ToolSpec::new(name, what, json!({}), &[]);
        let mut specs: Vec<ToolSpec> = (0..32).map(|i| tool(&format!("tool_{i}"), "does something else")).collect();
        specs.push(tool("convert_currency", "Converts an amount of money between currencies."));
        specs[3].core = true;
        let chosen = choose("convert 5 euros into another currency", &specs, 5);
        assert_eq!(chosen.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["tool_3", "convert_currency"]);
        assert_eq!(choose("xyz", &specs, 5).len(), 1);
    }
}
