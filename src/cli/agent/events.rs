//! `caro events`: what happened in a run.

use super::wire::{failure, store};
use crate::agent::event::Event;
use crate::cli::ui::Role;
use crate::cli::{Cx, Exit, Outcome};
use serde_json::Value;

/// Show what happened in a run
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id; the latest if not given
    #[arg(value_name = "RUN", default_value = "")]
    run: String,
    /// Print every event whole, one JSON document a line
    #[arg(long)]
    json: bool,
    /// Only events after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    after: u64,
}

/// Shows the events of a run.
///
/// # Errors
/// If there is no such run.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let store = store(cx)?;
    let found = store.run(&args.run).map_err(failure)?;
    let events = store.events(&found.id, args.after).map_err(failure)?;
    let begun = events.first().map_or(0, |e| e.timestamp);
    for event in &events {
        if args.json {
            cx.ui.json(event)?;
        } else {
            let seconds = event.timestamp.saturating_sub(begun) as f64 / 1e3;
            let head = cx.ui.paint(Role::Dim, &format!("{:>4} {seconds:>7.2}", event.sequence_number));
            let name = cx.ui.paint(Role::Accent, event.event_type.name());
            cx.ui.line(&format!("{head}  {name}  {}", cx.ui.paint(Role::Plain, &gist(event))))?;
        }
    }
    Ok(Exit::Success)
}

/// An event in one line.
fn gist(event: &Event) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let parts = [
        event.span_id.clone(),
        event.error.clone().unwrap_or_default(),
        match event.event_type {
            crate::agent::Kind::ModelCall => String::new(),
            _ => text(&event.input),
        },
        text(&event.output),
        text(&event.metadata),
    ];
    let line = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("  ").replace('\n', " ");
    let mut start: String = line.chars().take(140).collect();
    if start.len() < line.len() {
        start.push('…');
    }
    start
}
