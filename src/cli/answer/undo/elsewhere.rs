//! Replaces undo on systems without it: nothing is saved.

use super::ask::Place;
use super::run::Run;
use crate::{Cx, Failure, Settings};
use caro_agent::tools::Keeper;
use std::path::Path;
use std::sync::Arc;

/// Returns no keeper for the agent.
pub fn keeper(_: &Settings, _: &Cx, _: &Path) -> Option<Arc<dyn Keeper>> {
    None
}

/// Returns no lines: nothing is counted.
pub fn scope_lines(_: &str, _: &Place) -> Vec<String> {
    Vec::new()
}

/// Undo, which saves nothing here.
#[derive(Debug)]
pub struct Undo;

/// The expected changes of a command, which are unknown here.
#[derive(Debug)]
pub struct Forecast;

/// The record of a command that runs, which is empty here.
#[derive(Debug)]
pub struct Record;

impl Undo {
    /// Creates it.
    ///
    /// # Errors
    /// If `--trash` is given.
    pub fn new(run: &Run<'_>) -> Result<Self, Failure> {
        if run.trash {
            return Err(
                Failure::usage("there is no trash on this system that caro knows").hint("without --trash it runs")
            );
        }
        Ok(Self)
    }

    /// Examines nothing.
    pub fn forecast(&self, _: &str, _: &Run<'_>) -> Forecast {
        Forecast
    }

    /// Prints nothing.
    pub fn report(&self, _: &Forecast, _: &Run<'_>) {}

    /// False: nothing is saved.
    pub fn covers(&self, _: &Forecast) -> bool {
        false
    }

    /// Saves nothing.
    ///
    /// # Errors
    /// Never.
    pub fn save(&self, _: Forecast, _: &str, _: &Run<'_>) -> Result<Record, Failure> {
        Ok(Record)
    }
}

impl Record {
    /// Discards nothing.
    pub fn discard(self) {}

    /// Records nothing.
    pub fn finish(self, _: i32, _: &Run<'_>) {}
}
