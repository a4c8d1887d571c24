//! Offers keys after an answer on a terminal: to run, edit, revise, explain, copy or replace the command, or to leave.
//!
//! - `machine`: the state machine. `decode`: turns bytes into keys. `line`: lays out the keys. All three are pure.
//! - `tty`: reads the terminal (Unix).
//! - here: the driver, which carries out the effects with the code of `-x`, `--from` and `caro explain`. It decides
//!   nothing itself.
// the keys need a Unix terminal
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

/// True if keys are to be offered after an answer: the user sees both streams, and the bare command alone is not wanted
/// (`is_bare`).
pub fn should_offer(is_bare: bool, settings: &Settings, cx: &Cx) -> bool {
    let is_seen = cx.ui.is_talkative() && cx.ui.is_at_terminal() && crate::term::interrupt::has_terminal();
    cfg!(unix) && settings.keys && !is_bare && is_seen
}

/// The context of the keys.
pub struct Session<'a> {
    /// Asks for further answers.
    pub asker: Asker<'a>,
    /// True if the model may be asked for further answers.
    pub asks: bool,
    /// The words of the request, for the log; `None` to log nothing.
    pub request: Option<&'a str>,
}

impl Session<'_> {
    /// This machine.
    fn context(&self) -> &ExecutionContext {
        &self.asker.context
    }

    /// Saves the conversation that ends with this command as the last answer of the terminal.
    fn save_last(&self, command: &str) {
        let asker = &self.asker;
        last::save(&asker.exchanges(command), asker.place, asker.settings, asker.cx);
    }
}

/// Shows an answer that has a command, and offers the keys until the user leaves.
///
/// # Errors
/// If the terminal cannot be written, or a chosen action fails.
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
    // saved now, so that `--from last` works after Ctrl-Z, too
    session.save_last(&answer.cmd);
    offer::offer(answer, machine::Machine::new(commands, runs.then_some(place.dialect), session.asks), session, left)
}

/// The commands of an answer to choose from.
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
    use crate::term::interrupt::{Phase, read_terminal_line};
    use crate::term::{edit, history};
    use caro_command::risk;

    /// Carries out the effects of the state machine.
    struct Driver<'a, 's> {
        session: &'a Session<'s>,
        tty: &'a Tty,
        /// True once a key was waited for.
        waited: bool,
        /// True once a command was run.
        has_run: bool,
        /// The last shown answer.
        answer: Answer,
        machine: Machine,
    }

    /// Offers the keys; `left` is the exit code if the user leaves.
    pub(super) fn offer(answer: Answer, machine: Machine, session: &Session<'_>, left: Exit) -> Outcome {
        let Some(tty) = Tty::open() else { return Ok(left) };
        let mut driver = Driver { session, tty: &tty, waited: false, has_run: false, answer, machine };
        let ending = driver.run();
        session.save_last(driver.machine.command());
        let ending = ending?;
        if !driver.has_run && ending != Ending::Interrupted {
            driver.log_request(driver.machine.command(), None);
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

        /// Logs the request with its command and exit code, if requests are logged.
        fn log_request(&self, command: &str, code: Option<u8>) {
            if let Some(request) = self.session.request {
                log::add(request, command, code.map(i32::from), self.session.asker.place, self.cx());
            }
        }

        /// Carries out effects until the machine ends.
        fn run(&mut self) -> Result<Ending, Failure> {
            let mut effects = Vec::new();
            loop {
                let mut event = None;
                for effect in std::mem::take(&mut effects) {
                    match effect {
                        Effect::End(ending) => return Ok(ending),
                        // `wait` draws once it reads keys, so that a key pressed at once is not lost
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

        /// Waits for a key that has an effect. Input typed before the first answer is left to the shell, and ends the
        /// keys.
        fn wait(&mut self) -> Result<Vec<Effect>, Failure> {
            let _phase = self.cx().interrupt().during(Phase::Ends);
            let is_drawn = self.cx().ui.may_draw();
            let mut keys = if is_drawn { self.tty.keys().ok() } else { None };
            let is_ahead = !self.waited && self.tty.has_typed();
            if is_ahead || is_drawn && keys.is_none() {
                return Ok(vec![Effect::End(Ending::Left)]);
            }
            // keys typed during later work are dropped: they cannot be about what is shown now
            if std::mem::replace(&mut self.waited, true) {
                self.tty.discard();
            }
            let Some(keys) = &mut keys else { return self.wait_for_line() };
            self.carry_out_drawing(&Effect::Draw)?;
            loop {
                let mut effects = self.machine.on(keys.next());
                if effects.contains(&Effect::Suspend) {
                    self.suspend(keys);
                    effects = self.machine.on(Event::Resumed);
                }
                // effects that only draw do not need the terminal restored
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

        /// Waits for a key that is typed as a line, on a terminal that is not drawn over.
        fn wait_for_line(&mut self) -> Result<Vec<Effect>, Failure> {
            loop {
                let items = self.machine.items();
                self.cx().ui.ask(&self.cx().ui.paint_err(Role::Plain, &line::question(&items)));
                let typed = read_terminal_line();
                self.cx().ui.answered();
                let key = match typed {
                    Ok(Some(typed)) => line::key_of(&typed, &items),
                    // at the end of the input the cursor is still on the line of the question
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

        /// Suspends the process until the user resumes it.
        fn suspend(&self, keys: &mut Keys<'_>) {
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
                    // the cursor goes back to the start: from there the keys are erased, even after a resize
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
                    present::shell_only(ui, command, place.dialect);
                }
                Effect::Tell(text) => ui.note(text),
                _ => {}
            }
            Ok(())
        }

        /// Carries out an effect, and returns the event that it leads to, if any.
        fn carry_out(&mut self, effect: Effect) -> Result<Option<Event>, Failure> {
            let asker = &self.session.asker;
            let ui = &self.cx().ui;
            Ok(Some(match effect {
                Effect::Edit(command) => Event::Line(none_if_interrupted(edit_command(&command, self.cx()))?),
                Effect::AskWords => Event::Line(none_if_interrupted(ask_words(self.cx()))?),
                Effect::Check(command) => {
                    let answer = {
                        let _status = ui.status("checking");
                        asker.check(command)
                    };
                    self.show_answer(Ok(answer))?
                }
                Effect::Revise { from, words } => self.show_answer(asker.revise(&from, &words))?,
                Effect::Another => self.show_answer(asker.another())?,
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
                Effect::Run(command) => self.run_command(&command)?,
                drawing => {
                    self.carry_out_drawing(&drawing)?;
                    return Ok(None);
                }
            }))
        }

        /// Shows an answer, or the reason there is none; then the command before it stays.
        fn show_answer(&mut self, answer: Result<Answer, Failure>) -> Result<Event, Failure> {
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

        /// Runs the command, as `-x` does. If it cannot be run, the error is printed and the keys come back.
        fn run_command(&mut self, command: &str) -> Result<Event, Failure> {
            let asker = &self.session.asker;
            let chosen = match command == self.answer.cmd {
                true => self.answer.clone(),
                false => asker.check(command.to_owned()),
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
                    self.log_request(command, Some(code));
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

    /// Turns Ctrl-C in the editor into `None`, which leads back to the keys.
    fn none_if_interrupted(line: Result<Option<String>, Failure>) -> Result<Option<String>, Failure> {
        match line {
            Err(failure) if failure.exit == Exit::Interrupted => Ok(None),
            other => other,
        }
    }

    /// Lets the user change the command: in place, or typed from its beginning on a terminal that is not drawn over.
    /// `None` also if it cannot be edited, with the reason on the screen.
    fn edit_command(command: &str, cx: &Cx) -> Result<Option<String>, Failure> {
        if cx.ui.may_draw()
            && let Err(why) = edit::check(command)
        {
            cx.ui.failure(&why);
            return Ok(None);
        }
        match cx.ui.may_draw() {
            true => edit::line(command),
            false => ask_line("the whole command, changed (Enter alone keeps it):", cx),
        }
    }

    /// Asks for words that say how to change the command.
    fn ask_words(cx: &Cx) -> Result<Option<String>, Failure> {
        const QUESTION: &str = "how is it to be changed?";
        match cx.ui.may_draw() {
            true => edit::words(&format!("{QUESTION} ")),
            false => ask_line(QUESTION, cx),
        }
    }

    /// Asks for a line, without an editor.
    fn ask_line(question: &str, cx: &Cx) -> Result<Option<String>, Failure> {
        let _phase = cx.interrupt().during(Phase::Ends);
        cx.ui.ask(question);
        let typed = read_terminal_line();
        cx.ui.answered();
        typed.map_err(|e| Failure::no(format!("no line can be read: {e}")))
    }
}
