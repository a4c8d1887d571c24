//! `mkdir -p data/a/b/c` for "folders a, b and c in data": one within the other, where they are to be side by side.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::bare;
use crate::shell::{Finding, quote};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    nested(it).into_iter().collect()
}

fn nested(it: &CheckContext) -> Option<Finding> {
    let list = named(it.request)?;
    let command = it.script.commands.iter().find(|c| c.name() == Some("mkdir"))?;
    let mut operands = command.operands();
    let path = operands.next().filter(|w| operands.next().is_none() && !w.expands && !w.glob)?;
    let parts: Vec<&str> = path.value.as_deref()?.trim_end_matches('/').split('/').collect();
    let at = parts.iter().position(|part| *part == list[0])?;
    let (base, rest) = parts.split_at(at);
    // `data/a/data/b`: with the folder around them again and again
    let names: Vec<&str> = rest.iter().filter(|part| !base.contains(part)).copied().collect();
    if names != list {
        return None;
    }
    let side: Vec<String> = names.iter().map(|name| quote(&[base, &[*name]].concat().join("/"), it.dialect)).collect();
    let fix = Edits::new(it.script).replace(path, &side.join(" ")).done();
    Some(warning("nested-folders", path, "they are to be side by side, and this makes one within the other", fix))
}

/// The names of "a, b and c"; `None` of a request with no such list, or with words that put one into the other.
fn named(request: &str) -> Option<Vec<&str>> {
    const WITHIN: [&str; 5] = ["nested", "within each", "inside each", "one inside", "path"];
    let lower = request.to_lowercase();
    if WITHIN.iter().any(|said| lower.contains(said)) {
        return None;
    }
    let words: Vec<&str> = request.split_whitespace().collect();
    let and = words.iter().rposition(|w| matches!(*w, "and" | "&"))?;
    let mut first = and.checked_sub(1)?;
    while first > 0 && words[first - 1].ends_with(',') {
        first -= 1;
    }
    let names = words[first..and].iter().chain(words.get(and + 1));
    let names: Vec<&str> = names.map(|w| bare(w)).collect();
    (names.len() > 1 && names.iter().all(|name| !name.is_empty() && !name.contains('/'))).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn folders_of_a_list_stand_side_by_side() {
        let fix =
            |request: &str, command: &str| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let three = "create directories a, b and c inside data";
        for wrong in ["mkdir -p data/a/data/b/data/c", "mkdir -p data/a/b/c"] {
            assert_eq!(fix(three, wrong).as_deref(), Some("mkdir -p data/a data/b data/c"), "{wrong}");
        }
        assert_eq!(fix("make folders red and blue", "mkdir -p red/blue").as_deref(), Some("mkdir -p red blue"));
        for (request, right) in [
            (three, "mkdir -p data/a data/b data/c"),
            (three, "mkdir -p data/{a,b,c}"),
            ("create the nested folders a, b and c", "mkdir -p a/b/c"),
            ("make a folder a/b/c", "mkdir -p a/b/c"),
            ("make the folder x and go there", "mkdir -p x"),
            ("", "mkdir -p a/b/c"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }
}
