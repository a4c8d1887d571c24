//! Builds the router: all routes of the table behind the guard, each as its load demands.

use super::route::Load;
use super::routes::ROUTES;
use super::{Server, admission, blocking, guard, missing};
use axum::Router;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use std::sync::Arc;

/// Builds the router.
pub fn app(server: &Arc<Server>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let handler = (route.handler)();
        let handler = match route.load {
            Load::Light => handler,
            Load::Store => handler.layer(from_fn(|request, next: Next| blocking::respond(next.run(request)))),
            load @ (Load::Answer | Load::Run) => {
                handler.layer(from_fn_with_state((server.clone(), load), admission::enter))
            }
        };
        router = router.route(route.path, handler);
    }
    router
        .fallback(missing::no_route)
        .method_not_allowed_fallback(missing::wrong_method)
        .with_state(server.clone())
        .layer(from_fn_with_state(server.clone(), guard::guard))
}
