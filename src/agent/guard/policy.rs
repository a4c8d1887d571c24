//! What runs unasked, what is asked for, what never runs.

use super::{Finding, Guard, GuardError, Verdict};
use crate::state::RunState;
use crate::tool::{Call, Hazard};
use caro_policy::secret::reads_secret;
use std::path::{Path, PathBuf};

/// What the person has allowed beforehand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// Changes below the working directory and commands that are no danger run unasked (`--yes`).
    pub changes: bool,
    /// Files may be taken away by it: the task speaks of that.
    pub removals: bool,
}

/// `policy`: reading is free, but for secrets; changes are asked for; danger is asked for every time.
#[derive(Debug)]
pub struct Policy {
    /// The person's working directory.
    pub root: PathBuf,
    /// Where the agent's own files are: it may write there.
    pub own: Vec<PathBuf>,
    /// What is allowed beforehand.
    pub rights: Rights,
}

/// The kind of call that `always` allows for the rest of the run: a tool's changes inside the working directory, and what
/// it does there that nobody can foresee.
pub fn kind_of(call: &Call) -> String {
    call.tool.clone()
}

impl Policy {
    fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }
}

impl Guard for Policy {
    fn name(&self) -> &'static str {
        "policy"
    }

    fn check(&self, call: &Call, state: &RunState) -> Result<Verdict, GuardError> {
        let effects = &call.effects;
        let mut reasons = Vec::new();
        for path in effects.reads.iter().filter(|path| reads_secret(path)) {
            reasons.push(format!("it reads {}, which may hold secrets", path.display()));
        }
        let outside = |path: &&PathBuf| !path.starts_with(&self.root) && !self.is_own(path);
        for path in effects.writes.iter().filter(outside) {
            reasons.push(format!("it changes {}, which is outside of {}", path.display(), self.root.display()));
        }
        let own = !effects.writes.is_empty() && effects.writes.iter().all(|path| self.is_own(path));
        if effects.removes && !self.rights.removals && !own {
            reasons.push("it removes files, and the task does not speak of that".into());
        }
        if effects.net {
            reasons.push("it reaches the network".into());
        }
        if effects.hazard == Hazard::Danger {
            reasons.extend(effects.reasons.iter().cloned());
            reasons.push("it is dangerous".into());
        }
        // whatever was allowed for the rest of the run, these are asked for each time
        if !reasons.is_empty() {
            return Ok(Verdict::Ask(each_once(reasons)));
        }
        let changes =
            effects.opaque || effects.hazard == Hazard::Change || effects.writes.iter().any(|path| !self.is_own(path));
        if changes && !self.rights.changes && !state.always.contains(&kind_of(call)) {
            let mut reasons = effects.reasons.clone();
            reasons.extend(
                effects.writes.iter().filter(|p| !self.is_own(p)).map(|path| format!("it writes {}", path.display())),
            );
            if reasons.is_empty() {
                reasons.push("what it does cannot be foreseen".into());
            }
            return Ok(Verdict::Ask(each_once(reasons)));
        }
        Ok(Verdict::Allow)
    }
}

/// The same in their order: a file that is written twelve times is one reason.
fn each_once(mut reasons: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    reasons.retain(|reason| seen.insert(reason.clone()));
    reasons
}

/// How the model is told that nobody agreed, and what it is to do then.
const REFUSED: (&str, &str) =
    ("The user did not allow this call", " Do not try it again; take another way, or answer with what you have.");

/// What the model is told where nobody agreed.
pub fn refused(reasons: &[String]) -> Finding {
    let why = if reasons.is_empty() { "no reason given".to_owned() } else { reasons.join("; ") };
    Finding { id: "policy-denied".into(), text: format!("{} ({why}).{}", REFUSED.0, REFUSED.1) }
}

/// What a model says to the person. A small one repeats what it was told itself.
pub fn as_told(reason: &str) -> String {
    reason.replace(REFUSED.0, "you did not allow the call").replace(REFUSED.1, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Args, Effects};

    fn verdict(rights: Rights, always: bool, effects: Effects) -> &'static str {
        let policy = Policy { root: "/home/me/work".into(), own: vec!["/data/ws".into()], rights };
        let call = Call { id: "s1c1".into(), tool: "write".into(), args: Args::new(), effects };
        let mut state = RunState::default();
        if always {
            state.always.insert(kind_of(&call));
        }
        match policy.check(&call, &state).unwrap() {
            Verdict::Allow => "allow",
            Verdict::Ask(reasons) => {
                assert!(!reasons.is_empty());
                "ask"
            }
            Verdict::Deny(_) => "deny",
        }
    }

    fn writes(path: &str) -> Effects {
        Effects { writes: vec![path.into()], ..Effects::default() }
    }

    fn reads(path: &str) -> Effects {
        Effects { reads: vec![path.into()], ..Effects::default() }
    }

    #[test]
    fn a_reason_is_given_once() {
        let policy = Policy { root: "/w".into(), own: Vec::new(), rights: Rights::default() };
        let effects = Effects { writes: vec!["/w/log.txt".into(); 12], ..Effects::default() };
        let call = Call { id: "s1c1".into(), tool: "shell".into(), args: Args::new(), effects };
        let Verdict::Ask(reasons) = policy.check(&call, &RunState::default()).unwrap() else { panic!("not asked") };
        assert_eq!(reasons, ["it writes /w/log.txt"]);
    }

    #[test]
    fn a_removal_that_nobody_speaks_of_is_asked_for_each_time() {
        let gone = |path: &str| Effects { removes: true, ..writes(path) };
        let (yes, told) = (Rights { changes: true, removals: false }, Rights { changes: true, removals: true });
        for always in [false, true] {
            assert_eq!(verdict(yes, always, gone("/home/me/work/a.md")), "ask");
            assert_eq!(verdict(told, always, gone("/home/me/work/a.md")), "allow");
            assert_eq!(verdict(yes, always, gone("/data/ws/a.md")), "allow", "the agent's own");
        }
        assert_eq!(verdict(told, false, gone("/etc/hosts")), "ask");
    }

    #[test]
    fn what_the_model_was_told_is_not_told_to_the_person() {
        let told = refused(&["it writes a".to_owned()]).text;
        assert_eq!(as_told(&told), "you did not allow the call (it writes a).");
        assert_eq!(as_told("There is no such file."), "There is no such file.");
    }

    #[test]
    fn reading_is_free_and_writing_is_asked_for() {
        let none = Rights::default();
        let yes = Rights { changes: true, removals: false };
        for (effects, unasked, allowed) in [
            (reads("/etc/hosts"), "allow", "allow"),
            (reads("/home/me/.ssh/id_rsa"), "ask", "ask"),
            (reads("/home/me/work/.env"), "ask", "ask"),
            (writes("/home/me/work/a.md"), "ask", "allow"),
            (writes("/home/me/workshop/a.md"), "ask", "ask"),
            (writes("/etc/passwd"), "ask", "ask"),
            (writes("/data/ws/files/a"), "allow", "allow"),
            (Effects { hazard: Hazard::Change, reasons: vec!["x".into()], ..Effects::default() }, "ask", "allow"),
            (Effects { hazard: Hazard::Danger, ..Effects::default() }, "ask", "ask"),
            (Effects { net: true, ..Effects::default() }, "ask", "ask"),
        ] {
            assert_eq!(verdict(none, false, effects.clone()), unasked, "{effects:?}");
            assert_eq!(verdict(yes, false, effects.clone()), allowed, "{effects:?}");
            assert_eq!(verdict(none, true, effects.clone()), allowed, "{effects:?}");
        }
    }
}
