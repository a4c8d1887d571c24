//! `caro bench`: measures how fast the model computes here, and, with `caro bench loop`, how long whole requests
//! take.
//!
//! Rates are the best of several runs and times of requests are medians, because other load on the machine only ever
//! makes them worse.

mod engine;
mod whole;

use crate::{Cx, Failure, Outcome};
use std::time::Duration;

/// Arguments of `caro bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    engine: engine::Args,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Time whole requests, each in a fresh process: context, model, checks, manuals, safety
    Loop(whole::Args),
}

/// Measures, and prints the results.
///
/// # Errors
/// If there is no local model to measure, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.what {
        None => engine::run(&args.engine, cx),
        Some(What::Loop(args)) => whole::run(args, cx),
    }
}

/// Formats a time in milliseconds.
fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Formats a size in mebibytes.
fn mib(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Prints a row of a table.
fn row(cx: &Cx, name: &str, value: &str) -> Result<(), Failure> {
    Ok(cx.ui.line(&format!("{name:<28} {value:>14}"))?)
}
