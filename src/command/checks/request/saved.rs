//! Finds commands that print a result that the request wants saved to a file.

use super::CheckContext;
use super::edit::warning;
use super::words::without_punctuation;
use caro_shell::parse::How;
use caro_shell::{Dialect, Finding, Invocation, is_read_only, quote};

/// The id of the finding.
pub(crate) const ID: &str = "not-saved";

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    check_script(cx).into_iter().collect()
}

fn check_script(cx: &CheckContext) -> Option<Finding> {
    let (name, append) = destination(cx.request)?;
    let text = cx.script.text.trim_end();
    let commands = &cx.script.commands;
    let (first, last) = (commands.first()?, commands.last()?);
    // a command that writes anything may write the file
    if text.contains(&name) || !is_read_only(cx.script) || text.contains('#') || text.ends_with([';', '&']) {
        return None;
    }
    let top: Vec<&Invocation> = commands.iter().filter(|c| c.inside.is_none()).collect();
    let is_one_pipeline = match top.as_slice() {
        [_] => true,
        [.., end] => end.pipe.is_some_and(|p| {
            top.len() == p.length && top.iter().all(|c| c.pipe.is_some_and(|q| q.pipeline == p.pipeline))
        }),
        [] => false,
    };
    let has_substitution = commands.iter().any(|c| c.inside.is_some_and(|i| i.how == How::Process));
    if !is_one_pipeline || has_substitution || cx.dialect == Dialect::PowerShell {
        return None;
    }
    let operator = if append { ">>" } else { ">" };
    let fix = format!("{text} {operator} {}", quote(&name, cx.dialect));
    let word = last.words.first().or(first.words.first())?;
    Some(warning(ID, word, format!("the result is to be written to {name}, and this only prints it"), Some(fix)))
}

/// Returns the file that the request wants the result in, and whether it is to be appended.
fn destination(request: &str) -> Option<(String, bool)> {
    let words: Vec<&str> = request.split_whitespace().map(without_punctuation).collect();
    let lower: Vec<String> = words.iter().map(|w| w.to_lowercase()).collect();
    // `convert people.csv to people.json`
    if let [convert, .., to, _] = lower.as_slice()
        && matches!(convert.as_str(), "convert" | "transform" | "turn" | "export")
        && matches!(to.as_str(), "to" | "into" | "as")
        && words.last().is_some_and(|name| is_file(name) && is_sane(name))
        && words.len() <= 6
    {
        return Some(((*words.last()?).to_owned(), false));
    }
    let verb = lower.iter().rposition(|w| {
        matches!(
            w.as_str(),
            "save" | "saving" | "write" | "writing" | "store" | "storing" | "redirect" | "append" | "appending"
        )
    })?;
    // objects of the verb: "save it", "write the result"; not "write-protected" or "find where to save"
    let objects = [
        "it", "them", "that", "this", "result", "results", "output", "list", "count", "number", "names", "lines",
        "total", "sum",
    ];
    let link = verb + lower[verb..].iter().position(|w| matches!(w.as_str(), "to" | "into" | "in" | "as"))?;
    let between = &lower[verb + 1..link];
    if between.len() > 3 || !between.last().is_some_and(|w| objects.contains(&w.as_str())) {
        return None;
    }
    let rest = lower[link + 1..].iter().take_while(|w| {
        matches!(w.as_str(), "a" | "an" | "the" | "new" | "file" | "text" | "called" | "named" | "end" | "of")
    });
    let at = link + 1 + rest.count();
    let name = words.get(at)?;
    let is_named = lower[link + 1..at].last().is_some_and(|w| w == "called" || w == "named");
    // words after the name may change the meaning ("in notes.txt with x replaced")
    let is_end = words.len() == at + 1;
    if !is_sane(name) || !is_end || !(is_file(name) || is_named) {
        return None;
    }
    Some(((*name).to_owned(), lower[verb].starts_with("append")))
}

/// True for a name without patterns and `~`, so that it can follow `>`.
fn is_sane(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c)) && !name.starts_with('-')
}

/// True for a name with an extension.
fn is_file(name: &str) -> bool {
    name.rsplit('/').next().and_then(|name| name.rsplit_once('.')).is_some_and(|(stem, ext)| {
        !stem.is_empty()
            && (1..=5).contains(&ext.len())
            && ext.chars().all(|c| c.is_ascii_alphanumeric())
            && ext.starts_with(|c: char| c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_destination_in_a_request_is_recognized() {
        let to = |name: &str, append| Some((name.to_owned(), append));
        assert_eq!(destination("list files and save it to out.txt"), to("out.txt", false));
        assert_eq!(destination("sort names.txt, write the result into /srv/a/b.csv."), to("/srv/a/b.csv", false));
        assert_eq!(destination("count lines and append the count to the file called totals"), to("totals", true));
        assert_eq!(destination("convert people.csv to people.json"), to("people.json", false));
        for none in [
            "convert 5 miles to km",
            "convert people.csv to ~/people.json",
            "convert *.png to *.jpg",
            "convert 7/2 to 3.5",
            "list write protected files in /srv/a.d",
            "save a copy of notes.txt to backup.txt",
            "how do I save it in vim",
            "find what was saved to out.txt",
            "write it to out.txt and to b.txt",
            "store it in the database",
        ] {
            assert_eq!(destination(none), None, "{none}");
        }
    }
}
