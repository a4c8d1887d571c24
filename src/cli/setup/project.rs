//! Finds the files of a project: in the working directory, or above it up to the root of its repository.

use std::path::{Path, PathBuf};

/// Returns the folder and those above it up to the root of the repository; the folder alone without a repository.
pub fn folders(root: &Path) -> Vec<PathBuf> {
    match root.ancestors().position(|folder| folder.join(".git").exists()) {
        Some(top) => root.ancestors().take(top + 1).map(Path::to_path_buf).collect(),
        None => vec![root.to_path_buf()],
    }
}

/// Finds the nearest file or folder of that name.
pub fn nearest(root: &Path, name: &str) -> Option<PathBuf> {
    folders(root).into_iter().map(|folder| folder.join(name)).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_ends_at_its_root() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("repo/a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(dir.path().join(".mcp.json"), "").unwrap();
        assert_eq!(folders(&deep), std::slice::from_ref(&deep));
        std::fs::create_dir(dir.path().join("repo/.git")).unwrap();
        assert_eq!(folders(&deep).last().unwrap(), &dir.path().join("repo"));
        assert_eq!(nearest(&deep, ".mcp.json"), None, "what is above the repository is somebody else's");
        std::fs::write(dir.path().join("repo/.mcp.json"), "").unwrap();
        assert_eq!(nearest(&deep, ".mcp.json"), Some(dir.path().join("repo/.mcp.json")));
    }
}
