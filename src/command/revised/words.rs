//! Decides from the words of a request whether a condition of the earlier command may be left out.

use super::conditions::{Condition, Family, core};
use caro_intent::tokens::path_words;
use caro_intent::{orders_removal, refers};

/// Words that ask for more than before, or to leave something out.
const LOOSENING: &str = "without no any all every regardless drop remove ignore whatever also too other not both or \
                         longer unlimited matter limit limits restriction including include";

/// Words that a request which continues an earlier one begins with.
const CONTINUING: &str = "and also but only just not no that which whose with without except excluding then now sorted sort older newer \
     bigger larger smaller in from by instead too";

/// Verbs that a request of its own begins with.
const SEARCHES: &str = "find list show search look get display print give which what how where";

/// Words that tie a request to the one before.
const TIES: &str = "only also but too ones instead same again still more";

/// Phrases that ask for things of every kind.
const EVERYTHING: [&str; 8] = [
    "all files",
    "all kinds",
    "all types",
    "any file",
    "any kind",
    "every file",
    "all files and folders",
    "all folders",
];

/// Returns the words that speak of a property.
fn topic(family: Family) -> &'static str {
    match family {
        Family::Name => "name names named called extension extensions kind kinds suffix ending",
        Family::Time => {
            "age old older oldest new newer newest recent recently modified changed accessed created day days week \
             weeks month months year years hour hours minute minutes today yesterday since until before after last \
             date dates time times"
        }
        Family::Size => {
            "size sizes big bigger biggest large larger largest small smaller smallest byte bytes kilobyte kilobytes \
             megabyte megabytes gigabyte gigabytes kb mb gb k m g kib mib gib empty"
        }
        Family::Owner => "owner owners owned user users group groups belong belongs belonging author authors by",
        Family::Mode => "permission permissions mode modes executable readable writable execute read write",
        Family::Depth => {
            "depth deep deeper level levels recursive recursively subfolder subfolders subdirectory subdirectories \
             subdirs nested below here top current everywhere"
        }
        Family::Type => {
            "file files folder folders directory directories dir dirs link links symlink symlinks type types everything"
        }
        Family::Folder => {
            "here everywhere anywhere folder folders directory directories place system whole home elsewhere disk"
        }
        Family::Excluded | Family::Pattern | Family::Other => "",
    }
}

/// True if the request has a word of a list separated by blanks.
fn has_any(words: &[String], list: &str) -> bool {
    words.iter().any(|word| caro_intent::is_in(list, word.trim_start_matches('-')))
}

/// True if the request refers to the earlier command or its results, or continues it.
pub(super) fn refers_back(request: &str) -> bool {
    let words = path_words(request);
    refers(request)
        || has_any(&words, "their ones")
        || words.first().is_some_and(|first| caro_intent::is_in(CONTINUING, first))
}

/// True if the request is a whole one, and not a change of an earlier one.
pub(super) fn is_self_contained(request: &str) -> bool {
    let words = path_words(request);
    words.first().is_some_and(|first| caro_intent::is_in(SEARCHES, first))
        && words.len() > 2
        && !refers(request)
        && !has_any(&words, TIES)
        && !has_any(&words, "their")
}

/// True if the request asks to leave a condition out, or gives another value for it.
pub(super) fn lets_go(request: &str, condition: &Condition, now: &[Condition], before: &[Condition]) -> bool {
    let words = path_words(request);
    let text = words.join(" ");
    // "delete all files" is most often about those that were found
    let asks_for_all = (EVERYTHING.iter().any(|phrase| contains_words(&text, phrase))
        || has_any(&words, "everything anything"))
        && !orders_removal(request);
    if asks_for_all || has_any(&words, "instead") {
        return true;
    }
    let speaks = has_any(&words, topic(condition.family));
    let is_new = |new: &&Condition| new.family == condition.family && !before.iter().any(|old| old.is(new));
    let is_replaced = now.iter().any(|new| is_new(&new));
    match condition.family {
        Family::Depth | Family::Type if speaks => true,
        Family::Name | Family::Pattern | Family::Folder if is_replaced => true,
        Family::Time | Family::Size | Family::Owner | Family::Mode if speaks && is_replaced => true,
        _ => has_any(&words, LOOSENING) && (speaks || names(&text, condition)),
    }
}

/// True if a text has a phrase between word boundaries.
fn contains_words(text: &str, phrase: &str) -> bool {
    format!(" {text} ").contains(&format!(" {phrase} "))
}

/// True if the request names a value of the condition.
fn names(text: &str, condition: &Condition) -> bool {
    let values = condition.tests.iter().filter_map(|test| test.value.as_deref());
    values.map(core).any(|core| {
        let name = core.trim_matches(|c: char| !c.is_alphanumeric());
        name.len() > 1 && text.contains(name)
    })
}
