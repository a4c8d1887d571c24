//! What is asked and what is answered: the public documents of the recipe.

use super::documents::DocumentedCommand;
use super::spelling::Slip;
use caro_model::{Cancel, ModelError};
use caro_shell::safety::Risk;
use caro_shell::{Dialect, Finding, Target};
use std::path::PathBuf;
use std::time::Duration;

/// When a second iteration may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Refine {
    /// Never.
    Never,
    /// When a check found something, or the model is unsure.
    #[default]
    Evidence,
    /// On the specification's whole trigger list.
    Always,
}

/// Which pairs of the example library the model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FewShot {
    /// Those that ask for nearly the same, if there are any.
    #[default]
    Alike,
    /// So many, those nearest to the request.
    Nearest(usize),
}

/// A request and how to treat it.
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
    /// When a second iteration may run.
    pub refine: Refine,
    /// The most iterations, 1 to 3.
    pub max_iterations: u32,
    /// When there is no answer any more.
    pub timeout: Duration,
    /// How long a better answer than the first is looked for: no second iteration begins after half of this, and what
    /// is not written at nine tenths is not waited for. A slow machine still gets its first iteration.
    pub budget: Duration,
    /// How many different commands are wanted, 1 or more.
    pub alternatives: usize,
    /// The pairs of the example library that the model is shown as well.
    pub few_shot: FewShot,
    /// How many commands to choose from where the model is unsure; 1 for none but its first.
    pub candidates: u32,
    /// May commands be rehearsed to choose among them?
    pub rehearse: bool,
    /// How the model is asked first; the recipe sets it by what its model has.
    pub view: View,
    /// What was said before the request, where it is a part of something larger.
    pub before: History,
    /// Commands that were run for it and did not do it: none of them is the answer.
    pub rejected: Vec<String>,
    /// Ends it early.
    pub cancel: Cancel,
}

impl CommandRequest {
    /// The least budget of a part of a larger task: nobody waits for the single one.
    pub const IN_A_TASK: Duration = Duration::from_secs(8);
}

/// How the model is asked for a command. Both are right on different requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// As it is, with worked examples.
    #[default]
    Examples,
    /// With its adapter, which was trained on such examples, and without them.
    Adapted,
}

/// What the model is told before a request that stands in a row of them. Data, never instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct History {
    /// What is known about the place, a fact an entry.
    pub place: Vec<String>,
    /// The requests before this one, oldest first.
    pub said: Vec<PastExchange>,
    /// What the person's own documents have for nearly the same, the nearest first.
    #[serde(default)]
    pub known: Vec<DocumentedCommand>,
    /// The beginning of what the command is to read on standard input: it is tried out on that. Empty if there is something that
    /// is not to be tried out.
    #[serde(default)]
    pub input: Option<String>,
}

impl History {
    /// True if the person's own documents have this very command.
    pub(super) fn knows(&self, command: &str) -> bool {
        self.known.iter().any(|known| known.command == command)
    }
}

/// One request that was answered before.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PastExchange {
    /// The request.
    pub request: String,
    /// Its command.
    pub command: String,
    /// What came of it, in words: `It printed:` and the output.
    pub outcome: String,
}

/// Milliseconds spent, by stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Timing {
    /// Detecting the machine.
    pub context: f64,
    /// Loading the model.
    pub load: f64,
    /// Computing prompts.
    pub prefill: f64,
    /// Generating.
    pub decode: f64,
    /// Holding what is generated to its grammar: a part of `decode`.
    #[serde(default)]
    pub grammar: f64,
    /// Tokens generated in that time, forced ones included.
    #[serde(default)]
    pub tokens: usize,
    /// How many tokens were guessed ahead, to compute several at once, and how many of them rightly.
    #[serde(default)]
    pub drafted: usize,
    /// See `drafted`.
    #[serde(default)]
    pub accepted: usize,
    /// Looking up manuals.
    pub manual: f64,
    /// The whole first iteration, its checks included.
    pub iteration1: f64,
    /// The whole second iteration and later ones.
    pub iteration2: f64,
    /// Sampling other commands and choosing among them.
    #[serde(default)]
    pub choice: f64,
    /// Everything.
    pub total: f64,
}

/// The answer: what `--json` prints.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    /// The command; empty if there is none (see `refusal`).
    pub cmd: String,
    /// Probability that the command does what was asked.
    pub confidence: f64,
    /// The programs in it.
    pub commands_used: Vec<String>,
    /// What iteration 2 changed and why; empty after one iteration.
    pub changes: String,
    /// Iterations run.
    pub iterations: u32,
    /// Commands it was chosen from, itself included.
    #[serde(default)]
    pub candidates: u32,
    /// What the checks still have against it.
    pub findings: Vec<Finding>,
    /// The safety verdict.
    pub risk: Risk,
    /// One line on what the command does.
    pub explanation: String,
    /// The model's id.
    pub model: String,
    /// The name of the model's adapter, if it took part.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub adapter: Option<String>,
    /// The target's name.
    pub target: String,
    /// The shell's name.
    pub shell: String,
    /// Milliseconds, by stage.
    pub timing: Timing,
    /// Further commands, with `-n`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alternatives: Vec<Alternative>,
    /// What the person's own documents have for nearly the same request; the model was shown it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub documents: Vec<DocumentedCommand>,
    /// Words of the request that were read as others.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub slips: Vec<Slip>,
    /// True if the resident process has computed it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub resident: bool,
    /// True where the checks know an error in the command and it is more likely wrong than right: it is shown as a draft and
    /// not as an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub draft: bool,
    /// Why there is no command, in one line for the person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refusal: Option<String>,
}

/// A further command for the same request, looked at by the same checks as the first.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Alternative {
    /// The command.
    pub cmd: String,
    /// Probability that the command does what was asked.
    pub confidence: f64,
    /// What the checks have against it.
    pub findings: Vec<Finding>,
    /// The safety verdict.
    pub risk: Risk,
}

/// What happened on the way, for `--debug` and `--verbose`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Trace {
    /// One layer of the prompt.
    Layer {
        /// Which provider it is from.
        name: String,
        /// Its size by the model's tokenizer.
        tokens: usize,
        /// Its size in characters.
        chars: usize,
    },
    /// The prompt of an iteration.
    Prompt {
        /// Which iteration.
        iteration: u32,
        /// The prompt, as text.
        text: String,
    },
    /// What the model wrote.
    Raw {
        /// Which iteration.
        iteration: u32,
        /// Its words.
        text: String,
    },
    /// What the checks said.
    Checked {
        /// Which iteration.
        iteration: u32,
        /// The command.
        cmd: String,
        /// Its confidence.
        confidence: f64,
        /// What the checks have against it.
        findings: Vec<Finding>,
    },
    /// A decision of the loop (`refine: confidence 0.61 < 0.8`).
    Decision {
        /// In words.
        what: String,
    },
}

/// Why there is no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The request is empty or absurdly long.
    #[error("{0}")]
    BadRequest(String),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The time was up before there was any command.
    #[error("no command within {0:?}")]
    Timeout(Duration),
    /// The caller cancelled.
    #[error("interrupted")]
    Cancelled,
}
