//! Reports what `caro memory repair` and the like have saved of damaged files.

use crate::term::ui::plural;
use crate::{Cx, Exit, Outcome};
use caro_database::repair::{Repaired, Saved};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The counted tables of a file, each with the noun for its entries.
pub type Entries = &'static [(&'static str, &'static str)];

/// Prints the result for each file.
///
/// # Errors
/// If stdout cannot be written.
pub fn tell(cx: &Cx, json: bool, entries: Entries, files: &[(PathBuf, Repaired)]) -> Outcome {
    if json {
        let all: Vec<Value> = files.iter().map(|(file, repaired)| document(file, repaired)).collect();
        cx.ui.document(&json!({ "repaired": all }))?;
        return Ok(Exit::Success);
    }
    for (file, repaired) in files {
        let file = file.display();
        match repaired {
            Repaired::Nothing => cx.ui.note(&format!("{file}: there is no such file yet")),
            Repaired::Sound => cx.ui.data(&format!("{file}: nothing is wrong with it"))?,
            Repaired::Saved(saved) => {
                let aside = saved.aside.display();
                cx.ui.data(&format!("{file}: saved {}; the damaged file is {aside}", saved_counts(saved, entries)))?;
            }
        }
    }
    Ok(Exit::Success)
}

/// Formats the number of saved entries: `3 notes and 1 exchange`.
fn saved_counts(saved: &Saved, entries: Entries) -> String {
    let known = entries.iter().filter(|(table, _)| saved.entries.iter().any(|(name, _)| name == table));
    let counts: Vec<String> =
        known.map(|(table, what)| plural(usize::try_from(saved.of(table)).unwrap_or(usize::MAX), what)).collect();
    counts.join(" and ")
}

fn document(file: &Path, repaired: &Repaired) -> Value {
    match repaired {
        Repaired::Nothing => json!({ "file": file, "state": "missing" }),
        Repaired::Sound => json!({ "file": file, "state": "sound" }),
        Repaired::Saved(saved) => {
            let entries: serde_json::Map<String, Value> =
                saved.entries.iter().map(|(table, count)| (table.clone(), (*count).into())).collect();
            json!({ "file": file, "state": "saved", "entries": entries, "damaged": saved.aside })
        }
    }
}
