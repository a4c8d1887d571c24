//! Tests of the calling side, with a resident in this process.

use super::server_tests::{Hanging, LONG_IDLE, Server, TIMEOUT};
use super::wire::{Call, Reply};
use super::{Absent, Client, Setup, Weights, attach};
use caro_model::scripted::Scripted;
use caro_model::{Cancel, Finish, Flow, Model, ModelError, Prompt, Request, Role, Sampling, Shape};
use std::sync::{Arc, Mutex, mpsc};

/// Starts a server with a scripted model.
fn server(script: &'static str) -> Server {
    Server::with(LONG_IDLE, || false, || Ok(Arc::new(Scripted::parse(script, "script")?)))
}

/// Connects a client to this server; it cannot open a model in its own process.
fn client_of(server: &Server) -> Result<Client, Absent> {
    let weights = Weights::Script(server.dir.path().join("model"));
    let program = std::env::current_exe().unwrap();
    let socket = server.dir.path().join(format!("{}.sock", weights.slot(&program)));
    std::os::unix::fs::symlink("s.sock", socket).unwrap();
    let setup = Setup { folder: server.dir.path().into(), program, weights, idle: LONG_IDLE, insist: false };
    attach(&setup, Box::new(|| Err(ModelError::Engine("opened by the caller".into()))))
}

fn request(words: &str, shape: Shape) -> Request {
    let mut prompt = Prompt::default();
    prompt.push(Role::User, words);
    Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 64, cancel: Cancel::new() }
}

fn text() -> Shape {
    Shape::Text { stop: Vec::new() }
}

#[test]
fn an_invalid_request_is_refused_with_the_models_error_and_the_resident_goes_on() {
    let server = server(r#"{"context": 5, "rules": [{"reply": "ls"}]}"#);
    let client = client_of(&server).unwrap();
    let long = request("one two three four five six", text());
    let mut ignore = |_: &str| Flow::Continue;
    let errors = [
        client.generate(&long, &mut ignore).unwrap_err(),
        client.sample(&long, 2).unwrap_err(),
        client.generate(&request("list", Shape::Lark("start: nothing".into())), &mut ignore).unwrap_err(),
    ];
    assert!(
        matches!(
            &errors,
            [
                ModelError::TooLong { tokens, limit: 5 },
                ModelError::TooLong { .. },
                ModelError::BadShape(why)
            ] if *tokens > 5 && why.contains("nothing")
        ),
        "{errors:?}"
    );
    assert_eq!(client.failed(), None);
    assert_eq!(client.generate(&request("list", text()), &mut ignore).unwrap().text, "ls");
}

#[test]
fn the_hint_about_a_busy_resident_is_not_to_stop_it() {
    let server = server(r#"{"rules": [{"reply": "ls"}]}"#);
    let others: Vec<_> = (0..32)
        .map(|_| {
            let mut other = server.client();
            other.send(&Call::Count("a".into())).unwrap();
            assert_eq!(other.receive::<Reply>(Some(TIMEOUT)).unwrap(), Some(Reply::Count(1)));
            other
        })
        .collect();
    let absent = client_of(&server).unwrap_err();
    assert!(absent.to_string().contains("as many callers") && !absent.hint().contains("stop"), "{absent:?}");
    drop(others);
}

#[test]
fn a_resident_that_ignores_a_stop_keeps_the_answer_and_fails_the_next_call() {
    let (release, until) = mpsc::channel();
    let model = Arc::new(Hanging { word: "ls", until: Mutex::new(until) });
    let server = Server::with(LONG_IDLE, || false, move || Ok(model));
    let client = client_of(&server).unwrap();
    let done = client.generate(&request("list", text()), &mut |_| Flow::Stop).unwrap();
    assert_eq!((done.text.as_str(), done.finish, client.failed()), ("ls", Finish::Cancelled, None));
    client.limits();
    assert_eq!(client.failed(), Some("did not stop"));
    drop(release);
}
