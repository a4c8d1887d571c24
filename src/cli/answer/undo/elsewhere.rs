//! Stands in where files cannot be put back: keeps nothing.

use super::ask::Place;
use super::run::Run;
use crate::{Cx, Failure, Settings};
use caro_agent::tools::Keeper;
use std::path::Path;
use std::sync::Arc;

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
