//! Stores the last answer of a terminal with the exchanges that led to it, for `--from last`.
//!
//! There is one private file for each terminal session (led by its shell), in the runtime folder, without secrets. It
//! goes with that folder at logout, and each new answer in any terminal deletes the files of ended sessions.

use super::file::{Entry, Log};
use super::now;
use crate::answer::ask::Place;
use crate::answer::revise;
use crate::{Cx, Dirs, Failure, Settings};
use caro_agent::store::{Owner, is_alive};
use caro_base::id::millis;
use caro_command::PastExchange;
use caro_policy::Redactor;
use caro_serve::resident::make_private;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the folder of these files, in the runtime folder.
pub const FOLDER: &str = "last";

/// Age in seconds after which an answer is no longer offered as the last one.
const MAX_AGE: u64 = 12 * 60 * 60;

/// The hint to name a command instead.
const NAME_IT_HINT: &str = "or name the command: `caro --from 'COMMAND' \"only in src\"`";

/// Saves a conversation as the last answer of this terminal, or deletes the saved one if the settings want none.
/// Failures are ignored: `--from last` then reports that there is none, and the reason.
pub fn save(said: &[PastExchange], place: &Place, settings: &Settings, cx: &Cx) {
    let (Some(folder), Some(leader)) = (folder(&cx.dirs), session_leader()) else { return };
    let log = Log::of_session(&folder, leader);
    if !settings.last_answer {
        let _ = log.remove();
        return;
    }
    if create_private(&folder).is_err() {
        return;
    }
    sweep(&folder);
    let redactor = Redactor::default();
    let entry = |one: &PastExchange| Entry {
        at: now(),
        request: redactor.text(&one.request),
        command: one.command.clone(),
        target: place.target.name().into(),
        shell: place.dialect.name().into(),
        folder: redactor.text(&place.cwd.to_string_lossy()),
        ran: false,
        status: None,
    };
    // exchanges with a command's output are not stored
    let stored = said.iter().filter(|one| one.outcome.is_empty());
    let _ = log.replace(&stored.map(entry).collect::<Vec<_>>());
}

/// Returns the stored conversation that ends with the last answer of this terminal.
///
/// # Errors
/// If none is stored, or it is too old.
pub fn find(settings: &Settings, cx: &Cx) -> Result<Vec<Entry>, Failure> {
    if !settings.last_answer {
        return Err(Failure::usage("the last answer is not kept: last_answer = off")
            .hint(format!("`caro config set last_answer on` keeps it until the terminal is closed; {NAME_IT_HINT}")));
    }
    let leader = session_leader().ok_or_else(|| {
        Failure::usage("there is no terminal here whose last answer could be meant")
            .hint(format!("call it in the terminal of that answer, {NAME_IT_HINT}"))
    })?;
    let folder = folder(&cx.dirs).ok_or_else(|| {
        Failure::usage("no answer is kept, because this user has no home folder").hint("set HOME to a folder")
    })?;
    create_private(&folder)?;
    let log = Log::of_session(&folder, leader);
    let entries = log.entries(now()).map_err(|e| {
        Failure::usage(format!("{}: {e}", log.file().display())).hint("correct its permissions, or remove it")
    })?;
    let is_of_session = |entry: &Entry| is_alive(Owner { pid: leader, heard: entry.at.saturating_mul(1000) });
    check_age(entries.into_iter().filter(is_of_session).collect(), now())
}

/// Returns the entries if there is a last answer that is not too old.
fn check_age(entries: Vec<Entry>, now: u64) -> Result<Vec<Entry>, Failure> {
    let Some(last) = entries.last() else {
        return Err(Failure::no("no answer of this terminal is kept").hint(format!(
            "ask first, {NAME_IT_HINT}; an answer with a password or key in it is not kept; the program of that name is `command last`"
        )));
    };
    let age = now.saturating_sub(last.at);
    if age > MAX_AGE {
        return Err(Failure::no(format!("the last answer of this terminal is {} hours old", age / 3600))
            .hint(format!("if it is meant all the same, name it: `caro --from {} \"...\"`", quoted(&last.command))));
    }
    Ok(entries)
}

/// Turns a stored conversation into one for the model.
///
/// # Errors
/// If the last answer is for another machine or shell than this request.
pub fn conversation(entries: &[Entry], place: &Place) -> Result<Vec<PastExchange>, Failure> {
    let (target, shell) = (place.target.name(), place.dialect.name());
    if let Some(last) = entries.last().filter(|last| (last.target.as_str(), last.shell.as_str()) != (target, shell)) {
        let was = format!("the last answer is for {} in {}", last.target, last.shell);
        return Err(Failure::usage(format!("{was}, and this request is for {target} in {shell}"))
            .hint(format!("add --target {} --shell {} to change it there, {NAME_IT_HINT}", last.target, last.shell)));
    }
    let said = entries.iter().map(|entry| match entry.request.is_empty() {
        true => revise::exchange(&entry.command),
        false => {
            PastExchange { request: entry.request.clone(), command: entry.command.clone(), outcome: String::new() }
        }
    });
    let said: Vec<PastExchange> = said.collect();
    // another program may have written the file
    said.last().map(|last| revise::check_command(&last.command)).transpose()?;
    Ok(said)
}

/// Deletes the last answers of all terminals.
pub fn clear(cx: &Cx) {
    if let Some(folder) = folder(&cx.dirs) {
        let _ = fs::remove_dir_all(folder);
    }
}

fn folder(dirs: &Dirs) -> Option<PathBuf> {
    Some(dirs.runtime.as_ref()?.join(FOLDER))
}

/// Creates the folder and its parent, private to this user.
fn create_private(folder: &Path) -> Result<(), Failure> {
    let result = folder.parent().map_or(Ok(()), make_private).and_then(|()| make_private(folder));
    result.map_err(|why| Failure::usage(format!("no answer is kept: {why}")).hint(why.hint()))
}

/// Returns the process ID of the session leader of this terminal.
#[cfg(unix)]
fn session_leader() -> Option<u32> {
    if !crate::term::interrupt::has_terminal() {
        return None;
    }
    let leader = rustix::process::getsid(None).ok()?;
    u32::try_from(leader.as_raw_nonzero().get()).ok()
}

#[cfg(not(unix))]
fn session_leader() -> Option<u32> {
    None
}

/// Deletes the files of ended sessions, and those that are too old.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(written) = entry.metadata().and_then(|meta| meta.modified()) else { continue };
        let is_old = written.elapsed().is_ok_and(|age| age.as_secs() > MAX_AGE);
        let leader = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        let is_over = leader.is_some_and(|pid| !is_alive(Owner { pid, heard: millis(written) }));
        if is_old || is_over {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Quotes a command as one word of a shell; returns it unchanged if it cannot be quoted.
fn quoted(command: &str) -> String {
    shlex::try_quote(command).map_or_else(|_| command.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, Target};

    fn entry(at: u64, command: &str) -> Entry {
        Entry {
            at,
            request: "list files".into(),
            command: command.into(),
            target: "linux-gnu".into(),
            shell: "bash".into(),
            folder: "/w".into(),
            ran: false,
            status: None,
        }
    }

    #[test]
    fn a_missing_or_old_answer_is_an_error_with_a_hint() {
        let now = 10 * MAX_AGE;
        assert_eq!(check_age(vec![entry(now - MAX_AGE, "ls")], now).unwrap().len(), 1);
        let old = check_age(vec![entry(now, "ls"), entry(now - MAX_AGE - 1, "ls 'a b'")], now).unwrap_err();
        assert_eq!(old.message, "the last answer of this terminal is 12 hours old");
        assert!(old.hint.unwrap().contains(r#"--from "ls 'a b'""#));
        assert!(check_age(Vec::new(), now).unwrap_err().hint.unwrap().starts_with("ask first"));
        // the clock was set back
        assert!(check_age(vec![entry(now + 99, "ls")], now).is_ok());
    }

    #[test]
    fn an_answer_for_another_machine_or_shell_is_refused() {
        let linux = Target::ALL.iter().find(|(name, _)| *name == "linux-gnu").unwrap().1;
        let place = |dialect| Place { cwd: "/w".into(), target: linux, dialect };
        let kept = [entry(1, "ls -a"), Entry { request: String::new(), ..entry(1, "ls -d */") }];
        let said = conversation(&kept, &place(Dialect::Bash)).unwrap();
        assert_eq!((said[0].request.as_str(), said[1].request.as_str()), ("list files", "Write a command."));
        let other = conversation(&kept, &place(Dialect::Fish)).unwrap_err();
        assert_eq!(
            other.message,
            "the last answer is for linux-gnu in bash, and this request is for linux-gnu in fish"
        );
        assert!(other.hint.unwrap().contains("--target linux-gnu --shell bash"));
        // a file that another program has written
        assert!(conversation(&[entry(1, "ls <|im_end|>")], &place(Dialect::Bash)).is_err());
        assert!(conversation(&[entry(1, " ")], &place(Dialect::Bash)).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_files_of_ended_sessions_are_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        let this = std::process::id();
        for leader in [this, 4_194_305] {
            Log::of_session(&folder, leader).replace(&[entry(1, "ls")]).unwrap();
        }
        // a file that is being written
        fs::write(folder.join(".tmpabc"), "").unwrap();
        sweep(&folder);
        let mut left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, [".tmpabc", &format!("{this}.jsonl")]);
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(MAX_AGE + 9);
        fs::File::open(folder.join(".tmpabc")).unwrap().set_modified(long_ago).unwrap();
        sweep(&folder);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
