//! Selects the option lines that matter: for a request in plain words, and for a flag that does not exist.

use super::{Entry, Known, OptionEntry};
use std::collections::{HashMap, HashSet};

/// Words too common to be significant.
const STOP: &[&str] = &[
    "the", "a", "an", "of", "in", "on", "to", "and", "or", "for", "with", "by", "is", "are", "be", "it", "this",
    "that", "all", "my", "me", "show", "list", "print", "display", "get", "give", "how", "what", "which", "please",
    "from", "do", "not", "use", "as", "at", "if", "file", "files", "option", "options", "output", "command",
];

/// Returns at most `limit` option lines that matter for a request, best first: the nearest to each used flag that
/// does not exist, then the used ones, then those whose text shares the rarest words with the request.
pub fn relevant(entry: &Entry, request_words: &[&str], flags_used: &[&str], limit: usize) -> Vec<OptionEntry> {
    let mut picked: Vec<&OptionEntry> = Vec::new();
    for flag in flags_used.iter().filter(|flag| entry.knows(flag) != Known::Yes) {
        picked.extend(entry.nearest(flag, 2));
    }
    picked.extend(flags_used.iter().flat_map(|flag| entry.read_word(0, flag)).filter_map(|u| u.option));
    picked.extend(rank(entry, request_words));
    let mut seen = HashSet::new();
    picked.retain(|option| seen.insert(std::ptr::from_ref(*option)));
    picked.into_iter().take(limit).cloned().collect()
}

/// Returns the options whose text shares words with the request, best first.
fn rank<'e>(entry: &'e Entry, request_words: &[&str]) -> Vec<&'e OptionEntry> {
    let wanted: HashSet<String> =
        request_words.iter().flat_map(|w| words(w)).filter(|w| !STOP.contains(&w.as_str())).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let texts: Vec<HashSet<String>> = entry
        .options
        .iter()
        .map(|o| {
            o.names().chain([o.text.as_str(), o.argument.as_deref().unwrap_or_default()]).flat_map(words).collect()
        })
        .collect();
    let mut common: HashMap<&str, usize> = HashMap::new();
    for word in texts.iter().flatten() {
        *common.entry(word.as_str()).or_default() += 1;
    }
    let rarity = |word: &str| {
        let n = common.get(word).copied().unwrap_or(0);
        (1.0 + entry.options.len() as f64 / (1.0 + n as f64)).ln()
    };
    let mut scored: Vec<(f64, usize)> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| {
            let named: HashSet<String> = entry.options[at].long.iter().flat_map(|long| words(long)).collect();
            let score: f64 = wanted
                .iter()
                .filter(|word| text.contains(*word))
                .map(|word| rarity(word) * if named.contains(word) { 1.5 } else { 1.0 })
                .sum();
            // a long text contains any word more easily
            (score / (1.0 + text.len() as f64 / 40.0), at)
        })
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().map(|(_, at)| &entry.options[at]).collect()
}

/// Returns the words of a text, in lower case and without common endings.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 1).map(|w| stem(&w.to_lowercase())).collect()
}

/// Strips plural and verb endings, enough to make "sorted", "sorting" and "sorts" equal.
fn stem(word: &str) -> String {
    for ending in ["ing", "ed", "es", "s"] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() >= 3
            && !(ending == "s" && stem.ends_with('s'))
        {
            return stem.trim_end_matches('e').to_string();
        }
    }
    word.trim_end_matches('e').to_string()
}

impl Entry {
    /// Returns at most `limit` options whose names are nearest to a flag that does not exist, best first; none if
    /// none is near.
    pub fn nearest(&self, flag: &str, limit: usize) -> Vec<&OptionEntry> {
        let flag = flag.split('=').next().unwrap_or(flag);
        let wanted = flag.trim_start_matches('-').to_ascii_lowercase();
        if wanted.len() < 2 || wanted.len() > 64 {
            return Vec::new();
        }
        let mut scored: Vec<(usize, usize)> = Vec::new();
        for (at, option) in self.options.iter().enumerate() {
            let best = option
                .names()
                .map(|name| name.trim_start_matches('-').to_ascii_lowercase())
                .filter(|name| name.len() >= 2 && name.len() <= 64)
                .filter_map(|name| distance(&wanted, &name))
                .min();
            scored.extend(best.map(|cost| (cost, at)));
        }
        scored.sort_unstable();
        scored.into_iter().take(limit).map(|(_, at)| &self.options[at]).collect()
    }
}

/// Returns the distance of two names; `None` if it is too great.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    if wanted == name {
        return Some(0);
    }
    let parts = |s: &str| s.split(['-', '_']).filter(|p| p.len() > 2).map(str::to_string).collect::<HashSet<_>>();
    let edit_distance = strsim::osa_distance(wanted, name);
    if edit_distance <= 1 + wanted.len().min(name.len()) / 4 {
        return Some(edit_distance);
    }
    let inside = name.len() > 2 && wanted.starts_with(name) || wanted.len() > 2 && name.starts_with(wanted);
    let shared = parts(wanted).intersection(&parts(name)).count();
    (inside || shared > 0).then(|| 10 + edit_distance - shared.min(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ps() -> Entry {
        let option = |long: &str, text: &str| OptionEntry {
            long: Some(long.into()),
            text: text.into(),
            ..OptionEntry::default()
        };
        Entry {
            command: "ps".into(),
            complete: true,
            options: vec![
                option("--sort", "specify sorting order"),
                option("--forest", "ASCII art process tree"),
                option("--no-headers", "print no header line at all"),
                option("--user", "select by effective user ID or name"),
                option("--pid", "select by process ID"),
            ],
            ..Entry::default()
        }
    }

    fn names(options: &[OptionEntry]) -> Vec<&str> {
        options.iter().filter_map(|o| o.long.as_deref()).collect()
    }

    #[test]
    fn the_request_selects_lines() {
        assert_eq!(names(&relevant(&ps(), &["show processes sorted by memory"], &[], 1)), ["--sort"]);
        assert_eq!(names(&relevant(&ps(), &["without", "headers"], &[], 1)), ["--no-headers"]);
        assert_eq!(names(&relevant(&ps(), &["tree"], &["--pid"], 8)), ["--pid", "--forest"]);
        assert!(relevant(&ps(), &[], &[], 8).is_empty());
    }

    #[test]
    fn neighbours_of_an_unknown_flag_come_first() {
        for (flag, near) in
            [("--sorted", "--sort"), ("--sort-by=mem", "--sort"), ("--usr", "--user"), ("--no-header", "--no-headers")]
        {
            assert_eq!(names(&relevant(&ps(), &[], &[flag], 1)), [near], "{flag}");
        }
        assert!(ps().nearest("--xyzzy", 3).is_empty());
    }
}
