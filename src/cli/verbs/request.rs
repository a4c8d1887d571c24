//! The default verb: turns a request in plain words into a command.

use crate::answer::ask::{Place, ask, check, check_target, failure, milliseconds};
use crate::answer::asker::Asker;
use crate::answer::deliver::{Delivery, deliver};
use crate::answer::execute::check_can_ask;
use crate::answer::log::last;
use crate::answer::run::ExecuteOptions;
use crate::answer::{followup, present, revise};
use crate::flags::RequestArgs;
use crate::setup::wire;
use crate::slip::{slip, verb_of};
use crate::term::{first, keys, stdin};
use crate::{Cx, Failure, Outcome};
use caro_command::{CommandRequest, library};
use std::ffi::OsString;
use std::time::Instant;

/// Answers the request. With `--json` a document is printed even if it fails.
///
/// # Errors
/// If there is no answer.
pub fn run(args: &RequestArgs, cx: &Cx) -> Outcome {
    cx.with_error_document(args.answer.json, answer(args, cx))
}

fn answer(args: &RequestArgs, cx: &Cx) -> Outcome {
    let request = words(&args.words)?;
    if !args.literal {
        reject_misspelled_verb(&cx.definition(), &args.words, &request)?;
    }
    let from = args.from.as_deref().map(revise::check_command).transpose()?;
    let settings = cx.settings(&args.answer.layer())?;
    check_target(&settings)?;
    if args.execute {
        check_can_ask(cx)?;
    }
    if cx.cwd.is_none() {
        cx.ui.warn("the working directory no longer exists");
    }
    // checked before a model is opened in vain
    let last_answer = if from == Some(revise::LAST) { Some(last::find(&settings, cx)?) } else { None };
    let runtime = cx.runtime()?;
    // the line editor of a shell has no data for the command
    let data = if args.widget { None } else { Some(stdin::look()) };
    let keys = args.widget.then(|| keys::watch(cx.interrupt()));
    let wired = wire::open(cx, &settings)?;
    let place = Place::of(&wired.recipe.context, &settings, None);
    // on a shell's line a comment after a command says how to change the command
    let on_line = if args.widget { revise::split(&request, place.dialect, &wired.recipe.context) } else { None };
    let (said, words) = match (on_line, last_answer, from) {
        (Some((command, words)), ..) => (vec![revise::exchange(command)], words),
        (None, Some(answer), _) => (last::conversation(&answer, &place)?, request.as_str()),
        (None, None, from) => (from.map(revise::exchange).into_iter().collect(), request.as_str()),
    };
    let ask = ask(words.to_owned(), &place, &settings, &args.answer, cx.interrupt().cancel());
    let mut before = revise::history(said);
    if let Some(data) = data {
        data.tell(&mut before, wired.recipe.context.available_commands.contains_key("jq"), cx);
    }
    let ask = CommandRequest { before, ..ask };
    // the timeout begins at the start of the program; only a download is not counted
    let spent = cx.started.elapsed().saturating_sub(wired.opened.download);
    let ask = CommandRequest { timeout: settings.timeout.saturating_sub(spent), ..ask };
    let is_first = wired.is_first && !args.answer.json;
    let mut answer = first::with_progress(&cx.ui, is_first, || {
        runtime.block_on(async {
            if wired.is_first {
                let until = Instant::now() + ask.timeout;
                wired.recipe.prepare(place.target, place.dialect, &ask.cancel.with_deadline(until)).await;
            }
            wired.recipe.answer(&ask, &mut |event| present::trace(&cx.ui, &args.answer, &event)).await
        })
    })
    .map_err(|e| failure(e, &settings))?;
    drop(keys);
    answer.timing.context = milliseconds(wired.opened.context);
    answer.timing.total = milliseconds(cx.started.elapsed());
    answer.resident = wired.resident.answers();
    if args.answer.verbose || args.answer.debug {
        wired.resident.tell(&cx.ui);
        if let Some(adapter) = &answer.adapter {
            cx.ui.fact("adapter", adapter);
        }
    }
    let execute = args.execute.then_some(ExecuteOptions { preview: args.preview, trash: args.trash });
    let context = wired.recipe.context.clone();
    let is_bare = args.execute || args.widget || args.no_keys || args.answer.json;
    let has_keys = !answer.cmd.is_empty() && followup::should_offer(is_bare, &settings, cx);
    let how = Delivery {
        args: &args.answer,
        execute,
        widget: args.widget,
        also: None,
        request: Some(&request),
        said: revise::exchanges(&ask, &answer.cmd),
        asker: None,
    };
    if !has_keys && execute.is_none() {
        crate::wind_up(runtime);
        return deliver(answer, how, &place, &settings, &context, cx);
    }
    if has_keys && args.answer.timing {
        present::timing(&cx.ui, &answer.timing);
    }
    let outcome = {
        let machine = (context.clone(), wired.recipe.manual.clone());
        let asker = Asker::new(cx, &args.answer, &settings, &place, &runtime, machine, (ask, &answer)).with(wired);
        match has_keys {
            true => {
                let request = settings.request_history.then_some(request.as_str());
                followup::run(answer, &followup::Session { asker, asks: true, request })
            }
            false => deliver(answer, Delivery { asker: Some(&asker), ..how }, &place, &settings, &context, cx),
        }
    };
    crate::wind_up(runtime);
    outcome
}

/// Rejects a request whose first word looks like a misspelled verb.
fn reject_misspelled_verb(program: &clap::Command, words: &[OsString], request: &str) -> Result<(), Failure> {
    let first = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    let is_word = |word: &str| {
        let lower = word.to_lowercase();
        library::vocabulary().contains_key(lower.as_str()) || caro_exec::find(word).is_some()
    };
    let verb = match words.len() {
        // `memory?` asks for something
        0 | 1 if request.ends_with('?') => None,
        0 | 1 => slip(program, request).or_else(|| {
            // a program of that name is asked about
            let is_free = !request.is_empty() && caro_exec::find(request).is_none();
            is_free.then(|| verb_of(program, request)).flatten().map(|verb| format!("{verb} {request}"))
        }),
        // `versions of ...` and `tool that ...` are no slips; an English word or a program begins a request
        _ => slip(program, first)
            .filter(|verb| !first.starts_with(verb.as_str()) && !verb.starts_with(first) && !is_word(first)),
    };
    let Some(verb) = verb else { return Ok(()) };
    let quoted = match words.len() {
        0 | 1 => format!("For a command of one word: `caro -- {request}`"),
        _ => format!("For a request that begins so: `caro -- {request}`"),
    };
    Err(Failure::usage(format!("there is no verb `{first}`")).hint(format!("`caro {verb}`? {quoted}")))
}

/// Joins the words of the request.
fn words(words: &[OsString]) -> Result<String, Failure> {
    let try_it = "try: `caro \"show top processes\"`";
    let mut request = String::new();
    for word in words {
        let word = word.to_str().ok_or_else(|| {
            Failure::usage("the request is not valid UTF-8").hint("write it in a UTF-8 terminal, or in plain ASCII")
        })?;
        if !request.is_empty() {
            request.push(' ');
        }
        request.push_str(word);
    }
    check(&request).map_err(|message| Failure::usage(message).hint(try_it))?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exit;

    #[test]
    fn words_are_joined_and_checked() {
        let of = |list: &[&str]| words(&list.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of(&["show", "top processes"]).unwrap(), "show top processes");
        for empty in [&[][..], &[""], &["  ", "\t"]] {
            assert_eq!(of(empty).unwrap_err().message, "the request is empty");
        }
        let long = of(&[&"x".repeat(100_000)]).unwrap_err();
        assert_eq!((long.exit, long.message.contains("100000 bytes")), (Exit::Usage, true));
    }

    #[cfg(unix)]
    #[test]
    fn words_that_are_no_utf8_are_refused() {
        use std::os::unix::ffi::OsStringExt;
        assert!(words(&[OsString::from_vec(vec![0xff])]).unwrap_err().message.contains("UTF-8"));
    }
}
