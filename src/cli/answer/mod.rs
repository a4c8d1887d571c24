//! From a request to its command, and what is done with the command. Shared by several verbs.
//!
//! - [`ask`]: the recipe's form of a request; [`asker`], [`revise`]: further answers; [`present`]: how an answer is
//!   shown; [`deliver`]: shows or runs it; [`followup`]: the keys after it.
//! - [`look`]: the errors and risk of a command; [`explained`]: its programs, flags and redirections; [`rehearsal`]:
//!   what it would change.
//! - [`execute`]: `-x`; [`run`]: its parameters; [`undo`]: saves files first. [`log`]: the log of requests.

pub mod ask;
pub mod asker;
pub mod deliver;
pub mod execute;
pub mod explained;
pub mod followup;
pub mod log;
pub mod look;
pub mod present;
mod redirected;
pub mod rehearsal;
pub mod revise;
pub mod run;
#[cfg(unix)]
pub mod undo;
#[cfg(not(unix))]
#[path = "undo/elsewhere.rs"]
pub mod undo;
