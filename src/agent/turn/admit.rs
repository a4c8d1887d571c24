//! Checks decisions against the actions of their step. Under the grammar none is refused; a server need not keep to it.

use super::AgentRun;
use crate::action::{ActionSet, Choice, Decision};
use crate::guard::Guards;

impl AgentRun {
    /// Returns the decision if its actions are admitted.
    ///
    /// # Errors
    /// A message for the model with the names of the actions that are.
    pub(super) fn admissible(&self, decision: Decision, actions: &ActionSet) -> Result<Decision, String> {
        let is_tool = |name: &str| actions.tools.iter().any(|tool| self.shown_name(tool) == name);
        let has_other = actions.answer || !actions.tools.is_empty();
        let refused = match &decision.choice {
            Choice::Answer(_) if !actions.answer => Some("answer"),
            Choice::Cannot(_) if !actions.cannot && has_other => Some("cannot"),
            Choice::Calls(calls) if calls.len() > actions.batch => {
                return Err(format!("{} calls at once, and {} may be made in a step", calls.len(), actions.batch));
            }
            Choice::Calls(calls) => calls.iter().map(|(name, _)| name.as_str()).find(|name| !is_tool(name)),
            _ => None,
        };
        if let Some(name) = refused {
            return Err(self.not_allowed(name, actions));
        }
        if let (Choice::Calls(calls), Some(only)) = (&decision.choice, &actions.path)
            && let Some((name, _)) = calls.iter().find(|(_, args)| args.get("path").is_some_and(|path| path != only))
        {
            return Err(format!("the `path` of `{name}` can only be `{only}` now"));
        }
        Ok(decision)
    }

    /// Returns the text of an answer that is not admitted in this step.
    pub(super) fn early_answer(&self, decision: &Decision, actions: &ActionSet) -> Option<String> {
        match &decision.choice {
            Choice::Answer(text) if !actions.answer => Some(text.clone()),
            _ => None,
        }
    }

    /// Ends the run with an answer that is not admitted, after the model was told so in vain.
    pub(super) fn finish_early(&mut self, answer: String, actions: &ActionSet, guards: &Guards) {
        let mut missing = self.missing();
        if missing.is_empty() {
            missing.push(format!("It answered too early: {}.", self.not_allowed("answer", actions)));
        }
        self.finish_unless_missing(answer, missing, guards);
    }

    /// Returns the message that an action is not allowed, with those that are, and what is still to be done before an
    /// answer.
    fn not_allowed(&self, name: &str, actions: &ActionSet) -> String {
        let names = actions.names().into_iter().map(|name| format!("`{}`", self.shown_name(name)));
        let mut text = format!("`{name}` is not allowed now; allowed are {}", names.collect::<Vec<_>>().join(", "));
        let missing = if name == "answer" { self.missing() } else { Vec::new() };
        if !missing.is_empty() {
            text.push_str(&format!(". Not done yet: {}", missing.join(" ").trim_end_matches('.')));
        }
        text
    }
}
