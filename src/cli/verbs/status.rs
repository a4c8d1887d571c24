//! `caro status`: shows the resident processes of this user.

use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome};
use caro_serve::resident::{self, Status};
use std::time::{Duration, SystemTime};

/// Arguments of `caro status`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// Shows the resident processes. The exit code is 1 if there are none.
///
/// # Errors
/// If the folder of their sockets is not safe, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let found = match &cx.dirs.runtime {
        Some(folder) => resident::list(folder).map_err(|e| Failure::no(&e).hint(e.hint()))?,
        None => Vec::new(),
    };
    let exit = if found.is_empty() { Exit::No } else { Exit::Success };
    if args.json {
        let all: Vec<serde_json::Value> = found
            .iter()
            .map(|one| match one {
                Ok(status) => serde_json::json!(status),
                Err(pid) => serde_json::json!({ "pid": pid, "answers": false }),
            })
            .collect();
        cx.ui.document(&serde_json::json!({ "residents": all }))?;
        return Ok(exit);
    }
    if found.is_empty() {
        cx.ui.data("no resident process is running")?;
    }
    for one in &found {
        match one {
            Ok(status) => show(cx, status)?,
            Err(pid) => {
                let pid = pid.map_or_else(String::new, |pid| format!(" {pid}"));
                let line = format!("process{pid} does not answer; `caro stop` ends it");
                cx.ui.line(&cx.ui.paint(Role::Danger, &line))?;
            }
        }
    }
    Ok(exit)
}

fn show(cx: &Cx, status: &Status) -> Result<(), Failure> {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(status.since);
    let up = SystemTime::now().duration_since(started).unwrap_or_default();
    let head = format!("process {}, caro {}, for {}", status.pid, status.version, span(up));
    cx.ui.line(&cx.ui.paint(Role::Accent, &head))?;
    let mut rows = vec![
        ("model", format!("{} ({})", status.model, status.file.display())),
        ("requests", format!("{} answered, {} under way", status.served, status.waiting)),
    ];
    if let (Some(all), Some(own)) = (status.memory, status.own_memory) {
        let (own_mb, file_mb) = (own / 1_000_000, all.saturating_sub(own) / 1_000_000);
        rows.push(("memory", format!("{own_mb} MB of its own, {file_mb} MB of files mapped, which are shared")));
    }
    let left = |seconds| span(Duration::try_from_secs_f64(seconds).unwrap_or_default());
    rows.push((
        "ends",
        match status.ends_in_s {
            Some(seconds) => format!("in {}, unless it is asked before", left(seconds)),
            None => "with the server that it is a part of".into(),
        },
    ));
    for (name, value) in rows {
        cx.ui.line(&format!("  {name:<9} {value}"))?;
    }
    Ok(())
}

/// Formats a span of time, rounded down: `90 s`, `5 min`.
fn span(time: Duration) -> String {
    let s = time.as_secs();
    match s {
        0..120 => format!("{s} s"),
        120..7200 => format!("{} min", s / 60),
        _ => format!("{} h", s / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short() {
        let of = |s| span(Duration::from_secs(s));
        assert_eq!([of(0), of(119), of(120), of(899), of(7200)], ["0 s", "119 s", "2 min", "14 min", "2 h"]);
    }
}
