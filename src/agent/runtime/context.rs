//! What a run is told before its first step: layers and tools, so much of both as its window holds. Where it does not hold all
//! tools the least needed go, and the list of the prompt and the grammar are made of the others: in any window both have the same.

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

/// Tokens that a step takes at least beside what a run is told: a call, the beginning of its result, what is to be done next.
const STEP: usize = 100;
/// The place of the tools among the layers.
const TOOLS: u16 = 20;

/// What a run is told.
pub(super) struct Context {
    /// The layers.
    pub(super) assembly: Assembly,
    /// The tools, as the layers list them.
    pub(super) tools: Vec<ToolSpec>,
    /// Tokens that the layers could have.
    pub(super) budget: usize,
    /// Why there can be no run.
    pub(super) refusal: Option<Halt>,
}

impl Runtime {
    /// Tokens that a prompt may have.
    pub(super) fn room(&self) -> usize {
        self.model.limits().context.saturating_sub(self.config.decision_tokens)
    }

    /// Tokens that the layers may have: half of the room is for the run itself.
    pub(super) fn budget(&self) -> usize {
        self.room() / 2
    }

    /// The layers and the tools for a task. Nothing is begun where there is no room for who the model is, one tool, the whole
    /// task and a step: a model that has not read what it may do, or what it is to do, does something else.
    pub(super) fn context(&self, turn: &AgentRun, query: &Query) -> Context {
        let (count, blueprints) = (self.count(), &self.config.blueprints);
        let has_tools = blueprints.iter().any(|one| one.parts().contains(&Part::Tools));
        let shown = if has_tools { self.shown(&query.task) } else { Vec::new() };
        let task = prompt_tokens(&turn.prompt(), &count);
        let rest = self.room().saturating_sub(task + STEP);
        let share = self.budget().min(rest);
        let mut told = assemble::gather(&self.parts(blueprints), query, (share, self.config.patience), &count);
        let persona: usize = told.layers.iter().filter(|l| l.name == "persona").map(|l| l.tokens).sum();

        let places = by_need(&query.task, &shown);
        let mut lists: Vec<usize> = places.iter().map(|at| count(&list(slice::from_ref(&shown[*at])))).collect();
        if lists.is_empty() {
            lists.push(count(&list(&[])));
        }
        let fits = lists.iter().find(|tokens| persona + **tokens <= rest);
        let least = fits.or(lists.iter().min()).copied().unwrap_or_default();
        // a model that cannot be had has no window either: who asks it is told why
        let refuses = fits.is_none() && self.model.limits().context > 0;
        let refusal = refuses.then(|| self.no_room(persona + least, task));
        let budget = share.max(persona + least);

        // lower numbers win, but not over the last tool
        let (before, behind): (Vec<Layer>, Vec<Layer>) = told.layers.into_iter().partition(|l| l.priority < TOOLS);
        told.layers = before;
        let mut assembly = told.within(budget - least);
        let left = budget - assembly.tokens();
        let (tools, left_out) = affordable(shown, &places, |tools| count(&list(tools)) <= left);
        assembly.dropped.extend(left_out.into_iter().map(|tool| format!("tool {}", tool.name)));
        assembly.layers.push(Fixed { name: "tools", priority: TOOLS, text: list(&tools) }.layer(&count));
        assembly.layers.extend(guidance::layers(&tools).into_iter().map(|rule| rule.layer(&count)));
        assembly.layers.extend(behind);
        let mut assembly = assembly.within(budget);
        assembly.failed.extend(refusal.iter().map(|halt| ("the run".to_owned(), halt.text.clone())));
        Context { assembly, tools, budget, refusal }
    }

    /// Why a run is not begun, in one sentence, with what can be done about it.
    fn no_room(&self, told: usize, task: usize) -> Halt {
        let (window, kept) = (self.model.limits().context, self.config.decision_tokens);
        let larger = "take a model with a larger window (--model)";
        let next = match told + STEP < self.room() {
            true => format!("put what is long in the task into a file and name that, or {larger}"),
            false => larger.to_owned(),
        };
        let text = format!(
            "the model's window of {window} tokens is too small for this run: {kept} are kept for what it writes, its \
             instructions take {told}, the task {task} and a step {STEP}; {next}"
        );
        Halt { reason: "context_limit".into(), text }
    }

    /// The providers that belong into a prompt of these assemblies.
    pub(super) fn parts(&self, blueprints: &[Blueprint]) -> Vec<Arc<dyn ContextProvider>> {
        self.providers.iter().filter(|provider| blueprint::takes(blueprints, provider.name())).cloned().collect()
    }

    /// The layers of these providers.
    pub(super) fn layers(&self, providers: &[Arc<dyn ContextProvider>], query: &Query, budget: usize) -> Assembly {
        assemble::assemble(providers, query, (budget, self.config.patience), &self.count())
    }
}

/// The layer that lists tools; without any it says how to end.
fn list(tools: &[ToolSpec]) -> String {
    format!("Tools:\n{}", action::describe(tools))
}

/// The tools that fit together, in their order, and the others. Those have the first choice that `places` has first; where
/// one does not fit a smaller one behind it still may.
fn affordable(
    shown: Vec<ToolSpec>,
    places: &[usize],
    fits: impl Fn(&[ToolSpec]) -> bool,
) -> (Vec<ToolSpec>, Vec<ToolSpec>) {
    if fits(&shown) {
        return (shown, Vec::new());
    }
    let mut kept = BTreeSet::new();
    for at in places {
        kept.insert(*at);
        let together: Vec<ToolSpec> = kept.iter().map(|at| shown[*at].clone()).collect();
        if !fits(&together) {
            kept.remove(at);
        }
    }
    let (kept, others): (Vec<_>, Vec<_>) = shown.into_iter().enumerate().partition(|(at, _)| kept.contains(at));
    let specs = |all: Vec<(usize, ToolSpec)>| all.into_iter().map(|(_, spec)| spec).collect();
    (specs(kept), specs(others))
}
