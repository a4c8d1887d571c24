//! Searches passages by words and by meaning, with tables in an SQLite file. Used for documents and for notes.
//!
//! Words are ranked by FTS5's `bm25()`, meaning by the exact cosine with every vector, which takes a few milliseconds
//! for 10 000 of them. The two rankings are fused by reciprocal rank, as their scores have no common unit. Source:
//! Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods"
//! (2009), which also defines the constant [`K`].

use super::words::Terms;
use caro_database::file;
use half::f16;
use half::slice::HalfFloatSliceExt;
use rusqlite::{Connection, OptionalExtension, params};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// The constant of the fusion; the greater it is, the less the first ranks differ.
pub const K: f64 = 60.0;

/// The weight of a word in the title, relative to one in the body.
const TITLE_WEIGHT: f64 = 3.0;

/// The fewest passages that each ranking contributes to the fusion.
const MIN_POOL: usize = 50;

/// A passage that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// The id of the passage.
    pub id: i64,
    /// The sum of reciprocal ranks; meaningful only for sorting.
    pub fused: f64,
    /// The cosine with the query, if both have a vector and it is among the nearest.
    pub cosine: Option<f32>,
}

/// An index, with the prefix of its table names.
#[derive(Debug, Clone, Copy)]
pub struct Index(pub &'static str);

/// A passage to be indexed.
#[derive(Debug, Clone, Copy)]
pub struct Passage<'a> {
    /// Its id, chosen by the owner of the index.
    pub id: i64,
    /// Its topic.
    pub title: &'a str,
    /// Its text.
    pub body: &'a str,
    /// Its vector, of length 1, if there is an embedder.
    pub vector: Option<&'a [f32]>,
}

impl Index {
    /// Returns the statements that create its tables if they do not exist.
    pub fn layout(self) -> String {
        let name = self.0;
        format!(
            "CREATE VIRTUAL TABLE IF NOT EXISTS {name}_words USING fts5(title, body, content='', contentless_delete=1,
                 tokenize=\"porter unicode61 remove_diacritics 2\");
             CREATE TABLE IF NOT EXISTS {name}_vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
             CREATE TABLE IF NOT EXISTS {name}_embedder (id TEXT NOT NULL);"
        )
    }

    /// Sets the embedder of the vectors. Those of another embedder are deleted.
    ///
    /// # Errors
    /// If SQLite fails; the same holds for all functions below.
    pub fn use_embedder(self, sql: &Connection, embedder: &str) -> rusqlite::Result<()> {
        if self.embedder(sql)?.as_deref() != Some(embedder) {
            let name = self.0;
            sql.execute_batch(&format!("DELETE FROM {name}_vectors; DELETE FROM {name}_embedder;"))?;
            sql.execute(&format!("INSERT INTO {name}_embedder VALUES (?1)"), [embedder])?;
        }
        Ok(())
    }

    /// Returns the embedder of the vectors.
    pub fn embedder(self, sql: &Connection) -> rusqlite::Result<Option<String>> {
        sql.query_row(&format!("SELECT id FROM {}_embedder", self.0), [], |row| row.get(0)).optional()
    }

    /// Adds a passage with an unused id.
    pub fn put(self, sql: &Connection, passage: &Passage<'_>) -> rusqlite::Result<()> {
        let add = format!("INSERT INTO {}_words (rowid, title, body) VALUES (?1, ?2, ?3)", self.0);
        let body = super::words::with_parts(passage.body);
        sql.prepare_cached(&add)?.execute(params![passage.id, passage.title, body])?;
        match passage.vector {
            Some(vector) => self.put_vector(sql, passage.id, vector),
            None => Ok(()),
        }
    }

    /// Adds the vector of an existing passage.
    pub fn put_vector(self, sql: &Connection, id: i64, vector: &[f32]) -> rusqlite::Result<()> {
        let add = format!("INSERT OR REPLACE INTO {}_vectors VALUES (?1, ?2)", self.0);
        sql.prepare_cached(&add)?.execute(params![id, pack(vector)])?;
        Ok(())
    }

    /// Removes a passage.
    pub fn remove(self, sql: &Connection, id: i64) -> rusqlite::Result<()> {
        sql.prepare_cached(&format!("DELETE FROM {}_words WHERE rowid = ?1", self.0))?.execute([id])?;
        sql.prepare_cached(&format!("DELETE FROM {}_vectors WHERE id = ?1", self.0))?.execute([id])?;
        Ok(())
    }

    /// Replaces the words of an existing passage; its vector stays.
    pub fn reword(self, sql: &Connection, passage: &Passage<'_>) -> rusqlite::Result<()> {
        sql.prepare_cached(&format!("DELETE FROM {}_words WHERE rowid = ?1", self.0))?.execute([passage.id])?;
        self.put(sql, passage)
    }

    /// Removes everything.
    pub fn clear(self, sql: &Connection) -> rusqlite::Result<()> {
        let name = self.0;
        sql.execute_batch(&format!(
            "INSERT INTO {name}_words({name}_words) VALUES ('delete-all'); DELETE FROM {name}_vectors;"
        ))
    }

    /// Removes the words of deleted passages from the file; until then SQLite only marks them as deleted. Rewrites
    /// the whole word index.
    pub fn purge(self, sql: &Connection) -> rusqlite::Result<()> {
        let name = self.0;
        sql.execute_batch(&format!("INSERT INTO {name}_words({name}_words) VALUES ('optimize');"))
    }

    /// Returns the number of passages.
    pub fn passages(self, sql: &Connection) -> rusqlite::Result<usize> {
        sql.query_row(&format!("SELECT count(*) FROM {}_words_docsize", self.0), [], |row| file::count(row, 0))
    }

    /// Returns the number of passages with a vector.
    pub fn vectors(self, sql: &Connection) -> rusqlite::Result<usize> {
        sql.query_row(&format!("SELECT count(*) FROM {}_vectors", self.0), [], |row| file::count(row, 0))
    }

    /// True if there are vectors of this embedder.
    pub fn knows(self, sql: &Connection, embedder: &str) -> rusqlite::Result<bool> {
        Ok(self.embedder(sql)?.as_deref() == Some(embedder)
            && sql.prepare(&format!("SELECT 1 FROM {}_vectors", self.0))?.exists([])?)
    }

    /// Returns the passages that contain any of the terms, best first.
    pub fn lexical(self, sql: &Connection, terms: &Terms, limit: usize) -> rusqlite::Result<Vec<i64>> {
        let Some(expression) = terms.any() else { return Ok(Vec::new()) };
        let name = self.0;
        let find = format!(
            "SELECT rowid FROM {name}_words WHERE {name}_words MATCH ?1 ORDER BY bm25({name}_words, {TITLE_WEIGHT:.1}, 1.0), rowid LIMIT ?2"
        );
        let mut find = sql.prepare_cached(&find)?;
        find.query_map(params![expression, limit as i64], |row| row.get(0))?.collect()
    }

    /// Returns the passages nearest in meaning, with their cosines; an exact search over all of them.
    pub fn nearest(self, sql: &Connection, query: &[f32], limit: usize) -> rusqlite::Result<Vec<(i64, f32)>> {
        let mut find = sql.prepare_cached(&format!("SELECT id, vector FROM {}_vectors", self.0))?;
        let mut rows = find.query([])?;
        // the worst of the best so far is on top
        let mut best: BinaryHeap<Reverse<Near>> = BinaryHeap::with_capacity(limit + 1);
        let mut unpacked = vec![0f32; query.len()];
        while let Some(row) = rows.next()? {
            let blob = row.get_ref(1)?.as_blob().unwrap_or_default();
            if !unpack(blob, &mut unpacked) {
                continue;
            }
            let near = Near { cosine: dot(query, &unpacked), id: row.get(0)? };
            if best.len() < limit {
                best.push(Reverse(near));
            } else if best.peek().is_some_and(|worst| near > worst.0) {
                best.pop();
                best.push(Reverse(near));
            }
        }
        Ok(best.into_sorted_vec().into_iter().map(|Reverse(near)| (near.id, near.cosine)).collect())
    }

    /// Returns at most `limit` passages by both rankings, fused; best first.
    pub fn search(
        self,
        sql: &Connection,
        terms: &Terms,
        vector: Option<&[f32]>,
        limit: usize,
    ) -> rusqlite::Result<Vec<Match>> {
        let pool = MIN_POOL.max(2 * limit);
        let lexical = self.lexical(sql, terms, pool)?;
        let near = vector.map_or(Ok(Vec::new()), |vector| self.nearest(sql, vector, pool))?;
        let cosines: BTreeMap<i64, f32> = near.iter().copied().collect();
        let mut fused: BTreeMap<i64, f64> = BTreeMap::new();
        let rankings = [lexical, near.iter().map(|(id, _)| *id).collect()];
        for (rank, id) in rankings.iter().flat_map(|ranking| ranking.iter().enumerate()) {
            *fused.entry(*id).or_default() += 1.0 / (K + rank as f64 + 1.0);
        }
        let mut matches: Vec<Match> =
            fused.into_iter().map(|(id, fused)| Match { id, fused, cosine: cosines.get(&id).copied() }).collect();
        matches.sort_by(|a, b| b.fused.total_cmp(&a.fused).then(a.id.cmp(&b.id)));
        matches.truncate(limit);
        Ok(matches)
    }

    /// Returns the weighted share of the terms that each passage contains, from 0 to 1. Rare terms weigh more, as in
    /// BM25; a term that no passage contains has the average weight of the others.
    pub fn coverage(self, sql: &Connection, terms: &Terms, ids: &[i64]) -> rusqlite::Result<Vec<f64>> {
        let name = self.0;
        let total = self.passages(sql)? as f64;
        let mut how_many =
            sql.prepare_cached(&format!("SELECT count(*) FROM {name}_words WHERE {name}_words MATCH ?1"))?;
        let mut holds =
            sql.prepare_cached(&format!("SELECT 1 FROM {name}_words WHERE {name}_words MATCH ?1 AND rowid = ?2"))?;
        let mut covered = vec![0.0; ids.len()];
        let (mut all, mut known, mut unknown) = (0.0, 0.0, 0.0);
        for term in terms.each() {
            let holders: f64 = how_many.query_row([&term], |row| row.get(0))?;
            if holders == 0.0 {
                unknown += 1.0;
                continue;
            }
            known += 1.0;
            let weight = ((total - holders + 0.5).max(0.0) / (holders + 0.5) + 1.0).ln();
            all += weight;
            for (sum, id) in covered.iter_mut().zip(ids) {
                if holds.exists(params![term, id])? {
                    *sum += weight;
                }
            }
        }
        if known > 0.0 {
            all += unknown * all / known;
            covered.iter_mut().for_each(|sum| *sum /= all);
        }
        Ok(covered)
    }
}

/// A passage sorted by its cosine; of equal ones the older is nearer.
#[derive(PartialEq)]
struct Near {
    cosine: f32,
    id: i64,
}

impl Eq for Near {}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cosine.total_cmp(&other.cosine).then(other.id.cmp(&self.id))
    }
}

/// Encodes a vector for storage: half precision, little-endian. For vectors of length 1 this changes a cosine by less
/// than 0.001.
fn pack(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect()
}

/// Decodes a vector; false if it has another number of components.
fn unpack(blob: &[u8], into: &mut [f32]) -> bool {
    if blob.len() != 2 * into.len() {
        return false;
    }
    // in blocks that fit into registers, so that nothing is allocated and the processor's own conversion is used
    let mut halves = [f16::ZERO; 64];
    for (bytes, floats) in blob.chunks(2 * halves.len()).zip(into.chunks_mut(halves.len())) {
        let halves = &mut halves[..floats.len()];
        for (half, bytes) in halves.iter_mut().zip(bytes.chunks_exact(2)) {
            *half = f16::from_le_bytes([bytes[0], bytes[1]]);
        }
        halves.convert_to_f32_slice(floats);
    }
    true
}

/// Returns the dot product, computed as eight independent sums.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a.zip(b) {
        for (sum, (x, y)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INDEX: Index = Index("test");

    fn open(passages: &[(&str, &str, Option<Vec<f32>>)]) -> Connection {
        let sql = Connection::open_in_memory().unwrap();
        sql.execute_batch(&INDEX.layout()).unwrap();
        for (i, (title, body, vector)) in passages.iter().enumerate() {
            let passage = Passage { id: i as i64 + 1, title, body, vector: vector.as_deref() };
            INDEX.put(&sql, &passage).unwrap();
        }
        sql
    }

    fn count(sql: &Connection) -> (usize, usize) {
        (INDEX.passages(sql).unwrap(), INDEX.vectors(sql).unwrap())
    }

    fn ids(matches: &[Match]) -> Vec<i64> {
        matches.iter().map(|m| m.id).collect()
    }

    #[test]
    fn both_rankings_are_fused() {
        let sql = open(&[
            ("", "the printer is out of paper", Some(vec![1.0, 0.0])),
            ("", "deploying to production", Some(vec![0.0, 1.0])),
            ("", "deploy, deploy the printer driver", Some(vec![0.6, 0.8])),
        ]);
        let terms = Terms::of("deploy");
        assert_eq!(ids(&INDEX.search(&sql, &terms, None, 9).unwrap()).len(), 2, "the stem is what counts");
        let both = INDEX.search(&sql, &terms, Some(&[0.5, 0.866]), 9).unwrap();
        assert_eq!((both.len(), both[0].id), (3, 3));
        assert!(both[0].cosine.unwrap() > 0.98);
        let nothing = INDEX.search(&sql, &Terms::of("giraffe"), None, 9).unwrap();
        assert!(nothing.is_empty());
    }

    #[test]
    fn coverage_is_the_weighted_share_of_the_words() {
        let sql = open(&[("", "red apple", None), ("", "red pear", None), ("", "red plum pie", None)]);
        let covered = INDEX.coverage(&sql, &Terms::of("red plum"), &[1, 3]).unwrap();
        assert!(covered[1] > 0.999 && covered[0] < 0.3, "{covered:?}");
        let half = INDEX.coverage(&sql, &Terms::of("plum giraffe"), &[3]).unwrap();
        assert!((half[0] - 0.5).abs() < 1e-9, "{half:?}");
        assert_eq!(INDEX.coverage(&sql, &Terms::of("giraffe"), &[1]).unwrap(), [0.0]);
    }

    #[test]
    fn a_question_without_spaces_covers_the_passage_that_shares_most_of_its_letters() {
        let sql = open(&[
            ("", "備份每天凌晨三點存到倉庫的伺服器上。", None),
            ("", "會議室的投影機壞了。", None),
            ("", "バックアップは毎晩三時に倉庫のサーバーへ保存する。", None),
        ]);
        let asked = |text: &str| INDEX.search(&sql, &Terms::of(text), None, 9).unwrap()[0].id;
        assert_eq!((asked("備份存到哪裡的伺服器？"), asked("バックアップはどのサーバーに？")), (1, 3));
        let covered = INDEX.coverage(&sql, &Terms::of("備份存到倉庫的伺服器"), &[1, 2]).unwrap();
        assert!(covered[0] > 0.5 && covered[1] < 0.2, "{covered:?}");
    }

    #[test]
    fn removed_passages_and_vectors_of_another_embedder_are_gone() {
        let sql = open(&[("a", "apple", Some(vec![1.0])), ("b", "apple", Some(vec![1.0]))]);
        INDEX.remove(&sql, 1).unwrap();
        assert_eq!(ids(&INDEX.search(&sql, &Terms::of("apple"), Some(&[1.0]), 9).unwrap()), [2]);
        assert_eq!(count(&sql), (1, 1));
        INDEX.use_embedder(&sql, "one").unwrap();
        assert_eq!(count(&sql), (1, 0), "nobody knew whose they were");
        assert!(!INDEX.knows(&sql, "one").unwrap());
        INDEX.put_vector(&sql, 2, &[1.0]).unwrap();
        assert!(INDEX.knows(&sql, "one").unwrap() && !INDEX.knows(&sql, "two").unwrap());
        INDEX.use_embedder(&sql, "one").unwrap();
        assert_eq!(count(&sql), (1, 1));
        INDEX.use_embedder(&sql, "two").unwrap();
        assert_eq!((count(&sql), INDEX.embedder(&sql).unwrap().as_deref()), ((1, 0), Some("two")));
        INDEX.clear(&sql).unwrap();
        assert_eq!(count(&sql), (0, 0));
    }

    #[test]
    fn a_vector_of_another_length_is_skipped() {
        let sql = open(&[("", "a", Some(vec![1.0, 0.0])), ("", "b", Some(vec![1.0]))]);
        assert_eq!(INDEX.nearest(&sql, &[1.0], 9).unwrap(), [(2, 1.0)]);
    }

    proptest! {
        #[test]
        fn the_nearest_are_the_same_as_in_a_full_sort(vectors in proptest::collection::vec([-1f32..1.0, -1.0..1.0, -1.0..1.0], 1..60), limit in 1usize..9) {
            let sql = open(&vectors.iter().map(|v| ("", "", Some(v.to_vec()))).collect::<Vec<_>>());
            let query = [0.3, -0.8, 0.5];
            let found = INDEX.nearest(&sql, &query, limit).unwrap();
            let mut all: Vec<(i64, f32)> = vectors.iter().enumerate().map(|(i, v)| {
                let rounded: Vec<f32> = v.iter().map(|x| f16::from_f32(*x).to_f32()).collect();
                (i as i64 + 1, dot(&query, &rounded))
            }).collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            all.truncate(limit);
            prop_assert_eq!(found, all);
        }

        #[test]
        fn any_text_can_be_searched(text in "\\PC{0,60}") {
            let sql = open(&[("t", "some body", None)]);
            prop_assert!(INDEX.search(&sql, &Terms::of(&text), None, 5).is_ok());
        }
    }
}
