//! `caro bench`: the engine alone.

use super::{mib, ms, row};
use crate::cli::settings::DEVICES;
use crate::cli::{Cx, Exit, Failure, Outcome, download};
use crate::model::engine::{self, Options};
use crate::model::fetch::{self, ModelSource};
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

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
    /// Where to compute
    #[arg(long, value_name = "DEVICE", value_parser = PossibleValuesParser::new(DEVICES.map(|(name, _)| name)))]
    device: Option<String>,
    /// Threads, instead of as many as this process may use
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// How often each figure is measured; the best counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: u16,
}

/// Measures the model that the settings name.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let flags = [("model", &args.model), ("device", &args.device)];
    let flags: Vec<_> = flags.into_iter().filter_map(|(key, value)| value.clone().map(|v| (key, v))).collect();
    let settings = cx.settings(&flags)?;
    let (file, id) = model(cx, &settings.model)?;
    let threads = args.threads.map(usize::from);
    let options = Options { device: settings.device, threads, ..Options::default() };
    let report = {
        let _status = cx.ui.status("measuring");
        engine::bench(&file, &options, usize::from(args.runs))?
    };
    if args.json {
        cx.ui.document(&serde_json::json!({
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
        }))?;
        return Ok(Exit::Success);
    }
    row(cx, "model", &id)?;
    cx.ui.line(&format!("{:<28} {}", "backend", report.backend))?;
    row(cx, "load", &ms(report.load))?;
    row(cx, "first token, 32 of prompt", &ms(report.first_token))?;
    for (tokens, rate) in &report.prefill {
        row(cx, &format!("prefill of {tokens}"), &format!("{rate:.1} tok/s"))?;
    }
    row(cx, "decode", &format!("{:.1} tok/s", report.decode))?;
    row(cx, "grammar", &ms(report.grammar))?;
    if let Some(bytes) = report.peak_memory {
        row(cx, "peak memory", &mib(bytes))?;
    }
    Ok(Exit::Success)
}

fn milliseconds(time: std::time::Duration) -> f64 {
    tenths(time.as_secs_f64() * 1e3)
}

/// One decimal: more would be noise.
fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The file of a local model, fetched if need be, and its id.
fn model(cx: &Cx, spec: &str) -> Result<(PathBuf, String), Failure> {
    let folders = download::settings(cx)?;
    match fetch::resolve(spec, &folders)? {
        ModelSource::Card(card) => {
            let file = download::with_fetcher(&folders, cx, |f| fetch::ensure(&card, f))?;
            Ok((file, card.id.clone()))
        }
        ModelSource::File(file) => {
            let id = file.file_stem().map_or_else(|| spec.to_owned(), |stem| stem.to_string_lossy().into_owned());
            Ok((file, id))
        }
        ModelSource::Script(_) | ModelSource::Remote { .. } => {
            Err(Failure::usage(format!("`{spec}` does not compute on this machine: there is nothing to measure"))
                .hint("name an id of `caro model list` or a GGUF file; `caro bench loop` times any model"))
        }
    }
}
