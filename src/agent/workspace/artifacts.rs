//! The runtime's side of a workspace: results that were too long for a prompt.

use super::{ARTIFACTS, Workspace};
use crate::observe::{Artifact, Artifacts};
use std::io;
use std::path::{Path, PathBuf};

/// The name of the file of an artifact's text.
pub(super) fn text_of(artifact: &Artifact) -> String {
    format!("{}.{}", artifact.id, artifact.extension)
}

/// The name of the file of what is known about one.
pub(super) fn meta_of(id: &str) -> String {
    format!("{id}.meta.json")
}

fn key(name: String) -> PathBuf {
    Path::new(ARTIFACTS).join(name)
}

impl Workspace {
    /// Where an artifact's text is.
    pub(super) fn address_of(&self, artifact: &Artifact) -> PathBuf {
        self.storage.address(&key(text_of(artifact)))
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
        self.discard(&self.described(id)?)
    }

    /// Deletes one that is known: to find it each description would be read.
    pub(super) fn discard(&self, artifact: &Artifact) -> io::Result<()> {
        // first: what has no description is no artifact any more
        self.storage.remove(&key(meta_of(&artifact.id)))?;
        self.storage.remove(&key(text_of(artifact)))
    }
}

impl Artifacts for Workspace {
    fn put(&self, artifact: &Artifact, text: &str) -> io::Result<()> {
        self.storage.put(&key(text_of(artifact)), text.as_bytes())?;
        // last: an artifact is there once its description is
        self.storage.put(&key(meta_of(&artifact.id)), serde_json::to_string(artifact)?.as_bytes())
    }

    fn get(&self, id: &str) -> io::Result<String> {
        let bytes = self.storage.read(&key(text_of(&self.described(id)?)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self) -> io::Result<Vec<Artifact>> {
        let items = match self.storage.list(Path::new(ARTIFACTS)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let meta = |name: String| {
            let id = name.strip_suffix(".meta.json")?;
            let artifact = serde_json::from_slice::<Artifact>(&self.storage.read(&key(name.clone())).ok()?).ok()?;
            // what it says of itself names files: nobody's words lead elsewhere
            (artifact.id == id && ["json", "xml", "txt"].contains(&artifact.extension.as_str())).then_some(artifact)
        };
        let mut all: Vec<Artifact> = items.into_iter().filter_map(|(name, _)| meta(name)).collect();
        all.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(all)
    }

    fn place(&self, artifact: &Artifact) -> Option<PathBuf> {
        self.storage.is_local().then(|| self.address_of(artifact))
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
