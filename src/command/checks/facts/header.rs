//! Finds `ps aux | head -n 5` for five processes: it shows a heading and four processes. The programs that print a
//! heading are listed in `platform-rules/headers.toml`.

use super::CheckContext;
use caro_shell::rules::option;
use caro_shell::{Finding, Invocation, Severity, Word};
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

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    header(cx).into_iter().collect()
}

fn header(cx: &CheckContext) -> Option<Finding> {
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
    let (word, count) = head.args().iter().find_map(|w| Some((w, lines_of(w)?)))?;
    let is_asked_for = cx.request.split(|c: char| !c.is_ascii_digit()).any(|n| n.parse() == Ok(count));
    let more = count.checked_add(1)?;
    let (before, after) = (cx.script.text.get(..word.span.start)?, cx.script.text.get(word.span.end..)?);
    is_asked_for.then(|| Finding {
        id: "header-line".into(),
        severity: Severity::Warning,
        token: word.raw.clone(),
        why: format!(
            "the first line of {} is its header: take {more} lines to see {count} {}",
            source.name().unwrap_or_default(),
            listing.of
        ),
        evidence: Vec::new(),
        fix: Some(format!("{before}{}{after}", word.raw.replace(&count.to_string(), &more.to_string()))),
        span: Some(word.span.clone()),
    })
}

/// Returns the number of lines that an argument of `head` asks for.
fn lines_of(word: &Word) -> Option<u32> {
    word.text.trim_start_matches("--lines=").trim_start_matches("-n").trim_start_matches('-').parse().ok()
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
