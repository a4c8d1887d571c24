//! Explains the programs and flags of a command from the installed manuals, without a model.

use super::redirected::{Redirection, redirections};
use crate::setup::wire;
use crate::term::given::{self, is_zero};
use crate::term::ui::{Role, plural};
use crate::{Cx, Failure};
use caro_host::ExecutionContext;
use caro_manual::{Entry, Known, Manual, Program};
use caro_shell::parse::Construct;
use caro_shell::{Dialect, Invocation, Script, parse};
use serde::Serialize;
use std::sync::Arc;

/// Most commands explained at once.
const MAX_COMMANDS: usize = 100;

/// Most syntax errors reported.
const MAX_ERRORS: usize = 5;

/// Most characters of the command shown with an error.
const MAX_PIECE: usize = 80;

/// The explanation of a command line.
#[derive(Debug, Serialize)]
pub struct Explanation {
    cmd: String,
    shell: &'static str,
    commands: Vec<Part>,
    /// The number of further commands.
    #[serde(skip_serializing_if = "is_zero")]
    unlisted: usize,
    /// The redirections that belong to no single command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redirects: Vec<Redirection>,
    /// The syntax errors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// The explanation of one program in it.
#[derive(Debug, Serialize)]
struct Part {
    /// The program's name, with a subcommand that has its own manual.
    name: String,
    /// The number of wrappers around it (`sudo`, `xargs`).
    #[serde(skip)]
    depth: usize,
    path: Option<String>,
    version: String,
    title: String,
    /// The subcommand, where it has no manual of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    verb: Option<Verb>,
    flags: Vec<Flag>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redirects: Vec<Redirection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The explanation of a subcommand, in the words of the program's own manual.
#[derive(Debug, Serialize)]
struct Verb {
    name: String,
    text: String,
}

/// The explanation of one flag.
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
    /// For an unknown flag: similar known ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<String>,
}

/// Explains each program of a command and its flags.
pub async fn explain(line: &str, dialect: Dialect, context: &ExecutionContext, manual: &Arc<Manual>) -> Explanation {
    let script = parse(line, dialect);
    let mut commands = Vec::new();
    let unlisted = script.commands.len().saturating_sub(MAX_COMMANDS);
    let mut tests = tests(&script).peekable();
    for invocation in script.commands.iter().take(MAX_COMMANDS) {
        while let Some(words) = tests.next_if(|(start, _)| *start < invocation.span().start) {
            commands.extend(test(&words.1, dialect, context, manual).await);
        }
        commands.extend(part(invocation, dialect, context, manual).await);
    }
    for (_, words) in tests {
        commands.extend(test(&words, dialect, context, manual).await);
    }
    let message = |(piece, nothing_follows): (&str, bool)| {
        let piece = given::clipped(piece, MAX_PIECE);
        if nothing_follows { format!("nothing follows the `{piece}`") } else { format!("at `{piece}`") }
    };
    let errors = match script.too_deep {
        true => vec!["it nests too deep to be followed; look at its parts one by one".into()],
        false => {
            // several errors may be about the same text
            let mut messages: Vec<String> = script.errors.iter().map(|span| message(script.error_text(span))).collect();
            messages.dedup();
            messages.truncate(MAX_ERRORS);
            messages
        }
    };
    let redirects = redirections(&script.redirects);
    Explanation { cmd: line.to_string(), shell: dialect.name(), commands, unlisted, redirects, errors }
}

/// Returns the words of each `[[ ... ]]`, which is no program, with its position.
fn tests(script: &Script) -> impl Iterator<Item = (usize, Vec<String>)> {
    let mut all: Vec<_> = script
        .constructs
        .iter()
        .filter(|(construct, _)| *construct == Construct::DoubleBracket)
        .filter_map(|(_, span)| Some((span.start, script.text.get(span.clone())?)))
        .map(|(start, text)| {
            let inner = text.trim_start_matches("[[").trim_end_matches("]]");
            (start, inner.split_whitespace().map(str::to_owned).collect())
        })
        .take(MAX_COMMANDS)
        .collect();
    all.sort_by_key(|(start, _)| *start);
    all.into_iter()
}

/// Explains a `[[ ... ]]` from the manual of `test`, whose tests it has; `None` if there is none.
async fn test(words: &[String], dialect: Dialect, context: &ExecutionContext, manual: &Manual) -> Option<Part> {
    let program = Program::find("test", dialect, context.shell_of(dialect), &context.available_commands)?;
    let entry = manual.get_or_fetch(&program).await.ok()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Some(Part {
        name: "[[".into(),
        depth: 0,
        path: None,
        version: String::new(),
        title: entry.title.clone(),
        verb: None,
        flags: flags_of(&entry, &words),
        redirects: Vec::new(),
        problem: entry.problem.clone(),
    })
}

/// Explains one invocation; `None` if the text does not name the program (`$EDITOR file`).
async fn part(invocation: &Invocation, dialect: Dialect, context: &ExecutionContext, manual: &Manual) -> Option<Part> {
    let name = invocation.name()?;
    let depth = invocation.via.len();
    let shell = context.shell_of(dialect);
    // `./run.sh` is the user's own file
    let path = invocation.words[0].text.as_str();
    let is_own = path.contains('/') && !context.available_commands.contains_key(name);
    let empty = |problem: String| Part {
        name: if is_own { path.to_string() } else { name.to_string() },
        depth,
        path: None,
        version: String::new(),
        title: String::new(),
        verb: None,
        flags: Vec::new(),
        redirects: redirections(&invocation.redirects),
        problem: Some(problem),
    };
    let Some(program) = Program::find(name, dialect, shell, &context.available_commands) else {
        return Some(empty(
            if is_own { "no program of PATH: no manual is looked for" } else { "is not installed here" }.into(),
        ));
    };
    let words: Vec<&str> = invocation.args().iter().map(|word| word.text.as_str()).collect();
    let (entry, skip) = match manual.get_for(&program, &words).await {
        Ok(found) => found,
        Err(why) => return Some(empty(why.to_string())),
    };
    let mut flags = Vec::new();
    let verb = if skip == 0 { entry.described_verb(&words) } else { None };
    let verb = verb.map(|(name, text)| Verb { name: name.to_owned(), text: text.to_owned() });
    if skip > 1 {
        // flags before the subcommand belong to the program itself
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
        verb,
        flags,
        redirects: redirections(&invocation.redirects),
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
            text: found.option.map(|option| option.text_for(found.value.as_deref())).unwrap_or_default(),
            nearest: if found.known == Known::No { nearest(&found.flag) } else { Vec::new() },
            flag: found.flag,
            value: found.value,
            known: found.known,
        })
        .collect()
}

/// Prints the explanation on stderr: stdout is left for the command's own output.
///
/// # Errors
/// If the system gives no threads.
pub fn tell(line: &str, dialect: Dialect, context: &ExecutionContext, cx: &Cx) -> Result<(), Failure> {
    let explanation = {
        let _status = cx.ui.status("looking it up");
        cx.block_on(explain(line, dialect, context, &wire::manual(cx)))?
    };
    for line in lines(&explanation, |role, text| cx.ui.paint_err(role, text)) {
        cx.ui.tell(&cx.ui.fold(&format!("  {line}"), "      "));
    }
    Ok(())
}

/// The fewest bytes of a manual's text that may have been cut.
const MAY_BE_CUT: usize = 150;

/// Ends a text that the manual goes on with, or that was cut, at a sentence or with an ellipsis.
fn whole(text: &str) -> String {
    let text = text.trim_end();
    let ends = text.ends_with(['.', '!', '?', ')', '"', '\'']);
    let is_open = text.matches('(').count() > text.matches(')').count();
    if !text.ends_with(':') && !is_open && (ends || text.len() < MAY_BE_CUT) {
        return text.to_owned();
    }
    match text.rfind(". ").filter(|at| at * 2 > text.len()) {
        Some(at) if !text.ends_with(':') => text[..=at].to_owned(),
        _ => format!("{} …", text.trim_end_matches(',')),
    }
}

/// Returns the explanation as lines for a terminal.
pub fn lines(explanation: &Explanation, paint: impl Fn(Role, &str) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    for part in &explanation.commands {
        let margin = "  ".repeat(part.depth);
        let title = match &part.problem {
            Some(problem) => paint(Role::Caution, problem),
            None => paint(Role::Plain, &part.title),
        };
        lines.push(format!("{margin}{}  {title}", paint(Role::Command, &part.name)));
        let row =
            |written: &str, text: &str| format!("{margin}  {}  {text}", paint(Role::Accent, &format!("{written:<14}")));
        if let Some(verb) = &part.verb {
            lines.push(row(&verb.name, &paint(Role::Plain, &whole(&verb.text))));
        }
        for flag in &part.flags {
            let written = match &flag.value {
                Some(value) => format!("{} {value}", flag.flag),
                None => flag.flag.clone(),
            };
            let description = match flag.known {
                // an option that only the synopsis names has no text, but a name that tells something
                Known::Yes if flag.text.is_empty() => paint(Role::Plain, flag.usage.as_deref().unwrap_or_default()),
                Known::Yes => paint(Role::Plain, &whole(&flag.text)),
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
            lines.push(row(&written, &description));
        }
        lines.extend(part.redirects.iter().map(|one| row(&one.written, &paint(Role::Plain, &one.text))));
    }
    for one in &explanation.redirects {
        lines.push(format!("{}  {}", paint(Role::Command, &one.written), paint(Role::Plain, &one.text)));
    }
    if explanation.unlisted > 0 {
        lines.push(paint(Role::Dim, &format!("and {}", plural(explanation.unlisted, "more command"))));
    }
    for error in &explanation.errors {
        lines.push(paint(Role::Danger, &format!("syntax error: {error}")));
    }
    let is_empty = explanation.commands.is_empty() && explanation.redirects.is_empty();
    if is_empty && explanation.errors.is_empty() {
        lines.push(paint(Role::Dim, "no program is called"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn a_cut_text_ends_at_a_sentence_or_with_an_ellipsis() {
        let long = "word ".repeat(40);
        for (text, shown) in [
            ("File is of type c:", "File is of type c: …".to_owned()),
            ("print sizes", "print sizes".to_owned()),
            ("Do this. Show that.", "Do this. Show that.".to_owned()),
            (format!("{long}. And then the").as_str(), format!("{long}.")),
            (format!("{long}and the todo list of").as_str(), format!("{long}and the todo list of …")),
            ("a bracket (that is", "a bracket (that is …".to_owned()),
        ] {
            assert_eq!(whole(text), shown);
        }
    }
}
