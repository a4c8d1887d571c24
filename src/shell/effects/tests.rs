//! Tests the consistency of the table of programs.

use super::parsed_args::ParsedArgs;
use super::table;
use crate::{Dialect, is_read_only, parse};

#[test]
fn the_table_is_consistent() {
    assert_eq!(table::problems(), Vec::<String>::new());
}

/// An option that writes in one program needs confirmation in every other reading program, unless the table lists it
/// as harmless there. So no new program and no forgotten option is run without asking.
#[test]
fn options_that_write_in_some_program_are_not_read_only() {
    let options =
        ["-o", "-O", "-i", "-k", "-w", "-s", "--output", "--in-place", "--write", "--exec", "--kill", "--set"];
    let mut wrong = Vec::new();
    let mut seen = 0;
    for name in table::readers() {
        for option in options {
            let lines = [format!("{name} {option} F G H"), format!("{name} {option}=F G H")];
            let reads = |line: &String| is_read_only(&parse(line, Dialect::Bash));
            seen += 1;
            if lines.iter().any(reads) && !table::is_harmless(option, name) {
                wrong.push(format!("{name} {option}"));
            }
        }
    }
    assert!(seen > 2000, "{seen}: the test sees the table");
    assert!(wrong.is_empty(), "{}", wrong.join(", "));
}

#[test]
fn code_on_standard_input_is_pure_only_if_it_is_complete() {
    let is_safe = |line: &str| crate::assess(&parse(line, Dialect::Bash)).level == crate::Level::Safe;
    for line in [
        "python3 - <<< 'print(2**8)'",
        "python3 <<'X'\nimport math\nprint(math.factorial(20))\nX",
        "echo 'console.log(7 * 6)' | node",
        "perl <<< 'print join(\"-\", 1..5)'",
    ] {
        assert!(is_safe(line), "{line}");
    }
    for line in [
        "python3 <<< \"$CODE\"",
        "echo \"print($X)\" | python3",
        "{ echo 'print(1)'; cat x.py; } | python3",
        "cat x.py | python3",
        "echo 'print(1)' | cat - x.py | python3",
        "echo 'print(1)' | python3 x.py",
        "python3 <<< 'print(1)' < x.py",
        "echo 'print(1)' | python3 <<< 'import os; os.remove(\"x\")'",
        "echo 'import os; os.remove(\"x\")' | python3",
        "echo -e 'print(1)\\x0aimport os' | python3",
        "PYTHONSTARTUP=x.py python3 -i <<< 'print(1)'",
        "python3 <<X\nprint($(cat x))\nX",
    ] {
        assert!(!is_safe(line), "{line}");
    }
}

#[test]
fn an_unlisted_program_is_read_only_if_its_words_say_so() {
    let is_safe = |line: &str| crate::assess(&parse(line, Dialect::Bash)).level == crate::Level::Safe;
    for line in [
        "frob list",
        "frob stats a.vcf",
        "frob -v status",
        "frob check config a.yml",
        "frob show --json x",
        "frob list -ü",
    ] {
        assert!(is_safe(line), "{line}");
    }
    for line in [
        "frob",
        "frob a.txt",
        "frob status set x",
        "frob list rm prod",
        "frob show --output=f",
        "frob list -o f",
        "frob lint --fix",
        "frob list $X",
        "./frob list",
        "frob show $(rm x)",
    ] {
        assert!(!is_safe(line), "{line}");
    }
}

#[test]
fn a_powershell_switch_may_be_set_explicitly_in_any_case() {
    for (line, paths, has_recurse) in [
        ("Remove-Item -Recurse:$true docs", &["docs"][..], true),
        ("Remove-Item -recurse:$True docs", &["docs"], true),
        ("Remove-Item -Recurse:$FALSE docs", &["docs"], false),
        ("Remove-Item -Path:$trueFolder", &["$trueFolder"], false),
    ] {
        let script = parse(line, Dialect::PowerShell);
        let parsed =
            ParsedArgs::parse(&script.commands[0], table::program("remove-item", Dialect::PowerShell).unwrap());
        let values = parsed.values.iter().map(|value| value.text());
        let found: Vec<&str> = parsed.operands.iter().map(|operand| operand.text()).chain(values).collect();
        assert_eq!((found.as_slice(), parsed.has("-recurse")), (paths, has_recurse), "{line}");
    }
}

#[test]
fn ps_reads_environments_if_an_option_says_so() {
    let reads = |line: &str| {
        let script = parse(line, Dialect::Bash);
        super::effects(&script).iter().any(|effect| effect.path.as_deref() == Some("/proc/*/environ"))
    };
    for line in [
        "ps e",
        "ps eww -e",
        "ps auxe",
        "ps -axe",
        "ps -E",
        "ps -e e",
        "ps --cumulative e",
        "ps o pid e",
        "nice ps axe",
    ] {
        assert!(reads(line), "{line}");
    }
    for line in [
        "ps",
        "ps aux",
        "ps -e",
        "ps -ef",
        "ps axo pid,comm --sort -rss",
        "ps -C firefox",
        "ps -o etime -p 7",
        "ps -eo pid,etime",
        "ps --user me",
        "ps -p 1 -o comm=",
    ] {
        assert!(!reads(line), "{line}");
    }
}

#[test]
fn the_table_distinguishes_a_text_from_elsewhere_from_an_answer() {
    let relays = |line: &str| super::relays(&parse(line, Dialect::Bash).commands[0], Dialect::Bash);
    for line in ["curl x", "yt-dlp -o - x", "lftp -c 'cat x' h", "rclone cat r:x", "aws s3 cp s3://b/x -", "dig x"] {
        assert!(relays(line), "{line}");
    }
    for line in ["aws s3 ls", "aws s3 cp x s3://b/x", "git pull", "docker pull x", "ping x", "cat x", "openssl rand 9"]
    {
        assert!(!relays(line), "{line}");
    }
}

#[test]
fn the_table_says_which_programs_send_what_they_are_given() {
    let sends = |line: &str| super::sends(&parse(line, Dialect::Bash).commands[0], Dialect::Bash);
    for line in ["curl x", "aws s3 ls x", "openssl s_client -connect h:1", "rsync x h:", "ping x", "getent hosts x"] {
        assert!(sends(line), "{line}");
    }
    for line in ["rsync x y", "openssl rsa -in x", "npm view x", "kubectl apply -f -", "restic backup x", "cat x"] {
        assert!(!sends(line), "{line}");
    }
}
