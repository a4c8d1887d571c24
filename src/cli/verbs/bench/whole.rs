//! `caro bench loop`: times whole requests, from the start of a process to its answer; without a resident, unless
//! asked for.

use super::row;
use crate::flags::AnswerArgs;
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome, env};
use caro_command::Timing;
use caro_exec::{self as exec, Job, Limits, Sandbox};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The requests that are sent if no file is given.
const REQUESTS: &str = include_str!("../../../../benches/requests.txt");

/// The time limit of a process, more than any request may take; the request's own limit is `--timeout`.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(600);

/// What to time.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Requests, one a line, instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    requests: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// One request's times, in milliseconds.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
struct Sample {
    request: String,
    cmd: String,
    iterations: u32,
    /// Wall time of the process, as its caller sees it.
    wall: f64,
    iteration1: f64,
    /// Examining the machine, and looking up manuals.
    context: f64,
    iteration2: f64,
    /// Generating further candidates, and choosing among them.
    choice: f64,
    /// Generated tokens.
    tokens: usize,
    /// Tokens that were drafted ahead.
    drafted: usize,
    /// Drafted tokens that were right.
    accepted: usize,
    /// Time to generate them.
    decode: f64,
    /// The part of that time for the grammar.
    grammar: f64,
}

/// The times of a stage, and their limit.
#[derive(Debug, PartialEq, serde::Serialize)]
struct Stage {
    name: &'static str,
    p50_ms: f64,
    max_ms: f64,
    /// The limit in the specification, if it has one.
    target_ms: Option<f64>,
    met: bool,
}

/// Sends all requests and prints the times. The exit code is 1 if a stage took longer than its limit.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let requests = requests(args.requests.as_deref())?;
    let program = std::env::current_exe().map_err(|e| Failure::internal(format!("where this program is: {e}")))?;
    // a request that is not counted does what is done once on a machine: the state of the prompt, the list of programs
    ask(&program, &args.answer, cx, requests.first().map_or("list files", String::as_str))?;
    let mut samples = Vec::new();
    for request in &requests {
        if cx.interrupt().cancel().is_cancelled() {
            return Err(Failure::silent(Exit::Interrupted));
        }
        let sample = ask(&program, &args.answer, cx, request)?;
        if !args.answer.json {
            let cmd = if sample.cmd.is_empty() { "(no command)" } else { &sample.cmd };
            cx.ui.line(&format!("{:>8.0} ms  {}", sample.wall, cx.ui.paint(Role::Command, cmd)))?;
        }
        samples.push(sample);
    }
    let stages = stages(&samples);
    let (rate, share) = (rate(&samples), grammar_share(&samples));
    if args.answer.json {
        let document = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"), "requests": samples, "stages": stages, "decode_tokens_per_s": rate,
            "grammar_share": share,
        });
        cx.ui.document(&document)?;
    } else {
        cx.ui.line("")?;
        cx.ui.line(&format!("{:<28} {:>14} {:>10} {:>10}", "", "p50", "max", "at most"))?;
        for s in &stages {
            let times = format!("{:<28} {:>11.0} ms {:>7.0} ms", s.name, s.p50_ms, s.max_ms);
            let (word, role) = if s.met { ("met", Role::Good) } else { ("missed", Role::Danger) };
            cx.ui.line(&match s.target_ms {
                Some(target) => format!("{times} {target:>7.0} ms  {}", cx.ui.paint(role, word)),
                None => times,
            })?;
        }
        row(cx, "decode, as it went", &format!("{rate:.1} tok/s"))?;
        row(cx, "of it the grammar", &format!("{:.1} %", share * 100.0))?;
        let sum = |count: fn(&Sample) -> usize| samples.iter().map(count).sum::<usize>();
        row(cx, "guessed rightly", &format!("{} of {}", sum(|s| s.accepted), sum(|s| s.drafted)))?;
    }
    Ok(if stages.iter().all(|s| s.met) { Exit::Success } else { Exit::No })
}

/// Most bytes of a file of requests.
const MAX_REQUESTS_FILE: u64 = 16 << 20;

fn requests(file: Option<&Path>) -> Result<Vec<String>, Failure> {
    let text = match file {
        None => REQUESTS.to_owned(),
        Some(file) => caro_base::files::read_text(file, MAX_REQUESTS_FILE).map_err(|e| {
            Failure::usage(format!("{}: {e}", file.display())).hint("--requests takes a text file, one request a line")
        })?,
    };
    let lines: Vec<String> = text.lines().map(str::trim).filter(|l| !l.is_empty()).map(String::from).collect();
    if lines.is_empty() {
        return Err(Failure::usage("there is no request in that file").hint("write one request a line"));
    }
    Ok(lines)
}

/// The measured part of an answer, which may be a refusal.
#[derive(serde::Deserialize)]
struct Measured {
    #[serde(default)]
    cmd: String,
    iterations: u32,
    timing: Timing,
}

/// Sends a request to a fresh process.
fn ask(program: &Path, answer: &AnswerArgs, cx: &Cx, request: &str) -> Result<Sample, Failure> {
    let mut layer = answer.layer();
    if answer.resident.is_none() {
        // by default the harder case is measured: a process that finds nothing ready
        layer.push(("resident", "off".into()));
    }
    let flags = layer.into_iter().map(|(key, value)| format!("--{}={value}", key.replace('_', "-")));
    let AnswerArgs { debug, verbose, timing, .. } = *answer;
    let switches = [("--debug", debug), ("--verbose", verbose), ("--timing", timing)];
    let switches = switches.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned());
    let numbers = [("alternatives", Some(answer.alternatives)), ("few-shot", answer.few_shot)];
    let numbers = numbers.into_iter().filter_map(|(name, n)| Some(format!("--{name}={}", n?)));
    let flags = flags.chain(numbers).chain(switches);
    let job = Job {
        args: std::iter::once("--json".into())
            .chain(flags)
            .chain(["--".into(), request.into()])
            .map(OsString::from)
            .collect(),
        cwd: cx.cwd.clone(),
        env: env::everything().collect(),
        limits: Limits { wall: PROCESS_TIMEOUT, output: 1 << 20 },
        sandbox: Sandbox::None,
        ..Job::new(program)
    };
    let failed =
        |why: String| Failure::internal(format!("`{request}`: {why}")).hint("ask it without `bench` to see more");
    let output = exec::capture_blocking(&job).map_err(|e| failed(e.to_string()))?;
    if debug || verbose || timing {
        cx.ui.tell(cx.ui.paint_err(Role::Plain, &String::from_utf8_lossy(&output.stderr)).trim_end());
    }
    let answer: Measured = serde_json::from_slice(&output.stdout).map_err(|_| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        failed(stderr.lines().next().unwrap_or("no answer").trim().to_owned())
    })?;
    let t = answer.timing;
    Ok(Sample {
        request: request.to_owned(),
        cmd: answer.cmd,
        iterations: answer.iterations,
        wall: output.took.as_secs_f64() * 1e3,
        iteration1: t.iteration1,
        context: t.context + t.manual,
        iteration2: t.iteration2,
        choice: t.choice,
        tokens: t.tokens,
        drafted: t.drafted,
        accepted: t.accepted,
        decode: t.decode,
        grammar: t.grammar,
    })
}

/// The stages of the specification ("Performance targets") over all samples.
fn stages(samples: &[Sample]) -> Vec<Stage> {
    let second: Vec<&Sample> = samples.iter().filter(|s| s.iterations > 1).collect();
    let with_choice: Vec<&Sample> = samples.iter().filter(|s| s.choice > 0.0).collect();
    let all: Vec<&Sample> = samples.iter().collect();
    let stage = |name, of: &[&Sample], value: fn(&Sample) -> f64, target_ms| {
        let mut times: Vec<f64> = of.iter().map(|s| value(s)).collect();
        times.sort_by(f64::total_cmp);
        let max_ms = times.last().copied().unwrap_or(0.0);
        Stage { name, p50_ms: median(&times), max_ms, target_ms, met: target_ms.is_none_or(|target| max_ms < target) }
    };
    vec![
        stage("iteration 1", &all, |s| s.iteration1, Some(2000.0)),
        stage("context and manuals", &all, |s| s.context, Some(500.0)),
        stage("others", &with_choice, |s| s.choice, None),
        stage("iteration 2", &second, |s| s.iteration2, Some(1500.0)),
        stage("whole", &all, |s| s.wall, Some(4000.0)),
    ]
}

/// The median of sorted values; 0 if there are none.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Generated tokens per second over all samples.
fn rate(samples: &[Sample]) -> f64 {
    let (tokens, ms) = samples.iter().fold((0, 0.0), |(n, ms), s| (n + s.tokens, ms + s.decode));
    if ms > 0.0 { tokens as f64 * 1e3 / ms } else { 0.0 }
}

/// The share of the decoding time for the grammar, over all samples.
fn grammar_share(samples: &[Sample]) -> f64 {
    let (grammar, decode) = samples.iter().fold((0.0, 0.0), |(g, d), s| (g + s.grammar, d + s.decode));
    if decode > 0.0 { grammar / decode } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(iterations: u32, iteration1: f64, iteration2: f64) -> Sample {
        Sample {
            request: String::new(),
            cmd: "ls".into(),
            iterations,
            wall: iteration1 + iteration2,
            iteration1,
            context: 1.0,
            iteration2,
            choice: 0.0,
            tokens: 10,
            drafted: 4,
            accepted: 3,
            decode: 250.0,
            grammar: 5.0,
        }
    }

    #[test]
    fn a_stage_is_met_only_if_its_slowest_request_is() {
        let fast = [sample(1, 900.0, 0.0), sample(1, 1000.0, 0.0), sample(2, 1100.0, 700.0)];
        let all = stages(&fast);
        assert!(all.iter().all(|s| s.met), "{all:?}");
        assert_eq!((all[0].p50_ms, all[0].max_ms), (1000.0, 1100.0));
        assert_eq!(all[3].p50_ms, 700.0, "only requests that had a second iteration count for it");
        let slow = stages(&[sample(1, 900.0, 0.0), sample(1, 2100.0, 0.0)]);
        assert_eq!(slow.iter().map(|s| s.met).collect::<Vec<_>>(), [false, true, true, true, true]);
        assert_eq!(slow[0].p50_ms, 1500.0);
    }

    #[test]
    fn the_rate_is_of_all_tokens_together() {
        assert_eq!(rate(&[sample(1, 1.0, 0.0), sample(1, 1.0, 0.0)]), 40.0);
        assert_eq!(rate(&[]), 0.0);
        assert_eq!((grammar_share(&[sample(1, 1.0, 0.0)]), grammar_share(&[])), (0.02, 0.0));
    }

    #[test]
    fn the_built_in_requests_are_read_and_an_empty_file_is_refused() {
        assert!(requests(None).unwrap().len() >= 10);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\n  \n").unwrap();
        assert!(requests(Some(file.path())).unwrap_err().message.contains("no request"));
        assert!(requests(Some(Path::new("/no/such/file"))).is_err());
    }
}
