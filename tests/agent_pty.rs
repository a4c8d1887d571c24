//! Tests `caro agent` on a real terminal: the question before a change, the effect of each answer, the
//! progress display, stopping and resuming.

use crate::agent::{answer, by_step, events, kinds, step};
use crate::machine::{AMPLE, Machine};
use crate::pty::Terminal;
use serde_json::{Value, json};

const TASK: &str = "note the state of things in a.txt, b.txt and c.txt";

fn write(name: &str) -> String {
    step("write", &[("write", json!({"path": name, "content": "x"}))])
}

/// Three writes and an answer.
fn script() -> Value {
    by_step(&[write("a.txt"), write("b.txt"), write("c.txt"), answer("All noted.")])
}

fn start(machine: &Machine, more: &[&str]) -> Terminal {
    let args: Vec<&str> = ["agent", TASK].into_iter().chain(more.iter().copied()).collect();
    Terminal::start(machine, script(), &args)
}

/// Waits until the approval question has been printed `times` times.
fn wait_for_question(terminal: &Terminal, times: usize) {
    let started = std::time::Instant::now();
    while terminal.text().matches("allow it?").count() < times {
        assert!(started.elapsed() < AMPLE, "asked less than {times} times:\n{}", terminal.text());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn written_files(machine: &Machine) -> Vec<&'static str> {
    ["a.txt", "b.txt", "c.txt"].into_iter().filter(|name| machine.path("work").join(name).exists()).collect()
}

#[test]
fn each_change_is_asked_for_separately() {
    let machine = Machine::new();
    let mut terminal = start(&machine, &[]);
    for (times, keys) in [(1, "y\n"), (2, "n\n"), (3, "y\n")] {
        wait_for_question(&terminal, times);
        terminal.types(keys);
    }
    assert_eq!(terminal.ends(), 0);
    assert_eq!(written_files(&machine), ["a.txt", "c.txt"]);
    let text = terminal.text();
    assert!(text.contains("All noted.") && text.contains("it writes") && text.contains("wrote a.txt"), "{text}");
    assert!(!terminal.screen().hide_cursor());
}

/// Asking for more details does not deny the call.
#[test]
fn a_question_mark_shows_details_and_asks_again() {
    let machine = Machine::new();
    let mut terminal = start(&machine, &[]);
    wait_for_question(&terminal, 1);
    terminal.types("?\n");
    wait_for_question(&terminal, 2);
    let text = terminal.text();
    let details =
        ["it would run: write", "it would change: ", "a.txt", "it is asked for because: ", "or nothing, does not"];
    for detail in details {
        assert!(text.contains(detail), "no {detail:?} in {text}");
    }
    assert!(written_files(&machine).is_empty(), "nothing was written");
    terminal.types("y\n");
    terminal.shows("b.txt");
    terminal.types("h\n");
    terminal.shows("it would run: write path=b.txt");
    assert_eq!(written_files(&machine), ["a.txt"]);
    terminal.types("a\n");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(written_files(&machine), ["a.txt", "b.txt", "c.txt"]);
    assert!(!kinds(&events(&machine, "")).contains(&"approval_denied"));
}

#[test]
fn always_approves_the_rest_of_the_run() {
    let machine = Machine::new();
    let mut terminal = start(&machine, &[]);
    wait_for_question(&terminal, 1);
    terminal.types("a\n");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(written_files(&machine), ["a.txt", "b.txt", "c.txt"]);
    assert_eq!(terminal.text().matches("allow it?").count(), 1, "{}", terminal.text());
}

#[test]
fn any_answer_but_yes_denies() {
    for keys in ["\n", "what?\n", "\x04"] {
        let machine = Machine::new();
        let mut terminal = start(&machine, &[]);
        for times in 1..=3 {
            wait_for_question(&terminal, times);
            terminal.types(keys);
        }
        assert_eq!(terminal.ends(), 0, "{keys:?}");
        assert_eq!(written_files(&machine), [""; 0], "{keys:?}");
    }
}

#[test]
fn a_stopped_run_is_resumed_where_it_stopped() {
    let machine = Machine::new();
    let mut rules = script();
    // the second step goes on until it is stopped
    rules[0]["delay_ms"] = json!(300_000);
    let mut terminal = Terminal::start(&machine, rules, &["agent", TASK, "--yes"]);
    terminal.shows("wrote a.txt");
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130, "{}", terminal.text());
    assert!(terminal.text().contains("caro resume"), "{}", terminal.text());
    let before = written_files(&machine);
    assert!(before.contains(&"a.txt") && !before.contains(&"c.txt"), "{before:?}");
    let mut terminal = Terminal::start(&machine, script(), &["resume", "--yes"]);
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert!(terminal.text().contains("All noted."), "{}", terminal.text());
    assert_eq!(written_files(&machine), ["a.txt", "b.txt", "c.txt"]);
    let events = events(&machine, "");
    let starts = kinds(&events).iter().filter(|kind| **kind == "agent_start").count();
    assert_eq!(starts, 2, "one run, in two parts");
}

#[test]
fn ctrl_c_at_a_question_changes_nothing_and_the_run_can_be_resumed() {
    let machine = Machine::new();
    let mut terminal = start(&machine, &[]);
    wait_for_question(&terminal, 1);
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130, "{}", terminal.text());
    let text = terminal.text();
    assert!(text.lines().any(|line| line.starts_with("stopped; `caro resume run_")), "a line of its own: {text}");
    assert_eq!(written_files(&machine), [""; 0]);
    let listed = machine.run(&["session", "list"]).out;
    assert!(listed.contains("  stopped  "), "{listed}");
    // the call was never approved, so it is asked for again as the first time
    let mut terminal = Terminal::start(&machine, script(), &["resume"]);
    for times in 1..=3 {
        wait_for_question(&terminal, times);
        terminal.types("y\n");
    }
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert!(!terminal.text().contains("may have been done already"), "{}", terminal.text());
    assert_eq!(written_files(&machine), ["a.txt", "b.txt", "c.txt"]);
    assert!(!kinds(&events(&machine, "")).contains(&"approval_denied"));
}

#[test]
fn ctrl_c_in_an_edit_stops_the_run() {
    let machine = Machine::new();
    let mut terminal = one_command(&machine, "touch one.txt");
    wait_for_question(&terminal, 1);
    terminal.types("e\n");
    terminal.shows("> touch one.txt");
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130, "{}", terminal.text());
    assert!(terminal.text().contains("caro resume"), "{}", terminal.text());
    assert!(!machine.path("work/one.txt").exists());
}

#[test]
fn a_command_is_shown_completely_and_a_text_on_request() {
    let lines: String = (1..=12).map(|n| format!("echo {n} >> log.txt\n")).collect();
    let command = format!("{lines}cp /etc/hostname stolen.txt");
    let text: String = (1..=20).map(|n| format!("row {n}\n")).collect();
    let machine = Machine::new();
    let rules = by_step(&[
        step("run", &[("shell", json!({ "command": command }))]),
        step("write", &[("write", json!({"path": "a.txt", "content": text}))]),
        answer("Done."),
    ]);
    let mut terminal = Terminal::start(&machine, rules, &["agent", TASK]);
    terminal.shows("allow it?");
    let shown = terminal.text();
    assert!(shown.contains("stolen.txt") && shown.contains("echo 3 "), "{shown}");
    let reasons = shown.lines().filter(|l| l.contains("it writes") && l.contains("log.txt")).count();
    assert!(reasons <= 1, "a reason is given {reasons} times:\n{shown}");
    terminal.types("n\n");
    terminal.shows("v(iew all)");
    assert!(!terminal.text().contains("row 20") && terminal.text().contains("more lines"), "{}", terminal.text());
    terminal.types("v\n");
    terminal.shows("row 20");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert_eq!(std::fs::read_to_string(machine.path("work/a.txt")).unwrap().lines().count(), 20);
    assert!(!machine.path("work/stolen.txt").exists());
}

/// Starts a run of one shell command that needs approval, and an answer. The task names no file that must exist then.
fn one_command(machine: &Machine, command: &str) -> Terminal {
    let rules = by_step(&[step("do it", &[("shell", json!({ "command": command }))]), answer("That is all.")]);
    Terminal::start(machine, rules, &["agent", "see to the empty files here"])
}

/// Chooses to edit the call, and replaces the text `before` by `after`.
fn edit(terminal: &mut Terminal, times: usize, before: &str, after: &str) {
    wait_for_question(terminal, times);
    terminal.types("e\n");
    terminal.shows(&format!("> {before}"));
    terminal.types(&format!("\x15{after}\r"));
}

#[test]
fn copy_copies_the_command_and_asks_again() {
    let machine = Machine::new();
    let mut terminal = one_command(&machine, "touch one.txt");
    wait_for_question(&terminal, 1);
    terminal.types("c\n");
    terminal.shows("copied through the terminal");
    assert!(terminal.written().contains("\x1b]52;c;dG91Y2ggb25lLnR4dA==\x07"), "{}", terminal.text());
    terminal.shows_times("allow it?", 2);
    terminal.types("\x03");
    assert_ne!(terminal.ends(), 0, "{}", terminal.text());
    assert!(!machine.path("work/one.txt").exists());
}

#[test]
fn an_edited_command_is_asked_for_again_and_run_as_edited() {
    let machine = Machine::new();
    let mut terminal = one_command(&machine, "touch one.txt");
    wait_for_question(&terminal, 1);
    assert!(terminal.text().contains("/e(dit)"), "{}", terminal.text());
    terminal.types("e\n");
    terminal.shows("> touch one.txt");
    // edits the end of the line
    terminal.types(&format!("{}two.txt\r", "\x7f".repeat("one.txt".len())));
    wait_for_question(&terminal, 2);
    assert!(terminal.text().contains("shell command: touch two.txt"), "{}", terminal.text());
    assert!(!machine.path("work/two.txt").exists(), "not before it was allowed");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert!(machine.path("work/two.txt").exists() && !machine.path("work/one.txt").exists());
    let events = events(&machine, "");
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|e| e["event_type"] == kind).collect() };
    let ran: Vec<&Value> = of("tool_call").iter().map(|e| &e["input"]["args"]["command"]).collect();
    assert_eq!(ran, ["touch two.txt"]);
    let edited: Vec<&Value> = of("approval_granted").iter().map(|e| &e["metadata"]["edited"]).collect();
    assert_eq!(edited, [true, false]);
}

#[test]
fn a_command_made_dangerous_by_an_edit_needs_the_word_danger() {
    for (keys, ran) in [("y\n", false), ("danger\n", true)] {
        let machine = Machine::new();
        let mut terminal = one_command(&machine, "touch one.txt");
        // no server listens there, so the shell gets nothing to run
        let dangerous = "curl -s http://127.0.0.1:1/install | sh; touch ran";
        edit(&mut terminal, 1, "touch one.txt", dangerous);
        terminal.shows("type danger to allow it:");
        assert!(terminal.text().contains("it is dangerous"), "{}", terminal.text());
        terminal.types(keys);
        assert_eq!(terminal.ends(), 0, "{}", terminal.text());
        assert_eq!(machine.path("work/ran").exists(), ran, "{keys:?}: {}", terminal.text());
        assert!(!machine.path("work/one.txt").exists());
    }
}

#[test]
fn a_call_edited_to_write_outside_is_asked_for_again() {
    let call = |name: &str| (write(name), json!({ "command": format!("touch {name}") }));
    let (write, touch) = call("a.txt");
    let touch = step("touch", &[("shell", touch)]);
    for (call, before, after) in [(write, "a.txt", "../out.txt"), (touch, "touch a.txt", "touch ../out.txt")] {
        let machine = Machine::new();
        let rules = by_step(&[call, answer("That is all.")]);
        let mut terminal = Terminal::start(&machine, rules, &["agent", "see to the empty files here"]);
        edit(&mut terminal, 1, before, after);
        wait_for_question(&terminal, 2);
        let text = terminal.text();
        let (_, question) = text.rsplit_once("> ").unwrap();
        assert!(question.contains(after) && question.contains("which is outside of"), "{text}");
        assert!(!question.contains("a(lways"), "no lasting approval of a write outside: {text}");
        terminal.types("n\n");
        assert_eq!(terminal.ends(), 0, "{}", terminal.text());
        assert!(!machine.path("out.txt").exists() && !machine.path("work/a.txt").exists());
    }
}

#[test]
fn a_cancelled_edit_denies() {
    // an empty line, and the end of the input
    for keys in ["\x15\r", "\x15\x04"] {
        let machine = Machine::new();
        let mut terminal = one_command(&machine, "touch one.txt");
        wait_for_question(&terminal, 1);
        terminal.types("e\n");
        terminal.shows("> touch one.txt");
        terminal.types(keys);
        assert_eq!(terminal.ends(), 0, "{keys:?}: {}", terminal.text());
        assert!(!machine.path("work/one.txt").exists(), "{keys:?}");
        assert_eq!(terminal.text().matches("allow it?").count(), 1, "{keys:?}");
    }
}

/// The time in seconds at the end of the first line that starts with `prefix`.
#[track_caller]
fn seconds(text: &str, prefix: &str) -> f64 {
    let line = text.lines().find(|line| line.trim_start().starts_with(prefix));
    let line = line.unwrap_or_else(|| panic!("no line {prefix:?}:\n{text}"));
    let time = line.trim_end().strip_suffix(" s").and_then(|rest| rest.rsplit(' ').next()?.parse().ok());
    time.unwrap_or_else(|| panic!("no time in {line:?}:\n{text}"))
}

#[test]
fn a_run_shows_its_plan_and_each_thought_call_result_and_time() {
    const PAUSE_MS: u16 = 60;
    let machine = Machine::new();
    machine.write("work/app.log", "ERROR one\nfine\nERROR two\n");
    let thought = "they are counted first of all";
    let count = step(thought, &[("shell", json!({"command": "sleep 1.2; grep -c ERROR app.log"}))]);
    let note = step("now the number", &[("write", json!({"path": "report.md", "content": "2 errors"}))]);
    let words = u16::try_from(count.split_whitespace().count()).unwrap();
    let mut rules = by_step(&[count, note, answer("There are 2 errors; report.md has the number.")]);
    rules.as_array_mut().unwrap().last_mut().unwrap()["delay_ms"] = json!(PAUSE_MS);
    let task = "count the errors in app.log, and write the number to report.md";
    for more in [&["--yes"][..], &["--yes", "-q"]] {
        let _ = std::fs::remove_file(machine.path("work/report.md"));
        let started = std::time::Instant::now();
        let mut terminal = Terminal::start(&machine, rules.clone(), &[&["agent", task], more].concat());
        assert_eq!(terminal.ends(), 0, "{}", terminal.text());
        let (text, whole) = (terminal.text(), started.elapsed().as_secs_f64() + 0.1);
        if more.contains(&"-q") {
            assert_eq!(text.trim_end(), "There are 2 errors; report.md has the number.");
            continue;
        }
        // without times and counts
        let mut bare: Vec<String> = text.lines().map(|line| without_figures(line.trim_end())).collect();
        // a machine that takes a second to write the file prints that time too
        let wrote = bare.iter().position(|line| line.contains("wrote report.md")).map_or(0, |at| at + 1);
        if bare.get(wrote).is_some_and(|line| line == "      # s") {
            bare.remove(wrote);
        }
        assert_eq!(
            bare,
            [
                "  plan",
                "    1. count the errors in app.log",
                "    2. write the number to report.md",
                "  they are counted first of all  # s",
                "    shell sleep 1.2; grep -c ERROR app.log",
                "      2",
                "      # s",
                "  now the number  # s",
                "    write path=report.md content=2 errors",
                "      wrote report.md (1 lines, 9 bytes)",
                "  done  # s",
                "  3 steps, # s, # tokens (# kept)",
                "There are 2 errors; report.md has the number.",
            ],
            "{text}"
        );
        // at least a pause before each word; the figures are rounded
        let (thinking, wanted) = (seconds(&text, thought), f64::from(words * PAUSE_MS) / 1e3 - 0.05);
        assert!((wanted..=whole).contains(&thinking), "{wanted} to {whole}:\n{text}");
        let result = text.split_once("app.log\n      2\n").unwrap().1;
        let working = seconds(result, "");
        assert!((1.2..=whole).contains(&working), "1.2 to {whole}:\n{text}");
        let sum = text.lines().find(|line| line.starts_with("  3 steps")).unwrap();
        let all = seconds(&sum[..sum.find(" s,").unwrap() + 2], "3 steps");
        assert!((thinking + working - 0.1..=whole).contains(&all), "{thinking} and {working}, of {whole}:\n{text}");
    }
}

/// Replaces times and counts in a line by `#`.
fn without_figures(line: &str) -> String {
    let figures = regex::Regex::new(r"[0-9]+\.[0-9] s\b|[0-9]+ (tokens|kept)").unwrap();
    figures
        .replace_all(line, |found: &regex::Captures| format!("# {}", found[0].split(' ').next_back().unwrap()))
        .into_owned()
}
