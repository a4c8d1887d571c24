//! Around a run of `-x`: what it would change is looked at and told before it is asked for, kept before it runs, and noted
//! when it ended.

use super::{preview, store};
use crate::answer::ask::Place;
use crate::answer::run::{self, Run};
use crate::term::interrupt::Phase;
use crate::term::typed::typed;
use crate::term::ui::{Role, in_line, plural, size};
use crate::{Exit, Failure, env};
use caro_command::rehearsal::fit_to_show;
use caro_exec::rehearse::{Rehearsal, RehearsalJob, rehearse};
use caro_shell::{Script, parse};
use caro_undo::plan::{Cover, Plan, Touch};
use caro_undo::preview::{Item, of_changes, of_targets};
use caro_undo::scope::{MOMENT, Scope, scopes};
use caro_undo::{Demand, Foreseen, Keeping, Shown, Store, UndoError, demand, foresee, keep, to_trash};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a rehearsal may take that a person waits for.
pub(super) const WAIT: Duration = Duration::from_millis(1500);
/// The same where they asked for it.
const ASKED: Duration = Duration::from_secs(10);
/// The word that has to be typed to run something without a net.
const WORD: &str = "without";
/// The most gaps that are told.
const GAPS: usize = 3;

/// The lines that tell how much a command would touch here, where its text says: nothing is run, and what is counted is
/// bounded in time.
pub fn counted(command: &str, place: &Place) -> Vec<String> {
    let plan = foresee(&parse(command, place.dialect), &place.cwd).plan(None);
    scopes(&plan.targets, MOMENT).iter().filter_map(|scope| told(scope, plan.cover, &place.cwd)).collect()
}

/// The store of kept files, if anything is to be kept.
pub struct Net {
    store: Option<Store>,
    /// Where deleted things are laid, if they are to be.
    trash: Option<PathBuf>,
}

/// A command that was looked at.
pub struct Looked {
    plan: Plan,
    demand: Option<Result<Demand, UndoError>>,
    scopes: Vec<Scope>,
    items: Option<(Vec<Item>, String)>,
}

/// The record of a command that runs.
pub struct Caught {
    keeping: Option<(Keeping, Store)>,
    trash: Option<PathBuf>,
}

impl Net {
    /// The net that the settings ask for.
    ///
    /// # Errors
    /// If there is to be a trash, and none can be.
    pub fn new(run: &Run<'_>) -> Result<Self, Failure> {
        let store = if run.settings.undo { store(run.settings, run.cx).ok() } else { None };
        if !run.trash {
            return Ok(Self { store, trash: None });
        }
        // beside our own data folder, as the platform's rules have it
        let data = run.cx.dirs.data.as_ref().and_then(|data| data.parent());
        let trash = if cfg!(target_os = "macos") { None } else { data.map(|data| data.join("Trash")) };
        if store.is_none() || trash.is_none() {
            return Err(Failure::usage("there is no trash to lay anything into")
                .hint("--trash needs a desktop of freedesktop.org's kind, a home folder, and undo = \"on\""));
        }
        Ok(Self { store, trash })
    }

    /// Looks at what a command would change: by its text, and by a rehearsal where that does not tell, or where it is to be
    /// shown.
    pub fn look(&self, cmd: &str, run: &Run<'_>) -> Looked {
        let script = parse(cmd, run.place.dialect);
        let cwd = run.place.cwd.as_path();
        let foreseen = foresee(&script, cwd);
        let wanted = run.preview || self.store.is_some() && run.settings.rehearse && foreseen.wants_rehearsal();
        let shown = if wanted { shown(&script, cmd, run) } else { Err(String::new()) };
        let items = if run.preview { Some(items(&foreseen, &shown)) } else { None };
        let plan = foreseen.plan(shown.as_ref().ok().map(seen));
        let scopes = scopes(&plan.targets, MOMENT);
        // what was not counted in time is not counted again now, but when it is kept
        let is_counted = scopes.iter().all(|scope| !scope.more);
        let demand = match &self.store {
            Some(store) if is_counted && !plan.is_empty() => Some(demand(store, &plan)),
            _ => None,
        };
        Looked { plan, demand, scopes, items }
    }

    /// Tells what it would change, and how much of it could be undone.
    pub fn tell(&self, looked: &Looked, run: &Run<'_>) {
        let ui = &run.cx.ui;
        for scope in &looked.scopes {
            if let Some(told) = told(scope, looked.plan.cover, &run.place.cwd) {
                ui.aside(if scope.touch == Touch::Delete { Role::Caution } else { Role::Dim }, &told);
            }
        }
        if let Some((items, how)) = &looked.items {
            preview::show(items, how, &run.place.cwd, run.cx);
        }
        let Some(store) = &self.store else { return };
        match (self.refusal(looked), looked.plan.cover) {
            (Some(why), _) => uncovered(&why, run),
            (None, Cover::Partly) => {
                let gaps = &looked.plan.gaps;
                let told: Vec<String> = gaps.iter().take(GAPS).map(|gap| in_line(gap)).collect();
                let more = gaps.len().saturating_sub(GAPS);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                let all = if looked.plan.is_empty() { "does not cover it" } else { "does not cover all of it" };
                ui.tell(&format!(
                    "  {}",
                    ui.paint_err(Role::Caution, &format!("undo {all}: {}{more}", told.join("; ")))
                ));
            }
            (None, Cover::Rehearsed) => ui.aside(Role::Dim, "undo covers what a rehearsal of it changed"),
            (None, Cover::Whole) if looked.plan.is_empty() => {}
            (None, Cover::Whole) => {
                let days = store.limits().age.as_secs() / 86_400;
                ui.aside(
                    Role::Dim,
                    &format!("undo covers it for {}", plural(usize::try_from(days).unwrap_or(14), "day")),
                );
            }
        }
    }

    /// True if all that it changes is kept, as far as is known before it runs.
    pub fn covers(&self, looked: &Looked) -> bool {
        self.store.is_some() && self.refusal(looked).is_none() && looked.plan.cover != Cover::Partly
    }

    /// Why it is known already that it will not be kept.
    fn refusal(&self, looked: &Looked) -> Option<String> {
        refusal(self.store.as_ref()?, looked.demand.as_ref()?)
    }

    /// Keeps what the command would change. What was told before not to be kept is not asked about again; else the person
    /// says whether to run it without.
    ///
    /// # Errors
    /// If it is not to be run.
    pub fn cast(&self, looked: Looked, cmd: &str, run: &Run<'_>) -> Result<Caught, Failure> {
        let none = Ok(Caught { keeping: None, trash: None });
        let Some(store) = &self.store else { return none };
        if looked.plan.is_empty() || self.refusal(&looked).is_some() {
            return none;
        }
        let kept = {
            // cut off here, nothing has run
            let _phase = run.cx.interrupt().during(Phase::Ends);
            let _status = run.cx.ui.status("keeping what it changes");
            keep(store, cmd, &run.place.cwd, looked.plan, &mut ())
        };
        match kept {
            Ok(keeping) => Ok(Caught { keeping: Some((keeping, store.clone())), trash: self.trash.clone() }),
            Err(why) => {
                uncovered(&why.to_string(), run);
                run.cx.ui.note(&format!("  {}", why.hint()));
                run.cx.ui.ask(&format!("type {} to run it without undo:", run.cx.ui.paint_err(Role::Danger, WORD)));
                match typed(run.cx)? {
                    Some(reply) if reply == WORD => none,
                    _ => Err(Failure::silent(Exit::No)),
                }
            }
        }
    }
}

impl Caught {
    /// Lets go of it: the command could not be started.
    pub fn dropped(self) {
        if let Some((keeping, _)) = self.keeping {
            keeping.dropped();
        }
    }

    /// Takes note of how it ended, and says how to take it back.
    pub fn ended(self, code: i32, run: &Run<'_>) {
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

/// Why what is asked for will not be kept.
pub(super) fn refusal(store: &Store, demand: &Result<Demand, UndoError>) -> Option<String> {
    let demand = match demand {
        Ok(demand) => demand,
        Err(why) => return Some(why.to_string()),
    };
    let limits = store.limits();
    let beyond = |bytes, name: &str, most| format!("{} is more than `{name}` ({})", size(bytes), size(most));
    if demand.bytes > limits.total {
        return Some(beyond(demand.bytes, "undo_total", limits.total));
    }
    // where files can be cloned, copies take nothing
    if demand.copies > limits.copies && !store.clones() {
        return Some(beyond(demand.copies, "undo_copies", limits.copies));
    }
    None
}

fn uncovered(why: &str, run: &Run<'_>) {
    let ui = &run.cx.ui;
    ui.tell(&format!("  {}", ui.paint_err(Role::Danger, &format!("undo does not cover it: {why}"))));
}

/// The changes of a rehearsal in the terms of undo.
pub(super) fn seen(rehearsal: &Rehearsal) -> Shown<'_> {
    Shown { changes: &rehearsal.changes, whole: rehearsal.status.success() && rehearsal.unlisted == 0 }
}

/// The rehearsal of a command, or why there is none.
fn shown(script: &Script, cmd: &str, run: &Run<'_>) -> Result<Rehearsal, String> {
    fit_to_show(script).map_err(|unfit| format!("`{}`: {}", unfit.token, unfit.why))?;
    let shell = run::program(run.place.dialect, run.context).ok_or("its shell is not here")?;
    let mut play = RehearsalJob::new(&shell, cmd, &run.place.cwd);
    play.limits.wall = if run.preview { ASKED } else { WAIT };
    play.env.extend(variables(cmd));
    let runtime = run.cx.runtime().map_err(|e| e.message)?;
    let _status = run.cx.ui.status("rehearsing");
    runtime.block_on(rehearse(&play)).map_err(|e| e.to_string())
}

/// The person's own variables that a command names: the run will see them.
pub(super) fn variables(cmd: &str) -> impl Iterator<Item = (OsString, OsString)> {
    env::everything().filter(|(name, _)| name.to_str().is_some_and(|name| mentions(cmd, name)))
}

/// True if a command names that variable.
fn mentions(cmd: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    cmd.match_indices(name).any(|(at, _)| {
        let before = cmd[..at].trim_end_matches(['{', '#', '!']);
        before.ends_with('$') && !cmd[at + name.len()..].starts_with(part)
    })
}

/// The changes to be shown, and where they are known from.
fn items(foreseen: &Foreseen, shown: &Result<Rehearsal, String>) -> (Vec<Item>, String) {
    match shown {
        Ok(rehearsal) => {
            let items = of_changes(&rehearsal.changes, MOMENT);
            let how = match seen(rehearsal).whole {
                true => "as a rehearsal showed it".to_owned(),
                false if rehearsal.timed_out() => "as far as a rehearsal came".to_owned(),
                false if rehearsal.unlisted > 0 => format!("and {} more, in a rehearsal", rehearsal.unlisted),
                false => format!("in a rehearsal, which ended badly: {}", complaint(rehearsal)),
            };
            (items, how)
        }
        Err(why) => {
            let plan = foreseen.clone().plan(None);
            (of_targets(&plan.targets, MOMENT), format!("as its text says; not rehearsed: {why}"))
        }
    }
}

/// The first line of what was complained.
fn complaint(rehearsal: &Rehearsal) -> String {
    let err = String::from_utf8_lossy(&rehearsal.stderr);
    let line = err.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("without a word");
    in_line(&line.chars().take(100).collect::<String>())
}

/// `deletes 1284 files, 3.2 GB under ./build; 12 not in git`.
fn told(scope: &Scope, cover: Cover, cwd: &Path) -> Option<String> {
    let verb = match scope.touch {
        Touch::Delete if cover == Cover::Whole => "deletes",
        // to a rehearsal what is renamed is gone, too
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
    fn a_scope_is_told_in_a_line() {
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
            told(&scope, Cover::Whole, Path::new("/w")).unwrap(),
            "deletes 1284 files, 3.2 GB under ./build; 12 not in git"
        );
        let some = Scope { files: 0, untracked: Some(0), more: true, below: "/w".into(), ..scope };
        assert_eq!(told(&some, Cover::Whole, Path::new("/w")).unwrap(), "deletes 7 folders at least here");
    }

    #[test]
    fn variables_that_are_named_are_known() {
        for command in ["rm $X", "rm ${X}", "rm \"$X\"/a", "rm ${X:-a}", "echo ${#X}"] {
            assert!(mentions(command, "X"), "{command}");
        }
        for command in ["rm X", "rm $XY", "rm $Y"] {
            assert!(!mentions(command, "X"), "{command}");
        }
    }
}
