//! Counts requests and their outcomes by route, never by text that a client sent.

use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The numbers of requests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Answered without an error.
    pub success: u64,
    /// Answered with an error.
    pub error: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub struct Metrics {
    active: Arc<AtomicUsize>,
    /// By method and path of the route.
    routes: Mutex<BTreeMap<(&'static str, &'static str), Count>>,
}

/// A request that counts as active until this is dropped.
#[derive(Debug)]
pub struct Active(Arc<AtomicUsize>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts a request that begins.
    pub fn enter(&self) -> Active {
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(self.active.clone())
    }

    /// The number of active requests.
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Counts an answer, by the method and path of its route.
    pub fn count_answer(&self, key: (&'static str, &'static str), status: StatusCode) {
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = routes.entry(key).or_default();
        let failed = status.is_client_error() || status.is_server_error();
        *(if failed { &mut count.error } else { &mut count.success }) += 1;
    }

    /// The counts by route.
    pub fn routes(&self) -> Vec<((&'static str, &'static str), Count)> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.iter().map(|(key, count)| (*key, *count)).collect()
    }

    /// The sum over all routes.
    pub fn total(&self) -> Count {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.values().fold(Count::default(), |sum, one| Count {
            success: sum.success + one.success,
            error: sum.error + one.error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successes_and_errors_are_counted_separately() {
        let metrics = Metrics::default();
        for (path, status) in [("/a", 200), ("/a", 404), ("/b", 503), ("/a", 302)] {
            metrics.count_answer(("GET", path), StatusCode::from_u16(status).unwrap());
        }
        let (a, b) = (Count { success: 2, error: 1 }, Count { success: 0, error: 1 });
        assert_eq!(metrics.routes(), [(("GET", "/a"), a), (("GET", "/b"), b)]);
        assert_eq!(metrics.total(), Count { success: 2, error: 2 });
    }

    #[test]
    fn a_request_is_active_until_it_is_dropped() {
        let metrics = Metrics::default();
        let (one, two) = (metrics.enter(), metrics.enter());
        drop(one);
        assert_eq!(metrics.active(), 1);
        drop(two);
        assert_eq!(metrics.active(), 0);
    }
}
