//! Stores artifacts in a workspace: results that were too long for a prompt.

use super::{ARTIFACTS, Workspace};
use crate::observe::{Artifact, Artifacts};
use std::io;
use std::path::{Path, PathBuf};

/// Returns the name of the file with an artifact's text.
pub(super) fn text_of(artifact: &Artifact) -> String {
    format!("{}.{}", artifact.id, artifact.extension)
}

/// Returns the name of the file with an artifact's description.
pub(super) fn meta_of(id: &str) -> String {
    format!("{id}.meta.json")
}

fn key(name: String) -> PathBuf {
    Path::new(ARTIFACTS).join(name)
}

impl Workspace {
    /// Returns the address of an artifact's text.
    pub(super) fn address_of(&self, artifact: &Artifact) -> PathBuf {
        self.storage.address(&key(text_of(artifact)))
    }

    /// Returns the description of an artifact.
    fn description(&self, id: &str) -> io::Result<Artifact> {
        let found = self.list()?.into_iter().find(|artifact| artifact.id == id);
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Deletes an artifact.
    ///
    /// # Errors
    /// `NotFound` if it does not exist, or another error if it cannot be deleted.
    pub fn remove(&self, id: &str) -> io::Result<()> {
        self.discard(&self.description(id)?)
    }

    /// Deletes an artifact whose description is known, without searching for it.
    pub(super) fn discard(&self, artifact: &Artifact) -> io::Result<()> {
        // first, since a text without a description does not count as an artifact
        self.storage.remove(&key(meta_of(&artifact.id)))?;
        self.storage.remove(&key(text_of(artifact)))
    }
}

impl Artifacts for Workspace {
    fn put(&self, artifact: &Artifact, text: &str) -> io::Result<()> {
        self.storage.put(&key(text_of(artifact)), text.as_bytes())?;
        // last, since an artifact exists once its description does
        self.storage.put(&key(meta_of(&artifact.id)), serde_json::to_string(artifact)?.as_bytes())
    }

    fn get(&self, id: &str) -> io::Result<String> {
        let bytes = self.storage.read(&key(text_of(&self.description(id)?)))?;
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
            // id and extension become file names: a forged description must not name other files
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
    fn artifacts_persist_and_partial_ones_do_not_count() {
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
