//! `caro undo` on systems where undo is not supported.

use crate::{Cx, Failure, Outcome};

/// Put back what the last command that caro ran here has deleted, moved or changed
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Fails with a message that there is no undo on this system.
///
/// # Errors
/// Always.
pub fn run(_: &Args, _: &Cx) -> Outcome {
    Err(Failure::no("there is no undo on this system").hint("on Linux, macOS and the BSDs there is"))
}
