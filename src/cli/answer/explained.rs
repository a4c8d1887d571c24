//! A command explained: each of its programs and flags, in the words of the installed manuals. No model.

use crate::setup::wire;
use crate::term::given::{self, is_zero};
use crate::term::ui::{Role, plural};
use crate::{Cx, Failure};
use caro_host::ExecutionContext;
use caro_manual::{Entry, Known, Manual, Program};
use caro_shell::{Dialect, Invocation, parse};
use serde::Serialize;
use std::sync::Arc;

/// The most commands that are explained at once.
const MOST_COMMANDS: usize = 100;

/// The most errors that are told, and the most characters of a piece that is shown with one.
const MOST_ERRORS: usize = 5;

const PIECE: usize = 80;

/// What is said of a command.
#[derive(Debug, Serialize)]
pub struct Explanation {
    cmd: String,
    shell: &'static str,
    commands: Vec<Part>,
    /// Commands beyond those.
    #[serde(skip_serializing_if = "is_zero")]
    unlisted: usize,
    /// Where its syntax is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// What is said of one program in it.
#[derive(Debug, Serialize)]
struct Part {
    /// As it is called; with the subcommand that has a manual of its own.
    name: String,
    /// How deep it is wrapped (`sudo`, `xargs`).
    #[serde(skip)]
    depth: usize,
    path: Option<String>,
    version: String,
    title: String,
    flags: Vec<Flag>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// What is said of one flag.
#[derive(Debug, Serialize)]
struct Flag {
    flag: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    known: Known,
    /// As the manual shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<String>,
    text: String,
    /// For an unknown one: what was perhaps meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<String>,
}

/// Explains each program of a command and its flags.
pub async fn explain(line: &str, dialect: Dialect, context: &ExecutionContext, manual: &Arc<Manual>) -> Explanation {
    let script = parse(line, dialect);
    let mut commands = Vec::new();
    let unlisted = script.commands.len().saturating_sub(MOST_COMMANDS);
    for invocation in script.commands.iter().take(MOST_COMMANDS) {
        commands.extend(part(invocation, dialect, context, manual).await);
    }
    let told = |(piece, nothing_follows): (&str, bool)| {
        let piece = given::clipped(piece, PIECE);
        if nothing_follows { format!("nothing follows the `{piece}`") } else { format!("at `{piece}`") }
    };
    let errors = match script.too_deep {
        true => vec!["it nests too deep to be followed; look at its parts one by one".into()],
        false => script.errors.iter().take(MOST_ERRORS).map(|span| told(script.torn(span))).collect(),
    };
    Explanation { cmd: line.to_string(), shell: dialect.name(), commands, unlisted, errors }
}

/// What is said of one invocation; `None` where the program is not named in the text (`$EDITOR file`).
async fn part(invocation: &Invocation, dialect: Dialect, context: &ExecutionContext, manual: &Manual) -> Option<Part> {
    let name = invocation.name()?;
    let depth = invocation.via.len();
    let shell = context.shell_of(dialect);
    // `./run.sh` is a file of the person's own.
    let path = invocation.words[0].text.as_str();
    let own = path.contains('/') && !context.available_commands.contains_key(name);
    let empty = |problem: String| Part {
        name: if own { path.to_string() } else { name.to_string() },
        depth,
        path: None,
        version: String::new(),
        title: String::new(),
        flags: Vec::new(),
        problem: Some(problem),
    };
    let Some(program) = Program::find(name, dialect, shell, &context.available_commands) else {
        return Some(empty(
            if own { "no program of PATH: no manual is looked for" } else { "is not installed here" }.into(),
        ));
    };
    let words: Vec<&str> = invocation.args().iter().map(|word| word.text.as_str()).collect();
    let (entry, skip) = match manual.get_for(&program, &words).await {
        Ok(found) => found,
        Err(why) => return Some(empty(why.to_string())),
    };
    let mut flags = Vec::new();
    if skip > 1 {
        // What stands before the subcommand belongs to the program itself.
        if let Ok(whole) = manual.get_or_fetch(&program).await {
            flags.extend(flags_of(&whole, &words[..skip - 1]));
        }
    }
    flags.extend(flags_of(&entry, &words[skip..]));
    Some(Part {
        name: entry.command.clone(),
        depth,
        path: Some(entry.path.display().to_string()),
        version: entry.version.clone(),
        title: entry.title.clone(),
        flags,
        problem: entry.problem.clone(),
    })
}

fn flags_of(entry: &Entry, words: &[&str]) -> Vec<Flag> {
    let nearest = |flag: &str| entry.nearest(flag, 2).into_iter().map(|option| option.usage()).collect();
    entry
        .read_args(words)
        .into_iter()
        .map(|found| Flag {
            usage: found.option.map(|option| option.usage()),
            text: found.option.map(|option| option.text.clone()).unwrap_or_default(),
            nearest: if found.known == Known::No { nearest(&found.flag) } else { Vec::new() },
            flag: found.flag,
            value: found.value,
            known: found.known,
        })
        .collect()
}

/// Tells of a command in the same words on stderr: stdout may be waiting for the command's own output.
///
/// # Errors
/// If the system gives no threads.
pub fn tell(line: &str, dialect: Dialect, context: &ExecutionContext, cx: &Cx) -> Result<(), Failure> {
    let explanation = {
        let _status = cx.ui.status("looking it up");
        cx.runtime()?.block_on(explain(line, dialect, context, &wire::manual(cx)))
    };
    for line in lines(&explanation, |role, text| cx.ui.paint_err(role, text)) {
        cx.ui.tell(&cx.ui.fold(&format!("  {line}"), "      "));
    }
    Ok(())
}

/// The lines about a command for a person.
pub fn lines(explanation: &Explanation, paint: impl Fn(Role, &str) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    for part in &explanation.commands {
        let margin = "  ".repeat(part.depth);
        let title = match &part.problem {
            Some(problem) => paint(Role::Caution, problem),
            None => paint(Role::Plain, &part.title),
        };
        lines.push(format!("{margin}{}  {title}", paint(Role::Command, &part.name)));
        for flag in &part.flags {
            let written = match &flag.value {
                Some(value) => format!("{} {value}", flag.flag),
                None => flag.flag.clone(),
            };
            let said = match flag.known {
                Known::Yes => paint(Role::Plain, &flag.text),
                Known::Unsure => paint(Role::Dim, "its manual does not define it"),
                Known::No => {
                    let near = if flag.nearest.is_empty() {
                        String::new()
                    } else {
                        format!(" (perhaps {})", flag.nearest.join(" or "))
                    };
                    paint(Role::Danger, &format!("unknown to the installed {}{near}", part.name))
                }
            };
            lines.push(format!("{margin}  {}  {said}", paint(Role::Accent, &format!("{written:<14}"))));
        }
    }
    if explanation.unlisted > 0 {
        lines.push(paint(Role::Dim, &format!("and {}", plural(explanation.unlisted, "more command"))));
    }
    for error in &explanation.errors {
        lines.push(paint(Role::Danger, &format!("syntax error: {error}")));
    }
    if explanation.commands.is_empty() && explanation.errors.is_empty() {
        lines.push(paint(Role::Dim, "no program is called"));
    }
    lines
}
