//! `wc -l *.py | awk '{s+=$1} END {print s}'` adds wc's own total to the sum.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::Finding;
use caro_shell::parse::How;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let counter = commands.iter().find(|c| c.name() == Some("wc"))?;
    let [flag, files @ ..] = counter.args() else { return None };
    if !matches!(flag.text.as_str(), "-l" | "-c" | "-w" | "-m") || files.iter().any(|w| w.text.starts_with('-')) {
        return None;
    }
    let outer = counter.inside.filter(|i| i.how == How::Wrapped).map(|i| &commands[i.command]);
    let many = match outer.and_then(|o| o.name()) {
        // with \; every file has a wc of its own, and none prints a total
        Some("find") => outer?.words.last().is_some_and(|w| w.text == "+"),
        Some("xargs") => !outer?.args().iter().any(|w| {
            ["-n", "-L", "-l", "-I", "-i", "-P", "--max-args", "--max-lines", "--replace"]
                .iter()
                .any(|o| w.text.starts_with(o))
        }),
        Some(_) => false,
        None => files.len() > 1 || files.iter().any(|w| w.glob),
    };
    let adder =
        it.script.reader(outer.unwrap_or(counter)).filter(|c| matches!(c.name(), Some("awk" | "gawk" | "mawk")))?;
    let [program] = adder.args() else { return None };
    if !many || !sums_first(program.value.as_deref()?) {
        return None;
    }
    let names: String = files.iter().map(|w| format!(" {}", w.raw)).collect();
    let fix = Edits::new(it.script)
        .span(&counter.words, &format!("cat{names}"))
        .span(&adder.words, &format!("wc {}", flag.raw))
        .done();
    Some(warning("double-count", flag, "wc prints a total of its own for several files, and the sum has it twice", fix))
}

/// True for `{ s += $1 } END { print s }`, whatever the name and the blanks.
fn sums_first(program: &str) -> bool {
    let program: String = program.chars().filter(|c| !c.is_whitespace() && *c != ';').collect();
    let Some((name, rest)) = program.strip_prefix('{').and_then(|p| p.split_once("+=$1}END{print")) else {
        return false;
    };
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && rest == format!("{name}}}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_total_is_not_added_to_what_it_sums() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        const SUM: &str = "awk '{s+=$1} END {print s}'";
        assert_eq!(
            fix(&format!("find . -exec wc -l {{}} + | {SUM}")).as_deref(),
            Some("find . -exec cat {} + | wc -l")
        );
        assert_eq!(fix(&format!("wc -w a b | {SUM}")).as_deref(), Some("cat a b | wc -w"));
        assert_eq!(
            fix(&format!("find . -print0 | xargs -0 wc -c | {SUM}")).as_deref(),
            Some("find . -print0 | xargs -0 cat | wc -c")
        );
        for right in [
            format!("find . -exec wc -l {{}} \\; | {SUM}"),
            format!("find . | xargs -n 1 wc -l | {SUM}"),
            format!("wc -l a | {SUM}"),
            format!("wc -l *.py | grep -v total | {SUM}"),
            "wc -l *.py | awk '$2 != \"total\" {s+=$1} END {print s}'".into(),
            format!("du -k * | {SUM}"),
        ] {
            assert_eq!(fix(&right), None, "{right}");
        }
    }
}
