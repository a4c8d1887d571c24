//! Finds the pairs that are nearest to a request.
//!
//! A request is compared with each wording by the share of words that both have (a weighted Jaccard index), and with
//! all words of the pair, those of its command included, by the share of the request's words among them: in this way
//! the other wordings serve as synonyms. The weight of a word is its rarity among the pairs
//! (`ln(1 + (N - n + 0.5) / (n + 0.5))`, as in BM25).
//!
//! The index is not stored: the first search of a process builds it from all wordings, in some 15 ms.

use super::super::examples::Example;
use super::words::{for_each_word, has_words, is_filler, stem, topic};
use super::{Pair, pairs};
use caro_shell::Target;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Least score of a pair that asks for nearly the same.
const MIN_ALIKE: f64 = 0.64;
/// Least score of a pair that asks for the same.
const MIN_SAME: f64 = 0.9;
/// Most pairs that [`alike`] returns.
const MAX_ALIKE: usize = 2;
/// Least score of a further pair, as a share of the best score.
const MIN_OF_BEST: f64 = 0.85;
/// The share of the nearest wording in the score; the words of the whole pair have the rest. Of 1, 0.6, 0.5 and 0.4
/// this most often finds the pair of a left-out wording among the first three
/// (`benches/records/2026-11-22-everyday.md`).
const WORDING_SHARE: f64 = 0.6;

/// A pair that shares a word with a request.
struct Found {
    /// 0 to 1.
    score: f64,
    wording: &'static str,
    command: &'static str,
}

impl Found {
    fn example(&self) -> Example {
        Example { request: self.wording.to_owned(), command: self.command.to_owned() }
    }
}

/// Returns the `k` pairs that are nearest to the request, the nearest first; fewer if fewer share a word with it.
///
/// Each has its command for `target`, and the wording that was nearest. No command comes twice.
pub fn nearest(request: &str, target: Target, k: usize) -> Vec<Example> {
    search(request, target, k).iter().map(Found::example).collect()
}

/// Returns at most two pairs that ask for nearly the same as the request, the nearest first; for most requests there
/// are none.
pub fn alike(request: &str, target: Target) -> Vec<Example> {
    let mut found = search(request, target, MAX_ALIKE);
    let least = found.first().map_or(MIN_ALIKE, |best| MIN_ALIKE.max(best.score * MIN_OF_BEST));
    found.retain(|pair| pair.score >= least);
    found.iter().map(Found::example).collect()
}

/// True if a pair asks for the same as the request, apart from filler words.
pub fn has(request: &str, target: Target) -> bool {
    search(request, target, 1).first().is_some_and(|pair| pair.score >= MIN_SAME)
}

/// Searches the index, which is not built for an empty request, as in `caro check`.
fn search(request: &str, target: Target, k: usize) -> Vec<Found> {
    if has_words(request) { Index::get().search(request, target, k) } else { Vec::new() }
}

/// The topic words of a request, for comparison with many texts.
pub(crate) struct Topic {
    words: Vec<String>,
    weight: f64,
}

impl Topic {
    pub fn of(text: &str) -> Self {
        Self::by(Index::get(), text)
    }

    fn by(index: &Index, text: &str) -> Self {
        let words = topic(text);
        Self { weight: index.weight(&words), words }
    }

    /// Returns how similar a text is, 0 to 1: the weight of the shared words divided by that of all words.
    pub fn likeness(&self, wording: &str) -> f64 {
        let (index, mut words) = (Index::get(), topic(wording));
        let whole = index.weight(&words);
        words.retain(|word| self.words.binary_search(word).is_ok());
        jaccard(index.weight(&words), self.weight, whole)
    }
}

/// The Jaccard index of two texts, from the weights of their shared words and of each text.
fn jaccard(both: f64, one: f64, other: f64) -> f64 {
    let either = one + other - both;
    if either > 0.0 { both / either } else { 0.0 }
}

/// An inverted index of the words of all pairs.
struct Index {
    pairs: &'static [Pair],
    /// Indices into `words`, by the stem of the word.
    ids: HashMap<String, usize>,
    words: Vec<Word>,
    wordings: Vec<Wording>,
}

/// The occurrences of a word.
#[derive(Default)]
struct Word {
    /// Indices into [`Index::wordings`], ascending.
    wordings: Vec<usize>,
    /// Indices of the pairs whose wordings or command contain the word, ascending.
    pairs: Vec<usize>,
}

struct Wording {
    text: &'static str,
    /// The index of its pair.
    pair: usize,
    /// The total weight of its words.
    weight: f64,
}

impl Index {
    fn get() -> &'static Self {
        static INDEX: OnceLock<Index> = OnceLock::new();
        INDEX.get_or_init(|| Self::of(pairs()))
    }

    fn of(pairs: &'static [Pair]) -> Self {
        let mut index = Self { pairs, ids: HashMap::new(), words: Vec::new(), wordings: Vec::new() };
        // each distinct word is stemmed only once
        let mut known: HashMap<String, (usize, bool)> = HashMap::new();
        let mut topics: Vec<Vec<usize>> = Vec::new();
        for (at, pair) in pairs.iter().enumerate() {
            for text in pair.wordings() {
                let mut words: Vec<(usize, bool)> = Vec::new();
                for_each_word(text, |word| words.push(index.id(word, &mut known)));
                let only_fillers = words.iter().all(|(_, is_filler)| *is_filler);
                words.retain(|(_, is_filler)| only_fillers || !is_filler);
                let mut ids: Vec<usize> = words.into_iter().map(|(id, _)| id).collect();
                ids.sort_unstable();
                ids.dedup();
                for &id in &ids {
                    index.words[id].wordings.push(index.wordings.len());
                    index.words[id].add_pair(at);
                }
                index.wordings.push(Wording { text, pair: at, weight: 0.0 });
                topics.push(ids);
            }
            for word in pair.cmd.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| w.len() > 1) {
                let (id, filler) = index.id(word, &mut known);
                if !filler {
                    index.words[id].add_pair(at);
                }
            }
        }
        for (at, ids) in topics.into_iter().enumerate() {
            index.wordings[at].weight = ids.into_iter().map(|id| index.rarity(Some(id))).sum();
        }
        index
    }

    /// Returns the `k` best pairs, each command once.
    fn search(&self, request: &str, target: Target, k: usize) -> Vec<Found> {
        let asked = Topic::by(self, request);
        let mut common = vec![0.0; self.wordings.len()];
        let mut covered = vec![0.0; self.pairs.len()];
        for &id in asked.words.iter().filter_map(|word| self.ids.get(word)) {
            let (rarity, word) = (self.rarity(Some(id)), &self.words[id]);
            word.wordings.iter().for_each(|at| common[*at] += rarity);
            word.pairs.iter().for_each(|at| covered[*at] += rarity);
        }
        // the nearest wording of each pair; its request, if only its command shares a word
        let mut nearest: Vec<(f64, &'static str)> = self.pairs.iter().map(|pair| (0.0, &*pair.request)).collect();
        for (wording, both) in std::iter::zip(&self.wordings, common).filter(|(_, both)| *both > 0.0) {
            let likeness = jaccard(both, asked.weight, wording.weight);
            let best = nearest[wording.pair];
            if (likeness, wording.text == request) > (best.0, best.1 == request) {
                nearest[wording.pair] = (likeness, wording.text);
            }
        }
        let mut found: Vec<Found> = std::iter::zip(self.pairs, std::iter::zip(nearest, covered))
            .filter(|(_, (_, covered))| *covered > 0.0)
            .filter_map(|(pair, ((likeness, wording), covered))| {
                let score = WORDING_SHARE * likeness + (1.0 - WORDING_SHARE) * covered / asked.weight;
                Some(Found { score, wording, command: pair.command(target)? })
            })
            .collect();
        // among equal scores, which differ only in names and numbers, the literal request comes first; the stable
        // sort keeps the order of the files among the others
        let near = |pair: &Found| (pair.score, pair.wording == request);
        found.sort_by(|a, b| near(b).partial_cmp(&near(a)).unwrap_or(Ordering::Equal));
        let mut best: Vec<Found> = Vec::new();
        for pair in found {
            if best.len() == k {
                break;
            }
            if !best.iter().any(|other| other.command == pair.command) {
                best.push(pair);
            }
        }
        best
    }

    fn weight(&self, words: &[String]) -> f64 {
        words.iter().map(|word| self.rarity(self.ids.get(word).copied())).sum()
    }

    /// Returns the index of a word, which is added if it is new, and whether it is a filler.
    fn id(&mut self, word: &str, known: &mut HashMap<String, (usize, bool)>) -> (usize, bool) {
        if let Some(id) = known.get(word) {
            return *id;
        }
        let stem = stem(word);
        let filler = is_filler(&stem);
        let id = *self.ids.entry(stem).or_insert(self.words.len());
        if id == self.words.len() {
            self.words.push(Word::default());
        }
        known.insert(word.to_owned(), (id, filler));
        (id, filler)
    }

    /// Returns the weight of a word: the fewer pairs contain it, the more. A word that no pair contains has half the
    /// weight, as it is mostly a name (`ping google`).
    fn rarity(&self, id: Option<usize>) -> f64 {
        let all = self.pairs.len() as f64;
        let rarity = |n: f64| (1.0 + (all - n + 0.5) / (n + 0.5)).ln();
        id.map_or_else(|| rarity(0.0) / 2.0, |id| rarity(self.words[id].pairs.len() as f64))
    }
}

impl Word {
    /// Adds a pair that contains the word; pairs have to come in ascending order.
    fn add_pair(&mut self, pair: usize) {
        if self.pairs.last() != Some(&pair) {
            self.pairs.push(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        Target::named(name).unwrap()
    }

    #[test]
    fn a_wording_of_the_library_finds_its_own_pair() {
        let gnu = target("linux-gnu");
        let (mut all, mut first) = (0, 0);
        for (pair, text) in Index::get().wordings.iter().map(|w| (&pairs()[w.pair], w.text)).step_by(7) {
            let Some(command) = pair.command(gnu) else { continue };
            let found = nearest(text, gnu, 3);
            assert!(found.iter().any(|e| e.command == command), "{text} finds {found:?}");
            all += 1;
            first += usize::from(found[0].command == command);
        }
        assert!(all >= 140 && first * 100 >= all * 97, "{first} of {all} found themselves first");
    }

    #[test]
    fn a_left_out_wording_finds_its_pair() {
        let gnu = target("linux-gnu");
        let mut found = [0, 0, 0];
        for at in (0..pairs().len()).step_by(if cfg!(debug_assertions) { 40 } else { 8 }) {
            let mut others = pairs().to_vec();
            let (Some(text), Some(command)) = (others[at].also.pop(), pairs()[at].command(gnu)) else { continue };
            let index = Index::of(others.leak());
            let best = index.search(&text, gnu, 3);
            found[0] += usize::from(best.first().is_some_and(|pair| pair.command == command));
            found[1] += usize::from(best.iter().any(|pair| pair.command == command));
            found[2] += 1;
        }
        println!("{} of {} first, {} among the first three", found[0], found[2], found[1]);
        assert!(found[0] * 100 > found[2] * 30 && found[1] * 100 > found[2] * 45);
    }

    #[test]
    fn other_wordings_with_other_names_find_the_right_command() {
        let gnu = target("linux-gnu");
        for (request, program) in [
            ("unpack release.tar.gz into /opt/tool", "tar -xzf"),
            ("which program is listening on port 3000", "ss -tlnp"),
            ("restart the postgresql service", "systemctl restart"),
            ("find duplicate lines in emails.txt", "uniq -d"),
            ("sum up column 3 of sales.csv", "awk -F,"),
            ("make deploy.sh executable", "chmod"),
        ] {
            let found = nearest(request, gnu, 4);
            assert!(found.iter().any(|e| e.command.contains(program)), "{request}: {found:?}");
        }
    }

    #[test]
    fn only_nearly_the_same_requests_are_alike() {
        let gnu = target("linux-gnu");
        for (request, command) in [
            ("show me the permission bits of deploy.sh in octal", "stat -c '%a' run.sh"),
            ("display the tree of processes", "ps -ef --forest"),
            ("join all lines of \"my list.txt\" with commas", "paste -sd, words.txt"),
        ] {
            let found = alike(request, gnu);
            assert!(found.len() <= MAX_ALIKE && found[0].command == command, "{request}: {found:?}");
        }
        for other in [
            "",
            "show",
            "hello, how are you",
            "words.txt notes.txt",
            "rename every second photo after the day on which it was taken",
            "zeige alle Prozesse",
        ] {
            assert_eq!(alike(other, gnu), [], "{other}");
        }
        let formats = alike("convert inventory.csv to tsv", gnu);
        assert!(!formats.is_empty() && formats.iter().all(|e| !e.command.contains("ffmpeg")), "{formats:?}");
    }

    #[test]
    fn requests_that_differ_in_fillers_are_the_same_and_small_talk_is_not() {
        let gnu = target("linux-gnu");
        for request in ["is nginx running?", "Whats hogging the CPU", "the tree of the processes"] {
            assert!(has(request, gnu), "{request}");
        }
        for line in include_str!("../../../tests/refusals.txt").lines() {
            assert!(!has(line, gnu), "{line}");
        }
    }

    #[test]
    fn each_target_gets_its_own_command() {
        let of = |name| nearest("size of data/medium.bin in bytes", target(name), 1)[0].command.clone();
        assert_eq!(of("linux-gnu"), "stat -c '%s' data/medium.bin");
        assert_eq!(of("macos-bsd"), "stat -f '%z' data/medium.bin");
        assert_eq!(of("freebsd"), of("macos-bsd"));
        assert_eq!(of("windows"), "(Get-Item data/medium.bin).Length");
        // a pair without a command for the target is not found
        assert!(nearest("loaded kernel modules", target("windows"), 9).iter().all(|e| !e.command.contains("lsmod")));
    }

    #[test]
    fn only_pairs_with_shared_words_are_found_and_at_most_k() {
        let gnu = target("linux-gnu");
        assert_eq!(nearest("zzyzx qwrtp", gnu, 5), []);
        assert_eq!(nearest("", gnu, 5), []);
        assert_eq!(nearest("list files", gnu, 0), []);
        let many = nearest("list all files in this folder", gnu, 7);
        assert_eq!(many.len(), 7);
        let mut commands: Vec<_> = many.iter().map(|e| &e.command).collect();
        commands.dedup();
        assert_eq!(commands.len(), 7);
    }
}
