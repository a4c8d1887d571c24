//! Lists what is caro's on this machine: whole folders with its name, and the entries that it makes in other folders.
//!
//! A variable may name any folder (`CARO_CACHE_DIR=/tmp`). There only entries with a name that caro gives are its
//! own, and the others stay.

use crate::Dirs;
use crate::answer::log::last;
use caro_model::catalog;
use caro_model::fetch;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The purpose of a folder or file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Sockets.
    Runtime,
    /// Files that can be made or fetched again.
    Cache,
    /// Model files outside of the cache folder.
    Models,
    /// State that persists between runs.
    State,
    /// Data of the user: sessions, notes, documents, files that undo stores.
    Data,
    /// The user's settings.
    Settings,
}

impl Purpose {
    /// Its name, as the list has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Cache => "cache",
            Self::Models => "models",
            Self::State => "state",
            Self::Data => "data",
            Self::Settings => "settings",
        }
    }

    /// True if it cannot be made or fetched again.
    pub fn is_irreplaceable(self) -> bool {
        matches!(self, Self::State | Self::Data | Self::Settings)
    }
}

/// The part of a path that is caro's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// All of it: it has our name.
    Whole,
    /// It is a link with our name. The link is removed, and its target stays.
    Link(PathBuf),
    /// Only these entries.
    Entries(Vec<PathBuf>),
}

/// A folder or file with something of caro's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its purpose.
    pub purpose: Purpose,
    /// Its path.
    pub path: PathBuf,
    /// The part of it that is caro's.
    pub extent: Extent,
    /// The size of that part in bytes, by the lengths of the files.
    pub bytes: u64,
    /// The number of files in that part.
    pub files: u64,
}

/// Folders that caro makes in a cache folder. Other programs may use these names, too, so only known entries are
/// listed.
const CACHE_FOLDERS: [&str; 2] = ["prefix", "verified"];

/// Lists everything in the order of removal. `usual` are the folders if no variable names others.
pub fn all(dirs: &Dirs, usual: &Dirs, models: Option<&fetch::Settings>) -> Vec<Item> {
    let places = [
        (Purpose::Runtime, &dirs.runtime, &usual.runtime),
        (Purpose::Models, &dirs.models, &usual.models),
        (Purpose::Cache, &dirs.cache, &usual.cache),
        (Purpose::State, &dirs.state, &usual.state),
        (Purpose::Data, &dirs.data, &usual.data),
        (Purpose::Settings, &dirs.config, &usual.config),
    ];
    let mut items: Vec<Item> = Vec::new();
    let mut seen: HashSet<&Path> = HashSet::new();
    for (purpose, path, usual) in places {
        let Some(path) = path else { continue };
        // on some systems several of these are one folder
        if seen.insert(path) {
            items.extend(item(purpose, path, path_is_ours(path, usual.as_deref()), models));
        }
    }
    let own_file = dirs.config_file.as_ref().filter(|file| dirs.config.as_deref() != file.parent() && file.is_file());
    items.extend(own_file.map(|file| Item {
        purpose: Purpose::Settings,
        path: file.clone(),
        extent: Extent::Entries(vec![file.clone()]),
        bytes: file.metadata().map_or(0, |meta| meta.len()),
        files: 1,
    }));
    // what is in a folder that is removed as a whole needs no item
    let whole: Vec<PathBuf> = items.iter().filter(|i| i.extent == Extent::Whole).map(|i| i.path.clone()).collect();
    items.retain(|item| !whole.iter().any(|folder| item.path != *folder && item.path.starts_with(folder)));
    items
}

/// True for a folder that has our name and is at its usual place.
fn path_is_ours(path: &Path, usual: Option<&Path>) -> bool {
    Some(path) == usual && path.components().rev().take(2).any(|part| part.as_os_str() == "caro")
}

fn item(purpose: Purpose, path: &Path, is_ours: bool, models: Option<&fetch::Settings>) -> Option<Item> {
    let meta = path.symlink_metadata().ok()?;
    let item = |extent, (bytes, files)| Some(Item { purpose, path: path.into(), extent, bytes, files });
    if is_ours && meta.is_symlink() {
        return item(Extent::Link(std::fs::read_link(path).ok()?), (0, 1));
    }
    if is_ours {
        return item(Extent::Whole, measure(path));
    }
    let known = model_names(models);
    // the user named this folder, so it may be a link; below it no link is followed
    let real = path.canonicalize().ok()?;
    let mut ours: Vec<PathBuf> =
        entries(&real).into_iter().filter(|entry| is_made_by_us(purpose, entry, &known)).collect();
    if purpose == Purpose::Cache {
        ours.extend(CACHE_FOLDERS.iter().flat_map(|inner| entries(&real.join(inner))).filter(|entry| is_cached(entry)));
    }
    ours.sort();
    if ours.is_empty() {
        return None;
    }
    let sum = ours.iter().map(|path| measure(path)).fold((0, 0), |(bytes, files), (b, f)| (bytes + b, files + f));
    item(Extent::Entries(ours), sum)
}

/// The entries of a folder; none if it is a link.
fn entries(folder: &Path) -> Vec<PathBuf> {
    if folder.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        return Vec::new();
    }
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// True for the cached state of a prompt or of a verification, which is named by a checksum.
fn is_cached(entry: &Path) -> bool {
    let name = entry.file_name().unwrap_or_default().to_string_lossy();
    let begins = name.bytes().take_while(u8::is_ascii_hexdigit).count() == 16;
    begins && (name.ends_with(".state") || name.ends_with(".json"))
        || name.starts_with(".tmp") && name.ends_with(".partial")
}

/// The names of files and folders of models.
fn model_names(models: Option<&fetch::Settings>) -> Vec<String> {
    let mut names: Vec<String> = vec!["adapters".into()];
    let added = models.map(fetch::list).into_iter().flatten().flatten().map(|model| model.card);
    let embedded = catalog::embedded_ids().into_iter().filter_map(|id| catalog::embedded(id).ok().flatten());
    for card in embedded.chain(added) {
        // a file that the user added stays where it is
        names.extend(card.files.iter().filter(|file| file.path.is_none()).map(|file| file.name.clone()));
        names.extend([format!("{}.toml", card.id), format!("{}.work", card.id)]);
        if card.files.len() > 1 {
            names.push(card.id);
        }
    }
    names
}

/// True for an entry with a name that caro gives in such a folder.
fn is_made_by_us(purpose: Purpose, entry: &Path, models: &[String]) -> bool {
    let name = entry.file_name().unwrap_or_default().to_string_lossy();
    // `NAME` itself, `NAME.partial` and `NAME-wal`
    let begins =
        |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']));
    match purpose {
        Purpose::Cache => {
            let is_index = name.starts_with("programs-") && name.ends_with(".json");
            ["skill-index.json", "skills-on-board"].contains(&&*name) || is_index || begins("manual.db")
        }
        Purpose::Models => name.ends_with(".verified.json") || models.iter().any(|known| begins(known)),
        Purpose::Runtime => {
            ["lock", last::FOLDER].contains(&&*name) || name.ends_with(".sock") || name.ends_with(".json")
        }
        // no variable names another place for these
        Purpose::State | Purpose::Data | Purpose::Settings => false,
    }
}

/// Returns the bytes and the number of files of a path. Links are counted and not followed.
pub fn measure(path: &Path) -> (u64, u64) {
    let (mut bytes, mut files) = (0, 0);
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir() {
            waiting.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else {
            bytes += meta.len();
            files += 1;
        }
    }
    (bytes, files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(file: &Path, bytes: usize) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, vec![0; bytes]).unwrap();
    }

    #[test]
    fn folders_with_our_name_are_listed_whole_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str| Some(dir.path().join(name));
        let dirs = Dirs {
            cache: of("cache/caro"),
            models: of("cache/caro/models"),
            data: of("share/caro"),
            config: of("config/caro"),
            config_file: of("config/caro/config.toml"),
            state: of("none/caro"),
            runtime: None,
        };
        write(&dir.path().join("cache/caro/models/m.gguf"), 1000);
        write(&dir.path().join("cache/caro/manual.db"), 24);
        write(&dir.path().join("share/caro/agent.db"), 5);
        write(&dir.path().join("config/caro/config.toml"), 3);
        let found = all(&dirs, &dirs, None);
        let items: Vec<_> =
            found.iter().map(|item| (item.purpose, item.extent.clone(), item.bytes, item.files)).collect();
        let whole = |purpose, bytes, files| (purpose, Extent::Whole, bytes, files);
        assert_eq!(items, [whole(Purpose::Cache, 1024, 2), whole(Purpose::Data, 5, 1), whole(Purpose::Settings, 3, 1)]);
    }

    /// A variable may name a folder that others use, too.
    #[test]
    fn in_a_folder_that_a_variable_names_only_what_we_make_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let (cache, models, run) = (dir.path().join("tmp"), dir.path().join("m"), dir.path().join("r"));
        for mine in ["letter.txt", "caro/x", "manual", "prefix/letter", "models/mine.gguf", "run/x.sock", "verified/x"]
        {
            write(&cache.join(mine), 1);
        }
        for ours in ["manual.db", "manual.db-wal", "programs-2.json", "prefix/0123456789abcdef.state"] {
            write(&cache.join(ours), 1);
        }
        let card = catalog::embedded(catalog::DEFAULT_MODEL).unwrap().unwrap();
        let file = &card.files[0].name;
        for name in [file.clone(), format!("{file}.verified.json"), format!("{file}.partial"), "mine.gguf".into()] {
            write(&models.join(name), 1);
        }
        write(&run.join("a.sock"), 1);
        write(&run.join("last/7.jsonl"), 1);
        write(&run.join("other.pid"), 1);
        let dirs = Dirs { cache: Some(cache.clone()), models: Some(models), runtime: Some(run), ..Dirs::default() };
        let found = all(&dirs, &Dirs::default(), None);
        let names = |purpose| -> Vec<String> {
            let item = found.iter().find(|item| item.purpose == purpose).unwrap();
            let Extent::Entries(entries) = &item.extent else { panic!("{item:?}") };
            entries.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(Purpose::Cache), ["manual.db", "manual.db-wal", "0123456789abcdef.state", "programs-2.json"]);
        assert_eq!(names(Purpose::Models), [file.clone(), format!("{file}.partial"), format!("{file}.verified.json")]);
        assert_eq!(names(Purpose::Runtime), ["a.sock", "last"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_listed_as_one_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("disk/big"), 100);
        write(&dir.path().join("share/caro/file"), 1);
        std::os::unix::fs::symlink(dir.path().join("disk"), dir.path().join("share/caro/inner")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("disk"), dir.path().join("caro")).unwrap();
        let dirs =
            Dirs { cache: Some(dir.path().join("caro")), data: Some(dir.path().join("share/caro")), ..Dirs::default() };
        let found = all(&dirs, &dirs, None);
        assert_eq!(found[0].extent, Extent::Link(dir.path().join("disk")));
        assert_eq!((found[1].extent.clone(), found[1].files), (Extent::Whole, 2));
        assert!(found[1].bytes < 100, "{found:?}");
    }
}
