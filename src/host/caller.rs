//! Detects the calling shell: the nearest ancestor process that is a shell, else `$SHELL`, which is only the login
//! shell and is the same in a fish started from bash.

use super::{Ambient, ShellInfo, system};
use caro_shell::Dialect;
use std::path::{Path, PathBuf};

/// Most ancestors that are examined; terminals, editors, `make`, `env`, `sudo` may come before the shell.
const MAX_ANCESTORS: usize = 24;

/// An ancestor process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    /// The name it runs under; for busybox, the applet's.
    name: String,
    /// Its program file, if known.
    program: Option<PathBuf>,
    parent: u32,
}

/// Returns the calling shell.
pub fn detect(ambient: &Ambient) -> ShellInfo {
    let found = match ambient.parent {
        Some(parent) if cfg!(target_os = "linux") => nearest(parent, |pid| from_proc(&ambient.root.join("proc"), pid)),
        Some(parent) if cfg!(unix) => {
            let table = ps_table();
            nearest(parent, |pid| table.get(&pid).cloned())
        }
        _ => None,
    };
    found.unwrap_or_else(|| fallback(ambient))
}

/// Returns the shell if no ancestor is one: `$SHELL`, that of `/etc/passwd`, or `sh`.
pub fn fallback(ambient: &Ambient) -> ShellInfo {
    let login = || {
        let fields = system::passwd_fields(&ambient.root, ambient.uid?)?;
        Some(PathBuf::from(&fields[6]))
    };
    let of_file = |path: PathBuf| shell(path.file_name()?.to_str()?, Some(path.clone()));
    let default = if cfg!(windows) { "powershell" } else { "sh" };
    ambient
        .shell
        .clone()
        .map(PathBuf::from)
        .and_then(of_file)
        .or_else(|| login().and_then(of_file))
        .or_else(|| shell(default, None))
        .unwrap_or(ShellInfo { name: default.to_string(), path: None, dialect: Dialect::Sh })
}

fn shell(name: &str, path: Option<PathBuf>) -> Option<ShellInfo> {
    let dialect = Dialect::of_program(name)?;
    let name = name.trim_start_matches('-').to_string();
    Some(ShellInfo { name, path: path.filter(|p| p.is_absolute()), dialect })
}

/// Walks up from `pid` to the first process that is a shell, by its name or by its program.
fn nearest(mut pid: u32, process_of: impl Fn(u32) -> Option<Process>) -> Option<ShellInfo> {
    for _ in 0..MAX_ANCESTORS {
        let process = process_of(pid)?;
        let file = process.program.as_deref().and_then(Path::file_name).and_then(|n| n.to_str());
        // a busybox that runs another applet (`timeout`) is no shell
        let by_file = file.filter(|f| *f != "busybox" && *f != "toybox");
        let named = |name: &str| shell(name, process.program.clone());
        if let Some(found) = named(&process.name).or_else(|| by_file.and_then(named)) {
            return Some(found);
        }
        pid = process.parent;
    }
    None
}

/// Reads a process from `/proc` (proc(5)).
fn from_proc(proc: &Path, pid: u32) -> Option<Process> {
    let dir = proc.join(pid.to_string());
    let stat = std::fs::read(dir.join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // `pid (name) state ppid ...`; the name may contain blanks and parentheses
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_string();
    let parent = tail.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // the suffix of the link if the program was replaced while it runs, for example by an upgrade
    let program = std::fs::read_link(dir.join("exe")).ok().map(|exe| match exe.to_str() {
        Some(text) => PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(text)),
        None => exe,
    });
    Some(Process { name, program, parent })
}

type Table = std::collections::HashMap<u32, Process>;

/// Reads all processes from `ps`, on systems without `/proc`. Empty if that fails.
#[cfg(all(unix, not(target_os = "linux")))]
fn ps_table() -> Table {
    use caro_exec::{Job, Sandbox, capture_blocking};
    let job = Job { sandbox: Sandbox::None, ..Job::new("/bin/ps").args(["-axo", "pid=,ppid=,comm="]) };
    let output = capture_blocking(&job);
    output.map(|o| parse_ps(&String::from_utf8_lossy(&o.stdout))).unwrap_or_default()
}

#[cfg(not(all(unix, not(target_os = "linux"))))]
fn ps_table() -> Table {
    Table::new()
}

/// Parses `pid ppid comm` lines; `comm` is the program's path on macOS and may contain blanks.
#[cfg_attr(any(target_os = "linux", windows), allow(dead_code))]
fn parse_ps(text: &str) -> Table {
    let mut table = Table::new();
    for line in text.lines() {
        let mut fields = line.trim_start().splitn(2, ' ');
        let (Some(pid), Some(rest)) = (fields.next(), fields.next()) else { continue };
        let Some((parent, comm)) = rest.trim_start().split_once(' ') else { continue };
        if let (Ok(pid), Ok(parent)) = (pid.parse(), parent.parse()) {
            let program = PathBuf::from(comm.trim());
            let name = program.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            table.insert(pid, Process { name, program: Some(program), parent });
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, program: &str, parent: u32) -> Process {
        Process { name: name.into(), program: (!program.is_empty()).then(|| program.into()), parent }
    }

    fn walk(table: &[(u32, Process)], from: u32) -> Option<ShellInfo> {
        nearest(from, |pid| table.iter().find(|(p, _)| *p == pid).map(|(_, process)| process.clone()))
    }

    #[test]
    fn the_nearest_ancestor_that_is_a_shell_is_found() {
        let table = [
            (9, process("timeout", "/usr/bin/timeout", 8)),
            (8, process("fish", "/usr/bin/fish", 7)),
            (7, process("bash", "/usr/bin/bash", 1)),
        ];
        let found = walk(&table, 9).unwrap();
        assert_eq!((found.name.as_str(), found.dialect), ("fish", Dialect::Fish));
        assert_eq!(found.path.as_deref(), Some(Path::new("/usr/bin/fish")));
        assert_eq!(walk(&table[..1], 9), None);
    }

    #[test]
    fn a_script_is_its_interpreter_and_busybox_is_its_applet() {
        assert_eq!(walk(&[(5, process("deploy", "/bin/bash", 1))], 5).unwrap().dialect, Dialect::Bash);
        assert_eq!(walk(&[(5, process("ash", "/bin/busybox", 1))], 5).unwrap().name, "ash");
        assert_eq!(walk(&[(5, process("timeout", "/bin/busybox", 1))], 5), None);
        assert_eq!(walk(&[(5, process("-zsh", "-zsh", 1))], 5).unwrap().name, "zsh");
    }

    #[test]
    fn a_cycle_of_parents_terminates() {
        assert_eq!(walk(&[(5, process("a", "", 6)), (6, process("b", "", 5))], 5), None);
    }

    #[cfg(unix)]
    #[test]
    fn proc_is_read_with_hostile_names_and_replaced_programs() {
        let proc = tempfile::tempdir().unwrap();
        let dir = proc.path().join("42");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("stat"), b"42 (a) b (\xff) S 17 42 42 0 -1").unwrap();
        std::os::unix::fs::symlink("/usr/bin/zsh (deleted)", dir.join("exe")).unwrap();
        assert_eq!(from_proc(proc.path(), 42), Some(process("a) b (\u{fffd}", "/usr/bin/zsh", 17)));
        assert_eq!(from_proc(proc.path(), 43), None);
    }

    #[test]
    fn the_table_of_ps_is_parsed() {
        let table =
            parse_ps("    1     0 /sbin/launchd\n  501   1 /Applications/My Term.app/term\n 777 501 -zsh\nrubbish\n");
        assert_eq!(table.len(), 3);
        assert_eq!(table[&501].name, "term");
        assert_eq!(nearest(777, |pid| table.get(&pid).cloned()).unwrap().name, "zsh");
    }

    #[test]
    fn without_an_ancestor_the_login_shell_is_used() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/passwd"), "ana:x:1001:1001::/home/ana:/bin/zsh\n").unwrap();
        let mut ambient = Ambient {
            shell: Some("/usr/bin/fish".into()),
            root: root.path().into(),
            uid: Some(1001),
            parent: None,
            ..Ambient::of_process()
        };
        assert_eq!(detect(&ambient).name, "fish");
        ambient.shell = Some("/opt/xonsh".into());
        assert_eq!(detect(&ambient).name, "zsh");
        ambient.uid = Some(7);
        assert_eq!((detect(&ambient).name.as_str(), detect(&ambient).path), ("sh", None));
    }
}
