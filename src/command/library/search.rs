//! The pairs that are nearest to a request.
//!
//! A request is compared with each wording by the words they share of all that either has (a weighted Jaccard index), and with
//! all the words of the pair, its command's too, by how many of the request's are among them: so the wordings of a pair
//! stand in for the synonyms that a word by itself does not have. A word weighs as much as it is rare among the pairs
//! (`ln(1 + (N - n + 0.5) / (n + 0.5))`, the weight of BM25).
//!
//! Nothing is indexed beforehand: the first search of a process reads all wordings, in some 15 ms.

use super::super::examples::Example;
use super::words::{is_filler, raw, says_something, stem, topic};
use super::{Pair, pairs};
use caro_shell::Target;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::OnceLock;

/// From this score on a pair asks for nearly the same.
const ALIKE: f64 = 0.64;
/// From this score on it asks for the same.
const SAME: f64 = 0.9;
/// The most pairs that are shown for being alike.
const MOST_ALIKE: usize = 2;
/// A further one is shown if it is nearly as good as the best.
const AS_GOOD: f64 = 0.85;
/// How much the nearest wording counts; the words of the whole pair have the rest. Of 1, 0.6, 0.5 and 0.4 this has a wording's
/// pair among the first three most often, when it is looked for by the pair's other wordings
/// (`benches/records/2026-11-22-everyday.md`).
const NEAREST: f64 = 0.6;

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

/// The `k` pairs that are nearest to the request, the nearest first; fewer if fewer share a word with it.
///
/// Each gives its command for `target`, and the wording that was nearest. No command comes twice.
pub fn nearest(request: &str, target: Target, k: usize) -> Vec<Example> {
    found(request, target, k).iter().map(Found::example).collect()
}

/// The pairs that ask for nearly the same as the request, the nearest first, two at most; mostly there are none.
pub fn alike(request: &str, target: Target) -> Vec<Example> {
    let mut found = found(request, target, MOST_ALIKE);
    let least = found.first().map_or(ALIKE, |best| ALIKE.max(best.score * AS_GOOD));
    found.retain(|pair| pair.score >= least);
    found.iter().map(Found::example).collect()
}

/// True if a pair asks for the very same as the request, a filler more or less.
pub fn has(request: &str, target: Target) -> bool {
    found(request, target, 1).first().is_some_and(|pair| pair.score >= SAME)
}

/// The nearest pairs. Where nothing is asked, as by `caro check`, no index is made for it.
fn found(request: &str, target: Target, k: usize) -> Vec<Found> {
    if says_something(request) { Index::get().search(request, target, k) } else { Vec::new() }
}

/// What a request asks for, to be compared with many.
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

    /// How nearly a text asks for the same, 0 to 1: what both say of all that either says, each word weighing as much as it is
    /// rare.
    pub fn likeness(&self, wording: &str) -> f64 {
        let (index, mut words) = (Index::get(), topic(wording));
        let whole = index.weight(&words);
        words.retain(|word| self.words.binary_search(word).is_ok());
        share(index.weight(&words), self.weight, whole)
    }
}

/// What two texts have in common, of what either has.
fn share(both: f64, one: f64, other: f64) -> f64 {
    let either = one + other - both;
    if either > 0.0 { both / either } else { 0.0 }
}

/// The words of all pairs.
struct Index {
    pairs: &'static [Pair],
    /// Places in `words`, by words as they are compared.
    ids: HashMap<String, usize>,
    words: Vec<Word>,
    wordings: Vec<Wording>,
}

/// Where a word is.
#[derive(Default)]
struct Word {
    /// Places in [`Index::wordings`], rising.
    wordings: Vec<usize>,
    /// The pairs of these, and those whose command has it, rising.
    pairs: Vec<usize>,
}

struct Wording {
    text: &'static str,
    /// The place of its pair.
    pair: usize,
    /// What its words weigh together.
    weight: f64,
}

impl Index {
    fn get() -> &'static Self {
        static INDEX: OnceLock<Index> = OnceLock::new();
        INDEX.get_or_init(|| Self::of(pairs()))
    }

    fn of(pairs: &'static [Pair]) -> Self {
        let mut index = Self { pairs, ids: HashMap::new(), words: Vec::new(), wordings: Vec::new() };
        // the same few thousand words come again and again, and their endings are cut once
        let mut known: HashMap<String, (usize, bool)> = HashMap::new();
        let mut topics: Vec<Vec<usize>> = Vec::new();
        for (at, pair) in pairs.iter().enumerate() {
            for text in pair.wordings() {
                let mut said: Vec<(usize, bool)> = Vec::new();
                raw(text, |word| said.push(index.id(word, &mut known)));
                let tells = said.iter().any(|(_, filler)| !filler);
                let mut ids: Vec<usize> = said.into_iter().filter(|(_, f)| !(tells && *f)).map(|(id, _)| id).collect();
                ids.sort_unstable();
                ids.dedup();
                for &id in &ids {
                    index.words[id].wordings.push(index.wordings.len());
                    index.words[id].is_in(at);
                }
                index.wordings.push(Wording { text, pair: at, weight: 0.0 });
                topics.push(ids);
            }
            for word in pair.cmd.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| w.len() > 1) {
                let (id, filler) = index.id(word, &mut known);
                if !filler {
                    index.words[id].is_in(at);
                }
            }
        }
        for (at, ids) in topics.into_iter().enumerate() {
            index.wordings[at].weight = ids.into_iter().map(|id| index.rarity(Some(id))).sum();
        }
        index
    }

    /// The `k` best pairs, each command once.
    fn search(&self, request: &str, target: Target, k: usize) -> Vec<Found> {
        let asked = Topic::by(self, request);
        let mut common = vec![0.0; self.wordings.len()];
        let mut covered = vec![0.0; self.pairs.len()];
        for &id in asked.words.iter().filter_map(|word| self.ids.get(word)) {
            let (rarity, word) = (self.rarity(Some(id)), &self.words[id]);
            word.wordings.iter().for_each(|at| common[*at] += rarity);
            word.pairs.iter().for_each(|at| covered[*at] += rarity);
        }
        // the nearest wording of each pair; the first one where no wording, but its command has a word
        let mut nearest: Vec<(f64, &'static str)> = self.pairs.iter().map(|pair| (0.0, &*pair.request)).collect();
        for (wording, both) in std::iter::zip(&self.wordings, common).filter(|(_, both)| *both > 0.0) {
            let likeness = share(both, asked.weight, wording.weight);
            let best = nearest[wording.pair];
            if (likeness, wording.text == request) > (best.0, best.1 == request) {
                nearest[wording.pair] = (likeness, wording.text);
            }
        }
        let mut found: Vec<Found> = std::iter::zip(self.pairs, std::iter::zip(nearest, covered))
            .filter(|(_, (_, covered))| *covered > 0.0)
            .filter_map(|(pair, ((likeness, wording), covered))| {
                let score = NEAREST * likeness + (1.0 - NEAREST) * covered / asked.weight;
                Some(Found { score, wording, command: pair.command(target)? })
            })
            .collect();
        // of several that differ only in names and numbers, that which was asked for in the very words; else, for the sort is
        // stable, the order of the files
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

    /// The place of a word, and whether it is a filler.
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

    /// How much a word tells: what few pairs have tells more. What none has is a name mostly (`ping google`), which says what
    /// something is done to.
    fn rarity(&self, id: Option<usize>) -> f64 {
        let all = self.pairs.len() as f64;
        let rarity = |n: f64| (1.0 + (all - n + 0.5) / (n + 0.5)).ln();
        id.map_or_else(|| rarity(0.0) / 2.0, |id| rarity(self.words[id].pairs.len() as f64))
    }
}

impl Word {
    /// Notes a pair that has it; pairs come in their order.
    fn is_in(&mut self, pair: usize) {
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
    fn a_wording_that_is_not_there_finds_its_pair() {
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
    fn other_words_and_other_names_find_the_pattern() {
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
    fn what_asks_for_nearly_the_same_is_alike_and_little_is() {
        let gnu = target("linux-gnu");
        for (request, command) in [
            ("show me the permission bits of deploy.sh in octal", "stat -c '%a' run.sh"),
            ("display the tree of processes", "ps -ef --forest"),
            ("join all lines of \"my list.txt\" with commas", "paste -sd, words.txt"),
        ] {
            let found = alike(request, gnu);
            assert!(found.len() <= MOST_ALIKE && found[0].command == command, "{request}: {found:?}");
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
    fn what_a_pair_asks_for_in_other_fillers_is_the_same_and_no_small_talk_is() {
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
        // where there is none, another pair is found
        assert!(nearest("loaded kernel modules", target("windows"), 9).iter().all(|e| !e.command.contains("lsmod")));
    }

    #[test]
    fn nothing_in_common_finds_nothing_and_no_more_than_asked_for() {
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
