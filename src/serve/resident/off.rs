//! Systems without Unix sockets: there is no resident, and every answer is computed in the calling process.
//!
//! Windows would have named pipes; their client and server need calls that nobody here could try, so they are left out.

use super::{Absent, Ended, Open, Setup, Status};
use caro_model::{Completion, Flow, Limits, Model, ModelError, Request};
use std::path::Path;
use std::sync::Arc;

/// Never made.
#[derive(Debug)]
pub enum Client {}

impl Client {
    /// The resident's process.
    pub fn pid(&self) -> u32 {
        match *self {}
    }

    /// Why the resident answers no more.
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

/// See the Unix version.
///
/// # Errors
/// Always.
pub fn attach(_setup: &Setup, _open: Box<Open>) -> Result<Client, Absent> {
    Err(Absent::System)
}

/// Never made.
#[derive(Debug)]
pub enum Hosted {}

/// See the Unix version.
///
/// # Errors
/// Always.
pub fn host(_setup: &Setup, _model: Arc<dyn Model>) -> Result<Hosted, Absent> {
    Err(Absent::System)
}

/// None.
///
/// # Errors
/// Never.
pub fn list(_folder: &Path) -> Result<Vec<Result<Status, Option<u32>>>, Absent> {
    Ok(Vec::new())
}

/// None to end.
///
/// # Errors
/// Never.
pub fn stop(_folder: &Path) -> Result<Vec<Ended>, Absent> {
    Ok(Vec::new())
}

/// See the Unix version.
///
/// # Errors
/// Always.
pub fn make_private(_folder: &Path) -> Result<(), Absent> {
    Err(Absent::System)
}

/// Not told here.
pub fn room(_model: u64) -> Option<Room> {
    None
}

/// See the Unix version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes that can be had without swapping.
    pub available: u64,
    /// Bytes that should be, so that the model can be kept ready.
    pub wanted: u64,
}
