//! Prints a tree of the files that a command would create, change and delete.

use crate::Cx;
use crate::term::ui::{Role, in_line, plural, size};
use caro_undo::preview::{Item, Mark, Row, tree};
use std::path::Path;

/// Most lines of a tree.
const MAX_LINES: usize = 30;

/// Prints the tree; `source` says how the changes are known.
pub(super) fn show(items: &[Item], source: &str, cwd: &Path, cx: &Cx) {
    let ui = &cx.ui;
    let count = |mark: Mark| items.iter().filter(|item| item.mark == mark).count();
    let counts = [(Mark::Created, "created"), (Mark::Changed, "changed"), (Mark::Deleted, "deleted")];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(mark, _)| count(*mark) > 0)
        .map(|(mark, word)| format!("{} {word}", plural(count(*mark), "path")))
        .collect();
    let summary = if parts.is_empty() { "no file would change".to_owned() } else { parts.join(", ") };
    ui.tell(&format!(
        "  {} {}",
        ui.paint_err(Role::Accent, "preview:"),
        ui.paint_err(Role::Dim, &format!("{summary} ({source})"))
    ));
    let (rows, left) = tree(items, cwd, MAX_LINES);
    for row in &rows {
        let (role, sign) = role_and_sign(row.mark);
        let indent = "  ".repeat(row.depth);
        let name = ui.paint_err(role, &format!("{sign} {indent}{}", in_line(&row.name)));
        ui.tell(&format!("    {name}{}", ui.paint_err(Role::Dim, &sizes(row))));
    }
    if left > 0 {
        ui.tell(&ui.paint_err(Role::Dim, &format!("    ... {}", plural(left, "more line"))));
    }
}

fn role_and_sign(mark: Mark) -> (Role, char) {
    match mark {
        Mark::Created => (Role::Good, '+'),
        Mark::Changed => (Role::Caution, '~'),
        Mark::Deleted => (Role::Danger, '-'),
        Mark::Around => (Role::Plain, ' '),
    }
}

/// `3 files, 12.0 kB`, `1.2 kB to 0 bytes`.
fn sizes(row: &Row) -> String {
    let size = match (row.mark, row.before, row.after) {
        (Mark::Changed, Some(before), Some(after)) if before != after => format!("{} to {}", size(before), size(after)),
        (Mark::Created, _, Some(bytes)) | (Mark::Changed | Mark::Deleted, Some(bytes), _) => size(bytes),
        _ => String::new(),
    };
    let files = if row.files > 0 && row.mark == Mark::Deleted {
        plural(usize::try_from(row.files).unwrap_or(usize::MAX), "file")
    } else {
        String::new()
    };
    let parts: Vec<String> = [files, size].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!("  {}", parts.join(", ")) }
}
