//! `caro explain 'COMMAND'`: each program and flag of a command, in the words of the installed manuals. No model.

use crate::answer::explained::{explain, lines};
use crate::setup::wire;
use crate::term::given::{self};
use crate::{Cx, Exit, Failure, Outcome};
use caro_host::ExecutionContext;
use caro_shell::Dialect;
use clap::Parser;
use clap::builder::PossibleValuesParser;

/// Arguments of `caro explain`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command; `-` reads it from standard input
    #[arg(value_name = "COMMAND", required = true, allow_hyphen_values = true)]
    command: Vec<String>,
    /// How it is to be told.
    #[command(flatten)]
    asked: Asked,
}

/// Explains. Exit code 1 for what is no whole command.
///
/// # Errors
/// If there is no command to explain, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let (line, asked) = asked(args)?;
    let line = given::command(&line, "explain", "tar -xzf a.tgz")?;
    let context = ExecutionContext::detect(cx.dirs.cache.as_deref());
    let named = asked.shell.as_deref().and_then(|name| Dialect::ALL.iter().find(|(n, _)| *n == name));
    let dialect = named.map(|(_, dialect)| *dialect).or(cx.settings(&[])?.shell).unwrap_or(context.shell.dialect);
    let manual = wire::manual(cx);
    let explanation = cx.runtime()?.block_on(explain(&line, dialect, &context, &manual));
    if asked.json {
        cx.ui.document(&explanation)?;
    } else {
        lines(&explanation, |role, text| cx.ui.paint(role, text)).iter().try_for_each(|line| cx.ui.line(line))?;
    }
    Ok(if explanation.errors.is_empty() { Exit::Success } else { Exit::No })
}

/// How it is to be told.
#[derive(Debug, Clone, clap::Parser)]
#[command(no_binary_name = true)]
struct Asked {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// The shell it is written for, if not the one that called
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Dialect::ALL.map(|(name, _)| name)))]
    shell: Option<String>,
}

/// The command, and how it is to be told. Behind a command that stands in quotes flags are ours (`explain 'ls -l' --json`);
/// clap takes them for words of it.
fn asked(args: &Args) -> Result<(String, Asked), Failure> {
    let [first, rest @ ..] = &args.command[..] else { return Ok((String::new(), args.asked.clone())) };
    let is_quoted = first.trim().contains(char::is_whitespace) || first == given::STDIN;
    if !is_quoted || rest.first().is_none_or(|word| !word.starts_with("--")) {
        return Ok((args.command.join(" "), args.asked.clone()));
    }
    let more = Asked::try_parse_from(rest).map_err(|_| {
        Failure::usage(format!("what is `{}`? the command stands in quotes before it", rest.join(" ")))
            .hint("`caro explain --help` shows the flags; without quotes all words are the command's")
    })?;
    let shell = more.shell.or(args.asked.shell.clone());
    Ok((first.clone(), Asked { json: more.json || args.asked.json, shell }))
}
