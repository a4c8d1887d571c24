//! Long-lived processes that answer others, on this machine alone.
//!
//! - [`resident`]: the process that keeps a model's weights ready between two calls of the program.
//!
//! It passes requests on and knows nothing of commands, manuals or the caller's directory: those stay with the caller.
//! Besides the model's own downloads and remote servers, only this module opens sockets.

pub mod resident;
