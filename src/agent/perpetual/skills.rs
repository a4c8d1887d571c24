//! The skills that the model may call, and the tool of the agent behind each.

use super::call::SkillCall;
use crate::tool::{Args, Call, Effects};

/// Most calls of one turn, enforced by the grammar and the state machine.
pub const MAX_CALLS: usize = 5;

/// One skill.
#[derive(Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, as the model writes it.
    pub name: &'static str,
    /// The names of its arguments.
    pub arguments: &'static [&'static str],
    /// A description of its effect.
    pub about: &'static str,
    /// Example arguments.
    pub example: &'static [&'static str],
    /// Its executor.
    pub done_by: DoneBy,
    /// True if it is idempotent: then it is repeated if it is unknown whether it was done.
    pub repeatable: bool,
}

impl Skill {
    /// Formats the example call.
    pub fn shown(&self) -> String {
        let arguments = self.example.iter().map(|text| (*text).to_owned()).collect();
        SkillCall { name: self.name.into(), arguments }.print()
    }
}

/// The executor of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneBy {
    /// The state machine itself: the skill changes only its state.
    Machine,
    /// The driver: the skill uses notes or the history.
    Driver,
    /// A tool of the agent, by its name and those of its arguments.
    Tool(&'static str, &'static [&'static str]),
}

/// All skills, in the order of the prompt.
pub const SKILLS: [Skill; 11] = [
    Skill {
        name: "send",
        arguments: &["text"],
        about: "tells the user something: every answer goes through this",
        example: &["There are 3 files: a.txt, b.txt, c.txt"],
        done_by: DoneBy::Machine,
        repeatable: true,
    },
    Skill {
        name: "shell",
        arguments: &["command"],
        about: "runs a shell command in the working folder and shows what it prints",
        example: &["df -h /"],
        done_by: DoneBy::Tool("shell", &["command"]),
        repeatable: false,
    },
    Skill {
        name: "remember",
        arguments: &["text"],
        about: "keeps a fact in your long-term memory",
        example: &["The printer of the user is in room 12."],
        done_by: DoneBy::Driver,
        repeatable: true,
    },
    Skill {
        name: "query",
        arguments: &["text"],
        about: "shows what your long-term memory has about something",
        example: &["printer room"],
        done_by: DoneBy::Driver,
        repeatable: true,
    },
    Skill {
        name: "episodes",
        arguments: &["time"],
        about: "shows the history around a time",
        example: &["2026-01-31 08:30:00"],
        done_by: DoneBy::Driver,
        repeatable: true,
    },
    Skill {
        name: "pin",
        arguments: &["text"],
        about: "keeps one note of the task that is under way, in the place of the one before",
        example: &["two of five files are done"],
        done_by: DoneBy::Machine,
        repeatable: true,
    },
    Skill {
        name: "read-file",
        arguments: &["path"],
        about: "shows the text of a file",
        example: &["notes.txt"],
        done_by: DoneBy::Tool("read", &["path"]),
        repeatable: true,
    },
    Skill {
        name: "write-file",
        arguments: &["path", "content"],
        about: "writes a file, in the place of an old one",
        example: &["list.txt", "milk\nbread"],
        done_by: DoneBy::Tool("write", &["path", "content"]),
        repeatable: true,
    },
    Skill {
        name: "append-file",
        arguments: &["path", "content"],
        about: "adds text at the end of a file that is there",
        example: &["list.txt", "butter"],
        done_by: DoneBy::Tool("append", &["path", "content"]),
        repeatable: false,
    },
    Skill {
        name: "search",
        arguments: &["pattern"],
        about: "finds the lines of files in the working folder that have a word",
        example: &["invoice"],
        done_by: DoneBy::Tool("search", &["pattern"]),
        repeatable: true,
    },
    Skill {
        name: "list-files",
        arguments: &["path"],
        about: "shows what is in a folder, with sizes",
        example: &["."],
        done_by: DoneBy::Tool("list", &["path"]),
        repeatable: true,
    },
];

/// Returns the skill with this name.
pub fn skill(name: &str) -> Option<&'static Skill> {
    SKILLS.iter().find(|skill| skill.name == name)
}

/// Returns a message for the model if a call is invalid.
pub fn fault(call: &SkillCall) -> Option<String> {
    let Some(skill) = skill(&call.name) else {
        let names: Vec<&str> = SKILLS.iter().map(|skill| skill.name).collect();
        return Some(format!("there is no skill {}; the skills are: {}", call.name, names.join(", ")));
    };
    let (wanted, given) = (skill.arguments.len(), call.arguments.len());
    (wanted != given).then(|| {
        format!(
            "{} takes {wanted} text{} in quotes, and {given} were given",
            skill.name,
            if wanted == 1 { "" } else { "s" }
        )
    })
}

/// Converts a skill call to the call of the tool behind it; `None` for skills without a tool.
pub fn tool_call(call: &SkillCall, id: String) -> Option<Call> {
    let DoneBy::Tool(tool, names) = skill(&call.name)?.done_by else { return None };
    let args: Args =
        names.iter().zip(&call.arguments).map(|(name, text)| ((*name).into(), text.clone().into())).collect();
    Some(Call { id, tool: tool.into(), args, effects: Effects::default() })
}

/// Returns the grammar of a turn: a tuple of at most [`MAX_CALLS`] calls, excluding the skills in `without`.
pub fn grammar(without: &[String]) -> String {
    let call = |skill: &Skill| format!("\"({}\"{} \")\"", skill.name, " \" \" text".repeat(skill.arguments.len()));
    let admitted = SKILLS.iter().filter(|skill| !without.iter().any(|name| name == skill.name));
    let calls: Vec<String> = admitted.map(call).collect();
    let more = MAX_CALLS - 1;
    format!(
        "start: \"(\" ( call (\" \" call){{0,{more}}} )? \")\"\ncall: {}\ntext: /\"([^\"\\\\\\x00-\\x1f]|\\\\[\"\\\\nt])*\"/\n",
        calls.join(" | ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::sexpr::{print, read};
    use super::*;
    use caro_model::scripted::Scripted;
    use caro_model::{Cancel, Flow, Model, ModelError, Prompt, Request, Role, Sampling, Shape};

    /// True if a model held to the grammar can write this.
    fn may_write(text: &str) -> bool {
        may_write_without(&[], text)
    }

    fn may_write_without(without: &[String], text: &str) -> bool {
        let model: Scripted = serde_json::json!({"rules": [{"reply": text}]}).to_string().parse().unwrap();
        let mut prompt = Prompt::default();
        prompt.push(Role::User, "x");
        let shape = Shape::Lark(grammar(without));
        let request = Request { prompt, shape, sampling: Sampling::GREEDY, max_tokens: 1000, cancel: Cancel::new() };
        match model.generate(&request, &mut |_| Flow::Continue) {
            Ok(_) => true,
            Err(ModelError::Script(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    /// Returns the example call of each skill.
    fn examples() -> Vec<SkillCall> {
        let call = |skill: &Skill| SkillCall {
            name: skill.name.into(),
            arguments: skill.example.iter().map(|text| (*text).to_owned()).collect(),
        };
        SKILLS.iter().map(call).collect()
    }

    #[test]
    fn the_grammar_allows_up_to_five_calls_of_known_skills() {
        for call in examples() {
            let text = print(std::slice::from_ref(&call));
            assert!(may_write(&text), "{text}");
            assert_eq!(read(&text).unwrap(), std::slice::from_ref(&call));
            assert_eq!(fault(&call), None);
        }
        assert!(may_write("()") && may_write(&print(&examples()[..5])));
        assert!(!may_write(&print(&examples()[..6])), "the sixth");
        for wrong in
            ["", "hi", "(send \"hi\")", "((send hi))", "((rm \"x\"))", "((send \"a\" \"b\"))", "((send \"a\n\"))"]
        {
            assert!(!may_write(wrong), "{wrong}");
        }
        assert!(!may_write_without(&["send".into()], r#"((send "hi"))"#));
        assert!(may_write_without(&["send".into()], r#"((pin "hi"))"#));
        assert!(may_write(r#"((send "say \"yes\"\nor \\ no"))"#));
    }

    #[test]
    fn invalid_calls_are_explained() {
        let call = |name: &str, arguments: &[&str]| SkillCall {
            name: name.into(),
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert!(fault(&call("metta", &["x"])).unwrap().contains("no skill metta"));
        assert!(fault(&call("send", &[])).unwrap().contains("takes 1 text in quotes"));
        assert!(fault(&call("write-file", &["a"])).unwrap().contains("takes 2 texts"));
        let shell = tool_call(&call("shell", &["ls"]), "t1c1".into()).unwrap();
        assert_eq!((shell.tool.as_str(), shell.args["command"].as_str()), ("shell", Some("ls")));
        assert_eq!(tool_call(&call("pin", &["x"]), String::new()), None);
    }
}
