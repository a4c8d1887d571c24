//! `rename 's/ /_/g' *.mp3` where there is no `rename`: a loop with `mv` does the same with what every system has.
//!
//! Two programs have that name: Perl's takes an expression, that of util-linux two words. Either is understood as far as
//! `sed` can do it; what needs Perl is left alone.

use super::CheckContext;
use super::edit::Edits;
use caro_shell::parse::How;
use caro_shell::{Dialect, Invocation, Word};

/// The command with a loop in the place of its one `rename`; `None` where that cannot be written.
pub(super) fn as_loop(it: &CheckContext) -> Option<String> {
    let commands = &it.script.commands;
    let mut calls = commands.iter().filter(|c| matches!(c.name(), Some("rename" | "prename" | "file-rename")));
    let rename = calls.next().filter(|_| calls.next().is_none())?;
    if !matches!(it.dialect, Dialect::Bash | Dialect::Zsh | Dialect::Sh) {
        return None;
    }
    let (filter, files) = parts(rename)?;
    match rename.inside {
        None if commands.len() == 1 && !files.is_empty() => {
            let list: Vec<&str> = files.iter().map(|w| w.raw.as_str()).collect();
            let body = body(&filter, files.iter().any(|w| w.text.contains('/')));
            Edits::new(it.script).span(&rename.words, &format!("for f in {}; do {body}; done", list.join(" "))).done()
        }
        Some(inside) if inside.how == How::Wrapped && commands.len() == 2 => {
            let search = commands.get(inside.command).filter(|c| c.name() == Some("find"))?;
            let exec = search.words.iter().position(|w| w.text == "-exec" || w.text == "-execdir")?;
            // the expression ends with the call: nothing stands behind it but its end
            let ends = search.words.get(exec + 1).is_some_and(|w| matches!(w.text.as_str(), ";" | "+"));
            let only_name = files.len() == 1 && files[0].text == "{}";
            if !ends || !only_name || search.words.len() != exec + 2 || search.pipe.is_some_and(|p| p.length > 1) {
                return None;
            }
            let before = it.script.text.get(search.span().start..search.words[exec].span.start)?.trim_end();
            Some(format!("{before} | while IFS= read -r f; do {}; done", body(&filter, true)))
        }
        _ => None,
    }
}

/// What makes the new name out of the old one, as a command, and the files.
fn parts(rename: &Invocation) -> Option<(String, &[Word])> {
    let mut args = rename.args();
    while let Some((first, rest)) = args.split_first()
        && matches!(first.text.as_str(), "-v" | "--verbose" | "-f" | "--force" | "-e" | "--")
    {
        args = rest;
    }
    let (expression, rest) = args.split_first()?;
    let text = expression.value.as_deref()?;
    if let Some(letters) = text.strip_prefix("y/").or_else(|| text.strip_prefix("tr/")) {
        let [from, to, ""] = letters.split('/').collect::<Vec<_>>()[..] else { return None };
        let plain = |set: &str| !set.is_empty() && set.chars().all(|c| c.is_ascii_alphanumeric() || " _-".contains(c));
        return (plain(from) && plain(to)).then(|| (format!("tr '{from}' '{to}'"), rest));
    }
    if text.starts_with("s/") {
        let mended = text.replace("\\d", "[0-9]").replace("$1", "\\1").replace("$2", "\\2");
        // what only Perl knows, and what would not fit between these quotes
        let foreign = ["(?", "\\K", "\\U", "\\L", "\\u", "\\l", "\\Q", "$", "'", "\n", ".*?", "+?", "\\b"];
        let sum = mended.matches('/').count() - mended.matches("\\/").count();
        let flags = mended.rsplit('/').next()?;
        // an anchor at the end of the pattern is everybody's
        let body = mended.replace("$/", "/");
        let fits = sum == 3 && matches!(flags, "" | "g") && !foreign.iter().any(|f| body.contains(f));
        return fits.then(|| (format!("sed -E '{mended}'"), rest));
    }
    // util-linux: the first place of one text becomes another
    let (to, files) = rest.split_first()?;
    let plain = |w: &Word| {
        w.value.as_deref().is_some_and(|v| v.chars().all(|c| c.is_ascii_alphanumeric() || " _-.".contains(c)))
    };
    let literal = |text: &str| text.replace('.', "\\.");
    (plain(expression) && plain(to) && !text.is_empty())
        .then(|| (format!("sed 's/{}/{}/'", literal(text), to.text), files))
}

/// Renames `$f`, or only its last part where it may have a folder; never over another file.
fn body(filter: &str, has_folder: bool) -> String {
    if has_folder {
        format!(r#"b=${{f##*/}}; n=$(printf '%s\n' "$b" | {filter}); [ "$n" = "$b" ] || mv -n -- "$f" "${{f%/*}}/$n""#)
    } else {
        format!(r#"n=$(printf '%s\n' "$f" | {filter}); [ "$n" = "$f" ] || mv -n -- "$f" "$n""#)
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::check;
    use super::super::tests::findings_among;

    const HERE: &[&str] = &["find", "mv", "sed", "tr"];

    fn mended(line: &str) -> Option<String> {
        findings_among(HERE, check, "", line).into_iter().find_map(|f| f.fix)
    }

    /// The names in a folder after a line that is mended has run there.
    fn after(files: &[&str], line: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let line = mended(line).unwrap_or_else(|| panic!("{line} is not mended"));
        let job = caro_exec::Job {
            args: vec!["-c".into(), line.clone().into()],
            cwd: Some(dir.path().into()),
            sandbox: caro_exec::Sandbox::None,
            ..caro_exec::Job::new("bash")
        };
        let output = caro_exec::capture_blocking(&job).unwrap();
        assert!(output.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        let mut names: Vec<String> = walkdir(dir.path(), dir.path());
        names.sort();
        names
    }

    fn walkdir(root: &std::path::Path, folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        entries
            .flat_map(|path| match path.is_dir() {
                true => walkdir(root, &path),
                false => vec![path.strip_prefix(root).unwrap().display().to_string()],
            })
            .collect()
    }

    #[cfg(unix)]
    #[test]
    fn a_loop_renames_as_the_program_would() {
        let music = ["Music/one two three.mp3", "Music/four.mp3"];
        assert_eq!(after(&music, "rename 's/ /_/g' Music/*.mp3"), ["Music/four.mp3", "Music/one_two_three.mp3"]);
        assert_eq!(after(&["a b.txt", "c.txt"], "rename -v 's/ /-/' *"), ["a-b.txt", "c.txt"]);
        assert_eq!(after(&["IMG_1.JPG"], "rename 'y/A-Z/a-z/' *"), ["img_1.jpg"]);
        assert_eq!(after(&["a.jpeg"], "rename .jpeg .jpg *.jpeg"), ["a.jpg"]);
        let raw = ["raw/A.DAT", "raw/sub/B.DAT"];
        let find = "find raw -maxdepth 1 -type f -name '*.DAT' -exec rename 's/\\.DAT$/.dat/' {} +";
        assert_eq!(after(&raw, find), ["raw/A.dat", "raw/sub/B.DAT"]);
        assert_eq!(after(&["x/test_a.c"], "find x -exec rename 's/test_(.*)\\.c/$1_test.c/' {} \\;"), ["x/a_test.c"]);
        // nothing is written over
        assert_eq!(after(&["a b", "a_b"], "rename 's/ /_/' *"), ["a b", "a_b"]);
    }

    #[test]
    fn what_needs_perl_is_left_alone() {
        for line in [
            "rename 's/(.*)/\\U$1/' *",
            "rename '$_ = lc' *",
            "rename 's/a/b/e' *",
            "rename 's/a/b/'",
            "ls | xargs rename 's/a/b/'",
            "find . -exec rename 's/a/b/' {} + | wc -l",
        ] {
            assert_eq!(mended(line), None, "{line}");
        }
    }
}
