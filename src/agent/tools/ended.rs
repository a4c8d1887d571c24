//! What the end of a command line means.

use crate::tool::Outcome;
use caro_exec::Status;
use caro_shell::parse::How;
use caro_shell::{Invocation, Script, is_read_only, parse};

/// Programs that say no by their exit code 1, wherever their output goes: nothing was found, the two are not the same, it is
/// not so.
const SAY_NO: &[&str] =
    &["[", "[[", "ack", "ag", "cmp", "diff", "egrep", "fgrep", "ggrep", "grep", "rg", "test", "zcmp", "zdiff", "zgrep"];

/// Behind it stands what is only done where what stands before it went well.
const AND: &str = "&&";

/// What programs print at the end of a pipe that brought them nothing: `wc -l`, `jq -s .`, `jq length`, `wc`.
const OF_NOTHING: &[&[u8]] = &[b"0", b"[]", b"{}", b"null", b"0 0 0", b"0       0       0"];

fn says_no(command: &Invocation) -> bool {
    command.key().is_some_and(|name| SAY_NO.contains(&name.as_str()))
}

/// True if the last program is one that says no, and nothing before it can have failed in its place.
fn ends_with_a_no(script: &Script) -> bool {
    // `sudo grep`, `find -exec grep`: what is run by another stands behind it
    let seen = |c: &&Invocation| c.inside.is_none_or(|inside| inside.how == How::Wrapped);
    let before = script.text.rfind(AND).map(|at| parse(&script.text[..at], script.dialect));
    script.commands.iter().rfind(seen).is_some_and(says_no) && before.is_none_or(|before| is_read_only(&before))
}

/// True if something is done on a condition that says no: `[ -d build ] && make`, or the last round of a loop of such.
fn hangs_on_a_no(script: &Script) -> bool {
    let end = |c: &Invocation| {
        let targets = c.redirects.iter().map(|redirect| &redirect.target);
        c.words.iter().chain(targets).map(|word| word.span.end).max().unwrap_or_default()
    };
    let then = |c: &Invocation| script.text.get(end(c)..).is_some_and(|rest| rest.trim_start().starts_with(AND));
    script.commands.iter().any(|c| says_no(c) && then(c))
}

/// True if what it reports goes into a file.
fn reports_elsewhere(script: &Script) -> bool {
    let redirects = script.commands.iter().flat_map(|c| &c.redirects).chain(&script.redirects);
    redirects.into_iter().any(|redirect| redirect.writes() && redirect.target.text != "/dev/null")
}

/// How a command line came out that ended so, with this on its two streams.
pub(super) fn outcome(script: &Script, status: Status, stdout: &[u8], stderr: &[u8]) -> Outcome {
    let reads = is_read_only(script);
    // of a pipeline the shell tells only how its last program ended, and that one may have had nothing to read
    let starved = reads && script.commands.iter().any(|c| c.stdin_pipe);
    let (stdout, quiet) = (stdout.trim_ascii(), stderr.trim_ascii().is_empty());
    let nothing = stdout.is_empty() || starved && OF_NOTHING.contains(&stdout);
    let says_no = || reads || ends_with_a_no(script) || nothing && hangs_on_a_no(script);
    // one line on standard error is a complaint, and more is a report: that of unittest, of a compiler
    let reported = || !nothing || reports_elsewhere(script) || stderr.trim_ascii().contains(&b'\n');
    match status {
        Status::Exited(0) if starved && nothing && !quiet => Outcome::Failed,
        Status::Exited(0) => Outcome::Succeeded,
        // who only looks says no that way, too: no such process, no such package; 123 is what `xargs` makes of it
        Status::Exited(1 | 123) if quiet && says_no() => Outcome::Succeeded,
        // a part of what was looked for is there, and beside it why the rest is not
        Status::Exited(_) if reads && !nothing => Outcome::Succeeded,
        // no such program, or none that may be run
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
    fn a_deed_that_ends_with_an_error_has_failed_and_a_look_that_finds_nothing_has_not() {
        for (line, code, stdout, stderr, expected) in [
            ("make", 0, "built", "", Succeeded),
            ("mkdir a", 0, "", "", Succeeded),
            // however much it printed before
            ("make", 2, "cc a.c", "make: *** [a.o] Error 1", FailedLate),
            ("./build.sh", 1, "compiling", "", FailedLate),
            ("cp a b; nosuchprogram", 127, "", "nosuchprogram: not found", Failed),
            ("echo begun; nosuchprogram", 127, "begun", "nosuchprogram: not found", Failed),
            ("curl -f http://x/y -o z", 22, "", "curl: (22) The requested URL returned error: 404", Failed),
            // what reports elsewhere than on standard output
            ("python3 -m unittest b.py", 1, "", "F.\nFAIL: test_b\nFAILED (failures=1)", FailedLate),
            ("python3 -m unittest b.py > r.txt 2>&1", 1, "", "", FailedLate),
            ("shellcheck a.sh > report.txt", 1, "", "", FailedLate),
            ("make 2>/dev/null", 2, "", "", Failed),
            ("sh -c 'exit 3'", 3, "", "", Failed),
            ("touch x && false", 1, "", "", Failed),
            // it says no
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
            // what hangs on a condition
            ("[ -d build ] && make", 1, "", "", Succeeded),
            ("grep -q x f 2>/dev/null && cp f g", 1, "", "", Succeeded),
            ("for f in *.log; do grep -q ERROR \"$f\" && mv \"$f\" \"err_$f\"; done", 1, "", "", Succeeded),
            // it says no to something else
            ("npm run build > log 2>&1 && grep -c warn log > n", 1, "", "", FailedLate),
            ("make || grep -q x f && touch g", 1, "", "make: *** No targets. Stop.", Failed),
            ("grep -q x a.log && make", 1, "cc a.c", "", FailedLate),
            ("grep x missing", 2, "", "grep: missing: No such file or directory", Failed),
            // a part of it
            ("ls a missing", 2, "a", "ls: cannot access 'missing'", Succeeded),
            ("find / -name x", 1, "/x", "find: '/root': Permission denied", Succeeded),
            // what a pipe makes of nothing
            ("cat missing | wc -l", 0, "0\n", "cat: missing: No such file or directory", Failed),
            ("cat missing | wc -l", 0, "3\n", "cat: other: No such file or directory", Succeeded),
        ] {
            let script = parse(line, Dialect::Bash);
            let came = outcome(&script, Status::Exited(code), stdout.as_bytes(), stderr.as_bytes());
            assert_eq!(came, expected, "{line}");
        }
        let script = parse("ls -R /", Dialect::Bash);
        for status in [Status::Signaled(9), Status::Flooded] {
            assert_eq!(outcome(&script, status, b"a", b""), Failed, "{status:?}");
        }
    }
}
