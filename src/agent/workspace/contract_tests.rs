//! Tests of the interface of a storage, run against each implementation: the local disk and, with the feature `s3`,
//! the crate's own store in memory and an S3-compatible server (`pip install 'moto[server]'`, and
//! `cargo test --lib workspace::`).

use super::*;
use crate::observe::{Artifact, Artifacts};
use std::any::Any;

/// An empty storage, and the resources that it needs.
struct Case {
    name: &'static str,
    root: Arc<dyn Storage>,
    _held: Box<dyn Any>,
}

impl Case {
    /// Opens the workspace like another process does: only the storage is shared.
    fn workspace(&self) -> Workspace {
        Workspace { storage: self.root.below("session_1") }
    }
}

fn local() -> Case {
    let dir = tempfile::tempdir().unwrap();
    Case { name: "local", root: Arc::new(local::Local::new(dir.path().join("data"))), _held: Box::new(dir) }
}

#[cfg(feature = "s3")]
fn in_memory() -> Option<Case> {
    let store = Arc::new(object_store::memory::InMemory::new());
    let root = remote::Remote::new(store, "memory:".into(), vec!["a folder".into()]);
    Some(Case { name: "in memory", root: Arc::new(root), _held: Box::new(()) })
}

#[cfg(not(feature = "s3"))]
fn in_memory() -> Option<Case> {
    println!("skipped: a store in memory, without the feature `s3`");
    None
}

/// A server for one test.
#[cfg(all(unix, feature = "s3"))]
mod server {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    struct Server(Child);

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    pub fn s3() -> Option<Case> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let spawned = Command::new("moto_server")
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = match spawned {
            Ok(child) => Server(child),
            Err(why) => {
                println!("skipped: moto_server does not start ({why}); `pip install 'moto[server]'` has it");
                return None;
            }
        };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "moto_server does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        let url = format!("http://127.0.0.1:{port}/bucket");
        ureq::put(&url).call().unwrap();
        let root = super::super::s3::open(Kind::S3, &format!("{url}/a folder"), ("id", "secret"), None).unwrap();
        Some(Case { name: "s3", root: Arc::new(root), _held: Box::new(server) })
    }

    #[test]
    fn an_unreachable_server_is_a_quick_error() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/bucket");
        let root: Arc<dyn Storage> = Arc::new(super::super::s3::open(Kind::S3, &url, ("id", "secret"), None).unwrap());
        let start = Instant::now();
        let said = Workspaces::of(root).names().unwrap_err().to_string();
        assert!(said.contains(&url) && !said.contains("secret"), "{said}");
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
}

#[cfg(not(all(unix, feature = "s3")))]
mod server {
    pub fn s3() -> Option<super::Case> {
        println!("skipped: S3, without the feature `s3`");
        None
    }
}

fn cases() -> Vec<Case> {
    [Some(local()), in_memory(), server::s3()].into_iter().flatten().collect()
}

#[test]
fn every_case_has_its_message() {
    for case in cases() {
        let workspace = case.workspace();
        let write = |path: &str, text: &str, mode: &str| workspace.write(path, text, Mode::named(mode));
        let cases = [
            (workspace.view(""), "(the workspace is empty)"),
            (write("a.md", "one", "append"), "there is no `a.md` in the workspace"),
            (write("a.md", "one", "overwrite"), "there is no `a.md` in the workspace"),
            (write("a.md", "one", "create"), "wrote `a.md` (4 bytes)"),
            (write("a.md", "two", "create"), "`a.md` exists already and begins: one\n. Use mode append or overwrite."),
            (write("a.md", "two", "append"), "wrote `a.md` (8 bytes)"),
            (write("a.md", "two\ntwo", "overwrite"), "wrote `a.md` (8 bytes)"),
            (workspace.replace("a.md", "two", "2"), "replaced 2 in `a.md`"),
            (workspace.replace("a.md", "two", "2"), "`two` does not stand in `a.md`"),
            (workspace.replace("a.md", "", "2"), "`` does not stand in `a.md`"),
            (workspace.replace("b.md", "two", "2"), "there is no `b.md` in the workspace"),
            // lines are counted from 1; numbers out of range are clamped
            (workspace.insert("a.md", 0, "first"), "inserted at line 1 of `a.md`"),
            (workspace.insert("a.md", 2, "second"), "inserted at line 2 of `a.md`"),
            (workspace.insert("a.md", 5, "fifth"), "inserted at line 5 of `a.md`"),
            (workspace.insert("a.md", 999, "last\nof all"), "inserted at line 6 of `a.md`"),
            (workspace.insert("b.md", 1, "x"), "there is no `b.md` in the workspace"),
            (workspace.view("a.md"), "first\nsecond\n2\n2\nfifth\nlast\nof all\n"),
            (workspace.rename("a.md", "sub/c.md"), "renamed `a.md` to `sub/c.md`"),
            (workspace.rename("a.md", "d.md"), "there is no `a.md` in the workspace"),
            (write("d.md", "", "create"), "wrote `d.md` (0 bytes)"),
            (
                workspace.rename("d.md", "sub/c.md"),
                "`sub/c.md` exists already and begins: (not shown). Use mode append or overwrite.",
            ),
            // a folder is not listed recursively
            (workspace.view("/"), "d.md\nsub/"),
            (workspace.view("sub"), "c.md"),
            (workspace.view("b.md"), "there is no `b.md` in the workspace"),
            (workspace.delete("b.md"), "there is no `b.md` in the workspace"),
            (workspace.delete(""), "there is no `` in the workspace"),
            (workspace.delete("sub"), "deleted `sub`"),
            (workspace.delete("../ws"), "`../ws` is outside of the workspace"),
            (workspace.clear(), "the workspace is empty now"),
            (workspace.clear(), "the workspace is empty now"),
            (workspace.view("files"), "(the workspace is empty)"),
        ];
        for (at, (said, golden)) in cases.into_iter().enumerate() {
            assert_eq!(said.unwrap_or_else(|e| e.to_string()), golden, "{}: case {at}", case.name);
        }
    }
}

#[test]
fn any_name_and_text_can_be_stored() {
    for case in cases() {
        let workspace = case.workspace();
        let names = ["a b", "ä#1", "100%", "x+y=z&q?", "a*[b]", "日本", "~tilde", "sub folder/in it"];
        for name in names {
            workspace.write(name, &format!("of {name}"), Mode::Create).unwrap();
        }
        for name in names {
            assert_eq!(workspace.text(name).unwrap(), format!("of {name}\n"), "{}", case.name);
            assert_eq!(workspace.size(name), Some(name.len() as u64 + 4), "{}: {name}", case.name);
        }
        let mut listed: Vec<String> = names[..7].iter().map(|name| (*name).to_owned()).collect();
        listed.push("sub folder/".into());
        listed.sort();
        let entries = workspace.entries("").unwrap();
        assert_eq!(entries.iter().map(|e| e.name.clone()).collect::<Vec<_>>(), listed, "{}", case.name);
        assert!(entries.iter().all(|e| e.bytes.is_none() == e.name.ends_with('/')), "{entries:?}");
        workspace.rename("sub folder", "moved").unwrap();
        assert_eq!(workspace.text("moved/in it").unwrap(), "of sub folder/in it\n", "{}", case.name);
        assert!(matches!(workspace.entries("sub folder"), Err(WorkspaceError::Missing(_))), "{}", case.name);
        assert!(matches!(workspace.text("%2E%2E/x"), Err(WorkspaceError::Outside(_))), "{}", case.name);
        let long = "line of it\n".repeat(100_000);
        workspace.write("long", &long, Mode::Create).unwrap();
        assert_eq!(workspace.text("long").unwrap(), long, "{}", case.name);
    }
}

fn artifact(id: &str, created: u64) -> Artifact {
    let (tool, call) = ("shell".into(), "s1c1".into());
    Artifact { id: id.into(), extension: "txt".into(), tool, call, bytes: 1, tokens: 1, lines: 1, created }
}

#[test]
fn artifacts_are_found_and_deleted_with_their_session() {
    for case in cases() {
        let all = Workspaces::of(case.root.clone());
        assert!(all.names().unwrap().is_empty() && all.artifacts(None).unwrap().is_empty(), "{}", case.name);
        all.forget("one").unwrap();
        let (one, two) = (all.open("one"), all.open("two/3"));
        one.put(&artifact("shell_1", 5), "whole").unwrap();
        one.write("note.md", "mine", Mode::Create).unwrap();
        two.put(&artifact("read_2", 6), "other").unwrap();
        let kept = all.artifacts(None).unwrap();
        let ids: Vec<&str> = kept.iter().map(|k| k.artifact.id.as_str()).collect();
        assert_eq!(ids, ["shell_1", "read_2"], "{}", case.name);
        assert!(kept[0].path.ends_with("one/artifacts/shell_1.txt"), "{}: {:?}", case.name, kept[0].path);
        assert!(kept[0].path.starts_with(all.folder("one")), "{}", case.name);
        assert_eq!(one.place(&kept[0].artifact).is_some(), all.is_local(), "{}", case.name);
        assert_eq!(all.artifact("read").unwrap().1.get("read_2").unwrap(), "other", "{}", case.name);
        assert_eq!(one.clear().unwrap(), "the workspace is empty now");
        assert_eq!(one.get("shell_1").unwrap(), "whole", "{}: artifacts stay", case.name);
        one.remove("shell_1").unwrap();
        assert_eq!(one.get("shell_1").unwrap_err().kind(), io::ErrorKind::NotFound, "{}", case.name);
        assert_eq!(two.get("read_2").unwrap(), "other", "{}", case.name);
        all.forget("two/3").unwrap();
        assert!(all.artifacts(None).unwrap().is_empty(), "{}", case.name);
        // only old artifacts are swept
        two.put(&artifact("old", 1), "x").unwrap();
        two.write("note.md", "mine", Mode::Create).unwrap();
        assert_eq!(all.sweep(RETENTION), 1, "{}", case.name);
        assert_eq!(two.text("note.md").unwrap(), "mine\n", "{}", case.name);
    }
}

/// Two workspaces of one storage behave like two processes.
#[test]
fn concurrent_writers_lose_no_text() {
    for case in cases() {
        case.workspace().write("log", "0 0", Mode::Create).unwrap();
        let rounds = if case.name == "s3" { 10 } else { 40 };
        std::thread::scope(|scope| {
            for writer in 1..=3 {
                let workspace = case.workspace();
                scope.spawn(move || {
                    for n in 0..rounds {
                        workspace.write("log", &format!("{writer} {n}"), Mode::Append).unwrap();
                        // of several writers that find a name free, one gets it
                        let taken = workspace.write(&format!("name {n}"), "mine", Mode::Create);
                        assert!(matches!(taken, Ok(_) | Err(WorkspaceError::Exists { .. })), "{taken:?}");
                        let _ = workspace.rename(&format!("name {n}"), &format!("other {n}"));
                    }
                });
            }
        });
        let workspace = case.workspace();
        assert_eq!(workspace.view("log").unwrap().lines().count(), 1 + 3 * rounds, "{}", case.name);
        let names = workspace.entries("").unwrap();
        assert!(names.iter().all(|e| !e.name.starts_with('.')), "{}: {names:?}", case.name);
        for n in 0..rounds {
            assert_eq!(workspace.text(&format!("other {n}")).unwrap(), "mine\n", "{}", case.name);
        }
    }
}

/// A read returns a complete version, never a partially written file.
#[test]
fn a_read_during_writes_is_complete() {
    for case in cases() {
        let size = 1 << 16;
        case.workspace().write("big", &"a".repeat(size), Mode::Create).unwrap();
        let rounds = if case.name == "s3" { 10 } else { 60 };
        std::thread::scope(|scope| {
            let workspace = case.workspace();
            let writer = scope.spawn(move || {
                for n in 0..rounds {
                    workspace.write("big", &["a", "b"][n % 2].repeat(size), Mode::Overwrite).unwrap();
                }
            });
            while !writer.is_finished() {
                let text = case.workspace().text("big").unwrap();
                let letter = text.chars().next().unwrap();
                assert!(text.len() == size + 1 && text.trim_end().chars().all(|c| c == letter), "{}", case.name);
            }
        });
    }
}
