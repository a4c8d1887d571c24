//! Finds data loss in databases: dropped tables, deletion of all rows, emptied stores.

use super::{Level, Reason, assess, reason};
use crate::Dialect;
use crate::effects::database::actions;
use crate::embedded::sql::Action;
use crate::parse::{Script, parse};
use std::ops::Range;

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        let client = matches!(command.name(), Some("sqlite3" | "sqlite" | "duckdb" | "psql" | "mysql" | "mariadb"));
        for word in if client { command.args() } else { &[] } {
            for line in word.text.lines().filter_map(shell_command) {
                let inner = assess(&parse(line, Dialect::Sh)).reasons.into_iter();
                found.extend(inner.map(|r| Reason { span: Some(word.span.clone()), ..r }));
            }
        }
        for (action, at) in actions(script, index) {
            let Some(word) = command.words.get(at) else { continue };
            if let Action::Destroys(what) = action {
                found.push(data_loss(what, &word.raw, &word.span));
            }
        }
    }
    found
}

/// Creates the reason for lost data.
pub(super) fn data_loss(what: String, token: &str, span: &Range<usize>) -> Reason {
    let why = format!("it loses {what}, and only a backup brings that back");
    reason(Level::Danger, "delete", token, span.clone(), why).with_scope(what)
}

/// Returns the command that a line of a database client passes to the shell: `.shell ls`, `\\! ls`.
fn shell_command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["\\!", ".shell ", ".system ", "system "].iter().find_map(|own| line.strip_prefix(own))
}
