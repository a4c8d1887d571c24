//! A skill that is forged while it is shown, for the verb and for a run that lacks one: its examples as they are typed, and the run.

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

/// The largest sample that is read, bytes: it is an argument, and is shown to the model.
const LARGEST: u64 = 64 << 10;

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
    /// True if there are any beside those in the words.
    pub fn is_given(&self) -> bool {
        !self.example.is_empty() || !self.sample.is_empty()
    }

    /// The request and its tests.
    ///
    /// # Errors
    /// If there is none, or a sample cannot be read.
    pub fn order(&self, words: &str, cx: &Cx) -> Result<Order, Failure> {
        if self.sample.len() != self.expect.len() {
            return Err(Failure::usage(format!("{} --sample and {} --expect", self.sample.len(), self.expect.len()))
                .hint("each sample needs a file with what comes out of it"));
        }
        let root = cx.folder()?;
        let read = |file: &PathBuf| {
            let failed = |e: std::io::Error| Failure::usage(format!("could not read {}: {e}", file.display()));
            files::read_text(&root.join(file), LARGEST)
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
            ForgeError::Exec(_) | ForgeError::Disk(_) => Self::internal(error).hint(hint),
            _ => Self::usage(error).hint(hint),
        }
    }
}

/// Forges while it is shown, as a run of its own.
///
/// # Errors
/// If it cannot be begun, or is stopped.
pub fn made(wanted: &Wanted, model: Arc<dyn Model>, shows: Shows, cx: &Cx) -> Result<(Report, Vec<Case>), Failure> {
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
        max_steps: caro_agent::forge::MOST,
        batch: 1,
        place: String::new(),
        text,
    };
    let redactor = Redactor::default();
    store.begin(&task, &redactor.text(&task.text), "", &cx.folder()?, is_alive).map_err(wire::failure)?;
    view::while_shown(cx, shows, false, |signals| {
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
        let forged = cx.runtime()?.block_on(forge.forge(wanted));
        let status = match &forged {
            Ok((report, _)) if report.verdict == Verdict::Promoted => "completed",
            _ => "failed",
        };
        let response = forged.as_ref().map(|(report, _)| report.line()).unwrap_or_default();
        emitter
            .emit(Draft::new(Kind::AgentEnd).output(json!({"response": response})).metadata(json!({"status": status})));
        Ok(forged?)
    })
}
