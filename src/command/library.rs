//! The example library of `platform-rules/library/`: requests with the command for each system, and the search for those
//! nearest to a request.
//!
//! # The files
//! One file a topic, `[[pair]]` after `[[pair]]`. Read here: `request` and `also` (other wordings of it); `cmd`, for GNU on
//! Linux; `macos`, `freebsd`, `busybox`, `powershell`, the command there. Where `macos` or `busybox` is not said it is as
//! `cmd`, where `freebsd` is not said it is as `macos`, and empty means that there is none; where `powershell` is not
//! said there is none. The rest says how `tests/library.rs` judges the pair in a fixture tree, `tests/library/fixture.sh`:
//! `risk`, its safety verdict if that is not `safe`; `run = "no: why"`, not executed; `root`, runs only as root; `dir`, where
//! below `work`;
//! `before`, a line run first; `code`, its exit status if not 0; `out`, what it prints; `lines`, the same in any
//! order; `like`, a regular expression for all of it; `then`, a line of bash that must succeed afterwards.
//!
//! # The search
//! BM25 (Robertson and Zaragoza, 2009) over the words of the wordings. A word is lower-cased, stripped of numbers and of
//! its English plural or verb ending; it has no synonyms. Nothing is indexed beforehand:
//! the pairs are read in 0.8 ms, once, and searched in 0.6 ms.

use super::examples::Example;
use crate::shell::{Os, Target, Userland};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// How soon a word that is repeated stops adding to the score; the usual value.
const K1: f64 = 1.2;
/// How much a long wording is held back; the usual value.
const B: f64 = 0.75;

/// From this likeness on a pair asks for nearly the same.
pub(super) const ALIKE: f64 = 0.45;
/// The most pairs that are shown for being alike.
const MOST_ALIKE: usize = 2;
/// The best of the search that are compared closely.
const LOOKED_AT: usize = 40;
/// Ends of names that say what is done as much as the words do: a table of JSON is read by another program than one of CSV.
const FORMATS: [&str; 33] = [
    "7z", "avi", "bz2", "csv", "flac", "gif", "gz", "html", "ini", "jpeg", "jpg", "json", "jsonl", "mkv", "mov", "mp3",
    "mp4", "pdf", "png", "rar", "sql", "svg", "tar", "tgz", "toml", "tsv", "wav", "webp", "xml", "xz", "yaml", "yml",
    "zip",
];
/// Words, as they are compared, that only say that something is wanted.
const TELLING: [&str; 9] = ["display", "find", "get", "giv", "list", "me", "print", "show", "tell"];

/// What is read of a pair; what judges it is passed over.
#[derive(Debug, Default, PartialEq)]
#[cfg_attr(test, derive(serde::Deserialize))]
struct Pair {
    request: Text,
    #[cfg_attr(test, serde(default))]
    also: Vec<Text>,
    cmd: Text,
    macos: Option<Text>,
    freebsd: Option<Text>,
    busybox: Option<Text>,
    powershell: Option<Text>,
}

/// A string of an embedded file: a piece of it where nothing in it is escaped.
type Text = Cow<'static, str>;

impl Pair {
    /// Its command for a target, if there is one.
    fn command(&self, target: Target) -> Option<&str> {
        let macos = self.macos.as_ref().unwrap_or(&self.cmd);
        let command = match (target.userland, target.os) {
            (Userland::Gnu, _) => &self.cmd,
            (Userland::Busybox, _) => self.busybox.as_ref().unwrap_or(&self.cmd),
            (Userland::Bsd, Os::FreeBsd) => self.freebsd.as_ref().unwrap_or(macos),
            (Userland::Bsd, _) => macos,
            (Userland::PowerShell, _) => self.powershell.as_ref()?,
        };
        (!command.is_empty()).then_some(&**command)
    }
}

/// The `k` pairs whose wordings are nearest to the request, the nearest first; fewer if fewer share a word with it.
///
/// Each gives its command for `target`, and the wording that was nearest. No command comes twice.
pub fn nearest(request: &str, target: Target, k: usize) -> Vec<Example> {
    if k == 0 {
        return Vec::new();
    }
    let mut found: Vec<Example> = Vec::new();
    for (_, wording, command) in ranked(request, target) {
        if found.len() == k {
            break;
        }
        if !found.iter().any(|e| e.command == command) {
            found.push(Example { request: wording.to_owned(), command: command.to_owned() });
        }
    }
    found
}

/// The pairs that ask for nearly the same as the request, the nearest first, two at most; mostly there are none.
pub fn alike(request: &str, target: Target) -> Vec<Example> {
    let asked = Topic::of(request);
    let mut found: Vec<(f64, Example)> = Vec::new();
    for (_, wording, command) in ranked(request, target).into_iter().take(LOOKED_AT) {
        let share = asked.likeness(wording);
        if share >= ALIKE && !found.iter().any(|(_, e)| e.command == command) {
            found.push((share, Example { request: wording.to_owned(), command: command.to_owned() }));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(MOST_ALIKE);
    found.into_iter().map(|(_, example)| example).collect()
}

/// The words of all wordings as they are written, in lower case, with how often each is there: what people ask with.
pub(super) fn vocabulary() -> &'static HashMap<&'static str, u32> {
    static WORDS: OnceLock<HashMap<&'static str, u32>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut counts = HashMap::new();
        for text in texts() {
            let plain = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
            for word in
                text.split_whitespace().map(|word| word.trim_matches(|c: char| ",;:?!().".contains(c))).filter(plain)
            {
                *counts.entry(word).or_default() += 1;
            }
        }
        counts
    })
}

/// True if a text has words that can be compared.
pub(super) fn says_something(text: &str) -> bool {
    !topic(text).is_empty()
}

/// What a request asks for, to be compared with many. Names of files, but for their formats, and what stands in quotes say what
/// it is done to, not what is done.
pub(super) struct Topic {
    words: Vec<String>,
    weight: f64,
}

impl Topic {
    pub fn of(text: &str) -> Self {
        let words = topic(text);
        Self { weight: weight(&words), words }
    }

    /// How nearly a text asks for the same, 0 to 1: what both say of all that either says, each word weighing as much as it is
    /// rare (a weighted Jaccard index).
    pub fn likeness(&self, wording: &str) -> f64 {
        let mut words = topic(wording);
        let whole = weight(&words);
        words.retain(|word| self.words.binary_search(word).is_ok());
        let both = weight(&words);
        let either = self.weight + whole - both;
        if either > 0.0 { both / either } else { 0.0 }
    }
}

fn weight(words: &[String]) -> f64 {
    words.iter().map(|word| rarity(word)).sum()
}

/// The characters outside of quotes, each with its place.
pub(super) fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut quote, mut before) = (None, ' ');
    text.char_indices().filter(move |&(_, c)| {
        let opens = quote.is_none() && (matches!(c, '"' | '`') || c == '\'' && !before.is_alphanumeric());
        let outside = quote.is_none() && !opens;
        // an apostrophe inside a word is none
        if opens {
            quote = Some(c);
        } else if quote == Some(c) {
            quote = None;
        }
        before = c;
        outside
    })
}

/// The words that say what is done, sorted, each once.
fn topic(text: &str) -> Vec<String> {
    let plain: String = unquoted(text).map(|(_, c)| c).collect();
    let mut said = Vec::new();
    for piece in plain.split_whitespace() {
        let name = piece.trim_matches([',', ';', ':', '(', ')', '?', '!', '.']);
        if !name.contains(['.', '/', '_', '~']) {
            for_words(piece, |word| said.push(word.to_owned()));
        } else if let Some(format) = name.rsplit_once('.').and_then(|(_, end)| FORMATS.iter().find(|f| **f == end)) {
            said.push((*format).to_owned());
        }
    }
    said.sort_unstable();
    said.dedup();
    let only = |word: &String| !TELLING.contains(&word.as_str());
    if said.iter().any(only) {
        said.retain(only);
    }
    said
}

/// How much a word tells: what is in few wordings tells more.
fn rarity(word: &str) -> f64 {
    static COUNTS: OnceLock<(HashMap<String, u32>, u32)> = OnceLock::new();
    let (counts, all) = COUNTS.get_or_init(|| {
        let (mut counts, mut all) = (HashMap::new(), 0);
        for text in texts() {
            all += 1;
            for word in topic(text) {
                *counts.entry(word).or_default() += 1;
            }
        }
        (counts, all)
    });
    let (n, all) = (f64::from(counts.get(word).copied().unwrap_or_default()), f64::from(*all));
    (1.0 + (all - n + 0.5) / (n + 0.5)).ln()
}

/// Every wording that shares a word with the request, with its score and its command, the best first.
fn ranked(request: &str, target: Target) -> Vec<(f64, &'static str, &'static str)> {
    let mut asked = words(request);
    asked.sort_unstable();
    asked.dedup();
    let texts = wordings(target);
    // how often each word that was asked for is in each text, and how many words the text has
    let mut counts = Vec::with_capacity(texts.len());
    let mut in_texts = vec![0.0; asked.len()];
    let mut total = 0;
    for (text, _) in &texts {
        let (mut hits, mut length) = (Vec::<(usize, f64)>::new(), 0);
        for_words(text, |word| {
            length += 1;
            let Ok(i) = asked.binary_search_by(|w| w.as_str().cmp(word)) else { return };
            match hits.iter_mut().find(|(other, _)| *other == i) {
                Some((_, n)) => *n += 1.0,
                None => hits.push((i, 1.0)),
            }
        });
        for (i, _) in &hits {
            in_texts[*i] += 1.0;
        }
        total += length;
        counts.push((hits, f64::from(length)));
    }
    let all = texts.len() as f64;
    let mean = f64::from(total) / all;
    let rarity = |i: usize| (1.0 + (all - in_texts[i] + 0.5) / (in_texts[i] + 0.5)).ln();
    let mut scored: Vec<_> = std::iter::zip(texts, counts)
        .filter(|(_, (hits, _))| !hits.is_empty())
        .map(|((text, command), (hits, length))| {
            let norm = K1 * (1.0 - B + B * length / mean);
            let score = hits.iter().map(|(i, n)| rarity(*i) * n * (K1 + 1.0) / (n + norm)).sum();
            (score, text, command)
        })
        .collect();
    // stable: equal ones stay in the order of the files
    scored.sort_by(|a: &(f64, _, _), b| b.0.total_cmp(&a.0));
    scored
}

/// The commands of all pairs, as GNU on Linux has them: what an engine's guesses are made from.
pub fn commands() -> Vec<String> {
    pairs().iter().map(|pair| pair.cmd.clone().into_owned()).collect()
}

/// Every wording.
fn texts() -> impl Iterator<Item = &'static Text> {
    pairs().iter().flat_map(|pair| std::iter::once(&pair.request).chain(&pair.also))
}

/// Every wording with the command for the target.
fn wordings(target: Target) -> Vec<(&'static str, &'static str)> {
    let mut texts = Vec::new();
    for pair in pairs() {
        if let Some(command) = pair.command(target) {
            texts.push((&*pair.request, command));
            texts.extend(pair.also.iter().map(|text| (&**text, command)));
        }
    }
    texts
}

/// The words of a text as they are compared.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for_words(text, |word| all.push(word.to_owned()));
    all
}

/// Hands each word of a text over as it is compared.
fn for_words(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    for piece in text.split(|c: char| !c.is_alphanumeric()) {
        if piece.chars().any(char::is_alphabetic) {
            word.clear();
            if piece.is_ascii() {
                word.push_str(piece);
                word.make_ascii_lowercase();
            } else {
                word.extend(piece.chars().flat_map(char::to_lowercase));
            }
            stem(&mut word);
            each(&word);
        }
    }
}

/// Takes the plural or verb ending off a word. Light: it only makes `files`, `listing` and `sorted` meet `file`, `list`
/// and `sort`.
fn stem(word: &mut String) {
    let ends = |word: &str, end: &str, left: usize| word.len() >= end.len() + left && word.ends_with(end);
    if !word.is_ascii() {
        return;
    }
    if ends(word, "ies", 2) {
        word.truncate(word.len() - 3);
        word.push('y');
        return;
    }
    if ["sses", "shes", "ches", "xes", "zes"].iter().any(|end| ends(word, end, 1)) {
        word.truncate(word.len() - 2);
    } else if ends(word, "s", 3) && !ends(word, "ss", 0) && !ends(word, "us", 0) && !ends(word, "is", 0) {
        word.truncate(word.len() - 1);
    }
    for (end, left) in [("ing", 3), ("ed", 3)] {
        if ends(word, end, left) {
            word.truncate(word.len() - end.len());
            let twice = word.as_bytes().ends_with(&[word.as_bytes()[word.len() - 1]; 2]);
            if twice && !word.ends_with("ll") && !word.ends_with("ss") {
                word.truncate(word.len() - 1);
            }
            break;
        }
    }
    if ends(word, "e", 3) {
        word.truncate(word.len() - 1);
    }
}

/// The files, in alphabetical order.
const FILES: [&str; 33] = [
    include_str!("../../platform-rules/library/accounts.toml"),
    include_str!("../../platform-rules/library/archives.toml"),
    include_str!("../../platform-rules/library/bulk.toml"),
    include_str!("../../platform-rules/library/calendar.toml"),
    include_str!("../../platform-rules/library/compare.toml"),
    include_str!("../../platform-rules/library/containers.toml"),
    include_str!("../../platform-rules/library/counting.toml"),
    include_str!("../../platform-rules/library/csv-json.toml"),
    include_str!("../../platform-rules/library/dates.toml"),
    include_str!("../../platform-rules/library/disk.toml"),
    include_str!("../../platform-rules/library/files.toml"),
    include_str!("../../platform-rules/library/find.toml"),
    include_str!("../../platform-rules/library/git-history.toml"),
    include_str!("../../platform-rules/library/git.toml"),
    include_str!("../../platform-rules/library/inspect.toml"),
    include_str!("../../platform-rules/library/json-queries.toml"),
    include_str!("../../platform-rules/library/listing.toml"),
    include_str!("../../platform-rules/library/logs.toml"),
    include_str!("../../platform-rules/library/media.toml"),
    include_str!("../../platform-rules/library/network.toml"),
    include_str!("../../platform-rules/library/packages.toml"),
    include_str!("../../platform-rules/library/permissions.toml"),
    include_str!("../../platform-rules/library/pipelines-text.toml"),
    include_str!("../../platform-rules/library/processes.toml"),
    include_str!("../../platform-rules/library/running.toml"),
    include_str!("../../platform-rules/library/search.toml"),
    include_str!("../../platform-rules/library/services.toml"),
    include_str!("../../platform-rules/library/shell.toml"),
    include_str!("../../platform-rules/library/sizes.toml"),
    include_str!("../../platform-rules/library/system.toml"),
    include_str!("../../platform-rules/library/tables.toml"),
    include_str!("../../platform-rules/library/text.toml"),
    include_str!("../../platform-rules/library/users.toml"),
];

/// Every pair, read once.
fn pairs() -> &'static [Pair] {
    static PAIRS: OnceLock<Vec<Pair>> = OnceLock::new();
    PAIRS.get_or_init(|| FILES.into_iter().flat_map(read).collect())
}

/// Reads a file line by line: each field stands on a line of its own, and only what is passed over goes on to the next.
/// A parser of all of TOML takes several times as long; a test holds that it reads the same.
fn read(text: &'static str) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "[[pair]]" {
            pairs.push(Pair::default());
            continue;
        }
        let (Some((key, value)), Some(pair)) = (line.split_once(" = "), pairs.last_mut()) else { continue };
        if value.starts_with("'''") && (value.len() < 6 || !value.ends_with("'''")) {
            let _ = lines.find(|line| line.ends_with("'''"));
            continue;
        }
        match key {
            "request" => pair.request = string(value),
            "also" => pair.also = strings(value),
            "cmd" => pair.cmd = string(value),
            "macos" => pair.macos = Some(string(value)),
            "freebsd" => pair.freebsd = Some(string(value)),
            "busybox" => pair.busybox = Some(string(value)),
            "powershell" => pair.powershell = Some(string(value)),
            _ => {}
        }
    }
    pairs
}

/// A quoted string on one line; empty if it is none.
fn string(quoted: &'static str) -> Text {
    next_string(quoted).map_or_else(Text::default, |(text, _)| text)
}

/// The strings of an `also` line; none if it is broken.
fn strings(list: &'static str) -> Vec<Text> {
    let mut all = Vec::new();
    let mut rest = list.strip_prefix('[').unwrap_or_default();
    while let Some((text, after)) = next_string(rest) {
        all.push(text);
        rest = after.strip_prefix(", ").unwrap_or_default();
    }
    all
}

/// The string that a text begins with, and what follows it.
fn next_string(text: &'static str) -> Option<(Text, &'static str)> {
    for quote in ["'''", "'"] {
        if let Some(rest) = text.strip_prefix(quote)
            && let Some(end) = rest.find(quote)
        {
            // a quote before the closing three is the text's own
            let own =
                if quote.len() > 1 { rest[end + 3..].bytes().take(2).take_while(|b| *b == b'\'').count() } else { 0 };
            let (inner, after) = rest.split_at(end + own);
            return Some((Cow::Borrowed(inner), &after[quote.len()..]));
        }
    }
    let body = text.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.bytes().position(|b| {
        let ends = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        ends
    })?;
    let (inner, after) = (body.get(..end)?, body.get(end + 1..)?);
    if inner.contains('\\') {
        // what the escapes of TOML and of JSON have in common is all that the files use
        let read = serde_json::from_str::<String>(text.get(..end + 2)?).ok()?;
        return Some((Cow::Owned(read), after));
    }
    Some((Cow::Borrowed(inner), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        Target::named(name).unwrap()
    }

    #[test]
    fn words_meet_in_their_other_forms() {
        assert_eq!(
            words("Listing the FILES of notes.txt, 42 copies"),
            ["list", "the", "fil", "of", "not", "txt", "copy"]
        );
        for (one, other) in [
            ("files", "file"),
            ("directories", "directory"),
            ("sorted", "sort"),
            ("sorting", "sort"),
            ("stopped", "stop"),
            ("matches", "match"),
            ("killed", "kill"),
            ("processes", "process"),
            ("modified", "modified"),
            ("sizes", "size"),
            ("caches", "cache"),
        ] {
            assert_eq!(words(one), words(other), "{one}");
        }
        // what only looks like an ending
        for word in ["this", "status", "class", "bed", "ring", "naïves"] {
            assert_eq!(words(word), [word]);
        }
        assert!(words("10 * 7 ... 🙂").is_empty());
    }

    #[test]
    fn the_quick_reader_reads_what_a_parser_of_toml_reads() {
        #[derive(serde::Deserialize)]
        struct File {
            pair: Vec<Pair>,
        }
        for text in FILES {
            let file: File = toml::from_str(text).unwrap();
            assert_eq!(read(text), file.pair);
        }
        assert!(pairs().len() >= 600);
        let quoted = "[[pair]]\nrequest = '''say 'it''''\ncmd = '''echo 'it''''\n";
        assert_eq!(read(quoted), toml::from_str::<File>(quoted).unwrap().pair);
        assert_eq!(read("no = table\n[[pair]]\nrequest = broken\nalso = [1"), [Pair::default()]);
    }

    #[test]
    fn a_wording_of_the_library_finds_its_own_pair() {
        let gnu = target("linux-gnu");
        let (mut all, mut first) = (0, 0);
        for (text, command) in wordings(gnu).into_iter().step_by(7) {
            let found = nearest(text, gnu, 3);
            assert!(found.iter().any(|e| e.command == command), "{text} finds {found:?}");
            all += 1;
            first += usize::from(found[0].command == command);
        }
        assert!(all >= 140 && first * 100 >= all * 97, "{first} of {all} found themselves first");
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
        assert_eq!(topic("Show 'the old' files of a/b.txt, don't ask"), ["ask", "don", "fil", "of", "t"]);
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
