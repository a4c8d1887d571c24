//! `caro batch`: answers requests from standard input, one a line, with one line of JSON each, in order.
//!
//! Each answer is flushed before the next line is read. One model answers all of them.

use crate::answer::ask::{Place, ask, check, check_target, failure, milliseconds};
use crate::answer::present;
use crate::flags::AnswerArgs;
use crate::setup::settings::one_of;
use crate::setup::wire::{self, Wired};
use crate::term::interrupt::Phase;
use crate::term::piped::next_line;
use crate::{Cx, Exit, Failure, Outcome, Settings};
use caro_command::Answer;
use caro_shell::{Dialect, Target};
use serde_json::{Map, Value, json};
use std::io;
use std::path::PathBuf;
use std::time::Instant;

/// Most bytes of a line.
const MAX_LINE: usize = 256 * 1024;

/// The fields of a line, for the help; [`parse`] reads them.
const FIELDS: &str = "\
A line of the input is a JSON object:
  {\"id\": 1, \"request\": \"show top processes\"}

  request    the request, in plain words
  id         any value, which comes first in the answer; null if left out
  cwd        the folder it is for; this one if left out
  target     the machine to write for, as --target
  shell      the shell to write for, as --shell
Other fields are passed over. Each line is answered with one line of JSON, in
order, whether --json is given or not: the document of `caro --json`, or
`error` with `message` and `hint`.";

/// Arguments of `caro batch`.
#[derive(Debug, clap::Args)]
#[command(after_help = FIELDS)]
pub struct Args {
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Answers lines until the input ends. A line that cannot be answered gets an error object, and the next one is read.
/// The exit code is 1 if there was no command for a line.
///
/// # Errors
/// If no model can be opened, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let settings = cx.settings(&args.answer.layer())?.for_many();
    let runtime = cx.runtime()?;
    let wired = wire::open(cx, &settings)?;
    let mut batch = Batch { args: &args.answer, cx, settings, wired, runtime, answered: 0 };
    let mut input = io::stdin().lock();
    let mut exit = Exit::Success;
    loop {
        let line = {
            let _phase = cx.interrupt().during(Phase::Ends);
            next_line(&mut input, MAX_LINE).map_err(|e| Failure::internal(format!("stdin: {e}")))?
        };
        let Some(line) = line else { break };
        if cx.interrupt().cancel().is_cancelled() {
            return Err(Failure::silent(Exit::Interrupted));
        }
        let (id, outcome) = match line {
            Ok(line) if line.trim_ascii().is_empty() => continue,
            Ok(line) => batch.answer_line(&line),
            Err(problem) => (Value::Null, Err(problem)),
        };
        let document = match outcome {
            Ok(answer) => with_id(id, &answer)?,
            Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
            Err(failure) => json!({ "id": id, "error": failure.error() }),
        };
        if document.get("cmd").is_none() {
            exit = Exit::No;
        }
        cx.ui.json(&document)?;
    }
    crate::wind_up(batch.runtime);
    Ok(exit)
}

struct Batch<'a> {
    args: &'a AnswerArgs,
    cx: &'a Cx,
    settings: Settings,
    wired: Wired,
    runtime: tokio::runtime::Runtime,
    answered: usize,
}

impl Batch<'_> {
    /// Answers one line. The id is returned even if the rest of the line is wrong.
    fn answer_line(&mut self, line: &[u8]) -> (Value, Result<Answer, Failure>) {
        let (id, parsed) = parse(line);
        let outcome = parsed.and_then(|item| self.answer(item));
        (id, outcome)
    }

    fn answer(&mut self, item: Item) -> Result<Answer, Failure> {
        let started = Instant::now();
        let mut settings = self.settings.clone();
        settings.target = item.target.or(settings.target);
        settings.shell = item.shell.or(settings.shell);
        check_target(&settings)?;
        let context = &self.wired.recipe.context;
        let cwd = item.cwd.map(|cwd| context.cwd.join(cwd));
        let place = Place::of(context, &settings, cwd);
        let ask = ask(item.request, &place, &settings, self.args, self.cx.interrupt().cancel());
        let mut trace = |event| present::trace(&self.cx.ui, self.args, &event);
        let mut answer =
            self.runtime.block_on(self.wired.recipe.answer(&ask, &mut trace)).map_err(|e| failure(e, &settings))?;
        answer.timing.total = milliseconds(started.elapsed());
        if self.answered == 0 {
            // the first answer includes the time of loading
            answer.timing.context = milliseconds(self.wired.opened.context);
            answer.timing.total = milliseconds(self.cx.started.elapsed());
        }
        answer.resident = self.wired.resident.answers();
        self.answered += 1;
        if self.args.timing {
            present::timing(&self.cx.ui, &answer.timing);
        }
        Ok(answer)
    }
}

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    request: String,
    cwd: Option<PathBuf>,
    target: Option<Target>,
    shell: Option<Dialect>,
}

/// Parses one line into its id, null if there is none, and its request. Unknown fields are ignored.
fn parse(line: &[u8]) -> (Value, Result<Item, Failure>) {
    let bad = |message: String, hint: &str| Failure::usage(message).hint(hint);
    let form = r#"a line is like {"id": 1, "request": "show top processes"}"#;
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(e) => {
            return (Value::Null, Err(bad(format!("the line is not valid UTF-8 at byte {}", e.valid_up_to()), form)));
        }
    };
    let object: Map<String, Value> = match serde_json::from_str(text) {
        Ok(object) => object,
        Err(e) => return (Value::Null, Err(bad(format!("the line is not a JSON object: {e}"), form))),
    };
    let id = object.get("id").cloned().unwrap_or(Value::Null);
    let text = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(bad(format!("`{name}` must be a string"), form)),
    };
    let named = |name: &str, e: String| bad(format!("`{name}` must be {e}"), "leave it out for this machine");
    let item = || {
        let request = text("request")?.ok_or_else(|| bad("there is no `request`".into(), form))?;
        check(&request).map_err(|message| bad(message, form))?;
        let target = text("target")?.map(|v| one_of(&Target::ALL, &v).map_err(|e| named("target", e))).transpose()?;
        let shell = text("shell")?.map(|v| one_of(&Dialect::ALL, &v).map_err(|e| named("shell", e))).transpose()?;
        Ok(Item { request, cwd: text("cwd")?.map(PathBuf::from), target, shell })
    };
    (id, item())
}

/// The document of an answer, with the id first.
fn with_id(id: Value, answer: &Answer) -> Result<Value, Failure> {
    let mut document = Map::from_iter([("id".to_string(), id)]);
    match present::document(answer).map_err(Failure::internal)? {
        Value::Object(fields) => document.extend(fields),
        other => return Err(Failure::internal(format!("an answer became {other}"))),
    }
    Ok(Value::Object(document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_survives_a_bad_line() {
        let (id, item) = parse(br#"{"id": [7], "request": 5}"#);
        assert_eq!((id, item.unwrap_err().message.as_str()), (json!([7]), "`request` must be a string"));
        let (id, item) = parse(br#"{"id": "a", "request": "x", "target": "amiga"}"#);
        assert_eq!(id, json!("a"));
        assert!(item.unwrap_err().message.starts_with("`target` must be one of linux-gnu"));
        for bad in [&b"{\"id\": 1"[..], b"[]", b"7", b"\xff", b"{}", b"{\"request\": \" \"}"] {
            assert!(parse(bad).1.is_err(), "{bad:?}");
        }
    }

    /// The help names the fields that are read, and its example is one of them.
    #[test]
    fn the_help_has_every_field_that_is_read() {
        let example = FIELDS.lines().find(|line| line.trim_start().starts_with('{')).unwrap();
        assert!(parse(example.as_bytes()).1.is_ok(), "{example}");
        let table = FIELDS.lines().skip_while(|line| !line.is_empty()).skip(1);
        let fields: Vec<&str> = table.map_while(|line| line.strip_prefix("  ")?.split("  ").next()).collect();
        assert_eq!(fields, ["request", "id", "cwd", "target", "shell"]);
        let readme = include_str!("../README.md");
        for field in fields {
            // a value of the wrong type is refused only where a field is read; an id has any type
            let wrong = parse(format!(r#"{{"request": "x", "{field}": 7}}"#).as_bytes());
            assert!(field == "id" && wrong.0 == json!(7) || wrong.1.is_err(), "{field} is not read");
            assert!(readme.contains(&format!("`{field}`")), "src/cli/README.md lacks {field}");
        }
    }

    #[test]
    fn all_fields_are_read_and_others_ignored() {
        let (id, item) = parse(br#"{"request":"x","cwd":"/","target":"macos-bsd","shell":"fish","mood":"good"}"#);
        assert_eq!(id, Value::Null);
        let expected = Item {
            request: "x".into(),
            cwd: Some("/".into()),
            target: Target::named("macos-bsd"),
            shell: Some(Dialect::Fish),
        };
        assert_eq!(item.unwrap(), expected);
    }
}
