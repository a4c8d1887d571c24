//! The example library of `platform-rules/library/`: requests with the command for each system, and the search for
//! the pairs nearest to a request.
//!
//! # The files
//! One file per topic, a list of `[[pair]]`. The program reads `request` and `also` (other wordings of it); `cmd`,
//! the command for GNU on Linux; `macos`, `freebsd`, `busybox` and `powershell`, the commands for these systems. If
//! `macos` or `busybox` is left out, `cmd` applies; if `freebsd` is left out, `macos` applies; if `powershell` is
//! left out, there is none. An empty string means that the system has no such command. The other fields say how
//! `tests/library.rs` tests the pair in a fixture tree, `tests/library/fixture.sh`: `risk`, the safety verdict if not
//! `safe`; `run = "no: why"`, not executed; `root`, run only as root; `dir`, the working directory below `work`;
//! `before`, a line run first; `code`, the exit status if not 0; `out`, the output; `lines`, the output in any order;
//! `like`, a regular expression for the whole output; `then`, a line of bash that must succeed afterwards.
//!
//! - `read`: parses the files. `words`: splits a text into words for comparison. [`search`]: finds the nearest pairs.

mod pair;
mod read;
mod search;
mod words;

pub(super) use search::Topic;
pub use search::{alike, has, nearest};
pub(super) use words::{has_words, unquoted};

use pair::{Pair, Text};
use read::read;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Returns the lower-case words of all wordings with their counts: the vocabulary of requests.
pub fn vocabulary() -> &'static HashMap<&'static str, u32> {
    static WORDS: OnceLock<HashMap<&'static str, u32>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut counts = HashMap::new();
        for text in wordings() {
            let is_plain = |word: &&str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
            let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| ",;:?!().".contains(c)));
            for word in words.filter(is_plain) {
                *counts.entry(word).or_default() += 1;
            }
        }
        counts
    })
}

/// Returns the commands of all pairs for GNU on Linux, from which the engine drafts tokens.
pub fn commands() -> Vec<String> {
    pairs().iter().map(|pair| pair.cmd.clone().into_owned()).collect()
}

/// True if a pair's command contains the text.
pub(super) fn mentions(text: &str) -> bool {
    pairs().iter().any(|pair| pair.cmd.contains(text))
}

/// True if a pair's command calls the program, alone or in a pipeline.
pub(super) fn calls(program: &str) -> bool {
    let first = |part: &str| part.split_whitespace().find(|word| *word != "sudo") == Some(program);
    pairs().iter().any(|pair| pair.cmd.contains(program) && pair.cmd.split(['|', ';', '&']).any(first))
}

/// Returns every wording of every pair.
fn wordings() -> impl Iterator<Item = &'static Text> {
    pairs().iter().flat_map(Pair::wordings)
}

/// The files, in alphabetical order.
const FILES: [&str; 40] = [
    include_str!("../../../platform-rules/library/accounts.toml"),
    include_str!("../../../platform-rules/library/archives.toml"),
    include_str!("../../../platform-rules/library/bulk.toml"),
    include_str!("../../../platform-rules/library/calendar.toml"),
    include_str!("../../../platform-rules/library/compare.toml"),
    include_str!("../../../platform-rules/library/containers.toml"),
    include_str!("../../../platform-rules/library/counting.toml"),
    include_str!("../../../platform-rules/library/csv-json.toml"),
    include_str!("../../../platform-rules/library/data-files.toml"),
    include_str!("../../../platform-rules/library/dates.toml"),
    include_str!("../../../platform-rules/library/development.toml"),
    include_str!("../../../platform-rules/library/disk.toml"),
    include_str!("../../../platform-rules/library/everyday.toml"),
    include_str!("../../../platform-rules/library/files.toml"),
    include_str!("../../../platform-rules/library/find.toml"),
    include_str!("../../../platform-rules/library/git-history.toml"),
    include_str!("../../../platform-rules/library/git.toml"),
    include_str!("../../../platform-rules/library/inspect.toml"),
    include_str!("../../../platform-rules/library/json-queries.toml"),
    include_str!("../../../platform-rules/library/listing.toml"),
    include_str!("../../../platform-rules/library/logs.toml"),
    include_str!("../../../platform-rules/library/machine.toml"),
    include_str!("../../../platform-rules/library/media.toml"),
    include_str!("../../../platform-rules/library/network.toml"),
    include_str!("../../../platform-rules/library/oneliners.toml"),
    include_str!("../../../platform-rules/library/packages.toml"),
    include_str!("../../../platform-rules/library/permissions.toml"),
    include_str!("../../../platform-rules/library/pipelines-text.toml"),
    include_str!("../../../platform-rules/library/processes.toml"),
    include_str!("../../../platform-rules/library/reports.toml"),
    include_str!("../../../platform-rules/library/running.toml"),
    include_str!("../../../platform-rules/library/search.toml"),
    include_str!("../../../platform-rules/library/services.toml"),
    include_str!("../../../platform-rules/library/shell.toml"),
    include_str!("../../../platform-rules/library/sizes.toml"),
    include_str!("../../../platform-rules/library/system.toml"),
    include_str!("../../../platform-rules/library/tables.toml"),
    include_str!("../../../platform-rules/library/text.toml"),
    include_str!("../../../platform-rules/library/trees.toml"),
    include_str!("../../../platform-rules/library/users.toml"),
];

/// Returns every pair; the files are parsed once per process.
fn pairs() -> &'static [Pair] {
    static PAIRS: OnceLock<Vec<Pair>> = OnceLock::new();
    PAIRS.get_or_init(|| FILES.into_iter().flat_map(read).collect())
}
