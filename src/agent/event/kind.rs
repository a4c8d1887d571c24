//! All types of events. `EVENTS.md` beside this file documents them.

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// The type of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Kind {
            $($(#[doc = $doc])+ #[serde(rename = $text)] $name,)+
        }

        impl Kind {
            /// All types, in the order of a run.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Returns its description, a sentence.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)+).trim(),)+ }
            }

            /// Returns its name in JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

kinds! {
    /// A run began.
    AgentStart = "agent_start",
    /// The user's request.
    UserMessage = "user_message",
    /// The number of steps that a run may take, and its parts.
    PlanningStep = "planning_step",
    /// A step began.
    AgentStep = "agent_step",
    /// Which layers make up the prompt, and which did not fit.
    ContextAssembly = "context_assembly",
    /// Older parts of the prompt were shortened.
    ContextCompression = "context_compression",
    /// A skill's text was loaded.
    SkillLoaded = "skill_loaded",
    /// Knowledge was looked up.
    KnowledgeRetrieved = "knowledge_retrieved",
    /// The model was asked.
    ModelCall = "model_call",
    /// The model answered.
    ModelResponse = "model_response",
    /// The model failed.
    ModelError = "model_error",
    /// A batch of calls began.
    ToolBatchStart = "tool_batch_start",
    /// A batch of calls ended.
    ToolBatchEnd = "tool_batch_end",
    /// Of a batch some calls failed, and none succeeded.
    ToolBatchError = "tool_batch_error",
    /// A tool was called.
    ToolCall = "tool_call",
    /// A tool answered, or the call was not made: `outcome` is `done`, `blocked`, `denied` or `cancelled`.
    ToolResult = "tool_result",
    /// A tool failed: `outcome` is `failed`, `failed_late` (after it had printed something) or `timed_out`.
    ToolError = "tool_error",
    /// Results are being made into an observation.
    ObservationPipelineStart = "observation_pipeline_start",
    /// The observation is made.
    ObservationPipelineEnd = "observation_pipeline_end",
    /// A file of the workspace was read.
    WorkspaceRead = "workspace_read",
    /// A file of the workspace was written.
    WorkspaceWrite = "workspace_write",
    /// A file of the workspace was deleted.
    WorkspaceDelete = "workspace_delete",
    /// A result was too long for the prompt and went into the workspace.
    WorkspaceOffload = "workspace_offload",
    /// Text was screened.
    GuardrailCheck = "guardrail_check",
    /// Text was kept from the model.
    GuardrailViolation = "guardrail_violation",
    /// The person was asked.
    ApprovalRequest = "approval_request",
    /// The person agreed.
    ApprovalGranted = "approval_granted",
    /// The person did not agree, or there was nobody to ask.
    ApprovalDenied = "approval_denied",
    /// Memory was read.
    MemoryRead = "memory_read",
    /// Memory was written.
    MemoryWrite = "memory_write",
    /// A helper was started.
    SubagentSpawn = "subagent_spawn",
    /// A helper ended.
    SubagentResult = "subagent_result",
    /// A task in the background began.
    BackgroundStart = "background_start",
    /// A task in the background ended.
    BackgroundEnd = "background_end",
    /// A request came in over HTTP.
    ServeRequestStart = "serve_request_start",
    /// A request over HTTP was answered.
    ServeRequestEnd = "serve_request_end",
    /// The tests of a skill in the making were run: `phase` is `red` (before there is a script), `run` or `green`.
    ForgeTest = "forge_test",
    /// A script for a skill was written.
    ForgeWrite = "forge_write",
    /// A script was looked at for what no script may do: its text, at work, or beside another one that passes.
    ForgeScan = "forge_scan",
    /// Tests of a skill failed twice in the same way.
    ForgeStagnation = "forge_stagnation",
    /// A skill was promoted, or was not.
    ForgeVerdict = "forge_verdict",
    /// The run goes in circles.
    LoopDetected = "loop_detected",
    /// A budget ended the run.
    ResourceGuardHalt = "resource_guard_halt",
    /// The state of the run was stored.
    Checkpoint = "checkpoint",
    /// The result of a reflection.
    Reflection = "reflection",
    /// The answer.
    FinalAnswer = "final_answer",
    /// Something inside went wrong.
    RuntimeError = "runtime_error",
    /// A run ended.
    AgentEnd = "agent_end",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_match_json() {
        let mut names: Vec<&str> = Kind::ALL.iter().map(|k| k.name()).collect();
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(serde_json::from_str::<Kind>("\"made_up\"").is_err());
    }

    #[test]
    fn the_document_lists_exactly_these_types() {
        let rows = include_str!("EVENTS.md").lines().filter(|line| line.starts_with("| `"));
        let rows: Vec<String> = rows.map(|row| row.replace(" Nothing emits it yet.", "")).collect();
        let all: Vec<String> =
            Kind::ALL.iter().map(|kind| format!("| `{}` | {} |", kind.name(), kind.about())).collect();
        assert_eq!(rows, all);
    }
}
