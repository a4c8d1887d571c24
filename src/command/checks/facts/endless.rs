//! `tail -f log | tail -n 20`: what waits for the end of a stream that has none.

use super::CheckContext;
use super::edit::warning;
use caro_shell::{Finding, Invocation};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn follows(tail: &Invocation) -> bool {
    tail.name() == Some("tail") && (tail.has_option(Some('f'), "follow") || tail.has_option(Some('F'), "follow"))
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    const WAITS: [&str; 4] = ["tail", "sort", "wc", "tac"];
    let commands = &it.script.commands;
    let tail = commands.iter().find(|c| follows(c))?;
    let waits = it.script.reader(tail).filter(|c| c.name().is_some_and(|n| WAITS.contains(&n)))?;
    let program = waits.words.first()?;
    let why = format!("tail -f does not end, and {} says nothing before the end", program.raw);
    // how many of the last lines to begin with is tail's own option
    let (first, last) = (tail.words.first()?, waits.words.last()?);
    let (file, options) = (it.script.text.get(first.span.end..)?, it.script.text.get(program.span.end..last.span.end)?);
    let file = file.split('|').next()?.trim();
    let lines = waits.args().iter().all(|w| w.text.starts_with('-') || w.text.bytes().all(|b| b.is_ascii_digit()));
    let whole = commands.len() == 2 && waits.name() == Some("tail") && lines && tail.args().len() == 2;
    Some(warning("no-end", program, why, whole.then(|| format!("tail{options} {file}"))))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn what_does_not_end_has_no_last_lines() {
        let fix = |command: &str| findings(check, "", command).into_iter().map(|f| f.fix).next();
        assert_eq!(fix("tail -f a.log | tail -n 20"), Some(Some("tail -n 20 -f a.log".into())));
        assert_eq!(fix("tail -f a.log | sort"), Some(None));
        for right in ["tail -n 20 -f a.log", "tail -f a.log | grep x", "tail a.log | sort", "tail -f a.log | head -n 3"]
        {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
