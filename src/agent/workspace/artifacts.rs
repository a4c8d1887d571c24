//! The runtime's side of a workspace: results that were too long for a prompt.

use super::Workspace;
use crate::agent::observe::{Artifact, Artifacts};
use std::fs;
use std::io;
use std::path::PathBuf;

impl Workspace {
    /// The file of an artifact's text.
    pub(super) fn text_of(&self, artifact: &Artifact) -> PathBuf {
        self.artifacts().join(format!("{}.{}", artifact.id, artifact.extension))
    }

    /// The file of what is known about one.
    pub(super) fn meta_of(&self, id: &str) -> PathBuf {
        self.artifacts().join(format!("{id}.meta.json"))
    }

    fn described(&self, id: &str) -> io::Result<Artifact> {
        let found = self.list()?.into_iter().find(|artifact| artifact.id == id);
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Deletes an artifact.
    ///
    /// # Errors
    /// `NotFound` if there is none of that id; or if it cannot be deleted.
    pub fn remove(&self, id: &str) -> io::Result<()> {
        let artifact = self.described(id)?;
        // first: what has no description is no artifact any more
        fs::remove_file(self.meta_of(id))?;
        fs::remove_file(self.text_of(&artifact))
    }
}

impl Artifacts for Workspace {
    fn put(&self, artifact: &Artifact, text: &str) -> io::Result<()> {
        self.put_file(&self.text_of(artifact), text.as_bytes())?;
        // last: an artifact is there once its description is
        self.put_file(&self.meta_of(&artifact.id), serde_json::to_string(artifact)?.as_bytes())
    }

    fn get(&self, id: &str) -> io::Result<String> {
        let bytes = fs::read(self.text_of(&self.described(id)?))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self) -> io::Result<Vec<Artifact>> {
        let entries = match fs::read_dir(self.artifacts()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let meta = |e: fs::DirEntry| {
            let name = e.file_name().to_string_lossy().into_owned();
            let id = name.strip_suffix(".meta.json")?;
            let artifact = serde_json::from_slice::<Artifact>(&fs::read(e.path()).ok()?).ok()?;
            // what it says of itself names files: nobody's words lead elsewhere
            (artifact.id == id && ["json", "xml", "txt"].contains(&artifact.extension.as_str())).then_some(artifact)
        };
        let mut all: Vec<Artifact> = entries.flatten().filter_map(meta).collect();
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(all)
    }

    fn place(&self, artifact: &Artifact) -> Option<PathBuf> {
        Some(self.text_of(artifact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_outlive_the_process_and_half_ones_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let artifact = Artifact {
            id: "shell_1".into(),
            extension: "txt".into(),
            tool: "shell".into(),
            call: "s1c1".into(),
            bytes: 1,
            tokens: 1,
            lines: 1,
            created: 5,
        };
        Workspace::open(dir.path().into()).put(&artifact, "whole").unwrap();
        std::fs::write(dir.path().join("artifacts/shell_2.txt"), "cut off").unwrap();
        let forged = Artifact { id: "../../other".into(), ..artifact.clone() };
        std::fs::write(dir.path().join("artifacts/x.meta.json"), serde_json::to_string(&forged).unwrap()).unwrap();
        let again = Workspace::open(dir.path().into());
        assert_eq!(again.list().unwrap(), [artifact]);
        assert_eq!(again.get("shell_1").unwrap(), "whole");
        assert_eq!(again.get("shell_2").unwrap_err().kind(), io::ErrorKind::NotFound);
        again.remove("shell_1").unwrap();
        assert_eq!(again.remove("shell_1").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!dir.path().join("artifacts/shell_1.txt").exists());
    }
}
