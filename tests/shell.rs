//! Tests the shell crate as a whole: properties of parsing and quoting, names of programs, and the time it takes.

use caro::shell::rules::check;
use caro::shell::{Dialect, Target, assess, extract_commands, is_builtin, is_read_only, parse, quote};
use proptest::prelude::*;

fn dialects() -> impl Strategy<Value = Dialect> {
    prop::sample::select(Dialect::ALL.map(|(_, dialect)| dialect).to_vec())
}

/// Random text with many characters that are special to shells.
fn shellish() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("rm -rf ".to_owned()),
        Just("$(".to_owned()),
        Just("`".to_owned()),
        Just("<<EOF\n".to_owned()),
        Just("EOF\n".to_owned()),
        Just("sh -c '".to_owned()),
        Just("sudo ".to_owned()),
        Just("xargs -I {} ".to_owned()),
        Just("find . -exec ".to_owned()),
        Just("if ".to_owned()),
        Just("; do ".to_owned()),
        "[\\x20-\\x7e]{0,6}",
        "[\"'\\\\|&;(){}<>$*?\\[\\]~#!=\n\t ]{1,4}",
        "\\PC{0,3}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed(text in shellish(), dialect in dialects()) {
        let script = parse(&text, dialect);
        for command in &script.commands {
            prop_assert!(!command.words.is_empty());
            for word in &command.words {
                prop_assert!(text.get(word.span.clone()).is_some(), "{:?} in {:?}", word, text);
            }
            prop_assert!(command.feeds.iter().all(|i| *i < script.commands.len()));
            prop_assert!(command.inside.is_none_or(|i| i.command < script.commands.len()));
        }
        prop_assert!(script.errors.iter().all(|e| text.get(e.clone()).is_some()));
        let risk = assess(&script);
        prop_assert!(!is_read_only(&script) || risk.reasons.is_empty());
        for (_, target) in Target::ALL {
            for finding in check(&script, target) {
                prop_assert!(finding.span.is_some_and(|s| text.get(s).is_some()));
            }
        }
        let names = extract_commands(&script);
        let mut once = names.clone();
        once.dedup();
        prop_assert_eq!(names, once);
    }

    #[test]
    fn quoted_text_is_read_back(word in "[^\\x00]{0,24}", dialect in dialects()) {
        let text = format!("echo {} end", quote(&word, dialect));
        let script = parse(&text, dialect);
        prop_assert_eq!(script.commands.len(), 1, "{}", text);
        let values: Vec<_> = script.commands[0].args().iter().map(|w| w.value.as_deref()).collect();
        prop_assert_eq!(values, [Some(word.as_str()), Some("end")], "{}", text);
        prop_assert!(script.errors.is_empty(), "{} {:?}", text, script.errors);
    }
}

#[test]
fn names_of_programs_are_extracted() {
    let names = |text| extract_commands(&parse(text, Dialect::Bash));
    assert_eq!(names("ps aux | sort -k3 | head -5"), ["ps", "sort", "head"]);
    assert_eq!(names("ls && ls -a; cd /tmp || echo no > f"), ["ls", "cd", "echo"]);
    assert_eq!(names("for f in *; do if [ -d \"$f\" ]; then du -s \"$f\"; fi; done"), ["du"]);
    assert_eq!(names("f() { grep x \"$1\"; }; f a"), ["grep"]);
    assert_eq!(
        names("sudo env A=1 /usr/bin/find . -exec sh -c 'wc -l \"$1\"' _ {} \\;"),
        ["sudo", "env", "find", "sh", "wc"]
    );
    assert_eq!(names("$x; \"\""), [""; 0]);
    assert!(is_builtin("cd", Dialect::Sh) && !is_builtin("grep", Dialect::Bash));
    assert!(is_builtin("pushd", Dialect::Bash) && !is_builtin("pushd", Dialect::Sh));
    assert!(is_builtin("Get-Process", Dialect::PowerShell) && is_builtin("string", Dialect::Fish));
}

/// Parsing, checking and judging a one-liner takes well under a millisecond; the limit has a wide margin for
/// unoptimised builds and busy machines. `cargo test --release -- --nocapture a_one_liner_is_judged_fast` shows the
/// figure.
#[test]
fn a_one_liner_is_judged_fast() {
    let lines = [
        "ps aux --sort=-%cpu | head -n 6",
        "find . -type f -name '*.log' -size +10M -exec ls -lh {} +",
        "du -ah . | sort -rh | head -n 20",
        "sudo lsof -nP -iTCP -sTCP:LISTEN | awk '{print $1, $9}' | sort -u",
        "tar czf backup.tgz --exclude=.git ./src && ls -lh backup.tgz",
    ];
    let target = Target::ALL[0].1;
    let once = |text: &str| {
        let start = std::time::Instant::now();
        let script = parse(text, Dialect::Bash);
        let judged = (check(&script, target).len(), assess(&script).level);
        assert!(script.errors.is_empty(), "{judged:?}");
        start.elapsed()
    };
    let first = once(lines[0]);
    let mut times: Vec<_> = (0..40).flat_map(|_| lines.map(once)).collect();
    times.sort();
    let median = times[times.len() / 2];
    println!(
        "first {first:?}, then {median:?} at the median, {:?} at the 95th percentile",
        times[times.len() * 95 / 100]
    );
    assert!(median.as_millis() < 10, "{median:?}");
}

/// Found by fuzzing: a grammar may end a node within a character, and the text there was lost.
#[test]
fn no_span_splits_a_character() {
    for text in ["\u{fffd}\u{fffd}\nGWe= x", "\u{fffd}\u{fffd}\nA= rm -r x", "\u{fffd}\u{fffd}\u{fffd}\0x|||\nGW=-y"] {
        for (_, dialect) in Dialect::ALL {
            let script = parse(text, dialect);
            let spans = script.commands.iter().flat_map(|command| command.words.iter().map(|word| &word.span));
            for span in spans.chain(&script.errors) {
                assert!(text.get(span.clone()).is_some(), "{span:?} of {text:?}, {dialect:?}");
            }
        }
    }
}
