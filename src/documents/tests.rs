//! Tests the library: which files it takes in, what it finds, and that removed text is gone.

use super::*;
use caro_database::DatabaseError;
use caro_model::embed::Hashed;
use caro_model::{Cancel, ModelError};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

struct Place {
    dir: TempDir,
    librarian: Librarian,
}

impl Place {
    fn new(embedder: Option<Arc<dyn Embedder>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        let librarian = Librarian::new(dir.path().join("data/knowledge.db"), embedder);
        Self { dir, librarian }
    }

    fn docs(&self) -> PathBuf {
        self.dir.path().join("docs")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let file = self.docs().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn ingest(&self) -> Ingested {
        self.with(Options::default()).unwrap()
    }

    fn with(&self, options: Options) -> Result<Ingested, LibraryError> {
        self.librarian.ingest(&[self.docs()], options, &Cancel::new(), &mut |_| {})
    }

    fn finds(&self, question: &str) -> Vec<String> {
        let hits = self.librarian.query(question, 5).unwrap().hits;
        hits.iter().map(|h| Path::new(&h.path).file_name().unwrap().to_string_lossy().into_owned()).collect()
    }
}

fn numbers(done: &Ingested) -> (usize, usize, usize, usize, usize) {
    (done.files_processed, done.chunks_indexed, done.errors, done.updated, done.removed)
}

#[test]
fn a_second_run_only_processes_changes_and_deletions() {
    let place = Place::new(Some(Arc::new(Hashed)));
    place.write("deploy.md", "# Deploy\n\nPush the button.\n\n## Rollback\n\nPull the lever.\n");
    place.write("sub/notes.txt", "The staging server is called gopher.\n");
    place.write("blank.txt", "\n\n");
    let first = place.ingest();
    assert_eq!(numbers(&first), (3, 3, 0, 0, 0));
    let second = place.ingest();
    assert_eq!((numbers(&second), second.vectors_added, second.unchanged), ((0, 0, 0, 0, 0), 0, 3));
    assert_eq!(place.finds("lever")[0], "deploy.md");

    place.write("deploy.md", "# Deploy\n\nPress the switch.\n");
    std::fs::remove_file(place.docs().join("sub/notes.txt")).unwrap();
    assert_eq!(numbers(&place.ingest()), (1, 1, 0, 1, 1));
    assert_eq!(place.finds("switch")[0], "deploy.md");
    let stats = place.librarian.stats().unwrap();
    assert_eq!((stats.documents, stats.chunks, stats.vectors), (2, 1, 1));
    assert_eq!(stats.embedder.as_deref(), Some("hashed"));
    let left = place.librarian.query("gopher", 5).unwrap().hits;
    assert!(left.iter().all(|h| !h.text.contains("gopher")), "{left:?}");
}

#[test]
fn clean_replaces_everything_but_not_by_nothing() {
    let place = Place::new(None);
    place.write("a.txt", "alpha");
    place.ingest();
    let other = tempfile::tempdir().unwrap();
    let clean = Options { clean: true, ..Options::default() };
    let into = |dir: &Path| place.librarian.ingest(&[dir.to_owned()], clean, &Cancel::new(), &mut |_| {});
    let error = into(other.path()).unwrap_err();
    assert!(matches!(error, LibraryError::Nothing) && !error.hint().contains("ingest"), "{}", error.hint());
    assert_eq!(place.finds("alpha"), ["a.txt"], "what was there is kept");
    std::fs::write(other.path().join("b.txt"), "beta").unwrap();
    let done = into(other.path()).unwrap();
    assert_eq!((done.files_processed, done.updated), (1, 0));
    assert!(place.librarian.query("alpha", 5).unwrap().hits.is_empty());
    assert_eq!(place.finds("beta"), ["b.txt"]);
}

#[test]
fn clean_changes_nothing_if_anything_cannot_be_read() {
    let place = Place::new(None);
    place.write("a.txt", "alpha");
    place.write("b.txt", "beta");
    place.ingest();
    place.write("a.txt", "gamma");
    let gone = place.docs().join("b.txt");
    // it is deleted between the walk and the reading
    let mut on = |progress| {
        if let Progress::Found(_) = progress {
            std::fs::remove_file(&gone).unwrap();
        }
    };
    let clean = Options { clean: true, ..Options::default() };
    let error = place.librarian.ingest(&[place.docs()], clean, &Cancel::new(), &mut on).unwrap_err().to_string();
    assert!(error.contains("b.txt") && error.contains("kept"), "{error}");
    assert_eq!((place.finds("alpha"), place.finds("beta")), (vec!["a.txt".into()], vec!["b.txt".into()]));
}

#[test]
fn explicitly_ingested_files_stay_though_their_folder_skips_them() {
    let place = Place::new(None);
    place.write("a.txt", "alpha");
    place.write("server.key", "how the key is made");
    place.write("Cargo.lock", "lock words");
    let only = |name: &str| {
        let file = place.docs().join(name);
        place.librarian.ingest(&[file], Options::default(), &Cancel::new(), &mut |_| {}).unwrap()
    };
    let (first, named) = (place.ingest(), only("server.key"));
    assert_eq!((first.skipped, named.files_processed), (1, 1), "{first:?} {named:?}");
    only("Cargo.lock");
    let again = place.ingest();
    assert_eq!((numbers(&again), again.unchanged, again.skipped), ((0, 0, 0, 0, 0), 3, 0), "{again:?}");
    place.write("Cargo.lock", "other words");
    assert_eq!(numbers(&place.ingest()), (1, 1, 0, 1, 0), "what has changed is read again");
    place.write("server.key", b"\0\0");
    std::fs::remove_file(place.docs().join("Cargo.lock")).unwrap();
    assert_eq!(numbers(&place.ingest()), (0, 0, 0, 0, 2), "what is gone, or is not a document any more, is forgotten");
    assert_eq!(place.librarian.stats().unwrap().documents, 1);
}

#[test]
fn files_that_are_ignored_later_are_removed() {
    let place = Place::new(None);
    place.write("a.txt", "alpha");
    place.write("draft.txt", "words that are not for others");
    place.write("sub/b.txt", "beta");
    assert_eq!(place.ingest().files_processed, 3);
    place.write(".gitignore", "draft.txt\nsub\n");
    let again = place.ingest();
    assert_eq!((again.removed, again.unchanged), (2, 1), "{again:?}");
    assert!(!holds(&place, "not for others"));
    // a folder that was ingested explicitly is not skipped, like a file
    let only = |path: PathBuf| {
        place.librarian.ingest(&[path], Options::default(), &Cancel::new(), &mut |_| {}).unwrap().files_processed
    };
    assert_eq!(only(place.docs().join("sub")), 1);
    let again = place.ingest();
    assert_eq!((again.removed, again.unchanged), (0, 2), "{again:?}");
    // until it is removed explicitly
    assert_eq!(place.librarian.remove(&place.docs().join("sub")).unwrap(), 1);
    assert_eq!(place.ingest().unchanged, 1);
    assert_eq!(place.librarian.remove(Path::new("")).unwrap(), 1);
}

/// A library of an earlier version has no record of the ingested paths.
#[test]
fn a_library_without_ingested_paths_can_be_used() {
    let place = Place::new(None);
    place.write("a.txt", "alpha");
    place.ingest();
    place.librarian.writer().unwrap().execute_batch("DROP TABLE roots").unwrap();
    let again = place.ingest();
    assert_eq!((numbers(&again), again.unchanged), ((0, 0, 0, 0, 0), 1));
}

/// True if a file of the library contains the word.
fn holds(place: &Place, word: &str) -> bool {
    caro_database::test_support::contains_bytes(&place.dir.path().join("data"), word).unwrap()
}

#[test]
fn removed_text_is_in_no_file_of_the_library() {
    let place = Place::new(None);
    // words without a common prefix, as an index stores them completely then
    place.write("changed.txt", "qwzkoba7");
    place.write("gone.txt", "vjxmuri3");
    place.write("stays.txt", "fine words");
    place.ingest();
    assert!(holds(&place, "qwzkoba7") && holds(&place, "vjxmuri3"));
    // a reader is open, and closes the file last
    let reader = place.librarian.reader().unwrap().unwrap();
    place.write("changed.txt", "other words");
    std::fs::remove_file(place.docs().join("gone.txt")).unwrap();
    assert_eq!(numbers(&place.ingest()), (1, 1, 0, 1, 1));
    drop(reader);
    assert!(!holds(&place, "qwzkoba7") && !holds(&place, "vjxmuri3"));
    let reader = place.librarian.reader().unwrap().unwrap();
    place.librarian.remove(&place.docs().join("stays.txt")).unwrap();
    drop(reader);
    assert!(!holds(&place, "fine words"));
}

#[test]
fn an_emptied_library_shrinks() {
    let place = Place::new(Some(Arc::new(Hashed)));
    for i in 0..300 {
        place.write(&format!("{i}.md"), format!("# Note {i}\n\n{}\n", format!("the number is {i} ").repeat(40)));
    }
    place.ingest();
    let size = || place.librarian.stats().unwrap().file_bytes;
    let full = size();
    assert_eq!(place.librarian.remove(&place.docs()).unwrap(), 300);
    assert!(size() < full / 4, "{full} {}", size());
    place.ingest();
    (1..300).for_each(|i| std::fs::remove_file(place.docs().join(format!("{i}.md"))).unwrap());
    place.with(Options { clean: true, ..Options::default() }).unwrap();
    assert!(size() < full / 4, "{full} {}", size());
    assert_eq!(place.finds("number"), ["0.md"]);
}

#[test]
fn errors_name_a_damaged_or_locked_file() {
    let place = Place::new(None);
    place.write("a.txt", "alpha");
    place.ingest();
    let file = place.dir.path().join("data/knowledge.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let tables = bytes.len().min(4096);
    bytes[tables..].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
    for error in [place.librarian.query("alpha", 5).unwrap_err(), place.librarian.stats().unwrap_err()] {
        assert!(
            matches!(&error, LibraryError::File(DatabaseError::Open { path, .. }) if path.ends_with("knowledge.db")),
            "{error}"
        );
    }
    let busy: LibraryError = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(5), None).into();
    assert_eq!(busy.at(&file).to_string(), format!("another process is writing to {}", file.display()));
}

#[test]
fn a_stopped_run_keeps_complete_documents() {
    let place = Place::new(None);
    for i in 0..200 {
        place.write(&format!("{i:03}.txt"), format!("number {i}\n"));
    }
    let stop = |clean| {
        let cancel = Cancel::new();
        let switch = cancel.clone();
        let mut on = move |progress| {
            if let Progress::At { files: 120, .. } = progress {
                switch.cancel();
            }
        };
        place.librarian.ingest(&[place.docs()], Options { clean, ..Options::default() }, &cancel, &mut on)
    };
    assert!(matches!(stop(false), Err(LibraryError::Cancelled)));
    assert_eq!(place.librarian.stats().unwrap().documents, 100, "two batches of 50");
    assert_eq!(place.ingest().files_processed, 100);
    assert!(matches!(stop(true), Err(LibraryError::Cancelled)));
    assert_eq!(place.librarian.stats().unwrap().documents, 200);
}

#[test]
fn an_unreadable_file_does_not_affect_others() {
    let place = Place::new(None);
    place.write("good.md", "fine words\n");
    place.write("picture.png", b"\x89PNG\r\n\0\0");
    place.write("latin.txt", b"caf\xe9 cr\xe8me with words around it\n");
    place.write("noise.dat", [0xff; 300]);
    std::fs::File::create(place.docs().join("huge.log")).unwrap().set_len(200 << 20).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.docs(), place.docs().join("loop")).unwrap();
    let done = place.ingest();
    assert_eq!((done.files_processed, done.skipped, done.errors), (2, 3, 0), "{done:?}");
    let reasons: Vec<&str> = done.passed_over.iter().map(|s| s.reason.as_str()).collect();
    assert_eq!(reasons, ["larger than 4 MiB", "neither UTF-8 nor Latin-1", "binary"]);
    assert_eq!(place.finds("crème"), ["latin.txt"]);
    let nowhere = place.docs().join("nowhere");
    let error = place.librarian.ingest(&[nowhere], Options::default(), &Cancel::new(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("nowhere"));
}

/// The content of an unreadable folder does not count as deleted. (Root can read every folder: for it a loop of links
/// is used.)
#[cfg(unix)]
#[test]
fn an_unreadable_folder_loses_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new(None);
    place.write("open.txt", "open words");
    place.write("closed/inner.txt", "inner words");
    place.ingest();
    let closed = place.docs().join("closed");
    let mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    let done = place.ingest();
    let is_root = std::fs::read_dir(&closed).is_ok();
    mode(0o755);
    if is_root {
        println!("skipped: this user may read every folder");
        return;
    }
    assert_eq!((done.errors, done.removed), (1, 0), "{done:?}");
    assert!(done.failed[0].reason.starts_with("Permission denied"), "{done:?}");
    assert_eq!(place.finds("inner"), ["inner.txt"]);
}

#[test]
fn documents_below_other_roots_stay() {
    let place = Place::new(None);
    place.write("one/a.txt", "alpha");
    place.write("onetwo/b.txt", "beta");
    place.ingest();
    std::fs::remove_file(place.docs().join("onetwo/b.txt")).unwrap();
    let one = place.docs().join("one");
    let done =
        place.librarian.ingest(std::slice::from_ref(&one), Options::default(), &Cancel::new(), &mut |_| {}).unwrap();
    assert_eq!(done.removed, 0, "`onetwo` is not below `one`");
    assert_eq!(place.librarian.remove(&one).unwrap(), 1);
    assert_eq!(place.librarian.stats().unwrap().documents, 1);
    assert_eq!(place.librarian.remove(&one).unwrap(), 0);
}

#[test]
fn another_kind_ingests_documents_again() {
    let place = Place::new(None);
    place.write("a.md", "# A\n\none\n\n# B\n\ntwo\n");
    assert_eq!(place.ingest().chunks_indexed, 2);
    let text = Options { kind: Some(chunk::Kind::Text), ..Options::default() };
    assert_eq!(numbers(&place.with(text).unwrap()), (1, 1, 0, 1, 0));
    assert_eq!(numbers(&place.with(text).unwrap()), (0, 0, 0, 0, 0));
}

#[test]
fn an_empty_library_is_an_error_and_creates_no_file() {
    let place = Place::new(None);
    assert!(matches!(place.librarian.query("x", 5), Err(LibraryError::Empty(_))));
    assert_eq!(place.librarian.stats().unwrap(), Stats::default());
    assert_eq!(place.librarian.remove(&place.docs()).unwrap(), 0);
    assert!(!place.librarian.exists());
}

#[test]
fn the_log_counts_for_the_size() {
    let place = Place::new(None);
    place.write("a.txt", "alpha beta gamma\n".repeat(9000));
    // the reader prevents the log from being merged into the file
    place.ingest();
    let reader = place.librarian.reader().unwrap().unwrap();
    let count = || reader.query_row("SELECT count(*) FROM chunks", [], |row| row.get::<_, i64>(0)).unwrap();
    assert!(count() > 0);
    place.write("b.txt", "delta epsilon\n".repeat(9000));
    place.ingest();
    let size = |file: &str| std::fs::metadata(place.dir.path().join("data").join(file)).unwrap().len();
    let (file, log) = (size("knowledge.db"), size("knowledge.db-wal"));
    assert!(log > 0);
    assert_eq!(place.librarian.stats().unwrap().file_bytes, file + log);
}

#[test]
fn the_search_widens_if_no_word_is_shared() {
    let place = Place::new(None);
    place.write("a.md", "Deployments are made on fridays.\n");
    place.write("b.md", "Sicherungen liegen im Keller.\n");
    place.write("c.md", "備份保存在第二台伺服器上\n");
    place.ingest();
    assert_eq!(place.finds("friday"), ["a.md"], "stems");
    assert_eq!(place.finds("Sicherung"), ["b.md"], "beginnings of words");
    assert_eq!(place.finds("伺服器"), ["c.md"], "letters");
    assert!(place.finds("giraffe").is_empty() && place.finds("ungen").is_empty());
    let score = |question: &str| place.librarian.query(question, 5).unwrap().hits[0].score;
    assert_eq!(
        (score("Sicherung"), score("伺服器")),
        (0.3, 1.0),
        "a beginning is little, a word without spaces is one"
    );
    let sure = &place.librarian.query("deployments fridays", 5).unwrap().hits[0];
    assert_eq!((sure.score, sure.first, sure.last), (1.0, 1, 1));
}

/// Counts its texts, and fails from a given one on.
struct Flaky {
    texts: AtomicUsize,
    fails_from: usize,
}

impl Embedder for Flaky {
    fn id(&self) -> &str {
        "hashed"
    }
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        if self.texts.fetch_add(texts.len(), Ordering::Relaxed) + texts.len() > self.fails_from {
            return Err(ModelError::Engine("out of order".into()));
        }
        Hashed.embed(texts)
    }
}

#[test]
fn a_failed_embedder_leaves_words_and_the_next_run_adds_vectors() {
    let flaky = Arc::new(Flaky { texts: AtomicUsize::new(0), fails_from: 60 });
    let place = Place::new(Some(flaky));
    for i in 0..120 {
        place.write(&format!("{i:03}.txt"), format!("number {i}\n"));
    }
    let done = place.ingest();
    assert_eq!((done.files_processed, done.without_vectors.as_deref()), (120, Some("inference failed: out of order")));
    assert_eq!(place.librarian.stats().unwrap().vectors, 50);
    assert_eq!(place.finds("77"), ["077.txt"]);
    let whole = Librarian::new(place.dir.path().join("data/knowledge.db"), Some(Arc::new(Hashed)));
    let done = whole.ingest(&[place.docs()], Options::default(), &Cancel::new(), &mut |_| {}).unwrap();
    assert_eq!((done.files_processed, done.vectors_added), (0, 70));
    assert_eq!(whole.stats().unwrap().vectors, 120);
    assert!(whole.query("77", 3).unwrap().by_meaning);
}

#[test]
fn readers_and_two_writers_work_concurrently() {
    let place = Place::new(None);
    for i in 0..150 {
        place.write(&format!("{i:03}.txt"), format!("number {i} of many\n"));
    }
    place.ingest();
    for i in 0..150 {
        place.write(&format!("{i:03}.txt"), format!("number {i} of very many\n"));
    }
    std::thread::scope(|scope| {
        let writers = [scope.spawn(|| place.ingest()), scope.spawn(|| place.ingest())];
        let mut asked = 0;
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) || asked < 3 {
            assert_eq!(place.finds("number 77")[0], "077.txt");
            asked += 1;
        }
        for writer in writers {
            assert_eq!(writer.join().unwrap().errors, 0);
        }
    });
    let stats = place.librarian.stats().unwrap();
    assert_eq!((stats.documents, stats.chunks), (150, 150));
}
