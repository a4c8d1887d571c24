//! `caro completions SHELL`: the completion script, made from the definition of the arguments.

use super::args::Cli;
use super::{Cx, Exit, Outcome};
use clap::CommandFactory;

/// Arguments of `caro completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Prints the script.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "caro", &mut script);
    cx.ui.data(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Success)
}
