//! Answers a question about a tree of files, or about a long text, by reading it in at most eight shards (`caro agent
//! --shards`).
//!
//! ```text
//! walk -> outlines -> plan -> context (once) -> shard, shard ... -> synthesis
//! ```
//!
//! - [`machine`]: the order of the steps, as a pure state machine. [`mod@plan`]: groups files into shards. [`outline`]:
//!   shortens a file to a few lines.
//! - [`prompt`]: the prefix shared by all requests, and the part of each.
//!
//! The shared prefix is computed once: an engine caches the state of the longest prefix it has seen. A finding can name
//! only files shown in its shard, and the synthesis only files named in findings.

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
use machine::{End, Finding, Sharding, Step, unique};
use outline::Outline;
use serde::Serialize;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most bytes read of all files together.
const MAX_BYTES: usize = 64 << 20;
/// Most tokens of a shard's own text, so that a small model computes it in acceptable time.
const SHARD_TOKENS: usize = 1500;
/// Most tokens of a finding.
const FINDING_TOKENS: usize = 400;
/// Most tokens of the answer.
const ANSWER_TOKENS: usize = 900;
/// Tokens reserved for the marks of the chat template.
const TEMPLATE_TOKENS: usize = 64;
/// The tool timeout that the runtime requires; no tool is called.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A request to answer a question in shards.
pub struct Order {
    /// The question.
    pub question: String,
    /// The session.
    pub session: String,
    /// The folder or file to read.
    pub place: PathBuf,
    /// The limits of the run.
    pub limits: Limits,
    /// Event sinks in addition to the store.
    pub sinks: Vec<Arc<dyn Sink>>,
    /// Stops the run.
    pub cancel: Cancel,
}

/// A shard in the result.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// The number of its files, or passages of a file.
    pub items: usize,
    /// The finding; `None` if the model failed.
    pub finding: Option<Finding>,
    /// The reason why there is no finding.
    pub error: Option<String>,
}

/// The result of reading in shards.
#[derive(Debug, Clone, Serialize)]
pub struct Sharded {
    /// The answer; empty if there is none.
    pub answer: String,
    /// The files that support the answer.
    pub files: Vec<String>,
    /// The shards.
    pub shards: Vec<Part>,
    /// Files that were not read, with the reasons.
    pub left_out: Vec<(String, String)>,
    /// The number of sentences removed because they named unknown files.
    pub cut: usize,
    /// The reason why there is no answer.
    pub error: Option<String>,
    /// The reason why the answer is the joined findings, if the synthesis failed.
    pub apart: Option<String>,
    /// The run.
    pub run_id: String,
    /// The session.
    pub session_id: String,
    /// The number of requests to the model.
    pub requests: u64,
    /// The tokens of prompts and completions.
    pub tokens: u64,
}

/// A file, or a passage of one, by name, with its outline.
type Item = (String, Outline);

/// The material that was read.
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

/// The executor of one request.
struct Driver<'a> {
    runtime: &'a Runtime,
    turn: AgentRun,
    question: &'a str,
    /// Each shard's name and items.
    shards: Vec<(String, &'a [Item])>,
    cut: usize,
}

/// Reads a folder or file in shards and answers the question. Needs a Tokio runtime.
///
/// # Errors
/// If there is nothing to read, or the run is stopped. A failure of the model is not an error: the result reports it.
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
    let runtime = harness.standing(&task, CALL_TIMEOUT, sinks, None, cancel.clone())?;
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
            let name = format!("part {} ({})", at + 1, common_folder(items));
            // a small model favours what it reads first
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
                sharding.add_finding(found);
            }
            Step::Synthesis => {
                let answer = self.synthesis(sharding.findings()).await;
                sharding.set_answer(answer);
            }
        }
        Ok(())
    }
}

impl Driver<'_> {
    /// Asks the model about one shard.
    async fn shard(&mut self, at: usize) -> Result<Finding, String> {
        let (name, items) = self.shards[at].clone();
        let count = |text: &str| self.runtime.model.count(text);
        let shared = prompt_tokens(&prompt::beginning(self.question), &count);
        let reserved = shared + FINDING_TOKENS + TEMPLATE_TOKENS + count(&name);
        let room = self.runtime.model.limits().context.saturating_sub(reserved);
        let text = outline::text_within_tokens(items, room.min(SHARD_TOKENS), &count);
        let Some(text) = without_orders(&text) else {
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
        self.ask(&format!("shard{}", at + 1), "shard", about, (prompt, shape, FINDING_TOKENS), &known).await
    }

    /// Asks the model for the answer from the findings.
    async fn synthesis(&mut self, found: &[Result<Finding, String>]) -> Result<Finding, String> {
        let answers = found.iter().zip(&self.shards).filter_map(|(found, (name, _))| {
            let finding = found.as_ref().ok()?;
            Some((name.clone(), finding))
        });
        let answers: Vec<(String, &Finding)> = answers.collect();
        let files: BTreeSet<&String> = answers.iter().flat_map(|(_, finding)| &finding.files).collect();
        let files: Vec<String> = files.into_iter().cloned().collect();
        let prompt = prompt::of_synthesis(self.question, &answers);
        let names: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
        let about = json!({"recipe": "synthesis", "shards": names, "files": files.len()});
        self.ask("synthesis", "synthesis", about, (prompt, prompt::answer(&files), ANSWER_TOKENS), &files).await
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
        let text = match self.runtime.consult(&mut self.turn, span, recipe, request).await {
            Consulted::Said(text) => text,
            Consulted::Stopped => return Err("stopped".into()),
            Consulted::Failed(why) => return Err(why),
        };
        let finding: Finding = serde_json::from_str(&text).map_err(|_| "the answer was cut off".to_owned())?;
        let (answer, cut) = prompt::without_unknown(&finding.answer, files);
        self.cut += cut;
        Ok(Finding { answer, files: unique(finding.files.into_iter()) })
    }
}

/// Returns the files that a finding can name: those shown that match the question, or all if none does.
fn nameable(shown: &[&Item]) -> Vec<String> {
    let any = shown.iter().any(|(_, outline)| outline.evidence() > 0);
    let named = shown.iter().filter(|(_, outline)| !any || outline.evidence() > 0);
    named.map(|(name, _)| name.clone()).collect()
}

/// Removes passages with instructions to the model; `None` if that is not possible.
fn without_orders(text: &str) -> Option<String> {
    if !screen(text).blocks() {
        return Some(text.to_owned());
    }
    cut_orders(text).map(|passages| passages.text)
}

/// Reads a folder as files, or a single file as passages.
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
        let too_much = material.items.len() >= plan::MAX_ITEMS || bytes >= MAX_BYTES;
        if too_much || cancel.is_cancelled() {
            left.push((file, format!("more than {} files or {} MiB", plan::MAX_ITEMS, MAX_BYTES >> 20)));
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

    /// Adds the passages of a long text, at most [`plan::MAX_ITEMS`].
    fn passages(&mut self, file: &str, text: &str, words: &[String]) {
        for passage in chunks(chunk::Kind::of(Path::new(file)), text).into_iter().take(plan::MAX_ITEMS) {
            let part = &text[passage.range.clone()];
            let name = format!("{file}:{}-{}", passage.first, passage.last);
            self.add(name, part, outline::passage_outline(part, words));
        }
    }
}

/// Returns the range of entries in the items' common folder, or the name of a single item.
fn common_folder(items: &[Item]) -> String {
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
