//! `tail -f log | tail -n 20`: what waits for the end of a stream that has none; and a stream where none was asked for.

use super::CheckContext;
use super::edit::{Edits, is_cluster, warning, without};
use super::words::Words;
use crate::shell::asked::only_looks;
use crate::shell::{Finding, Invocation};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).or_else(|| unasked(it)).into_iter().collect()
}

fn follows(tail: &Invocation) -> bool {
    tail.name() == Some("tail") && (tail.has_option(Some('f'), "follow") || tail.has_option(Some('F'), "follow"))
}

/// `tail -f error.log | sed ...` for "show error.log with other dates": what ends is asked for.
fn unasked(it: &CheckContext) -> Option<Finding> {
    const STAYS: [&str; 36] = [
        "follow",
        "follows",
        "following",
        "live",
        "watch",
        "watching",
        "monitor",
        "monitoring",
        "stream",
        "streaming",
        "real time",
        "realtime",
        "continuously",
        "continuous",
        "as they",
        "as it",
        "as soon",
        "when",
        "whenever",
        "until",
        "soon",
        "next",
        "keep",
        "new",
        "incoming",
        "tail",
        "tailing",
        "refresh",
        "updating",
        "growing",
        "arrive",
        "arriving",
        "wait",
        "while",
        "ongoing",
        "stays",
    ];
    let words = Words::of(it.request);
    // in words that are known here: what another language asks for is not known
    let looks = only_looks(it.request) || words.say(&["last"]);
    let text = &it.script.text;
    let tail = it.script.commands.iter().find(|c| follows(c) && !c.remote && c.via.is_empty())?;
    if !looks || words.say(&STAYS) || text.replace("&&", "").contains('&') || text.contains("/dev/") {
        return None;
    }
    let flag = tail.args().iter().find(|w| is_cluster(w) && w.raw.contains(['f', 'F']))?;
    let left = without(&without(&flag.raw, 'f'), 'F');
    let edits = Edits::new(it.script).replace(flag, &left);
    // without a number of lines it was to begin with, the whole file is meant
    let edits = match tail.args() {
        [_, _] if left.is_empty() => edits.replace(tail.words.first()?, "cat"),
        args if args.iter().any(|w| w.text.starts_with("-n") || w.text.starts_with("--lines")) => edits,
        _ => return None,
    };
    let why = "tail -f does not end, and nobody asked for what is still to come";
    Some(warning("follows-unasked", flag, why, edits.done()))
}

fn of_script(it: &CheckContext) -> Option<Finding> {
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
    fn nobody_waits_who_did_not_ask_to() {
        let fix = |request: &str, command: &str| findings(check, request, command).into_iter().find_map(|f| f.fix);
        assert_eq!(
            fix("print e.log without its dates", "tail -f e.log | cut -c9-").as_deref(),
            Some("cat e.log | cut -c9-")
        );
        assert_eq!(fix("the last 5 lines of e.log", "tail -n 5 -f e.log").as_deref(), Some("tail -n 5 e.log"));
        for asked in [
            "follow e.log",
            "watch e.log for errors",
            "errors of e.log as they come in",
            "verfolge e.log",
            "",
            "tell me as soon as ERROR is in e.log",
        ] {
            assert_eq!(fix(asked, "tail -f e.log"), None, "{asked}");
        }
        for right in ["timeout 10 tail -f e.log", "docker run -d ubuntu tail -f /dev/null", "./server & tail -f e.log"]
        {
            assert_eq!(fix("show e.log", right), None, "{right}");
        }
        assert_eq!(fix("show e.log", "tail -f -c 100 e.log"), None);
    }

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
