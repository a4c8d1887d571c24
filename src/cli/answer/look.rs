//! Checks a command: its findings, its risk, and the changes that a rehearsal shows.

use super::ask::Place;
use super::rehearsal;
use crate::Failure;
use crate::term::given;
use caro_command::inspect::{Inspector, Manuals, Subject};
use caro_host::ExecutionContext;
use caro_manual::Manual;
use caro_shell::safety::{Level, Reason, Risk};
use caro_shell::{Finding, Severity, assess, parse};
use std::sync::Arc;
use std::time::Duration;

/// Most time to wait for the manuals.
const MANUAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The size limit of the lists in a JSON document.
pub const LISTED: Bound = Bound { count: 200, bytes: 64 << 10 };

/// The result of a check, as `--json` prints it.
#[derive(Debug, serde::Serialize)]
pub struct Report {
    cmd: String,
    commands_used: Vec<String>,
    /// The findings, truncated to a bound, as the reasons are.
    pub findings: Vec<Finding>,
    /// The risk level with its reasons.
    pub risk: Risk,
    target: &'static str,
    shell: &'static str,
    /// The number of findings and reasons left out.
    #[serde(skip_serializing_if = "given::is_zero")]
    pub unlisted: usize,
    /// The changes that a rehearsal of it showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<rehearsal::Shown>,
}

/// A size limit of the findings and reasons for one command: a long command may have one for each of its words.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// Most findings, and most reasons.
    pub count: usize,
    /// Most bytes of the findings, and of the reasons.
    pub bytes: usize,
}

impl Bound {
    /// Truncates a list to the bound, but keeps its first item. Returns the number of removed items.
    fn cut<T>(self, all: &mut Vec<T>, bytes: impl Fn(&T) -> usize) -> usize {
        let (mut sum, before) = (0, all.len());
        let fitting = all.iter().take(self.count).take_while(|one| {
            sum += bytes(one);
            sum <= self.bytes
        });
        all.truncate(fitting.count().max(1));
        before - all.len()
    }

    /// Truncates findings and reasons to the bound. Returns the number of removed items.
    fn cut_report(self, findings: &mut Vec<Finding>, risk: &mut Risk) -> usize {
        let of_finding = |f: &Finding| {
            let evidence: usize = f.evidence.iter().map(String::len).sum();
            f.token.len() + f.why.len() + evidence + f.fix.as_ref().map_or(0, String::len)
        };
        self.cut(findings, of_finding) + self.cut(&mut risk.reasons, |r: &Reason| r.token.len() + r.why.len())
    }
}

/// Checks a command. The flag is true if it has no findings but hints and is not dangerous.
///
/// # Errors
/// If the rehearsal fails.
pub async fn look(
    command: String,
    place: &Place,
    context: Arc<ExecutionContext>,
    manual: Arc<Manual>,
    rehearse: bool,
    bound: Bound,
) -> Result<(Report, bool), Failure> {
    let inspector = Inspector::new(context.clone(), Some(manual));
    let subject = Subject::without_request(&place.cwd, place.target, place.dialect);
    let mut manuals = Manuals::new();
    let mut draft = inspector.inspect(command.clone(), 1.0, subject, &mut manuals, MANUAL_TIMEOUT).await;
    // no fix is suggested that is dangerous itself
    let is_dangerous = |fix: &String| assess(&parse(fix, place.dialect)).level == Level::Danger;
    draft.findings.iter_mut().for_each(|f| drop(f.fix.take_if(|fix| is_dangerous(fix))));
    let rehearsal = if rehearse { Some(rehearsal::run_rehearsal(&command, place, &context).await?) } else { None };
    let clean = draft.findings.iter().all(|f| f.severity == Severity::Hint) && draft.risk.level < Level::Danger;
    let unlisted = bound.cut_report(&mut draft.findings, &mut draft.risk);
    let report = Report {
        cmd: draft.cmd,
        commands_used: draft.commands_used,
        findings: draft.findings,
        risk: draft.risk,
        target: place.target.name(),
        shell: place.dialect.name(),
        unlisted,
        rehearsal,
    };
    Ok((report, clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_truncated_by_number_and_by_size_but_keeps_its_first() {
        let bound = Bound { count: 3, bytes: 10 };
        let cut = |mut all: Vec<&str>| {
            let gone = bound.cut(&mut all, |one| one.len());
            (all.len(), gone)
        };
        assert_eq!(cut(vec![]), (0, 0));
        assert_eq!(cut(vec!["1", "2", "3", "4", "5"]), (3, 2));
        assert_eq!(cut(vec!["12345", "12345", "1"]), (2, 1));
        assert_eq!(cut(vec!["12345678901", "1"]), (1, 1));
    }
}
