//! The default verb: plain words in, a command out.

use super::args::{self, AnswerArgs, RequestArgs};
use super::asker::Asker;
use super::execute::{self, With};
use super::interrupt::{Phase, has_terminal, line_of_terminal};
use super::request_log::{self, last};
use super::{Cx, Exit, Failure, Outcome, Settings, edit, first, followup, keys, present, revise, stdin, wire};
use caro_command::recipe::{MAX_REQUEST, too_long};
use caro_command::{Answer, Ask, CommandError, FewShot, History, PastExchange, View, library};
use caro_host::ExecutionContext;
use caro_model::Cancel;
use caro_shell::{Dialect, Os, Severity, Target};
use regex::Regex;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between two looks whether a run that waits for the person was stopped.
const LOOK: Duration = Duration::from_millis(20);

/// Answers the request. With `--json` a program that waits for a document gets one, whatever happens.
///
/// # Errors
/// Whatever stands in the way of an answer.
pub fn run(args: &RequestArgs, cx: &Cx) -> Outcome {
    cx.documented(args.answer.json, answer(args, cx))
}

fn answer(args: &RequestArgs, cx: &Cx) -> Outcome {
    let request = words(&args.words)?;
    if !args.literal {
        no_verb(&args.words, &request)?;
    }
    let from = args.from.as_deref().map(revise::checked).transpose()?;
    let settings = cx.settings(&args.answer.layer())?;
    paired(&settings)?;
    if args.execute && !cx.ui.can_ask_at_terminal() {
        return Err(Failure::no("-x asks before it runs anything, and here is nobody to ask")
            .hint("call it from a terminal; without -x the command is printed"));
    }
    if cx.cwd.is_none() {
        cx.ui.warn("the working directory no longer exists");
    }
    // before a model is opened for nothing
    let kept = if from == Some(revise::LAST) { Some(last::find(&settings, cx)?) } else { None };
    let runtime = cx.runtime()?;
    // the line editor of a shell has no data for the command
    let data = if args.widget { None } else { Some(stdin::look()) };
    let keys = args.widget.then(|| keys::watch(cx.interrupt()));
    let wired = wire::open(cx, &settings)?;
    let place = Place::of(&wired.recipe.context, &settings, None);
    // on a shell's line a comment behind a command says how it is to be changed
    let on_line = if args.widget { revise::split(&request, place.dialect, &wired.recipe.context) } else { None };
    let (said, words) = match (on_line, kept, from) {
        (Some((command, words)), ..) => (vec![revise::given(command)], words),
        (None, Some(kept), _) => (last::conversation(&kept, &place)?, request.as_str()),
        (None, None, from) => (from.map(revise::given).into_iter().collect(), request.as_str()),
    };
    let ask = ask(words.to_owned(), &place, &settings, &args.answer, cx.interrupt().cancel());
    let mut before = revise::before(said);
    if let Some(data) = data {
        data.tell(&mut before, wired.recipe.context.available_commands.contains_key("jq"), cx);
    }
    let ask = Ask { before, ..ask };
    // The time runs from the start of the program; only a download is not counted.
    let spent = cx.started.elapsed().saturating_sub(wired.opened.download);
    let ask = Ask { timeout: settings.timeout.saturating_sub(spent), ..ask };
    let is_first = wired.is_first && !args.answer.json;
    let mut answer = first::while_told(&cx.ui, is_first, || {
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
            present::fact(&cx.ui, "adapter", adapter);
        }
    }
    let execute = args.execute.then_some(With { preview: args.preview, trash: args.trash });
    let context = wired.recipe.context.clone();
    let is_bare = args.execute || args.widget || args.no_keys || args.answer.json;
    let has_keys = !answer.cmd.is_empty() && followup::are_wanted(is_bare, &settings, cx);
    let how = How {
        args: &args.answer,
        execute,
        widget: args.widget,
        also: None,
        request: Some(&request),
        said: revise::exchanges(&ask, &answer.cmd),
        asker: None,
    };
    if !has_keys && execute.is_none() {
        super::wind_up(runtime);
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
            false => deliver(answer, How { asker: Some(&asker), ..how }, &place, &settings, &context, cx),
        }
    };
    super::wind_up(runtime);
    outcome
}

/// How an answer is delivered.
pub struct How<'a> {
    /// How it was asked for.
    pub args: &'a AnswerArgs,
    /// It is run, after asking.
    pub execute: Option<With>,
    /// A line editor waits for it.
    pub widget: bool,
    /// A further member of the document.
    pub also: Option<(&'static str, serde_json::Value)>,
    /// The words that it answers, to be kept where that is turned on.
    pub request: Option<&'a str>,
    /// The conversation that ends with it: what `--from last` goes on from.
    pub said: Vec<PastExchange>,
    /// For another command, where one can be asked for.
    pub asker: Option<&'a Asker<'a>>,
}

/// Shows an answer, or runs it.
///
/// # Errors
/// If there is no command, or a draft, or it cannot be written or run.
pub fn deliver(
    answer: Answer,
    mut how: How<'_>,
    place: &Place,
    settings: &Settings,
    context: &ExecutionContext,
    cx: &Cx,
) -> Outcome {
    if answer.cmd.is_empty() {
        return hand_over(answer, how, place, settings, context, cx, &mut None);
    }
    let (command, asked) = (answer.cmd.clone(), how.execute.is_some());
    let (request, mut said) = (how.request, std::mem::take(&mut how.said));
    let mut ran = None;
    let outcome = hand_over(answer, how, place, settings, context, cx, &mut ran);
    if let (Some(last), Some((command, _))) = (said.last_mut(), &ran) {
        last.command.clone_from(command);
    }
    last::keep(&said, place, settings, cx);
    let Some(request) = (if settings.request_history { request } else { None }) else { return outcome };
    match &ran {
        Some((command, code)) => request_log::keep(request, command, Some(*code), place, cx),
        // what nobody was given is nothing to find again
        None if asked || outcome.is_ok() => request_log::keep(request, &command, None, place, cx),
        None => {}
    }
    outcome
}

/// Does it, and tells which command was run and how it ended.
fn hand_over(
    answer: Answer,
    how: How<'_>,
    place: &Place,
    settings: &Settings,
    context: &ExecutionContext,
    cx: &Cx,
    ran: &mut Option<(String, i32)>,
) -> Outcome {
    if how.args.timing {
        present::timing(&cx.ui, &answer.timing);
    }
    if how.args.json {
        let mut document = present::document(&answer).map_err(Failure::internal)?;
        if let Some((name, value)) = how.also {
            document[name] = value;
        }
        cx.ui.document(&document)?;
        return Ok(if answer.cmd.is_empty() || answer.draft { Exit::No } else { Exit::Success });
    }
    if answer.cmd.is_empty() {
        return Err(Failure::no(present::refusal(&answer)).hint(present::NO_COMMAND));
    }
    // whoever is asked is told what is wrong, and decides
    if let Some(With { preview, trash }) = how.execute {
        return execute::run(
            answer,
            &execute::Run { place, settings, cx, context, preview, trash, asker: how.asker },
            ran,
        );
    }
    if how.widget && !answer.draft {
        cx.ui.command(&answer.cmd)?;
        present::cautions(&cx.ui, &answer);
        return Ok(Exit::Success);
    }
    show(&answer, how.args, cx)
}

/// Shows an answer that has a command.
///
/// # Errors
/// If it is a draft, or cannot be written.
pub fn show(answer: &Answer, args: &AnswerArgs, cx: &Cx) -> Outcome {
    if answer.draft {
        return Err(draft(answer));
    }
    present::answer(&cx.ui, answer)?;
    let found = 1 + answer.alternatives.len();
    if found < usize::from(args.alternatives) && answer.iterations > 0 {
        cx.ui.note(&format!("{found} of {}: no other command came up", args.alternatives));
    }
    Ok(Exit::Success)
}

/// Holds a request against the verbs: one whose first word is a slip away from one meant that.
fn no_verb(words: &[OsString], request: &str) -> Result<(), Failure> {
    let first = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    let is_word = |word: &str| {
        let lower = word.to_lowercase();
        library::vocabulary().contains_key(lower.as_str()) || caro_exec::find(word).is_some()
    };
    let verb = match words.len() {
        0 | 1 => args::slip(request),
        // `versions of ...`, `tool that ...` are other words; a word of English or a program begins a request
        _ => args::slip(first)
            .filter(|verb| !first.starts_with(verb.as_str()) && !verb.starts_with(first) && !is_word(first)),
    };
    let Some(verb) = verb else { return Ok(()) };
    let quoted = match words.len() {
        0 | 1 => format!("For a command of one word: caro -- {request}"),
        _ => format!("For a request that begins so: caro -- {request}"),
    };
    Err(Failure::usage(format!("there is no verb `{first}`")).hint(format!("`caro {verb}`? {quoted}")))
}

/// The request as one text.
fn words(words: &[OsString]) -> Result<String, Failure> {
    let try_it = "try: caro \"show top processes\"";
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

/// What is wrong with a request that need not be shown to any model. The recipe checks again, by tokens; this is told
/// before any model is opened.
pub fn check(request: &str) -> Result<(), String> {
    if request.trim().is_empty() {
        return Err("the request is empty".into());
    }
    if request.len() > MAX_REQUEST {
        return Err(too_long(request.len(), "bytes"));
    }
    match template_mark(request) {
        Some(mark) => Err(format!(
            "`{mark}` is a mark between a model's own messages and no word of a request; as a text to look for it stands in quotes"
        )),
        None => Ok(()),
    }
}

/// A mark of chat templates that stands in a request unquoted: it came along when something was copied. To the model each is
/// a text like any other.
fn template_mark(request: &str) -> Option<&str> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let quoted = "\"[^\"]*\"|\\B'[^']*'|`[^`]*`";
        let marks = r"<\|[a-z][a-z0-9_]*\|>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>";
        Regex::new(&format!("{quoted}|(?P<mark>{marks})")).ok()
    });
    FORM.as_ref()?.captures_iter(request).find_map(|found| found.name("mark")).map(|mark| mark.as_str())
}

/// Where and for what a command is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory it is to run in.
    pub cwd: PathBuf,
    /// The machine.
    pub target: Target,
    /// The shell.
    pub dialect: Dialect,
}

impl Place {
    /// This machine, unless the settings say another. For another system the shell is the one usual there.
    pub fn of(context: &ExecutionContext, settings: &Settings, cwd: Option<PathBuf>) -> Self {
        let target = settings.target.unwrap_or(context.target);
        let dialect = settings.shell.unwrap_or_else(|| match target.os {
            os if os == context.target.os => context.shell.dialect,
            Os::Linux => Dialect::Bash,
            Os::MacOs => Dialect::Zsh,
            Os::FreeBsd => Dialect::Sh,
            Os::Windows => Dialect::PowerShell,
        });
        Self { cwd: cwd.unwrap_or_else(|| context.cwd.clone()), target, dialect }
    }
}

/// Holds the shell that was asked for against the target that was: what is written for Windows is PowerShell.
///
/// # Errors
/// If they do not go together.
pub fn paired(settings: &Settings) -> Result<(), Failure> {
    let (Some(target), Some(shell)) = (settings.target, settings.shell) else { return Ok(()) };
    if target.os != Os::Windows || shell == Dialect::PowerShell {
        return Ok(());
    }
    Err(Failure::usage(format!("for {} no command is written in {}", target.name(), shell.name()))
        .hint("--target windows goes with --shell powershell, or with none"))
}

/// The recipe's own form of a request.
pub fn ask(request: String, place: &Place, settings: &Settings, args: &AnswerArgs, cancel: &Cancel) -> Ask {
    Ask {
        request,
        alternatives: usize::from(args.alternatives),
        few_shot: args.few_shot.map_or(FewShot::Alike, |k| FewShot::Nearest(usize::from(k))),
        budget: settings.budget,
        cancel: cancel.clone(),
        ..part(place, settings)
    }
}

/// The form of requests that are parts of a larger task: their words and what was said before come later. Nobody waits
/// at a prompt for them, so a slow machine has its time.
pub fn part(place: &Place, settings: &Settings) -> Ask {
    Ask {
        request: String::new(),
        cwd: place.cwd.clone(),
        target: place.target,
        dialect: place.dialect,
        refine: settings.refine,
        max_iterations: settings.max_iterations,
        timeout: settings.timeout,
        alternatives: 1,
        few_shot: FewShot::Alike,
        candidates: settings.candidates,
        rehearse: settings.rehearse,
        view: View::Examples,
        budget: settings.budget.max(Ask::IN_A_TASK),
        before: History::default(),
        spent: Vec::new(),
        cancel: Cancel::new(),
    }
}

/// Why there is no answer, for a person.
pub fn failure(error: CommandError, settings: &Settings) -> Failure {
    match error {
        CommandError::BadRequest(message) => {
            Failure::usage(message).hint("say in a sentence what the command is to do")
        }
        CommandError::Model(e) => e.into(),
        CommandError::Timeout(_) => {
            let seconds = settings.timeout.as_secs_f64();
            let from = settings.timeout_from.as_ref().map_or(String::new(), |from| format!(", as {from} has it"));
            Failure::new(Exit::Timeout, format!("no command within {seconds} s{from}")).hint(format!(
                "give it more time (--timeout {}), or take a smaller model (`caro model list`)",
                seconds.ceil() * 4.0
            ))
        }
        CommandError::Cancelled => Failure::silent(Exit::Interrupted),
    }
}

/// Why a command is no answer, for a person.
fn draft(answer: &Answer) -> Failure {
    let error = answer.findings.iter().find(|f| f.severity == Severity::Error);
    let why = error.map_or("it is most likely wrong", |f| f.why.as_str());
    Failure::no(format!("no command that holds came up: {why}")).hint(format!("a draft to go on from: {}", answer.cmd))
}

/// Milliseconds with their fraction.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Reads what the person types, up to the end of the line; `None` at the end of the input. Ctrl-C ends the process.
///
/// # Errors
/// If stdin cannot be read.
pub fn typed(cx: &Cx) -> Result<Option<String>, Failure> {
    let _phase = cx.interrupt().during(Phase::Ends);
    let typed = line();
    cx.ui.answered();
    typed
}

/// The same while a run waits for it: Ctrl-C stops that run, and nothing was typed then.
///
/// # Errors
/// As [`typed`].
pub fn typed_in_a_run(cx: &Cx) -> Result<Option<String>, Failure> {
    let interrupt = cx.interrupt();
    if interrupt.has_turns() && cx.ui.can_ask_at_terminal() {
        // the editor takes the whole line: the question stays above it
        cx.ui.tell("");
        let reply = edit::reply()?;
        if reply.is_none() {
            interrupt.pull();
        }
        return Ok(reply);
    }
    let (send, receive) = mpsc::channel();
    // nobody can be called back from reading: where the run is stopped, this thread goes with the process
    std::thread::spawn(move || send.send(line()));
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(line) => return line,
            Err(RecvTimeoutError::Timeout) if !interrupt.is_pulled() => {}
            Err(_) => return Ok(None),
        }
    }
}

/// A line of the person's: of stdin, or of the terminal itself where stdin is data.
fn line() -> Result<Option<String>, Failure> {
    let failed = |e| Failure::no(format!("no answer: {e}"));
    if !std::io::stdin().is_terminal() && has_terminal() {
        return line_of_terminal().map_err(failed);
    }
    let mut line = String::new();
    let n = std::io::stdin().read_line(&mut line).map_err(failed)?;
    Ok((n > 0).then(|| line.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_mark_of_a_chat_template_is_told_as_what_it_is() {
        for mark in ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "[INST]", "[/INST]", "<<SYS>>"] {
            for request in
                [format!("{mark} list files"), format!("list files{mark}"), format!("don't list {mark} it's x")]
            {
                assert!(check(&request).unwrap_err().starts_with(&format!("`{mark}` is a mark")), "{request}");
            }
            for quote in ['"', '\'', '`'] {
                assert_eq!(check(&format!("find files that have {quote}{mark}{quote}")), Ok(()), "{mark}");
            }
        }
        for plain in ["sort < a | wc > b", "list [install] files", "files with <b> in them", "a <| b |> c"] {
            assert_eq!(check(plain), Ok(()), "{plain}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn words_that_are_no_utf8_are_refused() {
        use std::os::unix::ffi::OsStringExt;
        assert!(words(&[OsString::from_vec(vec![0xff])]).unwrap_err().message.contains("UTF-8"));
    }

    #[test]
    fn every_error_ends_in_its_own_code() {
        let config = super::super::Config::load(&Default::default(), &Default::default(), None, &[]).unwrap();
        let settings = Settings::of(&config).unwrap();
        let code = |e| failure(e, &settings).exit.code();
        assert_eq!(code(CommandError::Timeout(Duration::ZERO)), 124);
        assert_eq!(code(CommandError::Cancelled), 130);
        assert_eq!(code(CommandError::BadRequest("x".into())), 2);
        assert_eq!(code(CommandError::Model(caro_model::ModelError::Engine("x".into()))), 2);
        assert_eq!(failure(CommandError::Timeout(Duration::ZERO), &settings).message, "no command within 60 s");
    }
}
