//! Undo for runs of `-x`: forecasts and reports what a command would change, saves it before the command runs, and
//! records how it ended.

use super::{preview, store};
use crate::answer::ask::Place;
use crate::answer::run::{self, Run};
use crate::term::interrupt::Phase;
use crate::term::typed::typed;
use crate::term::ui::{Role, in_line, plural, size};
use crate::{Exit, Failure, env};
use caro_command::rehearsal::mode_for_preview;
use caro_exec::rehearse::{Rehearsal, RehearsalJob, rehearse};
use caro_shell::{Script, parse};
use caro_undo::plan::{Cover, Plan, Touch};
use caro_undo::preview::{Item, of_changes, of_targets};
use caro_undo::scope::{MOMENT, Scope, scopes};
use caro_undo::{Demand, Foreseen, Keeping, Shown, Store, UndoError};
use caro_undo::{check_own, check_room, demand, foresee, keep, to_trash};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most time for a rehearsal that the user waits for.
pub(super) const REHEARSAL_TIMEOUT: Duration = Duration::from_millis(1500);
/// Most time for a rehearsal that the user asked for.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(10);
/// The word to type to run a command without undo.
const WORD: &str = "without";
/// Most gaps reported.
const MAX_GAPS: usize = 3;

/// Returns lines that tell how much a command would touch, as far as its text says: nothing is run, and the time for
/// counting is limited.
pub fn scope_lines(command: &str, place: &Place) -> Vec<String> {
    let plan = foresee(&parse(command, place.dialect), &place.cwd).plan(None);
    scopes(&plan.targets, MOMENT).iter().filter_map(|scope| scope_line(scope, plan.cover, &place.cwd)).collect()
}

/// Undo for a command.
pub struct Undo {
    /// The store of saved files; `None` if nothing is to be saved.
    store: Option<Store>,
    /// The trash that deleted files are copied to, if they are to be.
    trash: Option<PathBuf>,
}

/// The expected changes of a command.
pub struct Forecast {
    plan: Plan,
    /// The reason the changes will not be saved, if it is known. The user is told this one: another one that arises
    /// later is asked about.
    refusal: Option<String>,
    scopes: Vec<Scope>,
    items: Option<(Vec<Item>, String)>,
}

/// The record of a command that runs.
pub struct Record {
    keeping: Option<(Keeping, Store)>,
    trash: Option<PathBuf>,
}

impl Undo {
    /// Opens undo as the settings ask for it.
    ///
    /// # Errors
    /// If `--trash` is given and there is no trash.
    pub fn new(run: &Run<'_>) -> Result<Self, Failure> {
        let store = if run.settings.undo { store(run.settings, run.cx).ok() } else { None };
        if !run.trash {
            return Ok(Self { store, trash: None });
        }
        // next to caro's data folder, as the specification of freedesktop.org says
        let data = run.cx.dirs.data.as_ref().and_then(|data| data.parent());
        let trash = if cfg!(target_os = "macos") { None } else { data.map(|data| data.join("Trash")) };
        if store.is_none() || trash.is_none() {
            return Err(Failure::usage("there is no trash to lay anything into")
                .hint("--trash needs a desktop of freedesktop.org's kind, a home folder, and undo = \"on\""));
        }
        Ok(Self { store, trash })
    }

    /// Finds out what a command would change: from its text, and by a rehearsal if the text does not tell or a
    /// preview is wanted.
    pub fn forecast(&self, cmd: &str, run: &Run<'_>) -> Forecast {
        let script = parse(cmd, run.place.dialect);
        let cwd = run.place.cwd.as_path();
        let foreseen = foresee(&script, cwd);
        let is_wanted = run.preview || self.store.is_some() && run.settings.rehearse && foreseen.wants_rehearsal();
        let rehearsal = if is_wanted { run_rehearsal(&script, cmd, run) } else { Err(String::new()) };
        let items = if run.preview { Some(items(&foreseen, &rehearsal)) } else { None };
        let plan = foreseen.plan(rehearsal.as_ref().ok().map(shown_changes));
        let scopes = scopes(&plan.targets, MOMENT);
        // files that could not be counted in time are counted again only when they are saved
        let is_counted = scopes.iter().all(|scope| !scope.more);
        let refusal = match &self.store {
            Some(store) => match check_own(store, &plan) {
                Err(why) => Some(why.to_string()),
                Ok(()) if is_counted && !plan.is_empty() => refusal(store, &demand(store, &plan)),
                Ok(()) => None,
            },
            None => None,
        };
        Forecast { plan, refusal, scopes, items }
    }

    /// Prints what the command would change, and how much of it could be undone.
    pub fn report(&self, forecast: &Forecast, run: &Run<'_>) {
        let ui = &run.cx.ui;
        for scope in &forecast.scopes {
            if let Some(line) = scope_line(scope, forecast.plan.cover, &run.place.cwd) {
                ui.aside(if scope.touch == Touch::Delete { Role::Caution } else { Role::Dim }, &line);
            }
        }
        if let Some((items, source)) = &forecast.items {
            preview::show(items, source, &run.place.cwd, run.cx);
        }
        let Some(store) = &self.store else { return };
        match (&forecast.refusal, forecast.plan.cover) {
            (Some(why), _) => print_uncovered(why, run),
            (None, Cover::Partly) => {
                let gaps = &forecast.plan.gaps;
                let first: Vec<String> = gaps.iter().take(MAX_GAPS).map(|gap| in_line(gap)).collect();
                let more = gaps.len().saturating_sub(MAX_GAPS);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                let all = if forecast.plan.is_empty() { "does not cover it" } else { "does not cover all of it" };
                ui.tell_folded(&format!(
                    "  {}",
                    ui.paint_err(Role::Caution, &format!("undo {all}: {}{more}", first.join("; ")))
                ));
            }
            (None, Cover::Rehearsed) => ui.aside(Role::Dim, "undo covers what a rehearsal of it changed"),
            (None, Cover::Whole) if forecast.plan.is_empty() => {}
            (None, Cover::Whole) => {
                let days = store.limits().age.as_secs() / 86_400;
                ui.aside(
                    Role::Dim,
                    &format!("undo covers it for {}", plural(usize::try_from(days).unwrap_or(14), "day")),
                );
            }
        }
    }

    /// True if all changes will be saved, as far as is known before the command runs.
    pub fn covers(&self, forecast: &Forecast) -> bool {
        self.store.is_some() && forecast.refusal.is_none() && forecast.plan.cover != Cover::Partly
    }

    /// Saves what the command would change. If that fails, asks whether to run the command without undo, unless it was
    /// reported before.
    ///
    /// # Errors
    /// If the user declines to run it.
    pub fn save(&self, forecast: Forecast, cmd: &str, run: &Run<'_>) -> Result<Record, Failure> {
        let none = Ok(Record { keeping: None, trash: None });
        let Some(store) = &self.store else { return none };
        if forecast.plan.is_empty() || forecast.refusal.is_some() {
            return none;
        }
        let saved = {
            // Ctrl-C may end the process here: nothing has run yet
            let _phase = run.cx.interrupt().during(Phase::Ends);
            let _status = run.cx.ui.status("keeping what it changes");
            keep(store, cmd, &run.place.cwd, forecast.plan, &mut ())
        };
        match saved {
            Ok(keeping) => Ok(Record { keeping: Some((keeping, store.clone())), trash: self.trash.clone() }),
            Err(why) => {
                print_uncovered(&why.to_string(), run);
                run.cx.ui.note(&format!("  {}", why.hint()));
                run.cx.ui.ask(&format!("type {} to run it without undo:", run.cx.ui.paint_err(Role::Danger, WORD)));
                match typed(run.cx)? {
                    Some(reply) if reply == WORD => none,
                    _ => {
                        run.cx.ui.note("not run");
                        Err(Failure::silent(Exit::No))
                    }
                }
            }
        }
    }
}

impl Record {
    /// Discards the record of a command that could not be started.
    pub fn discard(self) {
        if let Some((keeping, _)) = self.keeping {
            keeping.dropped();
        }
    }

    /// Records how the command ended, and prints how to undo it.
    pub fn finish(self, code: i32, run: &Run<'_>) {
        let Some((keeping, store)) = self.keeping else { return };
        let ui = &run.cx.ui;
        let entry = match keeping.ended(code, &mut ()) {
            Ok(Some(entry)) => entry,
            Ok(None) => return,
            Err(why) => return ui.warn(&format!("undo did not take note of the end: {why}")),
        };
        ui.aside(Role::Dim, "`caro undo` takes it back");
        let Some(trash) = self.trash else { return };
        match to_trash(&store, entry, &trash, &mut ()) {
            Ok(count) => ui.aside(Role::Dim, &format!("{} in the trash", plural(count, "thing"))),
            Err(why) => ui.warn(&format!("not in the trash: {why}")),
        }
    }
}

/// The reason a demand cannot be met: the limits of the store, or the room on its disk after a sweep.
fn refusal(store: &Store, demand: &Result<Demand, UndoError>) -> Option<String> {
    let demand = match within_limits(store, demand) {
        Ok(demand) => demand,
        Err(why) => return Some(why),
    };
    let mut checked = check_room(store, demand);
    if matches!(checked, Err(UndoError::Full(_))) {
        store.sweep(0);
        checked = check_room(store, demand);
    }
    checked.err().map(|why| why.to_string())
}

/// Returns a demand that the settings allow and that could be computed.
///
/// # Errors
/// The reason undo does not cover it.
pub(super) fn within_limits<'a>(store: &Store, demand: &'a Result<Demand, UndoError>) -> Result<&'a Demand, String> {
    let demand = demand.as_ref().map_err(ToString::to_string)?;
    let limits = store.limits();
    let beyond = |bytes, name: &str, most| format!("{} is more than `{name}` ({})", size(bytes), size(most));
    if demand.bytes > limits.total {
        return Err(beyond(demand.bytes, "undo_total", limits.total));
    }
    // if files can be cloned, copies take no space
    if demand.copies > limits.copies && !store.clones() {
        return Err(beyond(demand.copies, "undo_copies", limits.copies));
    }
    Ok(demand)
}

fn print_uncovered(why: &str, run: &Run<'_>) {
    let ui = &run.cx.ui;
    ui.tell_folded(&format!("  {}", ui.paint_err(Role::Danger, &format!("undo does not cover it: {why}"))));
}

/// Converts the changes of a rehearsal for undo.
pub(super) fn shown_changes(rehearsal: &Rehearsal) -> Shown<'_> {
    Shown { changes: &rehearsal.changes, whole: rehearsal.status.success() && rehearsal.unlisted == 0 }
}

/// Rehearses a command, or returns the reason it cannot be rehearsed.
fn run_rehearsal(script: &Script, cmd: &str, run: &Run<'_>) -> Result<Rehearsal, String> {
    mode_for_preview(script).map_err(|unfit| format!("`{}`: {}", unfit.token, unfit.why))?;
    let shell = run::program(run.place.dialect, run.context).ok_or("its shell is not here")?;
    let mut job = RehearsalJob::new(&shell, cmd, &run.place.cwd);
    job.limits.wall = if run.preview { PREVIEW_TIMEOUT } else { REHEARSAL_TIMEOUT };
    job.env.extend(named_variables(cmd));
    let runtime = run.cx.runtime().map_err(|e| e.message)?;
    let _status = run.cx.ui.status("rehearsing");
    runtime.block_on(rehearse(&job)).map_err(|e| e.to_string())
}

/// Returns the environment variables that a command names: a run would see them.
pub(super) fn named_variables(cmd: &str) -> impl Iterator<Item = (OsString, OsString)> {
    env::everything().filter(|(name, _)| name.to_str().is_some_and(|name| mentions(cmd, name)))
}

/// True if a command expands this variable.
fn mentions(cmd: &str, name: &str) -> bool {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    cmd.match_indices(name).any(|(at, _)| {
        let before = cmd[..at].trim_end_matches(['{', '#', '!']);
        before.ends_with('$') && !cmd[at + name.len()..].starts_with(is_name_char)
    })
}

/// The changes for the preview, and how they are known.
fn items(foreseen: &Foreseen, rehearsal: &Result<Rehearsal, String>) -> (Vec<Item>, String) {
    match rehearsal {
        Ok(rehearsal) => {
            let items = of_changes(&rehearsal.changes, MOMENT);
            let source = match shown_changes(rehearsal).whole {
                true => "as a rehearsal showed it".to_owned(),
                false if rehearsal.timed_out() => "as far as a rehearsal came".to_owned(),
                false if rehearsal.unlisted > 0 => format!("and {} more, in a rehearsal", rehearsal.unlisted),
                false => format!("in a rehearsal, which ended badly: {}", first_error_line(rehearsal)),
            };
            (items, source)
        }
        Err(why) => {
            let plan = foreseen.clone().plan(None);
            (of_targets(&plan.targets, MOMENT), format!("as its text says; not rehearsed: {why}"))
        }
    }
}

/// The first line of standard error.
fn first_error_line(rehearsal: &Rehearsal) -> String {
    let err = String::from_utf8_lossy(&rehearsal.stderr);
    let line = err.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("without a word");
    in_line(&line.chars().take(100).collect::<String>())
}

/// Describes a scope in a line: `deletes 1284 files, 3.2 GB under ./build; 12 not in git`.
fn scope_line(scope: &Scope, cover: Cover, cwd: &Path) -> Option<String> {
    let verb = match scope.touch {
        Touch::Delete if cover == Cover::Whole => "deletes",
        // in a rehearsal a renamed file counts as deleted, too
        Touch::Delete => "takes away",
        Touch::Write => "writes to",
        Touch::Move => "moves",
        Touch::Surface => "changes the rights of",
        Touch::Make => return None,
    };
    let count = |number: u64, what: &str| plural(usize::try_from(number).unwrap_or(usize::MAX), what);
    let what = match (scope.files, scope.folders) {
        (0, 0) => "more than can be counted now".to_owned(),
        (0, folders) => count(folders, "folder"),
        (files, _) => format!("{}, {}", count(files, "file"), size(scope.bytes)),
    };
    let more = if scope.more { " at least" } else { "" };
    let below = match scope.below.strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => "here".to_owned(),
        Ok(inside) => format!("under ./{}", inside.display()),
        Err(_) => format!("under {}", scope.below.display()),
    };
    let git = match scope.untracked {
        Some(unknown) if unknown > 0 => format!("; {unknown} not in git"),
        _ => String::new(),
    };
    Some(in_line(&format!("{verb} {what}{more} {below}{git}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_described_in_a_line() {
        let scope = Scope {
            touch: Touch::Delete,
            files: 1284,
            folders: 7,
            bytes: 3_200_000_000,
            below: "/w/build".into(),
            untracked: Some(12),
            more: false,
        };
        assert_eq!(
            scope_line(&scope, Cover::Whole, Path::new("/w")).unwrap(),
            "deletes 1284 files, 3.2 GB under ./build; 12 not in git"
        );
        let some = Scope { files: 0, untracked: Some(0), more: true, below: "/w".into(), ..scope };
        assert_eq!(scope_line(&some, Cover::Whole, Path::new("/w")).unwrap(), "deletes 7 folders at least here");
    }

    #[test]
    fn named_variables_are_found() {
        for command in ["rm $X", "rm ${X}", "rm \"$X\"/a", "rm ${X:-a}", "echo ${#X}"] {
            assert!(mentions(command, "X"), "{command}");
        }
        for command in ["rm X", "rm $XY", "rm $Y"] {
            assert!(!mentions(command, "X"), "{command}");
        }
    }
}
