//! Interprets the exit status of a command line: decides if it succeeded.

use crate::tool::Outcome;
use caro_exec::Status;
use caro_shell::parse::How;
use caro_shell::{Invocation, Script, is_read_only, parse};

/// Programs whose exit code 1 is an answer and not a failure: nothing was found, two files differ, a condition is
/// false.
const ANSWER_NO: &[&str] =
    &["[", "[[", "ack", "ag", "cmp", "diff", "egrep", "fgrep", "ggrep", "grep", "rg", "test", "zcmp", "zdiff", "zgrep"];

/// The operator after which a command only runs if the one before succeeded.
const AND: &str = "&&";

/// Output at the end of a pipe that had no input: `wc -l`, `jq -s .`, `jq length`, `wc`.
const EMPTY_RESULTS: &[&[u8]] = &[b"0", b"[]", b"{}", b"null", b"0 0 0", b"0       0       0"];

/// True if exit code 1 of the command may be an answer.
fn may_answer_no(command: &Invocation) -> bool {
    command.key().is_some_and(|name| ANSWER_NO.contains(&name.as_str()))
}

/// True if the last program may answer no and nothing before it can have failed instead.
fn ends_with_answer(script: &Script) -> bool {
    // `sudo grep`, `find -exec grep`: a wrapped command follows its wrapper
    let is_direct = |c: &&Invocation| c.inside.is_none_or(|inside| inside.how == How::Wrapped);
    let before = script.text.rfind(AND).map(|at| parse(&script.text[..at], script.dialect));
    let last = script.commands.iter().rfind(is_direct);
    last.is_some_and(may_answer_no) && before.is_none_or(|before| is_read_only(&before))
}

/// True if something depends on a condition that may answer no: `[ -d build ] && make`, or the last round of such a
/// loop.
fn depends_on_answer(script: &Script) -> bool {
    let end = |c: &Invocation| {
        let targets = c.redirects.iter().map(|redirect| &redirect.target);
        c.words.iter().chain(targets).map(|word| word.span.end).max().unwrap_or_default()
    };
    let is_condition =
        |c: &Invocation| script.text.get(end(c)..).is_some_and(|rest| rest.trim_start().starts_with(AND));
    script.commands.iter().any(|c| may_answer_no(c) && is_condition(c))
}

/// True if output is redirected into a file.
fn redirects_output(script: &Script) -> bool {
    let redirects = script.commands.iter().flat_map(|c| &c.redirects).chain(&script.redirects);
    redirects.into_iter().any(|redirect| redirect.writes() && redirect.target.text != "/dev/null")
}

/// Returns the outcome of a command line, given its exit status and output.
pub(super) fn outcome(script: &Script, status: Status, stdout: &[u8], stderr: &[u8]) -> Outcome {
    let reads = is_read_only(script);
    // the status of a pipeline is that of its last program, which may have had no input
    let is_pipeline = reads && script.commands.iter().any(|c| c.stdin_pipe);
    let (stdout, quiet) = (stdout.trim_ascii(), stderr.trim_ascii().is_empty());
    let nothing = stdout.is_empty() || is_pipeline && EMPTY_RESULTS.contains(&stdout);
    let is_answer = || reads || ends_with_answer(script) || nothing && depends_on_answer(script);
    // one line on standard error is an error message, several are a report, such as that of a compiler
    let reported = || !nothing || redirects_output(script) || stderr.trim_ascii().contains(&b'\n');
    match status {
        Status::Exited(0) if is_pipeline && nothing && !quiet => Outcome::Failed,
        Status::Exited(0) => Outcome::Succeeded,
        // a reading command answers no that way, too: no such process, no such package; `xargs` turns it into 123
        Status::Exited(1 | 123) if quiet && is_answer() => Outcome::Succeeded,
        // a part was found, with errors about the rest
        Status::Exited(_) if reads && !nothing => Outcome::Succeeded,
        // the program does not exist or may not be run
        Status::Exited(126 | 127) => Outcome::Failed,
        Status::Exited(_) if !reads && reported() => Outcome::FailedLate,
        _ => Outcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::{Failed, FailedLate, Succeeded};
    use caro_shell::{Dialect, parse};

    #[test]
    fn a_change_that_ends_with_an_error_has_failed_and_a_search_without_hits_has_not() {
        for (line, code, stdout, stderr, expected) in [
            ("make", 0, "built", "", Succeeded),
            ("mkdir a", 0, "", "", Succeeded),
            // output before the error does not matter
            ("make", 2, "cc a.c", "make: *** [a.o] Error 1", FailedLate),
            ("./build.sh", 1, "compiling", "", FailedLate),
            ("cp a b; nosuchprogram", 127, "", "nosuchprogram: not found", Failed),
            ("echo begun; nosuchprogram", 127, "begun", "nosuchprogram: not found", Failed),
            ("curl -f http://x/y -o z", 22, "", "curl: (22) The requested URL returned error: 404", Failed),
            // the report is not on standard output
            ("python3 -m unittest b.py", 1, "", "F.\nFAIL: test_b\nFAILED (failures=1)", FailedLate),
            ("python3 -m unittest b.py > r.txt 2>&1", 1, "", "", FailedLate),
            ("shellcheck a.sh > report.txt", 1, "", "", FailedLate),
            ("make 2>/dev/null", 2, "", "", Failed),
            ("sh -c 'exit 3'", 3, "", "", Failed),
            ("touch x && false", 1, "", "", Failed),
            // the exit code is an answer
            ("grep -c x a.log", 1, "0", "", Succeeded),
            ("grep x a.log > found.txt", 1, "", "", Succeeded),
            ("cd src && diff -r a b > changes.txt", 1, "", "", Succeeded),
            ("test -e x", 1, "", "", Succeeded),
            ("pgrep nothing", 1, "", "", Succeeded),
            ("systemctl is-active x", 3, "inactive", "", Succeeded),
            ("sudo grep x a.log > found.txt", 1, "", "", Succeeded),
            ("env LC_ALL=C grep x a.log > found.txt", 1, "", "", Succeeded),
            ("find . -name '*.py' | xargs grep -l TODO", 123, "", "", Succeeded),
            ("find . -name '*.py' | xargs grep -l TODO > found.txt", 123, "", "", Succeeded),
            // a command that depends on a condition
            ("[ -d build ] && make", 1, "", "", Succeeded),
            ("grep -q x f 2>/dev/null && cp f g", 1, "", "", Succeeded),
            ("for f in *.log; do grep -q ERROR \"$f\" && mv \"$f\" \"err_$f\"; done", 1, "", "", Succeeded),
            // something other than the condition failed
            ("npm run build > log 2>&1 && grep -c warn log > n", 1, "", "", FailedLate),
            ("make || grep -q x f && touch g", 1, "", "make: *** No targets. Stop.", Failed),
            ("grep -q x a.log && make", 1, "cc a.c", "", FailedLate),
            ("grep x missing", 2, "", "grep: missing: No such file or directory", Failed),
            // a partial result
            ("ls a missing", 2, "a", "ls: cannot access 'missing'", Succeeded),
            ("find / -name x", 1, "/x", "find: '/root': Permission denied", Succeeded),
            // a pipe without input
            ("cat missing | wc -l", 0, "0\n", "cat: missing: No such file or directory", Failed),
            ("cat missing | wc -l", 0, "3\n", "cat: other: No such file or directory", Succeeded),
        ] {
            let script = parse(line, Dialect::Bash);
            let outcome = outcome(&script, Status::Exited(code), stdout.as_bytes(), stderr.as_bytes());
            assert_eq!(outcome, expected, "{line}");
        }
        let script = parse("ls -R /", Dialect::Bash);
        for status in [Status::Signaled(9), Status::Flooded] {
            assert_eq!(outcome(&script, status, b"a", b""), Failed, "{status:?}");
        }
    }
}
