//! Tests models behind HTTP: on a small server that behaves well or badly, and on a real one if it can be started.

mod anthropic;

use crate::http_server::{Req, Server, answer, head};
use crate::machine::{AMPLE, Machine};
use caro::model::remote::{Options, Remote};
use caro::model::{Cancel, Completion, Finish, Flow, Model, ModelError, Prompt, Request, Role, Sampling, Shape};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn request(words: &str, shape: Shape) -> Request {
    let mut prompt = Prompt::system("You write shell commands.");
    prompt.push(Role::User, words);
    Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 16, cancel: Cancel::new() }
}

fn text() -> Shape {
    Shape::Text { stop: vec!["\n".into()] }
}

fn model(url: &str) -> Remote {
    let options = Options {
        api_key: Some("key".into()),
        connect: Duration::from_secs(3),
        silence: Duration::from_secs(3),
        ..Options::default()
    };
    Remote::new(url, "tiny", options)
}

fn ask(server: &Server, request: &Request) -> Result<(Completion, Vec<String>), ModelError> {
    let mut pieces = Vec::new();
    let done = model(&server.url).generate(request, &mut |piece| {
        pieces.push(piece.to_string());
        Flow::Continue
    });
    done.map(|done| (done, pieces))
}

/// An event of the stream with this text.
fn event(text: &str) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": text }, "finish_reason": null }] }))
}

fn finish(reason: &str) -> String {
    format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [{ "delta": {}, "finish_reason": reason }] }))
}

fn stream(socket: &mut TcpStream, events: &[String]) {
    head(socket, 200, &[("Content-Type", "text/event-stream; charset=utf-8")], None);
    for event in events {
        let _ = socket.write_all(event.as_bytes());
    }
}

/// Starts a server that streams the words that `words_for` returns for the body of a request.
fn streaming(words_for: impl Fn(&Value) -> Vec<&'static str> + Send + Sync + 'static) -> Server {
    Server::start(move |request: &Req, socket| {
        let words = words_for(&serde_json::from_str(&request.body).unwrap());
        let mut events: Vec<String> = words.iter().map(|word| event(word)).collect();
        events.push(finish("stop"));
        stream(socket, &events);
    })
}

#[test]
fn text_streams_in_and_ends_before_the_stop_string() {
    let server = streaming(|_| vec!["ls", " -l", "a", "\n", "and more"]);
    let (done, pieces) = ask(&server, &request("list", text())).unwrap();
    assert_eq!((done.text.as_str(), done.finish), ("ls -la", Finish::Stop));
    assert_eq!(pieces, ["ls", " -l", "a"]);
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(seen.headers["authorization"], "Bearer key");
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!((&body["model"], &body["stream"], &body["logprobs"]), (&json!("tiny"), &json!(true), &json!(true)));
}

#[test]
fn an_endless_answer_is_cut_off() {
    let server = streaming(|_| vec![" word"; 1000]);
    let (done, pieces) = ask(&server, &request("say it", text())).unwrap();
    assert_eq!(done.finish, Finish::Length);
    assert!(done.tokens.len() < 40 && pieces.concat() == done.text, "{}", done.tokens.len());
}

#[test]
fn a_stop_string_in_pieces_is_never_shown() {
    let server = streaming(|_| vec!["ls E", "N", "D rest"]);
    let (done, pieces) = ask(&server, &request("x", Shape::Text { stop: vec!["END".into()] })).unwrap();
    assert_eq!((done.text.as_str(), pieces.concat().as_str()), ("ls ", "ls "));
    let server = streaming(|_| vec!["ls E", "x"]);
    let (_, pieces) = ask(&server, &request("x", Shape::Text { stop: vec!["END".into()] })).unwrap();
    assert_eq!(pieces.concat(), "ls Ex");
}

#[test]
fn a_prefill_that_the_server_repeats_is_no_part_of_the_text() {
    for words in [vec!["ls ", "-la"], vec!["l", "s -la"], vec!["-la"]] {
        let server = streaming(move |_| words.clone());
        let mut request = request("x", text());
        request.prompt.prefill = "ls ".into();
        let (done, pieces) = ask(&server, &request).unwrap();
        assert_eq!((done.text.as_str(), pieces.concat().as_str()), ("-la", "-la"));
    }
}

#[test]
fn parameters_a_server_rejects_are_left_out_from_then_on() {
    let refusals = Arc::<Mutex<u32>>::default();
    let count = refusals.clone();
    let server = Server::start(move |request, socket| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        if body.get("stream_options").is_some() {
            *count.lock().unwrap() += 1;
            answer(socket, 422, &[], br#"{"detail": "stream_options: unknown field"}"#);
        } else if body.get("logprobs").is_some() {
            *count.lock().unwrap() += 1;
            // the message of llama-cpp-python
            answer(socket, 500, &[], br#"{"error": {"message": "logprobs is not supported"}}"#);
        } else {
            stream(socket, &[event("ls"), finish("stop")]);
        }
    });
    let model = model(&server.url);
    for _ in 0..2 {
        let done = model.generate(&request("x", text()), &mut |_| Flow::Continue).unwrap();
        assert_eq!(done.text, "ls");
        assert_eq!(done.tokens[0].logprob, None);
    }
    assert_eq!(*refusals.lock().unwrap(), 2);
}

/// The error output of a rehearsed command may be the text of a file.
#[test]
fn no_rehearsal_sends_the_text_of_a_file_to_a_server() {
    let machine = Machine::new();
    let secret = "password-of-the-bank";
    machine.write("home/.netrc", secret);
    machine.write("work/notes.txt", secret);
    let home = machine.path("home");
    for line in ["cat ~/.netrc >&2; false".to_owned(), format!("cat {}/.netrc >&2; false", home.display())]
        .into_iter()
        .chain(["cat notes.txt >&2; false".to_owned()])
    {
        let server = Server::start(move |_, socket| stream(socket, &[event(&line), finish("stop")]));
        let model = format!("openai:{}#tiny", server.url);
        let ran = machine.run(&["--json", "--shell", "bash", "--model", &model, "show the notes"]);
        let seen = server.seen();
        assert!(!seen.is_empty(), "{ran:#?}");
        assert!(seen.iter().all(|request| !request.body.contains(secret)), "{ran:#?}");
    }
}

/// Asks twice of a server that fails the first `failures` requests; returns the bodies it received.
fn bodies_sent_to_failing_server(failures: usize) -> Vec<Value> {
    let bodies = Arc::<Mutex<Vec<Value>>>::default();
    let received = bodies.clone();
    let server = Server::start(move |request, socket| {
        let mut received = received.lock().unwrap();
        received.push(serde_json::from_str(&request.body).unwrap());
        if received.len() <= failures {
            answer(socket, 500, &[], br#"{"error": {"message": "the model is overloaded"}}"#);
        } else {
            stream(socket, &[event("ls"), finish("stop")]);
        }
    });
    let model = model(&server.url);
    for _ in 0..2 {
        assert_eq!(model.generate(&request("x", text()), &mut |_| Flow::Continue).unwrap().text, "ls");
    }
    std::mem::take(&mut *bodies.lock().unwrap())
}

#[test]
fn after_one_server_error_all_parameters_are_sent() {
    let bodies = bodies_sent_to_failing_server(1);
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| body["logprobs"] == json!(true) && body.get("stream_options").is_some()));
}

#[test]
fn after_two_server_errors_only_one_request_omits_parameters() {
    let bodies = bodies_sent_to_failing_server(2);
    assert_eq!(bodies.len(), 4);
    assert!(bodies[3]["logprobs"] == json!(true) && bodies[3].get("stream_options").is_some(), "{}", bodies[3]);
}

#[test]
fn an_invalid_request_is_sent_once() {
    for (status, message) in [(400, "context too long"), (422, "messages: the last one is empty")] {
        let body = json!({ "error": { "message": message } }).to_string();
        let server = Server::start(move |_, socket| answer(socket, status, &[], body.as_bytes()));
        let error = ask(&server, &request("x", text())).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}

#[test]
fn a_schema_that_a_server_rejects_is_left_out() {
    let server = Server::start(|request, socket| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        if body.get("response_format").is_some() {
            // the message of vLLM and llama-server
            answer(
                socket,
                400,
                &[],
                br#"{"error": {"message": "The provided JSON schema has features without a grammar"}}"#,
            );
        } else {
            stream(socket, &[event("{}"), finish("stop")]);
        }
    });
    let schema = Shape::Json(json!({"type": "object"}));
    assert_eq!(ask(&server, &request("x", schema)).unwrap().0.text, "{}");
}

#[test]
fn a_finished_answer_counts_however_the_connection_ends() {
    // one connection ends without a last chunk, the other within a chunk
    for tail in [&b""[..], b"10\r\nhalf"] {
        let server = Server::start(move |_, socket| {
            let events = [event("ls"), finish("stop").replace("data: [DONE]\n\n", "")].concat();
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = write!(socket, "{head}{:x}\r\n{events}\r\n", events.len());
            let _ = socket.write_all(tail);
        });
        let (done, pieces) = ask(&server, &request("x", text())).unwrap();
        assert_eq!((done.text.as_str(), done.finish, pieces.concat().as_str()), ("ls", Finish::Stop, "ls"));
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    let server = Server::start(|_, socket| {
        let body = json!({"choices": [{"message": {"content": "ls"}, "finish_reason": "length"}],
                          "usage": {"prompt_tokens": 9, "completion_tokens": 1}});
        answer(socket, 200, &[("Content-Type", "application/json")], body.to_string().as_bytes());
    });
    let (done, pieces) = ask(&server, &request("x", text())).unwrap();
    assert_eq!((done.text.as_str(), done.finish, pieces.len()), ("ls", Finish::Length, 1));
    assert_eq!((done.usage.prompt_tokens, done.usage.completion_tokens), (9, 1));
}

#[test]
fn an_answer_that_breaks_its_shape_is_requested_once_more() {
    let choice = Shape::Choice(vec!["yes".into(), "no".into()]);
    let server = streaming(|body| match body["messages"].as_array().unwrap().len() {
        2 => vec!["May", "be."],
        _ => vec!["no", "\n"],
    });
    let (done, pieces) = ask(&server, &request("x", choice.clone())).unwrap();
    assert_eq!((done.text.as_str(), pieces), ("no", vec!["no".to_string()]));
    let second: Value = serde_json::from_str(&server.seen()[1].body).unwrap();
    assert!(second["messages"][3]["content"].as_str().unwrap().contains("none of: yes, no"), "{second}");

    let stubborn = streaming(|_| vec!["Maybe."]);
    let error = ask(&stubborn, &request("x", choice)).unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
    assert_eq!(stubborn.seen().len(), 2);

    let schema = Shape::Json(json!({"type": "object", "required": ["cmd"]}));
    let valid = streaming(|body| {
        assert_eq!(body["response_format"]["json_schema"]["schema"]["required"], json!(["cmd"]));
        vec!["{\"cmd\": ", "\"ls\"}"]
    });
    assert_eq!(ask(&valid, &request("x", schema)).unwrap().0.text, r#"{"cmd": "ls"}"#);

    let lark = Shape::Lark("start: \"ls\" (\" -\" /[a-z]+/)?".into());
    assert_eq!(ask(&streaming(|_| vec!["ls", " -la\n"]), &request("x", lark.clone())).unwrap().0.text, "ls -la");
    assert!(ask(&streaming(|_| vec!["rm"]), &request("x", lark)).is_err());
    let broken = Shape::Lark("start: nothing".into());
    assert!(matches!(ask(&streaming(|_| vec!["x"]), &request("x", broken)), Err(ModelError::BadShape(_))));
}

#[test]
fn each_error_has_its_own_message() {
    type Behaviour = fn(&Req, &mut TcpStream);
    let cases: [(Behaviour, &str); 9] = [
        (|_, s| answer(s, 401, &[], br#"{"error":{"message":"bad key"}}"#), "CARO_API_KEY"),
        (|_, s| answer(s, 404, &[], br#"{"error":"model 'tiny' not found"}"#), "knows no model `tiny`"),
        (|_, s| answer(s, 503, &[], b"<html>busy</html>"), "HTTP status 503: <html>busy</html>"),
        (|_, s| answer(s, 400, &[], br#"{"error":{"message":"context too long"}}"#), "context too long"),
        (|_, s| answer(s, 200, &[], b"<html>welcome</html>"), "no JSON but: <html>welcome"),
        (|_, s| stream(s, &[event("ls")]), "cut off"),
        (
            |_, s| stream(s, &[event("ls"), "data: {\"error\":{\"message\":\"out of memory\"}}\n\n".into()]),
            "out of memory",
        ),
        (|_, s| stream(s, &["data: <html>\n\n".into()]), "no JSON but: <html>"),
        (|_, _| std::thread::sleep(Duration::from_secs(300)), "timed out"),
    ];
    for (behaviour, message) in cases {
        let server = Server::start(behaviour);
        let error = ask(&server, &request("x", text())).unwrap_err();
        assert!(error.to_string().contains(message), "{message}: {error}");
        assert!(error.to_string().contains(&server.url), "{error}");
        assert!(!error.hint().is_empty());
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = model(&format!("http://{port}")).generate(&request("x", text()), &mut |_| Flow::Continue).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn cancelling_closes_the_connection_even_before_the_first_word() {
    for words in [&[][..], &["ls"]] {
        let closed = Arc::<Mutex<Option<Instant>>>::default();
        let (closed_at, asked) = (closed.clone(), Arc::<AtomicBool>::default());
        let is_asked = asked.clone();
        let server = Server::start(move |_, socket| {
            is_asked.store(true, Ordering::SeqCst);
            if !words.is_empty() {
                stream(socket, &[event(words[0])]);
            }
            let _ = socket.set_read_timeout(Some(Duration::from_secs(300)));
            let end = std::io::Read::read(socket, &mut [0; 1]);
            if matches!(end, Ok(0)) || end.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset) {
                *closed_at.lock().unwrap() = Some(Instant::now());
            }
        });
        let options = Options { silence: Duration::from_secs(300), ..Options::default() };
        let model = Remote::new(&server.url, "tiny", options);
        let request = request("x", text());
        let cancel = request.cancel.clone();
        let begun = Instant::now();
        let (silent, canceller) = (words.is_empty(), cancel.clone());
        std::thread::spawn(move || {
            while !(silent && asked.load(Ordering::SeqCst)) {
                std::thread::sleep(Duration::from_millis(5));
            }
            canceller.cancel();
        });
        let heard = &mut |_: &str| {
            cancel.cancel();
            Flow::Continue
        };
        let done = model.generate(&request, heard).unwrap();
        assert_eq!((done.finish, done.text.as_str()), (Finish::Cancelled, words.concat().as_str()));
        assert!(begun.elapsed() < AMPLE, "{:?}", begun.elapsed());
        let until = Instant::now() + AMPLE;
        while closed.lock().unwrap().is_none() {
            assert!(Instant::now() < until, "the server was left waiting");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn the_caller_may_stop_in_the_middle() {
    let server = streaming(|_| vec!["a ", "b ", "c "]);
    let mut seen = 0;
    let done = model(&server.url).generate(&request("x", text()), &mut |_| {
        seen += 1;
        if seen == 2 { Flow::Stop } else { Flow::Continue }
    });
    assert_eq!((done.unwrap().finish, seen), (Finish::Cancelled, 2));
}

/// llama-cpp-python's server on a small model, if both are installed.
mod real {
    use super::*;
    use std::process::{Child, Command, Stdio};

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Finds a Python that has the server; the error says why there is none.
    fn python() -> Result<String, String> {
        let named = std::env::var("CARO_TEST_LLAMA_SERVER_PYTHON").ok();
        let python = named.unwrap_or_else(|| "python3".into());
        let import = Command::new(&python).args(["-c", "import llama_cpp.server"]).stderr(Stdio::null()).status();
        match import {
            Ok(status) if status.success() => Ok(python),
            _ => Err(format!("{python} has no llama_cpp.server (set CARO_TEST_LLAMA_SERVER_PYTHON)")),
        }
    }

    /// Finds the file of a small model; the error says why there is none.
    fn weights() -> Result<std::path::PathBuf, String> {
        use caro::model::fetch::{Settings, file_path, find};
        let cache = directories::ProjectDirs::from("", "", "caro").map(|d| d.cache_dir().to_path_buf());
        let models = std::env::var_os("CARO_MODELS_DIR").map(Into::into).or(cache.map(|c| c.join("models")));
        let settings = Settings::new(models, None, []).map_err(|e| e.to_string())?;
        let ids = ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"];
        let here = ids.iter().filter_map(|id| {
            let card = find(id, &settings).ok()??;
            Some(file_path(&card, &card.files[0], &settings)).filter(|path| path.is_file())
        });
        here.into_iter().next().ok_or_else(|| format!("none of {} is here", ids.join(", ")))
    }

    #[test]
    fn a_real_server_answers_in_every_shape() {
        let (python, weights) = match (python(), weights()) {
            (Ok(python), Ok(weights)) => (python, weights),
            (Err(why), _) | (_, Err(why)) => return println!("skipped: {why}"),
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let mut command = Command::new(python);
        command.args([
            "-m",
            "llama_cpp.server",
            "--port",
            &port,
            "--n_ctx",
            "1024",
            "--n_threads",
            "2",
            "--logits_all",
            "true",
        ]);
        command.arg("--model").arg(weights).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
            assert!(Instant::now() < until, "the server does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        let model = Remote::new(&format!("http://127.0.0.1:{port}"), "any", Options::default());
        // some builds of the server crash on this machine by an illegal instruction, which is no fault of caro
        let first = model.generate(&request("Hi.", text()), &mut |_| Flow::Continue);
        if let (Err(error), Ok(Some(end))) = (&first, running.0.try_wait()) {
            return println!("skipped: the server itself crashed ({end}): {error}");
        }

        let mut pieces = Vec::new();
        let done = model.generate(&request("Say hello.", text()), &mut |piece| {
            pieces.push(piece.to_string());
            Flow::Continue
        });
        let done = done.unwrap();
        assert!(!done.text.is_empty() && pieces.concat() == done.text, "{done:?}");
        assert!(done.tokens.iter().all(|t| t.logprob.is_some_and(|l| l <= 0.0)), "{:?}", done.tokens);

        let schema =
            json!({"type": "object", "properties": {"cmd": {"type": "string", "maxLength": 20}}, "required": ["cmd"]});
        let mut json_request = request("The command that lists files, as JSON with the key cmd.", Shape::Json(schema));
        json_request.max_tokens = 32;
        let done = model.generate(&json_request, &mut |_| Flow::Continue).unwrap();
        if done.finish == Finish::Stop {
            let document: Value = serde_json::from_str(&done.text).unwrap();
            assert!(document["cmd"].is_string(), "{document}");
        }

        let long = request("Count from one to one thousand.", Shape::Text { stop: vec![] });
        let long = Request { max_tokens: 400, ..long };
        let cancel = long.cancel.clone();
        let begun = Instant::now();
        let done = model.generate(&long, &mut |_| {
            cancel.cancel();
            Flow::Continue
        });
        assert_eq!(done.unwrap().finish, Finish::Cancelled);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        // the server still answers
        assert!(model.generate(&request("Say yes.", text()), &mut |_| Flow::Continue).is_ok());
    }
}
