//! Makes a prompt fit: the system turn and the task stay, the newest entries stay, older ones become one line a call, or
//! go. Looked at before every request to the model.

use super::{AgentRun, Entry, Phase, prompt_tokens};
use crate::blueprint::Part;
use crate::tool::{Outcome, ToolResult};
use crate::{action, known};
use caro_policy::compress;
use caro_policy::fence;

/// When a conversation is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Never: a prompt that does not fit ends the run.
    Off,
    /// When it takes up more than the threshold.
    TokenBudget,
    /// When there are more than so many steps; when it does not fit, too.
    SlidingWindow(usize),
}

/// What becomes of the steps that are taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// They go, and the model is told how many.
    Truncate,
    /// Each call becomes one line. Made without a model: it cannot fail, and nothing in it is made up.
    SummarizeAndTruncate,
    /// A model sums them up, in one request more each time that some go; where it fails they go as with
    /// [`Strategy::Truncate`].
    SummarizeByModel,
}

/// How a conversation that grows is kept within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fitting {
    /// When.
    pub mode: Mode,
    /// What becomes of what is taken out.
    pub strategy: Strategy,
    /// Percent of the window from which on [`Mode::TokenBudget`] shortens.
    pub threshold: usize,
    /// Entries (decisions and observations) at the end that stay whole as long as it can be.
    pub recent: usize,
}

impl Default for Fitting {
    fn default() -> Self {
        Self { mode: Mode::TokenBudget, strategy: Strategy::SummarizeAndTruncate, threshold: 75, recent: 4 }
    }
}

/// What was shortened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Compression {
    /// Tokens before.
    pub before: usize,
    /// Tokens after.
    pub after: usize,
    /// `fold`: old entries became lines; `summary`: a model's; `drop`: they went; `cut`: texts lost their middle too.
    pub strategy: String,
}

/// A call in one line.
pub(super) fn brief(settled: &ToolResult) -> String {
    let first: String = settled.line().chars().take(80).collect();
    let word = match settled.outcome {
        Outcome::Succeeded => "",
        Outcome::Failed | Outcome::FailedLate | Outcome::TimedOut => " failed:",
        Outcome::Blocked | Outcome::Denied => " was not run:",
        Outcome::Cancelled => " was stopped:",
    };
    let args: String = settled.call.summary().chars().take(80).collect();
    format!("{} {args} ->{word} {first}", settled.call.tool)
}

impl AgentRun {
    /// The folded entries, a line a call.
    pub(super) fn summary(&self) -> String {
        let upto = self.summed.as_ref().map_or(0, |summed| summed.upto.min(self.folded));
        let summed = self.summed.iter().flat_map(|summed| summed.text.lines()).map(str::to_owned);
        let mut lines: Vec<String> = summed.collect();
        if self.bare && lines.is_empty() {
            return format!("[CONTEXT SUMMARY] {} earlier steps are not shown.", self.folded / 2);
        }
        if self.bare && self.folded > upto {
            lines.push(format!("- ({} later steps are not shown)", (self.folded - upto) / 2));
        } else {
            for entry in &self.entries[upto..self.folded] {
                if let Entry::Observation { brief, .. } = entry {
                    lines.extend(brief.iter().map(|line| format!("- {line}")));
                }
            }
        }
        // the newest of a long past are worth more than the oldest
        if lines.len() > 29 {
            let cut = lines.len() - 28;
            lines.splice(..cut, [format!("- ({cut} earlier calls)")]);
        }
        // what a tool said stands in them
        format!("[CONTEXT SUMMARY] What was done before:\n{}", fence("observations", &lines.join("\n")))
    }

    /// Shortens the conversation until its prompt has at most `limit` tokens; tells what was done, if anything was.
    pub fn fit(&mut self, limit: usize, how: &Fitting, count: &dyn Fn(&str) -> usize) -> Option<Compression> {
        if !matches!(self.phase, Phase::Decide(_)) || how.mode == Mode::Off {
            return None;
        }
        let tokens = |turn: &Self| prompt_tokens(&turn.prompt(), count);
        let before = tokens(self);
        let shown = |turn: &Self| turn.entries.len() - turn.folded;
        let (wanted, most) = match how.mode {
            Mode::SlidingWindow(steps) => (limit, steps.max(1) * 2),
            _ => (limit * how.threshold.min(100) / 100, usize::MAX),
        };
        // what a model has summed up goes
        let upto = self.summed.as_ref().map_or(0, |summed| summed.upto);
        if before <= wanted && shown(self) <= most && upto <= self.folded {
            return None;
        }
        self.bare = how.strategy == Strategy::Truncate || how.strategy == Strategy::SummarizeByModel && upto == 0;
        let mut strategy = match self.bare {
            true => "drop",
            false if upto > 0 => "summary",
            false => "fold",
        };
        let folded = self.folded;
        self.folded = self.folded.max(upto);
        // decision and observation go together
        while shown(self) > most || tokens(self) > wanted && shown(self) > how.recent {
            self.folded += 2;
        }
        // over the threshold with nothing old left is no reason to touch what is new
        if before <= limit && self.folded == folded {
            return None;
        }
        let mut cap = 4000;
        while tokens(self) > limit && cap > 40 {
            strategy = "cut";
            self.cap(cap);
            cap = cap * 2 / 3;
        }
        // what was told last ends with what is to be done now
        while tokens(self) > limit && self.folded + 4 <= self.entries.len() {
            self.folded += 2;
        }
        if self.folded > folded {
            let left = self.entries.iter().skip(self.folded).map(|entry| match entry {
                Entry::Observation { brief, .. } => brief.len(),
                Entry::Decision { .. } => 0,
            });
            self.state.fold(left.sum());
        }
        while tokens(self) > limit && (self.forget_line() || self.forget_summed()) {}
        // what is left is the task and the layers; of these the layers were measured, so the task must give
        let mut cap = self.task.text.chars().count();
        while tokens(self) > limit && cap > 40 {
            strategy = "cut";
            cap = cap * 2 / 3;
            self.task.text = compress(&self.task.text, cap);
            for part in &mut self.task.plan.parts {
                *part = compress(part, cap);
            }
            self.task.plan.parts.truncate(8);
            self.cap(cap);
        }
        while tokens(self) > limit && self.forget_layer() {}
        if tokens(self) > limit {
            self.unlist();
        }
        while tokens(self) > limit && self.folded + 2 <= self.entries.len() {
            self.folded += 2;
        }
        Some(Compression { before, after: tokens(self), strategy: strategy.into() })
    }

    /// Forgets the layer that matters least; false if only those are left that no step is made without: who the model is, and
    /// which tools the grammar has.
    fn forget_layer(&mut self) -> bool {
        let least = self.layers.iter().rposition(|l| !matches!(Part::of(&l.name), Some(Part::Persona | Part::Tools)));
        let Some(at) = least else { return false };
        // what is no longer told may be read again
        if self.layers.remove(at).name == known::LAYER {
            self.state.shown.clear();
        }
        true
    }

    /// Takes the list of the tools out that were told of with results, and these tools with it: what is not listed cannot
    /// be called. They are told of again with the next results.
    fn unlist(&mut self) {
        let mut told = String::new();
        for entry in &mut self.entries {
            if let Entry::Observation { tools, .. } = entry {
                told.push_str(&std::mem::take(tools));
            }
        }
        self.tools.retain(|spec| !told.contains(action::list(std::slice::from_ref(spec)).trim_end()));
        if let Phase::Decide(actions) = &mut self.phase {
            actions.tools.retain(|name| self.tools.iter().any(|spec| spec.name == *name));
        }
    }

    /// Forgets the oldest line of the summary; false if there is none.
    fn forget_line(&mut self) -> bool {
        let briefs = self.entries[..self.folded].iter_mut().filter_map(|entry| match entry {
            Entry::Observation { brief, .. } if !brief.is_empty() => Some(brief),
            _ => None,
        });
        briefs.map(|brief| brief.remove(0)).next().is_some()
    }

    /// Cuts the middle out of every entry longer than `cap` characters.
    fn cap(&mut self, cap: usize) {
        for entry in &mut self.entries {
            match entry {
                Entry::Decision { text } => *text = compress(text, cap),
                // its last words stay: they say what is to be done now
                Entry::Observation { text, brief, .. } => {
                    *text = compress(text, cap);
                    brief.iter_mut().for_each(|line| *line = compress(line, cap));
                }
            }
        }
    }
}
