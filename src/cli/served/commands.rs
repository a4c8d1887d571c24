//! Offers requests, checks, explanations and manuals to the servers, with the code and JSON documents of the verbs.

use crate::answer::ask::{Place, ask, check, check_target, failure, milliseconds};
use crate::answer::{explained, look, present};
use crate::flags::AnswerArgs;
use crate::setup::settings::{Settings, one_of};
use crate::setup::wire::{self, Wired};
use crate::term::given;
use crate::{Exit, Failure};
use caro_command::CommandError;
use caro_host::ExecutionContext;
use caro_manual::{Manual, Setup, relevant};
use caro_model::Cancel;
use caro_serve::http::commands::{CheckOrder, CommandOrder, ExplainOrder, SearchOrder, Stages};
use caro_serve::http::{Commands, Problem};
use caro_shell::{Dialect, Target};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Options listed if the order gives no limit.
const DEFAULT_HITS: usize = 10;
/// Most options listed.
const MAX_HITS: usize = 100;
/// Most bytes of a query to the manuals.
const MAX_QUERY: usize = 1000;

/// Provides the recipe when it is needed.
pub trait Source: Send + Sync {
    /// Returns the recipe, and where its model is.
    fn wired(&self) -> BoxFuture<'_, Result<Arc<Wired>, Problem>>;
}

impl Source for Arc<Wired> {
    fn wired(&self) -> BoxFuture<'_, Result<Arc<Wired>, Problem>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

/// The recipe with its settings. Orders that need no model do not wait for one.
pub struct Recipes {
    context: Arc<ExecutionContext>,
    manual: Arc<Manual>,
    settings: Settings,
    source: Box<dyn Source>,
}

impl Recipes {
    /// Creates it with an open recipe.
    pub fn new(wired: Wired, settings: Settings) -> Self {
        let recipe = &wired.recipe;
        let none = || Arc::new(Manual::open(Setup::of_process(None, None)));
        let (context, manual) = (recipe.context.clone(), recipe.manual.clone().unwrap_or_else(none));
        Self::with(context, manual, settings, Box::new(Arc::new(wired)))
    }

    /// Creates it with a recipe that is still to be opened.
    pub fn with(
        context: Arc<ExecutionContext>,
        manual: Arc<Manual>,
        settings: Settings,
        source: Box<dyn Source>,
    ) -> Self {
        Self { context, manual, settings, source }
    }

    /// Returns the settings of an order, and the place that its command is for.
    fn place(
        &self,
        target: Option<&str>,
        shell: Option<&str>,
        cwd: Option<PathBuf>,
    ) -> Result<(Settings, Place), Problem> {
        let must_be =
            |name: &'static str| move |names: String| Problem::unprocessable(format!("`{name}` must be {names}"));
        let mut settings = self.settings.clone();
        if let Some(name) = target {
            settings.target = Some(one_of(&Target::ALL, name).map_err(must_be("target"))?);
        }
        if let Some(name) = shell {
            settings.shell = Some(one_of(&Dialect::ALL, name).map_err(must_be("shell"))?);
        }
        check_target(&settings).map_err(problem)?;
        if let Some(cwd) = &cwd
            && !(cwd.is_absolute() && cwd.is_dir())
        {
            return Err(Problem::unprocessable("`cwd` must be a folder that is there, as an absolute path"));
        }
        let place = Place::of(&self.context, &settings, cwd);
        Ok((settings, place))
    }

    async fn answer(&self, order: CommandOrder, cancel: Cancel, mut stages: Stages) -> Result<Value, Problem> {
        let started = Instant::now();
        let CommandOrder { request, cwd, target, shell, .. } = order;
        check(&request).map_err(Problem::unprocessable)?;
        let (settings, place) = self.place(target.as_deref(), shell.as_deref(), cwd)?;
        let wired = self.source.wired().await?;
        let args = AnswerArgs { alternatives: 1, ..AnswerArgs::default() };
        let ask = ask(request, &place, &settings, &args, &cancel);
        let mut trace = |event| {
            // a stage that cannot be serialized is not reported
            if let Ok(stage) = serde_json::to_value(event) {
                stages(stage);
            }
        };
        let mut answer = wired.recipe.answer(&ask, &mut trace).await.map_err(|error| match error {
            CommandError::Timeout(limit) => Problem::timeout(limit.as_secs_f64()),
            CommandError::Cancelled => Problem::stopped(),
            error @ CommandError::BadRequest(_) => problem(failure(error, &settings)),
            error @ CommandError::Model(_) => {
                let why = failure(error, &settings);
                Problem::internal(why.message).detail(why.hint.unwrap_or_default())
            }
        })?;
        answer.timing.total = milliseconds(started.elapsed());
        answer.resident = wired.resident.answers();
        present::document(&answer).map_err(Problem::internal)
    }

    async fn check_order(&self, order: CheckOrder) -> Result<Value, Problem> {
        let CheckOrder { command, cwd, target, shell, rehearse } = order;
        given::check_command(&command, "").map_err(problem)?;
        let (_, place) = self.place(target.as_deref(), shell.as_deref(), cwd)?;
        let (context, manual) = (self.context.clone(), self.manual.clone());
        let (report, _) =
            look::look(command, &place, context, manual, rehearse, look::LISTED).await.map_err(problem)?;
        serde_json::to_value(report).map_err(Problem::internal)
    }

    async fn explain_order(&self, ExplainOrder { command, shell }: ExplainOrder) -> Result<Value, Problem> {
        given::check_command(&command, "").map_err(problem)?;
        let (settings, _) = self.place(None, shell.as_deref(), None)?;
        let context = &self.context;
        let dialect = settings.shell.unwrap_or(context.shell.dialect);
        let explanation = explained::explain(&command, dialect, context, &self.manual).await;
        serde_json::to_value(explanation).map_err(Problem::internal)
    }

    async fn search_order(&self, SearchOrder { query, program, limit }: SearchOrder) -> Result<Value, Problem> {
        let limit = limit.unwrap_or(DEFAULT_HITS);
        if !(1..=MAX_HITS).contains(&limit) {
            return Err(Problem::unprocessable(format!("`limit` must be a number from 1 to {MAX_HITS}")));
        }
        if query.trim().is_empty() || query.len() > MAX_QUERY {
            let why = format!("`query` must be a few words, at most {MAX_QUERY} bytes");
            return Err(Problem::unprocessable(why));
        }
        let Some(program) = program else {
            let hits = self.manual.search(&query, limit).map_err(|error| problem(error.into()))?;
            let hint = hits.is_empty().then_some("name a `program`: its manual is read then");
            return Ok(hits_document(json!(hits), hint));
        };
        let (name, subcommand) = match program.trim().split_once(char::is_whitespace) {
            Some((name, subcommand)) => (name, Some(subcommand.trim())),
            None => (program.trim(), None),
        };
        let found = wire::program(name, &self.context).map_err(problem)?;
        let entry = match subcommand {
            Some(subcommand) => self.manual.get_or_fetch_sub(&found, subcommand).await,
            None => self.manual.get_or_fetch(&found).await,
        };
        let entry = entry.map_err(|error| problem(error.into()))?;
        if let Some(why) = &entry.problem {
            return Err(Problem::not_found(format!("there is no manual of `{program}`: it {why}"))
                .detail("name another program, or leave `program` out"));
        }
        let words: Vec<&str> = query.split_whitespace().collect();
        let hits: Vec<Value> = relevant(&entry, &words, &[], limit)
            .iter()
            .map(|option| json!({"command": entry.command, "option": option.usage(), "text": option.text}))
            .collect();
        let hint = hits.is_empty().then_some("no option of it shares a word with the query: try other words");
        Ok(hits_document(hits.into(), hint))
    }
}

/// Returns the document of the hits, with the hint for an empty list.
fn hits_document(hits: Value, hint: Option<&str>) -> Value {
    let mut document = json!({ "hits": hits });
    if let Some(hint) = hint {
        document["hint"] = hint.into();
    }
    document
}

/// Converts a failure of a verb for the server.
pub fn problem(failure: Failure) -> Problem {
    let Failure { exit, message, hint } = failure;
    let problem = if exit == Exit::Usage { Problem::unprocessable(message) } else { Problem::internal(message) };
    problem.detail(hint.unwrap_or_default())
}

impl Commands for Recipes {
    fn command(&self, order: CommandOrder, cancel: Cancel, stages: Stages) -> BoxFuture<'_, Result<Value, Problem>> {
        Box::pin(self.answer(order, cancel, stages))
    }

    fn check(&self, order: CheckOrder) -> BoxFuture<'_, Result<Value, Problem>> {
        Box::pin(self.check_order(order))
    }

    fn explain(&self, order: ExplainOrder) -> BoxFuture<'_, Result<Value, Problem>> {
        Box::pin(self.explain_order(order))
    }

    fn search(&self, order: SearchOrder) -> BoxFuture<'_, Result<Value, Problem>> {
        Box::pin(self.search_order(order))
    }
}
