//! A child process of a tool: waited for, and killed with all it started when the call is stopped. Where it writes more
//! than there is room for, a mark stands in the place of what is left out.

use crate::tool::ToolError;
use caro_exec::{self as exec, Cut, Job, Output};
use caro_model::Cancel;
use std::time::Duration;

/// How often the switch is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Bytes that a child may write to one stream. What is kept of it is far less, so that a long output costs time alone, and
/// that has a limit of its own: this is for what would write until then, `yes` at a gigabyte a second. As for servers.
const FLOOD: usize = 64 << 20;

/// What is told of a child that wrote more, before its output: behind that nobody would read it.
pub(crate) const FLOODED: &str = "The command was stopped: it wrote more than 64 MiB, and whatever comes behind that in it \
                                  was not run. Let grep, head or wc make less of it, or write it to a file.";

/// Runs the job; `None` if `cancel` was pulled meanwhile.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn run(job: &Job, cancel: &Cancel) -> Result<Option<Output>, ToolError> {
    let work = async {
        let stopped = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            done = exec::capture_ends(job, FLOOD) => Some(done),
            // dropping the job kills all of it
            () = stopped => None,
        }
    };
    let failed = |e: std::io::Error| ToolError::Failed(format!("no runtime: {e}"));
    let done = match tokio::runtime::Handle::try_current() {
        Ok(handle) => handle.block_on(work),
        Err(_) => tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?.block_on(work),
    };
    let output = done.transpose().map_err(|e| ToolError::Failed(format!("{e}: {}", e.hint())))?;
    Ok(output.map(|output| Output {
        stdout: marked(output.stdout, output.stdout_cut),
        stderr: marked(output.stderr, output.stderr_cut),
        ..output
    }))
}

/// What was left out of the output of a child, in a sentence; `None` if all of it is there.
pub(crate) fn left_out(output: &Output) -> Option<String> {
    let of = |name: &str, cut: Option<Cut>| {
        let Cut { bytes, lines, of_bytes, of_lines, .. } = cut?;
        Some(format!("of {name} ({of_bytes} bytes, {of_lines} lines) {bytes} bytes, {lines} lines"))
    };
    let streams = [of("standard output", output.stdout_cut), of("standard error", output.stderr_cut)];
    let told: Vec<String> = streams.into_iter().flatten().collect();
    (!told.is_empty())
        .then(|| format!("It was too long and is cut: {} in the middle are left out.", told.join(", and ")))
}

/// One below the other, without those that are empty.
pub(crate) fn lines(parts: [Vec<u8>; 3]) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !all.is_empty() && !all.ends_with(b"\n") {
            all.push(b'\n');
        }
        all.extend(part);
    }
    all
}

/// The stream with a line of its own where something is missing.
fn marked(mut stream: Vec<u8>, cut: Option<Cut>) -> Vec<u8> {
    let Some(Cut { at, bytes, lines, .. }) = cut else { return stream };
    // a text whose lines do not end in `\n` must not get one: of each line of it only the last state would be left
    let end = if stream.contains(&b'\n') { '\n' } else { '\r' };
    let begins = stream[..at].last().is_none_or(|last| char::from(*last) == end);
    let before = if begins { String::new() } else { end.to_string() };
    let mark = format!("{before}[cut: {bytes} bytes, {lines} lines are left out here]{end}");
    stream.splice(at..at, mark.into_bytes());
    stream
}
