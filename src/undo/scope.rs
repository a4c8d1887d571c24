//! Counts the files that a command would touch, within a time limit and without changing anything.

use super::index::Tracked;
use super::look;
use super::node::Kind;
use super::plan::{Target, Touch};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The time limit of the count.
pub const MOMENT: Duration = Duration::from_millis(200);

/// The totals of one kind of touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The kind.
    pub touch: Touch,
    /// The number of files and links.
    pub files: u64,
    /// The number of folders.
    pub folders: u64,
    /// The bytes of the files.
    pub bytes: u64,
    /// The folder that contains all of them.
    pub below: PathBuf,
    /// The number of files that git does not track, if they are in a repository.
    pub untracked: Option<u64>,
    /// True if there may be more: the time limit was reached, or something could not be read.
    pub more: bool,
}

/// Returns the totals of the targets by kind of touch, the worst first; absent paths are left out.
pub fn scopes(targets: &[Target], time: Duration) -> Vec<Scope> {
    let deadline = Instant::now() + time;
    let order = [Touch::Delete, Touch::Write, Touch::Move, Touch::Surface];
    order.into_iter().filter_map(|touch| scope(targets, touch, deadline)).collect()
}

fn scope(targets: &[Target], touch: Touch, deadline: Instant) -> Option<Scope> {
    let mut found = Vec::new();
    let mut more = false;
    let own: Vec<&Target> = targets.iter().filter(|t| t.touch == touch).collect();
    for target in &own {
        match look::walk(target, Some(deadline), &mut found) {
            Ok(true) => {}
            Ok(false) | Err(_) => more = true,
        }
        if Instant::now() > deadline {
            more = true;
            break;
        }
    }
    found.retain(|node| node.kind != Kind::Absent);
    if found.is_empty() && !more {
        return None;
    }
    let files: Vec<_> = found.iter().filter(|node| node.kind != Kind::Folder).collect();
    let below = common_folder(own.iter().map(|target| target.path.as_path()))?;
    let untracked = Tracked::of(&below).map(|tracked| {
        let unknown = files.iter().filter(|node| !tracked.has(&node.path)).count();
        unknown as u64
    });
    Some(Scope {
        touch,
        files: files.len() as u64,
        folders: (found.len() - files.len()) as u64,
        bytes: files.iter().filter(|node| node.kind == Kind::File).map(|node| node.size).sum(),
        below,
        untracked,
        more,
    })
}

/// Returns the folder that contains all paths; a single folder is returned itself.
fn common_folder<'p>(mut paths: impl Iterator<Item = &'p Path>) -> Option<PathBuf> {
    let first = paths.next()?;
    let mut common = first.to_path_buf();
    let mut is_only = true;
    for path in paths {
        is_only = false;
        while !path.starts_with(&common) {
            common.pop();
        }
    }
    if is_only && !first.is_dir() || !is_only && common == first {
        common.pop();
    }
    Some(common)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_and_bytes_are_counted_by_kind_of_touch() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("build/deep")).unwrap();
        fs::write(root.join("build/a"), "12345").unwrap();
        fs::write(root.join("build/deep/b"), "123").unwrap();
        fs::write(root.join("notes"), "1").unwrap();
        let targets = [
            Target::new(root.join("build"), Touch::Delete),
            Target::new(root.join("notes"), Touch::Write),
            Target::new(root.join("new"), Touch::Make),
        ];
        let [deleted, written] = scopes(&targets, Duration::from_secs(10)).try_into().unwrap();
        assert_eq!((deleted.files, deleted.folders, deleted.bytes), (2, 2, 8));
        assert_eq!((deleted.below, deleted.more, deleted.untracked), (root.join("build"), false, None));
        assert_eq!((written.touch, written.files, written.below), (Touch::Write, 1, root.clone()));
        // without time the count is incomplete
        assert!(scopes(&targets, Duration::ZERO)[0].more);
    }
}
