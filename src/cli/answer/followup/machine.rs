//! The state machine of the keys: events in, effects out. It does no input or output and knows no clock.
//!
//! ```text
//! Choosing -- r --> Running   --> ran: over; declined: Choosing
//!          -- e --> Editing   --> a line: Working (it is checked)   --> Choosing
//!          -- v --> Wording   --> words:  Working (the model)       --> Choosing
//!          -- a --> Working (the model)                             --> Choosing
//!          -- ? --> Working (the manuals)                           --> Choosing
//!          -- c --> Working (the clipboard)                         --> Choosing
//!          -- 1 ... 9: chooses another of the shown commands
//!          -- q, Esc, Enter, Ctrl-C, Ctrl-D --> over
//! ```

use caro_shell::{Dialect, changes_only_its_shell, parse};

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape, alone.
    Esc,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or a closed terminal.
    End,
    /// Ctrl-Z.
    Suspend,
    /// Any other: an arrow, a function key.
    Other,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Pasted,
    /// The size of the terminal changed.
    Resized,
    /// The process was resumed after Ctrl-Z.
    Resumed,
    /// The editor returned this line; `None` if it was cancelled.
    Line(Option<String>),
    /// An answer is shown: the commands to choose from, the first one chosen; empty if there is no answer.
    Answered(Vec<String>),
    /// The work is done, and the command stays the same.
    Done,
    /// The command ended with this exit code; `None` if the user declined to run it.
    Ran(Option<u8>),
}

/// An effect, for the driver to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Shows the keys.
    Draw,
    /// Erases the keys.
    Erase,
    /// Suspends the process, as Ctrl-Z does.
    Suspend,
    /// Shows the chosen command.
    Show(String),
    /// Opens the command in a line editor.
    Edit(String),
    /// Asks for words that say how to change the command.
    AskWords,
    /// Checks a command that the user wrote.
    Check(String),
    /// Asks the model to change the command.
    Revise {
        /// The command.
        from: String,
        /// The words that say how.
        words: String,
    },
    /// Asks the model for another command.
    Another,
    /// Explains the command.
    Explain(String),
    /// Copies the command.
    Copy(String),
    /// Runs the command.
    Run(String),
    /// Prints a note.
    Tell(&'static str),
    /// Ends the keys.
    End(Ending),
}

/// The outcome of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The user left.
    Left,
    /// The command was accepted: it goes into the shell's history, if the shell asks for it.
    Taken,
    /// The command ran, with this exit code.
    Ran(u8),
    /// Ctrl-C.
    Interrupted,
}

/// A state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The keys are shown.
    Choosing,
    /// A line editor has the terminal, with the command.
    Editing,
    /// A line editor has the terminal, for words.
    Wording,
    /// Work is in progress, as a request to the model.
    Working,
    /// The command has the terminal.
    Running,
    /// Over.
    Over,
}

/// A key with its word.
pub type Item = (String, &'static str);

/// The keys below an answer.
#[derive(Debug, Clone)]
pub struct Machine {
    state: State,
    /// The commands to choose from.
    commands: Vec<String>,
    /// The index of the chosen one.
    chosen: usize,
    /// The shell that they run in here; `None` if they are for another machine.
    shell: Option<Dialect>,
    /// False if no model may be asked for further answers.
    can_ask: bool,
}

impl Machine {
    /// Creates the keys for the shown commands. `shell` runs them here, and is `None` if they are for another machine;
    /// `can_ask` is false if no model may be asked for further answers.
    pub fn new(commands: Vec<String>, shell: Option<Dialect>, can_ask: bool) -> Self {
        Self { state: State::Choosing, commands, chosen: 0, shell, can_ask }
    }

    /// True if running the chosen command here has an effect.
    fn can_run(&self) -> bool {
        self.shell.is_some_and(|shell| !changes_only_its_shell(&parse(self.command(), shell)))
    }

    /// The chosen command.
    pub fn command(&self) -> &str {
        self.commands.get(self.chosen).map_or("", String::as_str)
    }

    /// The keys that have an effect now.
    pub fn items(&self) -> Vec<Item> {
        let item = |key: &str, word| (key.to_owned(), word);
        let mut items = Vec::new();
        if self.can_run() {
            items.push(item("r", "run"));
        }
        items.push(item("e", "edit"));
        if self.can_ask {
            items.push(item("v", "revise"));
        }
        items.extend([item("?", "explain"), item("c", "copy")]);
        if self.can_ask {
            items.push(item("a", "another"));
        }
        if self.commands.len() > 1 {
            items.push((format!("1-{}", self.commands.len().min(9)), "choose"));
        }
        items.push(item("q", "quit"));
        items
    }

    /// Handles an event, and returns its effects in order.
    pub fn on(&mut self, event: Event) -> Vec<Effect> {
        use Effect::{Draw, Erase, Tell};
        match (self.state, event) {
            (State::Over, _) => Vec::new(),
            (State::Choosing, Event::Key(key)) => self.on_key(key),
            (State::Choosing, Event::Pasted) => {
                vec![Erase, Tell("pasted text is not taken for keys: press one of them"), Draw]
            }
            (State::Choosing, Event::Resized) => vec![Erase, Draw],
            (State::Choosing, Event::Resumed) => vec![Effect::Show(self.command().to_owned()), Draw],
            (State::Editing, Event::Line(line)) => match line.map(|line| line.trim().to_owned()) {
                Some(line) if !line.is_empty() && line != self.command() => self.start_work(Effect::Check(line)),
                _ => self.back_to_keys(),
            },
            (State::Wording, Event::Line(words)) => match words.map(|words| words.trim().to_owned()) {
                Some(words) if !words.is_empty() => {
                    self.start_work(Effect::Revise { from: self.command().to_owned(), words })
                }
                _ => self.back_to_keys(),
            },
            (State::Working, Event::Answered(commands)) => {
                if !commands.is_empty() {
                    (self.commands, self.chosen) = (commands, 0);
                }
                self.back_to_keys()
            }
            (State::Running, Event::Ran(Some(code))) => self.end(Ending::Ran(code)),
            (State::Working, Event::Done) | (State::Running, Event::Ran(None)) => self.back_to_keys(),
            // a late event of an earlier state
            _ => Vec::new(),
        }
    }

    fn on_key(&mut self, key: Key) -> Vec<Effect> {
        let command = self.command().to_owned();
        let effect = match key {
            Key::Char(c) => match c.to_ascii_lowercase() {
                'r' if self.can_run() => {
                    self.state = State::Running;
                    Effect::Run(command)
                }
                'e' => {
                    self.state = State::Editing;
                    Effect::Edit(command)
                }
                'v' if self.can_ask => {
                    self.state = State::Wording;
                    Effect::AskWords
                }
                'a' if self.can_ask => return self.erase_and_start_work(Effect::Another),
                '?' | 'h' => return self.erase_and_start_work(Effect::Explain(command)),
                'c' => return self.erase_and_start_work(Effect::Copy(command)),
                'q' => return self.erase_and_end(Ending::Left),
                digit => return self.choose(digit),
            },
            Key::Enter => return self.erase_and_end(Ending::Taken),
            Key::Esc | Key::End => return self.erase_and_end(Ending::Left),
            Key::Interrupt => return self.erase_and_end(Ending::Interrupted),
            Key::Suspend => return vec![Effect::Erase, Effect::Suspend],
            Key::Other => return Vec::new(),
        };
        vec![Effect::Erase, effect]
    }

    /// Chooses one of the shown commands; any other character has no effect.
    fn choose(&mut self, digit: char) -> Vec<Effect> {
        let number = digit.to_digit(10).and_then(|n| usize::try_from(n).ok()?.checked_sub(1));
        let Some(number) = number.filter(|n| *n < self.commands.len() && self.commands.len() > 1) else {
            return Vec::new();
        };
        self.chosen = number;
        vec![Effect::Erase, Effect::Show(self.command().to_owned()), Effect::Draw]
    }

    fn start_work(&mut self, effect: Effect) -> Vec<Effect> {
        self.state = State::Working;
        vec![effect]
    }

    fn erase_and_start_work(&mut self, effect: Effect) -> Vec<Effect> {
        self.state = State::Working;
        vec![Effect::Erase, effect]
    }

    fn back_to_keys(&mut self) -> Vec<Effect> {
        self.state = State::Choosing;
        vec![Effect::Draw]
    }

    fn end(&mut self, ending: Ending) -> Vec<Effect> {
        self.state = State::Over;
        vec![Effect::End(ending)]
    }

    fn erase_and_end(&mut self, ending: Ending) -> Vec<Effect> {
        self.state = State::Over;
        vec![Effect::Erase, Effect::End(ending)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASH: Option<Dialect> = Some(Dialect::Bash);

    fn machine() -> Machine {
        Machine::new(vec!["ls -a".into()], BASH, true)
    }

    fn press(machine: &mut Machine, key: char) -> Vec<Effect> {
        machine.on(Event::Key(Key::Char(key)))
    }

    #[test]
    fn each_key_erases_the_keys_and_has_its_effect() {
        let command = || "ls -a".to_owned();
        for (key, effect) in [
            ('r', Effect::Run(command())),
            ('R', Effect::Run(command())),
            ('e', Effect::Edit(command())),
            ('v', Effect::AskWords),
            ('a', Effect::Another),
            ('?', Effect::Explain(command())),
            ('h', Effect::Explain(command())),
            ('c', Effect::Copy(command())),
            ('q', Effect::End(Ending::Left)),
        ] {
            assert_eq!(press(&mut machine(), key), [Effect::Erase, effect], "{key}");
        }
        for (key, ending) in [
            (Key::Enter, Ending::Taken),
            (Key::Esc, Ending::Left),
            (Key::End, Ending::Left),
            (Key::Interrupt, Ending::Interrupted),
        ] {
            assert_eq!(machine().on(Event::Key(key)), [Effect::Erase, Effect::End(ending)], "{key:?}");
        }
        for key in [Key::Other, Key::Char('x'), Key::Char('z'), Key::Char('1'), Key::Char('é'), Key::Char(' ')] {
            assert_eq!(machine().on(Event::Key(key)), [], "{key:?}");
        }
    }

    #[test]
    fn a_command_for_another_machine_cannot_be_run() {
        let mut machine = Machine::new(vec!["ls -a".into()], None, true);
        assert_eq!(press(&mut machine, 'r'), []);
        assert!(machine.items().iter().all(|(_, word)| *word != "run"));
    }

    #[test]
    fn a_command_for_the_shell_itself_is_not_run_in_another() {
        let mut machine = Machine::new(vec!["cd /tmp".into(), "ls".into()], BASH, true);
        assert_eq!(press(&mut machine, 'r'), []);
        assert!(machine.items().iter().all(|(_, word)| *word != "run"));
        press(&mut machine, '2');
        assert_eq!(press(&mut machine, 'r'), [Effect::Erase, Effect::Run("ls".into())]);
    }

    #[test]
    fn without_a_model_its_keys_are_absent() {
        let mut machine = Machine::new(vec!["ls -a".into()], BASH, false);
        assert!(machine.items().iter().all(|(_, word)| !["revise", "another"].contains(word)));
        for key in ['v', 'a'] {
            assert_eq!(press(&mut machine, key), [], "{key}");
        }
        assert_eq!(press(&mut machine, 'e'), [Effect::Erase, Effect::Edit("ls -a".into())]);
    }

    #[test]
    fn an_edited_line_is_checked_and_becomes_the_command() {
        let mut machine = machine();
        press(&mut machine, 'e');
        assert_eq!(machine.on(Event::Line(Some(" ls -A ".into()))), [Effect::Check("ls -A".into())]);
        assert_eq!(press(&mut machine, 'r'), [], "nothing runs before it is checked");
        assert_eq!(machine.on(Event::Answered(vec!["ls -A".into()])), [Effect::Draw]);
        assert_eq!(press(&mut machine, 'r'), [Effect::Erase, Effect::Run("ls -A".into())]);
    }

    #[test]
    fn a_cancelled_empty_or_unchanged_line_changes_nothing() {
        for line in [None, Some(""), Some("  "), Some("ls -a")] {
            let mut machine = machine();
            press(&mut machine, 'e');
            assert_eq!(machine.on(Event::Line(line.map(str::to_owned))), [Effect::Draw], "{line:?}");
            assert_eq!(machine.command(), "ls -a");
        }
        let mut machine = machine();
        press(&mut machine, 'v');
        assert_eq!(machine.on(Event::Line(Some(" ".into()))), [Effect::Draw]);
    }

    #[test]
    fn a_command_can_be_revised_repeatedly() {
        let mut machine = machine();
        for (words, before, after) in
            [("only folders", "ls -a", "ls -d */"), ("the newest first", "ls -d */", "ls -dt */")]
        {
            assert_eq!(press(&mut machine, 'v'), [Effect::Erase, Effect::AskWords]);
            let revise = Effect::Revise { from: before.into(), words: words.into() };
            assert_eq!(machine.on(Event::Line(Some(words.into()))), [revise]);
            assert_eq!(machine.on(Event::Answered(vec![after.into()])), [Effect::Draw]);
            assert_eq!(machine.command(), after);
        }
        // without an answer of the model the command stays
        press(&mut machine, 'a');
        machine.on(Event::Answered(Vec::new()));
        assert_eq!(machine.command(), "ls -dt */");
    }

    #[test]
    fn a_declined_command_brings_the_keys_back_and_a_run_ends_them() {
        let mut machine = machine();
        press(&mut machine, 'r');
        assert_eq!(machine.on(Event::Ran(None)), [Effect::Draw]);
        press(&mut machine, 'r');
        assert_eq!(machine.on(Event::Ran(Some(7))), [Effect::End(Ending::Ran(7))]);
        assert_eq!(press(&mut machine, 'r'), []);
    }

    #[test]
    fn one_of_several_is_chosen_by_its_number() {
        let mut machine = Machine::new(vec!["one".into(), "two".into()], BASH, true);
        assert!(machine.items().contains(&("1-2".into(), "choose")));
        assert_eq!(press(&mut machine, '2'), [Effect::Erase, Effect::Show("two".into()), Effect::Draw]);
        assert_eq!(press(&mut machine, '3'), []);
        assert_eq!(press(&mut machine, '0'), []);
        assert_eq!(press(&mut machine, 'c'), [Effect::Erase, Effect::Copy("two".into())]);
    }

    #[test]
    fn a_paste_is_no_key_and_a_resize_and_ctrl_z_keep_the_choice() {
        let mut machine = machine();
        assert!(matches!(machine.on(Event::Pasted)[..], [Effect::Erase, Effect::Tell(_), Effect::Draw]));
        assert_eq!(machine.on(Event::Resized), [Effect::Erase, Effect::Draw]);
        assert_eq!(machine.on(Event::Key(Key::Suspend)), [Effect::Erase, Effect::Suspend]);
        assert_eq!(machine.on(Event::Resumed), [Effect::Show("ls -a".into()), Effect::Draw]);
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            any::<char>().prop_map(|c| Event::Key(Key::Char(c))),
            "[revach?q1-9]".prop_filter_map("one", |text| Some(Event::Key(Key::Char(text.chars().next()?)))),
            Just(Event::Key(Key::Suspend)),
            Just(Event::Pasted),
            Just(Event::Resized),
            proptest::option::of("[ -~]{0,9}").prop_map(Event::Line),
            proptest::collection::vec("[a-z]{1,5}", 0..4).prop_map(Event::Answered),
            Just(Event::Done),
            proptest::option::of(any::<u8>()).prop_map(Event::Ran),
        ]
    }

    proptest! {
        /// For any sequence of events: only the key runs a command, the shown one, and nothing happens after the end.
        #[test]
        fn only_the_key_runs_anything(events in proptest::collection::vec(event(), 0..60)) {
            let mut machine = Machine::new(vec!["one".into(), "two".into()], BASH, true);
            let mut over = false;
            for event in events {
                let is_run = matches!(event, Event::Key(Key::Char('r' | 'R')));
                let shown = machine.command().to_owned();
                let effects = machine.on(event);
                prop_assert!(!over || effects.is_empty());
                for effect in &effects {
                    if let Effect::Run(command) = effect {
                        prop_assert!(is_run && *command == shown);
                    }
                    over |= matches!(effect, Effect::End(_));
                }
                prop_assert!(!machine.command().is_empty());
            }
        }
    }
}
