//! `sort -u` for "without duplicates, in the original order": what is sorted has another one.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it, &Words::of(it.request)).into_iter().collect()
}

/// `sort | uniq` for "without duplicates, in the original order".
fn check_script(it: &CheckContext, words: &Words) -> Option<Finding> {
    const SAID: [&str; 14] = [
        "changing the order",
        "changing their order",
        "change the order",
        "change their order",
        "order unchanged",
        "original order",
        "same order",
        "keep the order",
        "keeping the order",
        "keep order",
        "preserve the order",
        "preserving the order",
        "preserving order",
        "without sorting",
    ];
    if !words.contains_phrase(&SAID) {
        return None;
    }
    let sort = it.script.commands.iter().find(|c| c.name() == Some("sort"))?;
    let program = sort.words.first()?;
    let unique = sort.args().iter().any(|w| w.text == "-u");
    let uniq = sort.feeds.first().and_then(|at| it.script.commands.get(*at)).filter(|c| c.name() == Some("uniq"));
    let files: Vec<&Word> = sort.args().iter().filter(|w| w.text != "-u").collect();
    let plain = files.iter().all(|w| !w.text.starts_with('-')) && uniq.is_none_or(|uniq| uniq.args().is_empty());
    let names: String = files.iter().map(|w| format!(" {}", w.raw)).collect();
    let both: Vec<Word> = sort.words.iter().chain(uniq.iter().flat_map(|uniq| &uniq.words)).cloned().collect();
    let keeps =
        if plain { Edits::new(it.script).span(&both, &format!("awk '!seen[$0]++'{names}")).done() } else { None };
    let why = "sort gives the lines another order: awk '!seen[$0]++' keeps the first of each";
    (unique || uniq.is_some()).then(|| warning("order-lost", program, why, keeps))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::check;

    #[test]
    fn lines_that_are_to_stay_in_order_are_not_sorted() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        let asked = "remove repeated lines of a.txt, keeping the order";
        let right = "awk '!seen[$0]++' a.txt";
        for wrong in ["sort -u a.txt", "sort a.txt | uniq"] {
            assert_eq!(fix(asked, wrong).as_deref(), Some(right), "{wrong}");
        }
        assert_eq!(findings(check, asked, "sort a.txt | uniq -c").len(), 1);
        for (request, right) in [(asked, right), (asked, "uniq a.txt"), ("unique lines of a.txt", "sort -u a.txt")] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }
}
