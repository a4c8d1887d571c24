//! Sums what the stored runs have cost, from their latest checkpoints.

use super::{Store, StoreError, count};
use crate::turn::Metric;
use serde::{Deserialize, Serialize};

/// The totals of all runs. A run that was killed counts up to its last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The number of stored runs, without those of workers, whose cost is part of their lead's.
    pub runs: u64,
    /// The number that ended with a confirmed answer.
    pub completed: u64,
    /// The number that ended without one: incomplete or failed.
    pub not_completed: u64,
    /// The number that were stopped or are running.
    pub open: u64,
    /// The total cost. The wall time is that of the runs that ended or were stopped.
    #[serde(flatten)]
    pub cost: Metric,
    /// The mean wall time of a run in milliseconds; 0 if no time is known.
    pub average_ms: f64,
}

/// Returns one row. A run whose checkpoint is missing or unreadable counts as a run without a cost.
const QUERY: &str = "
    SELECT COUNT(*) AS runs,
           COALESCE(SUM(status = 'completed'), 0) AS completed,
           COALESCE(SUM(status IN ('incomplete', 'failed')), 0) AS not_completed,
           COALESCE(SUM(json_extract(metric, '$.total_requests')), 0) AS total_requests,
           COALESCE(SUM(json_extract(metric, '$.request_tokens')), 0) AS request_tokens,
           COALESCE(SUM(json_extract(metric, '$.cached_tokens')), 0) AS cached_tokens,
           COALESCE(SUM(json_extract(metric, '$.response_tokens')), 0) AS response_tokens,
           COALESCE(SUM(json_extract(metric, '$.total_tokens')), 0) AS total_tokens,
           COALESCE(SUM(json_extract(metric, '$.tool_calls')), 0) AS tool_calls,
           COALESCE(SUM(json_extract(metric, '$.total_ms')), 0) AS total_ms,
           COALESCE(SUM(json_extract(metric, '$.total_ms') > 0), 0) AS timed
    FROM (SELECT status, CASE WHEN json_valid(turn) THEN json_extract(turn, '$.metric') END AS metric FROM runs
          WHERE session NOT IN (SELECT id FROM runs))";

impl Store {
    /// Returns the totals of all runs.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        Ok(self.sql().query_row(QUERY, [], |row| {
            let of = |column: &str| count(row, column);
            let (runs, completed, not_completed) = (of("runs")?, of("completed")?, of("not_completed")?);
            let (total_ms, timed) = (of("total_ms")?, of("timed")?);
            Ok(Stats {
                runs,
                completed,
                not_completed,
                open: runs.saturating_sub(completed + not_completed),
                cost: Metric {
                    total_requests: of("total_requests")?,
                    request_tokens: of("request_tokens")?,
                    cached_tokens: of("cached_tokens")?,
                    response_tokens: of("response_tokens")?,
                    total_tokens: of("total_tokens")?,
                    tool_calls: of("tool_calls")?,
                    total_ms,
                },
                average_ms: if timed == 0 { 0.0 } else { total_ms as f64 / timed as f64 },
            })
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_summed_and_unreadable_ones_count_as_runs() {
        let store = Store::in_memory().unwrap();
        assert_eq!(store.stats().unwrap(), Stats::default());
        let turn = |ms: u64| {
            serde_json::json!({"metric": {
                "total_requests": 2, "request_tokens": 30, "cached_tokens": 20, "response_tokens": 5, "total_tokens": 35,
                "tool_calls": 1, "total_ms": ms
            }})
        };
        // the session of a worker is named after the run that it works for
        store.sql().execute("INSERT INTO sessions VALUES ('s', 0, 0), ('a', 0, 0)", []).unwrap();
        for (id, session, status, turn) in [
            ("a", "s", "completed", turn(1000).to_string()),
            ("b", "s", "failed", turn(3000).to_string()),
            ("c", "s", "running", turn(0).to_string()),
            ("d", "s", "stopped", "{ no turn".to_owned()),
            ("e", "s", "running", String::new()),
            ("worker", "a", "completed", turn(500).to_string()),
        ] {
            let row = "INSERT INTO runs (id, session, task, status, root, created, updated, turn)
                       VALUES (?1, ?2, 't', ?3, '/', 0, 0, ?4)";
            store.sql().execute(row, [id, session, status, turn.as_str()]).unwrap();
        }
        let stats = store.stats().unwrap();
        assert_eq!((stats.runs, stats.completed, stats.not_completed, stats.open), (5, 1, 1, 3));
        let cost = Metric {
            total_requests: 6,
            request_tokens: 90,
            cached_tokens: 60,
            response_tokens: 15,
            total_tokens: 105,
            tool_calls: 3,
            total_ms: 4000,
        };
        assert_eq!((stats.cost, stats.average_ms), (cost, 2000.0), "the time of one under way is not known");
        let document = serde_json::to_value(stats).unwrap();
        assert_eq!(document["total_tokens"], 105, "all in one document: {document}");
    }
}
