//! Stores files in a bucket, with the crate `object_store`. A folder is a common prefix of keys, so there are no empty
//! folders.
//!
//! There is no lock across machines. A file is written only if it is still the version that was read (its ETag is the
//! same, or it still does not exist), and edited again if not, so that no change is lost. A rename is a copy and a
//! deletion: a process killed in between leaves both, and a write to the old name in between is lost.

use super::path::decode;
use super::storage::{Edit, Item, Storage};
use futures::TryStreamExt;
use object_store::path::{Path as Key, PathPart};
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::runtime::{Builder, Runtime};

/// Most attempts to edit a file that others write at the same time.
const MAX_TRIES: u32 = 100;
/// Longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// A bucket, or a folder of one.
#[derive(Debug, Clone)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    /// The address of the bucket.
    name: String,
    prefix: Vec<String>,
}

impl Remote {
    /// Creates the storage of the folder `prefix` in a bucket with the address `name`.
    pub fn new(store: Arc<dyn ObjectStore>, name: String, prefix: Vec<String>) -> Self {
        Self { store, name, prefix }
    }

    fn key(&self, key: &Path) -> Key {
        let names = key.iter().map(|name| name.to_string_lossy());
        self.prefix
            .iter()
            .map(|name| PathPart::from(name.clone()))
            .chain(names.map(|n| PathPart::from(n.into_owned())))
            .collect()
    }

    async fn all(&self, folder: &Key) -> object_store::Result<Vec<Key>> {
        self.store.list(Some(folder)).map_ok(|meta| meta.location).try_collect().await
    }

    async fn write(&self, at: &Key, content: Vec<u8>, mode: PutMode) -> object_store::Result<()> {
        let options = PutOptions { mode, ..PutOptions::default() };
        self.store.put_opts(at, PutPayload::from(content), options).await.map(|_| ())
    }

    /// Returns a file's content and version, if it exists.
    async fn version(&self, at: &Key) -> object_store::Result<Option<(Vec<u8>, UpdateVersion)>> {
        let got = match self.store.get(at).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
        Ok(Some((got.bytes().await?.to_vec(), version)))
    }

    async fn move_one(&self, from: &Key, to: &Key) -> object_store::Result<()> {
        let content = self.store.get(from).await?.bytes().await?.to_vec();
        self.write(to, content, PutMode::Create).await?;
        self.store.delete(from).await
    }
}

fn file(meta: &ObjectMeta) -> Item {
    Item { folder: false, bytes: meta.size, modified: Some(meta.last_modified.into()) }
}

const FOLDER: Item = Item { folder: true, bytes: 0, modified: None };

/// Returns the decoded last name of a key.
fn name(key: &Key) -> String {
    let encoded = key.filename().unwrap_or_default();
    decode(encoded).unwrap_or_else(|| encoded.to_owned())
}

/// Converts an error of the store to one of the system.
fn failed(error: Error) -> io::Error {
    let kind = match &error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Waits on a separate thread: the caller may be a task of another runtime, where blocking is not allowed.
fn wait<T: Send>(work: impl Future<Output = object_store::Result<T>> + Send) -> io::Result<T> {
    // never dropped: dropping a runtime within a task panics
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = match RUNTIME.get() {
        Some(runtime) => runtime,
        None => {
            let new = Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
            RUNTIME.get_or_init(|| new)
        }
    };
    let done = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(work)).join());
    done.map_err(|_| io::Error::other("the store's client stopped"))?.map_err(failed)
}

impl Storage for Remote {
    fn metadata(&self, key: &Path) -> io::Result<Option<Item>> {
        let at = self.key(key);
        wait(async {
            match self.store.head(&at).await {
                Err(Error::NotFound { .. }) => Ok(self.store.list(Some(&at)).try_next().await?.map(|_| FOLDER)),
                other => other.map(|meta| Some(file(&meta))),
            }
        })
    }

    fn read(&self, key: &Path) -> io::Result<Vec<u8>> {
        let at = self.key(key);
        wait(async { Ok(self.store.get(&at).await?.bytes().await?.to_vec()) })
    }

    fn put(&self, key: &Path, content: &[u8]) -> io::Result<()> {
        let at = self.key(key);
        wait(self.write(&at, content.to_vec(), PutMode::Overwrite))
    }

    fn change(&self, key: &Path, edit: &mut Edit<'_>) -> io::Result<()> {
        let at = self.key(key);
        wait(async {
            for tried in 0..MAX_TRIES {
                let before = self.version(&at).await?;
                let (content, mode) = match before {
                    Some((content, version)) => (Some(content), PutMode::Update(version)),
                    None => (None, PutMode::Create),
                };
                let Some(new) = edit(content.as_deref()) else { return Ok(()) };
                match self.write(&at, new, mode).await {
                    // it was deleted, changed or created since it was read
                    Err(Error::NotFound { .. } | Error::Precondition { .. } | Error::AlreadyExists { .. }) => {}
                    other => return other,
                }
                // a random pause keeps two writers from colliding again
                let spread = 1 + u32::from(random_byte()) % 8;
                tokio::time::sleep((Duration::from_millis(2) * spread * (tried + 1)).min(MAX_PAUSE)).await;
            }
            Err(Error::Generic { store: "workspace", source: "others write this file all the time".into() })
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let source = self.metadata(from)?.ok_or(io::ErrorKind::NotFound)?;
        if self.metadata(to)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (old, new) = (self.key(from), self.key(to));
        wait(async {
            if !source.folder {
                return self.move_one(&old, &new).await;
            }
            for each in self.all(&old).await? {
                let rest = each.prefix_match(&old).into_iter().flatten();
                let target: Key = new.parts().chain(rest).collect();
                self.move_one(&each, &target).await?;
            }
            Ok(())
        })
    }

    fn remove(&self, key: &Path) -> io::Result<()> {
        let at = self.key(key);
        match self.metadata(key)? {
            Some(item) if !item.folder => wait(self.store.delete(&at)),
            Some(_) => wait(async {
                for each in self.all(&at).await? {
                    self.store.delete(&each).await?;
                }
                Ok(())
            }),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, key: &Path) -> io::Result<Vec<(String, Item)>> {
        let at = self.key(key);
        let listed = wait(self.store.list_with_delimiter(Some(&at)))?;
        let folders = listed.common_prefixes.iter().map(|folder| (name(folder), FOLDER));
        let files = listed.objects.iter().map(|meta| (name(&meta.location), file(meta)));
        let all: Vec<(String, Item)> = folders.chain(files).collect();
        if all.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(all) }
    }

    /// Always false: a bucket has no links.
    fn leads_out(&self, _: &Path) -> bool {
        false
    }

    fn address(&self, key: &Path) -> PathBuf {
        let mut address = PathBuf::from(&self.name);
        address.extend(&self.prefix);
        address.join(key)
    }

    fn is_local(&self) -> bool {
        false
    }

    fn below(&self, name: &str) -> Arc<dyn Storage> {
        let mut below = self.clone();
        below.prefix.push(name.to_owned());
        Arc::new(below)
    }

    /// Does nothing: a store has no partial objects.
    fn sweep(&self, _: SystemTime) {}
}

/// Returns a random byte.
fn random_byte() -> u8 {
    let mut noise = [0u8; 1];
    match getrandom::fill(&mut noise) {
        Ok(()) => noise[0],
        Err(_) => std::process::id() as u8,
    }
}
