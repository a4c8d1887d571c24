//! The OpenAPI document, generated from the table of routes, and the pages that need no token: one that shows the
//! document, and one for requests. Both contact only this server.

use super::body::MAX_BODY;
use super::openai;
use super::route::{Access, Load, Route};
use axum::Json;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// The content security policy of the pages: only inline code, and connections only to this server.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /openapi.json`: the document.
pub fn document(routes: &[Route]) -> Json<Value> {
    Json(openapi(routes))
}

/// `GET /docs`: the page that shows the document.
pub async fn docs() -> Response {
    page(include_str!("page/docs.html"))
}

/// `GET /`: the page for requests.
pub async fn start() -> Response {
    page(include_str!("page/index.html"))
}

fn page(text: &'static str) -> Response {
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    ];
    (headers, text).into_response()
}

/// Generates the document.
fn openapi(routes: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(path) = path {
            path.insert(route.method.to_lowercase(), operation(route, route.method));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "caro",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Plain words in, the right shell command out; and an agent, on the model of this machine.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": problem(), "OpenAiError": openai_error()},
        },
    })
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["error", "message", "detail"],
        "properties": {
            "error": {"type": "string"},
            "message": {"type": "string"},
            "detail": {"type": ["string", "null"], "description": "What to do next."},
        },
    })
}

fn openai_error() -> Value {
    let maybe = json!({"type": ["string", "null"]});
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}, "param": maybe, "code": maybe},
        }},
    })
}

fn operation(route: &Route, method: &str) -> Value {
    let mut operation = Map::new();
    let name = route.path.trim_matches('/').replace(['/', '.'], "_").replace(['{', '}'], "");
    operation.insert("operationId".into(), format!("{}_{}", method.to_lowercase(), name).into());
    operation.insert("summary".into(), route.summary.into());
    if route.access == Access::Open {
        operation.insert("security".into(), json!([]));
    }
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    parameters.extend(
        queries(route.path)
            .iter()
            .map(|(name, kind)| json!({"name": name, "in": "query", "required": false, "schema": {"type": kind}})),
    );
    if !parameters.is_empty() {
        operation.insert("parameters".into(), parameters.into());
    }
    if method == "POST" {
        let schema = schema(route.path).unwrap_or_else(|| json!({"type": "object"}));
        operation.insert(
            "requestBody".into(),
            json!({"required": true, "content": {"application/json": {"schema": schema}},
                   "description": format!("At most {MAX_BODY} bytes.")}),
        );
    }
    operation.insert("responses".into(), responses(route));
    operation.into()
}

/// Describes the responses of a route.
fn responses(route: &Route) -> Value {
    let content = |kind: &str, schema: Value| json!({kind: {"schema": schema}});
    let any = || json!({"type": "object"});
    let good = match route.path {
        "/prometheus" => content("text/plain", json!({"type": "string"})),
        "/" | "/docs" => content("text/html", json!({"type": "string"})),
        "/run" | "/events/{session}" => content("text/event-stream", json!({"type": "string"})),
        "/v1/command" | "/v1/chat/completions" | "/v1/completions" | "/mcp" => json!({
            "application/json": {"schema": any()},
            "text/event-stream": {"schema": {"type": "string"}},
        }),
        _ => content("application/json", any()),
    };
    let mut all = Map::from_iter([("200".to_owned(), json!({"description": "It is answered.", "content": good}))]);
    let mut codes = vec![("403", "It comes from another host or origin.")];
    if route.access == Access::Guarded {
        codes.extend([("401", "The token is missing or wrong."), ("429", "Too many at once."), ("503", "Not now.")]);
        codes.extend([("400", "It cannot be read."), ("422", "It does not fit.")]);
    }
    let is_openai = openai::is_openai_path(route.path);
    if route.path.contains('{') || route.path.starts_with("/background") || is_openai {
        codes.push(("404", "There is no such thing."));
    }
    if route.load != Load::Light || route.path.ends_with("/approve") {
        codes.extend([("408", "The body did not come in time."), ("413", "The body is too long.")]);
        codes.extend([("409", "It goes against how things stand."), ("504", "It took too long.")]);
    }
    if route.path == "/sessions/{id}" {
        codes.push(("409", "A run of it is under way."));
    }
    if route.path == "/mcp" {
        codes.extend([("404", "There is no such session."), ("408", "The body did not come in time.")]);
        codes.extend([("413", "The body is too long."), ("504", "It took too long.")]);
    }
    codes.push(("500", "Something inside went wrong."));
    if route.path == "/mcp" {
        let what = if route.method == "POST" { ("202", "It needs no answer.") } else { ("204", "It has ended.") };
        all.insert(what.0.into(), json!({"description": what.1}));
    }
    let form = if is_openai { "#/components/schemas/OpenAiError" } else { "#/components/schemas/Problem" };
    let schema = json!({"$ref": form});
    for (code, what) in codes {
        all.insert(code.into(), json!({"description": what, "content": content("application/json", schema.clone())}));
    }
    if route.path == "/ready" {
        all.insert("503".into(), json!({"description": "Not yet.", "content": content("application/json", any())}));
    }
    all.into()
}

/// The query parameters of a route, with their types.
fn queries(path: &str) -> &'static [(&'static str, &'static str)] {
    match path {
        "/events/{session}" => &[("after", "string")],
        "/events/{session}/list" | "/events/{session}/trace" => &[("run_id", "string"), ("limit", "integer")],
        "/background/runs" => &[("task", "string")],
        _ => &[],
    }
}

/// The schema of a body of OpenAI's protocol, with the fields that are read; others are ignored.
fn openai_schema(path: &str) -> Option<Value> {
    let text = || json!({"type": "string"});
    let texts = || json!({"anyOf": [text(), {"type": "array", "items": text(), "minItems": 1}]});
    let object = |required: &[&str], own: Value| {
        let mut properties = Map::from_iter([("model".to_owned(), text())]);
        if path != "/v1/embeddings" {
            let shared = json!({
                "max_tokens": {"type": "integer", "minimum": 1},
                "temperature": {"type": "number", "minimum": 0, "maximum": 2},
                "top_p": {"type": "number", "minimum": 0, "maximum": 1},
                "seed": {"type": "integer"},
                "n": {"type": "integer", "minimum": 1, "maximum": 16},
                "stop": {"anyOf": [text(), {"type": "array", "items": text(), "maxItems": 4}]},
                "stream": {"type": "boolean"},
                "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
            });
            properties.extend(shared.as_object().cloned().unwrap_or_default());
        }
        properties.extend(own.as_object().cloned().unwrap_or_default());
        json!({"type": "object", "required": required, "properties": properties})
    };
    Some(match path {
        "/v1/chat/completions" => object(
            &["messages"],
            json!({
                "messages": {"type": "array", "minItems": 1, "items": {
                    "type": "object",
                    "required": ["role"],
                    "properties": {
                        "role": {"enum": ["system", "developer", "user", "assistant", "tool"]},
                        "content": {"description": "A text, or parts of type `text`."},
                        "tool_calls": {"type": "array", "items": {"type": "object"}},
                        "tool_call_id": text(),
                    },
                }},
                "max_completion_tokens": {"type": "integer", "minimum": 1},
                "response_format": {"type": "object", "required": ["type"], "properties": {
                    "type": {"enum": ["text", "json_object", "json_schema"]},
                    "json_schema": {"type": "object", "required": ["schema"]},
                }},
                "tools": {"type": "array", "items": {"type": "object", "required": ["type", "function"]}},
                "tool_choice": {"description": "none, auto, required, or a function."},
                "parallel_tool_calls": {"type": "boolean"},
            }),
        ),
        "/v1/completions" => object(&["prompt"], json!({"prompt": texts()})),
        "/v1/embeddings" => {
            object(&["input"], json!({"input": texts(), "encoding_format": {"enum": ["float", "base64"]}}))
        }
        _ => return None,
    })
}

/// The schema of the body of a route.
fn schema(path: &str) -> Option<Value> {
    let object = |required: &[&str], properties: Value| json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false});
    let text = |what: &str| json!({"type": "string", "description": what});
    let maybe = |what: &str| json!({"type": ["string", "null"], "description": what});
    Some(match path {
        "/v1/command" => object(
            &["request"],
            json!({
                "request": text("What the command is to do, in plain words."),
                "cwd": maybe("The folder that it is to run in, absolute."),
                "target": maybe("The machine that it is for, as in linux-gnu, macos-bsd."),
                "shell": maybe("The shell that it is for."),
                "stream": {"type": "boolean", "description": "True for the stages as they come."},
            }),
        ),
        "/v1/check" => object(
            &["command"],
            json!({
                "command": text("The command."),
                "cwd": maybe("The folder that it is to run in, absolute."),
                "target": maybe("The machine that it is for."),
                "shell": maybe("The shell that it is for."),
                "rehearse": {"type": "boolean", "description": "True to have it tried out in a view that is thrown away."},
            }),
        ),
        "/v1/explain" => {
            object(&["command"], json!({"command": text("The command."), "shell": maybe("The shell that it is for.")}))
        }
        "/run" | "/run/sync" => object(
            &["query"],
            json!({
                "query": text("The task, in plain words."),
                "session_id": maybe("The session that it belongs to; a new one without."),
                "max_steps": {"type": ["integer", "null"], "minimum": 0, "maximum": u32::MAX},
                "batch": {"type": ["integer", "null"], "minimum": 1, "maximum": 5},
                "approval_timeout": {"type": ["number", "null"], "minimum": 0, "maximum": 3600},
            }),
        ),
        "/runs/{id}/approve" => object(
            &["decision"],
            json!({
                "decision": {"enum": ["yes", "no", "always", "danger"]},
                "call_id": maybe("The call that is meant; the one that waits without."),
                "args": {"type": ["object", "null"], "description": "Other arguments for the call."},
            }),
        ),
        "/mcp" => {
            json!({"type": ["object", "array"], "description": "A JSON-RPC message; of revision 2025-03-26 a batch too."})
        }
        _ => return openai_schema(path),
    })
}

#[cfg(test)]
mod tests {
    use super::super::routes::ROUTES;
    use super::*;

    #[test]
    fn every_route_is_described_with_its_access() {
        let document = openapi(ROUTES);
        for route in ROUTES {
            let operation = &document["paths"][route.path][route.method.to_lowercase()];
            assert!(operation["responses"]["200"].is_object(), "{route:?}");
            assert_eq!(operation["security"].is_array(), route.access == Access::Open, "{route:?}");
            assert_eq!(operation["responses"]["401"].is_object(), route.access == Access::Guarded, "{route:?}");
        }
        let mut ids: Vec<&str> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
            .map(|operation| operation["operationId"].as_str().unwrap())
            .collect();
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    }

    #[test]
    fn each_described_body_is_accepted() {
        fn reads<T: serde::de::DeserializeOwned>(path: &str) {
            let schema = schema(path).unwrap();
            let mut whole = Map::new();
            for (name, property) in schema["properties"].as_object().unwrap() {
                let kind = property["type"].as_array().map_or(&property["type"], |kinds| &kinds[0]);
                let value = match kind.as_str() {
                    Some("boolean") => json!(true),
                    Some("integer" | "number") => json!(1),
                    Some("object") => json!({}),
                    Some(_) => json!("x"),
                    None => property["enum"][0].clone(),
                };
                whole.insert(name.clone(), value);
            }
            serde_json::from_value::<T>(whole.clone().into()).unwrap_or_else(|e| panic!("{path}: {e}"));
            for name in schema["required"].as_array().unwrap() {
                let mut without = whole.clone();
                without.remove(name.as_str().unwrap());
                assert!(serde_json::from_value::<T>(without.into()).is_err(), "{path} without {name}");
            }
        }
        reads::<super::super::commands::CommandOrder>("/v1/command");
        reads::<super::super::commands::CheckOrder>("/v1/check");
        reads::<super::super::commands::ExplainOrder>("/v1/explain");
        reads::<super::super::runs::RunOrder>("/run");
        reads::<super::super::live::ApproveOrder>("/runs/{id}/approve");
    }

    #[test]
    fn the_pages_contact_no_other_server() {
        for text in [include_str!("page/docs.html"), include_str!("page/index.html")] {
            for word in ["http://", "https://", "//cdn", "@import", "url(", "src=", "<link"] {
                assert!(!text.contains(word), "{word}");
            }
        }
    }
}
