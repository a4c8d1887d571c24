//! `caro doctor`: reports what works here and what does not, each with a remedy. No model is loaded without `--test`.
//!
//! - `finding`: a line of the report.
//! - A file for each group of checks: `model`, `machine`, `prompt`, `folders`, `config`, `stores`, `residents`. In
//!   each,
//!   `look` reads the facts from this machine and `findings`, a pure function, judges them.
//! - `test_request`: the request of `--test`.
//!
//! Nothing is changed here: faults are reported, and fixing them is left to the user.

mod config;
mod finding;
mod folders;
mod machine;
mod model;
mod prompt;
mod residents;
mod stores;
mod test_request;

use crate::term::ui::{Role, in_line, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_host::ExecutionContext;
use finding::{Finding, State};
use std::time::Instant;

/// Arguments of `caro doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Ask the model something, and say how long loading and answering took
    #[arg(long)]
    test: bool,
}

/// Runs the checks and prints the findings. The exit code is 1 if a check fails.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let started = Instant::now();
    let version = env!("CARGO_PKG_VERSION");
    let (settings_facts, settings) = config::look(cx)?;
    // at the same time, since each waits for something else: a child process, the disk, a socket
    let (machine, model, rest) = std::thread::scope(|scope| {
        let machine = scope.spawn(|| machine::look(cx, &settings));
        let model = scope.spawn(|| model::look(cx, &settings));
        let prompt = prompt::look(&ExecutionContext::detect(cx.dirs.cache.as_deref()));
        let mut rest = prompt::findings(&prompt);
        rest.extend(residents::findings(&residents::look(cx, &settings), version));
        rest.extend(folders::findings(&folders::look(&cx.dirs)));
        rest.extend(config::findings(&settings_facts));
        rest.extend(stores::findings(&stores::look(cx, &settings)));
        (machine.join(), model.join(), rest)
    });
    let panicked = |_| Failure::internal("a check did not come to its end");
    let (machine, model) = (machine.map_err(panicked)?, model.map_err(panicked)?);
    let mut findings = model::findings(&model);
    findings.extend(machine::findings(&machine));
    findings.extend(rest);
    let took = started.elapsed();
    let tested = args.test.then(|| test_request::run(cx, &settings, &model.place));
    findings.extend(tested.as_ref().map(test_request::finding));
    let worst = finding::worst(&findings);
    if args.json {
        let mut document = serde_json::json!({
            "version": version,
            "ok": worst != State::Fail,
            "findings": findings,
            "took_ms": (took.as_secs_f64() * 1e4).round() / 10.0,
        });
        if let Some(Ok(answer)) = &tested {
            document["test"] = serde_json::json!({
                "command": answer.command, "load_s": answer.load_s, "answer_s": answer.answer_s, "by_resident": answer.by_resident,
            });
        }
        cx.ui.document(&document)?;
    } else {
        findings.iter().try_for_each(|finding| show(finding, cx))?;
        cx.ui.note(&summary(&findings));
    }
    Ok(if worst == State::Fail { Exit::No } else { Exit::Success })
}

/// Prints a line for a finding, and one below it for its remedy.
fn show(finding: &Finding, cx: &Cx) -> std::io::Result<()> {
    let (word, role) = finding.state.word();
    let word = cx.ui.paint(role, &format!("{word:<4}"));
    let check = cx.ui.paint(Role::Accent, &format!("{:<10}", finding.check));
    cx.ui.line(&format!("{word}  {check}  {}", cx.ui.entry(Role::Plain, &finding.fact)))?;
    let Some(remedy) = &finding.remedy else { return Ok(()) };
    let role = if finding.state == State::Ok { Role::Dim } else { Role::Plain };
    cx.ui.line(&format!("                  {}", cx.ui.paint(role, &in_line(remedy))))
}

/// The numbers of checks, failures and warnings in words.
fn summary(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let all = plural(findings.len(), "check");
    match (count(State::Fail), count(State::Warn)) {
        (0, 0) => format!("{all}: all is well"),
        (0, warned) => format!("{all}: {}", plural(warned, "warning")),
        (failed, 0) => format!("{all}: {failed} failed"),
        (failed, warned) => format!("{all}: {failed} failed, {}", plural(warned, "warning")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_failures_and_warnings() {
        let (ok, warn, fail) = (Finding::ok("a", "x"), Finding::warn("a", "x", "y"), Finding::fail("a", "x", "y"));
        assert_eq!(summary(std::slice::from_ref(&ok)), "1 check: all is well");
        assert_eq!(summary(&[ok.clone(), warn.clone()]), "2 checks: 1 warning");
        assert_eq!(summary(&[ok, warn, fail]), "3 checks: 1 failed, 1 warning");
    }
}
