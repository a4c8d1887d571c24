//! A small temporary disk, where the system permits mounting one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A mounted tmpfs, which is unmounted on drop.
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Mounts a tmpfs of this size in a folder; `None` if that is not permitted (it takes root on Linux).
    pub fn mount(folder: &Path, size: &str) -> Option<Self> {
        let path = folder.join("disk");
        std::fs::create_dir(&path).unwrap();
        let mounted = cfg!(target_os = "linux")
            && run(&["mount", "-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", path.to_str().unwrap()]);
        mounted.then_some(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read_only(&self) {
        assert!(run(&["mount", "-o", "remount,ro", self.path.to_str().unwrap()]));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // lazily, since a failed test may still have a file open
        run(&["umount", "-l", self.path.to_str().unwrap()]);
    }
}

fn run(command: &[&str]) -> bool {
    let run = Command::new(command[0]).args(&command[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}
