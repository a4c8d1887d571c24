//! The state machine of the keys: events in, effects out. It reads nothing, writes nothing and knows no clock.
//!
//! ```text
//! Choosing -- r --> Running   --> ran: over; not agreed to: Choosing
//!          -- e --> Editing   --> a line: Working (it is checked)   --> Choosing
//!          -- v --> Wording   --> words:  Working (the model)       --> Choosing
//!          -- a --> Working (the model)                             --> Choosing
//!          -- ? --> Working (the manuals)                           --> Choosing
//!          -- c --> Working (the clipboard)                         --> Choosing
//!          -- 1 ... 9: another of those that are shown is chosen
//!          -- q, Esc, Enter, Ctrl-C, Ctrl-D --> over
//! ```

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// The end of a line.
    Enter,
    /// Escape, alone.
    Esc,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or a terminal that is gone.
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
    /// Text came at once, as from a paste.
    Pasted,
    /// The terminal has another size.
    Resized,
    /// The person is back from Ctrl-Z.
    Resumed,
    /// The editor ended with this line; `None` if it was given up.
    Line(Option<String>),
    /// An answer came and is shown: the commands that can be chosen, the first one first; none if nothing came of it.
    Answered(Vec<String>),
    /// The work is done, and the command stays.
    Done,
    /// The command ran and ended with this code; `None` if it was not agreed to.
    Ran(Option<u8>),
}

/// An effect, for the driver to carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Shows the keys.
    Draw,
    /// Takes the keys off the terminal.
    Erase,
    /// Leaves the terminal to the shell until the person comes back.
    Suspend,
    /// Shows the command of the choice anew.
    Show(String),
    /// Lets the command be changed.
    Edit(String),
    /// Asks for words that say how the command is to be changed.
    AskWords,
    /// Checks a command that the person has written.
    Check(String),
    /// Has the model change the command by words.
    Revise {
        /// The command.
        from: String,
        /// The words.
        words: String,
    },
    /// Has the model write another command.
    Another,
    /// Explains the command.
    Explain(String),
    /// Copies the command.
    Copy(String),
    /// Runs the command.
    Run(String),
    /// Tells the person something.
    Tell(&'static str),
    /// Ends.
    End(Ending),
}

/// How the keys end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Given up.
    Left,
    /// The command was taken: it goes into the history of a shell that keeps it.
    Taken,
    /// It ran, with this code.
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
    /// Something is at work.
    Working,
    /// The command has the terminal.
    Running,
    /// Over.
    Over,
}

/// A key that can be chosen, with its word.
pub type Item = (String, &'static str);

/// The keys beside a command.
#[derive(Debug, Clone)]
pub struct Machine {
    state: State,
    /// The commands that can be chosen.
    commands: Vec<String>,
    /// Which of them is.
    chosen: usize,
    /// False where the command is for another machine.
    runs: bool,
    /// False where no model is to be asked for more.
    asks: bool,
}

impl Machine {
    /// The machine beside the commands that are shown. `runs` is false if they are for another machine, `asks` if no model is to be
    /// asked for more.
    pub fn new(commands: Vec<String>, runs: bool, asks: bool) -> Self {
        Self { state: State::Choosing, commands, chosen: 0, runs, asks }
    }

    /// The command that the keys are about.
    pub fn command(&self) -> &str {
        self.commands.get(self.chosen).map_or("", String::as_str)
    }

    /// The keys that do something now.
    pub fn items(&self) -> Vec<Item> {
        let item = |key: &str, word| (key.to_owned(), word);
        let mut items = Vec::new();
        if self.runs {
            items.push(item("r", "run"));
        }
        items.push(item("e", "edit"));
        if self.asks {
            items.push(item("v", "revise"));
        }
        items.extend([item("?", "explain"), item("c", "copy")]);
        if self.asks {
            items.push(item("a", "another"));
        }
        if self.commands.len() > 1 {
            items.push((format!("1-{}", self.commands.len().min(9)), "choose"));
        }
        items.push(item("q", "quit"));
        items
    }

    /// Takes an event, and says what is to be done about it, in order.
    pub fn on(&mut self, event: Event) -> Vec<Effect> {
        use Effect::{Draw, Erase, Tell};
        match (self.state, event) {
            (State::Over, _) => Vec::new(),
            (State::Choosing, Event::Key(key)) => self.key(key),
            (State::Choosing, Event::Pasted) => {
                vec![Erase, Tell("pasted text is not taken for keys: press one of them"), Draw]
            }
            (State::Choosing, Event::Resized) => vec![Erase, Draw],
            (State::Choosing, Event::Resumed) => vec![Effect::Show(self.command().to_owned()), Draw],
            (State::Editing, Event::Line(line)) => match line.map(|line| line.trim().to_owned()) {
                Some(line) if !line.is_empty() && line != self.command() => self.at_work(Effect::Check(line)),
                _ => self.again(),
            },
            (State::Wording, Event::Line(words)) => match words.map(|words| words.trim().to_owned()) {
                Some(words) if !words.is_empty() => {
                    self.at_work(Effect::Revise { from: self.command().to_owned(), words })
                }
                _ => self.again(),
            },
            (State::Working, Event::Answered(commands)) => {
                if !commands.is_empty() {
                    (self.commands, self.chosen) = (commands, 0);
                }
                self.again()
            }
            (State::Running, Event::Ran(Some(code))) => self.end(Ending::Ran(code)),
            (State::Working, Event::Done) | (State::Running, Event::Ran(None)) => self.again(),
            // an event of a state that is over
            _ => Vec::new(),
        }
    }

    fn key(&mut self, key: Key) -> Vec<Effect> {
        let command = self.command().to_owned();
        let effect = match key {
            Key::Char(c) => match c.to_ascii_lowercase() {
                'r' | 'x' if self.runs => {
                    self.state = State::Running;
                    Effect::Run(command)
                }
                'e' => {
                    self.state = State::Editing;
                    Effect::Edit(command)
                }
                'v' if self.asks => {
                    self.state = State::Wording;
                    Effect::AskWords
                }
                'a' if self.asks => return self.at_work_from_keys(Effect::Another),
                '?' | 'h' => return self.at_work_from_keys(Effect::Explain(command)),
                'c' => return self.at_work_from_keys(Effect::Copy(command)),
                'q' => return self.end_from_keys(Ending::Left),
                digit => return self.choose(digit),
            },
            Key::Enter => return self.end_from_keys(Ending::Taken),
            Key::Esc | Key::End => return self.end_from_keys(Ending::Left),
            Key::Interrupt => return self.end_from_keys(Ending::Interrupted),
            Key::Suspend => return vec![Effect::Erase, Effect::Suspend],
            Key::Other => return Vec::new(),
        };
        vec![Effect::Erase, effect]
    }

    /// Chooses one of the commands that are shown; any other character does nothing.
    fn choose(&mut self, digit: char) -> Vec<Effect> {
        let number = digit.to_digit(10).and_then(|n| usize::try_from(n).ok()?.checked_sub(1));
        let Some(number) = number.filter(|n| *n < self.commands.len() && self.commands.len() > 1) else {
            return Vec::new();
        };
        self.chosen = number;
        vec![Effect::Erase, Effect::Show(self.command().to_owned()), Effect::Draw]
    }

    fn at_work(&mut self, effect: Effect) -> Vec<Effect> {
        self.state = State::Working;
        vec![effect]
    }

    fn at_work_from_keys(&mut self, effect: Effect) -> Vec<Effect> {
        self.state = State::Working;
        vec![Effect::Erase, effect]
    }

    fn again(&mut self) -> Vec<Effect> {
        self.state = State::Choosing;
        vec![Effect::Draw]
    }

    fn end(&mut self, ending: Ending) -> Vec<Effect> {
        self.state = State::Over;
        vec![Effect::End(ending)]
    }

    fn end_from_keys(&mut self, ending: Ending) -> Vec<Effect> {
        self.state = State::Over;
        vec![Effect::Erase, Effect::End(ending)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn machine() -> Machine {
        Machine::new(vec!["ls -a".into()], true, true)
    }

    fn pressed(machine: &mut Machine, key: char) -> Vec<Effect> {
        machine.on(Event::Key(Key::Char(key)))
    }

    #[test]
    fn each_key_has_its_effect_and_takes_the_keys_away_first() {
        let command = || "ls -a".to_owned();
        for (key, effect) in [
            ('r', Effect::Run(command())),
            ('R', Effect::Run(command())),
            ('x', Effect::Run(command())),
            ('e', Effect::Edit(command())),
            ('v', Effect::AskWords),
            ('a', Effect::Another),
            ('?', Effect::Explain(command())),
            ('h', Effect::Explain(command())),
            ('c', Effect::Copy(command())),
            ('q', Effect::End(Ending::Left)),
        ] {
            assert_eq!(pressed(&mut machine(), key), [Effect::Erase, effect], "{key}");
        }
        for (key, ending) in [
            (Key::Enter, Ending::Taken),
            (Key::Esc, Ending::Left),
            (Key::End, Ending::Left),
            (Key::Interrupt, Ending::Interrupted),
        ] {
            assert_eq!(machine().on(Event::Key(key)), [Effect::Erase, Effect::End(ending)], "{key:?}");
        }
        for key in [Key::Other, Key::Char('z'), Key::Char('1'), Key::Char('é'), Key::Char(' ')] {
            assert_eq!(machine().on(Event::Key(key)), [], "{key:?}");
        }
    }

    #[test]
    fn a_command_for_another_machine_cannot_be_run() {
        let mut machine = Machine::new(vec!["ls -a".into()], false, true);
        assert_eq!(pressed(&mut machine, 'r'), []);
        assert!(machine.items().iter().all(|(_, word)| *word != "run"));
    }

    #[test]
    fn where_no_model_is_asked_there_is_no_key_for_it() {
        let mut machine = Machine::new(vec!["ls -a".into()], true, false);
        assert!(machine.items().iter().all(|(_, word)| !["revise", "another"].contains(word)));
        for key in ['v', 'a'] {
            assert_eq!(pressed(&mut machine, key), [], "{key}");
        }
        assert_eq!(pressed(&mut machine, 'e'), [Effect::Erase, Effect::Edit("ls -a".into())]);
    }

    #[test]
    fn an_edited_line_is_checked_and_becomes_the_command() {
        let mut machine = machine();
        pressed(&mut machine, 'e');
        assert_eq!(machine.on(Event::Line(Some(" ls -A ".into()))), [Effect::Check("ls -A".into())]);
        assert_eq!(pressed(&mut machine, 'r'), [], "nothing runs before it is checked");
        assert_eq!(machine.on(Event::Answered(vec!["ls -A".into()])), [Effect::Draw]);
        assert_eq!(pressed(&mut machine, 'r'), [Effect::Erase, Effect::Run("ls -A".into())]);
    }

    #[test]
    fn a_line_that_is_given_up_empty_or_the_same_changes_nothing() {
        for line in [None, Some(""), Some("  "), Some("ls -a")] {
            let mut machine = machine();
            pressed(&mut machine, 'e');
            assert_eq!(machine.on(Event::Line(line.map(str::to_owned))), [Effect::Draw], "{line:?}");
            assert_eq!(machine.command(), "ls -a");
        }
        let mut machine = machine();
        pressed(&mut machine, 'v');
        assert_eq!(machine.on(Event::Line(Some(" ".into()))), [Effect::Draw]);
    }

    #[test]
    fn a_command_is_revised_as_often_as_wanted() {
        let mut machine = machine();
        for (words, before, after) in
            [("only folders", "ls -a", "ls -d */"), ("the newest first", "ls -d */", "ls -dt */")]
        {
            assert_eq!(pressed(&mut machine, 'v'), [Effect::Erase, Effect::AskWords]);
            let revise = Effect::Revise { from: before.into(), words: words.into() };
            assert_eq!(machine.on(Event::Line(Some(words.into()))), [revise]);
            assert_eq!(machine.on(Event::Answered(vec![after.into()])), [Effect::Draw]);
            assert_eq!(machine.command(), after);
        }
        // where the model has nothing the command stays
        pressed(&mut machine, 'a');
        machine.on(Event::Answered(Vec::new()));
        assert_eq!(machine.command(), "ls -dt */");
    }

    #[test]
    fn what_is_not_agreed_to_brings_the_keys_back_and_what_ran_ends() {
        let mut machine = machine();
        pressed(&mut machine, 'r');
        assert_eq!(machine.on(Event::Ran(None)), [Effect::Draw]);
        pressed(&mut machine, 'r');
        assert_eq!(machine.on(Event::Ran(Some(7))), [Effect::End(Ending::Ran(7))]);
        assert_eq!(pressed(&mut machine, 'r'), []);
    }

    #[test]
    fn one_of_several_is_chosen_by_its_number() {
        let mut machine = Machine::new(vec!["one".into(), "two".into()], true, true);
        assert!(machine.items().contains(&("1-2".into(), "choose")));
        assert_eq!(pressed(&mut machine, '2'), [Effect::Erase, Effect::Show("two".into()), Effect::Draw]);
        assert_eq!(pressed(&mut machine, '3'), []);
        assert_eq!(pressed(&mut machine, '0'), []);
        assert_eq!(pressed(&mut machine, 'c'), [Effect::Erase, Effect::Copy("two".into())]);
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
        /// Whatever comes in whatever order: nothing but the key runs a command, it is the one that is shown, and nothing
        /// happens any more after the end.
        #[test]
        fn only_the_key_runs_anything(events in proptest::collection::vec(event(), 0..60)) {
            let mut machine = Machine::new(vec!["one".into(), "two".into()], true, true);
            let mut over = false;
            for event in events {
                let is_run = matches!(event, Event::Key(Key::Char('r' | 'R' | 'x' | 'X')));
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
