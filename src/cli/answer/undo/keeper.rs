//! Saves what the agent's commands and file tools change, before they do.

use super::net::{REHEARSAL_TIMEOUT, named_variables, shown_changes, within_limits};
use super::store;
use crate::{Cx, Settings};
use caro_agent::tools::{Change, Keeper, Kept};
use caro_command::rehearsal::mode_for_preview;
use caro_exec::rehearse::{Rehearsal, RehearsalJob, rehearse};
use caro_shell::Script;
use caro_undo::plan::{Plan, Touch};
use caro_undo::scope::{MOMENT, scopes};
use caro_undo::{Foreseen, Keeping, Store, demand, foresee, foresee_file, keep};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the keeper for the agent's tools; `None` if the settings turn undo off or there is no folder for it.
pub fn keeper(settings: &Settings, cx: &Cx, shell: &Path) -> Option<Arc<dyn Keeper>> {
    if !settings.undo {
        return None;
    }
    let store = store(settings, cx).ok()?;
    Some(Arc::new(AgentKeeper { store, shell: shell.to_path_buf(), rehearse: settings.rehearse }))
}

struct AgentKeeper {
    store: Store,
    shell: PathBuf,
    rehearse: bool,
}

impl AgentKeeper {
    /// The reason undo never covers a plan; `None` also if the files cannot be counted in a moment. Missing room is no
    /// such reason: then saving fails, and the change is not made.
    fn refusal(&self, plan: &Plan) -> Option<String> {
        let whole: Vec<_> = plan.targets.iter().filter(|target| target.touch != Touch::Make).cloned().collect();
        if whole.is_empty() || scopes(&whole, MOMENT).iter().any(|scope| scope.more) {
            return None;
        }
        within_limits(&self.store, &demand(&self.store, plan)).err()
    }

    /// Rehearses a command whose text does not tell what it changes; with `digests` of what it makes.
    fn rehearse(&self, command: &str, script: &Script, cwd: &Path, digests: bool) -> Option<Rehearsal> {
        if !self.rehearse || mode_for_preview(script).is_err() {
            return None;
        }
        let mut job = RehearsalJob::new(&self.shell, command, cwd);
        (job.limits.wall, job.digests) = (REHEARSAL_TIMEOUT, digests);
        job.env.extend(named_variables(command));
        let work = rehearse(&job);
        match tokio::runtime::Handle::try_current() {
            Ok(handle) => handle.block_on(work).ok(),
            Err(_) => tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?.block_on(work).ok(),
        }
    }
}

/// Returns the effects that follow from the description of a change.
fn foreseen(change: Change<'_>, cwd: &Path) -> Foreseen {
    match change {
        Change::Command { script, .. } => foresee(script, cwd),
        Change::File { path, .. } => foresee_file(path),
    }
}

impl Keeper for AgentKeeper {
    fn gaps(&self, change: Change<'_>, cwd: &Path) -> Vec<String> {
        let foreseen = foreseen(change, cwd);
        let is_rehearsed = match change {
            Change::Command { script, .. } => self.rehearse && mode_for_preview(script).is_ok(),
            Change::File { .. } => false,
        };
        let mut gaps = foreseen.outside.clone();
        if !is_rehearsed {
            gaps.extend(foreseen.opaque.iter().cloned());
        }
        gaps.extend(self.refusal(&foreseen.plan(None)));
        gaps.truncate(3);
        gaps
    }

    fn removes(&self, command: &str, script: &Script, cwd: &Path) -> bool {
        if !foresee(script, cwd).wants_rehearsal() {
            return false;
        }
        // the caller's thread drives a runtime, which may not wait for another future
        let rehearsal =
            std::thread::scope(|scope| scope.spawn(|| self.rehearse(command, script, cwd, true)).join().ok().flatten());
        rehearsal.is_some_and(|rehearsal| rehearsal.loses_files())
    }

    fn keep(&self, change: Change<'_>, cwd: &Path) -> Result<Option<Box<dyn Kept>>, String> {
        let foreseen = foreseen(change, cwd);
        let is_refused = self.refusal(&foreseen.clone().plan(None)).is_some();
        let (text, rehearsal) = match change {
            Change::Command { text, script } if foreseen.wants_rehearsal() => {
                (text, self.rehearse(text, script, cwd, false))
            }
            Change::Command { text, .. } | Change::File { text, .. } => (text, None),
        };
        let plan = foreseen.plan(rehearsal.as_ref().map(shown_changes));
        if is_refused || plan.is_empty() {
            return Ok(None);
        }
        match keep(&self.store, text, cwd, plan, &mut ()) {
            Ok(keeping) => Ok(Some(Box::new(AgentKept(keeping)))),
            Err(why) => Err(why.to_string()),
        }
    }
}

struct AgentKept(Keeping);

impl Kept for AgentKept {
    fn ended(self: Box<Self>, code: i32) {
        // it can be undone even if its end is not recorded
        let _ = self.0.ended(code, &mut ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, parse};
    use caro_undo::Limits;

    /// Returns if something was kept, or the reason it was not, and the gaps.
    fn kept(folder: &Path, limits: Limits, change: Change<'_>, cwd: &Path) -> (Result<bool, String>, Vec<String>) {
        let keeper = AgentKeeper { store: Store::new(folder, limits), shell: "/bin/sh".into(), rehearse: false };
        (keeper.keep(change, cwd).map(|kept| kept.is_some()), keeper.gaps(change, cwd))
    }

    #[test]
    fn what_is_beyond_the_limits_is_a_gap_and_without_room_nothing_is_changed() {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        std::fs::write(&notes, "my notes\n").unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let text = "rm notes";
        let script = parse(text, Dialect::Bash);
        for change in [Change::Command { text, script: &script }, Change::File { text, path: &notes }] {
            let of = |folder: &str, limits| kept(&dir.path().join(folder), limits, change, dir.path());
            let (result, gaps) = of("undo", Limits::default());
            assert_eq!((result, gaps.len()), (Ok(true), 0), "{gaps:?}");
            let (result, gaps) = of("small", Limits { total: 1, ..Limits::default() });
            assert_eq!((result, gaps.len()), (Ok(false), 1), "{gaps:?}");
            assert!(gaps[0].contains("undo_total"), "{gaps:?}");
            let (result, gaps) = of("file/undo", Limits::default());
            assert!(result.is_err() && gaps.is_empty(), "{result:?} {gaps:?}");
        }
    }
}
