//! Tests of the storage contract, run against every backend. Redis runs as a real server: install the Debian package
//! `redis-server` and run `cargo test --lib memory::`.

use super::backend::{Backend, SearchSource, StoredNote};
use super::in_memory::InMemory;
use super::sqlite::Sqlite;
use super::*;
use crate::chat::Originals;
use caro_model::ModelError;
use caro_model::embed::Hashed;

/// An empty backend, a second handle to the same storage if it can be shared, and a guard that keeps it alive.
struct Case {
    backend: Arc<dyn Backend>,
    second: Option<Arc<dyn Backend>>,
    _keep_alive: Box<dyn std::any::Any>,
}

fn in_memory() -> Case {
    Case { backend: Arc::new(InMemory::default()), second: None, _keep_alive: Box::new(()) }
}

fn sqlite() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let open = || Arc::new(Sqlite::new(dir.path().join("data/memory.db"))) as Arc<dyn Backend>;
    Case { backend: open(), second: Some(open()), _keep_alive: Box::new(dir) }
}

/// A Redis server for one test, on a socket in a folder of its own.
#[cfg(all(unix, feature = "redis"))]
mod server {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};
    use tempfile::TempDir;

    struct Server(Child, #[allow(dead_code)] TempDir);

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    pub fn redis() -> Option<Case> {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let spawned = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--requirepass", "secret word"])
            .arg("--unixsocket")
            .arg(&socket)
            .arg("--dir")
            .arg(dir.path())
            .stdout(Stdio::null())
            .spawn();
        let child = match spawned {
            Ok(child) => child,
            Err(why) => {
                println!("skipped: redis-server does not start ({why}); the Debian package redis-server has it");
                return None;
            }
        };
        let server = Server(child, dir);
        let started = Instant::now();
        while !socket.exists() {
            assert!(started.elapsed() < Duration::from_secs(60), "redis-server opens no socket");
            std::thread::sleep(Duration::from_millis(10));
        }
        let url = format!("redis+unix://{}?pass=secret%20word", socket.display());
        let open = || {
            let place = Place { kind: Kind::Redis, url: Some(url.clone()), file: None };
            let (backend, warning) = place.open().unwrap();
            assert_eq!((backend.name(), warning), ("redis", None));
            backend
        };
        Some(Case { backend: open(), second: Some(open()), _keep_alive: Box::new(server) })
    }

    #[test]
    fn connection_errors_name_the_server_without_its_password() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("redis+unix://{}/none?pass=hunter2", dir.path().display());
        let (backend, _) = Place { kind: Kind::Redis, url: Some(url), file: None }.open().unwrap();
        let message = backend.notes(9).unwrap_err().to_string();
        assert!(message.contains("/none") && !message.contains("hunter2"), "{message}");
        let wrong = Place { kind: Kind::Redis, url: Some("http://u:hunter2@x".into()), file: None }.open();
        let message = wrong.err().unwrap().to_string();
        assert!(message.contains("memory_url") && !message.contains("hunter2"), "{message}");
    }
}

#[cfg(not(all(unix, feature = "redis")))]
mod server {
    pub fn redis() -> Option<super::Case> {
        println!("skipped: Redis, without the feature `redis`");
        None
    }
}

fn cases() -> Vec<Case> {
    [Some(in_memory()), Some(sqlite()), server::redis()].into_iter().flatten().collect()
}

fn memory(case: &Case, embedder: Option<Arc<dyn Embedder>>) -> Memory {
    Memory::new(case.backend.clone(), embedder)
}

fn draft_of(content: &str) -> Draft {
    Draft { content: content.into(), ..Draft::default() }
}

fn found(memory: &Memory, text: &str) -> Vec<String> {
    memory.query(text, 5).unwrap().into_iter().map(|r| r.note.draft.content).collect()
}

#[test]
fn notes_are_stored_found_listed_and_removed() {
    for case in cases() {
        let memory = memory(&case, None);
        let name = memory.backend();
        assert!(memory.list(9).unwrap().is_empty() && memory.query("x", 5).unwrap().is_empty(), "{name}");
        assert!(name == "redis" || !memory.exists(), "{name}: to look makes nothing");
        let draft = Draft {
            title: "Staging".into(),
            category: Category::Architecture,
            content: "The staging server is called gopher.\nIt runs Debian: ünïcode, \"quotes\", \\ and \0.".into(),
            tags: vec!["hosts".into(), " ".into()],
            related_files: vec!["/etc/hosts".into()],
            run: "run_1".into(),
        };
        let note = memory.remember(draft).unwrap();
        assert!(memory.exists(), "{name}");
        assert_eq!(note.draft.tags, ["hosts"]);
        let later = memory.remember(draft_of("Cake needs sugar.")).unwrap();
        assert_eq!(memory.query("which server is staging", 5).unwrap()[0].note, note, "{name}");
        assert_eq!(found(&memory, "hosts").len(), 1, "{name}: by its tag");
        assert_eq!(found(&memory, "serv").len(), 1, "{name}: by the beginning of a word");
        assert!(found(&memory, "giraffe").is_empty(), "{name}");
        assert_eq!(memory.list(9).unwrap(), [later.clone(), note.clone()], "{name}: the latest first");
        assert_eq!(memory.list(1).unwrap(), [later], "{name}");
        assert_eq!(memory.forget(&note.id).unwrap(), note, "{name}");
        assert!(found(&memory, "staging").is_empty(), "{name}");
        assert!(matches!(memory.forget(&note.id), Err(LibraryError::Missing(_))), "{name}");
        assert!(!case.backend.remove(&note).unwrap(), "{name}");
    }
}

#[test]
fn a_word_within_a_sentence_without_spaces_is_found() {
    for case in cases() {
        let (memory, name) = (memory(&case, None), case.backend.name());
        let (other, meeting) = ("毎週月曜日に掃除します", "会議は月曜日の朝九時に東京で行われます");
        for note in [other, meeting, "cake needs sugar"] {
            memory.remember(draft_of(note)).unwrap();
        }
        for word in ["会議", "東京"] {
            assert_eq!(found(&memory, word), [meeting], "{name}: {word}");
        }
        assert_eq!(found(&memory, "月曜日 東京"), [meeting, other], "{name}: who has more of the words comes first");
        assert!(found(&memory, "大阪").is_empty() && found(&memory, "suga").len() == 1, "{name}");
    }
}

#[test]
fn duplicates_are_stored_once_and_blank_notes_not_at_all() {
    for case in cases() {
        let memory = memory(&case, Some(Arc::new(Hashed)));
        let first = memory.remember(draft_of("gopher is staging")).unwrap();
        memory.remember(draft_of("cake needs sugar")).unwrap();
        // explicit times: within one millisecond the order would be that of the numbers
        let later = Note { id: "note_x".into(), updated: first.updated + 5000, ..first.clone() };
        let again = case.backend.save(&later).unwrap();
        assert_eq!((&again.id, again.created, again.updated), (&first.id, first.created, first.updated + 5000));
        assert_eq!(memory.list(9).unwrap()[0], again, "{}: its time is renewed", memory.backend());
        memory.remember(draft_of("  gopher is staging\n")).unwrap();
        assert_eq!(memory.list(9).unwrap().len(), 2, "{}", memory.backend());
        assert!(matches!(memory.remember(draft_of(" \n")), Err(LibraryError::Blank(_))));
        let long = memory.remember(Draft { title: "ä".repeat(200), ..draft_of(&"ö".repeat(9000)) }).unwrap();
        let lengths = (long.draft.title.chars().count(), long.draft.content.chars().count());
        assert_eq!(lengths, (MAX_TITLE_CHARS, MAX_CONTENT_CHARS));
    }
}

#[test]
fn storing_a_note_again_merges_its_tags_and_files() {
    for case in cases() {
        let (memory, name) = (memory(&case, Some(Arc::new(Hashed))), case.backend.name());
        let with = |tags: &[&str], category| Draft {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            related_files: tags.iter().map(|tag| format!("/{tag}")).collect(),
            category,
            ..draft_of("gopher is staging")
        };
        let first = memory.remember(with(&["hosts"], Category::Insight)).unwrap();
        let again = memory.remember(with(&["rodents", "hosts"], Category::Architecture)).unwrap();
        assert_eq!((&again.id, again.created), (&first.id, first.created), "{name}");
        let last = memory.remember(with(&[], Category::Insight)).unwrap();
        assert_eq!(last.draft, with(&["hosts", "rodents"], Category::Architecture).tidy().unwrap(), "{name}");
        assert_eq!(memory.list(9).unwrap(), [last], "{name}");
        assert_eq!(found(&memory, "rodents").len(), 1, "{name}: by its new tag");
        assert_eq!(vectors(&*case.backend).1, 1, "{name}: its vector stays");
    }
}

#[test]
fn exceeded_limits_are_reported() {
    assert_eq!(draft_of(&"ö".repeat(MAX_CONTENT_CHARS)).over(), None);
    let over = |draft: Draft| draft.over().unwrap();
    assert!(over(draft_of(&"ö".repeat(MAX_CONTENT_CHARS + 1))).contains("has 4001"));
    assert!(over(Draft { title: "t".repeat(MAX_TITLE_CHARS + 1), ..draft_of("x") }).contains("title"));
    assert!(over(Draft { tags: vec!["t".into(); 25], ..draft_of("x") }).contains("20 tags"));
    assert!(over(Draft { related_files: vec!["f".repeat(300)], ..draft_of("x") }).contains("files"));
}

#[test]
fn an_unambiguous_prefix_of_an_id_is_enough() {
    for case in cases() {
        let memory = memory(&case, None);
        let (a, b) = (memory.remember(draft_of("one")).unwrap(), memory.remember(draft_of("two")).unwrap());
        assert!(matches!(memory.forget("note_"), Err(LibraryError::Ambiguous { found, .. }) if found.len() == 2));
        assert!(matches!(memory.forget(""), Err(LibraryError::Missing(_))));
        let shared = a.id.bytes().zip(b.id.bytes()).take_while(|(x, y)| x == y).count();
        assert_eq!(memory.forget(&a.id[..=shared]).unwrap(), a);
    }
}

/// An embedder with another id than [`Hashed`].
struct Other;

impl Embedder for Other {
    fn id(&self) -> &str {
        "other"
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        Hashed.embed(texts)
    }
}

fn vectors(backend: &dyn Backend) -> (Option<String>, usize) {
    match backend.search_source(None).unwrap() {
        SearchSource::Index(sql) => (sqlite::INDEX.embedder(&sql).unwrap(), sqlite::INDEX.vectors(&sql).unwrap()),
        SearchSource::Notes(snapshot) => (snapshot.embedder, snapshot.vectors.len()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn notes_kept_without_an_embedder_get_their_vectors_later() {
    for case in cases() {
        let name = case.backend.name();
        memory(&case, None).remember(draft_of("the cat sat on the mat")).unwrap();
        let hashed = memory(&case, Some(Arc::new(Hashed)));
        assert!(hashed.query("cat", 5).unwrap()[0].score >= 0.99, "{name}");
        let bark = hashed.remember(draft_of("dogs bark")).unwrap();
        assert_eq!(vectors(&*case.backend), (Some(Hashed.id().to_owned()), 2), "{name}");
        let other = memory(&case, Some(Arc::new(Other)));
        let bare = case.backend.without_vectors("other", 9).unwrap();
        assert_eq!(bare.iter().map(|n: &StoredNote| n.number).collect::<Vec<_>>(), [2, 1], "{name}");
        other.remember(draft_of("birds sing")).unwrap();
        assert_eq!(vectors(&*case.backend), (Some("other".into()), 3), "{name}: another's are dropped, all are made");
        other.forget(&bark.id).unwrap();
        assert_eq!(vectors(&*case.backend).1, 2, "{name}");
        case.backend.embed("third", &[(1, vec![1.0])]).unwrap();
        assert_eq!(vectors(&*case.backend), (Some("third".into()), 1), "{name}");
    }
}

/// Results and scores do not depend on the backend.
#[test]
fn every_backend_finds_the_same_in_the_same_order() {
    let mut all: Vec<(&str, Vec<(String, f64)>)> = Vec::new();
    for case in cases() {
        let memory = memory(&case, Some(Arc::new(Hashed)));
        for n in 0..30 {
            memory
                .remember(draft_of(&format!("host number {} serves {} in hall {n}", n % 7, ["mail", "web"][n % 2])))
                .unwrap();
        }
        let mut answers = Vec::new();
        for question in ["which host serves mail", "hall 12", "num", "giraffe", "", "web \"AND ( NEAR"] {
            let found = memory.query(question, 7).unwrap();
            answers.extend(found.into_iter().map(|r| (r.note.draft.content, r.score)));
        }
        assert!(answers.len() > 20, "{}: {}", memory.backend(), answers.len());
        all.push((memory.backend(), answers));
    }
    for (name, answers) in &all {
        assert_eq!(answers, &all[0].1, "{name} and {}", all[0].0);
    }
}

fn exchange(n: usize) -> Exchange {
    Exchange { run: format!("run_{n}"), asked: format!("question {n}?"), answered: format!("answer \"{n}\"\nü") }
}

fn exchanges(memory: &Memory, session: &str, agent: &str) -> Vec<Exchange> {
    memory.past(ConversationKey { session, agent }, 99).unwrap().exchanges
}

#[test]
fn conversations_are_separate_per_session_and_agent() {
    for case in cases() {
        let (memory, name) = (memory(&case, None), case.backend.name());
        let key = |session, agent| ConversationKey { session, agent };
        memory.forget_session("s").unwrap();
        assert_eq!(memory.past(key("s", "chat"), 9).unwrap(), Past::default(), "{name}");
        for n in 0..12 {
            memory.add_exchange(key("s", "chat"), &exchange(n)).unwrap();
        }
        memory.add_exchange(key("s", "agent"), &exchange(100)).unwrap();
        // names that are equal when joined are still different conversations
        memory.add_exchange(key("s:chat", ""), &exchange(200)).unwrap();
        memory.add_exchange(key("s\",\"chat", "x"), &exchange(300)).unwrap();
        let all: Vec<Exchange> = (0..12).map(exchange).collect();
        assert_eq!(exchanges(&memory, "s", "chat"), all, "{name}: oldest first");
        assert_eq!(memory.past(key("s", "chat"), 3).unwrap().exchanges, all[9..], "{name}: the latest");
        assert!(memory.past(key("s", "chat"), 0).unwrap().is_empty(), "{name}");
        assert_eq!(exchanges(&memory, "s", "agent"), [exchange(100)], "{name}");
        assert_eq!(exchanges(&memory, "s:chat", ""), [exchange(200)], "{name}");
        assert!(exchanges(&memory, "other", "chat").is_empty(), "{name}");
        // a continued run replaces its exchange
        let again = Exchange { answered: "again".into(), ..exchange(3) };
        memory.add_exchange(key("s", "chat"), &again).unwrap();
        let stored = exchanges(&memory, "s", "chat");
        assert_eq!((stored.len(), &stored[3]), (12, &again), "{name}");
        memory.forget_session("s").unwrap();
        assert!(exchanges(&memory, "s", "chat").is_empty(), "{name}");
        assert!(exchanges(&memory, "s", "agent").is_empty(), "{name}: whichever agent");
        assert_eq!(exchanges(&memory, "s:chat", "").len(), 1, "{name}: and no other session");
        assert!(memory.list(9).unwrap().is_empty(), "{name}: what is said is not a note");
    }
}

#[test]
fn folded_exchanges_are_no_longer_returned() {
    for case in cases() {
        let (memory, name) = (memory(&case, None), case.backend.name());
        let (key, other) =
            (ConversationKey { session: "s", agent: "chat" }, ConversationKey { session: "s", agent: "agent" });
        for n in 0..5 {
            memory.add_exchange(key, &exchange(n)).unwrap();
            memory.add_exchange(other, &exchange(n)).unwrap();
        }
        let (runs, two) = (["run_0".to_owned(), "run_1".into(), "run_77".into()], ["run_2".to_owned()]);
        let fold = |summary, runs, originals| memory.fold(key, Fold { summary, runs, originals }).unwrap();
        fold(Some("- they talked"), &runs, Originals::Keep);
        let past = memory.past(key, 99).unwrap();
        assert_eq!((past.summary.as_str(), past.exchanges.len()), ("- they talked", 3), "{name}");
        assert_eq!(past.exchanges[0], exchange(2), "{name}");
        fold(None, &two, Originals::Delete);
        let past = memory.past(key, 99).unwrap();
        assert_eq!((past.summary.as_str(), past.exchanges.len()), ("- they talked", 2), "{name}: the summary stays");
        fold(Some("- and more"), &[], Originals::Keep);
        assert_eq!(memory.past(key, 99).unwrap().summary, "- and more", "{name}: the latest");
        let past = memory.past(other, 99).unwrap();
        assert_eq!((past.summary.as_str(), past.exchanges.len()), ("", 5), "{name}: another agent's is as it was");
        memory.forget_session("s").unwrap();
        assert!(memory.past(key, 99).unwrap().is_empty(), "{name}: the summary goes too");
    }
}

#[test]
fn another_process_sees_changes_and_searches_current_notes() {
    for case in cases() {
        let Some(again) = case.second.clone() else { continue };
        let (one, other, name) = (memory(&case, None), Memory::new(again, None), case.backend.name());
        let note = one.remember(draft_of("gopher is staging")).unwrap();
        assert_eq!(found(&other, "gopher").len(), 1, "{name}");
        one.remember(draft_of("gopher is new")).unwrap();
        assert_eq!(found(&other, "gopher").len(), 2, "{name}: after a change");
        other.forget(&note.id).unwrap();
        assert_eq!(found(&one, "gopher"), ["gopher is new"], "{name}");
        one.add_exchange(ConversationKey { session: "s", agent: "a" }, &exchange(1)).unwrap();
        assert_eq!(exchanges(&other, "s", "a"), [exchange(1)], "{name}");
    }
}

#[test]
fn concurrent_writers_lose_no_notes() {
    for case in cases() {
        let again = case.second.clone().unwrap_or_else(|| case.backend.clone());
        std::thread::scope(|scope| {
            for (writer, backend) in [case.backend.clone(), again].into_iter().enumerate() {
                scope.spawn(move || {
                    let memory = Memory::new(backend, Some(Arc::new(Hashed)));
                    for n in 0..15 {
                        memory.remember(draft_of(&format!("note {n} of {writer}"))).unwrap();
                        memory.remember(draft_of(&format!("note {n} of both"))).unwrap();
                        let key = ConversationKey { session: "s", agent: "a" };
                        memory.add_exchange(key, &exchange(100 * writer + n)).unwrap();
                    }
                });
            }
        });
        let (memory, name) = (memory(&case, None), case.backend.name());
        assert_eq!(memory.list(99).unwrap().len(), 45, "{name}");
        assert_eq!(exchanges(&memory, "s", "a").len(), 30, "{name}");
        assert_eq!(vectors(&*case.backend).1, 45, "{name}");
    }
}

#[test]
fn backends_share_no_notes() {
    let cases = cases();
    for (at, case) in cases.iter().enumerate() {
        let memory = memory(case, None);
        assert!(memory.list(9).unwrap().is_empty(), "{} has what another one was told", memory.backend());
        memory.remember(draft_of(&format!("number {at}"))).unwrap();
    }
    for (at, case) in cases.iter().enumerate() {
        assert_eq!(found(&memory(case, None), "number"), [format!("number {at}")]);
    }
}

#[test]
fn an_unset_place_uses_this_process_with_a_warning() {
    let open = |kind: Kind| Place { kind, ..Place::default() }.open().unwrap();
    for (kind, warns) in [(Kind::Sqlite, "home"), (Kind::Redis, "memory_url")] {
        let (backend, warning) = open(kind);
        assert_eq!(backend.name(), "in_memory");
        assert!(warning.unwrap().contains(warns), "{warning:?}");
    }
    assert_eq!(open(Kind::InMemory).1, None);
    let file = Some("memory.db".into());
    assert_eq!(Place { file, ..Place::default() }.open().unwrap().0.name(), "sqlite");
    #[cfg(not(feature = "redis"))]
    {
        let place = Place { kind: Kind::Redis, url: Some("redis://localhost".into()), file: None };
        let error = place.open().err().unwrap();
        assert!(error.to_string().contains("redis") && error.hint().contains("--features"), "{error}");
    }
}
