//! The public types of the recipe: a request with its options, the answer, and the trace of what happened in between.

use super::documents::DocumentedCommand;
use super::spelling::Slip;
use caro_model::{Cancel, ModelError};
use caro_shell::safety::Risk;
use caro_shell::{Dialect, Finding, Target};
use std::path::PathBuf;
use std::time::Duration;

/// The conditions under which a second iteration may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refine {
    /// Never.
    Never,
    /// If a check found something, or the model is unsure.
    #[default]
    Evidence,
    /// On every trigger that the specification lists.
    Always,
}

/// The pairs of the example library that the model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FewShot {
    /// The pairs that ask for nearly the same, if there are any.
    #[default]
    Alike,
    /// This number of pairs, the nearest to the request.
    Nearest(usize),
}

/// A request with its options.
#[derive(Debug, Clone)]
pub struct CommandRequest {
    /// The request, in plain words.
    pub request: String,
    /// The directory that the command is to run in.
    pub cwd: PathBuf,
    /// The machine to write for.
    pub target: Target,
    /// The shell to write for.
    pub dialect: Dialect,
    /// The conditions under which a second iteration may run.
    pub refine: Refine,
    /// The most iterations, 1 to 3.
    pub max_iterations: u32,
    /// The time after which the request fails if there is no command yet.
    pub timeout: Duration,
    /// The time in which to improve on the first answer: no second iteration begins after half of it, and generation
    /// stops at nine tenths. The first iteration always runs, however slow the machine.
    pub budget: Duration,
    /// The number of different commands wanted, 1 or more.
    pub alternatives: usize,
    /// The pairs of the example library that the model is shown as well.
    pub few_shot: FewShot,
    /// The number of commands to choose from where the model is unsure; 1 means that none are sampled.
    pub candidates: u32,
    /// True if commands may be rehearsed to choose among them.
    pub rehearse: bool,
    /// The first way to ask the model; the recipe sets it by whether its model has an adapter.
    pub view: View,
    /// The context before the request, where it is a step of a larger task.
    pub before: History,
    /// Commands that were already run for this request and did not satisfy it; none of them is returned.
    pub rejected: Vec<String>,
    /// Cancels the request.
    pub cancel: Cancel,
}

impl CommandRequest {
    /// Least budget for one step of a larger task, where the user waits for the whole task rather than for the step.
    pub const MIN_STEP_BUDGET: Duration = Duration::from_secs(8);
}

/// A way to ask the model for a command. Each is right on requests where the other is wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// The base model, with worked examples in the prompt.
    #[default]
    Examples,
    /// The model with its adapter, which was trained on such examples, and without them in the prompt.
    Adapted,
}

/// The context that the model is given before the request. It is data, never instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct History {
    /// Facts about the working directory and its files, one per entry.
    pub place: Vec<String>,
    /// The earlier requests, oldest first.
    pub said: Vec<PastExchange>,
    /// True if the request changes the last of these commands, and is no further step of a task.
    #[serde(default)]
    pub revises: bool,
    /// Commands from the user's own documents for nearly the same request, the nearest first.
    #[serde(default)]
    pub known: Vec<DocumentedCommand>,
    /// The beginning of the command's standard input, on which it is rehearsed. Empty if there is standard input that
    /// a rehearsal cannot use.
    #[serde(default)]
    pub input: Option<String>,
}

impl History {
    /// True if the user's own documents contain exactly this command.
    pub(super) fn knows(&self, command: &str) -> bool {
        self.known.iter().any(|known| known.command == command)
    }
}

/// An earlier request with its command and the outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PastExchange {
    /// The request.
    pub request: String,
    /// Its command.
    pub command: String,
    /// The outcome in words: `It printed:` and the output.
    pub outcome: String,
}

/// The milliseconds spent in each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Timing {
    /// Detecting the machine.
    pub context: f64,
    /// Loading the model.
    pub load: f64,
    /// Prefill of the prompts.
    pub prefill: f64,
    /// Decoding.
    pub decode: f64,
    /// Constraining the output to the grammar: a part of `decode`.
    #[serde(default)]
    pub grammar: f64,
    /// The number of tokens generated during `decode`, including those forced by the grammar.
    #[serde(default)]
    pub tokens: usize,
    /// The number of tokens drafted by speculative decoding.
    #[serde(default)]
    pub drafted: usize,
    /// The number of drafted tokens that were accepted.
    #[serde(default)]
    pub accepted: usize,
    /// Inspecting commands, which includes looking up manuals.
    pub manual: f64,
    /// The whole first iteration, its checks included.
    pub iteration1: f64,
    /// The second and later iterations.
    pub iteration2: f64,
    /// Sampling other commands and choosing among them.
    #[serde(default)]
    pub choice: f64,
    /// The whole request.
    pub total: f64,
}

/// The answer, as `--json` prints it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    /// The command; empty if there is none (see `refusal`).
    pub cmd: String,
    /// The probability that the command does what was asked.
    pub confidence: f64,
    /// The programs that the command calls.
    pub commands_used: Vec<String>,
    /// The changes of iteration 2, with reasons; empty after one iteration.
    pub changes: String,
    /// The number of iterations run.
    pub iterations: u32,
    /// The number of commands that this one was chosen from, itself included.
    #[serde(default)]
    pub candidates: u32,
    /// The findings that remain against the command.
    pub findings: Vec<Finding>,
    /// The safety verdict.
    pub risk: Risk,
    /// An explanation of the command in one line.
    pub explanation: String,
    /// The model's id.
    pub model: String,
    /// The name of the model's adapter, if it was used.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub adapter: Option<String>,
    /// The target's name.
    pub target: String,
    /// The shell's name.
    pub shell: String,
    /// The milliseconds spent in each stage.
    pub timing: Timing,
    /// Further commands, if `-n` asked for them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alternatives: Vec<Alternative>,
    /// Commands from the user's own documents for nearly the same request, which the model was shown.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub documents: Vec<DocumentedCommand>,
    /// The typing errors that were corrected in the request.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub slips: Vec<Slip>,
    /// True if the resident process computed the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub resident: bool,
    /// True if the checks found an error in the command and it is more likely wrong than right: it is shown as a
    /// draft rather than as an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub draft: bool,
    /// The reason why there is no command, in one line for the user.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refusal: Option<String>,
}

/// A further command for the same request, examined by the same checks as the first.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Alternative {
    /// The command.
    pub cmd: String,
    /// The probability that the command does what was asked.
    pub confidence: f64,
    /// The findings against the command.
    pub findings: Vec<Finding>,
    /// The safety verdict.
    pub risk: Risk,
}

/// An event on the way to the answer, for `--debug` and `--verbose`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Trace {
    /// One layer of the prompt.
    Layer {
        /// The name of the layer.
        name: String,
        /// Its size in tokens of the model's tokenizer.
        tokens: usize,
        /// Its size in characters.
        chars: usize,
    },
    /// The prompt of an iteration.
    Prompt {
        /// The number of the iteration, from 1.
        iteration: u32,
        /// The prompt as text.
        text: String,
    },
    /// The model's reply.
    Raw {
        /// The number of the iteration, from 1.
        iteration: u32,
        /// The reply as text.
        text: String,
    },
    /// A command was inspected.
    Checked {
        /// The number of the iteration, from 1.
        iteration: u32,
        /// The command.
        cmd: String,
        /// Its confidence.
        confidence: f64,
        /// The findings against it.
        findings: Vec<Finding>,
    },
    /// A decision of the loop (`refine: confidence 0.61 < 0.8`).
    Decision {
        /// The decision in words.
        what: String,
    },
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The request is empty or too long.
    #[error("{0}")]
    BadRequest(String),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The timeout passed before there was any command.
    #[error("no command within {0:?}")]
    Timeout(Duration),
    /// The caller cancelled.
    #[error("interrupted")]
    Cancelled,
}
