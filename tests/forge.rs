//! Tests `caro forge` and `caro agent --forge` on a scripted model: a skill is tested first, scanned, run in the
//! sandbox, and promoted or rejected with a reason. Rows A29 to A36 and A40 of the harness.

mod attacks;
mod real;

use crate::agent::{answer, step};
use crate::machine::{Machine, Ran, have};
use crate::pty::Terminal;
use serde_json::{Value, json};

/// The beginning of the forge's prompt, by which scripted rules match it.
const PROMPT: &str = "You write one small, correct, general function";
/// Three examples of a unit converter; the last one is hidden from the model.
const CONVERTER: [&str; 6] =
    ["--example", "5 km => 5000 m", "--example", "3 kg => 3000 g", "--example", "12 km => 12000 m"];
/// A right script.
const GOOD: &str = "```python\ndef transform(text: str) -> str:\n    number, unit = text.split()\n    return f\"{int(number) * 1000} \
                    {unit[1:]}\"\n```";

/// True if Python scripts can be run in a sandbox; prints the reason if not.
fn can_forge() -> bool {
    let is_supported = have("python3") && caro::exec::support().holds_to_reading();
    if !is_supported {
        println!("skipped: there is no python3, or no sandbox");
    }
    is_supported
}

/// Rules of a model that writes these scripts: the first one at the start, and the others in turn when it fixes them.
fn scripts(replies: &[&str]) -> Value {
    let [first, rest @ ..] = replies else { panic!("a model writes something") };
    match rest {
        [] => json!([{ "reply": first }]),
        rest => json!([{ "regex": "(?i)write the whole code again", "replies": rest }, { "reply": first }]),
    }
}

fn forge(machine: &Machine, replies: &[&str], args: &[&str]) -> Ran {
    let args: Vec<&str> = ["forge"].into_iter().chain(args.iter().copied()).collect();
    machine.ask(scripts(replies), &args)
}

/// Runs `caro forge`. Returns its exit code and its events.
fn events(machine: &Machine, replies: &[&str], args: &[&str]) -> (Option<i32>, Vec<Value>) {
    let args: Vec<&str> = args.iter().copied().chain(["--events", "jsonl"]).collect();
    let ran = forge(machine, replies, &args);
    (ran.code, ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|e| e["event_type"] == kind).collect()
}

/// Checks that a skill was not forged: the exit code, and words of the error.
#[track_caller]
fn fails_to_forge(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!((ran.code, ran.out.as_str()), (Some(code), ""), "{ran:#?}");
    assert!(ran.err.contains("error: ") && ran.err.contains("\n\nhint: "), "{ran:#?}");
    words.iter().for_each(|word| assert!(ran.err.contains(word), "no {word:?} in {ran:#?}"));
}

fn converter(more: &[&'static str]) -> Vec<&'static str> {
    ["Create a unit converter skill"].into_iter().chain(CONVERTER).chain(more.iter().copied()).collect()
}

#[test]
fn a29_a30_the_tests_fail_before_there_is_a_script_and_pass_at_its_end() {
    if !can_forge() {
        return;
    }
    let machine = Machine::new();
    let bad = GOOD.replace("1000", "100");
    let (code, events) = events(&machine, &[&bad, GOOD], &converter(&[]));
    assert_eq!(code, Some(0), "{events:#?}");
    let at = |kind: &str| events.iter().position(|e| e["event_type"] == kind).unwrap();
    assert!(at("forge_test") < at("forge_write") && at("forge_test") < at("model_call"));
    let tests: Vec<(&Value, &Value)> =
        of(&events, "forge_test").iter().map(|e| (&e["metadata"]["phase"], &e["metadata"]["exit"])).collect();
    assert_eq!(tests, [(&json!("red"), &json!(1)), (&json!("run"), &json!(1)), (&json!("green"), &json!(0))]);
    assert_eq!(of(&events, "forge_test")[0]["metadata"]["failing"], json!([1, 2, 3]), "all tests fail first");
    // the promoted skill is complete
    for file in ["SKILL.md", "scripts/main.py", "tests/1.text", "tests/3.expected"] {
        assert!(machine.path(&format!("skills/unit-converter/{file}")).is_file(), "{file}");
    }
    for check in [&["skills", "check", "unit-converter"][..], &["skills", "check"]] {
        let check = machine.run(check);
        assert_eq!((check.code, check.out.as_str()), (Some(0), "unit-converter  fine\n"), "no quarantine: {check:#?}");
    }
    let found = machine.run(&["skills", "search", "a converter for units"]);
    assert!(found.out.contains("unit-converter"), "found by search: {found:#?}");
    // the text output
    let machine = Machine::new();
    let ran = forge(&machine, &[&bad, GOOD], &converter(&[]));
    assert!(ran.out.ends_with("skills/unit-converter\n"), "{ran:#?}");
    for word in ["RED   3 of 3 tests fail", "WRITE script 2 in python", "GREEN 3 of 3 tests pass"] {
        assert!(ran.err.contains(word), "no {word} in {ran:#?}");
    }
    forge(&machine, &[GOOD], &converter(&[])).fails(2, &["there is a skill `unit-converter` already", "--fix"]);
}

#[test]
fn a31_each_failure_has_its_class() {
    if !can_forge() {
        return;
    }
    let body = |line: &str| format!("```python\ndef transform(text):\n    {line}\n```");
    for (line, class) in [
        ("return text + '!'", "assertion"),
        ("return (", "syntax"),
        ("return text.nope()", "attribute"),
        ("return text + 1", "type"),
        ("return 1 / 0", "unknown"),
    ] {
        let machine = Machine::new();
        let (_, events) = events(&machine, &[&body(line), GOOD], &converter(&[]));
        assert_eq!(of(&events, "forge_test")[1]["output"]["class"], class, "{line}");
    }
}

#[test]
fn a32_the_same_failures_twice_are_stagnation_and_at_most_five_scripts_are_tried() {
    if !can_forge() {
        return;
    }
    let bad = GOOD.replace("1000", "100");
    let machine = Machine::new();
    let (code, told) = events(&machine, &[&bad], &converter(&[]));
    assert_eq!(
        (code, of(&told, "forge_stagnation").len(), of(&told, "forge_write").len()),
        (Some(3), 1, 2),
        "{told:#?}"
    );
    assert!(!machine.path("skills/unit-converter").exists(), "nothing is promoted");
    let report = std::fs::read_to_string(machine.path("skills/.quarantine/unit-converter/REPORT.md")).unwrap();
    assert!(report.contains("stagnation") && report.contains("expected: 5000 m"), "{report}");
    let listed = machine.run(&["skills", "list"]).out;
    assert!(!listed.contains("unit-converter"), "a skill in quarantine is not listed: {listed}");
    // each script fails differently: five are tried
    let many: Vec<String> = (1..30).map(|n| GOOD.replace("1000", &n.to_string())).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (code, told) = events(&machine, &many, &converter(&[]));
    assert_eq!((code, of(&told, "forge_write").len()), (Some(4), 5));
    let ran = forge(&machine, &[&bad], &converter(&[]));
    fails_to_forge(&ran, 3, &["is not made", "--model"]);
}

/// A script that passes only the visible examples is not promoted.
#[test]
fn a35_a_hidden_example_decides() {
    if !can_forge() {
        return;
    }
    let special = "```python\ndef transform(text):\n    n, u = text.split()\n    return f'{int(n) * 1000} {u[1:]}' if len(n) == 1 else \
                   f'{n} {u}'\n```";
    let machine = Machine::new();
    let (code, events) = events(&machine, &[special], &converter(&[]));
    assert_eq!(code, Some(3), "{events:#?}");
    assert_eq!(of(&events, "forge_test")[1]["metadata"]["failing"], json!([3]), "the hidden example fails");
}

/// If two scripts pass every example and differ elsewhere, the user is asked which is right, by an example.
#[test]
fn a35_scripts_that_differ_beyond_the_examples_lead_to_a_question() {
    if !can_forge() {
        return;
    }
    let other = GOOD.replace("1000", "(1000 if int(number) <= 12 else 100)");
    let machine = Machine::new();
    let model = json!([{ "replies": [GOOD, other] }]);
    let forge = |more: &[&'static str]| {
        machine.ask(model.clone(), &["forge"].into_iter().chain(converter(more)).collect::<Vec<_>>())
    };
    let asked = forge(&[]);
    fails_to_forge(&asked, 1, &["no example says", "--example '23 km => 23000 m'", "--example '23 km => 2300 m'"]);
    assert!(asked.err.contains("OTHER 2 scripts that pass do not give the same"), "{asked:#?}");
    assert!(!machine.path("skills/unit-converter").exists());
    let decided = forge(&["--example", "23 km => 23000 m"]);
    assert!(decided.code == Some(0) && decided.err.contains("no second script passes"), "{decided:#?}");
    // if the other one is right, it is still used, though the model does not write it again
    let machine = Machine::new();
    let order = converter(&["--example", "23 km => 2300 m"]);
    let once = |machine: &Machine, replies: Value, args: &[&str]| {
        machine.ask(
            json!([{ "replies": replies }]),
            &["forge"].into_iter().chain(args.iter().copied()).collect::<Vec<_>>(),
        )
    };
    fails_to_forge(&once(&machine, json!([GOOD, other]), &converter(&[])), 1, &["'23 km => 2300 m'"]);
    let decided = once(&machine, json!([GOOD]), &order);
    assert_eq!(decided.code, Some(0), "{decided:#?}");
    let script = std::fs::read_to_string(machine.path("skills/unit-converter/scripts/main.py")).unwrap();
    assert!(script.contains("<= 12") && !machine.path("skills/unit-converter/OTHER").exists(), "{script}");
}

#[test]
fn a29_without_an_example_nothing_is_forged() {
    let machine = Machine::new();
    forge(&machine, &[GOOD], &["Create a unit converter skill"]).fails(2, &["there is no example", "--sample FILE"]);
    forge(&machine, &[GOOD], &["Create it", "--example", "no arrow"]).fails(2, &["is not an example"]);
    forge(&machine, &[GOOD], &["Create it", "--sample", "gone", "--expect", "gone"]).fails(2, &["could not read gone"]);
    forge(&machine, &[GOOD], &["create a skill", "--example", "a => b"]).fails(2, &["--name"]);
    let help = machine.run(&["forge", "--help"]);
    for word in ["--example", "--sample", "--expect", "--fix", "--allow", "--name", "--language", "Exit codes"] {
        assert!(help.out.contains(word), "no {word} in {help:#?}");
    }
    // examples that pass without a script are refused
    if can_forge() {
        let same = forge(&machine, &[GOOD], &["Create a copier skill", "--example", "a b => a b"]);
        fails_to_forge(&same, 1, &["pass before a script is written"]);
    }
}

/// A33: without a fitting skill the run would end in `cannot`. The skill is forged, and the task is answered.
/// The next run uses the skill.
#[test]
fn a33_a_missing_skill_is_forged_and_the_task_is_answered() {
    if !can_forge() {
        return;
    }
    let machine = Machine::new();
    machine.write("work/net.pcab", "PCAB 1\nsrc=10.0.0.1;dst=10.0.0.9\nsrc=10.0.0.2;dst=10.0.0.9\n");
    machine.write("work/net.txt", "10.0.0.1 10.0.0.9\n10.0.0.2 10.0.0.9\n");
    let parser = "```python\ndef transform(text):\n    rows = [line.split(';') for line in text.splitlines()[1:]]\n    return \
                  '\\n'.join(' '.join(field.split('=')[1] for field in row) for row in rows)\n```";
    let call = step("parse", &[("parse_pcab_file", json!({"file": "net.pcab"}))]);
    let rules = json!([
        { "system": PROMPT, "reply": parser },
        { "system": "Active Protocol: parse-pcab-file", "match": "\nStep 2 of ", "reply": answer("10.0.0.1 10.0.0.9") },
        { "system": "Active Protocol: parse-pcab-file", "reply": call },
        { "reply": step("no", &[("cannot", json!({"reason": "I do not know .pcab"}))]) },
    ]);
    let args = [
        "agent",
        "Parse this .pcab file: net.pcab",
        "--sample",
        "net.pcab",
        "--expect",
        "net.txt",
        "--no-guard",
        "ground",
    ];
    let without = machine.ask(rules.clone(), &args);
    assert!(without.code == Some(1) && without.err.contains("it cannot be done"), "{without:#?}");
    let forging: Vec<&str> = args.into_iter().chain(["--forge"]).collect();
    let ran = machine.ask(rules.clone(), &forging);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(
        ran.out.contains("10.0.0.1 10.0.0.9") && ran.err.contains("GREEN") && ran.err.contains("on the shelf"),
        "{ran:#?}"
    );
    let again = machine.ask(rules, &forging);
    assert!(
        again.code == Some(0) && !again.err.contains("GREEN") && again.err.contains("parse_pcab_file"),
        "{again:#?}"
    );
    let kinds = machine.run(&["events", "--json"]).out;
    assert!(kinds.contains("skill_loaded") && !kinds.contains("forge_"), "{kinds}");
}

/// A33: with `--forge` but without examples, the run ends as it would without, and the reason is printed.
#[test]
fn a33_without_examples_a_run_ends_as_before() {
    let machine = Machine::new();
    let rules = json!([{ "reply": step("no", &[("cannot", json!({"reason": "I do not know it"}))]) }]);
    let ran = machine.ask(rules, &["agent", "Parse this .pcab file: net.pcab", "--forge"]);
    assert!(ran.code == Some(1) && ran.err.contains("it cannot be done"), "{ran:#?}");
    assert!(ran.err.contains("there is no example") && ran.err.contains("--example"), "{ran:#?}");
}

/// A33: on a terminal forging is offered without the flag, and can be declined.
#[test]
fn a33_on_a_terminal_forging_is_offered() {
    if !can_forge() {
        return;
    }
    let rules = || {
        json!([
            { "system": PROMPT, "reply": GOOD },
            { "system": "Active Protocol", "reply": answer("5000 m") },
            { "reply": step("no", &[("cannot", json!({"reason": "no"}))]) },
        ])
    };
    let args: Vec<&str> = ["agent", "convert lengths: how much is 5 km"].into_iter().chain(CONVERTER).collect();
    for (keys, code) in [("y\n", 0), ("n\n", 1)] {
        let machine = Machine::new();
        let mut terminal = Terminal::start(&machine, rules(), &args);
        terminal.shows("make one from the examples");
        terminal.types(keys);
        assert_eq!(terminal.ends(), code, "{}", terminal.text());
        assert_eq!(machine.path("skills").join("convert-lengths-how").exists(), code == 0, "{}", terminal.text());
    }
}

/// A40: a script that declares its parameters is a tool of its own.
#[test]
fn a40_a_declared_script_is_a_tool_with_its_schema() {
    if !have("python3") {
        println!("skipped: there is no python3");
        return;
    }
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("skills/tally/scripts")).unwrap();
    machine.write(
        "skills/tally/SKILL.md",
        "---\nname: tally\ndescription: Counts words in notes.\nmetadata:\n  scripts:\n    - file: count.py\n      description: \
         Counts words.\n      parameters:\n        - {name: file, type: string, required: true}\n        - {name: least, type: \
         integer, minimum: 1}\n---\nCall `tally`.\n",
    );
    machine.write("skills/tally/scripts/count.py", "import sys\nprint('given', *sys.argv[1:])\n");
    machine.write("work/notes.txt", "one two");
    let run = |args: Value| {
        let rules = json!([
            { "match": "\nStep 2 of ", "reply": answer("done") },
            { "reply": step("x", &[("tally", args)]) },
        ]);
        let ran =
            machine.ask(rules, &["agent", "tally the words in notes.txt", "--no-guard", "ground", "--events", "jsonl"]);
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let events = run(json!({"file": "notes.txt", "least": 2}));
    let result = of(&events, "tool_result");
    assert!(result[0]["output"].as_str().unwrap().starts_with("given --file notes.txt --least 2"), "{events:#?}");
    assert_eq!(of(&events, "tool_call")[0]["metadata"]["provider"], json!({"skill": "tally"}));
    // there is no other tool to run the script
    let explain = machine.ask(json!([{ "reply": "x" }]), &["agent", "tally the words in notes.txt", "--explain"]);
    assert!(explain.out.contains(" tally") && !explain.out.contains("run_skill_script"), "{explain:#?}");
}

/// A36: a test that shows the fault fails first, then the script is fixed; if that fails, it is left unchanged.
#[test]
fn a36_a_skill_is_fixed_or_left_unchanged() {
    if !can_forge() {
        return;
    }
    let machine = Machine::new();
    assert_eq!(forge(&machine, &[GOOD], &converter(&[])).code, Some(0));
    let script = || std::fs::read_to_string(machine.path("skills/unit-converter/scripts/main.py")).unwrap();
    let before = script();
    let fault = ["--fix", "unit-converter", "--example", "1.5 km => 1500 m"];
    // if the model cannot fix it, the old version stays
    let failed = forge(&machine, &[GOOD], &fault);
    fails_to_forge(&failed, 3, &["is not made"]);
    assert_eq!(script(), before);
    // an example that shows no fault is refused
    let unneeded = forge(&machine, &[GOOD], &["--fix", "unit-converter", "--example", "7 km => 7000 m"]);
    fails_to_forge(&unneeded, 1, &["pass before a script"]);
    assert_eq!(script(), before);
    let fixed = GOOD.replace("int(number) * 1000", "float(number) * 1000:g");
    let (code, events) = events(&machine, &[&fixed], &fault);
    assert_eq!(code, Some(0), "{events:#?}");
    assert_eq!(of(&events, "forge_test")[0]["metadata"]["failing"], json!([1]), "the test of the fault fails first");
    assert!(script().contains("float(number)"), "{}", script());
    assert!(machine.path("skills/unit-converter/tests/4.expected").is_file(), "its test is added to the others");
    forge(&machine, &[GOOD], &["--fix", "nope", "--example", "a => b"]).fails(2, &["there is no skill `nope`"]);
    // a skill written by the user
    std::fs::create_dir_all(machine.path("skills/greet/scripts")).unwrap();
    machine.write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nRun greet.py.\n");
    machine.write("skills/greet/scripts/greet.py", "import sys\nprint('Helo', sys.argv[1])\n");
    let right = "```python\nimport sys\nprint('Hello', sys.argv[1])\n```";
    let ran = forge(&machine, &[right], &["--fix", "greet", "--example", "Ada => Hello Ada"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let text = |file: &str| std::fs::read_to_string(machine.path(&format!("skills/{file}"))).unwrap();
    assert!(text("greet/scripts/greet.py").contains("Hello") && text("greet/SKILL.md").contains("Run greet.py."));
    assert!(text(".quarantine/greet.previous/scripts/greet.py").contains("Helo"), "the old version is stored");
}

#[test]
fn a_skill_that_is_not_the_users_own_is_copied_before_it_is_fixed() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("work/.agents/skills/greet")).unwrap();
    machine.write("work/.agents/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n");
    let fix = |name: &str| forge(&machine, &[GOOD], &["--fix", name, "--example", "a => b"]);
    fix("git").fails(2, &["the skill `git` came with caro", "skills-on-board/git to ", "in its place"]);
    fix("greet").fails(2, &["the skill `greet` came with the project", ".agents/skills/greet to "]);
}
