//! Where: the request names a folder or file of this place, and the command looks somewhere else; what is unpacked into
//! a folder that is not there.

use super::edit::{Edits, warning};
use super::facts::input::files;
use super::words::bare;
use super::{CheckContext, only};
use caro_shell::effects::{Kind, effects};
use caro_shell::{Finding, Invocation, Word, quote};
use std::path::{Path, PathBuf};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let Some(cwd) = it.cwd else { return Vec::new() };
    elsewhere(it, cwd).or_else(|| last_part(it, cwd)).into_iter().chain(unpacked(it, cwd)).collect()
}

/// `awk ... app.log` for "the hours in logs/app.log", and no `app.log` here.
fn last_part(it: &CheckContext, cwd: &Path) -> Option<Finding> {
    let goes =
        |c: &Invocation| matches!(c.name(), Some("cd" | "pushd" | "git")) || c.args().iter().any(|w| w.text == "-C");
    if it.script.commands.iter().any(goes) {
        return None;
    }
    let names = named(it.request, cwd);
    let whole = names.iter().filter(|name| name.text.contains('/') && !it.script.text.contains(&name.text));
    let name = only(whole)?;
    let is_last = |w: &&Word| w.value.as_deref() == Some(last(&name.text)) && !cwd.join(last(&name.text)).exists();
    let operands = it.script.commands.iter().filter_map(files).flatten();
    let redirects = it.script.commands.iter().flat_map(|c| &c.redirects).filter(|r| !r.writes()).map(|r| &r.target);
    let found = operands.chain(redirects).filter(is_last);
    let word = only(found)?;
    let fix = Edits::new(it.script).replace(word, &quote(&name.text, it.dialect)).done();
    Some(warning("other-place", word, format!("the request means `{}`, and here is no {}", name.text, word.text), fix))
}

/// `find /srv/logs` for "the files in logs", where `logs` is in the working folder.
fn elsewhere(it: &CheckContext, cwd: &Path) -> Option<Finding> {
    let names = named(it.request, cwd);
    let invented: Vec<&Word> =
        words(it).filter(|w| is_invented(w, it.request) && !says_where(w, it.request, &names)).collect();
    // what is used as it is here is held against the other, or goes there
    let used = |name: &Name| words(it).any(|w| w.text.trim_start_matches("./") == name.text);
    let like = |w: &&Word| names.iter().find(|n| ends_in(w, &n.text) && !used(n));
    let (first, name) = invented.iter().find_map(|w| Some((*w, like(w)?))).or({
        // nothing of it looks like the name, but there is only one of each
        match (invented.as_slice(), names.as_slice()) {
            ([word], [name]) if name.sure && !mentions(it, &name.text) => Some((*word, name)),
            _ => None,
        }
    })?;
    if cwd.join(&name.text).canonicalize().ok()? == whole(first).canonicalize().unwrap_or_default() {
        return None;
    }
    let edits = invented.iter().filter(|w| w.text == first.text).fold(Edits::new(it.script), |edits, word| {
        let rest = word.text.split_once(&format!("/{}/", last(&name.text))).map_or("", |(_, rest)| rest);
        let path = if rest.is_empty() { name.text.clone() } else { format!("{}/{rest}", name.text) };
        // a pattern stays one
        edits.replace(word, &if word.glob && !word.quoted { path } else { quote(&path, it.dialect) })
    });
    let why = format!("the request means `{}` of this folder, and this is somewhere else", name.text);
    // where something would be lost, nobody is sent elsewhere unasked; but what cannot be moved, for want of it, is not lost
    let plain: PathBuf =
        whole(first).iter().take_while(|part| !part.to_string_lossy().contains(['*', '?', '['])).collect();
    let loses = effects(it.script).iter().filter(|e| e.span == first.span).any(|e| match e.kind {
        Kind::Delete => true,
        Kind::Move => plain.symlink_metadata().is_ok(),
        _ => false,
    });
    Some(warning("other-place", first, why, edits.done().filter(|_| !loses)))
}

/// `tar -xf a.tar -C out`, and no `out`.
fn unpacked(it: &CheckContext, cwd: &Path) -> Option<Finding> {
    let [tar] = it.script.commands.as_slice() else { return None };
    let unpacks = tar.name() == Some("tar") && (tar.has_option(Some('x'), "extract") || is_old_style(tar));
    let at = tar.args().iter().position(|w| matches!(w.text.as_str(), "-C" | "--directory")).filter(|_| unpacks)?;
    let folder = tar.args().get(at + 1)?;
    let name = folder.value.as_deref().filter(|name| !cwd.join(name).exists())?;
    let fix = format!("mkdir -p {} && {}", quote(name, it.dialect), it.script.text);
    Some(warning("no-folder", folder, format!("there is no folder `{name}` to unpack into"), Some(fix)))
}

/// `tar xf a.tar`.
fn is_old_style(tar: &Invocation) -> bool {
    tar.args().first().is_some_and(|w| !w.text.starts_with('-') && w.text.contains('x') && !w.text.contains(['.', '/']))
}

/// Something of the working folder that the request names.
struct Name {
    text: String,
    /// False if it may be a word like any other.
    sure: bool,
}

/// Names after "in", "from", "below" and the like, beside "folder" and "file", or with a slash, that are there.
fn named(request: &str, cwd: &Path) -> Vec<Name> {
    const KINDS: [&str; 6] = ["folder", "directory", "dir", "subfolder", "subdirectory", "file"];
    const BEFORE: [&str; 13] =
        ["in", "inside", "below", "under", "beneath", "within", "from", "into", "of", "to", "on", "called", "named"];
    let words: Vec<&str> = request.split_whitespace().map(bare).collect();
    let mut names: Vec<Name> = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let text = word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
        let plain = !text.starts_with(['/', '~', '-', '$', '.'])
            && text.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
        if !plain || text.is_empty() || names.iter().any(|n| n.text == text) {
            continue;
        }
        let before =
            words[..i].iter().rev().find(|w| !matches!(**w, "the" | "my" | "our")).copied().unwrap_or_default();
        // "in media and data"
        let joined = matches!(before, "and" | "or") && i > 1 && names.iter().any(|n| n.text == words[i - 2]);
        let kind = |w: Option<&&str>| w.is_some_and(|w| KINDS.contains(w));
        let sure = kind(words.get(i + 1)) || KINDS.contains(&before) || word.contains(['/', '.']);
        if (sure || joined || BEFORE.contains(&before)) && cwd.join(text).symlink_metadata().is_ok() {
            names.push(Name { text: text.to_owned(), sure });
        }
    }
    names
}

/// Every word after a program, and every file written to or read from. `/a b/c/` may be a pattern of sed or awk, and is none.
fn words<'a>(it: &CheckContext<'a>) -> impl Iterator<Item = &'a Word> {
    let has_patterns = |c: &Invocation| matches!(c.name(), Some("sed" | "awk" | "gawk" | "mawk" | "perl"));
    let of = move |c: &'a Invocation| {
        let patterns = has_patterns(c);
        let args = c.args().iter().filter(move |w| !(patterns && w.text.len() > 1 && w.text.ends_with('/')));
        args.chain(c.redirects.iter().map(|r| &r.target))
    };
    it.script.commands.iter().filter(|c| !c.remote).flat_map(of)
}

/// An absolute path, or one in the home folder, that the person did not write. Devices and the like are no places.
fn is_invented(word: &Word, request: &str) -> bool {
    const NO_PLACE: [&str; 5] = ["/dev/null", "/dev/std", "/dev/fd", "/dev/tty", "/proc/"];
    let text = word.text.as_str();
    let home = text.starts_with("~/") || text.starts_with("$HOME/");
    let root = text.starts_with('/') && !text.starts_with("//");
    (home || root)
        && !NO_PLACE.iter().any(|place| text.starts_with(place))
        && !request.contains(text.trim_end_matches(['*', '/']))
        && text.chars().all(|c| c.is_alphanumeric() || "._-/~$*?".contains(c))
}

/// True if the request names the place in words ("in my home directory", "the build folder in tmp"), and not as one of this
/// folder's.
fn says_where(word: &Word, request: &str, names: &[Name]) -> bool {
    const IN: [&str; 9] = ["in", "inside", "under", "below", "within", "from", "of", "at", "to"];
    let words = request.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase);
    let words: Vec<String> =
        words.filter(|w| !matches!(w.as_str(), "the" | "my" | "our" | "folder" | "directory")).collect();
    let says = |name: &str| words.windows(2).any(|pair| IN.contains(&pair[0].as_str()) && pair[1] == name);
    let here = |part: &str| names.iter().any(|name| name.text.split('/').any(|own| own == part));
    let above = word.text.rsplit_once('/').map_or("", |(above, _)| above);
    let named = |part: &str| part.len() > 1 && says(&part.to_lowercase()) && !here(part);
    word.text.starts_with(['~', '$']) && says("home") || above.split('/').any(named)
}

/// The path, with the home folder put in.
fn whole(word: &Word) -> PathBuf {
    let inside = word.text.strip_prefix("~/").or_else(|| word.text.strip_prefix("$HOME/"));
    inside.and_then(|rest| Some(std::env::home_dir()?.join(rest))).unwrap_or_else(|| word.text.clone().into())
}

/// True if the name, or its last part, is one of the path's.
fn ends_in(word: &Word, name: &str) -> bool {
    word.text.split('/').skip(1).any(|part| part == last(name))
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// True if the command uses the name anywhere.
fn mentions(it: &CheckContext, name: &str) -> bool {
    words(it).any(|w| w.text.split(['/', '=', ':', ',']).any(|part| part == last(name)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    /// The fix that is proposed in a folder with `logs/boot.log`, `inbox` and `files`.
    fn fixed(request: &str, command: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["logs", "inbox", "files"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("logs/boot.log"), "x").unwrap();
        findings_in(Some(dir.path()), check, request, command).first().map(|f| f.fix.clone().unwrap_or_default())
    }

    #[test]
    fn a_place_that_is_said_in_words_is_meant() {
        for (request, command) in [
            ("delete the inbox folder in my home directory", "rm -rf ~/inbox"),
            ("list the files folder in tmp", "ls /tmp/files"),
            ("show boot.log in /var/log", "cat /var/log/boot.log"),
        ] {
            assert_eq!(fixed(request, command), None, "{command}");
        }
        // told of, and not sent elsewhere unasked
        assert_eq!(fixed("delete the inbox folder", "rm -rf /srv/inbox").as_deref(), Some(""));
        assert_eq!(fixed("list the inbox folder", "ls /srv/inbox").as_deref(), Some("ls inbox"));
    }

    #[test]
    fn a_folder_of_this_place_is_meant() {
        for (request, wrong, right) in [
            ("files in logs changed today", "find /opt/build/logs -type f -mtime -1", "find logs -type f -mtime -1"),
            ("move all .sh files to the inbox folder", "mv *.sh ~/inbox", "mv *.sh inbox"),
            ("move the .log files from logs to inbox", "mv /none/logs/*.log inbox", "mv logs/*.log inbox"),
            ("last line of logs/boot.log", "tail -n 1 /var/log/logs/boot.log", "tail -n 1 logs/boot.log"),
            ("last line of logs/boot.log", "tail -n 1 /var/log/boot.log", "tail -n 1 logs/boot.log"),
            (
                "move files older than 30 days from logs to inbox",
                "find logs -mtime +30 -exec mv {} /inbox/ \\;",
                "find logs -mtime +30 -exec mv {} inbox \\;",
            ),
            ("sort the files in the logs directory by size", "ls -S /dev/sda1", "ls -S logs"),
            ("changed today in inbox and logs", "find inbox /logs -mtime -1", "find inbox logs -mtime -1"),
            ("set all in logs to 600", "chmod 600 /logs/* && ls /logs/*", "chmod 600 logs/* && ls logs/*"),
        ] {
            assert_eq!(fixed(request, wrong).as_deref(), Some(right), "{wrong}");
        }
    }

    #[test]
    fn a_place_that_was_named_or_is_no_place_is_left_alone() {
        for (request, right) in [
            ("files in /opt/logs", "find /opt/logs -type f"),
            ("files in /opt/logs", "find /opt/logs/ -type f"),
            ("show the lines of logs/boot.log with ip", "awk '/ip/' logs/boot.log"),
            ("logs without comments", "sed -n /logs/ logs/boot.log"),
            ("files in logs", "find logs -type f"),
            ("link logs/boot.log into the root folder /", "ln -s logs/boot.log /"),
            ("a list of files in /etc", "ls /etc"),
            ("a list of files, errors away", "ls 2> /dev/null"),
            ("show the ips of logs/boot.log", "awk '/ip/ {print $1}' logs/boot.log"),
            ("who has logged in today, as a list of files", "last -f /var/log/wtmp"),
        ] {
            assert_eq!(fixed(request, right), None, "{right}");
        }
    }

    #[test]
    fn a_file_of_another_folder_has_its_path() {
        let request = "hours in logs/boot.log";
        assert_eq!(fixed(request, "cut -d: -f2 boot.log | sort").as_deref(), Some("cut -d: -f2 logs/boot.log | sort"));
        assert_eq!(fixed(request, "sort < boot.log").as_deref(), Some("sort < logs/boot.log"));
        for right in [
            "cd logs && cut -d: -f2 boot.log",
            "find logs -name boot.log",
            "cut -d: -f2 logs/boot.log > boot.log",
            "grep -rh boot.log logs",
        ] {
            assert_eq!(fixed(request, right), None, "{right}");
        }
    }

    #[test]
    fn what_is_unpacked_needs_a_folder() {
        let fix = |command| fixed("unpack a.tar into out", command);
        assert_eq!(fix("tar -xf a.tar -C out").as_deref(), Some("mkdir -p out && tar -xf a.tar -C out"));
        assert_eq!(fix("tar xf a.tar -C out").as_deref(), Some("mkdir -p out && tar xf a.tar -C out"));
        assert_eq!(fix("tar -xf a.tar -C logs"), None);
        assert_eq!(fix("mkdir out && tar -xf a.tar -C out"), None);
        assert_eq!(fix("tar -cf a.tar -C out ."), None);
    }
}
