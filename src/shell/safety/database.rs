//! Data that is lost in a database: tables that are dropped, rows that are all deleted, stores that are emptied.

use super::{Level, Reason, reason};
use crate::effects::database::deeds;
use crate::embedded::sql::Deed;
use crate::parse::Script;

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        for (deed, at) in deeds(script, index) {
            let Some(word) = command.words.get(at) else { continue };
            if let Deed::Destroys(what) = deed {
                let why = format!("it loses {what}, and only a backup brings that back");
                found.push(reason(Level::Danger, "delete", &word.raw, word.span.clone(), why).reaching(what));
            }
        }
    }
    found
}
