//! Tests drafts: which tokens are drafted, and that they do not change the text.

use super::super::backend::Backend;
use super::super::generate::Sequence;
use super::super::quant::Kind;
use super::super::testing::{self, Tiny};
use super::super::{Device, Engine, Options};
use super::*;
use crate::{Cancel, Completion, Flow, Model, ModelError, Prompt, Request, Role, Sampling, Shape};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Drafts tokens after `text`, whose first `stable` tokens are the stable prefix.
fn draft(drafter: &mut Drafter, text: &[u32], stable: usize, phrases: &[&str], most: usize, ends: &[u32]) -> Vec<u32> {
    let tokenizer = testing::tiny_tokenizer("qwen2");
    let phrases = Phrases::new(phrases.iter().map(ToString::to_string).collect());
    drafter.draft(&DraftContext { text, stable, phrases: &phrases, tokenizer: &tokenizer, ends }, most)
}

/// Eight tokens twice, and their first half once more.
const TEXT: [u32; 20] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4];

#[test]
fn the_token_that_most_often_followed_is_drafted() {
    let next = |text: &[u32], stable, phrases: &[&str]| draft(&mut Drafter::default(), text, stable, phrases, 1, &[]);
    assert_eq!(next(&TEXT, 0, &[]), [5]);
    assert_eq!(next(&[1, 2, 3, 9, 2, 3, 9, 7, 3, 8, 2, 3], 0, &[]), [9], "`2 3` counts more than `3`");
    assert_eq!(next(&[1, 2, 3, 8, 5, 1, 2, 3, 9, 6, 1, 2, 3], 5, &[]), [9], "the stable part counts less");
    assert!(next(&[1, 2, 3], 0, &[]).is_empty() && next(&[1], 0, &[]).is_empty() && next(&[], 0, &[]).is_empty());
    let tokenizer = testing::tiny_tokenizer("qwen2");
    let mut ids = Vec::new();
    tokenizer.encode("the system hello", &mut ids);
    let phrases = ["the system hello"; 9];
    let (last, before) = ids.split_last().unwrap();
    assert_eq!(next(before, 0, &phrases), [*last], "from a phrase");
    assert!(next(&ids, 0, &phrases).is_empty(), "what begins the next phrase does not follow");
}

#[test]
fn a_draft_stays_within_its_limit_and_the_turn() {
    let mut drafter = Drafter::default();
    let whole = draft(&mut drafter, &TEXT, 0, &[], 7, &[]);
    assert!(whole.len() > 1 && TEXT[4..].starts_with(&whole), "{whole:?}");
    assert_eq!(draft(&mut drafter, &TEXT, 0, &[], 1, &[]), [5]);
    assert!(draft(&mut drafter, &TEXT, 0, &[], 0, &[]).is_empty());
    assert_eq!(draft(&mut drafter, &TEXT, 0, &[], 7, &[6]), [5]);
    assert_eq!(drafter.take_stats().drafted, whole.len() + 2);
    assert_eq!(drafter.take_stats(), DraftStats::default(), "counted once");
}

#[test]
fn drafting_stops_if_it_does_not_pay_and_is_tried_again() {
    let mut drafter = Drafter::default();
    let mut lengths = Vec::new();
    for _ in 0..300 {
        lengths.push(draft(&mut drafter, &TEXT, 0, &[], 7, &[]).len());
        drafter.learn(0, lengths.last() != Some(&0));
    }
    assert!(lengths[0] > 1);
    let pause = lengths.iter().position(|&length| length == 0).unwrap();
    assert!(lengths[pause..].iter().any(|&length| length > 0), "{lengths:?}");
    let retries = lengths[pause..].iter().filter(|&&length| length > 0).count();
    assert!(retries * 4 < lengths.len(), "but seldom: {lengths:?}");
    let mut drafter = Drafter::default();
    for _ in 0..50 {
        let length = draft(&mut drafter, &TEXT, 0, &[], 7, &[]).len();
        assert!(length >= lengths[0]);
        drafter.learn(length, false);
    }
}

fn shapes() -> Vec<Shape> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"cmd": {"type": "string", "maxLength": 30}, "kind": {"enum": ["list the users", "list the files"]}},
        "required": ["cmd", "kind"],
        "additionalProperties": false
    });
    vec![
        Shape::Text { stop: vec![] },
        Shape::Text { stop: vec!["e".into(), "st".into()] },
        Shape::Lark("start: /[^\\n]*/".into()),
        Shape::Lark("start: (/[a-d]{1,4}/ \" hello the system \")*".into()),
        Shape::Json(schema),
    ]
}

fn run(engine: &Engine, request: &Request) -> Completion {
    let mut streamed = String::new();
    let completion = engine.generate(request, &mut |text| {
        streamed += text;
        Flow::Continue
    });
    let completion = completion.unwrap();
    assert_eq!(streamed, completion.text);
    completion
}

/// Checks that both answer a request alike, and returns the numbers of tokens drafted and accepted.
fn compare(plain: &Engine, drafting: &Engine, request: &Request) -> (usize, usize) {
    let (want, got) = (run(plain, request), run(drafting, request));
    assert_eq!((&got.text, got.finish), (&want.text, want.finish));
    // log-probabilities too, bit by bit: confidence is computed from them
    assert_eq!(got.tokens, want.tokens);
    assert_eq!((want.usage.drafted_tokens, want.usage.accepted_tokens), (0, 0));
    assert!(got.usage.accepted_tokens <= got.usage.drafted_tokens);
    assert!(got.usage.accepted_tokens <= got.tokens.len());
    let is_shaped = !matches!(request.shape, Shape::Text { .. });
    assert_eq!(got.usage.shaping > Duration::ZERO, is_shaped, "{:?} of {:?}", got.usage.shaping, got.usage.decode);
    (got.usage.drafted_tokens, got.usage.accepted_tokens)
}

fn ask(text: &str, shape: &Shape, max_tokens: usize, sampling: Sampling) -> Request {
    let mut prompt = Prompt::system("list the users in the system, and then the files");
    prompt.push(Role::User, "hello 123 the inst").push(Role::Assistant, "abc ls -la --the");
    prompt.stable_messages = 3;
    prompt.push(Role::User, text);
    Request { prompt, shape: shape.clone(), sampling, max_tokens, cancel: Cancel::new() }
}

/// A model whose logits depend on the last two tokens alone, so that it repeats itself; it computes any batch as one
/// by one.
struct Parrot {
    held: Vec<u32>,
    logits: Vec<f32>,
    vocab: usize,
    context: usize,
    /// The number of passes so far.
    passes: Arc<AtomicUsize>,
}

impl Parrot {
    fn compute(&mut self, from: usize) {
        self.logits.clear();
        for at in from..self.held.len() {
            let (last, before) = (self.held[at], self.held[at.saturating_sub(1)]);
            self.logits.extend((0..self.vocab as u32).map(|id| {
                let mut noise = (u64::from(last) << 40 | u64::from(before % 3) << 20 | u64::from(id)).wrapping_mul(PHI);
                noise = (noise ^ noise >> 29).wrapping_mul(PHI);
                (noise >> 40) as f32 / (1 << 20) as f32
            }));
        }
    }
}

const PHI: u64 = 0x9e37_79b9_7f4a_7c15;

impl Backend for Parrot {
    fn context(&self) -> usize {
        self.context
    }

    fn len(&self) -> usize {
        self.held.len()
    }

    fn truncate(&mut self, len: usize) {
        self.held.truncate(len);
    }

    fn feed(&mut self, tokens: &[u32], cancel: &Cancel) -> Result<bool, ModelError> {
        self.feed_drafts(tokens, cancel)?;
        self.logits.drain(..self.logits.len() - self.vocab);
        Ok(true)
    }

    fn logits(&mut self) -> &mut [f32] {
        let last = self.logits.len() - self.vocab;
        &mut self.logits[last..]
    }

    fn draft_window(&self) -> usize {
        8
    }

    fn feed_drafts(&mut self, tokens: &[u32], _: &Cancel) -> Result<bool, ModelError> {
        assert!(!tokens.is_empty() && self.held.len() + tokens.len() <= self.context);
        let from = self.held.len();
        self.held.extend_from_slice(tokens);
        self.compute(from);
        self.passes.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    fn logits_at(&mut self, index: usize) -> &[f32] {
        &self.logits[index * self.vocab..][..self.vocab]
    }

    fn describe(&self) -> String {
        "a parrot".into()
    }
}

/// Returns the same model without and with speculative decoding, and their counts of passes.
fn parrots(context: usize) -> [(Engine, Arc<AtomicUsize>); 2] {
    let file = Tiny::new("qwen2").file();
    [false, true].map(|speculate| {
        let passes = Arc::new(AtomicUsize::new(0));
        let engine = Engine::open(file.path(), "tiny", &Options::default()).unwrap();
        let vocab = engine.tokenizer().vocab().len();
        let parrot = Parrot { held: Vec::new(), logits: Vec::new(), vocab, context, passes: passes.clone() };
        *engine.sequence() = Sequence::new(Box::new(parrot), None, speculate);
        (engine, passes)
    })
}

#[test]
fn the_text_is_the_same_with_and_without_drafts() {
    let [(plain, plain_passes), (drafting, passes)] = parrots(512);
    let (mut drafted, mut accepted) = (0, 0);
    for (seed, text) in (0..).zip(["hi", "the users", "list the files hello 123", "ls -la", "abc abc abc abc"]) {
        for shape in shapes() {
            for max_tokens in [1, 2, 7, 60] {
                for temperature in [0.0, 0.3] {
                    let sampling = Sampling { temperature, top_p: 0.9, seed };
                    let (d, a) = compare(&plain, &drafting, &ask(text, &shape, max_tokens, sampling));
                    (drafted, accepted) = (drafted + d, accepted + a);
                }
            }
        }
    }
    assert!(accepted > 50 && accepted < drafted, "both happened: {accepted} of {drafted}");
    assert!(passes.load(Ordering::Relaxed) < plain_passes.load(Ordering::Relaxed), "and saved passes");
}

#[test]
fn drafts_stay_within_the_context_window() {
    let [(plain, _), (drafting, _)] = parrots(96);
    let mut accepted = 0;
    for text in ["a", "ab", "abc", "abc ", "abc a"] {
        let shape = Shape::Lark("start: /(a|b| )+/".into());
        accepted += compare(&plain, &drafting, &ask(text, &shape, 1000, Sampling::GREEDY)).1;
    }
    assert!(accepted > 0);
}

#[test]
fn the_caller_can_stop_in_the_middle_of_an_accepted_draft() {
    let [(plain, _), (drafting, _)] = parrots(512);
    let request = ask("abc abc abc", &Shape::Lark("start: /(ab|c)+/".into()), 40, Sampling::GREEDY);
    for stop_at in 1..12 {
        let until = |engine: &Engine| {
            let mut pieces = 0;
            let completion = engine.generate(&request, &mut |_| {
                pieces += 1;
                if pieces == stop_at { Flow::Stop } else { Flow::Continue }
            });
            let completion = completion.unwrap();
            (completion.text, completion.tokens, completion.finish)
        };
        assert_eq!(until(&plain), until(&drafting));
        // the rest of the draft is dropped: the next call is not affected
        compare(&plain, &drafting, &request);
    }
}

#[test]
fn the_kernels_compute_drafts_as_single_tokens() {
    let file = Tiny::new("qwen2").file();
    let adapter = Tiny::adapter("qwen2", 64, 16, [Kind::F32, Kind::F16], 0.3);
    let open = |speculate| {
        let adapter = Some(testing::adapter_options(&adapter));
        let options = Options { device: Device::Cpu, speculate, adapter, ..Options::default() };
        Engine::open(file.path(), "tiny", &options).unwrap()
    };
    let (plain, drafting) = (open(false), open(true));
    for adapted in [false, true] {
        let mut accepted = 0;
        for text in ["hi", "abc abc abc abc"] {
            for shape in [Shape::Text { stop: vec![] }, Shape::Lark("start: /(ab|c)+/".into())] {
                let mut request = ask(text, &shape, 60, Sampling::GREEDY);
                request.prompt.adapted = adapted;
                accepted += compare(&plain, &drafting, &request).1;
            }
        }
        assert!(accepted > 0);
    }
}

#[test]
fn the_real_model_writes_the_same_with_and_without_drafts() {
    if cfg!(debug_assertions) {
        eprintln!("skipped: the real model runs in release builds only");
        return;
    }
    let Some(path) = testing::real_model() else { return };
    let open = |speculate| {
        let options = Options { device: Device::Cpu, speculate, ..Options::default() };
        Engine::open(&path, "real", &options).unwrap()
    };
    let (plain, drafting) = (open(false), open(true));
    let mut totals = (0, 0);
    for text in [
        "rename every .jpeg below photos to .jpg",
        "copy report.txt to backup/report.txt and report.csv to backup/report.csv",
        "count the lines of every python file below src, largest first",
        "print the numbers from 1 to 20, each on a line of its own",
    ] {
        let mut prompt = Prompt::system("Answer each request with one bash command.");
        prompt.push(Role::User, "list the files below src").push(Role::Assistant, "find src -type f");
        prompt.push(Role::User, "sort names.txt without repeats").push(Role::Assistant, "sort -u names.txt");
        prompt.push(Role::User, text);
        let shape = Shape::Lark("start: /[^\\n]+/".into());
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 64, cancel: Cancel::new() };
        let (drafted, accepted) = compare(&plain, &drafting, &request);
        totals = (totals.0 + drafted, totals.1 + accepted);
    }
    println!("{} tokens drafted, {} accepted", totals.0, totals.1);
    assert!(totals.1 > 0);
}
