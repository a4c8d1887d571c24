//! The verbs for requests, checks and explanations, for the server: the same code, the same documents.

use crate::cli::request::{Place, ask, check, failure, milliseconds, paired};
use crate::cli::settings::{Settings, one_of};
use crate::cli::wire::Wired;
use crate::cli::{Exit, Failure, args::AnswerArgs, check as checked, explain, given, present};
use crate::command::CommandError;
use crate::manual::{Manual, Setup};
use crate::model::Cancel;
use crate::serve::http::command::{CheckOrder, CommandOrder, ExplainOrder, Stages};
use crate::serve::http::{Commands, Problem};
use crate::shell::{Dialect, Target};
use futures::future::BoxFuture;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The recipe with the settings that it is asked under.
pub(super) struct Recipes {
    wired: Wired,
    settings: Settings,
}

impl Recipes {
    pub(super) fn new(wired: Wired, settings: Settings) -> Self {
        Self { wired, settings }
    }

    fn manual(&self) -> Arc<Manual> {
        let recipe = &self.wired.recipe;
        recipe.manual.clone().unwrap_or_else(|| Arc::new(Manual::open(Setup::of_process(None, None))))
    }

    /// The settings of a request, and where its command is to run.
    fn place(
        &self,
        target: Option<&str>,
        shell: Option<&str>,
        cwd: Option<PathBuf>,
    ) -> Result<(Settings, Place), Problem> {
        let wrong = |name: &'static str| move |names: String| Problem::unfit(format!("`{name}` must be {names}"));
        let mut settings = self.settings.clone();
        if let Some(name) = target {
            settings.target = Some(one_of(&Target::ALL, name).map_err(wrong("target"))?);
        }
        if let Some(name) = shell {
            settings.shell = Some(one_of(&Dialect::ALL, name).map_err(wrong("shell"))?);
        }
        paired(&settings).map_err(problem)?;
        if let Some(cwd) = &cwd
            && !(cwd.is_absolute() && cwd.is_dir())
        {
            return Err(Problem::unfit("`cwd` must be a folder that is there, as an absolute path"));
        }
        let place = Place::of(&self.wired.recipe.context, &settings, cwd);
        Ok((settings, place))
    }

    async fn answer(&self, order: CommandOrder, cancel: Cancel, mut stages: Stages) -> Result<Value, Problem> {
        let started = Instant::now();
        let CommandOrder { request, cwd, target, shell, .. } = order;
        check(&request).map_err(Problem::unfit)?;
        let (settings, place) = self.place(target.as_deref(), shell.as_deref(), cwd)?;
        let args = AnswerArgs { alternatives: 1, ..AnswerArgs::default() };
        let ask = ask(request, &place, &settings, &args, &cancel);
        let mut trace = |event| {
            // a stage that is no JSON is told by none
            if let Ok(stage) = serde_json::to_value(event) {
                stages(stage);
            }
        };
        let mut answer = self.wired.recipe.answer(&ask, &mut trace).await.map_err(|error| match error {
            CommandError::Timeout(limit) => Problem::timeout(limit.as_secs_f64()),
            CommandError::Cancelled => Problem::stopped(),
            error @ CommandError::BadRequest(_) => problem(failure(error, &settings)),
            error @ CommandError::Model(_) => {
                let why = failure(error, &settings);
                Problem::internal(why.message).detail(why.hint.unwrap_or_default())
            }
        })?;
        answer.timing.total = milliseconds(started.elapsed());
        answer.resident = self.wired.resident.answers();
        present::document(&answer).map_err(Problem::internal)
    }

    async fn checked(&self, order: CheckOrder) -> Result<Value, Problem> {
        let CheckOrder { command, cwd, target, shell, rehearse } = order;
        given::sound(&command, "").map_err(problem)?;
        let (_, place) = self.place(target.as_deref(), shell.as_deref(), cwd)?;
        let context = self.wired.recipe.context.clone();
        let (report, _) =
            checked::look(command, &place, context, self.manual(), rehearse, checked::LISTED).await.map_err(problem)?;
        serde_json::to_value(report).map_err(Problem::internal)
    }

    async fn explained(&self, ExplainOrder { command, shell }: ExplainOrder) -> Result<Value, Problem> {
        given::sound(&command, "").map_err(problem)?;
        let (settings, _) = self.place(None, shell.as_deref(), None)?;
        let context = &self.wired.recipe.context;
        let dialect = settings.shell.unwrap_or(context.shell.dialect);
        let explanation = explain::explain(&command, dialect, context, &self.manual()).await;
        serde_json::to_value(explanation).map_err(Problem::internal)
    }
}

/// A failure of the terminal's verbs as the server tells it.
fn problem(failure: Failure) -> Problem {
    let Failure { exit, message, hint } = failure;
    let problem = if exit == Exit::Usage { Problem::unfit(message) } else { Problem::internal(message) };
    problem.detail(hint.unwrap_or_default())
}

impl Commands for Recipes {
    fn command(&self, order: CommandOrder, cancel: Cancel, stages: Stages) -> BoxFuture<'_, Result<Value, Problem>> {
        Box::pin(self.answer(order, cancel, stages))
    }

    fn check(&self, order: CheckOrder) -> BoxFuture<'_, Result<Value, Problem>> {
        Box::pin(self.checked(order))
    }

    fn explain(&self, order: ExplainOrder) -> BoxFuture<'_, Result<Value, Problem>> {
        Box::pin(self.explained(order))
    }
}
