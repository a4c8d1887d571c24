//! Finds commands that use another place than the folder or file in the working directory that the request names, and
//! archives that are unpacked into a folder that does not exist.

use super::edit::{Edits, warning};
use super::facts::input::files;
use super::words::{is_in, without_punctuation};
use super::{CheckContext, only};
use caro_shell::effects::{Kind, effects};
use caro_shell::{Finding, Invocation, Word, quote};
use std::path::{Path, PathBuf};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let Some(cwd) = cx.cwd else { return Vec::new() };
    elsewhere(cx, cwd).or_else(|| without_folder(cx, cwd)).into_iter().chain(missing_folder(cx, cwd)).collect()
}

/// `awk ... app.log` for "the hours in logs/app.log", where there is no `app.log` in the working directory.
fn without_folder(cx: &CheckContext, cwd: &Path) -> Option<Finding> {
    let changes_folder =
        |c: &Invocation| matches!(c.name(), Some("cd" | "pushd" | "git")) || c.args().iter().any(|w| w.text == "-C");
    if cx.script.commands.iter().any(changes_folder) {
        return None;
    }
    let names = existing_names(cx.request, cwd);
    let whole = names.iter().filter(|name| name.text.contains('/') && !cx.script.text.contains(&name.text));
    let name = only(whole)?;
    let file_name = last_component(&name.text);
    let is_last = |w: &&Word| w.value.as_deref() == Some(file_name) && !cwd.join(file_name).exists();
    let operands = cx.script.commands.iter().filter_map(files).flatten();
    let redirects = cx.script.commands.iter().flat_map(|c| &c.redirects).filter(|r| !r.writes()).map(|r| &r.target);
    let found = operands.chain(redirects).filter(is_last);
    let word = only(found)?;
    let fix = Edits::new(cx.script).replace(word, &quote(&name.text, cx.dialect)).apply();
    Some(warning("other-place", word, format!("the request means `{}`, and here is no {}", name.text, word.text), fix))
}

/// `find /srv/logs` for "the files in logs", where `logs` is in the working directory.
fn elsewhere(cx: &CheckContext, cwd: &Path) -> Option<Finding> {
    let names = existing_names(cx.request, cwd);
    let invented: Vec<&Word> =
        words(cx).filter(|w| is_invented(w, cx.request) && !says_where(w, cx.request, &names)).collect();
    // a name that the command uses itself is compared with the other place, or copied there
    let is_used = |name: &Name| words(cx).any(|w| w.text.trim_start_matches("./") == name.text);
    let like = |w: &&Word| names.iter().find(|n| contains_name(w, &n.text) && !is_used(n));
    let (first, name) = invented.iter().find_map(|w| Some((*w, like(w)?))).or({
        // no component equals the name, but there is only one of each
        match (invented.as_slice(), names.as_slice()) {
            ([word], [name]) if name.is_sure && !mentions(cx, &name.text) => Some((*word, name)),
            _ => None,
        }
    })?;
    if cwd.join(&name.text).canonicalize().ok()? == with_home(first).canonicalize().unwrap_or_default() {
        return None;
    }
    // a deletion is not redirected to another place, nor a move of something that exists
    let fixed_part: PathBuf =
        with_home(first).iter().take_while(|part| !part.to_string_lossy().contains(['*', '?', '['])).collect();
    let removes = effects(cx.script).iter().filter(|e| e.span == first.span).any(|e| match e.kind {
        Kind::Delete => true,
        Kind::Move => fixed_part.symlink_metadata().is_ok(),
        _ => false,
    });
    let edits = invented.iter().filter(|w| w.text == first.text).fold(Edits::new(cx.script), |edits, word| {
        let rest = word.text.split_once(&format!("/{}/", last_component(&name.text))).map_or("", |(_, rest)| rest);
        let path = if rest.is_empty() { name.text.clone() } else { format!("{}/{rest}", name.text) };
        // a pattern stays unquoted
        edits.replace(word, &if word.glob && !word.quoted { path } else { quote(&path, cx.dialect) })
    });
    let why = format!("the request means `{}` of this folder, and this is somewhere else", name.text);
    Some(warning("other-place", first, why, if removes { None } else { edits.apply() }))
}

/// `tar -xf a.tar -C out`, where `out` does not exist.
fn missing_folder(cx: &CheckContext, cwd: &Path) -> Option<Finding> {
    let [tar] = cx.script.commands.as_slice() else { return None };
    if tar.name() != Some("tar") || !(tar.has_option(Some('x'), "extract") || is_old_style(tar)) {
        return None;
    }
    let at = tar.args().iter().position(|w| matches!(w.text.as_str(), "-C" | "--directory"))?;
    let folder = tar.args().get(at + 1)?;
    let name = folder.value.as_deref().filter(|name| !cwd.join(name).exists())?;
    let fix = format!("mkdir -p {} && {}", quote(name, cx.dialect), cx.script.text);
    Some(warning("no-folder", folder, format!("there is no folder `{name}` to unpack into"), Some(fix)))
}

/// True for options without a dash: `tar xf a.tar`.
fn is_old_style(tar: &Invocation) -> bool {
    tar.args().first().is_some_and(|w| !w.text.starts_with('-') && w.text.contains('x') && !w.text.contains(['.', '/']))
}

/// A file or folder in the working directory that the request names.
struct Name {
    text: String,
    /// False if it may also be an ordinary word.
    is_sure: bool,
}

/// Returns the existing names in a request: after "in", "from", "below" and similar words, beside "folder" or "file",
/// or with a slash.
fn existing_names(request: &str, cwd: &Path) -> Vec<Name> {
    const KINDS: &str = "folder directory dir subfolder subdirectory file";
    const BEFORE: &str = "in inside below under beneath within from into of to on called named";
    let words: Vec<&str> = request.split_whitespace().map(without_punctuation).collect();
    let mut names: Vec<Name> = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let text = word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
        let is_plain = !text.starts_with(['/', '~', '-', '$', '.'])
            && text.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
        if !is_plain || text.is_empty() || names.iter().any(|n| n.text == text) {
            continue;
        }
        let before =
            words[..i].iter().rev().find(|w| !matches!(**w, "the" | "my" | "our")).copied().unwrap_or_default();
        // "in media and data"
        let is_joined = matches!(before, "and" | "or") && i > 1 && names.iter().any(|n| n.text == words[i - 2]);
        let is_kind = |w: Option<&&str>| w.is_some_and(|w| is_in(KINDS, w));
        let is_sure = is_kind(words.get(i + 1)) || is_in(KINDS, before) || word.contains(['/', '.']);
        if (is_sure || is_joined || is_in(BEFORE, before)) && cwd.join(text).symlink_metadata().is_ok() {
            names.push(Name { text: text.to_owned(), is_sure });
        }
    }
    names
}

/// Returns every argument, and every file of a redirection. Arguments of sed and awk that end in a slash are left
/// out, as they may be patterns.
fn words<'a>(cx: &CheckContext<'a>) -> impl Iterator<Item = &'a Word> {
    let has_patterns = |c: &Invocation| matches!(c.name(), Some("sed" | "awk" | "gawk" | "mawk" | "perl"));
    let of = move |c: &'a Invocation| {
        let patterns = has_patterns(c);
        let args = c.args().iter().filter(move |w| !(patterns && w.text.len() > 1 && w.text.ends_with('/')));
        args.chain(c.redirects.iter().map(|r| &r.target))
    };
    cx.script.commands.iter().filter(|c| !c.remote).flat_map(of)
}

/// True for an absolute path, or one in the home directory, that the request does not contain. Devices do not count.
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

/// True if the request names the other place in words ("in my home directory", "the build folder in tmp").
fn says_where(word: &Word, request: &str, names: &[Name]) -> bool {
    const IN: &str = "in inside under below within from of at to";
    let words = request.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase);
    let words: Vec<String> =
        words.filter(|w| !matches!(w.as_str(), "the" | "my" | "our" | "folder" | "directory")).collect();
    let says = |name: &str| words.windows(2).any(|pair| is_in(IN, &pair[0]) && pair[1] == name);
    let is_here = |part: &str| names.iter().any(|name| name.text.split('/').any(|own| own == part));
    let parent = word.text.rsplit_once('/').map_or("", |(parent, _)| parent);
    let is_named = |part: &str| part.len() > 1 && says(&part.to_lowercase()) && !is_here(part);
    word.text.starts_with(['~', '$']) && says("home") || parent.split('/').any(is_named)
}

/// Returns the path with the home directory expanded.
fn with_home(word: &Word) -> PathBuf {
    let inside = word.text.strip_prefix("~/").or_else(|| word.text.strip_prefix("$HOME/"));
    inside.and_then(|rest| Some(std::env::home_dir()?.join(rest))).unwrap_or_else(|| word.text.clone().into())
}

/// True if the last component of the name is a component of the path.
fn contains_name(word: &Word, name: &str) -> bool {
    word.text.split('/').skip(1).any(|part| part == last_component(name))
}

/// Returns the last component of a path.
fn last_component(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// True if the command uses the name anywhere.
fn mentions(cx: &CheckContext, name: &str) -> bool {
    words(cx).any(|w| w.text.split(['/', '=', ':', ',']).any(|part| part == last_component(name)))
}
