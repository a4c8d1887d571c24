//! Runs a script on tests in a sandbox: without network, with a timeout, and without the user's environment variables.
//! It can write nothing, but for a rehearsal ([`TestRunner::rehearse`]), whose changes are thrown away.

use super::classify::{Class, Failure, classify};
use super::examples::{Case, Way};
use super::general::{Change, changes, constant_answer};
use super::scan::{Effect, Finding};
use caro_exec::rehearse::{Rehearsal, RehearsalError, RehearsalJob, rehearse};
use caro_exec::{self as exec, EnvProfile, ExecError, Job, Limits, Sandbox, Status};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The timeout of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of output.
const MAX_OUTPUT: usize = 256 << 10;
/// Most characters of an output that are stored with a failure.
const MAX_STORED_OUTPUT: usize = 2000;

/// Runs the tests of one script.
#[derive(Debug, Clone)]
pub struct TestRunner {
    /// The interpreter, with its arguments before the script.
    pub interpreter: Vec<OsString>,
    /// The script.
    pub script: PathBuf,
    /// True if it takes `--text` and `--file`; else its first argument is the input.
    pub has_input_flags: bool,
}

impl TestRunner {
    /// Runs the tests and returns those that fail. The tests that the model has not seen run only once all others pass.
    ///
    /// # Errors
    /// If the script cannot be started at all.
    pub async fn failures(&self, cases: &[Case]) -> Result<Vec<Failure>, ExecError> {
        for is_held_out in [false, true] {
            let mut failures = Vec::new();
            for (at, case) in cases.iter().enumerate().filter(|(_, case)| case.is_held_out == is_held_out) {
                failures.extend(self.failure(at, case).await?);
            }
            if !failures.is_empty() {
                return Ok(failures);
            }
        }
        Ok(Vec::new())
    }

    /// Runs one test and returns its failure, if it fails.
    async fn failure(&self, at: usize, case: &Case) -> Result<Option<Failure>, ExecError> {
        let output = self.run(case).await?;
        let got = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() && is_same(&got, &case.expected) {
            return Ok(None);
        }
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let (class, error) = classify(output.status, &stderr);
        let got = if class == Class::Assertion { got.chars().take(MAX_STORED_OUTPUT).collect() } else { String::new() };
        Ok(Some(Failure { case: at, class, got, error, is_held_out: case.is_held_out }))
    }

    /// Runs the script on an input and returns its output; `None` if it fails.
    ///
    /// # Errors
    /// If the script cannot be started.
    pub async fn output(&self, case: &Case) -> Result<Option<String>, ExecError> {
        let output = self.run(case).await?;
        Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    async fn run(&self, case: &Case) -> Result<exec::Output, ExecError> {
        let failed = |source| ExecError::Start { program: self.script.display().to_string(), source };
        let folder = tempfile::tempdir().map_err(failed)?;
        let args = self.args(case, folder.path()).map_err(failed)?;
        let (first, before) = self.interpreter.split_first().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let mut job =
            Job::new(first).args(before.iter().cloned()).args([self.script.clone().into_os_string()]).args(args);
        job.limits = Limits { wall: TEST_TIMEOUT, output: MAX_OUTPUT };
        (job.sandbox, job.profile) = (Sandbox::ReadOnly, EnvProfile::Script);
        exec::capture(&job).await
    }

    /// Returns the arguments that pass an input, as text or as a file below `folder`.
    fn args(&self, case: &Case, folder: &Path) -> io::Result<Vec<OsString>> {
        let mut args: Vec<OsString> = Vec::new();
        match case.way {
            Way::Text => {
                args.extend(self.has_input_flags.then(|| "--text".into()));
                args.push(case.input.clone().into());
            }
            Way::File => {
                let file = folder.join("input.txt");
                std::fs::write(&file, &case.input)?;
                args.extend(self.has_input_flags.then(|| "--file".into()));
                args.push(file.into_os_string());
            }
        }
        Ok(args)
    }

    /// Finds tests whose output does not follow changes of the input; none unless these are more than half of the tests
    /// that can be checked.
    ///
    /// # Errors
    /// If the script cannot be started.
    pub async fn constant_answers(&self, cases: &[Case]) -> Result<Vec<Finding>, ExecError> {
        let mut found = Vec::new();
        let mut checked = 0;
        for (at, case) in cases.iter().enumerate() {
            let changes = changes(case);
            let Some(first) = changes.first() else { continue };
            checked += 1;
            let mut follows = false;
            for change in &changes {
                if self.follows(change).await? {
                    follows = true;
                    break;
                }
            }
            if !follows {
                found.push(constant_answer(at, first));
            }
        }
        // a few of several tests may fail this check by accident
        Ok(if found.len() * 2 > checked { found } else { Vec::new() })
    }

    /// True if the output follows the change: it is the expected one for an exact change, else another one.
    async fn follows(&self, Change { case, is_exact }: &Change) -> Result<bool, ExecError> {
        let output = self.run(case).await?;
        let got = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_fine = output.status.success() && !got.trim().is_empty();
        Ok(is_fine && is_same(&got, &case.expected) == *is_exact)
    }

    /// Rehearses the script, with changes allowed, and returns a finding about its first change, or about output without
    /// end, which leaves its changes unknown. `None` if this system has no rehearsal.
    ///
    /// # Errors
    /// If the rehearsal cannot be run.
    pub async fn rehearse(&self, case: &Case) -> Result<Option<Vec<Finding>>, RehearsalError> {
        let folder = tempfile::tempdir()?;
        let job = RehearsalJob {
            args: self.args(case, folder.path())?,
            cwd: folder.path().to_owned(),
            env: vec![("PYTHONDONTWRITEBYTECODE".into(), "1".into())],
            limits: Limits { wall: TEST_TIMEOUT, output: MAX_OUTPUT },
            ..RehearsalJob::with_interpreter(self.interpreter.clone(), self.script.clone())
        };
        let finding = |rule: &str, effect, what, why: &str| Finding {
            rule: rule.to_owned(),
            effect,
            line: 0,
            what,
            why: why.to_owned(),
        };
        Ok(Some(match rehearse(&job).await {
            Ok(Rehearsal { status: Status::Flooded, .. }) => {
                let why = "it writes without end when it may change files, so that its changes are not known";
                vec![finding("observed-flood", None, "output without end".to_owned(), why)]
            }
            Ok(result) => {
                let path = result.changes.into_iter().next().map(|change| change.path.display().to_string());
                let why = "it changes files when it may";
                path.map(|path| finding("observed-change", Some(Effect::Write), path, why)).into_iter().collect()
            }
            Err(RehearsalError::Unavailable(_)) => return Ok(None),
            Err(error) => return Err(error),
        }))
    }
}

/// True if two outputs are equal except for white space at the ends of lines and blank lines at the end.
pub fn is_same(one: &str, other: &str) -> bool {
    one.trim_end().lines().map(str::trim_end).eq(other.trim_end().lines().map(str::trim_end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_white_space_at_the_ends_of_lines_and_text_is_ignored() {
        assert!(is_same("a \r\nb\n\n", "a\nb"));
        for (one, other) in [("a", "b"), (" a", "a"), ("a\n\nb", "a\nb"), ("a", "a\nb"), ("A", "a")] {
            assert!(!is_same(one, other), "{one:?} {other:?}");
        }
    }
}
