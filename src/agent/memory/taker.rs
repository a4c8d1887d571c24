//! What of a run is worth a note, decided and written without a model: what was to be done, by which calls it was done, and
//! what came out. A run that needed one step taught nothing; one that failed does not know what would have helped.

use super::{Category, Draft, Memory};
use crate::reflect::Reflection;
use crate::runtime::Notes;
use crate::turn::{AgentRun, End};
use caro_policy::Redactor;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The most calls that a note tells.
const CALLS: usize = 6;
/// The most tags.
const TAGS: usize = 8;

/// Writes notes of runs into a memory.
pub struct NoteTaker {
    /// Where they are kept.
    pub memory: Arc<Memory>,
    /// What must not be kept.
    pub redactor: Redactor,
}

impl Notes for NoteTaker {
    fn take(&self, turn: &AgentRun, reflection: &Reflection) -> Result<Option<String>, String> {
        let Some(mut draft) = distil(turn, reflection) else { return Ok(None) };
        draft.title = self.redactor.text(&draft.title);
        draft.content = self.redactor.text(&draft.content);
        let note = self.memory.remember(draft).map_err(|e| e.to_string())?;
        Ok(Some(note.id))
    }
}

/// The note of a run: for success in several steps, or after something had failed; otherwise none.
pub fn distil(turn: &AgentRun, reflection: &Reflection) -> Option<Draft> {
    let (end, _) = turn.end()?;
    let state = turn.state();
    let retried = state.calls.iter().any(|c| c.outcome.is_error());
    if *end != End::Answered || state.successes < 2 && !(retried && state.successes > 0) {
        return None;
    }
    let mut calls = turn.briefs();
    // what went wrong at first is worth as much as what then worked, but the end of a long run says most
    if calls.len() > CALLS {
        calls.drain(..calls.len() - CALLS);
    }
    let mut content = format!("Task: {}\nDone by:\n", reflection.objective);
    for call in &calls {
        content.push_str(&format!("- {call}\n"));
    }
    content.push_str(&format!("Result: {}", reflection.result));
    let name = |path: &String| Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned());
    let tools: BTreeSet<&str> = calls.iter().filter_map(|call| call.split_whitespace().next()).collect();
    let tags = tools.into_iter().map(str::to_owned).chain(state.modified.iter().filter_map(name)).take(TAGS).collect();
    Some(Draft {
        title: reflection.objective.clone(),
        category: if retried { Category::Hindsight } else { Category::Insight },
        content,
        tags,
        related_files: state.modified.iter().chain(&state.visited).take(TAGS).cloned().collect(),
        run: turn.task().run.clone(),
    })
}
