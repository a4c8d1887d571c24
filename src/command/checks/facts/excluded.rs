//! Finds wrong exclusions of `find` and `grep`: a folder that is excluded by its name while its content is not, and
//! hidden files that are selected and excluded at the same time.

use super::edit::{Edits, warning};
use super::words::{Words, is_in, negates};
use super::{CheckContext, single_find};
use caro_shell::{Finding, Invocation, Severity, Word, quote};

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let of_find = single_find(cx.script)
        .and_then(|command| hidden(cx, command).or_else(|| root(cx, command)).or_else(|| only_its_name(cx, command)));
    of_find.or_else(|| folder_as_file(cx)).into_iter().chain(emptied(cx)).collect()
}

/// `find ~ ! -name .ssh -delete`: the folder itself is spared, but its content is deleted. True of every search that
/// deletes below the folder and does not exclude its content in another way.
fn emptied(cx: &CheckContext) -> Option<Finding> {
    let command = single_find(cx.script)?;
    let value = |option: &str| command.words.windows(2).find(|w| w[0].text == option).map(|w| w[1].text.as_str());
    let flat = value("-maxdepth") == Some("1");
    // a least depth of two or more excludes the folder itself; a least depth of one does not matter
    let deeper = value("-mindepth").is_some_and(|depth| depth != "1");
    let other = command.args().iter().any(|w| matches!(w.text.as_str(), "-prune" | "-o" | "-or"));
    if flat || deeper || other || !deletes(cx, command) {
        return None;
    }
    let files = value("-type") == Some("f");
    let test = negated(command, &["-name", "-iname"]).find(|test| {
        let name = test[2].text.as_str();
        let spared = negated(command, &["-path", "-wholename", "-ipath"]).any(|path| path[2].text.contains(name));
        !spared && !name.contains(['*', '?', '[', '/', '$']) && is_folder(cx, command, name, files)
    })?;
    let (last, name) = (&test[2], &test[2].text);
    let content = quote(&format!("*/{name}/*"), cx.dialect);
    let fix = Edits::new(cx.script).insert_after(last, &format!(" ! -path {content}")).apply();
    let why = format!("this spares the folder {name} alone: all that is in it is deleted");
    Some(Finding { severity: Severity::Error, ..warning("emptied", last, why, fix) })
}

/// True if a search deletes the files that it finds: by itself, or by an `rm` that it runs or feeds.
fn deletes(cx: &CheckContext, command: &Invocation) -> bool {
    let is_run_by = |c: &Invocation| c.via.iter().any(|via| via == "xargs" || via == "find");
    command.args().iter().any(|w| w.text == "-delete")
        || cx.script.commands.iter().any(|c| c.name() == Some("rm") && is_run_by(c))
}

/// True for the name of a folder: by the disk if the name exists, else for a hidden name without an ending, unless
/// the search is only for `files`.
fn is_folder(cx: &CheckContext, command: &Invocation, name: &str, files: bool) -> bool {
    let starts = super::starting_points(command).filter_map(|start| start.value.as_deref());
    let places = starts.filter_map(|start| Some(cx.cwd?.join(start).join(name)));
    let seen: Vec<_> = places.filter_map(|path| path.symlink_metadata().ok()).collect();
    if seen.is_empty() {
        return !files && name.strip_prefix('.').is_some_and(|rest| !rest.contains('.'));
    }
    seen.iter().any(|meta| meta.is_dir())
}

/// Returns the words of the negated tests: `!`, `-name`, the pattern.
pub(in crate::checks) fn negated<'a>(command: &'a Invocation, tests: &[&str]) -> impl Iterator<Item = &'a [Word]> {
    let is_negated = |w: &&[Word]| matches!(w[0].text.as_str(), "!" | "-not") && tests.contains(&w[1].text.as_str());
    command.words.windows(3).filter(is_negated)
}

/// `! -name .git` for "outside of .git": the folder is excluded, but its content is not.
fn only_its_name(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    // folders with many files that a search mostly should not find
    const USUALLY_EXCLUDED: &str = ".git .svn .hg node_modules __pycache__ .venv venv vendor";
    let is_other_test =
        |w: &Word| matches!(w.text.as_str(), "-prune" | "-path" | "-maxdepth" | "-delete" | "-o" | "-or");
    let words = Words::of(cx.request);
    let excludes = words.list().iter().any(|word| negates(word)) || words.contains_phrase("but|leave out");
    if command.args().iter().any(is_other_test) || !excludes {
        return None;
    }
    let is_folder = |name: &str| cx.cwd.is_some_and(|cwd| cwd.join(name).is_dir());
    let test = negated(command, &["-name"]).find(|w| {
        let name = w[2].text.as_str();
        let is_known = || is_in(USUALLY_EXCLUDED, name) || is_folder(name);
        !name.contains(['*', '?', '[', '/']) && is_known() && cx.request.contains(name)
    })?;
    // "all folders but .git" asks for names of folders
    let finds_folders = command.words.windows(2).any(|w| w[0].text == "-type" && w[1].text == "d");
    let name = &test[2].text;
    let fix = Edits::new(cx.script).replace(&test[1], "-path").replace(&test[2], &format!("'*/{name}/*'")).apply();
    let why = format!("this leaves out the folder {name} alone, and shows what is in it");
    (!finds_folders).then(|| warning("folder-by-name", &test[2], why, fix))
}

/// `find /srv -not -path '*/srv/*'` excludes everything below `/srv`.
fn root(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let [_, root, next, ..] = &command.words[..] else { return None };
    let is_only_start = !root.text.starts_with(['-', '!', '(']) && next.text.starts_with(['-', '!', '(']);
    let path = format!("{}/", root.text.trim_end_matches('/'));
    let is_all = |pattern: &str| {
        let inner = pattern.strip_prefix('*').and_then(|rest| rest.strip_suffix('*')).unwrap_or_default();
        !inner.contains(['*', '?', '[']) && inner.len() > 2 && path.contains(inner)
    };
    let test = negated(command, &["-path", "-wholename"]).find(|w| is_only_start && is_all(&w[2].text))?;
    let has_alternative = command.args().iter().any(|w| matches!(w.text.as_str(), "-o" | "-or" | "-prune"));
    // a command that changes files gets no fix, as the fix may match more files than asked for
    const ACTIONS: &str = "-delete -exec -execdir -ok -okdir";
    let acts = cx.script.commands.len() > 1 || command.args().iter().any(|w| is_in(ACTIONS, &w.text));
    let is_flat = Words::of(cx.request).list().iter().any(|w| ["subdir", "subfolder"].iter().any(|s| w.starts_with(s)));
    let edits = test.iter().fold(Edits::new(cx.script), |edits, word| edits.replace(word, ""));
    let edits = if is_flat { edits.insert_after(root, " -maxdepth 1") } else { edits };
    let fix = if acts { None } else { edits.apply() };
    let why = format!("every path below {} is like that: this leaves out all of them", root.text);
    (!has_alternative).then(|| warning("nothing-left", &test[2], why, fix))
}

/// `grep -r --exclude=.git`: `--exclude` is for files, and `.git` is a folder.
fn folder_as_file(cx: &CheckContext) -> Option<Finding> {
    let cwd = cx.cwd?;
    let greps = cx.script.commands.iter().filter(|c| matches!(c.name(), Some("grep" | "egrep" | "fgrep")));
    greps.flat_map(Invocation::args).find_map(|word| {
        let given = word.text.strip_prefix("--exclude=")?;
        // a small model also writes `*.git`
        let name = given.trim_end_matches('/').rsplit('/').next()?;
        let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
        let is_folder = !name.is_empty() && !name.contains(['*', '?', '[']) && cwd.join(name).is_dir();
        let fix = Edits::new(cx.script).replace(word, &format!("--exclude-dir={}", quote(name, cx.dialect))).apply();
        let why = format!("--exclude leaves out files, and {name} is a folder: its files are searched");
        is_folder.then(|| warning("folder-as-file", word, why, fix))
    })
}

/// `-name '.*' ! -path '*/.*'` matches nothing.
fn hidden(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let selects_hidden = |w: &[Word]| w[0].text == "-name" && w[1].text.starts_with('.');
    let at = command.words.windows(2).position(selects_hidden)?;
    let is_negated = at.checked_sub(1).is_some_and(|at| matches!(command.words[at].text.as_str(), "!" | "-not"));
    let has_alternative = command.args().iter().any(|w| matches!(w.text.as_str(), "-o" | "-or" | "-prune"));
    let test = negated(command, &["-path", "-wholename"]).find(|w| w[2].text == "*/.*")?;
    let fix = test.iter().fold(Edits::new(cx.script), |edits, word| edits.replace(word, "")).apply();
    let why = "hidden files are asked for, and this leaves all of them out";
    (!is_negated && !has_alternative).then(|| warning("nothing-left", &test[2], why, fix))
}
