//! `caro explain 'COMMAND'`: explains each program and flag of a command with text from the installed manuals,
//! without the model.

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
    asked: OutputFlags,
}

/// Explains a command. The exit code is 1 if it has syntax errors.
///
/// # Errors
/// If there is no command to explain, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let (line, flags) = split_flags(args)?;
    let line = given::command(&line, "explain", "tar -xzf a.tgz")?;
    let context = ExecutionContext::detect(cx.dirs.cache.as_deref());
    let named = flags.shell.as_deref().and_then(|name| Dialect::ALL.iter().find(|(n, _)| *n == name));
    let dialect = named.map(|(_, dialect)| *dialect).or(cx.settings(&[])?.shell).unwrap_or(context.shell.dialect);
    let manual = wire::manual(cx);
    let explanation = cx.block_on(explain(&line, dialect, &context, &manual))?;
    if flags.json {
        cx.ui.document(&explanation)?;
    } else {
        let is_terminal = cx.ui.out_is_terminal();
        let folded = |line: String| if is_terminal { cx.ui.fold(&line, "      ") } else { line };
        let lines = lines(&explanation, |role, text| cx.ui.paint(role, text));
        lines.into_iter().try_for_each(|line| cx.ui.line(&folded(line)))?;
    }
    Ok(if explanation.errors.is_empty() { Exit::Success } else { Exit::No })
}

/// How it is to be told.
#[derive(Debug, Clone, clap::Parser)]
#[command(no_binary_name = true)]
struct OutputFlags {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// The shell it is written for, if not the one that called
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Dialect::ALL.map(|(name, _)| name)))]
    shell: Option<String>,
}

/// Returns the command and the flags of `explain`. Flags after a quoted command are ours (`explain 'ls -l' --json`),
/// but clap takes them for words of the command.
fn split_flags(args: &Args) -> Result<(String, OutputFlags), Failure> {
    let [first, rest @ ..] = &args.command[..] else { return Ok((String::new(), args.asked.clone())) };
    let is_quoted = first.trim().contains(char::is_whitespace) || first == given::STDIN;
    if !is_quoted || rest.first().is_none_or(|word| !word.starts_with("--")) {
        return Ok((args.command.join(" "), args.asked.clone()));
    }
    let more = OutputFlags::try_parse_from(rest).map_err(|_| {
        Failure::usage(format!("what is `{}`? the command stands in quotes before it", rest.join(" ")))
            .hint("`caro explain --help` shows the flags; without quotes all words are the command's")
    })?;
    let shell = more.shell.or(args.asked.shell.clone());
    Ok((first.clone(), OutputFlags { json: more.json || args.asked.json, shell }))
}
