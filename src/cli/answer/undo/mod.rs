//! Saves files before a command deletes, moves or changes them.
//!
//! `net`: undo for runs of `-x`. `keeper`: undo for the agent's tools. `preview`: prints what a command would change.
//! On systems without undo, `elsewhere` replaces them.

mod keeper;
mod net;
mod preview;

pub use keeper::keeper;
pub use net::{Forecast, Record, Undo, scope_lines};

use crate::{Cx, Failure, Settings};
use caro_undo::{Limits, Store};

/// Returns the store of saved files, with the limits of the settings.
///
/// # Errors
/// If this user has no folder for it.
pub fn store(settings: &Settings, cx: &Cx) -> Result<Store, Failure> {
    let data = cx.dirs.data.as_ref().ok_or_else(|| {
        Failure::no("nothing is kept for undo, because this user has no home folder").hint("set HOME to a folder")
    })?;
    let limits = Limits { copies: settings.undo_copies, total: settings.undo_total, age: settings.undo_age };
    Ok(Store::new(data.join("undo"), limits))
}
