//! Shards: a question about a tree of files, or about a long text, that is read in at most eight parts. `caro agent --shards`.
//!
//! ```text
//! walk -> outlines -> plan -> context (once) -> shard, shard ... -> synthesis
//! ```
//!
//! - [`machine`]: the order of it, pure. [`mod@plan`]: which files stand together. [`outline`]: a file as a few lines.
//! - [`prompt`]: the beginning that all requests share, and what each adds to it.
//!
//! The beginning is computed once: each shard extends it, and an engine keeps the state of the longest beginning it has seen.
//! A shard can only name files that it was shown, the synthesis only files that shards have named.

pub mod machine;
pub mod outline;
pub mod plan;
pub mod prompt;

use super::event::{Actor, Draft, Kind, Sink};
use super::guard::{Budget, Guard};
use super::harness::{Harness, HarnessError};
use super::plan::Plan;
use super::runtime::{Consulted, Runtime};
use super::state::Limits;
use super::turn::{AgentRun, Task, prompt_tokens};
use caro_base::id;
use caro_documents::LibraryError;
use caro_documents::chunk::{self, chunks};
use caro_documents::format::Programs;
use caro_documents::walk::{self, Document, Found};
use caro_inference::{Executor, Next, StateMachine, drive};
use caro_model::{Cancel, Request, Sampling};
use caro_policy::{cut_orders, normalise, screen};
use machine::{End, Finding, Sharding, Step, each_once};
use outline::Outline;
use serde::Serialize;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most bytes that are read, all files together.
const MOST_BYTES: usize = 64 << 20;
/// The most tokens of a shard's own text: what a small model computes in a while.
const SHARD_TOKENS: usize = 1500;
/// The most tokens of a finding, and of the answer.
const SAID: (usize, usize) = (400, 900);
/// Tokens that are left for a template's own marks.
const FRAME: usize = 64;
/// Longer than any call, of which there is none.
const CALL: Duration = Duration::from_secs(30);

/// An order for shards.
pub struct Order {
    /// The question.
    pub question: String,
    /// The session.
    pub session: String,
    /// The folder or file that is read.
    pub place: PathBuf,
    /// Its limits.
    pub limits: Limits,
    /// Where events go beside the store.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Stops it.
    pub cancel: Cancel,
}

/// A shard, for a reader.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// How many files, or passages of a file, it has.
    pub items: usize,
    /// The finding; nothing where the model failed.
    pub finding: Option<Finding>,
    /// Why there is none.
    pub error: Option<String>,
}

/// The result, for a reader.
#[derive(Debug, Clone, Serialize)]
pub struct Sharded {
    /// The answer; empty where there is none.
    pub answer: String,
    /// The files that bear it out.
    pub files: Vec<String>,
    /// The shards.
    pub shards: Vec<Part>,
    /// Files that were not read, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Sentences that named files which there are not, and were cut out.
    pub cut: usize,
    /// Why there is no answer.
    pub error: Option<String>,
    /// Why the answer is the parts' own words, where they could not be put together.
    pub apart: Option<String>,
    /// The run.
    pub run_id: String,
    /// The session.
    pub session_id: String,
    /// Requests to the model.
    pub requests: u64,
    /// Tokens of prompts and completions.
    pub tokens: u64,
}

/// A file, or a passage of one, as it is shown.
type Item = (String, Outline);

/// All that was read.
#[derive(Default)]
struct Material {
    items: Vec<Item>,
    bytes: Vec<usize>,
    left_out: Vec<(String, String)>,
}

impl StateMachine for Sharding {
    type Need = Step;
    type End = End;

    fn next_step(&mut self) -> Next<Step, End> {
        match self.next() {
            Ok(step) => Next::Need(step),
            Err(end) => Next::End(end),
        }
    }
}

/// The driver of one order.
struct Driver<'a> {
    runtime: &'a Runtime,
    turn: AgentRun,
    question: &'a str,
    /// Each shard's name and items.
    shards: Vec<(String, &'a [Item])>,
    cut: usize,
}

/// Reads a place in shards and answers. Needs a Tokio runtime.
///
/// # Errors
/// If there is nothing to be read, or it is stopped. A model that fails is no error: the result says why.
pub async fn run(harness: &Harness, order: Order) -> Result<Sharded, HarnessError> {
    let Order { question, session, place, limits, sinks, cancel } = order;
    let mut material = read(&place, &outline::words(&question), &cancel)?;
    let plan = plan::plan(&material.bytes);
    let task = Task {
        run: id::fresh("run"),
        session: session.clone(),
        agent: "shards".into(),
        plan: Plan::heuristic(&question),
        max_steps: u32::try_from(plan.len() + 1).unwrap_or(u32::MAX),
        batch: 1,
        place: String::new(),
        text: question.clone(),
    };
    let run_id = task.run.clone();
    let runtime = harness.standing(&task, CALL, sinks, None, cancel.clone())?;
    let emitter = &runtime.emitter;
    emitter.emit(Draft::new(Kind::AgentStart).metadata(json!({
        "agent": task.agent, "session": session, "model": runtime.model.id(), "max_steps": task.max_steps
    })));
    emitter.emit(Draft::new(Kind::UserMessage).by(Actor::User).input(question.clone()));
    let names: Vec<String> = plan
        .iter()
        .enumerate()
        .map(|(at, shard)| {
            let items = &mut material.items[shard.items.clone()];
            let name = format!("part {} ({})", at + 1, common(items));
            // a small model names what it reads first
            items.sort_by_key(|(_, outline)| Reverse(outline.evidence()));
            name
        })
        .collect();
    let items = plan.iter().map(|shard| &material.items[shard.items.clone()]);
    let shards: Vec<(String, &[Item])> = names.into_iter().zip(items).collect();
    let count = |text: &str| runtime.model.count(text);
    emitter.emit(Draft::new(Kind::ContextAssembly).metadata(json!({
        "layers": [
            {"name": "persona", "priority": 0, "tokens": count(prompt::PERSONA)},
            {"name": "rules", "priority": 10, "tokens": count(prompt::RULES)},
            {"name": "question", "priority": 20, "tokens": count(&question)}
        ],
        "tokens": prompt_tokens(&prompt::beginning(&question), &count),
        "shards": shards.iter().map(|(name, items)| json!({"name": name, "items": items.len()})).collect::<Vec<_>>(),
        "left_out": material.left_out.len()
    })));
    let mut turn = AgentRun::new(task);
    turn.limit(limits);
    let started = Instant::now();
    let mut driver = Driver { runtime: &runtime, turn, question: &question, shards, cut: 0 };
    let mut sharding = Sharding::new(driver.shards.len());
    let end = drive(&mut sharding, &mut driver).await?;
    let stopped = cancel.is_cancelled();
    let (answer, error, apart) = match end {
        End::Answered(answer) => (answer, None, None),
        End::Apart(found, why) => (found, None, Some(why)),
        End::Failed(why) => (Finding::default(), Some(why), None),
    };
    let status = match &error {
        _ if stopped => "stopped",
        Some(_) => "failed",
        None => "completed",
    };
    emitter.emit(
        Draft::new(Kind::FinalAnswer)
            .by(Actor::Model)
            .output(answer.answer.clone())
            .metadata(json!({"status": status, "files": answer.files})),
    );
    let end = Draft::new(Kind::AgentEnd).took(started.elapsed()).output(json!({"response": answer.answer}));
    emitter.emit(end.metadata(json!({"status": status})));
    if stopped {
        return Err(HarnessError::Stopped(run_id));
    }
    let parts = driver.shards.iter().enumerate().map(|(at, (name, items))| {
        let found = sharding.findings().get(at);
        Part {
            name: name.clone(),
            items: items.len(),
            finding: found.and_then(|found| found.clone().ok()),
            error: found.and_then(|found| found.clone().err()),
        }
    });
    Ok(Sharded {
        shards: parts.collect(),
        answer: answer.answer,
        files: answer.files,
        left_out: material.left_out,
        cut: driver.cut,
        error,
        apart,
        run_id,
        session_id: session,
        requests: driver.turn.state().requests,
        tokens: driver.turn.state().tokens,
    })
}

impl Executor<Sharding> for Driver<'_> {
    type Error = HarnessError;

    fn between(&mut self, sharding: &mut Sharding) -> ControlFlow<End> {
        if self.runtime.cancel.is_cancelled() {
            return ControlFlow::Break(End::Failed("stopped".into()));
        }
        if let Some(halt) = Budget::default().spent(self.turn.state()) {
            sharding.stop(halt.text);
        }
        ControlFlow::Continue(())
    }

    async fn execute(&mut self, sharding: &mut Sharding, step: Step) -> Result<(), HarnessError> {
        match step {
            Step::Shard(at) => {
                let found = self.shard(at).await;
                sharding.found(found);
            }
            Step::Synthesis => {
                let answer = self.synthesis(sharding.findings()).await;
                sharding.put_together(answer);
            }
        }
        Ok(())
    }
}

impl Driver<'_> {
    /// Asks about one shard.
    async fn shard(&mut self, at: usize) -> Result<Finding, String> {
        let (name, items) = self.shards[at].clone();
        let count = |text: &str| self.runtime.model.count(text);
        let shared = prompt_tokens(&prompt::beginning(self.question), &count);
        let room = self.runtime.model.limits().context.saturating_sub(shared + SAID.0 + FRAME + count(&name));
        let text = outline::fitted(items, room.min(SHARD_TOKENS), &count);
        let Some(text) = screened(&text) else {
            return Err("its text speaks to the model, and was kept from it".into());
        };
        let shown: Vec<&Item> = items.iter().filter(|(name, _)| text.contains(name)).collect();
        let known: Vec<String> = shown.iter().map(|(name, _)| name.clone()).collect();
        let shape = prompt::finding(&nameable(&shown));
        let prompt = prompt::of_shard(self.question, &name, &text);
        let about = json!({
            "recipe": "shard", "shard": at + 1, "shards": self.shards.len(), "name": name, "items": items.len(),
            "own_tokens": count(&text), "shared_tokens": shared
        });
        self.ask(&format!("shard{}", at + 1), "shard", about, (prompt, shape, SAID.0), &known).await
    }

    /// Asks for the answer.
    async fn synthesis(&mut self, found: &[Result<Finding, String>]) -> Result<Finding, String> {
        let said = found.iter().zip(&self.shards).filter_map(|(found, (name, _))| {
            let finding = found.as_ref().ok()?;
            Some((name.clone(), finding))
        });
        let said: Vec<(String, &Finding)> = said.collect();
        let files: BTreeSet<&String> = said.iter().flat_map(|(_, finding)| &finding.files).collect();
        let files: Vec<String> = files.into_iter().cloned().collect();
        let prompt = prompt::of_all(self.question, &said);
        let about = json!({
            "recipe": "synthesis", "shards": said.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), "files": files.len()
        });
        self.ask("synthesis", "synthesis", about, (prompt, prompt::answer(&files), SAID.1), &files).await
    }

    async fn ask(
        &mut self,
        span: &str,
        recipe: &str,
        about: serde_json::Value,
        (prompt, shape, max_tokens): (caro_model::Prompt, caro_model::Shape, usize),
        files: &[String],
    ) -> Result<Finding, String> {
        self.runtime.emitter.emit(Draft::new(Kind::AgentStep).span(span).metadata(about));
        let cancel = self.runtime.cancel.clone();
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens, cancel };
        let said = match self.runtime.consult(&mut self.turn, span, recipe, request).await {
            Consulted::Said(said) => said,
            Consulted::Stopped => return Err("stopped".into()),
            Consulted::Failed(why) => return Err(why),
        };
        let finding: Finding = serde_json::from_str(&said).map_err(|_| "the answer was cut off".to_owned())?;
        let (answer, cut) = prompt::without_unknown(&finding.answer, files);
        self.cut += cut;
        Ok(Finding { answer, files: each_once(finding.files.into_iter()) })
    }
}

/// The files that a finding can name: those shown that have words of the question, or all that are shown where none has.
fn nameable(shown: &[&Item]) -> Vec<String> {
    let any = shown.iter().any(|(_, outline)| outline.evidence() > 0);
    let named = shown.iter().filter(|(_, outline)| !any || outline.evidence() > 0);
    named.map(|(name, _)| name.clone()).collect()
}

/// The text as it may be shown: without the passages that speak to the model; nothing where all of it does.
fn screened(text: &str) -> Option<String> {
    if !screen(text).blocks() {
        return Some(text.to_owned());
    }
    cut_orders(text).map(|passages| passages.text)
}

/// Reads a place: a folder by its files, one file by its passages.
fn read(place: &Path, words: &[String], cancel: &Cancel) -> Result<Material, LibraryError> {
    let mut found = Found::default();
    walk::find(place, &mut found)?;
    let is_file = found.files.len() == 1 && found.files.contains(place);
    let base = if is_file { place.parent().unwrap_or(place) } else { place };
    let name = |path: &Path| path.strip_prefix(base).unwrap_or(path).to_string_lossy().into_owned();
    let mut material = Material::default();
    let mut left = found.errors.iter().map(|(path, why)| (name(path), why.clone())).collect::<Vec<_>>();
    left.extend(found.secret.iter().map(|path| (name(path), "it may hold keys or passwords".to_owned())));
    let (mut bytes, programs) = (0, Programs::find());
    for path in &found.files {
        let file = name(path);
        let too_much = material.items.len() >= plan::MOST_ITEMS || bytes >= MOST_BYTES;
        if too_much || cancel.is_cancelled() {
            left.push((file, format!("more than {} files or {} MiB", plan::MOST_ITEMS, MOST_BYTES >> 20)));
            continue;
        }
        match walk::read(path, &programs) {
            Ok(Document::Text(text)) => {
                bytes += text.len();
                let text = normalise(&text);
                if is_file {
                    material.passages(&file, &text, words);
                } else {
                    let outline = outline::outline(&file, &text, words);
                    if screen(&outline.all(&file)).blocks() {
                        left.push((file, "it speaks to the model".into()));
                    } else {
                        material.add(file, &text, outline);
                    }
                }
            }
            Ok(Document::Skipped(why)) => left.push((file, why.into())),
            Err(error) => left.push((file, error.to_string())),
        }
    }
    if material.items.is_empty() {
        let reason = "there is no text in it that can be read".to_owned();
        return Err(LibraryError::Input { path: place.display().to_string(), reason });
    }
    material.left_out = left;
    Ok(material)
}

impl Material {
    fn add(&mut self, name: String, text: &str, outline: Outline) {
        self.items.push((name, outline));
        self.bytes.push(text.len());
    }

    /// The passages of a long text; those beyond the most are told.
    fn passages(&mut self, file: &str, text: &str, words: &[String]) {
        for passage in chunks(chunk::Kind::of(Path::new(file)), text).into_iter().take(plan::MOST_ITEMS) {
            let part = &text[passage.range.clone()];
            let name = format!("{file}:{}-{}", passage.first, passage.last);
            self.add(name, part, outline::whole(part, words));
        }
    }
}

/// The folder that all items have in common, or the one item's name.
fn common(items: &[Item]) -> String {
    let [(first, _), .., (last, _)] = items else { return items.iter().map(|(name, _)| name.clone()).collect() };
    let (one, two) = (Path::new(first), Path::new(last));
    let shared: PathBuf = one.components().zip(two.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    let top = |path: &Path| path.strip_prefix(&shared).ok().and_then(|rest| rest.iter().next().map(PathBuf::from));
    match (top(one), top(two)) {
        (Some(from), Some(to)) => {
            format!("{} to {}", shared.join(from).display(), shared.join(to).display())
        }
        _ => shared.display().to_string(),
    }
}

#[cfg(test)]
mod tests;
