//! Forges a skill while showing the steps, for `caro forge` and for a run that lacks a skill. Also parses the examples.

use super::view::{self, Shows};
use super::wire;
use crate::setup::stores;
use crate::{Cx, Exit, Failure};
use caro_agent::event::{Draft, Emitter, Kind};
use caro_agent::forge::examples::{Case, ExampleError, Order, Way, order};
use caro_agent::forge::report::{Report, Verdict};
use caro_agent::forge::{Forge, ForgeError, Wanted};
use caro_agent::plan::Plan;
use caro_agent::store::is_alive;
use caro_agent::turn::Task;
use caro_base::{files, id};
use caro_exec as exec;
use caro_model::Model;
use caro_policy::Redactor;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Most bytes of a sample: it is an argument, and part of the prompt.
const MAX_SAMPLE: u64 = 64 << 10;

/// Examples, as they are typed.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Examples {
    /// An example for a skill to be made, 'INPUT => OUTPUT'; \n is the end of a line. May be given several times
    #[arg(long, value_name = "EXAMPLE")]
    example: Vec<String>,
    /// A file that is an input, with --expect for what comes out of it; may be given several times
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "expect")]
    sample: Vec<PathBuf>,
    /// A file with what has to come out of the --sample before it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "sample")]
    expect: Vec<PathBuf>,
}

impl Examples {
    /// True if there are examples besides those in the request.
    pub fn is_given(&self) -> bool {
        !self.example.is_empty() || !self.sample.is_empty()
    }

    /// Returns the request with its tests.
    ///
    /// # Errors
    /// If there are no tests, or a sample cannot be read.
    pub fn order(&self, words: &str, cx: &Cx) -> Result<Order, Failure> {
        if self.sample.len() != self.expect.len() {
            return Err(Failure::usage(format!("{} --sample and {} --expect", self.sample.len(), self.expect.len()))
                .hint("each sample needs a file with what comes out of it"));
        }
        let root = cx.folder()?;
        let read = |file: &PathBuf| {
            let failed = |e: std::io::Error| Failure::usage(format!("could not read {}: {e}", file.display()));
            files::read_text(&root.join(file), MAX_SAMPLE)
                .map_err(|e| failed(e).hint("a sample is a text of at most 64 KiB; take a part of it that shows all"))
        };
        let mut samples = Vec::new();
        for (sample, expect) in self.sample.iter().zip(&self.expect) {
            samples.push(Case::new(read(sample)?, read(expect)?, Way::File));
        }
        Ok(order(words, &self.example, samples)?)
    }
}

impl From<ExampleError> for Failure {
    fn from(error: ExampleError) -> Self {
        let hint = error.hint();
        Self::usage(error).hint(hint)
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Self {
        let hint = error.hint();
        match error {
            ForgeError::Model(error) => error.into(),
            ForgeError::Stopped => Self::new(Exit::Interrupted, error).hint(hint),
            ForgeError::Exec(_) | ForgeError::Rehearsal(_) | ForgeError::Disk(_) => Self::internal(error).hint(hint),
            _ => Self::usage(error).hint(hint),
        }
    }
}

/// Forges a skill as a run of its own, and shows its steps.
///
/// # Errors
/// If the run cannot begin, or is stopped.
pub fn forge_skill(
    wanted: &Wanted,
    model: Arc<dyn Model>,
    shows: Shows,
    cx: &Cx,
) -> Result<(Report, Vec<Case>), Failure> {
    let place = stores::own_skills(cx).ok_or_else(|| {
        Failure::usage("this user has no home folder for a skill")
            .hint("set CARO_CONFIG_FILE to a file in a folder that can be written")
    })?;
    let store = Arc::new(wire::store(cx)?);
    let text = format!("forge: {}", wanted.order.request);
    let task = Task {
        run: id::fresh("run"),
        session: id::fresh("session"),
        agent: "forge".into(),
        plan: Plan::heuristic(&text),
        max_steps: caro_agent::forge::MAX_SCRIPTS,
        batch: 1,
        place: String::new(),
        text,
    };
    let redactor = Redactor::default();
    store.begin(&task, &redactor.text(&task.text), "", &cx.folder()?, is_alive).map_err(wire::failure)?;
    view::show_during(cx, shows, false, |signals| {
        let emitter = Arc::new(Emitter::new(task.run.clone(), 1, redactor, vec![store.clone(), signals.sink()]));
        emitter.emit(
            Draft::new(Kind::AgentStart)
                .input(task.text.clone())
                .metadata(json!({"agent": task.agent, "session": task.session, "model": model.id()})),
        );
        let forge = Forge {
            model,
            emitter: emitter.clone(),
            which: Arc::new(|name| exec::find(name)),
            cancel: cx.interrupt().cancel().clone(),
            place,
        };
        let result = cx.block_on(forge.forge(wanted))?;
        let status = match &result {
            Ok((report, _)) if report.verdict == Verdict::Promoted => "completed",
            _ => "failed",
        };
        let response = result.as_ref().map(|(report, _)| report.line()).unwrap_or_default();
        emitter
            .emit(Draft::new(Kind::AgentEnd).output(json!({"response": response})).metadata(json!({"status": status})));
        Ok(result?)
    })
}
