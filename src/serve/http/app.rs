//! Builds the router: all routes of the table behind the guard.

use super::route::Load;
use super::routes::ROUTES;
use super::{Server, admission, guard, missing};
use axum::Router;
use axum::middleware::from_fn_with_state;
use std::sync::Arc;

/// Builds the router.
pub fn app(server: &Arc<Server>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let handler = (route.handler)();
        let handler = match route.load {
            Load::Light => handler,
            load => handler.layer(from_fn_with_state((server.clone(), load), admission::enter)),
        };
        router = router.route(route.path, handler);
    }
    router
        .fallback(missing::no_route)
        .method_not_allowed_fallback(missing::wrong_method)
        .with_state(server.clone())
        .layer(from_fn_with_state(server.clone(), guard::guard))
}
