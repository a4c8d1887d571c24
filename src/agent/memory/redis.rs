//! The backend on a Redis server (<https://redis.io/docs/latest/commands/>), which several machines may share. Each
//! change is one `MULTI`, so that no reader sees a partial change.
//!
//! Keys, all in one database:
//! - `caro:notes`: hash, digest of title and content -> JSON of the numbered note. `caro:updated`: sorted set, digest
//!   -> milliseconds. `caro:number`: the last number. `caro:revision`: incremented by each change.
//! - `caro:vectors`: hash, number -> 32-bit floats, little-endian. `caro:embedder`: the embedder that made them.
//! - per conversation, with `["SESSION","AGENT"]` appended to the name: `caro:said`: list of the active runs;
//!   `caro:exchanges`: hash, run -> JSON; `caro:summary`. `caro:agents:SESSION`: set of the agents of a session.

use super::backend::{Backend, ConversationKey, SearchSource, Snapshot, StoredNote};
use super::note::{Draft, Note};
use crate::chat::{Exchange, Fold, Originals, Past};
use ::redis::{Client, Commands, Connection, Pipeline, RedisError, RedisResult, pipe, transaction};
use caro_base::id;
use caro_documents::LibraryError;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most time to wait for a connection, and for each answer.
const TIMEOUT: Duration = Duration::from_secs(5);

const NOTES: &str = "caro:notes";
const UPDATED: &str = "caro:updated";
const NUMBER: &str = "caro:number";
const REVISION: &str = "caro:revision";
const VECTORS: &str = "caro:vectors";
const EMBEDDER: &str = "caro:embedder";

/// Notes and conversations on a Redis server.
pub struct Redis {
    client: Client,
    connection: Mutex<Option<Connection>>,
}

/// The notes by digest, and the time of each one's last update.
type NotesReply = (HashMap<String, Vec<u8>>, Vec<(String, f64)>);

impl Redis {
    /// Uses the server at `url`. Does not connect yet.
    ///
    /// # Errors
    /// If the URL is not a valid Redis URL.
    pub fn new(url: &str) -> Result<Self, LibraryError> {
        // the message leaves out the URL: it may contain a password
        let wrong = |e: RedisError| LibraryError::Remote { place: "memory_url".into(), reason: e.to_string() };
        Ok(Self { client: Client::open(url).map_err(wrong)?, connection: Mutex::default() })
    }

    /// Runs `work` on the connection, opening one if there is none. After an error the next call opens a new one.
    fn with_connection<T>(&self, work: impl FnOnce(&mut Connection) -> RedisResult<T>) -> Result<T, LibraryError> {
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connected = match slot.take() {
            Some(connection) => Ok(connection),
            None => self.client.get_connection_with_timeout(TIMEOUT).and_then(|connection| {
                connection.set_read_timeout(Some(TIMEOUT))?;
                connection.set_write_timeout(Some(TIMEOUT))?;
                Ok(connection)
            }),
        };
        let done = connected.and_then(|mut connection| {
            let done = work(&mut connection)?;
            *slot = Some(connection);
            Ok(done)
        });
        done.map_err(|e| LibraryError::Remote {
            place: self.client.get_connection_info().addr().to_string(),
            reason: e.to_string(),
        })
    }

    fn stored_notes(&self) -> Result<Vec<StoredNote>, LibraryError> {
        Ok(parse_notes(self.with_connection(|c| query_notes(pipe().atomic()).query(c))?))
    }
}

/// Returns the key of a note in the hashes.
fn digest(draft: &Draft) -> String {
    id::hash(format!("{}\0{}", draft.title, draft.content))
}

/// Returns the keys of a conversation: the list of active runs, the exchanges, the summary.
fn redis_keys(key: ConversationKey<'_>) -> [String; 3] {
    let of = serde_json::json!([key.session, key.agent]);
    ["said", "exchanges", "summary"].map(|what| format!("caro:{what}:{of}"))
}

fn agents_key(session: &str) -> String {
    format!("caro:agents:{session}")
}

fn query_notes(pipe: &mut Pipeline) -> &mut Pipeline {
    pipe.hgetall(NOTES).zrange_withscores(UPDATED, 0, -1)
}

/// Parses the notes and sorts them by number. Entries that cannot be parsed, such as those of another version, are
/// skipped.
fn parse_notes((notes, updated): NotesReply) -> Vec<StoredNote> {
    let updated: HashMap<&str, f64> = updated.iter().map(|(digest, at)| (digest.as_str(), *at)).collect();
    let mut all: Vec<StoredNote> = notes
        .iter()
        .filter_map(|(digest, json)| {
            let mut stored: StoredNote = serde_json::from_slice(json).ok()?;
            stored.note.updated = updated.get(digest.as_str()).map_or(stored.note.updated, |at| *at as u64);
            Some(stored)
        })
        .collect();
    all.sort_by_key(|n| n.number);
    all
}

fn pack(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn unpack(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

impl Backend for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    /// Not known without asking the server.
    fn exists(&self) -> bool {
        true
    }

    fn save(&self, note: &Note) -> Result<Note, LibraryError> {
        let digest = digest(&note.draft);
        self.with_connection(|c| {
            let number: i64 = c.incr(NUMBER, 1)?;
            // repeated if the notes change meanwhile
            transaction(c, &[NOTES], |c, change| {
                let known: Option<Vec<u8>> = c.hget(NOTES, &digest)?;
                let stored = match &known {
                    None => Some(StoredNote { number, note: note.clone() }),
                    // an entry of another version stays as it is; it has the same title and content
                    Some(json) => serde_json::from_slice(json).ok().map(|mut known: StoredNote| {
                        known.note.merge(note);
                        known
                    }),
                };
                if let Some(stored) = &stored {
                    change.hset(NOTES, &digest, serde_json::json!(stored).to_string()).ignore();
                }
                change.zadd(UPDATED, &digest, note.updated).ignore().incr(REVISION, 1).ignore();
                let done: Option<()> = change.query(c)?;
                Ok(done.map(|()| stored.map_or_else(|| note.clone(), |stored| stored.note)))
            })
        })
    }

    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        let mut all = self.stored_notes()?;
        all.sort_by_key(|n| Reverse((n.note.updated, n.number)));
        Ok(all.into_iter().take(limit).map(|n| n.note).collect())
    }

    fn remove(&self, note: &Note) -> Result<bool, LibraryError> {
        let Some(found) = self.stored_notes()?.into_iter().find(|n| n.note.id == note.id) else { return Ok(false) };
        let digest = digest(&found.note.draft);
        let (removed,): (i64,) = self.with_connection(|c| {
            let mut change = pipe();
            change.atomic().hdel(NOTES, &digest).zrem(UPDATED, &digest).ignore();
            change.hdel(VECTORS, found.number).ignore().incr(REVISION, 1).ignore().query(c)
        })?;
        Ok(removed > 0)
    }

    fn without_vectors(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError> {
        let (current, known): (Option<String>, BTreeSet<i64>) =
            self.with_connection(|c| pipe().atomic().get(EMBEDDER).hkeys(VECTORS).query(c))?;
        let is_ours = current.as_deref() == Some(embedder);
        let all = self.stored_notes()?.into_iter().rev();
        Ok(all.filter(|n| !is_ours || !known.contains(&n.number)).take(limit).collect())
    }

    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError> {
        self.with_connection(|c| {
            // repeated if the embedder changes meanwhile
            transaction(c, &[EMBEDDER], |c, change| {
                let current: Option<String> = c.get(EMBEDDER)?;
                if current.as_deref() != Some(embedder) {
                    change.del(VECTORS).ignore().set(EMBEDDER, embedder).ignore();
                }
                for (number, vector) in vectors {
                    change.hset(VECTORS, number, pack(vector)).ignore();
                }
                change.incr(REVISION, 1).ignore().query(c)
            })
        })
    }

    fn search_source(&self, known: Option<u64>) -> Result<SearchSource, LibraryError> {
        let revision: Option<u64> = self.with_connection(|c| c.get(REVISION))?;
        let Some(revision) = revision else { return Ok(SearchSource::Nothing) };
        if known == Some(revision) {
            return Ok(SearchSource::Unchanged);
        }
        let mut request = pipe();
        query_notes(request.atomic()).get(REVISION).get(EMBEDDER).hgetall(VECTORS);
        type All = (HashMap<String, Vec<u8>>, Vec<(String, f64)>, u64, Option<String>, HashMap<i64, Vec<u8>>);
        let (notes, updated, revision, embedder, vectors): All = self.with_connection(|c| request.query(c))?;
        let notes = parse_notes((notes, updated));
        // a note may have been removed while its vector was made
        let existing: BTreeSet<i64> = notes.iter().map(|n| n.number).collect();
        let vectors = vectors.into_iter().filter(|(number, _)| existing.contains(number));
        let vectors = vectors.map(|(number, bytes)| (number, unpack(&bytes))).collect();
        Ok(SearchSource::Notes(Snapshot { revision, notes, embedder, vectors }))
    }

    fn add_exchange(&self, key: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        let ([run_list, exchanges, _], run) = (redis_keys(key), &exchange.run);
        let json = serde_json::json!(exchange).to_string();
        self.with_connection(|c| {
            transaction(c, &[&run_list], |c, change| {
                let active: Vec<String> = c.lrange(&run_list, 0, -1)?;
                if !active.contains(run) {
                    change.rpush(&run_list, run).ignore();
                }
                change.hset(&exchanges, run, &json).ignore().sadd(agents_key(key.session), key.agent).ignore();
                change.query(c)
            })
        })
    }

    fn past(&self, key: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        let [run_list, exchanges, summary] = redis_keys(key);
        type All = (Vec<String>, HashMap<String, Vec<u8>>, Option<String>);
        let (runs, all, summary): All =
            self.with_connection(|c| pipe().atomic().lrange(run_list, 0, -1).hgetall(exchanges).get(summary).query(c))?;
        let active = runs[runs.len().saturating_sub(limit)..].iter();
        let exchanges = active.filter_map(|run| serde_json::from_slice(all.get(run)?).ok()).collect();
        Ok(Past { summary: summary.unwrap_or_default(), exchanges })
    }

    fn fold(&self, key: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        let [run_list, exchanges, summary] = redis_keys(key);
        self.with_connection(|c| {
            let mut change = pipe();
            change.atomic().sadd(agents_key(key.session), key.agent).ignore();
            if let Some(text) = fold.summary {
                change.set(&summary, text).ignore();
            }
            for run in fold.runs {
                change.lrem(&run_list, 0, run).ignore();
                if fold.originals == Originals::Delete {
                    change.hdel(&exchanges, run).ignore();
                }
            }
            change.query(c)
        })
    }

    fn forget_session(&self, session: &str) -> Result<bool, LibraryError> {
        let agents = agents_key(session);
        self.with_connection(|c| {
            transaction(c, &[&agents], |c, change| {
                let names: Vec<String> = c.smembers(&agents)?;
                for agent in &names {
                    change.del(&redis_keys(ConversationKey { session, agent })).ignore();
                }
                let done: Option<()> = change.del(&agents).ignore().query(c)?;
                Ok(done.map(|()| !names.is_empty()))
            })
        })
    }
}
