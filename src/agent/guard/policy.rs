//! Decides which calls run without asking, and which need the user's permission.

use super::{Finding, Guard, GuardError, Verdict};
use crate::state::RunState;
use crate::tool::{Call, Hazard};
use caro_base::wildcard::patterns_overlap;
use caro_policy::secret::reads_secret;
use caro_shell::safety::runs_by_itself;
use std::path::{Path, PathBuf};

/// The permissions that the user has given beforehand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights {
    /// True if changes below the working directory, and harmless commands, run without asking (`--yes`).
    pub changes: bool,
    /// True if files may be removed, because the task orders it.
    pub removals: bool,
}

/// `policy`: reading is allowed, except for secrets; changes need permission; dangerous calls need it each time.
#[derive(Debug)]
pub struct Policy {
    /// The user's working directory.
    pub root: PathBuf,
    /// Folders of the agent's own files, where it may write.
    pub own: Vec<PathBuf>,
    /// The permissions given beforehand.
    pub rights: Rights,
}

/// Returns the kind of a call, which the user may allow for the rest of the run: changes of a tool inside the working
/// directory, foreseen or not.
pub fn kind_of(call: &Call) -> String {
    call.tool.clone()
}

/// Files and folders of a project, in lower case, from which version control, a shell, an editor or an agent starts
/// programs by itself.
const STARTS_PROGRAMS: [&str; 21] = [
    ".git",
    ".hg",
    ".jj",
    ".svn",
    ".husky",
    ".vscode",
    ".idea",
    ".devcontainer",
    ".agents",
    ".envrc",
    ".mcp.json",
    ".gitconfig",
    ".gitattributes",
    ".github",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    ".cargo",
    ".npmrc",
    ".claude",
    ".codex",
    ".cursor",
];

/// The file of a project's own rules, which decide what is asked for.
const RULES: &str = ".caro-policy.toml";

impl Policy {
    /// True for a file whose contents may run later without being called: what is written there is outside of every
    /// sandbox then.
    fn runs_later(&self, path: &Path) -> bool {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        // many disks ignore case, and a pattern counts as what it may match
        let starts = |part: std::path::Component<'_>| {
            let name = part.as_os_str().to_string_lossy().to_lowercase();
            STARTS_PROGRAMS.iter().any(|own| patterns_overlap(&name, own))
        };
        below.components().any(starts) || runs_by_itself(&path.to_string_lossy())
    }

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
        for path in effects.writes.iter().filter(|path| !self.is_own(path) && self.runs_later(path)) {
            reasons
                .push(format!("it changes {}, from which programs are started without being called", path.display()));
        }
        let is_rules = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            patterns_overlap(&name.to_lowercase(), RULES)
        };
        for path in effects.writes.iter().filter(|path| is_rules(path)) {
            reasons.push(format!("it changes {}, whose rules decide what is asked for", path.display()));
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
        // these need permission each time, whatever is allowed for the rest of the run
        if !reasons.is_empty() {
            return Ok(Verdict::Ask(dedup(reasons)));
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
            return Ok(Verdict::Ask(dedup(reasons)));
        }
        Ok(Verdict::Allow)
    }
}

/// Removes duplicates and keeps the order: a file that is written twelve times is one reason.
fn dedup(mut reasons: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    reasons.retain(|reason| seen.insert(reason.clone()));
    reasons
}

/// The text for the model after a refusal, and the advice that follows it.
const REFUSED: (&str, &str) =
    ("The user did not allow this call", " Do not try it again; take another way, or answer with what you have.");

/// Returns the finding for the model after the user has refused a call, or nobody could be asked.
pub fn refused(reasons: &[String]) -> Finding {
    let why = if reasons.is_empty() { "no reason given".to_owned() } else { reasons.join("; ") };
    Finding { id: "policy-denied".into(), text: format!("{} ({why}).{}", REFUSED.0, REFUSED.1) }
}

/// Rewords the text of [`refused`] for the user, as small models repeat it in their answers.
pub fn reword_refusal(reason: &str) -> String {
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
    fn a_removal_that_the_task_does_not_order_needs_permission_each_time() {
        let gone = |path: &str| Effects { removes: true, ..writes(path) };
        let (yes, ordered) = (Rights { changes: true, removals: false }, Rights { changes: true, removals: true });
        for always in [false, true] {
            assert_eq!(verdict(yes, always, gone("/home/me/work/a.md")), "ask");
            assert_eq!(verdict(ordered, always, gone("/home/me/work/a.md")), "allow");
            assert_eq!(verdict(yes, always, gone("/data/ws/a.md")), "allow", "the agent's own");
        }
        assert_eq!(verdict(ordered, false, gone("/etc/hosts")), "ask");
    }

    #[test]
    fn a_refusal_is_reworded_for_the_user() {
        let text = refused(&["it writes a".to_owned()]).text;
        assert_eq!(reword_refusal(&text), "you did not allow the call (it writes a).");
        assert_eq!(reword_refusal("There is no such file."), "There is no such file.");
    }

    #[test]
    fn reading_is_allowed_and_writing_needs_permission() {
        let none = Rights::default();
        let yes = Rights { changes: true, removals: false };
        for (effects, unasked, allowed) in [
            (reads("/etc/hosts"), "allow", "allow"),
            (reads("/home/me/.ssh/id_rsa"), "ask", "ask"),
            (reads("/home/me/work/.env"), "ask", "ask"),
            (writes("/home/me/work/a.md"), "ask", "allow"),
            (writes("/home/me/workshop/a.md"), "ask", "ask"),
            (writes("/home/me/work/.git/hooks/pre-commit"), "ask", "ask"),
            (writes("/home/me/work/deep/.git/config"), "ask", "ask"),
            (writes("/home/me/work/.envrc"), "ask", "ask"),
            (writes("/home/me/work/.bashrc"), "ask", "ask"),
            (writes("/home/me/work/.gi?/hooks/pre-commit"), "ask", "ask"),
            (writes("/home/me/work/.[g]it"), "ask", "ask"),
            (writes("/home/me/work/.VSCODE/tasks.json"), "ask", "ask"),
            (writes("/home/me/work/.BashRC"), "ask", "ask"),
            (writes("/home/me/work/.gitignore"), "ask", "allow"),
            (writes("/home/me/work/src/*/hooks/*.ts"), "ask", "allow"),
            (writes("/home/me/work/*"), "ask", "allow"),
            (writes("/home/me/work/cpu.profile"), "ask", "allow"),
            (writes("/home/me/work/tests/authorized_keys_test.py"), "ask", "allow"),
            (writes("/home/me/work/fixtures/etc/hosts.txt"), "ask", "allow"),
            (writes("/home/me/work/.cargo/config.toml"), "ask", "ask"),
            (writes("/home/me/work/.github/workflows/ci.yml"), "ask", "ask"),
            (writes("/home/me/work/.caro-policy.toml"), "ask", "ask"),
            (writes("/home/me/work/.caro-pol*"), "ask", "ask"),
            (writes("/home/me/work/cargo/config.toml"), "ask", "allow"),
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
