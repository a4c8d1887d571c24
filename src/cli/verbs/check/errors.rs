//! The errors of commands that `--jsonl` and `--hook` judge: they are looked for only where `--fail-on error` asks.

use super::FailOn;
use crate::{Cx, Failure};
use caro_command::inspect::{Inspector, Manuals, Subject};
use caro_host::ExecutionContext;
use caro_shell::{Dialect, Finding, Severity};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the manuals of a command's programs.
const MANUAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Finds errors in commands for this machine.
pub(super) struct ErrorFinder {
    runtime: tokio::runtime::Runtime,
    inspector: Inspector,
    manuals: Manuals,
    cwd: PathBuf,
}

impl ErrorFinder {
    /// Creates it if errors make a check fail.
    ///
    /// # Errors
    /// If the system gives no threads.
    pub(super) fn new(fail_on: FailOn, cx: &Cx) -> Result<Option<Self>, Failure> {
        if fail_on != FailOn::Error {
            return Ok(None);
        }
        let context = Arc::new(ExecutionContext::detect(cx.dirs.cache.as_deref()));
        let inspector = Inspector::new(context, Some(crate::setup::wire::manual(cx)));
        Ok(Some(Self {
            runtime: cx.runtime()?,
            inspector,
            manuals: Manuals::new(),
            cwd: cx.cwd.clone().unwrap_or_default(),
        }))
    }

    /// Returns the findings against a command that are errors.
    pub(super) fn errors(&mut self, command: &str, dialect: Dialect, cwd: Option<&Path>) -> Vec<Finding> {
        let target = self.inspector.context.target;
        let subject = Subject::without_request(cwd.unwrap_or(&self.cwd), target, dialect);
        let work = self.inspector.inspect(command.to_owned(), 1.0, subject, &mut self.manuals, MANUAL_TIMEOUT);
        let mut findings = self.runtime.block_on(work).findings;
        findings.retain(|finding| finding.severity == Severity::Error);
        findings
    }

    /// Ends the lookups that are still under way.
    pub(super) fn close(self) {
        crate::wind_up(self.runtime);
    }
}
