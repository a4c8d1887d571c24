//! Prepares a run: its skills, tools, guards, history and runtime, on top of what the harness has for every run.

use super::place::{FileBeginnings, FileTexts, Folder};
use super::rules::{Rules, WorkerSetup};
use super::{Harness, HarnessError, WAIT, join};
use crate::assemble::{ContextProvider, Fixed};
use crate::blueprint::{Blueprint, persona::persona};
use crate::chat::{History, Past};
use crate::event::{Draft, Emitter, Kind, Sink};
use crate::guard::Guards;
use crate::knowledge::Knowledge;
use crate::known::{self, Known, ReadBefore};
use crate::memory::{Conversation, NoteTaker, Recall};
use crate::observe::Artifacts;
use crate::runtime::{Approver, Config, DenyAll, Notes, Runtime};
use crate::skill::{self, Chosen, Reason};
use crate::store::{StoreError, is_alive};
use crate::tool::Registry;
use crate::turn::{AgentRun, Task};
use crate::workspace::Workspace;
use crate::{retrieve, subagent};
use caro_model::Cancel;
use std::path::PathBuf;
use std::sync::Arc;

/// Most tools of servers that are shown in addition to the usual number of tools.
const MAX_SERVER_TOOLS: usize = 4;

/// A run that is ready to start.
pub struct Prepared<'a> {
    harness: &'a Harness,
    task: Task,
    /// The text of the task, without secrets.
    asked: String,
    /// True if the task asks nothing about this computer and so gets no tools.
    talks: bool,
    skills: Chosen,
    /// The texts of the active skills.
    texts: Vec<skill::layer::Text>,
    /// The tools of its session, without those of servers and skills.
    registry: Registry,
    workspace: Option<Arc<Workspace>>,
    /// The folder of the agent's own files.
    own: Option<PathBuf>,
    guards: Guards,
    /// The earlier messages of the session, and the texts that were read in it, once they are recalled.
    past: Past,
    known: Vec<Known>,
    cancel: Cancel,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(
        harness: &'a Harness,
        task: &Task,
        cancel: Cancel,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Self, HarnessError> {
        let skills = match &harness.skills {
            None => Chosen::default(),
            Some(shelf) => {
                let recent = harness.recent().names(&task.session);
                shelf.choose(&task.text, &harness.options.skills, &recent, warn)?
            }
        };
        // a skill whose text cannot be rendered would be missing from the prompt silently
        let texts = skill::layer::texts(&skills);
        for (text, (_, reason)) in texts.iter().zip(&skills.active) {
            match text {
                Err(error) if *reason == Reason::Asked => return Err(error.clone().into()),
                Err(error) => warn(&format!("a skill is left out: {error}")),
                Ok(_) => {}
            }
        }
        harness.recent().count(&task.session, &skills);
        let own = harness.workspaces.as_ref().map(|all| all.folder(&task.session));
        Ok(Self {
            harness,
            asked: harness.redactor.text(&task.text),
            talks: skills.active.is_empty() && harness.talks(&task.agent, &task.text),
            skills,
            texts,
            registry: harness.registry(&task.session)?,
            workspace: harness.workspaces.as_ref().map(|all| Arc::new(all.open(&task.session))),
            guards: harness.rules(own.clone()).guards(task),
            own,
            past: Past::default(),
            known: Vec::new(),
            task: task.clone(),
            cancel,
        })
    }

    /// Returns its skills, with the reasons why they were chosen.
    pub fn skills(&self) -> &Chosen {
        &self.skills
    }

    /// Stores the run as it is before its first step, so that it can be resumed from there. Waits while another
    /// process has an active run of the same session, and calls `waiting` once with the id of that run.
    ///
    /// # Errors
    /// If it cannot be stored, or the run is stopped meanwhile.
    pub fn begin(&self, turn: &AgentRun, waiting: impl FnOnce(&str)) -> Result<(), HarnessError> {
        let (first, mut waiting) = (self.first_checkpoint(turn), Some(waiting));
        while let Some(run) = self.try_begin(&first)? {
            if let Some(waiting) = waiting.take() {
                waiting(&run);
            }
            std::thread::sleep(WAIT);
        }
        Ok(())
    }

    /// Does what [`Prepared::begin`] does, without blocking the thread.
    pub(crate) async fn begin_in_turn(&self, turn: &AgentRun) -> Result<(), HarnessError> {
        let first = self.first_checkpoint(turn);
        while self.try_begin(&first)?.is_some() {
            tokio::time::sleep(WAIT).await;
        }
        Ok(())
    }

    /// Returns the first checkpoint of a run; empty if it cannot be serialised, which the next checkpoint reports.
    fn first_checkpoint(&self, turn: &AgentRun) -> String {
        self.harness.redactor.document(turn).unwrap_or_default()
    }

    /// Does what [`Prepared::begin`] does, with this checkpoint and without waiting. Returns the id of the active run
    /// of the session, if there is one.
    fn try_begin(&self, first: &str) -> Result<Option<String>, HarnessError> {
        match self.harness.store.begin(&self.task, &self.asked, first, &self.harness.root, is_alive) {
            Ok(()) => {
                self.harness.keep_model(&self.task.run)?;
                Ok(None)
            }
            Err(StoreError::Occupied { run, .. }) if !self.cancel.is_cancelled() => Ok(Some(run)),
            Err(error) => Err(error.into()),
        }
    }

    /// Loads the earlier messages of the session, and the texts that were read in it. Called once the run has begun,
    /// when no other process adds to them.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn recall(&mut self) -> Result<(), HarnessError> {
        self.past = self.harness.history(&self.task.session)?;
        self.recall_read()
    }

    /// Loads only the texts that earlier runs of the session have read. Called once the run has begun.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn recall_read(&mut self) -> Result<(), HarnessError> {
        if !self.talks {
            self.known = known::current(self.harness.store.read_before(&self.task.session)?);
        }
        Ok(())
    }

    /// Creates the runtime. Its events go to the store and to `sinks`, the first with the number `first`. Without an
    /// approver, every request for permission is refused.
    pub fn runtime(&self, first: u64, sinks: Vec<Arc<dyn Sink>>, approver: Option<Arc<dyn Approver>>) -> Runtime {
        let Harness { store, redactor, options, memory, model, root, .. } = self.harness;
        let conversation = Arc::new(Conversation {
            memory: memory.clone(),
            session: self.task.session.clone(),
            agent: self.task.agent.clone(),
            asked: self.asked.clone(),
            runs: store.clone(),
        });
        let providers = self.providers(conversation.clone());
        // the conversation comes before the store, whose last event lets the next run of the session start
        let mut all: Vec<Arc<dyn Sink>> = vec![conversation, store.clone()];
        all.extend(sinks);
        let (registry, more) = self.tools();
        let config = Config::new(root.clone());
        let shown = if options.retrieval { config.tools } else { retrieve::MOST };
        let config = Config {
            tools: shown + more,
            // a run that talks gets no tools, as a small model would use them even to answer a greeting
            blueprints: Blueprint::of_run(self.talks, !self.skills.active.is_empty()),
            known: self.known.clone(),
            skills: self.skills.active.iter().map(|(skill, _)| skill.front.name.clone()).collect(),
            fitting: options.fitting,
            guardrail: options.guardrail,
            parallel: options.parallel.max(1),
            call_limit: options.tool_timeout,
            ..config
        };
        let taker = || Arc::new(NoteTaker { memory: memory.clone(), redactor: redactor.clone() }) as Arc<dyn Notes>;
        let artifacts = if options.offload { self.workspace.clone() } else { None };
        let runtime = Runtime {
            model: model.clone(),
            registry,
            guards: self.guards.clone(),
            providers,
            notes: options.notes.then(taker),
            approver: approver.unwrap_or_else(|| Arc::new(DenyAll)),
            artifacts: artifacts.map(|files| files as Arc<dyn Artifacts>),
            checkpoints: store.clone(),
            suggester: self.harness.suggester.clone(),
            usage_ledger: None,
            emitter: Arc::new(Emitter::new(self.task.run.clone(), first, redactor.clone(), all)),
            cancel: self.cancel.clone(),
            config,
        };
        if !options.subagents || self.talks {
            return runtime;
        }
        let Some(workspace) = self.workspace.clone() else { return runtime };
        let rules: Rules = self.harness.rules(self.own.clone());
        let hire = WorkerSetup { store: store.clone(), rules, redactor: redactor.clone() };
        subagent::equip(runtime.clone(), workspace, Arc::new(hire)).unwrap_or_else(|error| {
            // the user has asked for helpers, so it is reported that there are none
            runtime.emitter.emit(Draft::new(Kind::RuntimeError).error(format!("there are no helpers: {error}")));
            runtime
        })
    }

    /// Creates the providers of context, in any order: their layers are sorted by priority.
    fn providers(&self, conversation: Arc<Conversation>) -> Vec<Arc<dyn ContextProvider>> {
        let Harness { options, memory, model, root, librarian, .. } = self.harness;
        let persona = persona(&self.task.agent, self.talks).into();
        let mut all: Vec<Arc<dyn ContextProvider>> =
            vec![Arc::new(Fixed { name: "persona", priority: 0, text: persona })];
        if !self.harness.instruction.is_empty() {
            let text = self.harness.instruction.clone();
            all.push(Arc::new(Fixed { name: "instruction", priority: 1, text }));
        }
        if !self.talks {
            all.push(Arc::new(Folder(root.clone())));
            all.push(Arc::new(FileBeginnings(root.clone())));
            all.push(Arc::new(FileTexts(root.clone())));
        }
        if !self.known.is_empty() {
            all.push(Arc::new(ReadBefore(self.known.clone())));
        }
        if let Some(role) = &options.role {
            all.push(Arc::new(Fixed { name: "role", priority: 0, text: skill::role::persona(role) }));
        }
        all.extend(skill::layer::layers(&self.skills, &self.texts));
        if options.enable_rag
            && let Some(librarian) = librarian
        {
            let knowledge = Knowledge::new(librarian.clone());
            all.push(Arc::new(knowledge.within(options.knowledge_limit, options.knowledge_threshold)));
        }
        if options.notes {
            all.push(Arc::new(Recall::new(memory.clone())));
        }
        if !self.past.is_empty() {
            all.push(Arc::new(History::new(self.past.clone(), options.remember, conversation, model.clone())));
        }
        all.extend(self.harness.providers.iter().cloned());
        all
    }

    /// Returns every tool of the run, and the number of tools that are shown in addition to the usual number.
    fn tools(&self) -> (Registry, usize) {
        let mut registry = self.registry.clone();
        let servers = self.harness.hub.as_ref().map_or(0, |hub| join(&mut registry, hub));
        // tools of skills are shown in every step, without taking the place of other tools
        let which = self.harness.skills.as_ref().map(|shelf| shelf.which.clone());
        let skills = which.map(|which| skill::tools::tools(&self.skills, &which)).unwrap_or_default();
        let skills = skills.into_iter().filter(|tool| registry.add(tool.clone()).is_ok()).count();
        (registry, servers.min(MAX_SERVER_TOOLS) + skills)
    }
}
