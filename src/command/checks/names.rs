//! `find -name '*.a.out'` for files called `a.out`: a name that was given whole is no ending. `-name '* '` for names with a
//! space in them: those only end in one.

use super::edit::{Edits, warning};
use super::words::{Words, written};
use super::{CheckContext, find};
use crate::shell::{Finding, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_find(it).or_else(|| blank(it)).or_else(|| dot(it)).into_iter().collect()
}

fn of_find(it: &CheckContext) -> Option<Finding> {
    let search = find(it.script)?;
    let pair = search.words.windows(2).find(|w| {
        matches!(w[0].text.as_str(), "-name" | "-iname") && ending(&w[1].text).is_some_and(|n| is_whole(it.request, n))
    })?;
    let (word, name) = (&pair[1], ending(&pair[1].text)?);
    // the quotes stay as they are
    let fix = Edits::new(it.script).replace(word, &word.raw.replacen("*.", "", 1)).done();
    Some(warning(
        "whole-name",
        word,
        format!("the file is called {name}, and this looks for what ends in .{name}"),
        fix,
    ))
}

fn blank(it: &CheckContext) -> Option<Finding> {
    const BLANK: [&str; 6] = ["space", "spaces", "blank", "blanks", "whitespace", "whitespaces"];
    const EDGE: [&str; 10] =
        ["end", "ends", "ending", "trailing", "last", "begin", "begins", "start", "starts", "leading"];
    let words = Words::of(it.request);
    let search = find(it.script).filter(|_| words.say(&BLANK) && !words.say(&EDGE))?;
    let edge =
        |w: &&[Word]| matches!(w[0].text.as_str(), "-name" | "-iname") && matches!(w[1].text.as_str(), "* " | " *");
    let word = &search.words.windows(2).find(edge)?[1];
    let fix = Edits::new(it.script).replace(word, "'* *'").done();
    Some(warning("whole-name", word, "this finds a space at one end of a name, and none inside it", fix))
}

/// `find -name '*.py' -exec basename {} . \;` for names without their ending.
fn dot(it: &CheckContext) -> Option<Finding> {
    let cut = it.script.commands.iter().find(|c| c.name() == Some("basename"))?;
    let suffix = cut.operands().nth(1).filter(|w| w.text == ".")?;
    let search = find(it.script)?;
    let pair = search.words.windows(2).find(|w| matches!(w[0].text.as_str(), "-name" | "-iname"))?;
    let ending = pair[1].text.strip_prefix("*.").filter(|e| e.chars().all(char::is_alphanumeric))?;
    let fix = Edits::new(it.script).replace(suffix, &format!(".{ending}")).done();
    Some(warning("whole-ending", suffix, format!("basename takes the whole ending: .{ending}"), fix))
}

/// `a.out` of `*.a.out`; `None` of `*.out`, which is an ending like any other.
fn ending(pattern: &str) -> Option<&str> {
    let name = pattern.strip_prefix("*.")?;
    let (stem, end) = name.rsplit_once('.')?;
    let plain = name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    // endings of two parts
    let double = matches!(end, "gz" | "bz2" | "xz" | "zst" | "bak" | "old" | "orig")
        || matches!(stem, "tar" | "min" | "d" | "test" | "spec" | "bundle" | "module" | "blade" | "html" | "user");
    (plain && !stem.is_empty() && !end.is_empty() && !double).then_some(name)
}

/// True if the request has the name as a word of its own, and nowhere as an ending.
fn is_whole(request: &str, name: &str) -> bool {
    let words: Vec<&str> = written(request).collect();
    words.contains(&name) && !words.iter().any(|w| *w != name && w.ends_with(name))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_space_may_be_anywhere() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let right = "find . -name '* *' -type f";
        assert_eq!(fix("files with spaces in their names", "find . -name '* ' -type f").as_deref(), Some(right));
        assert_eq!(fix("files with spaces in their names", right), None);
        assert_eq!(fix("names that end with a space", "find . -name '* '"), None);
    }

    #[test]
    fn a_whole_name_is_no_ending() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let request = "delete all core.dump and *.o files";
        let right = "find . \\( -name 'core.dump' -o -name '*.o' \\) -delete";
        assert_eq!(fix(request, "find . \\( -name '*.core.dump' -o -name '*.o' \\) -delete").as_deref(), Some(right));
        assert_eq!(fix(request, right), None);
        for (request, right) in [
            ("files ending in app.log", "find . -name '*.log'"),
            ("delete *.app.log files", "find . -name '*.app.log' -delete"),
            ("all tar.gz files", "find . -name '*.tar.gz'"),
            ("files that end in .app.log", "find . -name '*.app.log'"),
        ] {
            assert_eq!(fix(request, right), None, "{right}");
        }
    }
}
