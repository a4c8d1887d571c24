//! `caro events`: shows the events of a run.

use crate::harness::wire::{existing_store, failure};
use crate::term::ui::Role;
use crate::{Cx, Exit, Outcome};
use caro_agent::event::{Event, Kind};
use caro_agent::store::is_alive;
use serde_json::Value;
use std::time::Duration;

/// Show what happened in a run
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id; the latest if not given
    #[arg(value_name = "RUN", default_value = "", hide_default_value = true)]
    run: String,
    /// Print every event whole, one JSON document a line
    #[arg(long)]
    json: bool,
    /// Only events after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    after: u64,
    /// Show what happened so far and then what happens, until the run ends or is stopped
    #[arg(long)]
    follow: bool,
}

/// The time between two looks for new events.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Shows the events of a run.
///
/// # Errors
/// If there is no such run.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let store = existing_store(cx)?;
    let found = store.run(&args.run).map_err(failure)?;
    // `cursor` is the number of the last event that was shown, so that none is shown twice
    let (mut cursor, mut first_time, mut last) = (args.after, None, None);
    loop {
        // checked before reading, so that events written before the process released the run are read below
        let is_running = args.follow && store.is_driven(&found.id, is_alive).map_err(failure)?;
        for event in store.events(&found.id, cursor).map_err(failure)? {
            cursor = event.sequence_number;
            last = Some(event.event_type);
            let seconds = event.timestamp.saturating_sub(*first_time.get_or_insert(event.timestamp)) as f64 / 1e3;
            show(args, &event, seconds, cx)?;
        }
        if !is_running {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    if args.follow && last.is_some_and(|kind| kind != Kind::AgentEnd) {
        cx.ui.note(&format!("nobody works on it any more; `caro resume {}` goes on", found.id));
    }
    Ok(Exit::Success)
}

fn show(args: &Args, event: &Event, seconds: f64, cx: &Cx) -> std::io::Result<()> {
    if args.json {
        return cx.ui.json(event);
    }
    let head = cx.ui.paint(Role::Dim, &format!("{:>4} {seconds:>7.2}", event.sequence_number));
    let name = cx.ui.paint(Role::Accent, event.event_type.name());
    cx.ui.line(&format!("{head}  {name}  {}", cx.ui.entry(Role::Plain, &summary(event))))
}

/// Summarizes an event in one line.
fn summary(event: &Event) -> String {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let parts = [
        event.span_id.clone(),
        event.error.clone().unwrap_or_default(),
        match event.event_type {
            Kind::ModelCall => String::new(),
            _ => text(&event.input),
        },
        text(&event.output),
        text(&event.metadata),
    ];
    let line = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("  ").replace('\n', " ");
    let mut start: String = line.chars().take(140).collect();
    if start.len() < line.len() {
        start.push_str("...");
    }
    start
}
