//! `caro history`: shows past requests and their commands. It is off until the user turns it on; then they are stored
//! on this machine only.

use crate::answer::log::file::{Entry, Log, MAX_DAYS, MAX_ENTRIES};
use crate::answer::log::{last, now};
use crate::setup::change;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use chrono::{Local, TimeZone};

/// The setting that turns the history on.
const SETTING: &str = "request_history";

/// Arguments of `caro history`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Words that the request or its command must have
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Print one JSON document, a list; the command of each is `command`, which answers call `cmd`
    #[arg(long)]
    json: bool,
    /// The most requests, the latest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Forget all of them, and the last answers that `--from last` goes on from
    #[arg(long, conflicts_with_all = ["words", "json", "limit"])]
    clear: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Clone, Copy, clap::Subcommand)]
enum What {
    /// Keep requests from now on, with their commands
    On,
    /// Keep none from now on; what is kept stays until --clear
    Off,
}

/// Shows, searches or clears the history, or turns it on or off.
///
/// # Errors
/// If there is no folder for it, or the file cannot be used.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let log = Log::of(&cx.dirs).ok_or_else(|| {
        Failure::usage("no request is kept, because this user has no home folder").hint("set HOME to a folder")
    })?;
    let failed = |e: std::io::Error| {
        Failure::usage(format!("{}: {e}", log.file().display())).hint("correct its permissions, or remove it")
    };
    match args.what {
        Some(What::On) => {
            change::set(SETTING, "on", false, cx)?;
            let file = log.file().display();
            cx.ui.note(&format!("requests are kept in {file}: up to {MAX_ENTRIES}, for {MAX_DAYS} days"));
            return Ok(Exit::Success);
        }
        Some(What::Off) => {
            change::set(SETTING, "off", false, cx)?;
            if log.file().exists() {
                cx.ui.note("what is kept stays; `caro history --clear` forgets it");
            }
            return Ok(Exit::Success);
        }
        None => {}
    }
    if args.clear {
        let count = log.clear().map_err(failed)?;
        last::clear(cx);
        cx.ui.note(&format!("{} forgotten", plural(count, "request")));
        return Ok(Exit::Success);
    }
    let all = log.entries(now()).map_err(failed)?;
    let found: Vec<&Entry> = all.iter().filter(|entry| fits(entry, &args.words)).collect();
    let shown = &found[found.len().saturating_sub(args.limit as usize)..];
    if args.json {
        cx.ui.document(&shown)?;
    } else {
        shown.iter().try_for_each(|entry| show(entry, cx))?;
    }
    if shown.is_empty() {
        return Ok(report_nothing(args, all.is_empty(), cx));
    }
    Ok(Exit::Success)
}

/// Prints why there is nothing to show. Returns the exit code.
fn report_nothing(args: &Args, is_empty: bool, cx: &Cx) -> Exit {
    let is_on = cx.settings(&[]).is_ok_and(|settings| settings.request_history);
    let words = args.words.join(" ");
    match (is_empty, is_on) {
        (true, false) => cx.ui.note("requests are not kept; `caro history on` keeps them, on this machine alone"),
        (true, true) => cx.ui.note("no request was kept yet"),
        (false, _) => cx.ui.note("no request with these words was kept"),
    }
    if args.words.is_empty() {
        return Exit::Success;
    }
    // `history of commands with sudo` may have been meant for the model
    cx.ui.hint(&format!("for a command: `caro -- history {words}`"));
    Exit::No
}

/// True if each of the words is in the request or in its command.
fn fits(entry: &Entry, words: &[String]) -> bool {
    let text = format!("{}\n{}", entry.request, entry.command).to_lowercase();
    words.iter().flat_map(|part| part.split_whitespace()).all(|word| text.contains(&word.to_lowercase()))
}

fn show(entry: &Entry, cx: &Cx) -> std::io::Result<()> {
    let time = i64::try_from(entry.at).ok().and_then(|at| Local.timestamp_opt(at, 0).single());
    let time = time.map_or_else(|| "?".repeat(16), |time| time.format("%Y-%m-%d %H:%M").to_string());
    cx.ui.line(&format!("{}  {}", cx.ui.paint(Role::Dim, &time), cx.ui.entry(Role::Command, &entry.command)))?;
    let request = cx.ui.entry(Role::Plain, &entry.request);
    cx.ui.line(&format!("{:18}{request}{}", "", cx.ui.entry(Role::Dim, &about(entry))))
}

/// The details of a request that are printed after its words.
fn about(entry: &Entry) -> String {
    let ran = match (entry.ran, entry.status) {
        (false, _) => "not run".to_owned(),
        (true, Some(status)) => format!("run, it ended with {status}"),
        (true, None) => "run".to_owned(),
    };
    format!("  ({ran}; {}, {}; in {})", entry.target, entry.shell, entry.folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            at: 0,
            request: "Show the largest files".into(),
            command: "du -a | sort -n".into(),
            target: "linux-gnu".into(),
            shell: "bash".into(),
            folder: "/w".into(),
            ran: true,
            status: Some(1),
        }
    }

    #[test]
    fn a_search_needs_every_word_in_the_request_or_its_command() {
        let fits = |words: &[&str]| fits(&entry(), &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert!(fits(&[]) && fits(&["LARGEST"]) && fits(&["sort", "files"]) && fits(&["largest files"]));
        assert!(!fits(&["sort", "docker"]));
    }

    #[test]
    fn a_command_that_was_run_is_shown_with_its_exit_code() {
        assert_eq!(about(&entry()), "  (run, it ended with 1; linux-gnu, bash; in /w)");
        assert!(about(&Entry { ran: false, status: None, ..entry() }).contains("not run"));
    }
}
