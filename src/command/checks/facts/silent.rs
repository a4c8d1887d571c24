//! `find . -type l -exec test ! -e {} \;` asks of each link whether it is broken, and tells nobody; `-exec test -e {} \;`
//! finds the sound ones.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, find};
use crate::shell::Finding;
use crate::shell::parse::How;

/// What prints, or does something with what was found.
const TELLS: [&str; 9] = ["-print", "-print0", "-printf", "-ls", "-fprint", "-delete", "-quit", "-ok", "-execdir"];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).or_else(|| sound(it)).into_iter().collect()
}

/// The links that lead somewhere, for "the broken links".
fn sound(it: &CheckContext) -> Option<Finding> {
    const BROKEN: [&str; 6] = [
        "broken links",
        "broken symlinks",
        "broken symbolic links",
        "dangling links",
        "dangling symlinks",
        "dead links",
    ];
    let (words, search) = (Words::of(it.request), find(it.script)?);
    let asked = words.say(&BROKEN) || words.say(&["broken", "dangling"]) && words.say(&["links", "symlinks", "link"]);
    let asked = asked && !words.say(&["not broken", "not dangling", "sound", "working", "valid"]);
    let texts: Vec<&str> = search.words.iter().map(|w| w.text.as_str()).collect();
    let links = texts.windows(2).any(|pair| pair == ["-type", "l"]);
    let at = it.script.commands.iter().position(|c| std::ptr::eq(c, search))?;
    let inner =
        it.script.commands.iter().find(|c| c.inside.is_some_and(|i| i.command == at && i.how == How::Wrapped))?;
    let tests = matches!(inner.name(), Some("test" | "["))
        && inner.args().first().is_some_and(|w| matches!(w.text.as_str(), "-e" | "-f"));
    let exec = texts.iter().position(|t| matches!(*t, "-exec" | "-execdir")).filter(|_| asked && links && tests)?;
    if matches!(texts[exec - 1], "!" | "-not") {
        return None;
    }
    let word = &search.words[exec];
    let fix = Edits::new(it.script).before(word, "! ").done();
    Some(warning(
        "sound-links",
        word,
        "what exists is what a sound link leads to, and the broken ones are asked for",
        fix,
    ))
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    let search = find(it.script)?;
    let at = it.script.commands.iter().position(|c| std::ptr::eq(c, search))?;
    let mut inner =
        it.script.commands.iter().filter(|c| c.inside.is_some_and(|i| i.command == at && i.how == How::Wrapped));
    let test = inner.next().filter(|c| matches!(c.name(), Some("test" | "[")) && inner.next().is_none())?;
    let last = search.words.last()?;
    if search.words.iter().any(|w| TELLS.contains(&w.text.as_str())) || last.text != ";" {
        return None;
    }
    let fix = Edits::new(it.script).after(last, " -print").done();
    const WHY: &str = "the test says nothing by itself: -print behind it names what passes";
    Some(warning("nothing-printed", test.words.first()?, WHY, fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_test_alone_prints_nothing() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        let broken = "find . -type l -exec test ! -e {} \\;";
        assert_eq!(fix(broken), Some(format!("{broken} -print")));
        assert_eq!(fix("find x -exec [ -s {} ] \\;").as_deref(), Some("find x -exec [ -s {} ] \\; -print"));
        for right in [
            "find . -type l ! -exec test -e {} \\; -print",
            "find . -exec test -s {} \\; -delete",
            "find . -exec test -s {} \\; -exec rm {} \\;",
            "find . -exec grep -q x {} \\; -print",
            "find . -type l",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn a_broken_link_leads_nowhere() {
        let fix = |request, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let (request, sound) = ("which links in conf are broken?", "find conf -type l -exec test -e {} \\; -print");
        let broken = "find conf -type l ! -exec test -e {} \\; -print";
        assert_eq!(fix(request, sound).as_deref(), Some(broken));
        assert_eq!(fix(request, broken), None);
        assert_eq!(fix("the links in conf that are not broken", sound), None);
        assert_eq!(fix("links in conf whose target exists", sound), None);
    }
}
