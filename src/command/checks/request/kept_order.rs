//! Finds `sort -u` for "without duplicates, in the original order".

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Word};

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let words = Words::of(cx.request);
    const PHRASES: &str = "changing the order|changing their order|change the order|change their order|\
        order unchanged|original order|same order|keep the order|keeping the order|keep order|preserve the order|\
        preserving the order|preserving order|without sorting";
    if !words.contains_phrase(PHRASES) {
        return None;
    }
    let sort = cx.script.commands.iter().find(|c| c.name() == Some("sort"))?;
    let program = sort.words.first()?;
    let is_unique = sort.args().iter().any(|w| w.text == "-u");
    let uniq = sort.feeds.first().and_then(|at| cx.script.commands.get(*at)).filter(|c| c.name() == Some("uniq"));
    let files: Vec<&Word> = sort.args().iter().filter(|w| w.text != "-u").collect();
    let is_plain = files.iter().all(|w| !w.text.starts_with('-')) && uniq.is_none_or(|uniq| uniq.args().is_empty());
    let names: String = files.iter().map(|w| format!(" {}", w.raw)).collect();
    let both: Vec<Word> = sort.words.iter().chain(uniq.iter().flat_map(|uniq| &uniq.words)).cloned().collect();
    let awk = format!("awk '!seen[$0]++'{names}");
    let fix = if is_plain { Edits::new(cx.script).replace_span(&both, &awk).apply() } else { None };
    let why = "sort gives the lines another order: awk '!seen[$0]++' keeps the first of each";
    (is_unique || uniq.is_some()).then(|| warning("order-lost", program, why, fix))
}
