//! The stand-in on systems without Unix sockets: there is no resident, and every answer is computed in the calling
//! process.
//!
//! Windows has named pipes; they are not used because they could not be tested here.

use super::{Absent, Ended, Open, Setup, Status};
use caro_model::{Completion, Flow, Limits, Model, ModelError, Request};
use std::path::Path;
use std::sync::Arc;

/// Never constructed: there is no resident here.
#[derive(Debug)]
pub enum Client {}

impl Client {
    /// Returns the resident's process id.
    pub fn pid(&self) -> u32 {
        match *self {}
    }

    /// Returns the reason that the resident failed.
    pub fn failed(&self) -> Option<&'static str> {
        match *self {}
    }
}

impl Model for Client {
    fn id(&self) -> &str {
        match *self {}
    }

    fn limits(&self) -> Limits {
        match *self {}
    }

    fn count(&self, _text: &str) -> usize {
        match *self {}
    }

    fn generate(&self, _request: &Request, _on: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, ModelError> {
        match *self {}
    }
}

/// Fails, as there is no resident here.
///
/// # Errors
/// Always.
pub fn attach(_setup: &Setup, _open: Box<Open>) -> Result<Client, Absent> {
    Err(Absent::System)
}

/// Never constructed: there is no resident here.
#[derive(Debug)]
pub enum Hosted {}

/// Fails, as there is no resident here.
///
/// # Errors
/// Always.
pub fn host(_setup: &Setup, _model: Arc<dyn Model>) -> Result<Hosted, Absent> {
    Err(Absent::System)
}

/// Returns an empty list.
///
/// # Errors
/// Never.
pub fn list(_folder: &Path) -> Result<Vec<Result<Status, Option<u32>>>, Absent> {
    Ok(Vec::new())
}

/// Ends nothing and returns an empty list.
///
/// # Errors
/// Never.
pub fn stop(_folder: &Path) -> Result<Vec<Ended>, Absent> {
    Ok(Vec::new())
}

/// Fails: private folders are made on Unix alone.
///
/// # Errors
/// Always.
pub fn make_private(_folder: &Path) -> Result<(), Absent> {
    Err(Absent::System)
}

/// Returns `None`: the memory is not measured here.
pub fn room(_model: u64) -> Option<Room> {
    None
}

/// The machine's available memory, and the memory that a model needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that can be had without swapping.
    pub available: u64,
    /// Bytes that should be available for the model to be kept loaded.
    pub wanted: u64,
}
