//! Finds the files that results name, which `them` and `each` in the next part refer to.

use crate::evidence::MAX_NAMED;
use crate::tool::{Outcome, ToolResult, normal};
use std::path::Path;

/// Returns the files below `root` that the results of read-only calls name, in order and as written there. A word
/// counts only if such a file exists. Results that are not complete are skipped.
pub(super) fn files(batch: &[ToolResult], root: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_look = |s: &&ToolResult| s.outcome == Outcome::Succeeded && s.call.effects.is_read_only();
    let is_bare = |name: &str| !name.contains('/');
    for one in batch.iter().filter(is_look).filter(|s| s.hash == caro_base::id::hash(&s.text)) {
        let reads = &one.call.effects.reads;
        let inner = |path: &&std::path::PathBuf| path.starts_with(root) && *path != root && path.is_dir();
        let folders: Vec<_> = reads.iter().filter(inner).collect();
        // names printed by `ls docs` are in `docs`, even if `root` has files with these names
        let place = |name: &str| {
            if folders.is_empty() || !is_bare(name) || reads.contains(&root.join(name)) {
                return is_file(name, root).then(|| name.to_owned());
            }
            let lies = folders.iter().find(|folder| is_file(&folder.join(name).to_string_lossy(), root))?;
            Some(lies.strip_prefix(root).ok()?.join(name).to_string_lossy().into_owned())
        };
        for line in one.text.lines().take(400) {
            let Some(name) = candidates(line).find_map(place) else { continue };
            if !found.contains(&name) {
                found.push(name);
            }
            if found.len() >= MAX_NAMED {
                return found;
            }
        }
    }
    found
}

/// Returns the parts of a line that may be a file name: the whole line, the text before the first colon
/// (`FILE:LINE:TEXT`), the text after the first word (a size, a count), and each word.
fn candidates(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim();
    let before = |word| str::split_once(word, ':').map(|(name, _)| name);
    let behind = line.split_once(char::is_whitespace).map(|(_, rest)| rest.trim_start());
    let words = line.split_whitespace().flat_map(move |word| [Some(word), before(word)]);
    [Some(line), before(line), behind].into_iter().chain(words).flatten()
}

/// Puts `./` before the folders in `root` that a part names, so that `in downloads` means the folder here and not the
/// user's folder of that name elsewhere.
pub(super) fn mark_local_folders(part: &str, root: &Path) -> String {
    const BEFORE: &[&str] =
        &["in", "into", "to", "from", "of", "below", "under", "inside", "within", "folder", "directory", "folders"];
    let mut before = "";
    let words = part.split(' ').map(|word| {
        let name = word.trim_end_matches([',', '.', ';', ':']);
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
        let here = plain && !name.starts_with(['.', '/']) && root.join(name).is_dir();
        let is_local = here && BEFORE.contains(&before.to_lowercase().as_str());
        before = word;
        if is_local { format!("./{word}") } else { word.to_owned() }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_file(name: &str, root: &Path) -> bool {
    let plain = !name.is_empty() && name.len() < 300 && !name.contains(char::is_control);
    // folders, `.` and words that are no files do not count
    plain && name.chars().any(char::is_alphabetic) && {
        let path = normal(root, name);
        path.starts_with(root) && path != root && path.is_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Args, Call, Effects};

    #[test]
    fn results_name_existing_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("logs")).unwrap();
        for name in ["logs/web.log", "logs/two words.log", "total", "main.rs"] {
            std::fs::write(root.join(name), "x").unwrap();
        }
        let names = |text: &str| {
            let call = Call { id: "s1c1".into(), tool: "shell".into(), args: Args::new(), effects: Effects::default() };
            let hash = caro_base::id::hash(text);
            files(&[ToolResult { call, outcome: Outcome::Succeeded, text: text.into(), hash, ms: 0 }], &root)
        };
        assert_eq!(names("120 ./logs/web.log\n7 ./logs/two words.log\n"), ["./logs/web.log", "./logs/two words.log"]);
        assert_eq!(names("main.rs:5:fn main\nmain.rs:9: logs/web.log\n"), ["main.rs"]);
        assert_eq!(
            mark_local_folders("find the largest file in logs, and move it to logs", &root),
            "find the largest file in ./logs, and move it to ./logs"
        );
        let unchanged = "show logs in /var/log and in nowhere";
        assert_eq!(mark_local_folders(unchanged, &root), unchanged);
        std::fs::write(root.join("logs/main.rs"), "x").unwrap();
        let listed = |reads: &[&str], text: &str| {
            let effects = Effects { reads: reads.iter().map(|path| root.join(path)).collect(), ..Effects::default() };
            let call = Call { id: "s1c1".into(), tool: "shell".into(), args: Args::new(), effects };
            let hash = caro_base::id::hash(text);
            files(&[ToolResult { call, outcome: Outcome::Succeeded, text: text.into(), hash, ms: 0 }], &root)
        };
        assert_eq!(listed(&["logs"], "main.rs\nweb.log\n"), ["logs/main.rs", "logs/web.log"]);
        assert_eq!(listed(&["logs", "main.rs"], "main.rs\n"), ["main.rs"]);
        assert_eq!(listed(&["logs"], "total\n"), [""; 0], "that is here, and not there");
        assert_eq!(names("no.log 5\n../../etc/passwd\n/etc/passwd\nlogs\n.\n"), [""; 0]);
    }
}
