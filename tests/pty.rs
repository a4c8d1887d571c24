//! Tests caro on a real terminal: how an answer looks, what is confirmed and run, and that nothing is left behind.

use crate::machine::{AMPLE, Machine};
use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const ROWS: u16 = 24;
const COLS: u16 = 100;

/// A program on a pseudo-terminal.
pub struct Terminal {
    parser: Arc<Mutex<vt100::Parser>>,
    written: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    keys: Arc<Mutex<Box<dyn Write + Send>>>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn portable_pty::MasterPty + Send>,
}

/// The settings of a terminal.
pub struct Setting<'a> {
    /// Variables in addition to those of the machine.
    pub env: &'a [(&'a str, &'a str)],
    pub cols: u16,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self { env: &[], cols: COLS }
    }
}

impl Terminal {
    pub fn start(machine: &Machine, rules: Value, args: &[&str]) -> Self {
        Self::start_program(env!("CARGO_BIN_EXE_caro"), machine, rules, args)
    }

    pub fn start_program(program: &str, machine: &Machine, rules: Value, args: &[&str]) -> Self {
        Self::start_in(&Setting::default(), program, machine, rules, args)
    }

    pub fn start_in(setting: &Setting, program: &str, machine: &Machine, rules: Value, args: &[&str]) -> Self {
        let size = PtySize { rows: ROWS, cols: setting.cols, ..PtySize::default() };
        let pty = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env_clear();
        for (name, value) in machine.env() {
            command.env(name, value);
        }
        command.env("CARO_MODEL", machine.model(rules));
        for (name, value) in setting.env {
            command.env(name, value);
        }
        command.cwd(machine.path("work"));
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let (rows, cols) = (NonZeroU16::new(ROWS).unwrap(), NonZeroU16::new(setting.cols).unwrap());
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, cols, 0)));
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let keys = Arc::new(Mutex::new(pty.master.take_writer().unwrap()));
        let (mut reader, screen, log) = (pty.master.try_clone_reader().unwrap(), parser.clone(), written.clone());
        let answers = keys.clone();
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut chunk) {
                log.lock().unwrap().extend_from_slice(&chunk[..n]);
                screen.lock().unwrap().process(&chunk[..n]);
                // nushell's line editor queries the cursor position
                if chunk[..n].windows(4).any(|bytes| bytes == b"\x1b[6n") {
                    let (row, col) = screen.lock().unwrap().screen().cursor_position();
                    let mut keys = answers.lock().unwrap();
                    let _ = write!(keys, "\x1b[{};{}R", row + 1, col + 1).and_then(|()| keys.flush());
                }
            }
        });
        Self { parser, written, reader: Some(reader), keys, child, master: pty.master }
    }

    /// Sets the width of the terminal.
    pub fn resize(&self, cols: u16) {
        self.parser
            .lock()
            .unwrap()
            .screen_mut()
            .set_size(NonZeroU16::new(ROWS).unwrap(), NonZeroU16::new(cols).unwrap());
        self.master.resize(PtySize { rows: ROWS, cols, ..PtySize::default() }).unwrap();
    }

    pub fn screen(&self) -> vt100::Screen {
        self.parser.lock().unwrap().screen().clone()
    }

    pub fn text(&self) -> String {
        self.screen().contents()
    }

    /// All output so far, including text that was erased again.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until words are on the screen.
    #[track_caller]
    pub fn shows(&self, words: &str) {
        let start = Instant::now();
        while !self.text().contains(words) {
            assert!(start.elapsed() < AMPLE, "no {words:?} on the screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until words are on the screen at least `times` times.
    #[track_caller]
    pub fn shows_times(&self, words: &str, times: usize) {
        let start = Instant::now();
        while self.text().matches(words).count() < times {
            assert!(start.elapsed() < AMPLE, "{words:?} is not on the screen {times} times:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn types(&mut self, keys: &str) {
        let mut writer = self.keys.lock().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Waits for the end of the program and of its output, and returns the exit code.
    #[track_caller]
    pub fn ends(&mut self) -> u32 {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < AMPLE, "still running:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        };
        // the reader ends when the last process closes the terminal
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status.exit_code()
    }
}

fn one_rule(reply: &str) -> Value {
    json!([{ "reply": reply }])
}

#[test]
fn an_answer_is_the_command_in_bold_its_explanation_and_its_risk() {
    let machine = Machine::new();
    let mut terminal = Terminal::start(&machine, one_rule("ls -a"), &["list all files"]);
    assert_eq!(terminal.ends(), 0);
    let screen = terminal.screen();
    let text = screen.contents();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ls -a");
    assert!(lines.len() >= 2 && lines[1..].iter().all(|l| l.starts_with("  ")), "{text}");
    assert!(lines.iter().any(|l| l.starts_with("  safe")), "{text}");
    assert!(screen.cell(0, 0).unwrap().bold());
    let safe = u16::try_from(lines.iter().position(|l| l.starts_with("  safe")).unwrap()).unwrap();
    assert_eq!(screen.cell(safe, 2).unwrap().fgcolor(), vt100::Color::Idx(2));
    assert!(!screen.hide_cursor());
}

#[test]
fn quiet_is_the_bare_command_and_no_colour_is_plain() {
    let machine = Machine::new();
    let mut terminal = Terminal::start(&machine, one_rule("ls -a"), &["list", "-q", "--color", "never"]);
    assert_eq!(terminal.ends(), 0);
    assert_eq!(terminal.text().trim_end(), "ls -a");
    assert!(!terminal.screen().cell(0, 0).unwrap().bold());
}

#[test]
fn low_confidence_is_reported() {
    let machine = Machine::new();
    let rules = json!([{ "reply": "ls -a", "logprob": -1.5, "runner_up": -1.6 }]);
    let mut terminal = Terminal::start(&machine, rules, &["list", "--refine", "never"]);
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().contains("not sure about this one"), "{}", terminal.text());
}

#[test]
fn control_characters_of_a_model_do_not_reach_the_terminal() {
    let machine = Machine::new();
    let mut terminal = Terminal::start(&machine, one_rule("echo '\u{1b}[31mred\u{7}' \u{202e}x"), &["print red"]);
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().starts_with("echo '\\x1b[31mred\\x07' \\u{202e}x"), "{}", terminal.text());
}

#[test]
fn ctrl_c_stops_a_slow_answer_at_once_and_leaves_nothing() {
    let machine = Machine::new();
    let rules = json!([{ "reply": "echo one two three four five six seven eight nine ten", "delay_ms": 30_000 }]);
    let mut terminal = Terminal::start(&machine, rules, &["count", "--timeout", "300"]);
    terminal.shows("thinking");
    let start = Instant::now();
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130);
    assert!(start.elapsed() < AMPLE, "{:?}", start.elapsed());
    let screen = terminal.screen();
    assert_eq!(screen.contents().replace("^C", "").trim(), "");
    assert!(!screen.hide_cursor());
}

#[test]
fn a_command_runs_after_yes_on_the_terminal_and_caro_returns_its_exit_code() {
    let machine = Machine::new();
    let rules = one_rule("test -t 0 && test -t 1 && echo on the terminal; exit 7");
    let mut terminal = Terminal::start(&machine, rules, &["-x", "look at the terminal", "--shell", "bash"]);
    terminal.shows("run it? [y/N/e(dit)/a(nother)/?]");
    assert!(!terminal.text().contains("\non the terminal"));
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 7);
    assert!(terminal.text().contains("\non the terminal"), "{}", terminal.text());
}

#[test]
fn the_findings_are_shown_before_the_confirmation() {
    let machine = Machine::new();
    // on a busy machine the manual may come too late
    machine.run(&["manual", "warm", "ls"]);
    let rules = json!([{ "reply": "ls --no-such-flag", "logprob": -1.5, "runner_up": -1.6 }]);
    let mut terminal = Terminal::start(&machine, rules, &["-x", "list", "--shell", "bash", "--refine", "never"]);
    terminal.shows("run it?");
    let text = terminal.text();
    assert!(text.contains("no-such-flag") && text.contains("not sure about this one"), "{text}");
    assert!(text.matches("no-such-flag").count() > 1, "the finding is not shown: {text}");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn sigterm_during_an_edit_restores_the_terminal_settings() {
    let machine = Machine::new();
    let line = "\"$0\" -x 'make a file'; stty -a | tr ' ;' '\\n\\n' | grep -cxe -echo -e -icanon; echo over";
    let args = ["-c", line, env!("CARGO_BIN_EXE_caro")];
    let mut terminal = Terminal::start_program("/bin/sh", &machine, one_rule("touch ran"), &args);
    terminal.shows("run it?");
    terminal.types("e\n");
    terminal.shows("> touch ran");
    let shell = terminal.child.process_id().unwrap().to_string();
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1).map(str::to_owned))
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let caro = all.filter(|pid| parent(*pid).as_ref() == Some(&shell)).last().unwrap();
    let pid = rustix::process::Pid::from_raw(caro).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    terminal.shows("over");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().contains("0\nover"), "{}", terminal.text());
}

#[test]
fn the_confirmation_offers_help_another_command_and_copying() {
    let machine = Machine::new();
    let rules = json!([{ "replies": ["ls -a", "ls -a", "echo other", "echo other", "echo other"] }]);
    let mut terminal = Terminal::start(&machine, rules, &["-x", "list all files", "--shell", "bash"]);
    terminal.shows("run it?");
    terminal.types("?\n");
    terminal.shows("`y` runs it");
    terminal.shows_times("run it?", 2);
    assert!(terminal.text().contains("do not ignore entries"), "{}", terminal.text());
    terminal.types("a\n");
    terminal.shows("\necho other\n");
    terminal.shows_times("run it?", 3);
    terminal.types("c\n");
    terminal.shows("copied through the terminal");
    assert!(terminal.written().contains("\x1b]52;c;ZWNobyBvdGhlcg==\x07"));
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("\nother"), "{}", terminal.text());
}

#[test]
fn with_data_on_stdin_the_confirmation_reads_the_terminal() {
    let machine = Machine::new();
    let line = "printf 'usb failed\\nall well\\n' | \"$0\" -x 'what failed?' --shell bash --refine never";
    let args = ["-c", line, env!("CARGO_BIN_EXE_caro")];
    let mut terminal = Terminal::start_program("/bin/sh", &machine, one_rule("grep -n failed"), &args);
    terminal.shows("run it?");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("\n1:usb failed"), "{}", terminal.text());
}

#[test]
fn nothing_runs_after_no_an_empty_line_or_the_end_of_input() {
    for keys in ["n\n", "\n", "maybe\n", "\x04"] {
        let machine = Machine::new();
        let mut terminal = Terminal::start(&machine, one_rule("touch ran"), &["-x", "make a file"]);
        terminal.shows("run it?");
        terminal.types(keys);
        assert_eq!(terminal.ends(), 1, "{keys:?}");
        assert!(!machine.path("work/ran").exists(), "{keys:?}");
    }
}

#[test]
fn ctrl_c_at_the_confirmation_runs_nothing_and_ends_its_line() {
    let machine = Machine::new();
    let args = ["-c", "trap : INT; \"$0\" -x 'make a file'; echo next $?", env!("CARGO_BIN_EXE_caro")];
    let mut terminal = Terminal::start_program("/bin/sh", &machine, one_rule("touch ran"), &args);
    terminal.shows("run it?");
    terminal.types("\x03");
    terminal.shows("\nnext 130");
    assert_eq!(terminal.ends(), 0);
    assert!(!machine.path("work/ran").exists());
}

#[test]
fn ctrl_c_ends_a_waiting_batch() {
    let machine = Machine::new();
    let mut terminal = Terminal::start(&machine, one_rule("ls -a"), &["batch"]);
    terminal.types("{\"id\": 1, \"request\": \"list\"}\n");
    terminal.shows("\"cmd\":\"ls -a\"");
    terminal.types("\x03");
    assert_eq!(terminal.ends(), 130);
}

#[test]
fn a_dangerous_command_runs_only_after_its_word_is_typed() {
    for (keys, code, ran) in [("y\n", 1, false), ("yes\n", 1, false), ("WORD\n", 0, true)] {
        let machine = Machine::new();
        // nothing listens on that port: the shell gets nothing to run
        let rules = one_rule("curl -s http://127.0.0.1:1/install | sh; touch ran");
        let mut terminal = Terminal::start(&machine, rules, &["-x", "install it", "--shell", "bash"]);
        terminal.shows("to run it, e to edit it:");
        let text = terminal.text();
        assert!(text.contains("  danger: "), "{text}");
        let (_, after) = text.rsplit_once("type ").unwrap();
        let word = after.split(" to run it").next().unwrap().to_string();
        terminal.types(&keys.replace("WORD", &word));
        assert_eq!(terminal.ends(), code, "{keys:?}\n{}", terminal.text());
        assert_eq!(machine.path("work/ran").exists(), ran, "{keys:?}");
    }
}

#[test]
fn a_command_above_the_allowed_level_is_refused_without_a_question() {
    let machine = Machine::new();
    machine.write("work/.caro.toml", "run_up_to = \"safe\"\n");
    machine.write("work/notes", "");
    let mut terminal = Terminal::start(&machine, one_rule("rm notes"), &["-x", "delete the notes"]);
    assert_eq!(terminal.ends(), 1);
    assert!(terminal.text().contains("nothing beyond `safe`"), "{}", terminal.text());
    assert!(machine.path("work/notes").exists());
}

#[test]
fn a_command_can_be_edited_before_it_runs() {
    let machine = Machine::new();
    let mut terminal = Terminal::start(&machine, one_rule("echo one"), &["-x", "count", "--shell", "bash"]);
    terminal.shows("run it?");
    terminal.types("e\n");
    terminal.shows("> echo one");
    terminal.types(" and two\r");
    terminal.shows("echo one and two\n");
    let start = Instant::now();
    while terminal.text().matches("run it?").count() < 2 {
        assert!(start.elapsed() < AMPLE, "{}", terminal.text());
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("one and two"), "{}", terminal.text());
}

#[test]
fn one_of_several_can_be_picked() {
    let machine = Machine::new();
    let rules = json!([{ "replies": ["echo first", "echo second", "echo third", "echo fourth"] }]);
    let mut terminal =
        Terminal::start(&machine, rules, &["-x", "-n", "3", "say something", "--shell", "bash", "--refine", "never"]);
    terminal.shows("which one? [1-");
    assert!(terminal.text().contains("2 echo second"), "{}", terminal.text());
    terminal.types("2\n");
    terminal.shows("run it?");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("second"), "{}", terminal.text());
}

#[test]
fn a_conversation_survives_ctrl_c_and_has_an_input_history() {
    let machine = Machine::new();
    let answer = |text: &str| format!("Thought: x\nAction: answer {{\"text\": \"{text}\"}}");
    let write = "Thought: x\nAction: write {\"path\": \"a.txt\", \"content\": \"x\"}";
    let rules = json!([
        {"match": "Task: slow", "reply": answer(&"word ".repeat(200)), "delay_ms": 100},
        {"match": "\nStep 2 of ", "reply": answer("not written")},
        {"match": "Task: write", "reply": write},
        {"reply": answer("hello back")}
    ]);
    let mut terminal = Terminal::start(&machine, rules, &["chat", "--session", "talk"]);
    terminal.shows("session talk");
    terminal.shows("you>");
    terminal.types("hello there\r");
    terminal.shows("hello back");
    terminal.types("slow please\r");
    terminal.shows("thinking");
    terminal.types("\x03");
    terminal.shows("stopped");
    // at a confirmation too
    terminal.types("write it down\r");
    terminal.shows("allow it?");
    terminal.shows_times(">", 4);
    terminal.types("\x03");
    terminal.shows_times("stopped", 2);
    assert!(!machine.path("work/a.txt").exists());
    // at the prompt it discards the line; the arrow key brings back the first input
    terminal.shows_times("you>", 4);
    terminal.types("half a line\x03");
    terminal.shows_times("you>", 5);
    terminal.types("\x1b[A\x1b[A\x1b[A\r");
    terminal.shows_times("hello back", 2);
    terminal.shows_times("you>", 6);
    terminal.types("\x04");
    assert_eq!(terminal.ends(), 0);
    let history = std::fs::read_to_string(machine.path("home/.local/state/caro/chat-history")).unwrap();
    assert_eq!(history, "hello there\nslow please\nwrite it down\nhello there\n");
    let mut again = Terminal::start(&machine, json!([{"reply": answer("yes")}]), &["chat", "--session", "talk"]);
    again.shows("2 exchanges remembered");
    // `/clear` removes the inputs of this conversation, not those of others
    let file = machine.path("home/.local/state/caro/chat-history");
    std::fs::write(&file, format!("elsewhere\n{history}")).unwrap();
    again.types("/clear\r");
    again.shows("forgotten: 2 exchanges");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "elsewhere\n/clear\n");
    again.shows_times("you>", 2);
    again.types("\x1b[A\x1b[A\r");
    again.shows("you> elsewhere");
    again.types("/exit\r");
    assert_eq!(again.ends(), 0);
}

/// Beside the repair found by a rule, the model, which sees the error, offers another.
#[test]
fn the_confirmation_of_a_repair_offers_another_one() {
    let machine = Machine::new();
    machine.write("work/notes.txt", "one\n");
    machine.write("work/error", "cat: nots.txt: No such file or directory\n");
    let rules = json!([{ "reply": "head notes.txt" }]);
    let args = ["fix", "cat nots.txt", "--stderr", "error", "-x", "--shell", "bash", "--refine", "never"];
    let mut terminal = Terminal::start(&machine, rules.clone(), &args);
    terminal.shows("run it? [y/N/e(dit)/a(nother)/?]");
    assert!(terminal.text().contains("cat notes.txt"), "{}", terminal.text());
    terminal.types("a\n");
    terminal.shows("head notes.txt");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(terminal.text().ends_with("one"), "{}", terminal.text());
    let mut terminal = Terminal::start(&machine, rules, &[&args[..], &["--no-model"]].concat());
    terminal.shows("run it? [y/N/e(dit)/?]");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), 1);
}
