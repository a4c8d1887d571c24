//! Tests the engine from a prompt to its text: limits, shapes, reuse of the prompt and stops.

use super::quant::Kind;
use super::testing::{self, Field, Tiny, free, request, run};
use super::*;
use crate::{Finish, Prompt, Role, Sampling, Shape};
use std::io::Write;

fn engine(tiny: &Tiny) -> Result<Engine, ModelError> {
    open(tiny, None)
}

fn open(tiny: &Tiny, adapter: Option<&Tiny>) -> Result<Engine, ModelError> {
    let file = tiny.file();
    let adapter = adapter.map(testing::adapter_options);
    // the mapping outlives the file
    Engine::open(file.path(), "tiny", &Options { device: Device::Cpu, adapter, ..Options::default() })
}

#[test]
fn free_text_stays_within_its_limit_and_reports_its_cost() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    assert_eq!((engine.id(), engine.limits().context), ("tiny", 512));
    let completion = run(&engine, &request("hi", free()));
    assert!(matches!(completion.finish, Finish::Length | Finish::Stop));
    assert!(completion.usage.load > Duration::ZERO);
    assert_eq!(completion.usage.cached_tokens, 0);
    for token in &completion.tokens {
        let (logprob, runner_up) = (token.logprob.unwrap(), token.runner_up.unwrap());
        assert!(logprob <= 0.0 && runner_up <= logprob, "greedy takes the likeliest");
        assert!((logprob.exp() + runner_up.exp()) <= 1.001);
    }
    let again = run(&engine, &request("hi", free()));
    assert_eq!(again.text, completion.text);
    assert_eq!(again.usage.load, Duration::ZERO, "reported once");
    assert_eq!(again.usage.cached_tokens, again.usage.prompt_tokens - 1, "all but the token to go on from");
}

#[test]
fn a_common_prefix_is_reused_and_changes_nothing() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let fresh = run(&engine, &request("list all the files here", free()));
    run(&engine, &request("list all users", free()));
    let again = run(&engine, &request("list all the files here", free()));
    assert!(again.usage.cached_tokens > 10);
    assert_eq!(again.text, fresh.text);
}

#[test]
fn shapes_are_enforced_at_every_temperature() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let choices: Vec<String> = ["list", "find", "tar -x", ""].map(String::from).to_vec();
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"cmd": {"enum": ["ls", "hello"]}, "sure": {"type": "boolean"}},
        "required": ["cmd", "sure"],
        "additionalProperties": false
    });
    let pattern = regex::Regex::new(r"^ls( -[a-z]){2,3}\n$").unwrap();
    let lark = r#"start: "ls" (" -" /[a-z]/){2,3} "\n""#;
    for (seed, temperature) in [(0, 0.0), (1, 0.5), (2, 1.5), (3, 10.0)] {
        let ask = |shape: Shape| {
            let mut request = request("what", shape);
            request.sampling = Sampling { temperature, top_p: 0.95, seed };
            request.max_tokens = 60;
            let completion = run(&engine, &request);
            assert_eq!(completion.finish, Finish::Stop);
            completion.text
        };
        let choice = ask(Shape::Choice(choices.clone()));
        assert!(choices.contains(&choice), "{choice:?}");
        let json: serde_json::Value = serde_json::from_str(&ask(Shape::Json(schema.clone()))).unwrap();
        assert!(json["cmd"] == "ls" || json["cmd"] == "hello");
        let line = ask(Shape::Lark(lark.into()));
        assert!(pattern.is_match(&line), "{line:?}");
    }
}

#[test]
fn forced_text_is_appended_without_the_model() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let completion = run(&engine, &request("x", Shape::Choice(vec!["hello hello".into()])));
    assert_eq!((completion.text.as_str(), completion.finish), ("hello hello", Finish::Stop));
    assert!(completion.tokens.iter().all(|token| token.logprob.is_none()), "the model had no say");
}

#[test]
fn a_stop_string_ends_the_text_before_itself() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let whole = run(&engine, &request("hi", free())).text;
    let (at, stop) = whole.char_indices().map(|(i, c)| (i, c.to_string())).nth(3).unwrap();
    let completion = run(&engine, &request("hi", Shape::Text { stop: vec![stop.clone()] }));
    assert_eq!(completion.text, whole[..whole.find(&stop).unwrap().min(at)]);
    assert_eq!(completion.finish, Finish::Stop);
}

#[test]
fn the_token_limit_and_the_context_end_a_completion() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let mut short = request("hi", Shape::Lark("start: /[a-z]+/".into()));
    short.max_tokens = 3;
    let completion = run(&engine, &short);
    assert_eq!((completion.finish, completion.tokens.len()), (Finish::Length, 3));
    short.max_tokens = 0;
    assert_eq!(run(&engine, &short).finish, Finish::Length);

    let mut long = request(&"\u{1}".repeat(470), Shape::Lark("start: /[a-z]+/".into()));
    long.max_tokens = 1000;
    let completion = run(&engine, &long);
    assert_eq!(completion.finish, Finish::Length);
    assert_eq!(completion.usage.prompt_tokens + completion.tokens.len(), 512);

    let error = engine.generate(&request(&"\u{1}".repeat(600), free()), &mut |_| Flow::Continue).unwrap_err();
    assert!(matches!(error, ModelError::TooLong { limit: 512, .. }), "{error}");
}

#[test]
fn the_caller_can_cancel_before_and_during_generation() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let ask = request("hi", Shape::Lark("start: /[a-z]+/".into()));
    let mut calls = 0;
    let completion = engine
        .generate(&ask, &mut |_| {
            calls += 1;
            if calls == 2 { Flow::Stop } else { Flow::Continue }
        })
        .unwrap();
    assert_eq!((completion.finish, calls), (Finish::Cancelled, 2));
    ask.cancel.cancel();
    let completion = run(&engine, &ask);
    assert_eq!((completion.finish, completion.tokens.len()), (Finish::Cancelled, 0));
    let fresh = request("hi", Shape::Lark("start: /[a-z]+/".into()));
    assert_eq!(run(&engine, &fresh).tokens.len(), 24, "the next call is not affected");
}

#[test]
fn a_bad_shape_is_an_error_and_does_not_affect_later_calls() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let error = engine.generate(&request("x", Shape::Lark("start: nothing".into())), &mut |_| Flow::Continue);
    assert!(matches!(error, Err(ModelError::BadShape(_))));
    assert_eq!(run(&engine, &request("x", Shape::Choice(vec!["ok".into()]))).text, "ok");
}

#[test]
fn both_engines_answer_alike() {
    let file = Tiny::new("qwen2").file();
    let open = |engine| {
        let options = Options { engine, device: Device::Cpu, ..Options::default() };
        Engine::open(file.path(), "tiny", &options).unwrap()
    };
    let (own, by_candle) = (open(EngineKind::Own), open(EngineKind::Candle));
    assert!(by_candle.describe().contains("candle") && !own.describe().contains("candle"));
    for shape in [free(), Shape::Choice(vec!["list".into(), "find".into()])] {
        for text in ["hi", "list the files", "hi"] {
            let ask = request(text, shape.clone());
            assert_eq!(run(&own, &ask).text, run(&by_candle, &ask).text, "{text}");
        }
    }
}

#[test]
fn the_own_engine_refuses_what_only_candle_computes() {
    let glm4 = Tiny::new("glm4").file();
    let qwen2 = Tiny::new("qwen2").file();
    for (file, device) in [(&glm4, Device::Cpu), (&qwen2, Device::Cuda), (&qwen2, Device::Metal)] {
        let options = Options { engine: EngineKind::Own, device, ..Options::default() };
        let error = Engine::open(file.path(), "x", &options).unwrap_err();
        assert!(matches!(error, ModelError::Unsupported { what: "engine", .. }), "{error}");
        assert!(error.hint().contains("--engine auto"), "{}", error.hint());
    }
}

#[test]
fn an_end_token_without_a_logit_is_refused() {
    let mut tiny = Tiny::new("qwen2");
    // fewer rows than tokens: the ends are the last of them
    for name in ["token_embd.weight", "output.weight"] {
        tiny.tensor(name, &[64, 256], 1.0);
    }
    let error = engine(&tiny).unwrap_err();
    assert!(matches!(error, ModelError::BadFile { .. }) && error.to_string().contains("its end token"), "{error}");
    let mut tiny = Tiny::new("qwen2");
    tiny.set("tokenizer.ggml.eos_token_id", Field::U32(u32::MAX));
    let engine = engine(&tiny).unwrap();
    assert!(
        !run(&engine, &request("hi", free())).tokens.is_empty(),
        "an end that is not a token at all is none of its ends"
    );
}

#[test]
fn unsupported_and_invalid_files_are_refused() {
    let refused = |tiny: &Tiny| engine(tiny).unwrap_err();
    let with = |key: &str, value: &str| {
        let mut tiny = Tiny::new("qwen2");
        tiny.set(key, Field::Text(value.into()));
        refused(&tiny)
    };
    for (key, value, what) in [
        ("general.architecture", "mamba", "architecture"),
        ("tokenizer.ggml.model", "llama", "tokenizer"),
        ("tokenizer.ggml.pre", "chameleon", "tokenizer"),
        ("tokenizer.chat_template", "[INST]", "chat template"),
    ] {
        let error = with(key, value);
        assert!(matches!(&error, ModelError::Unsupported { what: w, .. } if *w == what), "{key}: {error}");
    }
    for key in ["tokenizer.ggml.tokens", "tokenizer.ggml.merges", "qwen2.block_count"] {
        let mut tiny = Tiny::new("qwen2");
        tiny.remove(key);
        assert!(matches!(refused(&tiny), ModelError::BadFile { .. }), "{key}");
    }
    let mut tiny = Tiny::new("qwen2");
    tiny.set("tokenizer.ggml.merges", Field::Texts(vec!["nonsense".into()]));
    assert!(matches!(refused(&tiny), ModelError::BadFile { .. }));
}

#[test]
fn a_truncated_file_is_refused_without_a_panic() {
    let bytes = Tiny::new("qwen2").bytes();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for cut in (0..40).map(|i| bytes.len() * i / 40).chain([1, 3, 4, 20]) {
        file.as_file_mut().set_len(0).unwrap();
        std::io::Seek::rewind(file.as_file_mut()).unwrap();
        file.write_all(&bytes[..cut]).unwrap();
        let error = Engine::open(file.path(), "cut", &Options::default()).unwrap_err();
        assert!(matches!(error, ModelError::BadFile { .. }), "{cut}: {error}");
    }
}

#[test]
fn devices_that_this_build_lacks_are_named() {
    let file = Tiny::new("qwen2").file();
    for (device, has) in [(Device::Cuda, cfg!(feature = "cuda")), (Device::Metal, cfg!(feature = "metal"))] {
        if !has {
            let options = Options { device, ..Options::default() };
            let error = Engine::open(file.path(), "x", &options).unwrap_err();
            assert!(matches!(error, ModelError::Unsupported { what: "device", .. }), "{error}");
        }
    }
    assert_eq!("metal".parse::<Device>().unwrap(), Device::Metal);
    assert!("tpu".parse::<Device>().is_err());
}

#[test]
fn the_bench_measures_something() {
    let file = Tiny::new("qwen2").file();
    let mut options = Options { threads: Some(2), ..Options::default() };
    // the longest prompt has 512 tokens
    options.context = 600;
    let mut prompt = Prompt::system("list the users in the system");
    prompt.stable_messages = 1;
    prompt.push(Role::User, "hello, list the users");
    let answers = [(prompt.clone(), "list the users in the system".to_owned()), (prompt, String::new())];
    let report = bench(file.path(), &options, 1, &answers).unwrap();
    assert_eq!(report.prefill.iter().map(|(len, _)| *len).collect::<Vec<_>>(), [8, 32, 128, 512]);
    assert!(report.decode > 0.0 && report.load > Duration::ZERO);
    let More { effective, busy, bursts } = report.more.unwrap();
    assert!(bursts.len() == 8 && bursts[0] == 1.0, "{bursts:?}");
    assert!(effective.tokens > 4 && effective.rate > 0.0 && effective.plain > 0.0, "{effective:?}");
    assert!(0 < effective.accepted && effective.accepted <= effective.drafted, "it repeats the prompt: {effective:?}");
    assert!(busy.decode > 0.0 && busy.free_prefill > 0.0);
    assert_eq!((bench(file.path(), &options, 1, &[]).unwrap().more, report.adapter), (None, None));
    options.adapter = Some(testing::adapter_options(&Tiny::adapter("qwen2", 64, 8, [Kind::F32, Kind::F16], 0.3)));
    let Beside { decode, prefill_128, prefill_512 } = bench(file.path(), &options, 1, &[]).unwrap().adapter.unwrap();
    for pair in [decode, prefill_128, prefill_512] {
        assert!(pair.with > Duration::ZERO && pair.without > Duration::ZERO && pair.cost() > -1.0, "{pair:?}");
    }
}

/// The real model, with free text and shapes. In release builds only: unoptimised kernels take minutes.
#[test]
fn the_real_model_answers_correctly() {
    if cfg!(debug_assertions) {
        eprintln!("skipped: the real model runs in release builds only");
        return;
    }
    let Some(path) = testing::real_model() else { return };
    let engine = Engine::open(&path, "real", &Options { device: Device::Cpu, ..Options::default() }).unwrap();
    let mut ask = request("What is the capital of France? One word.", free());
    let completion = run(&engine, &ask);
    assert!(completion.text.starts_with("Paris"), "{completion:?}");
    assert_eq!(completion.finish, Finish::Stop);
    ask.shape = Shape::Choice(vec!["London".into(), "Paris".into(), "Rome".into()]);
    assert_eq!(run(&engine, &ask).text, "Paris");
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"cmd": {"type": "string"}, "confidence": {"type": "number"}},
        "required": ["cmd", "confidence"],
        "additionalProperties": false
    });
    let mut ask = request("The shell command that prints the working directory, as JSON.", Shape::Json(schema));
    ask.max_tokens = 64;
    let completion = run(&engine, &ask);
    let json: serde_json::Value = serde_json::from_str(&completion.text).unwrap();
    assert_eq!(json["cmd"], "pwd");
}

#[test]
fn completions_sampled_together_equal_those_sampled_one_by_one() {
    for adapted in [false, true] {
        check_sampled_together(adapted);
    }
}

fn check_sampled_together(adapted: bool) {
    let line = Shape::Lark(r#"start: "ls" (" -" /[a-z]/){2,6} "\n""#.into());
    for architecture in ["qwen2", "llama", "qwen3"] {
        let adapter = Tiny::adapter(architecture, 64, 16, [Kind::F32, Kind::F16], 0.1);
        let engine = open(&Tiny::new(architecture), Some(&adapter)).unwrap();
        // at a low temperature the completions are equal for longer
        for (shape, count, temperature) in [
            (free(), 5, 0.9),
            (line.clone(), 3, 0.9),
            (free(), 1, 0.9),
            (free(), 8, 0.9),
            (free(), 8, 0.05),
            (line.clone(), 8, 0.05),
            (line.clone(), 4, 0.0),
        ] {
            let mut request = request("list all the files here", shape);
            request.prompt.adapted = adapted;
            request.sampling = Sampling { temperature, top_p: 0.95, seed: 40 };
            let together = engine.sample(&request, count).unwrap();
            let alone = crate::interface::sample_one_by_one(&engine, &request, count).unwrap();
            assert_eq!(together.len(), count);
            for (a, b) in together.iter().zip(&alone) {
                assert_eq!((&a.text, a.finish), (&b.text, b.finish), "{architecture}, {count} lanes");
                assert_eq!((a.usage.adapted, b.usage.adapted), (adapted, adapted));
                assert_eq!(a.usage.completion_tokens, a.tokens.len());
                for (x, y) in a.tokens.iter().zip(&b.tokens) {
                    assert_eq!(x.bytes, y.bytes);
                    // the adapter rounds to 8 bits, where the last bit of a sum may decide
                    let limit = if adapted { 0.05 } else { 1e-3 };
                    assert!((x.logprob.unwrap_or(0.0) - y.logprob.unwrap_or(0.0)).abs() < limit, "{x:?} {y:?}");
                }
            }
            let texts: std::collections::BTreeSet<&str> = together.iter().map(|c| c.text.as_str()).collect();
            assert!(count == 1 || temperature < 0.5 || texts.len() > 1, "each lane has a seed of its own");
        }
    }
}

#[test]
fn sampling_does_not_affect_the_next_request() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let before = run(&engine, &request("hi", free())).text;
    let sampled = Request { sampling: Sampling { temperature: 1.0, top_p: 1.0, seed: 1 }, ..request("hi", free()) };
    engine.sample(&sampled, 4).unwrap();
    assert_eq!(run(&engine, &request("hi", free())).text, before);
}

#[test]
fn completions_without_room_are_sampled_one_by_one() {
    let engine = engine(&Tiny::new("qwen2")).unwrap();
    let mut wide = request("hi", free());
    wide.sampling = Sampling { temperature: 1.0, top_p: 1.0, seed: 1 };
    wide.max_tokens = 200;
    for (count, max_tokens) in [(8, 200), (12, 4), (0, 4)] {
        let request = Request { max_tokens, ..wide.clone() };
        assert_eq!(engine.sample(&request, count).unwrap().len(), count);
    }
    wide.cancel.cancel();
    let cancelled = engine.sample(&Request { max_tokens: 4, ..wide }, 3).unwrap();
    assert!(cancelled.iter().all(|c| c.finish == Finish::Cancelled && c.tokens.is_empty()));
}
