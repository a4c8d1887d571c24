//! `caro bench`: measures the engine alone.

use super::{mib, ms, row};
use crate::setup::settings::{AdapterUse, DEVICES, ENGINES};
use crate::setup::{adapter, download};
use crate::{Cx, Exit, Failure, Outcome, Settings};
use caro_command::answer::{FewShot, History, View};
use caro_command::prompt;
use caro_model::Prompt;
use caro_model::adapter::AdapterChoice;
use caro_model::engine::{self, Beside, Device, EngineKind, More, Options, Pair, Report, Tier};
use caro_model::fetch::{self, ModelSource};
use caro_shell::{Dialect, Os, Target, Userland};
use clap::builder::PossibleValuesParser;
use std::path::{Path, PathBuf};

/// The requests and commands on which speculative decoding is measured: one pair a line, separated by a tab.
const ANSWERS: &str = include_str!("../../../../benches/answers.txt");

/// The value of `--engine` for both implementations.
const BOTH: &str = "both";

/// What to measure.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    /// Model: an id of `caro model list`, or a GGUF file
    #[arg(long, value_name = "SPEC")]
    model: Option<String>,
    /// Adapter of the model, to be measured beside the model alone: auto (its own, if it has one), off, a name, a GGUF file
    #[arg(long, value_name = "SPEC")]
    adapter: Option<String>,
    /// Where to compute
    #[arg(long, value_name = "DEVICE", value_parser = PossibleValuesParser::new(DEVICES.map(|(name, _)| name)))]
    device: Option<String>,
    /// What computes the model; both: the own engine and candle, side by side, as with --quick
    #[arg(long, value_name = "ENGINE", value_parser = PossibleValuesParser::new(ENGINES.map(|(name, _)| name).into_iter().chain([BOTH])))]
    engine: Option<String>,
    /// Threads, instead of as many as this process may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Kernels, instead of the best that this CPU has
    #[arg(long, value_name = "TIER", value_parser = PossibleValuesParser::new(Tier::ALL.iter().map(|tier| tier.name())))]
    kernels: Option<String>,
    /// Only loading, prompts and single tokens
    #[arg(long)]
    quick: bool,
    /// How often each figure is measured; the best counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
}

/// Measures the model that the settings name.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let is_both = args.engine.as_deref() == Some(BOTH);
    let unused = [("--adapter", args.adapter.is_some()), ("--device", args.device.is_some())];
    if let Some((flag, _)) = unused.into_iter().find(|(_, is_given)| is_both && *is_given) {
        let why = "both engines are compared on the CPU, with the model alone";
        return Err(Failure::usage(format!("--engine {BOTH} and {flag} do not go together: {why}"))
            .hint(format!("leave {flag} out, or measure one engine at a time")));
    }
    let engine = args.engine.clone().filter(|name| name != BOTH);
    let flags = [("model", &args.model), ("adapter", &args.adapter), ("device", &args.device), ("engine", &engine)];
    let flags: Vec<_> = flags.into_iter().filter_map(|(key, value)| value.clone().map(|v| (key, v))).collect();
    let settings = cx.settings(&flags)?;
    let (file, id, adapter) = model(cx, &settings)?;
    let tier = args.kernels.as_deref().and_then(Tier::from_name);
    if let Some(tier) = tier.filter(|tier| !tier.is_available()) {
        return Err(Failure::usage(format!("this CPU cannot run the {tier} kernels")).hint("leave --kernels out"));
    }
    let adapter = adapter.map(|choice| choice.open()).transpose()?;
    let threads = args.threads.map(usize::from);
    let (engine, device, runs) = (settings.engine, settings.device, usize::from(args.runs));
    let options = Options { engine, device, threads, tier, adapter, ..Options::default() };
    if is_both {
        return side_by_side(cx, &file, &id, &options, args);
    }
    let report = {
        let _status = cx.ui.status("measuring");
        engine::bench(&file, &options, runs, &if args.quick { Vec::new() } else { answers() })?
    };
    if args.json {
        cx.ui.document(&document(&id, &report))?
    } else {
        table(cx, &id, &report)?
    }
    Ok(Exit::Success)
}

/// Measures both engines on the CPU and prints their figures side by side.
fn side_by_side(cx: &Cx, file: &Path, id: &str, options: &Options, args: &Args) -> Outcome {
    let measure = |engine| {
        let _status = cx.ui.status("measuring");
        // the memory of this process is that of both
        let options = Options { engine, device: Device::Cpu, adapter: None, ..options.clone() };
        let report = engine::bench(file, &options, usize::from(args.runs), &[])?;
        Ok::<_, Failure>(Report { peak_memory: None, ..report })
    };
    let (own, candle) = (measure(EngineKind::Own)?, measure(EngineKind::Candle)?);
    if args.json {
        let document = serde_json::json!({ "own": document(id, &own), "candle": document(id, &candle) });
        cx.ui.document(&document)?;
        return Ok(Exit::Success);
    }
    let columns = |name: &str, own: &str, candle: &str, gain: Option<f64>| {
        let gain = gain.map(|gain| format!("{gain:>9.1}x")).unwrap_or_default();
        cx.ui.line(format!("{name:<28} {own:>14} {candle:>14} {gain}").trim_end())
    };
    columns("", "own", "candle", None)?;
    for (name, own, candle) in
        [("load", own.load, candle.load), ("first token, 32 of prompt", own.first_token, candle.first_token)]
    {
        columns(name, &ms(own), &ms(candle), Some(candle.as_secs_f64() / own.as_secs_f64()))?;
    }
    let rates = |name: &str, own: f64, candle: f64| columns(name, &rate(own), &rate(candle), Some(own / candle));
    for ((tokens, own), (_, candle)) in own.prefill.iter().zip(&candle.prefill) {
        rates(&format!("prefill of {tokens}"), *own, *candle)?;
    }
    rates("decode", own.decode, candle.decode)?;
    cx.ui.note(&format!("{id}: own is {}; candle is {}", own.backend, candle.backend));
    Ok(Exit::Success)
}

/// Formats a rate in tokens per second.
fn rate(rate: f64) -> String {
    format!("{rate:.1} tok/s")
}

/// The pairs, each request as its prompt on GNU/Linux whatever this machine is, so that the work is the same
/// everywhere.
fn answers() -> Vec<(Prompt, String)> {
    let target = Target { os: Os::Linux, userland: Userland::Gnu };
    let pairs = ANSWERS.lines().filter_map(|line| line.split_once('\t'));
    let first = |request: &str| {
        prompt::first(request, target, Dialect::Bash, View::Examples, FewShot::Nearest(0), &History::default())
    };
    pairs.map(|(request, command)| (first(request), command.to_owned())).collect()
}

fn document(id: &str, report: &Report) -> serde_json::Value {
    let mut document = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "model": id,
        "backend": report.backend,
        "load_ms": milliseconds(report.load),
        "grammar_ms": milliseconds(report.grammar),
        "first_token_ms": milliseconds(report.first_token),
        "prefill_tokens_per_s": report.prefill.iter().map(|(n, rate)| (n.to_string(), tenths(*rate)))
            .collect::<std::collections::BTreeMap<_, _>>(),
        "decode_tokens_per_s": tenths(report.decode),
        "peak_memory_bytes": report.peak_memory,
    });
    if let Some(Beside { decode, prefill_128, prefill_512 }) = &report.adapter {
        let pair = |pair: &Pair| {
            serde_json::json!({
                "with_ms": hundredths(pair.with.as_secs_f64() * 1e3),
                "without_ms": hundredths(pair.without.as_secs_f64() * 1e3),
                "cost_percent": hundredths(pair.cost() * 100.0),
            })
        };
        document["adapter"] = serde_json::json!({
            "decode": pair(decode),
            "prefill_128": pair(prefill_128),
            "prefill_512": pair(prefill_512),
        });
    }
    if let Some(More { bursts, effective: e, busy }) = &report.more {
        document["cost_of_bursts"] = bursts.iter().map(|cost| (cost * 100.0).round() / 100.0).collect();
        document["effective"] = serde_json::json!({
            "decode_tokens_per_s": tenths(e.rate),
            "one_by_one_tokens_per_s": tenths(e.plain),
            "tokens": e.tokens,
            "drafted": e.drafted,
            "accepted": e.accepted,
        });
        document["one_core_busy"] = serde_json::json!({
            "decode_tokens_per_s": tenths(busy.decode),
            "decode_undisturbed": tenths(busy.free_decode),
            "prefill_tokens_per_s": tenths(busy.prefill),
            "prefill_undisturbed": tenths(busy.free_prefill),
        });
    }
    document
}

fn table(cx: &Cx, id: &str, report: &Report) -> Result<(), Failure> {
    row(cx, "model", id)?;
    cx.ui.line(&format!("{:<28} {}", "backend", report.backend))?;
    row(cx, "load", &ms(report.load))?;
    row(cx, "first token, 32 of prompt", &ms(report.first_token))?;
    for (tokens, speed) in &report.prefill {
        row(cx, &format!("prefill of {tokens}"), &rate(*speed))?;
    }
    row(cx, "decode", &rate(report.decode))?;
    if let Some(Beside { decode, prefill_128, prefill_512 }) = &report.adapter {
        for (name, pair) in [("a token", decode), ("a prompt of 128", prefill_128), ("a prompt of 512", prefill_512)] {
            let cost = format!("{:+.1} %", pair.cost() * 100.0);
            row(
                cx,
                &format!("{name} with the adapter"),
                &format!("{} ({cost} of {})", ms(pair.with), ms(pair.without)),
            )?;
        }
    }
    if let Some(More { bursts, effective: e, busy }) = &report.more {
        let costs: Vec<String> = bursts.iter().map(|cost| format!("{cost:.2}")).collect();
        cx.ui.line(&format!("{:<28} {}", "a pass over 1, 2, ... tokens", costs.join(" ")))?;
        row(cx, "decode of commands", &rate(e.plain))?;
        row(cx, "the same, guessing ahead", &rate(e.rate))?;
        row(cx, "guessed rightly", &format!("{} of {}, for {}", e.accepted, e.drafted, e.tokens))?;
        let with_ratio = |with: f64, without: f64| format!("{with:.1} tok/s ({:.2}x)", with / without);
        row(cx, "decode, one core busy", &with_ratio(busy.decode, busy.free_decode))?;
        row(cx, "prefill, one core busy", &with_ratio(busy.prefill, busy.free_prefill))?;
    }
    row(cx, "grammar", &ms(report.grammar))?;
    if let Some(bytes) = report.peak_memory {
        row(cx, "peak memory", &mib(bytes))?;
    }
    Ok(())
}

fn milliseconds(time: std::time::Duration) -> f64 {
    tenths(time.as_secs_f64() * 1e3)
}

/// Rounds to two decimals, for values that are compared closely.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Rounds to one decimal: more would be noise.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Returns the file of a local model, fetched if need be, its id, and its adapter.
fn model(cx: &Cx, settings: &Settings) -> Result<(PathBuf, String, Option<AdapterChoice>), Failure> {
    let (folders, spec) = (download::settings(cx)?, settings.model.as_str());
    let adapter_of = |model: adapter::Model<'_>| match settings.adapter {
        AdapterUse::Off => Ok(None),
        _ => adapter::choose(&settings.adapter, model, &folders, cx),
    };
    match fetch::resolve(spec, &folders)? {
        ModelSource::Card(card) => {
            let file = download::with_fetcher(&folders, cx, |f| fetch::ensure(&card, f))?;
            let adapter = adapter_of(adapter::Model::Card(&card))?;
            Ok((file, card.id.clone(), adapter))
        }
        ModelSource::File(file) => {
            let id = file.file_stem().map_or_else(|| spec.to_owned(), |stem| stem.to_string_lossy().into_owned());
            let adapter = adapter_of(adapter::Model::File(&file))?;
            Ok((file, id, adapter))
        }
        ModelSource::Script(_) | ModelSource::Remote { .. } | ModelSource::Anthropic { .. } => {
            Err(Failure::usage(format!("`{spec}` does not compute on this machine: there is nothing to measure"))
                .hint("name an id of `caro model list` or a GGUF file; `caro bench loop` times any model"))
        }
    }
}
