//! Runs a child process of a tool, and kills it with everything it started when the call is cancelled. If its output
//! is too long, a marker replaces the part that is left out.

use crate::tool::ToolError;
use caro_exec::{self as exec, Cut, Job, Output};
use caro_model::Cancel;
use std::time::Duration;

/// Interval between two checks for cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(10);

/// Most bytes that a child may write to one stream before it is killed. Far less is captured, and the timeout limits
/// slow output; this limit is for endless output such as that of `yes`, at a gigabyte a second. Servers have the same
/// limit.
const MAX_WRITTEN: usize = 64 << 20;

/// The message about a child that wrote more; it stands before the output, where it cannot be missed.
pub(crate) const FLOODED: &str = "The command was stopped: it wrote more than 64 MiB, and whatever comes behind that in it \
                                  was not run. Let grep, head or wc make less of it, or write it to a file.";

/// Runs the job; returns `None` if it was cancelled.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn run(job: &Job, cancel: &Cancel) -> Result<Option<Output>, ToolError> {
    let work = async {
        let stopped = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(CANCEL_INTERVAL).await;
            }
        };
        tokio::select! {
            done = exec::capture_ends(job, MAX_WRITTEN) => Some(done),
            // dropping the job kills all its processes
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

/// Returns a sentence about what was left out of a child's output; `None` if it is complete.
pub(crate) fn left_out(output: &Output) -> Option<String> {
    let of = |name: &str, cut: Option<Cut>| {
        let Cut { bytes, lines, of_bytes, of_lines, .. } = cut?;
        Some(format!("of {name} ({of_bytes} bytes, {of_lines} lines) {bytes} bytes, {lines} lines"))
    };
    let streams = [of("standard output", output.stdout_cut), of("standard error", output.stderr_cut)];
    let cuts: Vec<String> = streams.into_iter().flatten().collect();
    (!cuts.is_empty())
        .then(|| format!("It was too long and is cut: {} in the middle are left out.", cuts.join(", and ")))
}

/// Joins the non-empty parts with line breaks.
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

/// Inserts a marker line where a part of the stream is left out.
fn marked(mut stream: Vec<u8>, cut: Option<Cut>) -> Vec<u8> {
    let Some(Cut { at, bytes, lines, .. }) = cut else { return stream };
    // a text with `\r` line ends must not get a `\n`: each of its lines would be taken for an overwritten one
    let end = if stream.contains(&b'\n') { '\n' } else { '\r' };
    let is_line_start = stream[..at].last().is_none_or(|last| char::from(*last) == end);
    let before = if is_line_start { String::new() } else { end.to_string() };
    let mark = format!("{before}[cut: {bytes} bytes, {lines} lines are left out here]{end}");
    stream.splice(at..at, mark.into_bytes());
    stream
}
