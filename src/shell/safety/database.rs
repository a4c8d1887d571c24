//! Data that is lost in a database: tables that are dropped, rows that are all deleted, stores that are emptied.

use super::{Level, Reason, assess, reason};
use crate::Dialect;
use crate::effects::database::deeds;
use crate::embedded::sql::Deed;
use crate::parse::{Script, parse};
use std::ops::Range;

pub(super) fn reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    for (index, command) in script.commands.iter().enumerate() {
        let client = matches!(command.name(), Some("sqlite3" | "sqlite" | "duckdb" | "psql" | "mysql" | "mariadb"));
        for word in if client { command.args() } else { &[] } {
            for line in word.text.lines().filter_map(to_the_shell) {
                let inner = assess(&parse(line, Dialect::Sh)).reasons.into_iter();
                found.extend(inner.map(|r| Reason { span: Some(word.span.clone()), ..r }));
            }
        }
        for (deed, at) in deeds(script, index) {
            let Some(word) = command.words.get(at) else { continue };
            if let Deed::Destroys(what) = deed {
                found.push(lost(what, &word.raw, &word.span));
            }
        }
    }
    found
}

/// Data that is lost, by the words for them.
pub(super) fn lost(what: String, token: &str, span: &Range<usize>) -> Reason {
    let why = format!("it loses {what}, and only a backup brings that back");
    reason(Level::Danger, "delete", token, span.clone(), why).reaching(what)
}

/// The command that a line of a client of a database hands to the shell: `.shell ls`, `\\! ls`.
fn to_the_shell(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["\\!", ".shell ", ".system ", "system "].iter().find_map(|own| line.strip_prefix(own))
}
