//! A look at a command: what is wrong with it, how dangerous it is, and what a rehearsal of it changes.

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

/// How long the manuals may take: nobody waits for a model here.
const MANUAL_WAIT: Duration = Duration::from_secs(2);

/// How much a document tells.
pub const LISTED: Bound = Bound { count: 200, bytes: 64 << 10 };

/// A command that was looked at, as the document of `--json` has it.
#[derive(Debug, serde::Serialize)]
pub struct Report {
    cmd: String,
    commands_used: Vec<String>,
    /// Cut to a bound, as the reasons are.
    pub findings: Vec<Finding>,
    /// How dangerous it is, and why.
    pub risk: Risk,
    target: &'static str,
    shell: &'static str,
    /// Findings and reasons beyond those.
    #[serde(skip_serializing_if = "given::is_zero")]
    pub unlisted: usize,
    /// The changes that a rehearsal of it showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<rehearsal::Shown>,
}

/// How much is told about one command: one of thousands of words may have a finding for each of them.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// So many findings or reasons at most.
    pub count: usize,
    /// So many bytes of them.
    pub bytes: usize,
}

impl Bound {
    /// Cuts a list where its bound is reached, but keeps its first; how many are gone.
    fn cut<T>(self, all: &mut Vec<T>, bytes: impl Fn(&T) -> usize) -> usize {
        let (mut sum, before) = (0, all.len());
        let fitting = all.iter().take(self.count).take_while(|one| {
            sum += bytes(one);
            sum <= self.bytes
        });
        all.truncate(fitting.count().max(1));
        before - all.len()
    }

    /// The same of what a check found.
    fn cut_report(self, findings: &mut Vec<Finding>, risk: &mut Risk) -> usize {
        let of_finding = |f: &Finding| {
            let evidence: usize = f.evidence.iter().map(String::len).sum();
            f.token.len() + f.why.len() + evidence + f.fix.as_ref().map_or(0, String::len)
        };
        self.cut(findings, of_finding) + self.cut(&mut risk.reasons, |r: &Reason| r.token.len() + r.why.len())
    }
}

/// Looks at a command; true if there is nothing against it but hints.
///
/// # Errors
/// If it cannot be tried out.
pub async fn look(
    command: String,
    place: &Place,
    context: Arc<ExecutionContext>,
    manual: Arc<Manual>,
    rehearse: bool,
    bound: Bound,
) -> Result<(Report, bool), Failure> {
    let inspector = Inspector::new(context.clone(), Some(manual));
    let subject = Subject { request: "", cwd: &place.cwd, target: place.target, dialect: place.dialect };
    let mut manuals = Manuals::new();
    let mut draft = inspector.inspect(command.clone(), 1.0, subject, &mut manuals, MANUAL_WAIT).await;
    // what is dangerous is no better for being written otherwise
    let is_dangerous = |fix: &String| assess(&parse(fix, place.dialect)).level == Level::Danger;
    draft.findings.iter_mut().for_each(|f| drop(f.fix.take_if(|fix| is_dangerous(fix))));
    let rehearsal = if rehearse { Some(rehearsal::try_out(&command, place, &context).await?) } else { None };
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
    fn a_list_is_cut_by_its_number_and_by_its_size_and_keeps_its_first() {
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
