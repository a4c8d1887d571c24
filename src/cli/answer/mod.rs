//! A request on its way to a command, and what is done with that command. No verb is named here: several of them answer.
//!
//! - [`ask`]: a request in the recipe's form; [`asker`], [`revise`]: further answers; [`present`]: an answer as it is shown;
//!   [`deliver`]: on its way to the person; [`followup`]: the keys after it.
//! - [`look`]: what is wrong with a command and how dangerous it is; [`explained`]: what its words mean; [`rehearsal`]: what it
//!   would change.
//! - [`execute`]: `-x`; [`run`]: what is run and where; [`undo`]: what is kept before. [`log`]: what was asked for, where that is kept.

pub mod ask;
pub mod asker;
pub mod deliver;
pub mod execute;
pub mod explained;
pub mod followup;
pub mod log;
pub mod look;
pub mod present;
pub mod rehearsal;
pub mod revise;
pub mod run;
#[cfg(unix)]
pub mod undo;
#[cfg(not(unix))]
#[path = "undo/elsewhere.rs"]
pub mod undo;
