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
//! - `read`: the files. `words`: what is compared of a text. [`search`]: which pairs are nearest to a request.

mod pair;
mod read;
mod search;
mod words;

pub(super) use search::Topic;
pub use search::{alike, has, nearest};
pub(super) use words::{says_something, unquoted};

use pair::{Pair, Text};
use read::read;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The words of all wordings as they are written, in lower case, with how often each is there: what people ask with.
pub fn vocabulary() -> &'static HashMap<&'static str, u32> {
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

/// The commands of all pairs, as GNU on Linux has them: what an engine's guesses are made from.
pub fn commands() -> Vec<String> {
    pairs().iter().map(|pair| pair.cmd.clone().into_owned()).collect()
}

/// True if a text is part of some pair's command.
pub(super) fn mentions(text: &str) -> bool {
    pairs().iter().any(|pair| pair.cmd.contains(text))
}

/// True if some pair's command calls that program, alone or in a pipeline.
pub(super) fn calls(program: &str) -> bool {
    let first = |part: &str| part.split_whitespace().find(|word| *word != "sudo") == Some(program);
    pairs().iter().any(|pair| pair.cmd.contains(program) && pair.cmd.split(['|', ';', '&']).any(first))
}

/// Every wording.
fn texts() -> impl Iterator<Item = &'static Text> {
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

/// Every pair, read once.
fn pairs() -> &'static [Pair] {
    static PAIRS: OnceLock<Vec<Pair>> = OnceLock::new();
    PAIRS.get_or_init(|| FILES.into_iter().flat_map(read).collect())
}
