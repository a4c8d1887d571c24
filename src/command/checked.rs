//! Wraps a command that no model wrote as an [`Answer`], so that it is explained and shown like every other.

use super::answer::{Answer, Timing};
use super::inspect::{Manuals, Subject};
use super::refine_loop::Draft;
use super::{explain, grounds};
use caro_shell::parse;

/// Makes an answer of an inspected command. `author` says who wrote it (`person`, `rules`), and `why` becomes its
/// `changes`.
pub fn answer(draft: Draft, author: &str, why: String, subject: Subject<'_>, manuals: &Manuals) -> Answer {
    Answer {
        explanation: explain::line(&parse(&draft.cmd, subject.dialect), manuals),
        draft: grounds::is_draft(&draft),
        cmd: draft.cmd,
        confidence: draft.confidence,
        commands_used: draft.commands_used,
        changes: why,
        iterations: 0,
        candidates: 1,
        findings: draft.findings,
        risk: draft.risk,
        model: author.into(),
        adapter: None,
        target: subject.target.name().into(),
        shell: subject.dialect.name().into(),
        timing: Timing::default(),
        alternatives: Vec::new(),
        documents: Vec::new(),
        slips: Vec::new(),
        resident: false,
        refusal: None,
    }
}
