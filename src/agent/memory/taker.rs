//! Makes notes from runs, without a model: the task, the calls that did it, and the result. A run of one step teaches
//! nothing, and a failed run does not know what would have helped, so they get no note.

use super::{Category, Draft, Memory};
use crate::reflect::Reflection;
use crate::runtime::Notes;
use crate::turn::{AgentRun, End};
use caro_policy::Redactor;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Most calls listed in a note.
const MAX_CALLS: usize = 6;
/// Most tags, and most files, of a note.
const MAX_TAGS: usize = 8;

/// Stores notes of runs in a memory.
pub struct NoteTaker {
    /// The memory that stores them.
    pub memory: Arc<Memory>,
    /// Removes secrets from the notes.
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

/// Makes the note of a run that succeeded in several steps or after a failed call; `None` for other runs.
pub fn distil(turn: &AgentRun, reflection: &Reflection) -> Option<Draft> {
    let (end, _) = turn.end()?;
    let state = turn.state();
    let retried = state.calls.iter().any(|c| c.outcome.is_error());
    if *end != End::Answered || state.successes < 2 && !(retried && state.successes > 0) {
        return None;
    }
    let mut calls = turn.briefs();
    // the first failures matter too, but the end of a long run says most
    if calls.len() > MAX_CALLS {
        calls.drain(..calls.len() - MAX_CALLS);
    }
    let mut content = format!("Task: {}\nDone by:\n", reflection.objective);
    for call in &calls {
        content.push_str(&format!("- {call}\n"));
    }
    content.push_str(&format!("Result: {}", reflection.result));
    let name = |path: &String| Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned());
    let tools: BTreeSet<&str> = calls.iter().filter_map(|call| call.split_whitespace().next()).collect();
    let files = state.modified.iter().filter_map(name);
    let tags = tools.into_iter().map(str::to_owned).chain(files).take(MAX_TAGS).collect();
    Some(Draft {
        title: reflection.objective.clone(),
        category: if retried { Category::Hindsight } else { Category::Insight },
        content,
        tags,
        related_files: state.modified.iter().chain(&state.visited).take(MAX_TAGS).cloned().collect(),
        run: turn.task().run.clone(),
    })
}
