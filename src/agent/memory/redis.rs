//! A Redis server (<https://redis.io/docs/latest/commands/>), which several machines may share. Each change is one
//! `MULTI`; nobody sees half of one.
//!
//! Keys, all of one database:
//! - `caro:notes`: hash, digest of title and content -> JSON of the numbered note. `caro:updated`: sorted set, digest ->
//!   milliseconds. `caro:number`: the last number. `caro:revision`: one more after each change.
//! - `caro:vectors`: hash, number -> 32-bit floats, little-endian. `caro:embedder`: whose they are.
//! - of a conversation, with `["SESSION","AGENT"]` behind the name: `caro:said`: list of the runs that are told;
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

/// The longest wait for the server, to connect and for each answer.
const PATIENCE: Duration = Duration::from_secs(5);

const NOTES: &str = "caro:notes";
const UPDATED: &str = "caro:updated";
const NUMBER: &str = "caro:number";
const REVISION: &str = "caro:revision";
const VECTORS: &str = "caro:vectors";
const EMBEDDER: &str = "caro:embedder";

/// The notes on a server.
pub struct Redis {
    client: Client,
    connection: Mutex<Option<Connection>>,
}

/// Notes by digest, and when each was said last.
type Kept = (HashMap<String, Vec<u8>>, Vec<(String, f64)>);

impl Redis {
    /// Those of the server at `url`. Connects to nothing yet.
    ///
    /// # Errors
    /// If the URL is none of a Redis server.
    pub fn new(url: &str) -> Result<Self, LibraryError> {
        // what the URL holds is not said: a password may be in it
        let wrong = |e: RedisError| LibraryError::Remote { place: "memory_url".into(), reason: e.to_string() };
        Ok(Self { client: Client::open(url).map_err(wrong)?, connection: Mutex::default() })
    }

    /// Does `work` on the connection, which is made if there is none. After a failure that may be the connection's the
    /// next call makes a new one.
    fn on<T>(&self, work: impl FnOnce(&mut Connection) -> RedisResult<T>) -> Result<T, LibraryError> {
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connected = match held.take() {
            Some(connection) => Ok(connection),
            None => self.client.get_connection_with_timeout(PATIENCE).and_then(|connection| {
                connection.set_read_timeout(Some(PATIENCE))?;
                connection.set_write_timeout(Some(PATIENCE))?;
                Ok(connection)
            }),
        };
        let done = connected.and_then(|mut connection| {
            let done = work(&mut connection)?;
            *held = Some(connection);
            Ok(done)
        });
        done.map_err(|e| LibraryError::Remote {
            place: self.client.get_connection_info().addr().to_string(),
            reason: e.to_string(),
        })
    }

    fn numbered(&self) -> Result<Vec<StoredNote>, LibraryError> {
        Ok(read(self.on(|c| ask_kept(pipe().atomic()).query(c))?))
    }
}

/// The key of a note: its words.
fn digest(draft: &Draft) -> String {
    id::hash(format!("{}\0{}", draft.title, draft.content))
}

/// The keys of a conversation: the runs that are told, every exchange, the summary.
fn keys(whose: ConversationKey<'_>) -> [String; 3] {
    let of = serde_json::json!([whose.session, whose.agent]);
    ["said", "exchanges", "summary"].map(|what| format!("caro:{what}:{of}"))
}

fn agents_key(session: &str) -> String {
    format!("caro:agents:{session}")
}

fn ask_kept(pipe: &mut Pipeline) -> &mut Pipeline {
    pipe.hgetall(NOTES).zrange_withscores(UPDATED, 0, -1)
}

/// The notes by their numbers. What another version has written is passed over.
fn read((notes, updated): Kept) -> Vec<StoredNote> {
    let updated: HashMap<&str, f64> = updated.iter().map(|(digest, at)| (digest.as_str(), *at)).collect();
    let mut all: Vec<StoredNote> = notes
        .iter()
        .filter_map(|(digest, json)| {
            let mut numbered: StoredNote = serde_json::from_slice(json).ok()?;
            numbered.note.updated = updated.get(digest.as_str()).map_or(numbered.note.updated, |at| *at as u64);
            Some(numbered)
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

    fn keep(&self, note: &Note) -> Result<Note, LibraryError> {
        let digest = digest(&note.draft);
        self.on(|c| {
            let number: i64 = c.incr(NUMBER, 1)?;
            // again, should somebody else change a note meanwhile
            transaction(c, &[NOTES], |c, change| {
                let known: Option<Vec<u8>> = c.hget(NOTES, &digest)?;
                let kept = match &known {
                    None => Some(StoredNote { number, note: note.clone() }),
                    // one of another version stays as it is, and says the same
                    Some(json) => serde_json::from_slice(json).ok().map(|mut known: StoredNote| {
                        known.note.again(note);
                        known
                    }),
                };
                if let Some(kept) = &kept {
                    change.hset(NOTES, &digest, serde_json::json!(kept).to_string()).ignore();
                }
                change.zadd(UPDATED, &digest, note.updated).ignore().incr(REVISION, 1).ignore();
                let done: Option<()> = change.query(c)?;
                Ok(done.map(|()| kept.map_or_else(|| note.clone(), |kept| kept.note)))
            })
        })
    }

    fn notes(&self, limit: usize) -> Result<Vec<Note>, LibraryError> {
        let mut all = self.numbered()?;
        all.sort_by_key(|n| Reverse((n.note.updated, n.number)));
        Ok(all.into_iter().take(limit).map(|n| n.note).collect())
    }

    fn remove(&self, note: &Note) -> Result<bool, LibraryError> {
        let Some(found) = self.numbered()?.into_iter().find(|n| n.note.id == note.id) else { return Ok(false) };
        let digest = digest(&found.note.draft);
        let (gone,): (i64,) = self.on(|c| {
            let mut change = pipe();
            change.atomic().hdel(NOTES, &digest).zrem(UPDATED, &digest).ignore();
            change.hdel(VECTORS, found.number).ignore().incr(REVISION, 1).ignore().query(c)
        })?;
        Ok(gone > 0)
    }

    fn bare(&self, embedder: &str, limit: usize) -> Result<Vec<StoredNote>, LibraryError> {
        let (whose, known): (Option<String>, BTreeSet<i64>) =
            self.on(|c| pipe().atomic().get(EMBEDDER).hkeys(VECTORS).query(c))?;
        let is_ours = whose.as_deref() == Some(embedder);
        let all = self.numbered()?.into_iter().rev();
        Ok(all.filter(|n| !is_ours || !known.contains(&n.number)).take(limit).collect())
    }

    fn embed(&self, embedder: &str, vectors: &[(i64, Vec<f32>)]) -> Result<(), LibraryError> {
        self.on(|c| {
            // again, should somebody else bring another embedder meanwhile
            transaction(c, &[EMBEDDER], |c, change| {
                let whose: Option<String> = c.get(EMBEDDER)?;
                if whose.as_deref() != Some(embedder) {
                    change.del(VECTORS).ignore().set(EMBEDDER, embedder).ignore();
                }
                for (number, vector) in vectors {
                    change.hset(VECTORS, number, pack(vector)).ignore();
                }
                change.incr(REVISION, 1).ignore().query(c)
            })
        })
    }

    fn searched(&self, known: Option<u64>) -> Result<SearchSource, LibraryError> {
        let revision: Option<u64> = self.on(|c| c.get(REVISION))?;
        let Some(revision) = revision else { return Ok(SearchSource::Nothing) };
        if known == Some(revision) {
            return Ok(SearchSource::Unchanged);
        }
        let mut ask = pipe();
        ask_kept(ask.atomic()).get(REVISION).get(EMBEDDER).hgetall(VECTORS);
        type All = (HashMap<String, Vec<u8>>, Vec<(String, f64)>, u64, Option<String>, HashMap<i64, Vec<u8>>);
        let (notes, updated, revision, embedder, vectors): All = self.on(|c| ask.query(c))?;
        let notes = read((notes, updated));
        // of a note that was removed while it got its vector
        let is_there: BTreeSet<i64> = notes.iter().map(|n| n.number).collect();
        let vectors = vectors.into_iter().filter(|(number, _)| is_there.contains(number));
        let vectors = vectors.map(|(number, bytes)| (number, unpack(&bytes))).collect();
        Ok(SearchSource::Notes(Snapshot { revision, notes, embedder, vectors }))
    }

    fn say(&self, whose: ConversationKey<'_>, exchange: &Exchange) -> Result<(), LibraryError> {
        let ([said, exchanges, _], run) = (keys(whose), &exchange.run);
        let json = serde_json::json!(exchange).to_string();
        self.on(|c| {
            transaction(c, &[&said], |c, change| {
                let told: Vec<String> = c.lrange(&said, 0, -1)?;
                if !told.contains(run) {
                    change.rpush(&said, run).ignore();
                }
                change.hset(&exchanges, run, &json).ignore().sadd(agents_key(whose.session), whose.agent).ignore();
                change.query(c)
            })
        })
    }

    fn past(&self, whose: ConversationKey<'_>, limit: usize) -> Result<Past, LibraryError> {
        let [said, exchanges, summary] = keys(whose);
        type All = (Vec<String>, HashMap<String, Vec<u8>>, Option<String>);
        let (runs, all, summary): All =
            self.on(|c| pipe().atomic().lrange(said, 0, -1).hgetall(exchanges).get(summary).query(c))?;
        let told = runs[runs.len().saturating_sub(limit)..].iter();
        let exchanges = told.filter_map(|run| serde_json::from_slice(all.get(run)?).ok()).collect();
        Ok(Past { summary: summary.unwrap_or_default(), exchanges })
    }

    fn fold(&self, whose: ConversationKey<'_>, fold: Fold<'_>) -> Result<(), LibraryError> {
        let [said, exchanges, summary] = keys(whose);
        self.on(|c| {
            let mut change = pipe();
            change.atomic().sadd(agents_key(whose.session), whose.agent).ignore();
            if let Some(text) = fold.summary {
                change.set(&summary, text).ignore();
            }
            for run in fold.runs {
                change.lrem(&said, 0, run).ignore();
                if fold.originals == Originals::Delete {
                    change.hdel(&exchanges, run).ignore();
                }
            }
            change.query(c)
        })
    }

    fn unsay(&self, session: &str) -> Result<(), LibraryError> {
        let agents = agents_key(session);
        self.on(|c| {
            transaction(c, &[&agents], |c, change| {
                let names: Vec<String> = c.smembers(&agents)?;
                for agent in &names {
                    change.del(&keys(ConversationKey { session, agent })).ignore();
                }
                change.del(&agents).ignore().query(c)
            })
        })
    }
}
