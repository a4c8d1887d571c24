//! Assembles the prompt of a run before its first step: layers and tools that fit into the model's window. If not all
//! tools fit, the least needed are left out; the prompt's list and the grammar always have the same tools.

use super::Runtime;
use crate::action;
use crate::assemble::{self, Assembly, ContextProvider, Fixed, Layer, Query};
use crate::blueprint::{self, Blueprint, Part, guidance};
use crate::guard::Halt;
use crate::retrieve::by_need;
use crate::tool::ToolSpec;
use crate::turn::{AgentRun, prompt_tokens};
use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;

/// Fewest tokens needed for a step besides the prompt: a call, the start of its result, and the next decision.
const MIN_STEP_TOKENS: usize = 100;
/// The priority of the tools among the layers.
const TOOLS_PRIORITY: u16 = 20;

/// The assembled context of a run.
pub(super) struct Context {
    /// The layers.
    pub(super) assembly: Assembly,
    /// The tools listed in the layers.
    pub(super) tools: Vec<ToolSpec>,
    /// Most tokens of the layers.
    pub(super) budget: usize,
    /// The reason if the run cannot begin.
    pub(super) refusal: Option<Halt>,
}

impl Runtime {
    /// Returns the most tokens of a prompt.
    pub(super) fn room(&self) -> usize {
        self.model.limits().context.saturating_sub(self.config.decision_tokens)
    }

    /// Returns the most tokens of the layers: half of the prompt, the other half is for the run itself.
    pub(super) fn budget(&self) -> usize {
        self.room() / 2
    }

    /// Assembles the layers and the tools for a task. The run is refused if the persona, one tool, the whole task and
    /// a step do not fit: a model that has not read its tools or its task does something else.
    pub(super) fn context(&self, turn: &AgentRun, query: &Query) -> Context {
        let (count, blueprints) = (self.count(), &self.config.blueprints);
        let has_tools = blueprints.iter().any(|one| one.parts().contains(&Part::Tools));
        let candidates = if has_tools { self.selected_tools(&query.task) } else { Vec::new() };
        let task = prompt_tokens(&turn.prompt(), &count);
        let rest = self.room().saturating_sub(task + MIN_STEP_TOKENS);
        let share = self.budget().min(rest);
        let mut gathered = assemble::gather(&self.parts(blueprints), query, (share, self.config.patience), &count);
        if !self.model.is_local() {
            gathered.layers.iter_mut().for_each(|layer| layer.text = self.emitter.redacted(&layer.text));
        }
        let persona: usize = gathered.layers.iter().filter(|l| l.name == "persona").map(|l| l.tokens).sum();

        let ranking = by_need(&query.task, &candidates);
        let list_tokens = |at: &usize| count(&tools_text(slice::from_ref(&candidates[*at])));
        let mut lists: Vec<usize> = ranking.iter().map(list_tokens).collect();
        if lists.is_empty() {
            lists.push(count(&tools_text(&[])));
        }
        let fits = lists.iter().find(|tokens| persona + **tokens <= rest);
        let min_tools = fits.or(lists.iter().min()).copied().unwrap_or_default();
        // an unavailable model has a window of 0: the request to it reports the reason
        let refuses = fits.is_none() && self.model.limits().context > 0;
        let refusal = refuses.then(|| self.no_room(persona + min_tools, task));
        let budget = share.max(persona + min_tools);

        // layers with a lower number come before the tools, but never displace the last tool
        let layers = gathered.layers.into_iter();
        let (before, behind): (Vec<Layer>, Vec<Layer>) = layers.partition(|l| l.priority < TOOLS_PRIORITY);
        gathered.layers = before;
        let mut assembly = gathered.within(budget - min_tools);
        let left = budget - assembly.tokens();
        let (tools, left_out) = select_fitting(candidates, &ranking, |tools| count(&tools_text(tools)) <= left);
        assembly.dropped.extend(left_out.into_iter().map(|tool| format!("tool {}", tool.name)));
        assembly.layers.push(Fixed { name: "tools", priority: TOOLS_PRIORITY, text: tools_text(&tools) }.layer(&count));
        assembly.layers.extend(guidance::layers(&tools).into_iter().map(|rule| rule.layer(&count)));
        assembly.layers.extend(behind);
        let mut assembly = assembly.within(budget);
        assembly.failed.extend(refusal.iter().map(|halt| ("the run".to_owned(), halt.text.clone())));
        Context { assembly, tools, budget, refusal }
    }

    /// Returns a refusal that says why the run cannot begin and what to do about it.
    fn no_room(&self, instructions: usize, task: usize) -> Halt {
        let (window, reply) = (self.model.limits().context, self.config.decision_tokens);
        let larger = "take a model with a larger window (--model)";
        let next = match instructions + MIN_STEP_TOKENS < self.room() {
            true => format!("put what is long in the task into a file and name that, or {larger}"),
            false => larger.to_owned(),
        };
        let text = format!(
            "the model's window of {window} tokens is too small for this run: {reply} are kept for what it writes, its \
             instructions take {instructions}, the task {task} and a step {MIN_STEP_TOKENS}; {next}"
        );
        Halt { reason: "context_limit".into(), text }
    }

    /// Returns the providers whose layers belong into prompts of these blueprints.
    pub(super) fn parts(&self, blueprints: &[Blueprint]) -> Vec<Arc<dyn ContextProvider>> {
        self.providers.iter().filter(|provider| blueprint::takes(blueprints, provider.name())).cloned().collect()
    }

    /// Assembles the layers of these providers.
    pub(super) fn layers(&self, providers: &[Arc<dyn ContextProvider>], query: &Query, budget: usize) -> Assembly {
        assemble::assemble(providers, query, (budget, self.config.patience), &self.count())
    }
}

/// Formats the list of tools; without tools it lists only the ways to end.
fn tools_text(tools: &[ToolSpec]) -> String {
    format!("Tools:\n{}", action::describe(tools))
}

/// Selects tools that fit together, preferring those first in `ranking`; if one does not fit, a later smaller one may.
/// Returns the selected and the other tools, in their original order.
fn select_fitting(
    candidates: Vec<ToolSpec>,
    ranking: &[usize],
    fits: impl Fn(&[ToolSpec]) -> bool,
) -> (Vec<ToolSpec>, Vec<ToolSpec>) {
    if fits(&candidates) {
        return (candidates, Vec::new());
    }
    let mut selected = BTreeSet::new();
    for at in ranking {
        selected.insert(*at);
        let together: Vec<ToolSpec> = selected.iter().map(|at| candidates[*at].clone()).collect();
        if !fits(&together) {
            selected.remove(at);
        }
    }
    let numbered = candidates.into_iter().enumerate();
    let (selected, others): (Vec<_>, Vec<_>) = numbered.partition(|(at, _)| selected.contains(at));
    let specs = |all: Vec<(usize, ToolSpec)>| all.into_iter().map(|(_, spec)| spec).collect();
    (specs(selected), specs(others))
}
