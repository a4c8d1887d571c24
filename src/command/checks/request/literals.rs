//! Finds names in the request, such as paths, files and addresses, that the command does not use.

use super::edit::{Edits, warning_about};
use super::words::{without_punctuation, year};
use super::{CheckContext, only};
use caro_shell::{Finding, Word, quote};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let answer = plain(&cx.script.text);
    // a date may be written in many ways, and the day before may be the bound, but its year is in the command
    let is_date_used = |name: &str| {
        year(name).is_some_and(|y| [y, y.saturating_sub(1)].iter().any(|y| answer.contains(&y.to_string())))
    };
    named(cx.request)
        .into_iter()
        .filter(|name| {
            !answer.contains(&plain(name))
                && !is_date_used(name)
                && !is_example(cx.request, name)
                && !in_pieces(cx, name)
                && !is_product(cx, name)
        })
        .map(|name| {
            let why = format!("the request names `{name}`, and the command does not use it");
            let fix = fix_misspelled(cx, &name).or_else(|| fix_invented(cx, &name));
            warning_about("missing-name", &name, None, why, fix)
        })
        .collect()
}

/// True for a name that is only an example of a pattern: "like a_2024.pdf", "as pic_001.png, pic_002.png, ...".
fn is_example(request: &str, name: &str) -> bool {
    let before = request.split(name).next().unwrap_or_default().to_lowercase();
    let before = before.trim_end_matches([' ', '\'', '"', '`']);
    let is_series = ["...", "\u{2026}", "and so on", "etc"].iter().any(|more| request.contains(more));
    // "as 2024-12-31" is an example of a format, "on 2024-12-31" means that day
    const BEFORE_DATE: [&str; 8] = [" of", " on", " since", " after", " before", " until", " was", " is"];
    if year(name).is_some() && !BEFORE_DATE.iter().any(|word| before.ends_with(word)) {
        return true;
    }
    ["like", "such as", "e.g.", "for example"].iter().any(|so| before.ends_with(so))
        || is_series && name.chars().any(|c| c.is_ascii_digit())
}

/// True for `node.js` if there is no such file and the command contains `node`: the name is that of a program.
fn is_product(cx: &CheckContext, name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, end)| {
        matches!(end.to_lowercase().as_str(), "js" | "net" | "io")
            && plain(&cx.script.text).contains(&plain(stem))
            && cx.cwd.is_none_or(|cwd| !cwd.join(name).exists())
    })
}

/// True if the command has the name in another form: `a.txt{,.bak}`, `-C /srv www` for /srv/www, or a unit by its
/// short name.
fn in_pieces(cx: &CheckContext, name: &str) -> bool {
    let has_word = |text: &str| {
        let mut words = cx.script.commands.iter().flat_map(|c| c.args());
        words.any(|w| w.text.trim_end_matches('/') == text.trim_end_matches('/'))
    };
    let mut braces = cx.script.text.split_whitespace().filter_map(|w| w.split_once('{'));
    if braces.any(|(stem, rest)| stem.len() > 1 && rest.contains(',') && name.starts_with(stem)) {
        return true;
    }
    if is_made_of_another(cx, name) {
        return true;
    }
    let path = std::path::Path::new(name);
    let of = |part: Option<&std::ffi::OsStr>| part.and_then(|p| p.to_str()).map(str::to_owned).unwrap_or_default();
    let (folder, last) = (of(path.parent().map(std::path::Path::as_os_str)), of(path.file_name()));
    let is_unit = name.ends_with(".service") && cx.script.commands.iter().any(|c| c.name() == Some("systemctl"));
    folder.len() > 1 && has_word(&folder) && has_word(&last) || is_unit && has_word(&of(path.file_stem()))
}

/// True if the command forms `index.txt` from `index.sh`: it contains the stem, and the ending after an expansion
/// that removes another one (`${f%.sh}.txt`).
fn is_made_of_another(cx: &CheckContext, name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let text = &cx.script.text;
    let replaces_ending = text
        .match_indices(&format!("}}.{ending}"))
        .any(|(at, _)| text[..at].rfind("${").is_some_and(|from| text[from..at].contains(['%', '/'])));
    replaces_ending && !stem.is_empty() && text.contains(stem)
}

/// Returns the command with the name in place of a word that differs from it in one or two letters.
fn fix_misspelled(cx: &CheckContext, name: &str) -> Option<String> {
    let length = name.chars().count();
    let is_misspelled = |w: &&Word| {
        let text = w.value.as_deref().unwrap_or_default();
        let differences = text.chars().zip(name.chars()).filter(|(a, b)| a != b).count();
        text.chars().count() == length && differences <= 2 && length >= 6 && !cx.request.contains(text)
    };
    let word = cx.script.commands.iter().flat_map(|c| c.args()).find(is_misspelled)?;
    Edits::new(cx.script).replace(word, &quote(name, cx.dialect)).apply()
}

/// Returns the command with the name in place of an invented one: `unzip file.zip` for "unzip a.zip". Only if the
/// request names one file, and the command one with the same ending.
fn fix_invented(cx: &CheckContext, name: &str) -> Option<String> {
    let ending = |text: &str| text.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, end)| end.to_owned());
    let name_ending = ending(name)?;
    let is_file = |other: &String| !other.contains('/') && ending(other).is_some();
    if named(cx.request).iter().filter(|other| is_file(other)).count() != 1 {
        return None;
    }
    let invented = cx.script.commands.iter().flat_map(|c| c.args()).filter(|word| {
        let text = word.value.as_deref().unwrap_or_default();
        ending(text).as_ref() == Some(&name_ending)
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
            && !cx.request.contains(text)
            && cx.cwd.is_none_or(|cwd| !cwd.join(text).exists())
    });
    let word = only(invented)?;
    Edits::new(cx.script).replace(word, &quote(name, cx.dialect)).apply()
}

/// Returns a text in lower case without quotes and a final slash, in which a right command may differ from the
/// request.
fn plain(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\' | '`')).collect();
    text.trim_end_matches('/').to_lowercase()
}

/// Returns the names in a request that have to appear in the command: absolute paths, words that look like a file or
/// host, and words that have to be exact.
fn named(request: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in request.split_whitespace().map(without_punctuation) {
        let is_path = word.starts_with('/') && word.len() > 1 && word[1..].chars().any(char::is_alphanumeric);
        // letters around a dot: `notes.txt`, `example.org`; not `3.5`, `e.g`, `etc.`
        let is_file = word.rsplit_once('.').is_some_and(|(stem, ext)| {
            (2..=5).contains(&ext.len())
                && stem.chars().any(char::is_alphabetic)
                && ext.chars().all(|c| c.is_ascii_alphanumeric())
                && ext.chars().any(|c| c.is_ascii_alphabetic())
                && !stem.contains(['*', '(', '/'])
        });
        if (is_path || is_file || is_exact(word)) && !names.iter().any(|n| n == word) {
            names.push(word.to_owned());
        }
    }
    names
}

/// True for a word that has to be exact: addresses, dates, long numbers, and codes like `aGVsbG8=` or `3f2a9c1b`.
fn is_exact(word: &str) -> bool {
    let is_url = word.starts_with("https://") || word.starts_with("http://");
    let is_mail = word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let parts: Vec<&str> = word.split('.').collect();
    let is_ip = parts.len() == 4 && parts.iter().all(|p| p.parse::<u8>().is_ok());
    let is_plain = word.len() >= 7 && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '=' | '+'));
    let has = |of: fn(&char) -> bool| word.chars().any(|c| of(&c));
    let changes = word.as_bytes().windows(2).filter(|w| w[0].is_ascii_digit() != w[1].is_ascii_digit()).count();
    let is_mixed = has(char::is_ascii_digit) && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
    // a time stamp or an order number, but not 10000, which may be written as 10k
    let is_number =
        word.len() >= 5 && word.chars().all(|c| c.is_ascii_digit()) && (word.len() >= 10 || !word.ends_with("00"));
    let is_code = is_plain && (is_mixed || changes >= 3);
    is_url || is_mail || is_ip || is_number || is_code || year(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_files_in_a_request_are_names() {
        assert_eq!(named("copy notes.txt to /srv/data/, please."), ["notes.txt", "/srv/data/"]);
        assert_eq!(named("ping 'example.org' e.g. 3 times or 1.5 s"), ["example.org"]);
        assert_eq!(named("what is in /etc/hosts?"), ["/etc/hosts"]);
        assert_eq!(named("unzip a.zip at 3 p.m., i.e. now"), ["a.zip"]);
        assert!(named("list files in / and count and/or sort them").is_empty());
    }

    #[test]
    fn a_date_may_be_written_as_on_macos() {
        let found = super::super::tests::findings(check, "unix time of 2024-02-29", "date -j -f %Y%m%d 20240229 +%s");
        assert_eq!(found, []);
    }

    #[test]
    fn quoting_makes_no_difference() {
        assert_eq!(plain("ls '/srv/My Data'/"), plain("ls /srv/my data"));
    }
}
