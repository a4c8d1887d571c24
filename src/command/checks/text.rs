//! What becomes of a text: where a line is put in, what stands between joined lines, and whether empty ones stay.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use crate::shell::{Finding, Userland};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let words = Words::of(it.request);
    let found = top(it, &words).or_else(|| joined(it, &words)).or_else(|| empty(it, &words));
    found.or_else(|| echoed(it, &words)).or_else(|| longer(it, &words)).into_iter().collect()
}

/// `openssl rand -base64 16` for "16 characters": its number counts bytes, which take more characters.
fn longer(it: &CheckContext, words: &Words) -> Option<Finding> {
    let [openssl] = it.script.commands.as_slice() else { return None };
    let [rand, form, count] = openssl.args() else { return None };
    let list = words.list();
    let sized =
        |w: &String| w.starts_with("character") || w.starts_with("letter") || matches!(w.as_str(), "long" | "chars");
    let asked = words.numbers().into_iter().find(|(at, _)| list[at + 1..].iter().take(3).any(sized)).map(|(_, n)| n)?;
    let coded = matches!(form.text.as_str(), "-base64" | "-hex") && rand.text == "rand";
    let fix = format!("{} | head -c {asked}", it.script.text.trim_end());
    (openssl.name() == Some("openssl") && coded && count.text.parse() == Ok(asked) && openssl.redirects.is_empty())
        .then(|| warning("how-many", count, format!("{asked} bytes are more characters: cut them"), Some(fix)))
}

/// `... | xargs echo`: what was on lines of its own comes out on one.
fn echoed(it: &CheckContext, words: &Words) -> Option<Finding> {
    const ONE_LINE: [&str; 6] = ["one line", "single line", "same line", "joined", "separated by", "space separated"];
    let (echo, xargs) = (it.script.commands.last()?, it.script.commands.iter().rev().nth(1)?);
    let bare = echo.name() == Some("echo") && echo.args().is_empty() && echo.via == ["xargs"];
    let plain = xargs.name() == Some("xargs") && xargs.words.len() == 1;
    let start = xargs.words.first()?;
    let before = it.script.text.get(..start.span.start)?.trim_end().strip_suffix('|')?.trim_end();
    let whole = it.script.text.get(echo.words.last()?.span.end..)?.trim().is_empty();
    (bare && plain && whole && !words.say(&ONE_LINE))
        .then(|| warning("one-line", start, "this only puts all lines on one", Some(before.to_owned())))
}

/// `echo x >> f` for "put x at the top of f".
fn top(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 11] = [
        "at the top",
        "to the top",
        "at the beginning",
        "to the beginning",
        "at the start",
        "to the start",
        "as the first line",
        "as first line",
        "on top of",
        "prepend",
        "before the first line",
    ];
    let [echo] = it.script.commands.as_slice() else { return None };
    let [text] = echo.args() else { return None };
    let [redirect] = echo.redirects.as_slice() else { return None };
    if echo.name() != Some("echo") || !redirect.appends() || !words.say(&SAID) || words.say(&["end", "bottom"]) {
        return None;
    }
    let line = text.value.as_deref()?;
    let plain = !line.is_empty() && line.chars().all(|c| c.is_alphanumeric() || " ._,:;=#-+@".contains(c));
    // sed's one-line form of `i` is GNU's
    let file = redirect.target.value.as_deref()?;
    // a file without lines has none that another could stand before
    let lines = it.cwd.is_none_or(|cwd| cwd.join(file).metadata().is_ok_and(|m| m.len() > 0));
    let able = it.target.userland == Userland::Gnu && plain && lines && !line.starts_with(' ');
    let fix = able.then(|| format!("sed -i '1i {line}' {}", redirect.target.raw));
    Some(warning("wrong-end", &redirect.target, "it is to be put in at the beginning, and >> puts it at the end", fix))
}

/// `tr '\n' ','` for "joined with commas": the last line ends in one, too.
fn joined(it: &CheckContext, words: &Words) -> Option<Finding> {
    let tr = it.script.commands.last().filter(|c| c.name() == Some("tr") && c.inside.is_none())?;
    let [newline, by] = tr.args() else { return None };
    let asked = words.list().iter().any(|w| ["join", "separat", "combin"].iter().any(|b| w.starts_with(b)))
        || words.say(&["one line", "a single line"]);
    let mark = by.value.as_deref().filter(|m| m.chars().count() == 1 && !matches!(*m, " " | "\\"))?;
    if newline.text != "\\n" || !asked {
        return None;
    }
    let fix = Edits::new(it.script).span(&tr.words, &format!("paste -sd{} -", by.raw)).done();
    Some(warning(
        "ends-in-mark",
        by,
        format!("the last line gets a {mark} behind it, too: paste -s puts it between"),
        fix,
    ))
}

/// Nothing takes out the empty lines that are to go.
fn empty(it: &CheckContext, words: &Words) -> Option<Finding> {
    const GO: [&str; 12] = [
        "remove",
        "removing",
        "delete",
        "deleting",
        "without",
        "drop",
        "skip",
        "skipping",
        "ignore",
        "ignoring",
        "strip",
        "excluding",
    ];
    const DONE: [&str; 20] = [
        "^$",
        "|$",
        "NF",
        "\\s*$",
        "\\S",
        "grep .",
        "grep '.'",
        "grep \".\"",
        "/./",
        "[^",
        "length",
        "-s",
        ":space:",
        ":blank:",
        "]*$",
        "]+$",
        " *$",
        " +$",
        "!= \"\"",
        "!=\"\"",
    ];
    const TEXT: [&str; 10] = ["awk", "cat", "cut", "grep", "head", "sed", "sort", "tail", "tr", "uniq"];
    let list = words.list();
    let at = list.windows(2).position(|w| matches!(w[0].as_str(), "blank" | "empty") && w[1] == "lines")?;
    let go = list[..at].iter().rev().take(3).any(|w| GO.contains(&w.as_str()));
    let plain = it.script.commands.iter().all(|c| c.name().is_some_and(|n| TEXT.contains(&n)));
    let program = it.script.commands.first()?.words.first()?;
    (go && plain && !DONE.iter().any(|mark| it.script.text.contains(mark)))
        .then(|| warning("empty-lines", program, "empty lines are to go, and nothing takes them out", None))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn lines_are_put_and_joined_as_asked() {
        let fix = |request, command| findings(check, request, command).into_iter().map(|f| f.fix).next();
        let mended = |text: &str| Some(Some(text.to_owned()));
        let top = "insert the line start at the top of a.txt";
        assert_eq!(fix(top, "echo \"start\" >> a.txt"), mended("sed -i '1i start' a.txt"));
        assert_eq!(fix(top, "echo \"it's\" >> a.txt"), Some(None));
        assert_eq!(fix("append start to a.txt", "echo start >> a.txt"), None);
        assert_eq!(fix("add start at the end, not at the top", "echo start >> a.txt"), None);
        let join = "join the lines of a.txt with commas";
        assert_eq!(fix(join, "tr '\\n' ',' < a.txt"), mended("paste -sd',' - < a.txt"));
        assert_eq!(fix(join, "cat a.txt | tr '\\n' ','"), mended("cat a.txt | paste -sd',' -"));
        assert_eq!(fix(join, "paste -sd, a.txt"), None);
        assert_eq!(fix("replace line breaks by commas", "tr '\\n' ',' < a.txt"), None);
        let uniq = "lines that occur once";
        assert_eq!(fix(uniq, "sort a.txt | uniq -u | xargs echo"), mended("sort a.txt | uniq -u"));
        assert_eq!(fix("lines that occur once, on one line", "sort a.txt | uniq -u | xargs echo"), None);
        assert_eq!(fix(uniq, "sort a.txt | uniq -u | xargs -n 1 echo"), None);
        let password = "generate a random password with 16 characters";
        assert_eq!(fix(password, "openssl rand -base64 16"), mended("openssl rand -base64 16 | head -c 16"));
        assert_eq!(fix(password, "openssl rand -base64 16 | head -c 16"), None);
        assert_eq!(fix("16 random bytes in base64", "openssl rand -base64 16"), None);
        let sort = "sort a.txt and remove blank lines";
        assert_eq!(fix(sort, "sort -u a.txt"), Some(None));
        for right in ["grep -v '^$' a.txt | sort", "sed '/^$/d' a.txt", "awk NF a.txt | sort", "grep . a.txt"] {
            assert_eq!(fix(sort, right), None, "{right}");
        }
    }
}
