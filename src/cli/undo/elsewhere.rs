//! `caro undo` on systems whose files it does not know how to put back.

use super::ask::Place;
use super::run::Run;
use super::{Cx, Failure, Outcome, Settings};
use caro_agent::tools::Keeper;
use std::path::Path;
use std::sync::Arc;

/// Put back what the last command that caro ran has deleted, moved or changed
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Says that there is none.
///
/// # Errors
/// Always.
pub fn run(_: &Args, _: &Cx) -> Outcome {
    Err(Failure::no("there is no undo on this system").hint("on Linux, macOS and the BSDs there is"))
}

/// Nothing is kept for the agent.
pub fn keeper(_: &Settings, _: &Cx, _: &Path) -> Option<Arc<dyn Keeper>> {
    None
}

/// Nothing is counted.
pub fn counted(_: &str, _: &Place) -> Vec<String> {
    Vec::new()
}

/// There is nothing around a run.
#[derive(Debug)]
pub struct Net;

/// A command that was looked at.
#[derive(Debug)]
pub struct Looked;

/// The record of it.
#[derive(Debug)]
pub struct Caught;

impl Net {
    /// There is none.
    ///
    /// # Errors
    /// If there is to be a trash.
    pub fn new(run: &Run<'_>) -> Result<Self, Failure> {
        if run.trash {
            return Err(
                Failure::usage("there is no trash on this system that caro knows").hint("without --trash it runs")
            );
        }
        Ok(Self)
    }

    /// Looks at nothing.
    pub fn look(&self, _: &str, _: &Run<'_>) -> Looked {
        Looked
    }

    /// Tells nothing.
    pub fn tell(&self, _: &Looked, _: &Run<'_>) {}

    /// Nothing is kept.
    pub fn covers(&self, _: &Looked) -> bool {
        false
    }

    /// Keeps nothing.
    ///
    /// # Errors
    /// Never.
    pub fn cast(&self, _: Looked, _: &str, _: &Run<'_>) -> Result<Caught, Failure> {
        Ok(Caught)
    }
}

impl Caught {
    /// There is nothing to let go of.
    pub fn dropped(self) {}

    /// Takes note of nothing.
    pub fn ended(self, _: i32, _: &Run<'_>) {}
}
