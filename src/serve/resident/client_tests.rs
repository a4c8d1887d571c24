//! The calling side, with a resident in this process.

use super::server_tests::{AGES, Hanging, SOON, Server};
use super::wire::{Call, Reply};
use super::{Absent, Client, Setup, Weights, attach};
use caro_model::scripted::Scripted;
use caro_model::{Cancel, Finish, Flow, Model, ModelError, Prompt, Request, Role, Sampling, Shape};
use std::sync::{Arc, Mutex, mpsc};

/// A server with a model of this script.
fn server(script: &'static str) -> Server {
    Server::with(AGES, || false, || Ok(Arc::new(Scripted::parse(script, "script")?)))
}

/// A client of this server, which has no model of its own.
fn client_of(server: &Server) -> Result<Client, Absent> {
    let weights = Weights::Script(server.dir.path().join("model"));
    let program = std::env::current_exe().unwrap();
    let socket = server.dir.path().join(format!("{}.sock", weights.slot(&program)));
    std::os::unix::fs::symlink("s.sock", socket).unwrap();
    let setup = Setup { folder: server.dir.path().into(), program, weights, idle: AGES, insist: false };
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
fn a_request_that_the_model_refuses_is_refused_as_it_would_be_here_and_the_next_is_answered_there() {
    let server = server(r#"{"context": 5, "rules": [{"reply": "ls"}]}"#);
    let client = client_of(&server).unwrap();
    let long = request("one two three four five six", text());
    let mut silently = |_: &str| Flow::Continue;
    let errors = [
        client.generate(&long, &mut silently).unwrap_err(),
        client.sample(&long, 2).unwrap_err(),
        client.generate(&request("list", Shape::Lark("start: nothing".into())), &mut silently).unwrap_err(),
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
    assert_eq!(client.generate(&request("list", text()), &mut silently).unwrap().text, "ls");
}

#[test]
fn one_that_has_as_many_callers_as_it_takes_is_not_to_be_stopped() {
    let server = server(r#"{"rules": [{"reply": "ls"}]}"#);
    let others: Vec<_> = (0..32)
        .map(|_| {
            let mut other = server.client();
            other.send(&Call::Count("a".into())).unwrap();
            assert_eq!(other.receive::<Reply>(Some(SOON)).unwrap(), Some(Reply::Count(1)));
            other
        })
        .collect();
    let absent = client_of(&server).unwrap_err();
    assert!(absent.to_string().contains("as many callers") && !absent.hint().contains("stop"), "{absent:?}");
    drop(others);
}

#[test]
fn one_that_does_not_stop_when_its_reader_has_enough_has_not_ended() {
    let (held, until) = mpsc::channel();
    let model = Arc::new(Hanging { word: "ls", until: Mutex::new(until) });
    let server = Server::with(AGES, || false, move || Ok(model));
    let client = client_of(&server).unwrap();
    let done = client.generate(&request("list", text()), &mut |_| Flow::Stop).unwrap();
    assert_eq!((done.text.as_str(), done.finish, client.failed()), ("ls", Finish::Cancelled, None));
    client.limits();
    assert_eq!(client.failed(), Some("did not stop"));
    drop(held);
}
