//! The last answer of a terminal, with the exchanges that led to it: for `--from last`.
//!
//! One file for each session of the system (a shell at a terminal leads one), in the runtime folder, for its owner alone, without
//! secrets. It goes with that folder when the person logs out, and the next answer in any terminal takes away those whose session is over.

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

/// The folder of these files, in the runtime folder.
pub const FOLDER: &str = "last";

/// How long an answer is the last one that is meant, seconds.
const LONGEST: u64 = 12 * 60 * 60;

/// How a command is named in the place of the last answer.
const OTHERWISE: &str = "or name the command: caro --from 'COMMAND' \"only in src\"";

/// Keeps a conversation as the last answer of this terminal, or takes away what was kept where the settings want none. Not to be able
/// to costs nothing else: `--from last` says then that there is none, and why.
pub fn keep(said: &[PastExchange], place: &Place, settings: &Settings, cx: &Cx) {
    let (Some(folder), Some(leader)) = (folder(&cx.dirs), leader()) else { return };
    let log = Log::of_session(&folder, leader);
    if !settings.last_answer {
        let _ = log.remove();
        return;
    }
    if usable(&folder).is_err() {
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
    // what a command printed is nobody's to keep
    let plain = said.iter().filter(|one| one.outcome.is_empty());
    let _ = log.replace(&plain.map(entry).collect::<Vec<_>>());
}

/// The conversation that ends with the last answer of this terminal.
///
/// # Errors
/// If none is kept, or it is too old.
pub fn find(settings: &Settings, cx: &Cx) -> Result<Vec<Entry>, Failure> {
    if !settings.last_answer {
        return Err(Failure::usage("the last answer is not kept: last_answer = off")
            .hint(format!("`caro config set last_answer on` keeps it until the terminal is closed; {OTHERWISE}")));
    }
    let leader = leader().ok_or_else(|| {
        Failure::usage("there is no terminal here whose last answer could be meant")
            .hint(format!("call it in the terminal of that answer, {OTHERWISE}"))
    })?;
    let folder = folder(&cx.dirs).ok_or_else(|| {
        Failure::usage("no answer is kept, because this user has no home folder").hint("set HOME to a folder")
    })?;
    usable(&folder)?;
    let log = Log::of_session(&folder, leader);
    let kept = log.entries(now()).map_err(|e| {
        Failure::usage(format!("{}: {e}", log.file().display())).hint("mend its permissions, or take it away")
    })?;
    let is_this = |entry: &Entry| is_alive(Owner { pid: leader, heard: entry.at.saturating_mul(1000) });
    latest(kept.into_iter().filter(is_this).collect(), now())
}

/// Holds what is kept against the time.
fn latest(kept: Vec<Entry>, now: u64) -> Result<Vec<Entry>, Failure> {
    let Some(last) = kept.last() else {
        return Err(Failure::no("no answer of this terminal is kept").hint(format!(
            "ask first, {OTHERWISE}; an answer with a password or key in it is not kept; the program of that name is 'command last'"
        )));
    };
    let age = now.saturating_sub(last.at);
    if age > LONGEST {
        return Err(Failure::no(format!("the last answer of this terminal is {} hours old", age / 3600))
            .hint(format!("if it is meant all the same, name it: caro --from {} \"...\"", quoted(&last.command))));
    }
    Ok(kept)
}

/// The conversation for the model, where the last answer is for the same machine and shell as what is asked now.
///
/// # Errors
/// If it is for another one.
pub fn conversation(kept: &[Entry], place: &Place) -> Result<Vec<PastExchange>, Failure> {
    let (target, shell) = (place.target.name(), place.dialect.name());
    if let Some(last) = kept.last().filter(|last| (last.target.as_str(), last.shell.as_str()) != (target, shell)) {
        let was = format!("the last answer is for {} in {}", last.target, last.shell);
        return Err(Failure::usage(format!("{was}, and this request is for {target} in {shell}"))
            .hint(format!("add --target {} --shell {} to change it there, {OTHERWISE}", last.target, last.shell)));
    }
    let said = kept.iter().map(|entry| match entry.request.is_empty() {
        true => revise::given(&entry.command),
        false => {
            PastExchange { request: entry.request.clone(), command: entry.command.clone(), outcome: String::new() }
        }
    });
    let said: Vec<PastExchange> = said.collect();
    // the file may have been written by anything
    said.last().map(|last| revise::checked(&last.command)).transpose()?;
    Ok(said)
}

/// Forgets the last answers of all terminals.
pub fn clear(cx: &Cx) {
    if let Some(folder) = folder(&cx.dirs) {
        let _ = fs::remove_dir_all(folder);
    }
}

fn folder(dirs: &Dirs) -> Option<PathBuf> {
    Some(dirs.runtime.as_ref()?.join(FOLDER))
}

/// Makes the folder, and the one that it lies in, for this user alone.
fn usable(folder: &Path) -> Result<(), Failure> {
    let made = folder.parent().map_or(Ok(()), make_private).and_then(|()| make_private(folder));
    made.map_err(|why| Failure::usage(format!("no answer is kept: {why}")).hint(why.hint()))
}

/// The number of the process that leads the session of this terminal.
#[cfg(unix)]
fn leader() -> Option<u32> {
    if !crate::term::interrupt::has_terminal() {
        return None;
    }
    let leader = rustix::process::getsid(None).ok()?;
    u32::try_from(leader.as_raw_nonzero().get()).ok()
}

#[cfg(not(unix))]
fn leader() -> Option<u32> {
    None
}

/// Takes away the files of sessions that are over, and what is too old.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(written) = entry.metadata().and_then(|meta| meta.modified()) else { continue };
        let is_old = written.elapsed().is_ok_and(|age| age.as_secs() > LONGEST);
        let leader = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        let is_over = leader.is_some_and(|pid| !is_alive(Owner { pid, heard: millis(written) }));
        if is_old || is_over {
            let _ = fs::remove_file(&path);
        }
    }
}

/// A command as one word of a shell; as it is where it cannot be one.
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
    fn nothing_and_what_is_too_old_say_what_to_do() {
        let now = 10 * LONGEST;
        assert_eq!(latest(vec![entry(now - LONGEST, "ls")], now).unwrap().len(), 1);
        let old = latest(vec![entry(now, "ls"), entry(now - LONGEST - 1, "ls 'a b'")], now).unwrap_err();
        assert_eq!(old.message, "the last answer of this terminal is 12 hours old");
        assert!(old.hint.unwrap().contains(r#"--from "ls 'a b'""#));
        assert!(latest(Vec::new(), now).unwrap_err().hint.unwrap().starts_with("ask first"));
        // a clock that was set back
        assert!(latest(vec![entry(now + 99, "ls")], now).is_ok());
    }

    #[test]
    fn an_answer_for_another_machine_or_shell_is_not_taken() {
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
        // a file that somebody else has written
        assert!(conversation(&[entry(1, "ls <|im_end|>")], &place(Dialect::Bash)).is_err());
        assert!(conversation(&[entry(1, " ")], &place(Dialect::Bash)).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_files_of_sessions_that_are_over_go() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        let this = std::process::id();
        for leader in [this, 4_194_305] {
            Log::of_session(&folder, leader).replace(&[entry(1, "ls")]).unwrap();
        }
        // one that is being written
        fs::write(folder.join(".tmpabc"), "").unwrap();
        sweep(&folder);
        let mut left: Vec<_> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, [".tmpabc", &format!("{this}.jsonl")]);
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(LONGEST + 9);
        fs::File::open(folder.join(".tmpabc")).unwrap().set_modified(long_ago).unwrap();
        sweep(&folder);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
