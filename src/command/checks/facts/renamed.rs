//! Replaces `rename 's/ /_/g' *.mp3` by a loop with `mv` on systems without `rename`.
//!
//! Two programs have that name: Perl's takes an expression, that of util-linux two words. Both are replaced as far as
//! `sed` can do the same; what needs Perl is left alone.

use super::edit::Edits;
use super::{CheckContext, only};
use caro_shell::parse::How;
use caro_shell::{Dialect, Invocation, Word};

/// Returns the command with a loop in place of its only `rename`; `None` if that is not possible.
pub(super) fn as_loop(cx: &CheckContext) -> Option<String> {
    let commands = &cx.script.commands;
    let calls = commands.iter().filter(|c| matches!(c.name(), Some("rename" | "prename" | "file-rename")));
    let rename = only(calls)?;
    if !matches!(cx.dialect, Dialect::Bash | Dialect::Zsh | Dialect::Sh) {
        return None;
    }
    let (filter, files) = parts(rename)?;
    match rename.inside {
        None if commands.len() == 1 && !files.is_empty() => {
            let list: Vec<&str> = files.iter().map(|w| w.raw.as_str()).collect();
            let body = body(&filter, files.iter().any(|w| w.text.contains('/')));
            let text = format!("for f in {}; do {body}; done", list.join(" "));
            Edits::new(cx.script).replace_span(&rename.words, &text).apply()
        }
        Some(inside) if inside.how == How::Wrapped && commands.len() == 2 => {
            let search = commands.get(inside.command).filter(|c| c.name() == Some("find"))?;
            let exec = search.words.iter().position(|w| w.text == "-exec" || w.text == "-execdir")?;
            // the call is the last action of `find`, and the whole command
            let ends = search.words.get(exec + 1).is_some_and(|w| matches!(w.text.as_str(), ";" | "+"));
            let only_name = files.len() == 1 && files[0].text == "{}";
            if !ends || !only_name || search.words.len() != exec + 2 || search.pipe.is_some_and(|p| p.length > 1) {
                return None;
            }
            let before = cx.script.text.get(search.span().start..search.words[exec].span.start)?.trim_end();
            Some(format!("{before} | while IFS= read -r f; do {}; done", body(&filter, true)))
        }
        _ => None,
    }
}

/// Returns a filter command that turns the old name into the new one, and the files.
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
        let pattern = text.replace("\\d", "[0-9]").replace("$1", "\\1").replace("$2", "\\2");
        // forms that only Perl has, and characters that cannot be in these quotes
        let foreign = ["(?", "\\K", "\\U", "\\L", "\\u", "\\l", "\\Q", "$", "'", "\n", ".*?", "+?", "\\b"];
        let slashes = pattern.matches('/').count() - pattern.matches("\\/").count();
        let flags = pattern.rsplit('/').next()?;
        // an anchor at the end of the pattern is the same in Perl and sed
        let body = pattern.replace("$/", "/");
        let fits = slashes == 3 && matches!(flags, "" | "g") && !foreign.iter().any(|f| body.contains(f));
        return fits.then(|| (format!("sed -E '{pattern}'"), rest));
    }
    // util-linux replaces the first occurrence of a literal
    let (to, files) = rest.split_first()?;
    let plain = |w: &Word| {
        w.value.as_deref().is_some_and(|v| v.chars().all(|c| c.is_ascii_alphanumeric() || " _-.".contains(c)))
    };
    let literal = |text: &str| text.replace('.', "\\.");
    (plain(expression) && plain(to) && !text.is_empty())
        .then(|| (format!("sed 's/{}/{}/'", literal(text), to.text), files))
}

/// Returns the body of the loop: renames `$f`, only its last component if it may have a folder, and never overwrites
/// a file.
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

    fn fixed(line: &str) -> Option<String> {
        findings_among(HERE, check, "", line).into_iter().find_map(|f| f.fix)
    }

    /// Returns the names in a folder after the fixed line has run there.
    fn names_after(files: &[&str], line: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let line = fixed(line).unwrap_or_else(|| panic!("{line} is not fixed"));
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
        assert_eq!(names_after(&music, "rename 's/ /_/g' Music/*.mp3"), ["Music/four.mp3", "Music/one_two_three.mp3"]);
        assert_eq!(names_after(&["a b.txt", "c.txt"], "rename -v 's/ /-/' *"), ["a-b.txt", "c.txt"]);
        assert_eq!(names_after(&["IMG_1.JPG"], "rename 'y/A-Z/a-z/' *"), ["img_1.jpg"]);
        assert_eq!(names_after(&["a.jpeg"], "rename .jpeg .jpg *.jpeg"), ["a.jpg"]);
        let raw = ["raw/A.DAT", "raw/sub/B.DAT"];
        let find = "find raw -maxdepth 1 -type f -name '*.DAT' -exec rename 's/\\.DAT$/.dat/' {} +";
        assert_eq!(names_after(&raw, find), ["raw/A.dat", "raw/sub/B.DAT"]);
        assert_eq!(
            names_after(&["x/test_a.c"], "find x -exec rename 's/test_(.*)\\.c/$1_test.c/' {} \\;"),
            ["x/a_test.c"]
        );
        // no file is overwritten
        assert_eq!(names_after(&["a b", "a_b"], "rename 's/ /_/' *"), ["a b", "a_b"]);
    }

    #[test]
    fn expressions_that_need_perl_are_left_alone() {
        for line in [
            "rename 's/(.*)/\\U$1/' *",
            "rename '$_ = lc' *",
            "rename 's/a/b/e' *",
            "rename 's/a/b/'",
            "ls | xargs rename 's/a/b/'",
            "find . -exec rename 's/a/b/' {} + | wc -l",
        ] {
            assert_eq!(fixed(line), None, "{line}");
        }
    }
}
