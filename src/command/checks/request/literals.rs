//! What the request quotes or names as a path must appear in the answer.

use super::edit::Edits;
use super::words::{bare, year};
use super::{CheckContext, only};
use caro_shell::{Finding, Severity, Word, quote};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let answer = plain(&it.script.text);
    // a date may be written in many ways, and the day before it may be the bound, but its year is there
    let dated = |name: &str| year(name).is_some_and(|y| [y, y - 1].iter().any(|y| answer.contains(&y.to_string())));
    named(it.request)
        .into_iter()
        .filter(|name| {
            !answer.contains(&plain(name))
                && !dated(name)
                && !is_example(it.request, name)
                && !in_pieces(it, name)
                && !is_product(it, name)
        })
        .map(|name| Finding {
            id: "missing-name".into(),
            severity: Severity::Warning,
            why: format!("the request names `{name}`, and the command does not use it"),
            span: None,
            evidence: Vec::new(),
            fix: copied(it, &name).or_else(|| stand_in(it, &name)),
            token: name,
        })
        .collect()
}

/// True for a name that only shows how names are to look: "like a_2024.pdf", "as pic_001.png, pic_002.png, ...".
fn is_example(request: &str, name: &str) -> bool {
    let before = request.split(name).next().unwrap_or_default().to_lowercase();
    let before = before.trim_end_matches([' ', '\'', '"', '`']);
    let series = ["...", "\u{2026}", "and so on", "etc"].iter().any(|more| request.contains(more));
    // "as 2024-12-31" says what dates are to look like, "on 2024-12-31" means that day
    const MEANT: [&str; 8] = [" of", " on", " since", " after", " before", " until", " was", " is"];
    if year(name).is_some() && !MEANT.iter().any(|word| before.ends_with(word)) {
        return true;
    }
    ["like", "such as", "e.g.", "for example"].iter().any(|so| before.ends_with(so))
        || series && name.chars().any(|c| c.is_ascii_digit())
}

/// True for `node.js` where no file is called so and the answer speaks of `node`: a name of a program and not of a file.
fn is_product(it: &CheckContext, name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, end)| {
        matches!(end.to_lowercase().as_str(), "js" | "net" | "io")
            && plain(&it.script.text).contains(&plain(stem))
            && it.cwd.is_none_or(|cwd| !cwd.join(name).exists())
    })
}

/// True if the name is there in another form: `a.txt{,.bak}`, `-C /srv www` for /srv/www, and a unit by its short name.
fn in_pieces(it: &CheckContext, name: &str) -> bool {
    let said = |text: &str| {
        let mut words = it.script.commands.iter().flat_map(|c| c.args());
        words.any(|w| w.text.trim_end_matches('/') == text.trim_end_matches('/'))
    };
    let mut braces = it.script.text.split_whitespace().filter_map(|w| w.split_once('{'));
    if braces.any(|(stem, rest)| stem.len() > 1 && rest.contains(',') && name.starts_with(stem)) {
        return true;
    }
    if is_made_of_another(it, name) {
        return true;
    }
    let path = std::path::Path::new(name);
    let of = |part: Option<&std::ffi::OsStr>| part.and_then(|p| p.to_str()).map(str::to_owned).unwrap_or_default();
    let (folder, last) = (of(path.parent().map(std::path::Path::as_os_str)), of(path.file_name()));
    let unit = name.ends_with(".service") && it.script.commands.iter().any(|c| c.name() == Some("systemctl"));
    folder.len() > 1 && said(&folder) && said(&last) || unit && said(&of(path.file_stem()))
}

/// True where `index.txt` is made of `index.sh`: its stem is in the command, and its ending behind one that is cut off (`${f%.sh}.txt`).
fn is_made_of_another(it: &CheckContext, name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let text = &it.script.text;
    let cut = text
        .match_indices(&format!("}}.{ending}"))
        .any(|(at, _)| text[..at].rfind("${").is_some_and(|from| text[from..at].contains(['%', '/'])));
    cut && !stem.is_empty() && text.contains(stem)
}

/// The command with a slip of the pen mended: a word that is the name but for one or two letters.
fn copied(it: &CheckContext, name: &str) -> Option<String> {
    let length = name.chars().count();
    let slip = |w: &&Word| {
        let text = w.value.as_deref().unwrap_or_default();
        let apart = text.chars().zip(name.chars()).filter(|(a, b)| a != b).count();
        text.chars().count() == length && apart <= 2 && length >= 6 && !it.request.contains(text)
    };
    let word = it.script.commands.iter().flat_map(|c| c.args()).find(slip)?;
    Edits::new(it.script).replace(word, &quote(name, it.dialect)).done()
}

/// The command with the name in the place of one that nobody named: `unzip file.zip` for "unzip a.zip". Only where the request
/// names one file, and the command one of the same kind.
fn stand_in(it: &CheckContext, name: &str) -> Option<String> {
    let ending = |text: &str| text.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, end)| end.to_owned());
    let kind = ending(name)?;
    let is_file = |other: &String| !other.contains('/') && ending(other).is_some();
    if named(it.request).iter().filter(|other| is_file(other)).count() != 1 {
        return None;
    }
    let same = it.script.commands.iter().flat_map(|c| c.args()).filter(|word| {
        let text = word.value.as_deref().unwrap_or_default();
        ending(text).as_ref() == Some(&kind)
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
            && !it.request.contains(text)
            && it.cwd.is_none_or(|cwd| !cwd.join(text).exists())
    });
    let word = only(same)?;
    Edits::new(it.script).replace(word, &quote(name, it.dialect)).done()
}

/// Text without the quoting and slashes in which a right answer may differ from the request.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\' | '`')).collect();
    text.trim_end_matches('/').to_lowercase()
}

/// What a request names word for word: absolute paths, and single words in quotes that look like a file or a host.
fn named(request: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in request.split_whitespace().map(bare) {
        let path = word.starts_with('/') && word.len() > 1 && word[1..].chars().any(char::is_alphanumeric);
        // letters around a dot: `notes.txt`, `example.org`; not `3.5`, `e.g`, `etc.`
        let file = word.rsplit_once('.').is_some_and(|(stem, ext)| {
            (2..=5).contains(&ext.len())
                && stem.chars().any(char::is_alphabetic)
                && ext.chars().all(|c| c.is_ascii_alphanumeric())
                && ext.chars().any(|c| c.is_ascii_alphabetic())
                && !stem.contains(['*', '(', '/'])
        });
        if (path || file || is_exact(word)) && !names.iter().any(|n| n == word) {
            names.push(word.to_owned());
        }
    }
    names
}

/// True for what means nothing if a letter of it is another: addresses, and codes like `aGVsbG8=` or `3f2a9c1b`.
fn is_exact(word: &str) -> bool {
    let address = word.starts_with("https://") || word.starts_with("http://");
    let mail = word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let parts: Vec<&str> = word.split('.').collect();
    let ip = parts.len() == 4 && parts.iter().all(|p| p.parse::<u8>().is_ok());
    let plain = word.len() >= 7 && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '=' | '+'));
    let has = |of: fn(&char) -> bool| word.chars().any(|c| of(&c));
    let turns = word.as_bytes().windows(2).filter(|w| w[0].is_ascii_digit() != w[1].is_ascii_digit()).count();
    let mixed = has(char::is_ascii_digit) && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
    // a time stamp, a number of an order: not 10000, which may be asked for as 10k
    let number =
        word.len() >= 5 && word.chars().all(|c| c.is_ascii_digit()) && (word.len() >= 10 || !word.ends_with("00"));
    address || mail || ip || number || year(word).is_some() || plain && (mixed || turns >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_and_files() {
        assert_eq!(named("copy notes.txt to /srv/data/, please."), ["notes.txt", "/srv/data/"]);
        assert_eq!(named("ping 'example.org' e.g. 3 times or 1.5 s"), ["example.org"]);
        assert_eq!(named("what is in /etc/hosts?"), ["/etc/hosts"]);
        assert_eq!(named("unzip a.zip at 3 p.m., i.e. now"), ["a.zip"]);
        assert!(named("list files in / and count and/or sort them").is_empty());
    }

    #[test]
    fn a_made_up_name_gives_way_to_the_one_that_was_said() {
        let fix =
            |request, command| super::super::tests::findings(check, request, command).into_iter().find_map(|f| f.fix);
        assert_eq!(fix("unzip a.zip", "unzip zip_file.zip").as_deref(), Some("unzip a.zip"));
        assert_eq!(fix("pack src into b.tar", "tar -cf archive.tar src").as_deref(), Some("tar -cf b.tar src"));
        // two that could be meant, another kind, a name that was said, and a pattern
        assert_eq!(fix("compare x.csv with y.csv", "diff a.csv y.csv"), None);
        assert_eq!(fix("unzip a.zip", "tar xf a.tar"), None);
        assert_eq!(fix("unzip a.zip", "unzip one.zip && unzip two.zip"), None);
        assert_eq!(fix("unzip a.zip", "unzip '*.zip'"), None);
    }

    #[test]
    fn what_has_to_be_exact_is_copied_exactly() {
        let fix =
            |request, command| super::super::tests::findings(check, request, command).into_iter().map(|f| f.fix).next();
        let request = "decode aGVsbG8= from base64";
        let right = "echo 'aGVsbG8=' | base64 -d";
        assert_eq!(fix(request, "echo SGVsbG8= | base64 -d"), Some(Some(right.into())));
        assert_eq!(fix(request, right), None);
        assert_eq!(fix("ping 192.168.7.23", "ping -c 4 192.168.7.32"), Some(Some("ping -c 4 192.168.7.23".into())));
        assert_eq!(fix("show the commit 3f2a9c1b", "git show HEAD"), Some(None));
        assert_eq!(fix("unix time 1700000000 as a date", "date -v-1d +%F"), Some(None));
        let date = "unix time stamp of 2024-02-29";
        assert_eq!(fix(date, "date -v-1d +%s"), Some(None));
        for right in ["date -d 2024-02-29 +%s", "date -d 'Feb 29 2024' +%s", "date -j -f %Y%m%d 20240229 +%s"] {
            assert_eq!(fix(date, right), None, "{right}");
        }
        assert_eq!(fix("name it like 2024-02-29", "date +%F"), None);
        for (request, right) in [
            ("files larger than 20000 bytes", "find . -type f -size +20k"),
            ("sha256 checksum of a.txt", "sha256sum a.txt"),
            ("is this x86_64 or iso8601", "uname -m"),
            ("convert a file to utf-8 with iconv", "iconv -t utf8"),
        ] {
            assert!(!named(request).iter().any(|n| is_exact(n)), "{right}");
        }
    }

    #[test]
    fn a_name_may_be_made_of_another() {
        let found = |request, command| super::super::tests::findings(check, request, command).len();
        let request = "rename each part.sh below here to part.txt";
        assert_eq!(found(request, "find . -name part.sh -exec sh -c 'mv \"$1\" \"${1%.sh}.txt\"' _ {} \\;"), 0);
        assert_eq!(found(request, "for f in */part.sh; do mv \"$f\" \"${f/.sh}.txt\"; done"), 0);
        assert_eq!(found(request, "for f in */part.sh; do mv \"$f\" \"$f.txt\"; done"), 1);
        assert_eq!(found("move a.sh to other.txt", "mv a.sh \"${f%.sh}.txt\""), 1);
    }

    #[test]
    fn quoting_makes_no_difference() {
        assert_eq!(plain("ls '/srv/My Data'/"), plain("ls /srv/my data"));
    }
}
