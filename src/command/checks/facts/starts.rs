//! Finds `find docs . -type f`, which finds the content of `docs` twice, as it is below `.` too.

use super::edit::{Edits, warning};
use super::{CheckContext, single_find, starting_points};
use caro_shell::{Finding, Word};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let search = single_find(cx.script)?;
    let starts: Vec<&Word> = starting_points(search).collect();
    let [a, b] = starts[..] else { return None };
    let is_here = |w: &Word| matches!(w.text.as_str(), "." | "./");
    let is_inside = |w: &Word| !w.text.starts_with(['/', '~', '.']) && !w.expands && !w.text.is_empty();
    let (here, inside) = match (is_here(a), is_here(b)) {
        (true, false) if is_inside(b) => (a, b),
        (false, true) if is_inside(a) => (b, a),
        _ => return None,
    };
    let is_meant = cx.request.contains(inside.text.trim_end_matches('/'));
    let fix = Edits::new(cx.script).replace(if is_meant { here } else { inside }, "").apply();
    let why = format!("{} is below the other folder, and what is in it comes twice", inside.text);
    Some(warning("found-twice", inside, why, fix))
}
