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
    use super::super::tests::findings;
    use super::*;

    fn fix(request: &str, command: &str) -> Option<String> {
        findings(check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn the_file_of_listings_is_complete() {
        assert!(listings().len() >= 8);
        assert!(listings().iter().all(|l| !l.names.is_empty() && !l.of.is_empty()));
    }

    #[test]
    fn one_more_line_is_taken_for_the_heading() {
        for (request, command, fixed) in [
            ("top 5 processes", "ps aux --sort=-%cpu | head -n 5", "ps aux --sort=-%cpu | head -n 6"),
            ("top 5 processes", "ps aux --sort=-%cpu | head -5", "ps aux --sort=-%cpu | head -6"),
            ("top 5 processes by cpu", "ps aux -r | head -n 5", "ps aux -r | head -n 6"),
            ("3 running containers", "docker ps | head -n 3", "docker ps | head -n 4"),
            ("first 4 pods of all namespaces", "kubectl get pods -A | head -n 4", "kubectl get pods -A | head -n 5"),
            ("show 10 open files", "lsof | head --lines=10", "lsof | head --lines=11"),
        ] {
            assert_eq!(fix(request, command).as_deref(), Some(fixed));
        }
    }

    #[test]
    fn commands_without_a_heading_have_no_finding() {
        for (request, right) in [
            ("top 5 processes", "ps aux --sort=-%cpu | head -n 6"),
            ("top 5 processes", "ps aux | sort -nrk 3 | head -n 5"),
            ("top 5 processes", "ps -eo pid= --sort=-%cpu | head -n 5"),
            ("top 5 processes", "ps aux --sort=-%cpu --no-headers | head -n 5"),
            ("top 5 files", "ls | head -n 5"),
            ("ids of 3 containers", "docker ps -q | head -n 3"),
            ("ids of 3 containers", "docker ps -aq | head -n 3"),
            ("ids of 3 processes with open sockets", "lsof -ti | head -n 3"),
            ("names of 3 pods", "kubectl get pods -o name | head -n 3"),
            ("first 5 lines of the process list", "ps aux | head -n 5"),
            ("busiest processes", "ps aux --sort=-%cpu | head -n 5"),
            ("the log of container 5", "docker logs 5 | head -n 5"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
