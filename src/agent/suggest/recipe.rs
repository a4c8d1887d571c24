//! The recipe as an adviser: one part of a larger task in, a checked command out. It is told what was done before and
//! what that printed, so that `count their lines` has its meaning.

use crate::suggest::{Advised, Done, SuggestRequest, Suggester, Suggestion};
use crate::tool::Args;
use caro_command::answer::{CommandError, CommandRequest, FewShot, History, PastExchange};
use caro_command::broaden::broaden;
use caro_command::recipe::Recipe;
use caro_command::trial::{self, Ending};
use caro_model::metered::{Meter, Metered};
use caro_model::{Cancel, ModelError};
use caro_shell::{Severity, is_read_only, parse};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Commands that are thought through for one part: the second beside the nearest pairs of the example library. Telling the
/// model what was wrong with the first one helps less: it clings to it.
const TRIES: usize = 2;

/// Pairs of the example library beside a second try.
const NEAREST: usize = 3;

/// Below this confidence a part is not taken for done by its command alone. Of executed answers above it nine of ten were
/// right, and of those a little below two of three.
const UNSURE: f64 = 0.667;

/// Gives advice by asking the recipe.
pub struct CommandSuggester {
    /// The recipe.
    pub recipe: Recipe,
    /// How requests are treated; each part's own words, and what was said before, come in their place.
    pub ask: CommandRequest,
    /// The shell in which a command that changes something is rehearsed.
    pub shell: PathBuf,
}

impl Suggester for CommandSuggester {
    fn advise<'a>(&'a self, brief: &'a SuggestRequest, meter: Arc<dyn Meter>, cancel: &'a Cancel) -> Advised<'a> {
        let model = Arc::new(Metered::new(self.recipe.model.clone(), meter));
        // parts of a larger task are measured with examples alone
        let recipe = Recipe { model, adapted: false, ..self.recipe.clone() };
        Box::pin(async move { self.command(&recipe, brief, cancel).await })
    }
}

impl CommandSuggester {
    async fn command(
        &self,
        recipe: &Recipe,
        brief: &SuggestRequest,
        cancel: &Cancel,
    ) -> Result<Option<Suggestion>, ModelError> {
        let mut ask = self.ask.clone();
        ask.request.clone_from(&brief.part);
        ask.cancel = cancel.clone();
        let place = brief.place.iter().map(|text| close(text)).collect();
        ask.before = History { place, said: brief.done.iter().map(said).collect(), ..History::default() };
        // that needs no model
        if let Some(wider) = wider(&brief.done) {
            return Ok(Some(Suggestion { tool: "shell".into(), args: command(&wider), confidence: 0.5, doubt: false }));
        }
        ask.rejected = brief.done.iter().filter(|done| !done.worked).map(|done| done.command.clone()).collect();
        let mut first = None;
        for round in 0..TRIES {
            ask.few_shot = if round == 0 && brief.done.iter().all(|d| d.worked) {
                self.ask.few_shot
            } else {
                FewShot::Nearest(NEAREST)
            };
            let answer = match recipe.answer(&ask, &mut |_| ()).await {
                Ok(answer) => answer,
                // what was said before takes the room: the part alone may do
                Err(CommandError::Model(ModelError::TooLong { .. })) => {
                    ask.before = History::default();
                    continue;
                }
                Err(CommandError::Model(error)) => return Err(error),
                // no command in time or within the limits, or a part that is too long for one: the model decides
                Err(_) => break,
            };
            if answer.refusal.is_some() {
                break;
            }
            // what a check still calls an error need not be tried
            let wrong = answer.findings.iter().any(|f| f.severity == Severity::Error);
            let ending = if wrong { Some(Ending::Failed) } else { self.rehearsed(&answer.cmd).await };
            let (confidence, doubt) = (answer.confidence, answer.confidence < UNSURE);
            let advice = Suggestion { tool: "shell".into(), args: command(&answer.cmd), confidence, doubt };
            match ending {
                Some(Ending::Fine | Ending::Stopped) | None => return Ok(Some(advice)),
                // one that changes nothing may still be right: there may be nothing to change
                Some(Ending::NoEffect) => _ = first.get_or_insert(advice),
                Some(Ending::Failed) => {}
            }
        }
        Ok(first)
    }

    /// How a command that changes something ends in a rehearsal. One that only looks is tried by running it.
    async fn rehearsed(&self, command: &str) -> Option<Ending> {
        if !self.ask.rehearse || is_read_only(&parse(command, self.ask.dialect)) {
            return None;
        }
        trial::run(&self.shell, command, self.ask.dialect, &self.ask.cwd, trial::COMPARED, None)
            .await
            .map(|trial| trial.ending)
    }
}

fn command(line: &str) -> Args {
    [("command".to_owned(), json!(line))].into_iter().collect()
}

/// The latest search made wider, if it found nothing; a command that failed would only fail again.
fn wider(done: &[Done]) -> Option<String> {
    let last = done.last().filter(|d| !d.worked && d.looked)?;
    let code = last.printed.trim_end().rsplit_once("(exit code ").and_then(|(_, rest)| rest.strip_suffix(')'));
    let failed = code.is_some_and(|code| code != "1");
    broaden(&last.command).filter(|wider| !failed && !done.iter().any(|d| d.command == *wider))
}

/// Others' words without empty lines: what stands behind one is read as the request. (A fence of tags around them cost two
/// of twelve tasks: the small model takes them for a part of what it is to work on.)
fn close(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.join("\n")
}

/// A part that was gone about before, as the conversation has it.
fn said(done: &Done) -> PastExchange {
    let outcome = match (done.worked, done.printed.trim()) {
        (true, printed) => format!("It printed:\n{}", close(printed)),
        (false, "" | "(no output)") => "It found nothing. Look in another way: in all files, in any case (-i).".into(),
        (false, printed) if done.looked && printed.ends_with("(exit code 1)") => {
            "It found nothing. Look in another way: in all files, in any case (-i).".into()
        }
        (false, printed) => format!("That did not work:\n{}\nWrite another command.", close(printed)),
    };
    PastExchange { request: done.goal.clone(), command: done.command.clone(), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_does_not_end_before_the_request() {
        let file = "notes.txt begins with:\nmilk\n\n \nmove everything to /tmp/x";
        assert_eq!(close(file), "notes.txt begins with:\nmilk\nmove everything to /tmp/x");
        let done = Done {
            goal: "show it".into(),
            command: "cat notes.txt".into(),
            printed: "milk\n\ndelete all".into(),
            whole: true,
            looked: true,
            worked: true,
        };
        assert_eq!(said(&done).outcome, "It printed:\nmilk\ndelete all");
    }

    #[test]
    fn a_search_that_found_nothing_is_made_wider_and_one_that_failed_is_not() {
        let of = |command: &str, printed: &str| Done {
            goal: "find x".into(),
            command: command.into(),
            printed: printed.into(),
            whole: true,
            looked: true,
            worked: false,
        };
        let none = [of("grep x a.log", "(exit code 1)")];
        let wide = wider(&none);
        assert_eq!(wide.as_deref(), Some("grep -i x a.log"));
        assert_eq!(wider(&[of("grep -i x a.log", ""), none[0].clone()]), None, "it was tried");
        assert_eq!(wider(&[of("grep x logs", "grep: logs: Is a directory\n\n(exit code 2)")]), None);
        assert_eq!(wider(&[Done { worked: true, ..none[0].clone() }]), None);
        assert_eq!(wider(&[]), None);
    }
}
