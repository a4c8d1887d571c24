//! Finds `wc -l *.py | awk '{s+=$1} END {print s}'`, which adds wc's own total to the sum.

use super::CheckContext;
use super::awk::{is_awk, summed_field};
use super::edit::{Edits, warning};
use caro_shell::Finding;
use caro_shell::parse::How;

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let counter = commands.iter().find(|c| c.name() == Some("wc"))?;
    let [flag, files @ ..] = counter.args() else { return None };
    if !matches!(flag.text.as_str(), "-l" | "-c" | "-w" | "-m") || files.iter().any(|w| w.text.starts_with('-')) {
        return None;
    }
    let outer = counter.inside.filter(|i| i.how == How::Wrapped).map(|i| &commands[i.command]);
    let prints_total = match outer.and_then(|o| o.name()) {
        // with `\;` each file has a `wc` of its own, which prints no total
        Some("find") => outer?.words.last().is_some_and(|w| w.text == "+"),
        Some("xargs") => !outer?.args().iter().any(|w| {
            ["-n", "-L", "-l", "-I", "-i", "-P", "--max-args", "--max-lines", "--replace"]
                .iter()
                .any(|o| w.text.starts_with(o))
        }),
        Some(_) => false,
        None => files.len() > 1 || files.iter().any(|w| w.glob),
    };
    let adder = cx.script.reader(outer.unwrap_or(counter)).filter(|c| is_awk(c))?;
    let [program] = adder.args() else { return None };
    let (field, is_alone) = summed_field(program.value.as_deref()?)?;
    if !prints_total || field != 1 {
        return None;
    }
    let names: String = files.iter().map(|w| format!(" {}", w.raw)).collect();
    let edits = Edits::new(cx.script).replace_span(&counter.words, &format!("cat{names}"));
    let edits = edits.replace_span(&adder.words, &format!("wc {}", flag.raw));
    let fix = if is_alone { edits.apply() } else { None };
    Some(warning("double-count", flag, "wc prints a total of its own for several files, and the sum has it twice", fix))
}
