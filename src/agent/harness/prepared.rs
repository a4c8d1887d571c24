//! One run before it begins: what holds for it alone, on top of what its harness has for every run.

use super::place::{Beginnings, Folder, Texts};
use super::rules::{Office, Rules};
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

/// Tools of servers that are shown beside ours, at most.
const MORE_TOOLS: usize = 4;

/// A run that everything is ready for.
pub struct Prepared<'a> {
    harness: &'a Harness,
    task: Task,
    /// What it was asked, without secrets.
    asked: String,
    /// True for what asks nothing of this computer: it gets no tools.
    talks: bool,
    skills: Chosen,
    /// The texts of the active ones.
    texts: Vec<skill::layer::Text>,
    /// The tools of its session; those of servers and skills come on top.
    registry: Registry,
    workspace: Option<Arc<Workspace>>,
    /// Where the agent's own files are.
    own: Option<PathBuf>,
    guards: Guards,
    /// What was said before in its session, if it is told; and what was read.
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
        // one that cannot be filled in would be missing from the prompt without a word
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

    /// Its skills, and why.
    pub fn skills(&self) -> &Chosen {
        &self.skills
    }

    /// Writes the run down as it stands before its first step, so that it can be gone on with from here. While another
    /// process drives a run of the same session it waits: the runs of a session come one after the other. `waiting` is told
    /// of that run, once.
    ///
    /// # Errors
    /// If it cannot be written, or the run is stopped meanwhile.
    pub fn begin(&self, turn: &AgentRun, waiting: impl FnOnce(&str)) -> Result<(), HarnessError> {
        let (first, mut waiting) = (self.first(turn), Some(waiting));
        while let Some(run) = self.try_begin(&first)? {
            if let Some(waiting) = waiting.take() {
                waiting(&run);
            }
            std::thread::sleep(WAIT);
        }
        Ok(())
    }

    /// The first checkpoint of a run; none where it cannot be written, and the next one says why.
    pub(super) fn first(&self, turn: &AgentRun) -> String {
        self.harness.redactor.document(turn).unwrap_or_default()
    }

    /// The same as [`Prepared::begin`], with that checkpoint and without waiting: the run that the session is busy with, if
    /// it is.
    pub(super) fn try_begin(&self, first: &str) -> Result<Option<String>, HarnessError> {
        match self.harness.store.begin(&self.task, &self.asked, first, &self.harness.root, is_alive) {
            Ok(()) => Ok(None),
            Err(StoreError::Occupied { run, .. }) if !self.cancel.is_cancelled() => Ok(Some(run)),
            Err(error) => Err(error.into()),
        }
    }

    /// Has the run told what was said and read before in its session. Once it has begun: no other process adds to that then.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn recall(&mut self) -> Result<(), HarnessError> {
        self.past = self.harness.history(&self.task.session)?;
        self.recall_read()
    }

    /// Has the run told what runs before it in its session have read, and nothing else. Once it has begun.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn recall_read(&mut self) -> Result<(), HarnessError> {
        if !self.talks {
            self.known = known::current(self.harness.store.read_before(&self.task.session)?);
        }
        Ok(())
    }

    /// The runtime whose events go to the store and to `sinks`, the first with the number `first`. Without an approver
    /// nobody is asked, and what would be asked for is refused.
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
        // before the store, which lets the next run of the session begin
        let mut all: Vec<Arc<dyn Sink>> = vec![conversation, store.clone()];
        all.extend(sinks);
        let (registry, more) = self.tools();
        let config = Config::new(root.clone());
        let shown = if options.retrieval { config.tools } else { retrieve::MOST };
        let config = Config {
            tools: shown + more,
            // what is there gets used, also to greet: where nothing is asked of this computer there are no tools
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
        let artifacts = self.workspace.clone().filter(|_| options.offload);
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
            bill: None,
            emitter: Arc::new(Emitter::new(self.task.run.clone(), first, redactor.clone(), all)),
            cancel: self.cancel.clone(),
            config,
        };
        let Some(workspace) = self.workspace.clone().filter(|_| options.subagents && !self.talks) else {
            return runtime;
        };
        let rules: Rules = self.harness.rules(self.own.clone());
        let hire = Office { store: store.clone(), rules, redactor: redactor.clone() };
        subagent::equip(runtime.clone(), workspace, Arc::new(hire)).unwrap_or_else(|error| {
            // the person has asked for helpers: a run without is told as such
            runtime.emitter.emit(Draft::new(Kind::RuntimeError).error(format!("there are no helpers: {error}")));
            runtime
        })
    }

    /// Who brings context, in no order: the layers have priorities.
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
            all.push(Arc::new(Beginnings(root.clone())));
            all.push(Arc::new(Texts(root.clone())));
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

    /// Every tool of the run, and how many more of them are shown than for any other run.
    fn tools(&self) -> (Registry, usize) {
        let mut registry = self.registry.clone();
        let servers = self.harness.hub.as_ref().map_or(0, |hub| join(&mut registry, hub));
        // tools of skills are there for every step: they take no other's place
        let which = self.harness.skills.as_ref().map(|shelf| shelf.which.clone());
        let skills = which.map(|which| skill::tools::tools(&self.skills, &which)).unwrap_or_default();
        let skills = skills.into_iter().filter(|tool| registry.add(tool.clone()).is_ok()).count();
        (registry, servers.min(MORE_TOOLS) + skills)
    }
}
