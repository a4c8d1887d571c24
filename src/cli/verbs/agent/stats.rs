//! `caro stats`: shows what the stored runs have cost.

use crate::harness::wire::{existing_store, failure};
use crate::term::ui::Role;
use crate::{Cx, Exit, Outcome};

/// Show what the kept runs have cost: requests, tokens, time
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Shows the totals.
///
/// # Errors
/// If they cannot be read.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let stats = existing_store(cx)?.stats().map_err(failure)?;
    if args.json {
        cx.ui.document(&stats)?;
        return Ok(Exit::Success);
    }
    let cost = stats.cost;
    let (total, average) = (cost.total_ms as f64 / 1e3, stats.average_ms / 1e3);
    let rows = [
        (
            "runs",
            format!(
                "{} ({} completed, {} not completed, {} open)",
                stats.runs, stats.completed, stats.not_completed, stats.open
            ),
        ),
        ("requests", cost.total_requests.to_string()),
        (
            "tokens",
            format!(
                "{} ({} of prompts, {} of them kept from before; {} written)",
                cost.total_tokens, cost.request_tokens, cost.cached_tokens, cost.response_tokens
            ),
        ),
        ("tool calls", cost.tool_calls.to_string()),
        ("time", format!("{total:.1} s, {average:.1} s a run")),
    ];
    for (name, value) in rows {
        let head = cx.ui.paint(Role::Accent, &format!("{name:<10}"));
        cx.ui.line(&format!("{head}  {}", cx.ui.paint(Role::Plain, &value)))?;
    }
    Ok(Exit::Success)
}
