//! Finds `ps aux | head -n 5` for five processes: it shows a heading and four processes. The programs that print a
//! heading are listed in `platform-rules/headers.toml`.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::sequence::line_count;
use caro_shell::rules::option;
use caro_shell::{Finding, Invocation};
use std::sync::OnceLock;

/// Programs whose output begins with a heading.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    names: Vec<String>,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    of: String,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listing: Vec<Listing>,
}

fn listings() -> &'static [Listing] {
    static FILE: OnceLock<File> = OnceLock::new();
    let text = include_str!("../../../../platform-rules/headers.toml");
    &FILE.get_or_init(|| toml::from_str(text).unwrap_or_default()).listing
}

impl Listing {
    /// True if the command prints a heading.
    fn prints_heading(&self, command: &Invocation) -> bool {
        let words = || command.args().iter().map(|w| w.text.as_str());
        let has = |list: &[String]| list.iter().any(|l| option(command, l).is_some() || words().any(|w| w == l));
        command.name().is_some_and(|name| self.names.iter().any(|n| n == name))
            && (self.verbs.is_empty() || has(&self.verbs))
            // `-o pid=` leaves out the heading of a column
            && !has(&self.without)
            && !words().any(|w| w.ends_with('='))
    }
}

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    // a request for lines may count the heading
    if cx.request.to_lowercase().split_whitespace().any(|word| word.starts_with("line")) {
        return None;
    }
    // only directly before `head`: after `| sort` the heading is anywhere, after `| grep` it is gone
    let is_before_head = |c: &Invocation| cx.script.reader(c).is_some_and(|reader| reader.name() == Some("head"));
    let (source, listing) = cx
        .script
        .commands
        .iter()
        .filter(|c| is_before_head(c))
        .find_map(|c| Some((c, listings().iter().find(|listing| listing.prints_heading(c))?)))?;
    let head = cx.script.reader(source)?;
    let (word, count) = line_count(head)?;
    let is_asked_for = cx.request.split(|c: char| !c.is_ascii_digit()).any(|n| n.parse() == Ok(count));
    if !is_asked_for {
        return None;
    }
    let more = count.checked_add(1)?;
    let (name, of) = (source.name()?, &listing.of);
    let why = format!("the first line of {name} is its header: take {more} lines to see {count} {of}");
    let raw = word.raw.replace(&count.to_string(), &more.to_string());
    Some(warning("header-line", word, why, Edits::new(cx.script).replace(word, &raw).apply()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_listings_is_complete() {
        assert!(listings().len() >= 8);
        assert!(listings().iter().all(|l| !l.names.is_empty() && !l.of.is_empty()));
    }
}
