//! Tests concurrent calls of one engine: they are answered as if each were alone.

use super::super::testing::{Tiny, free, request, run};
use super::super::{Device, Options};
use super::*;
use crate::Shape;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

fn engine() -> Arc<Engine> {
    let file = Tiny::new("qwen2").file();
    Arc::new(Engine::open(file.path(), "tiny", &Options { device: Device::Cpu, ..Options::default() }).unwrap())
}

fn batched(count: usize) -> BatchedEngine {
    BatchedEngine::new(engine(), count, 200).unwrap()
}

#[test]
fn a_single_call_answers_as_the_engine() {
    let (engine, batched) = (engine(), batched(3));
    assert_eq!((batched.concurrency(), batched.limits().context, batched.id()), (3, 200, "tiny"));
    for shape in [free(), Shape::Choice(vec!["abc".into(), "hello".into()]), Shape::Json(json!({ "type": "integer" }))]
    {
        let request = request("hi there", shape);
        let (alone, together) = (run(&*engine, &request), run(&batched, &request));
        assert_eq!((alone.text, alone.finish), (together.text, together.finish));
    }
    let again = run(&batched, &request("hi there", free()));
    assert_eq!(again.usage.cached_tokens, again.usage.prompt_tokens - 1, "its slot kept the prompt");
}

#[test]
fn concurrent_calls_are_not_mixed() {
    let (engine, batched) = (engine(), batched(4));
    // more callers than slots, prompts of many lengths, some with a common prefix
    let requests: Vec<Request> = (0..12)
        .map(|i| {
            let text = format!("{} number {i}", "one two three ".repeat(i % 4 * 3));
            let shape = if i % 3 == 0 { Shape::Json(json!({ "const": format!("answer {i}") })) } else { free() };
            request(&text, shape)
        })
        .collect();
    let together: Vec<Completion> = std::thread::scope(|scope| {
        let callers: Vec<_> = requests.iter().map(|request| scope.spawn(|| run(&batched, request))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    for (request, got) in requests.iter().zip(&together) {
        let alone = run(&*engine, request);
        // the tiny model's numbers are far enough apart that rounding changes no choice of the first tokens
        let first = |c: &Completion| c.tokens.iter().take(4).map(|t| t.bytes.clone()).collect::<Vec<_>>();
        assert_eq!(first(got), first(&alone));
        assert_eq!(got.usage.prompt_tokens, alone.usage.prompt_tokens);
        if let Shape::Json(schema) = &request.shape {
            assert_eq!(got.text, schema["const"].to_string());
        }
    }
}

#[test]
fn a_cancelled_call_releases_its_slot() {
    let batched = batched(1);
    let long = |cancel: &Cancel| Request { max_tokens: 150, cancel: cancel.clone(), ..request("hi", free()) };
    let cancel = Cancel::new();
    let stopped = batched.generate(&long(&cancel), &mut |_| Flow::Stop).unwrap();
    assert_eq!(stopped.finish, Finish::Cancelled);
    // a call is cancelled while it waits for the only slot
    let late = Cancel::new().with_deadline(Instant::now() + Duration::from_millis(30));
    let calls = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            batched.generate(&long(&cancel), &mut |_| {
                calls.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(100));
                if late.is_cancelled() { Flow::Stop } else { Flow::Continue }
            })
        });
        while calls.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let waiting = batched.generate(&long(&late), &mut |_| Flow::Continue).unwrap();
        assert_eq!((waiting.finish, waiting.usage.completion_tokens), (Finish::Cancelled, 0));
        first.join().unwrap().unwrap();
    });
    assert!(run(&batched, &request("hi", free())).usage.completion_tokens > 0, "the slot is free again");
}

#[test]
fn a_panicking_caller_does_not_affect_others() {
    let batched = batched(2);
    std::thread::scope(|scope| {
        let broken = scope.spawn(|| batched.generate(&request("hi", free()), &mut |_| panic!("a caller's own fault")));
        let other = scope.spawn(|| run(&batched, &request("hello", free())));
        assert!(broken.join().is_err());
        assert!(other.join().unwrap().usage.completion_tokens > 0);
    });
    for _ in 0..3 {
        assert!(run(&batched, &request("hi", free())).usage.completion_tokens > 0);
    }
}

#[test]
fn prompts_and_sizes_that_do_not_fit_are_refused() {
    let batched = batched(2);
    let error = batched.generate(&request(&"word ".repeat(300), free()), &mut |_| Flow::Continue).unwrap_err();
    assert!(matches!(error, ModelError::TooLong { limit: 200, .. }), "{error}");
    assert!(BatchedEngine::new(engine(), usize::MAX, usize::MAX).is_none(), "no memory for so many");
}

#[test]
fn without_memory_for_slots_the_engine_answers_alone() {
    let (many, alone) = (BatchedEngine::or_alone(engine(), 4), BatchedEngine::or_alone(engine(), usize::MAX));
    assert_eq!((many.concurrency(), alone.concurrency()), (4, 1));
    let request = request("hi", free());
    assert_eq!(run(&*many, &request).text, run(&*alone, &request).text);
}

#[test]
fn prompts_with_stable_messages_go_through_the_engine() {
    let batched = batched(2);
    let mut request = request("hi", free());
    request.prompt.stable_messages = 1;
    let (alone, got) = (run(&*engine(), &request), run(&batched, &request));
    assert_eq!(alone.text, got.text);
}
