//! Keeps files before a command deletes, moves or changes them.
//!
//! `net`: what happens around a run of `-x`. `keeper`: the same for the agent's shell. `preview`: how what it would change is shown.
//! Where nothing can be put back, `elsewhere` stands in their place.

mod keeper;
mod net;
mod preview;

pub use keeper::keeper;
pub use net::{Caught, Looked, Net, counted};

use crate::{Cx, Failure, Settings};
use caro_undo::{Limits, Store};

/// The limits of what is kept for undo.
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
