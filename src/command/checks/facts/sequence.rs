//! `seq 10 1` prints nothing, and `echo hello | head -n 5` one line: a sequence that does not run as it is meant to.

use super::CheckContext;
use super::edit::{Edits, warning};
use caro_shell::{Finding, Invocation, Severity, Userland, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    down(it).or_else(|| once(it)).into_iter().collect()
}

/// `seq 10 1`: it counts up, and 1 is not above 10.
fn down(it: &CheckContext) -> Option<Finding> {
    // that of BSD counts down by itself
    let is_ours = |c: &&Invocation| c.name() == Some("seq") && it.target.userland != Userland::Bsd;
    let seq = it.script.commands.iter().find(is_ours)?;
    let number = |w: &Word| w.value.as_deref()?.parse::<i64>().ok();
    let [.., first, last] = seq.args() else { return None };
    let bounds: Vec<&Word> = seq.args().iter().filter(|w| number(w).is_some()).collect();
    let two = bounds.len() == 2 && std::ptr::eq(bounds[0], first) && std::ptr::eq(bounds[1], last);
    let is_down = two && number(first)? > number(last)?;
    let fix = Edits::new(it.script).before(last, "-1 ").done();
    let why = "seq counts up, and prints nothing here: the step stands between the two";
    is_down.then(|| Finding { severity: Severity::Error, ..warning("counts-down", last, why, fix) })
}

/// `echo hello | head -n 5` for "five times".
fn once(it: &CheckContext) -> Option<Finding> {
    let [say, head] = it.script.commands.as_slice() else { return None };
    let [text] = say.args() else { return None };
    let plain = match say.name()? {
        "echo" => text.raw.clone(),
        // one line feed at its end, and nothing for printf to put in
        "printf" => text.raw.replacen("\\n", "", 1),
        _ => return None,
    };
    let is_line = !plain.contains(['\\', '%', '\n']) && !text.expands && !text.glob && !plain.is_empty();
    let (_, count) = line_count(head).filter(|_| head.name() == Some("head") && say.feeds == [1])?;
    let fix = Edits::new(it.script).span(&say.words, &format!("yes {plain}")).done();
    let why = format!("this is one line, and {count} are taken: yes repeats it");
    (is_line && count > 1).then(|| warning("one-line", text, why, fix))
}

/// The word of `head` or `tail` that holds how many lines, and the number.
pub(in crate::checks) fn line_count(command: &Invocation) -> Option<(&Word, u64)> {
    let args = command.args();
    args.iter().enumerate().find_map(|(i, w)| {
        let text = w.text.as_str();
        let digits = match text {
            "-n" | "--lines" => return args.get(i + 1).and_then(|next| Some((next, plain(&next.text)?))),
            _ => {
                text.strip_prefix("--lines=").or_else(|| text.strip_prefix("-n")).or_else(|| text.strip_prefix('-'))?
            }
        };
        Some((w, plain(digits)?))
    })
}

/// Digits alone: `-n +3` and `-n -3` mean something else.
fn plain(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn what_counts_down_has_a_step_and_what_is_repeated_is_more_than_one_line() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        for (wrong, right) in [
            ("seq 10 1", "seq 10 -1 1"),
            ("seq -s ' ' 10 1", "seq -s ' ' 10 -1 1"),
            ("printf 'hello\\n' | head -n 5", "yes 'hello' | head -n 5"),
            ("echo hello | head -5", "yes hello | head -5"),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right), "{wrong}");
        }
        for right in [
            "seq 1 10",
            "seq 10 -1 1",
            "seq 10",
            "seq $n 1",
            "echo hello | head -n 1",
            "echo -e 'a\\nb' | head -n 2",
            "printf '%s\\n' * | head -n 5",
            "printf 'a\\nb\\n' | head -n 2",
            "yes hello | head -n 5",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
