//! Makes a prompt fit into the window: the system message, the task and the newest entries stay; older entries are
//! shortened to one line a call, or dropped. Applied before every request to the model.

use super::{AgentRun, Entry, Phase, prompt_tokens};
use crate::blueprint::Part;
use crate::tool::{Outcome, ToolResult};
use crate::{action, known};
use caro_policy::compress;
use caro_policy::fence;

/// The condition under which a conversation is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Never: a prompt that does not fit ends the run.
    Off,
    /// If it has more tokens than the threshold.
    TokenBudget,
    /// If there are more than this many steps, or it does not fit.
    SlidingWindow(usize),
}

/// The treatment of the steps that are taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// They are dropped, and the model is told their number.
    Truncate,
    /// Each call becomes one line, without a model: this cannot fail or invent anything.
    SummarizeAndTruncate,
    /// A model summarises them, in one more request each time some are dropped; if it fails, they are dropped as with
    /// [`Strategy::Truncate`].
    SummarizeByModel,
}

/// The settings that keep a growing conversation within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fitting {
    /// The condition.
    pub mode: Mode,
    /// The treatment of the steps that are taken out.
    pub strategy: Strategy,
    /// Percentage of the window above which [`Mode::TokenBudget`] shortens.
    pub threshold: usize,
    /// The number of entries (decisions and observations) at the end that stay complete as long as possible.
    pub recent: usize,
}

impl Default for Fitting {
    fn default() -> Self {
        Self { mode: Mode::TokenBudget, strategy: Strategy::SummarizeAndTruncate, threshold: 75, recent: 4 }
    }
}

/// The record of a shortened conversation.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Compression {
    /// Tokens before.
    pub before: usize,
    /// Tokens after.
    pub after: usize,
    /// `fold`: old entries became lines; `summary`: a model summarised them; `drop`: they were dropped; `cut`: the
    /// middle of texts was cut out, too.
    pub strategy: String,
}

/// Returns a call and its result as one line.
pub(super) fn call_summary(settled: &ToolResult) -> String {
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
    /// Returns the summary of the folded entries, one line per call.
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
        // of many lines the newest are kept
        if lines.len() > 29 {
            let cut = lines.len() - 28;
            lines.splice(..cut, [format!("- ({cut} earlier calls)")]);
        }
        // the lines contain output of tools
        format!("[CONTEXT SUMMARY] What was done before:\n{}", fence("observations", &lines.join("\n")))
    }

    /// Shortens the conversation until its prompt has at most `limit` tokens; returns a record if anything was
    /// shortened.
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
        // steps that a model has summarised are removed
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
        // a decision and its observation are folded together
        while shown(self) > most || tokens(self) > wanted && shown(self) > how.recent {
            self.folded += 2;
        }
        // above the threshold, but within the limit, new entries are not touched
        if before <= limit && self.folded == folded {
            return None;
        }
        let mut cap = 4000;
        while tokens(self) > limit && cap > 40 {
            strategy = "cut";
            self.shorten_entries(cap);
            cap = cap * 2 / 3;
        }
        // the last observation stays, because it ends with the reminder
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
        // only the task and the layers are left; the layers were measured beforehand, so the task is cut first
        let mut cap = self.task.text.chars().count();
        while tokens(self) > limit && cap > 40 {
            strategy = "cut";
            cap = cap * 2 / 3;
            self.task.text = compress(&self.task.text, cap);
            for part in &mut self.task.plan.parts {
                *part = compress(part, cap);
            }
            self.task.plan.parts.truncate(8);
            self.shorten_entries(cap);
        }
        while tokens(self) > limit && self.forget_layer() {}
        if tokens(self) > limit {
            self.drop_revealed_tools();
        }
        while tokens(self) > limit && self.folded + 2 <= self.entries.len() {
            self.folded += 2;
        }
        Some(Compression { before, after: tokens(self), strategy: strategy.into() })
    }

    /// Removes the least important layer; false if only the persona and the list of tools are left, which every step
    /// needs.
    fn forget_layer(&mut self) -> bool {
        let least = self.layers.iter().rposition(|l| !matches!(Part::of(&l.name), Some(Part::Persona | Part::Tools)));
        let Some(at) = least else { return false };
        // a text that is no longer in the prompt may be read again
        if self.layers.remove(at).name == known::LAYER {
            self.state.shown.clear();
        }
        true
    }

    /// Removes the tools that were revealed with results, together with their list in the prompt, since an unlisted
    /// tool must not be callable. They can be revealed again with later results.
    fn drop_revealed_tools(&mut self) {
        let mut revealed = String::new();
        for entry in &mut self.entries {
            if let Entry::Observation { tools, .. } = entry {
                revealed.push_str(&std::mem::take(tools));
            }
        }
        self.tools.retain(|spec| !revealed.contains(action::list(std::slice::from_ref(spec)).trim_end()));
        if let Phase::Decide(actions) = &mut self.phase {
            actions.tools.retain(|name| self.tools.iter().any(|spec| spec.name == *name));
        }
    }

    /// Removes the oldest line of the folded entries; false if there is none.
    fn forget_line(&mut self) -> bool {
        let briefs = self.entries[..self.folded].iter_mut().filter_map(|entry| match entry {
            Entry::Observation { brief, .. } if !brief.is_empty() => Some(brief),
            _ => None,
        });
        briefs.map(|brief| brief.remove(0)).next().is_some()
    }

    /// Cuts the middle out of every entry longer than `cap` characters.
    fn shorten_entries(&mut self, cap: usize) {
        for entry in &mut self.entries {
            match entry {
                Entry::Decision { text } => *text = compress(text, cap),
                // the reminder at its end is not shortened
                Entry::Observation { text, brief, .. } => {
                    *text = compress(text, cap);
                    brief.iter_mut().for_each(|line| *line = compress(line, cap));
                }
            }
        }
    }
}
