//! Detects the kind of the standard tools: GNU, busybox or BSD.

use caro_shell::{Os, Target, Userland};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Tools that every Linux has and that differ most.
const TOOLS: [&str; 5] = ["ls", "find", "sed", "grep", "ps"];

/// Returns the target of commands on a system of that name with these programs.
pub fn target(os: &str, programs: &BTreeMap<String, PathBuf>) -> Target {
    let (os, userland) = match os {
        "Darwin" => (Os::MacOs, Userland::Bsd),
        "FreeBSD" => (Os::FreeBsd, Userland::Bsd),
        "Windows" => (Os::Windows, Userland::PowerShell),
        _ => (Os::Linux, linux(programs)),
    };
    Target { os, userland }
}

/// Returns busybox if most of these tools are applets: a Debian with busybox beside its own tools is GNU, and an
/// Alpine with a GNU `ls` added is busybox.
fn linux(programs: &BTreeMap<String, PathBuf>) -> Userland {
    let present: Vec<&PathBuf> = TOOLS.iter().filter_map(|tool| programs.get(*tool)).collect();
    let busybox = programs.get("busybox").and_then(|path| identity(path));
    let applets = present.iter().filter(|path| is_applet(path, busybox)).count();
    if 2 * applets > present.len() { Userland::Busybox } else { Userland::Gnu }
}

/// True for a link to busybox or toybox, symbolic or hard.
fn is_applet(path: &Path, busybox: Option<(u64, u64)>) -> bool {
    let named = |real: PathBuf| real.file_name().is_some_and(|n| n == "busybox" || n == "toybox");
    std::fs::canonicalize(path).is_ok_and(named) || (busybox.is_some() && identity(path) == busybox)
}

/// Returns device and inode.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Creates a directory with busybox, and the given tools as symbolic links, hard links or separate programs.
    fn programs(dir: &Path, symbolic: &[&str], hard: &[&str], own: &[&str]) -> BTreeMap<String, PathBuf> {
        let busybox = dir.join("busybox");
        std::fs::write(&busybox, "b").unwrap();
        symbolic.iter().for_each(|t| symlink("busybox", dir.join(t)).unwrap());
        hard.iter().for_each(|t| std::fs::hard_link(&busybox, dir.join(t)).unwrap());
        own.iter().for_each(|t| std::fs::write(dir.join(t), "own").unwrap());
        ["busybox"].iter().chain(symbolic).chain(hard).chain(own).map(|t| (t.to_string(), dir.join(t))).collect()
    }

    #[test]
    fn most_of_the_tools_decide() {
        let dir = || tempfile::tempdir().unwrap();
        type Tools = &'static [&'static str];
        let cases: [(Tools, Tools, Tools, Userland); 4] = [
            (&["ls", "find", "sed", "grep", "ps"], &[], &[], Userland::Busybox),
            (&[], &["find", "sed", "grep"], &["ls", "ps"], Userland::Busybox),
            (&[], &[], &["ls", "find", "sed", "grep", "ps"], Userland::Gnu),
            (&[], &[], &[], Userland::Gnu),
        ];
        for (symbolic, hard, own, expected) in cases {
            let dir = dir();
            assert_eq!(linux(&programs(dir.path(), symbolic, hard, own)), expected, "{symbolic:?} {hard:?} {own:?}");
        }
    }

    #[test]
    fn on_other_systems_the_system_decides() {
        let none = BTreeMap::new();
        assert_eq!(target("Darwin", &none).name(), "macos-bsd");
        assert_eq!(target("FreeBSD", &none).name(), "freebsd");
        assert_eq!(target("Windows", &none).name(), "windows");
        assert_eq!(target("Linux", &none).name(), "linux-gnu");
    }
}
