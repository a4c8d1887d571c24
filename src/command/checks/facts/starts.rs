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

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_folder_is_not_searched_twice() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let all = "find docs . -type f -name '*.jpg'";
        assert_eq!(fix("list all pictures", all).as_deref(), Some("find . -type f -name '*.jpg'"));
        assert_eq!(fix("list the pictures in docs", all).as_deref(), Some("find docs -type f -name '*.jpg'"));
        assert_eq!(fix("list all", "find . src/ -type f").as_deref(), Some("find . -type f"));
        for right in
            ["find docs src -type f", "find . -type f", "find .. . -type f", "find /etc . -type f", "find docs -name ."]
        {
            assert_eq!(fix("list all", right), None, "{right}");
        }
    }
}
