//! The offered tools as data: names, descriptions, schemas. A [`Toolbox`](super::Toolbox) implements them.

use super::version::is_at_least;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

/// The name of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// Writes a command for a request.
    GenerateCommand,
    /// Checks a command, and rates its risk.
    CheckCommand,
    /// Explains a command.
    ExplainCommand,
    /// Searches options in the manuals of this machine.
    SearchManual,
    /// Works on a task of several steps.
    RunAgent,
}

impl Name {
    /// Every tool.
    pub const ALL: [Self; 5] =
        [Self::GenerateCommand, Self::CheckCommand, Self::ExplainCommand, Self::SearchManual, Self::RunAgent];

    /// Its name in the protocol.
    pub fn text(self) -> &'static str {
        match self {
            Self::GenerateCommand => "generate_command",
            Self::CheckCommand => "check_command",
            Self::ExplainCommand => "explain_command",
            Self::SearchManual => "search_manual",
            Self::RunAgent => "run_agent",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::GenerateCommand => "Write a shell command",
            Self::CheckCommand => "Check a shell command",
            Self::ExplainCommand => "Explain a shell command",
            Self::SearchManual => "Search the manuals",
            Self::RunAgent => "Do a task",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::GenerateCommand => {
                "Writes one shell command for a request in plain words, for the programs that this very machine has, and \
                 checks it: flags of the installed versions, platform, risk. Runs nothing. A small local model writes it: \
                 read `findings`, `risk` and `confidence` before you use the command."
            }
            Self::CheckCommand => {
                "Checks a shell command without running it: syntax, programs that are not installed, flags that the \
                 installed versions do not have, platform differences, and how much it can destroy. Asks no model. With \
                 `rehearse` it is tried out in a view of the file system that is thrown away, and what it would create, \
                 change and delete is listed."
            }
            Self::ExplainCommand => {
                "Explains the programs and flags of a shell command with the manuals of the versions that are installed. \
                 Asks no model and runs nothing of the command."
            }
            Self::SearchManual => {
                "Finds options in the manuals of the programs of this machine. With `program` that program's manual is \
                 read; without it, all manuals that were read before are searched."
            }
            Self::RunAgent => {
                "Works on a task of several steps in the folder in which this server was started: looks at files and runs \
                 commands. Nobody is there to be asked, so whatever caro would ask a person for (changing files, most \
                 commands that write) is denied. What it came to is in `response`."
            }
        }
    }

    /// The schema of its arguments.
    pub fn input(self) -> Value {
        let text = |what: &str| json!({"type": "string", "description": what});
        let cwd = text("The folder that the command is to run in, as an absolute path; the server's own without it.");
        let target =
            text("The platform that the command is for, as in linux-gnu or macos-bsd; this machine without it.");
        let shell = text("The shell that the command is for, as in bash, zsh, fish or powershell.");
        let command = text("The command, as it would be typed.");
        let (required, properties) = match self {
            Self::GenerateCommand => (
                json!(["request"]),
                json!({
                    "request": text("What the command is to do, in plain words."),
                    "cwd": cwd, "target": target, "shell": shell,
                }),
            ),
            Self::CheckCommand => (
                json!(["command"]),
                json!({
                    "command": command, "cwd": cwd, "target": target, "shell": shell,
                    "rehearse": {"type": "boolean", "description": "True to try it out in a view that is thrown away."},
                }),
            ),
            Self::ExplainCommand => (json!(["command"]), json!({"command": command, "shell": shell})),
            Self::SearchManual => (
                json!(["query"]),
                json!({
                    "query": text("What an option is to do, in a few words."),
                    "program": text("The program whose manual is searched."),
                    "limit": {
                        "type": "integer", "minimum": 1, "maximum": 100,
                        "description": "The most options that are listed; 10 without it.",
                    },
                }),
            ),
            Self::RunAgent => (
                json!(["task"]),
                json!({
                    "task": text("The task, in plain words."),
                    "session_id": text("The session that it belongs to: what was said in it before is known; a new one without it."),
                    "max_steps": {
                        "type": "integer", "minimum": 1, "maximum": 100,
                        "description": "The most steps; the task decides without it.",
                    },
                }),
            ),
        };
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// The schema of a successful result.
    pub fn output(self) -> Value {
        let text = json!({"type": "string"});
        let finding = json!({
            "type": "object",
            "properties": {
                "id": text, "severity": {"enum": ["hint", "warning", "error"]}, "token": text, "why": text,
                "evidence": {"type": "array", "items": text}, "fix": text,
            },
            "required": ["id", "severity", "token", "why"],
        });
        let findings = json!({"type": "array", "items": finding, "description": "What the checks have against it."});
        let risk = json!({
            "type": "object",
            "properties": {
                "level": {"enum": ["safe", "caution", "danger"]},
                "reasons": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["level", "reasons"],
        });
        let texts = json!({"type": "array", "items": text});
        let (required, properties) = match self {
            Self::GenerateCommand => (
                json!(["cmd", "confidence", "findings", "risk", "explanation", "target", "shell"]),
                json!({
                    "cmd": {"type": "string", "description": "The command."},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "commands_used": texts, "findings": findings, "risk": risk, "explanation": text,
                    "target": text, "shell": text,
                    "draft": {"type": "boolean", "description": "True where it is known to be faulty."},
                }),
            ),
            Self::CheckCommand => (
                json!(["cmd", "commands_used", "findings", "risk", "target", "shell"]),
                json!({
                    "cmd": text, "commands_used": texts, "findings": findings, "risk": risk, "target": text,
                    "shell": text, "unlisted": {"type": "integer"}, "rehearsal": {"type": "object"},
                }),
            ),
            Self::ExplainCommand => (
                json!(["cmd", "shell", "commands"]),
                json!({
                    "cmd": text, "shell": text, "unlisted": {"type": "integer"}, "errors": texts,
                    "commands": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"name": text, "version": text, "title": text, "flags": {"type": "array"}},
                        "required": ["name", "flags"],
                    }},
                }),
            ),
            Self::SearchManual => (
                json!(["hits"]),
                json!({
                    "hits": {"type": "array", "items": {
                        "type": "object",
                        "properties": {"command": text, "option": text, "text": text},
                        "required": ["command", "option", "text"],
                    }},
                    "hint": {"type": "string", "description": "What to do where nothing was found."},
                }),
            ),
            Self::RunAgent => (
                json!(["response", "status", "termination_reason", "session_id", "run_id", "steps"]),
                json!({
                    "response": text, "status": text, "termination_reason": text, "session_id": text, "run_id": text,
                    "steps": {"type": "integer"}, "missing": texts,
                }),
            ),
        };
        json!({"type": "object", "properties": properties, "required": required})
    }

    /// Hints for a client, which decides whether to ask its user.
    fn annotations(self) -> Value {
        let acts = self == Self::RunAgent;
        json!({
            "title": self.title(),
            "readOnlyHint": !acts,
            "destructiveHint": acts,
            // the model gives the same answer to the same request
            "idempotentHint": !acts,
            "openWorldHint": acts,
        })
    }

    /// Returns the tool's entry in the list of tools for a revision of the protocol.
    fn listed(self, version: &ProtocolVersion) -> Value {
        let mut tool = json!({"name": self.text(), "description": self.description(), "inputSchema": self.input()});
        if is_at_least(version, &ProtocolVersion::V_2025_03_26) {
            tool["annotations"] = self.annotations();
        }
        if is_at_least(version, &ProtocolVersion::V_2025_06_18) {
            tool["title"] = self.title().into();
            tool["outputSchema"] = self.output();
        }
        tool
    }
}

/// The tools that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// True if agent runs are offered.
    pub agent: bool,
}

impl Offer {
    /// The tool with this name, if it is offered.
    pub fn find(self, name: &str) -> Option<Name> {
        self.all().find(|tool| tool.text() == name)
    }

    /// The list of tools for a revision of the protocol.
    pub fn listed(self, version: &ProtocolVersion) -> Vec<Value> {
        self.all().map(|tool| tool.listed(version)).collect()
    }

    fn all(self) -> impl Iterator<Item = Name> {
        Name::ALL.into_iter().filter(move |name| self.agent || *name != Name::RunAgent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_offered_only_if_enabled() {
        let names = |offer: Offer| -> Vec<String> {
            let listed = offer.listed(&ProtocolVersion::V_2025_11_25);
            listed.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        let plain = names(Offer { agent: false });
        assert_eq!(plain, ["generate_command", "check_command", "explain_command", "search_manual"]);
        assert_eq!(names(Offer { agent: true }).last().map(String::as_str), Some("run_agent"));
        assert_eq!(Offer { agent: false }.find("run_agent"), None);
        assert_eq!(Offer { agent: true }.find("run_agent"), Some(Name::RunAgent));
        assert_eq!(Offer { agent: true }.find(""), None);
    }

    #[test]
    fn the_list_parses_as_the_client_library_s_tools() {
        for version in ProtocolVersion::KNOWN_VERSIONS {
            for tool in (Offer { agent: true }).listed(version) {
                let read: rmcp::model::Tool = serde_json::from_value(tool.clone()).unwrap();
                let annotated = read.annotations.as_ref().and_then(|a| a.read_only_hint);
                let acts = read.name == "run_agent";
                let since = |revision: &str| version.as_str() >= revision;
                assert_eq!(annotated, since("2025-03-26").then_some(!acts), "{version}: {tool}");
                assert_eq!(read.output_schema.is_some(), since("2025-06-18"), "{version}");
                for name in tool["inputSchema"]["required"].as_array().unwrap() {
                    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
                    assert!(properties.contains_key(name.as_str().unwrap()), "{tool}");
                }
            }
        }
    }
}
