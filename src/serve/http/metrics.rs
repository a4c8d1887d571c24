//! Counters of requests and their outcomes by route, never by what a client wrote.

use super::Server;
use super::routes::ROUTES;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How requests of one route were answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    success: u64,
    error: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub struct Metrics {
    active: Arc<AtomicUsize>,
    /// By method and path of the route.
    routes: Mutex<BTreeMap<(&'static str, &'static str), Count>>,
}

/// A request that is under way, until it is dropped.
#[derive(Debug)]
pub struct Active(Arc<AtomicUsize>);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts one that begins.
    pub fn enter(&self) -> Active {
        self.active.fetch_add(1, Ordering::Relaxed);
        Active(self.active.clone())
    }

    /// Those that are under way.
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Counts an answer. What has no route counts as one.
    pub fn answered(&self, method: &Method, path: &str, status: StatusCode) {
        let named = |route: &&super::routes::Route| route.path == path && route.method == method.as_str();
        let key = match (ROUTES.iter().find(named), ROUTES.iter().find(|route| route.path == path)) {
            (Some(route), _) => (route.method, route.path),
            (None, Some(route)) => ("*", route.path),
            (None, None) => ("*", "none"),
        };
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = routes.entry(key).or_default();
        let failed = status.is_client_error() || status.is_server_error();
        *(if failed { &mut count.error } else { &mut count.success }) += 1;
    }

    fn total(&self) -> Count {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.values().fold(Count::default(), |sum, one| Count {
            success: sum.success + one.success,
            error: sum.error + one.error,
        })
    }
}

impl Server {
    /// The counters as a document.
    pub fn counted(&self) -> Value {
        let total = self.metrics.total();
        let routes = self.metrics.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let paths: Vec<Value> = routes
            .iter()
            .map(|((method, path), Count { success, error })| {
                json!({"method": method, "path": path, "success": success, "error": error})
            })
            .collect();
        let queue = |(places, waiting): (usize, usize)| json!({"under_way": places, "waiting": waiting});
        json!({
            "total_requests": total.success + total.error,
            "success": total.success,
            "error": total.error,
            "active": self.metrics.active(),
            "uptime": self.started.elapsed().as_secs_f64(),
            "answers": queue(self.answers.load()),
            "runs": queue(self.runs.load()),
            "paths": paths,
        })
    }

    /// The same in the text format of Prometheus.
    pub fn exposition(&self) -> String {
        let total = self.metrics.total();
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, what: &str, value: f64| {
            // a string takes whatever is written to it
            let _ = write!(text, "# HELP caro_{name} {what}\n# TYPE caro_{name} {kind}\ncaro_{name} {value}\n");
        };
        metric("requests_total", "counter", "Requests answered.", (total.success + total.error) as f64);
        metric("requests_success_total", "counter", "Those answered well.", total.success as f64);
        metric("requests_error_total", "counter", "Those answered with an error.", total.error as f64);
        metric("requests_active", "gauge", "Requests under way.", self.metrics.active() as f64);
        metric("uptime_seconds", "gauge", "Seconds since the start.", self.started.elapsed().as_secs_f64());
        for (name, (places, waiting)) in [("answers", self.answers.load()), ("runs", self.runs.load())] {
            metric(&format!("{name}_under_way"), "gauge", "Places taken.", places as f64);
            metric(&format!("{name}_waiting"), "gauge", "Requests that wait for a place.", waiting as f64);
        }
        text.push_str("# HELP caro_path_requests_total Requests by route.\n# TYPE caro_path_requests_total counter\n");
        let routes = self.metrics.routes.lock().unwrap_or_else(PoisonError::into_inner);
        for ((method, path), Count { success, error }) in routes.iter() {
            for (outcome, count) in [("success", success), ("error", error)] {
                let labels = format!("method=\"{method}\",path=\"{path}\",outcome=\"{outcome}\"");
                let _ = writeln!(text, "caro_path_requests_total{{{labels}}} {count}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_writes_makes_no_counter() {
        let metrics = Metrics::default();
        for path in ["/health", "", "/evil\"} 1", "/x"] {
            metrics.answered(&Method::GET, path, StatusCode::OK);
        }
        metrics.answered(&Method::from_bytes(b"EVIL").unwrap(), "/health", StatusCode::METHOD_NOT_ALLOWED);
        let routes = metrics.routes.lock().unwrap();
        let keys: Vec<_> = routes.keys().copied().collect();
        assert_eq!(keys, [("*", "/health"), ("*", "none"), ("GET", "/health")]);
        assert_eq!(routes[&("*", "none")], Count { success: 3, error: 0 });
    }

    #[test]
    fn a_request_is_under_way_until_it_is_dropped() {
        let metrics = Metrics::default();
        let (one, two) = (metrics.enter(), metrics.enter());
        drop(one);
        assert_eq!(metrics.active(), 1);
        drop(two);
        assert_eq!(metrics.active(), 0);
    }
}
