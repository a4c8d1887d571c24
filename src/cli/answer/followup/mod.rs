//! The keys after an answer on a terminal: run the command, edit it, have it revised, explained, copied or replaced, or leave.
//!
//! - `machine`: the state machine, pure. `decode`: bytes as keys, pure. `line`: how the keys look, pure.
//! - `tty`: the terminal as it is read (Unix).
//! - here: the driver, which carries out the effects with what the other verbs have: `-x`, `--from`, `caro explain`.
//!
//! Nothing is asked and nothing is decided here that the state machine does not say.
// without a terminal of Unix there are no keys
#![cfg_attr(not(unix), allow(dead_code, unused_imports))]

mod decode;
mod line;
mod machine;
#[cfg(unix)]
mod tty;

use super::ask::Place;
use super::asker::Asker;
use super::deliver::show;
use super::run::{self, Run};
use super::{execute, explained};
use crate::answer::log::last;
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome, Settings};
use caro_command::Answer;
use caro_host::ExecutionContext;

/// True if keys are to be offered after an answer: a person sees both streams, and nobody waits for the bare command, as `is_bare`
/// says.
pub fn are_wanted(is_bare: bool, settings: &Settings, cx: &Cx) -> bool {
    let is_seen = cx.ui.is_talkative() && cx.ui.is_at_terminal() && crate::term::interrupt::has_terminal();
    cfg!(unix) && settings.keys && !is_bare && is_seen
}

/// Everything that the keys need.
pub struct Session<'a> {
    /// For further answers.
    pub asker: Asker<'a>,
    /// True if the model may be asked for more.
    pub asks: bool,
    /// The words that were asked with, where they are to be kept.
    pub request: Option<&'a str>,
}

impl Session<'_> {
    /// The machine.
    fn context(&self) -> &ExecutionContext {
        &self.asker.context
    }

    /// Keeps the conversation that ends with this command as the last answer of the terminal.
    fn keep_last(&self, command: &str) {
        let asker = &self.asker;
        last::keep(&asker.exchanges(command), asker.place, asker.settings, asker.cx);
    }
}

/// Shows an answer that has a command, and offers the keys until the person leaves.
///
/// # Errors
/// If the terminal cannot be written, and as what is chosen does.
pub fn run(answer: Answer, session: &Session<'_>) -> Outcome {
    let asker = &session.asker;
    let (cx, place): (&Cx, &Place) = (asker.cx, asker.place);
    let left = match show(&answer, asker.args, cx) {
        Ok(exit) => exit,
        Err(draft) if draft.exit == Exit::No => {
            cx.ui.failure(&draft);
            draft.exit
        }
        Err(failure) => return Err(failure),
    };
    let context = session.context();
    let runs = place.target.os == context.target.os && run::program(place.dialect, context).is_some();
    let commands = commands(&answer);
    // whoever puts the keys aside with Ctrl-Z goes on from it, too
    session.keep_last(&answer.cmd);
    offer::offer(answer, machine::Machine::new(commands, runs, session.asks), session, left)
}

/// The commands of an answer that can be chosen.
fn commands(answer: &Answer) -> Vec<String> {
    std::iter::once(&answer.cmd).chain(answer.alternatives.iter().map(|other| &other.cmd)).cloned().collect()
}

#[cfg(not(unix))]
mod offer {
    use super::*;

    pub(super) fn offer(_: Answer, _: machine::Machine, _: &Session<'_>, left: Exit) -> Outcome {
        Ok(left)
    }
}

#[cfg(unix)]
mod offer {
    use super::machine::{Effect, Ending, Event, Key, Machine};
    use super::tty::{Keys, Tty};
    use super::*;
    use crate::answer::{log, present};
    use crate::term::interrupt::{Phase, line_of_terminal};
    use crate::term::{edit, history};
    use caro_command::risk;

    /// The driver.
    struct Driver<'a, 's> {
        session: &'a Session<'s>,
        tty: &'a Tty,
        /// True once a key was waited for.
        waited: bool,
        /// True once a command was run.
        has_run: bool,
        /// The answer whose first command is chosen.
        answer: Answer,
        machine: Machine,
    }

    /// Offers the keys; `left` is the exit code of who takes none.
    pub(super) fn offer(answer: Answer, machine: Machine, session: &Session<'_>, left: Exit) -> Outcome {
        let Some(tty) = Tty::open() else { return Ok(left) };
        let mut driver = Driver { session, tty: &tty, waited: false, has_run: false, answer, machine };
        let ending = driver.go();
        session.keep_last(driver.machine.command());
        let ending = ending?;
        if !driver.has_run && ending != Ending::Interrupted {
            driver.keep(driver.machine.command(), None);
        }
        match ending {
            Ending::Left => Ok(left),
            Ending::Taken => {
                history::hand_to_shell(driver.machine.command(), session.asker.cx);
                Ok(left)
            }
            Ending::Ran(code) => Ok(Exit::Child(code)),
            Ending::Interrupted => Err(Failure::silent(Exit::Interrupted)),
        }
    }

    impl<'a> Driver<'a, '_> {
        fn cx(&self) -> &'a Cx {
            self.session.asker.cx
        }

        /// Keeps the request with what came of it, where requests are kept.
        fn keep(&self, command: &str, code: Option<u8>) {
            if let Some(request) = self.session.request {
                log::keep(request, command, code.map(i32::from), self.session.asker.place, self.cx());
            }
        }

        /// Goes round until the machine ends.
        fn go(&mut self) -> Result<Ending, Failure> {
            let mut effects = Vec::new();
            loop {
                let mut event = None;
                for effect in std::mem::take(&mut effects) {
                    match effect {
                        Effect::End(ending) => return Ok(ending),
                        // whoever waits draws: a key that is pressed as soon as they are seen is heard
                        Effect::Draw => {}
                        effect => event = self.carry_out(effect)?,
                    }
                }
                effects = match event {
                    Some(event) => self.machine.on(event),
                    None => Vec::new(),
                };
                if effects.is_empty() {
                    effects = self.wait()?;
                }
            }
        }

        /// Waits for a key that does something. What was typed before the first answer is left to the shell, and ends the keys.
        fn wait(&mut self) -> Result<Vec<Effect>, Failure> {
            let _phase = self.cx().interrupt().during(Phase::Ends);
            let is_drawn = self.cx().ui.may_draw();
            let mut keys = if is_drawn { self.tty.keys().ok() } else { None };
            let is_ahead = !self.waited && self.tty.has_typed();
            if is_ahead || is_drawn && keys.is_none() {
                return Ok(vec![Effect::End(Ending::Left)]);
            }
            // from now on what is typed while something is at work is no choice: what it chose from was not there yet
            if std::mem::replace(&mut self.waited, true) {
                self.tty.discard();
            }
            let Some(keys) = &mut keys else { return self.wait_for_line() };
            self.carry_out_drawing(&Effect::Draw)?;
            loop {
                let mut effects = self.machine.on(keys.next());
                if effects.contains(&Effect::Suspend) {
                    self.leave(keys);
                    effects = self.machine.on(Event::Resumed);
                }
                // what only draws needs no leave of the terminal
                let is_drawing =
                    |e: &Effect| matches!(e, Effect::Draw | Effect::Erase | Effect::Show(_) | Effect::Tell(_));
                if !effects.iter().all(is_drawing) {
                    return Ok(effects);
                }
                for effect in effects {
                    self.carry_out(effect)?;
                }
            }
        }

        /// The same by lines, on a terminal that nothing is drawn over.
        fn wait_for_line(&mut self) -> Result<Vec<Effect>, Failure> {
            loop {
                let items = self.machine.items();
                self.cx().ui.ask(&self.cx().ui.paint_err(Role::Plain, &line::question(&items)));
                let typed = line_of_terminal();
                self.cx().ui.answered();
                let key = match typed {
                    Ok(Some(typed)) => line::key_of(&typed, &items),
                    // the end of the input leaves the cursor behind the question
                    Ok(None) | Err(_) => {
                        self.cx().ui.tell("");
                        Some(Key::End)
                    }
                };
                let effects = key.map(|key| self.machine.on(Event::Key(key))).unwrap_or_default();
                if !effects.is_empty() {
                    return Ok(effects);
                }
                self.cx().ui.note("type one of these letters or words and Enter; Enter alone leaves");
            }
        }

        /// Leaves the terminal to the shell until the person is back.
        fn leave(&self, keys: &mut Keys<'_>) {
            let _ = self.carry_out_drawing(&Effect::Erase);
            keys.suspend();
        }

        fn carry_out_drawing(&self, effect: &Effect) -> Result<(), Failure> {
            let ui = &self.cx().ui;
            match effect {
                Effect::Draw if ui.may_draw() => {
                    let items = self.machine.items();
                    let rows = line::rows(&items, self.tty.columns());
                    let painted = rows.iter().map(|row| {
                        let one = |(key, word): &&machine::Item| {
                            format!("{} {}", ui.paint_err(Role::Plain, key), ui.paint_err(Role::Dim, word))
                        };
                        format!("  {}", row.iter().map(one).collect::<Vec<_>>().join("  "))
                    });
                    let text = painted.collect::<Vec<_>>().join("\r\n");
                    // the cursor goes back to where the line begins: from there it is erased, however wide the terminal is by then
                    let up = if rows.len() > 1 { format!("\x1b[{}A", rows.len() - 1) } else { String::new() };
                    ui.draw(&format!("\x1b[?2004h{text}{up}\r"));
                }
                Effect::Erase if ui.may_draw() => {
                    ui.draw("\r\x1b[J\x1b[?2004l");
                }
                Effect::Show(command) => {
                    ui.command(command)?;
                    let place = self.session.asker.place;
                    let here = place.target == self.session.context().target;
                    let risk = risk::assess_text(command, place.dialect, here.then_some(place.cwd.as_path()));
                    present::verdict(ui, &risk);
                }
                Effect::Tell(what) => ui.note(what),
                _ => {}
            }
            Ok(())
        }

        /// Carries out an effect; what came of it, where something does.
        fn carry_out(&mut self, effect: Effect) -> Result<Option<Event>, Failure> {
            let asker = &self.session.asker;
            let ui = &self.cx().ui;
            Ok(Some(match effect {
                Effect::Edit(command) => Event::Line(given_up(edited(&command, self.cx()))?),
                Effect::AskWords => Event::Line(given_up(words(self.cx()))?),
                Effect::Check(command) => {
                    let answer = {
                        let _status = ui.status("checking");
                        asker.checked(command)
                    };
                    self.shown(Ok(answer))?
                }
                Effect::Revise { from, words } => self.shown(asker.revise(&from, &words))?,
                Effect::Another => self.shown(asker.another())?,
                Effect::Explain(command) => {
                    let _phase = self.cx().interrupt().during(Phase::Ends);
                    explained::tell(&command, asker.place.dialect, self.session.context(), self.cx())?;
                    Event::Done
                }
                Effect::Copy(command) => {
                    ui.aside(
                        Role::Dim,
                        &crate::term::clipboard::copy(&command, &self.session.context().available_commands, self.cx()),
                    );
                    Event::Done
                }
                Effect::Run(command) => self.ran(&command)?,
                drawing => {
                    self.carry_out_drawing(&drawing)?;
                    return Ok(None);
                }
            }))
        }

        /// Shows an answer, or why there is none: the command before it stays then.
        fn shown(&mut self, answer: Result<Answer, Failure>) -> Result<Event, Failure> {
            let ui = &self.cx().ui;
            let answer = match answer {
                Ok(answer) => answer,
                Err(failure) => {
                    let message = if failure.exit == Exit::Interrupted { "stopped" } else { &failure.message };
                    ui.aside(Role::Caution, message);
                    return Ok(Event::Answered(Vec::new()));
                }
            };
            present::answer(ui, &answer)?;
            let commands = commands(&answer);
            self.answer = answer;
            Ok(Event::Answered(commands))
        }

        /// Runs the command, as `-x` does. Why it cannot be is told, and the keys come back.
        fn ran(&mut self, command: &str) -> Result<Event, Failure> {
            let asker = &self.session.asker;
            let chosen = match command == self.answer.cmd {
                true => self.answer.clone(),
                false => asker.checked(command.to_owned()),
            };
            let run = Run {
                place: asker.place,
                settings: asker.settings,
                cx: self.cx(),
                context: self.session.context(),
                preview: false,
                trash: false,
                asker: None,
            };
            match execute::run_shown(chosen, &run) {
                Ok(Some(code)) => {
                    self.has_run = true;
                    self.keep(command, Some(code));
                    Ok(Event::Ran(Some(code)))
                }
                Ok(None) => Ok(Event::Ran(None)),
                Err(failure) if failure.exit == Exit::Interrupted => Err(failure),
                Err(failure) => {
                    self.cx().ui.failure(&failure);
                    Ok(Event::Ran(None))
                }
            }
        }
    }

    /// A line, or nothing where the person gave it up: Ctrl-C in the editor leads back to the keys.
    fn given_up(line: Result<Option<String>, Failure>) -> Result<Option<String>, Failure> {
        match line {
            Err(failure) if failure.exit == Exit::Interrupted => Ok(None),
            other => other,
        }
    }

    /// The command as the person has changed it: in place, or anew where nothing is drawn over.
    fn edited(command: &str, cx: &Cx) -> Result<Option<String>, Failure> {
        match cx.ui.may_draw() {
            true => edit::line(command),
            false => anew("the whole command, changed (Enter alone keeps it):", cx),
        }
    }

    /// Words that say how the command is to be changed.
    fn words(cx: &Cx) -> Result<Option<String>, Failure> {
        const QUESTION: &str = "how is it to be changed?";
        match cx.ui.may_draw() {
            true => edit::words(&format!("{QUESTION} ")),
            false => anew(QUESTION, cx),
        }
    }

    /// A line that is typed from its beginning.
    fn anew(question: &str, cx: &Cx) -> Result<Option<String>, Failure> {
        let _phase = cx.interrupt().during(Phase::Ends);
        cx.ui.ask(question);
        let typed = line_of_terminal();
        cx.ui.answered();
        typed.map_err(|e| Failure::no(format!("no line can be read: {e}")))
    }
}
