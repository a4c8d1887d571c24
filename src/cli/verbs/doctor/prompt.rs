//! Checks which shells are here, whether caro is in their prompts, and whether they find it on PATH.

use super::finding::Finding;
use crate::setup::rc;
use crate::setup::rc::{Loading, Shell};
use caro_exec as exec;
use caro_host::ExecutionContext;
use std::path::{Path, PathBuf};

/// A shell whose prompt caro can be added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its name.
    pub name: &'static str,
    /// Its startup file.
    pub file: Option<PathBuf>,
    /// The way in which that file loads caro.
    pub loading: Loading,
}

/// The facts about shells and PATH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The shell that called caro.
    pub calling: String,
    /// Every shell on PATH by name.
    pub shells: Vec<&'static str>,
    /// The shells whose prompt caro can be added to.
    pub prompts: Vec<Prompt>,
    /// This program.
    pub own: Option<PathBuf>,
    /// The program that a shell starts for `caro`.
    pub found: Option<PathBuf>,
    /// True if both are the same file.
    pub is_same: bool,
}

/// Shells that caro writes commands for, and other common ones.
const SHELLS: [&str; 7] = ["bash", "zsh", "fish", "sh", "pwsh", "nu", "tcsh"];

/// Examines PATH and the startup files of the shells.
pub fn look(context: &ExecutionContext) -> Facts {
    let has = |name: &str| context.available_commands.contains_key(name);
    let prompts = Shell::ALL.into_iter().filter(|shell| has(shell.name())).map(|shell| {
        let file = rc::file(shell);
        let loading = file.as_deref().map_or(Loading::None, rc::loading_of);
        Prompt { name: shell.name(), file, loading }
    });
    let (own, found) = (std::env::current_exe().ok(), exec::find("caro"));
    let real = |path: &Option<PathBuf>| path.as_ref().and_then(|path| path.canonicalize().ok());
    Facts {
        calling: context.shell.name.clone(),
        shells: SHELLS.into_iter().filter(|name| has(name)).collect(),
        prompts: prompts.collect(),
        is_same: real(&own).is_some() && real(&own) == real(&found),
        own,
        found,
    }
}

/// The findings about shells and PATH.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut all = vec![Finding::ok("shells", format!("{} (calling: {})", facts.shells.join(", "), facts.calling))];
    all.extend(facts.prompts.iter().map(prompt_finding));
    all.push(path_finding(facts));
    all
}

fn prompt_finding(prompt: &Prompt) -> Finding {
    const CHECK: &str = "prompt";
    let Prompt { name, file, loading } = prompt;
    let file = file.as_ref().map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
    match loading {
        Loading::Block | Loading::ByHand => Finding::ok(CHECK, format!("{name}: {file} has `caro init`")),
        // this is no fault: caro in the prompt is optional
        Loading::None => Finding::ok(CHECK, format!("{name}: {file} has no `caro init`"))
            .with(format!("`caro init {name} --install` puts caro into its prompt")),
        Loading::Broken => Finding::warn(
            CHECK,
            format!("{name}: in {file} the marks around caro's line do not stand in pairs"),
            format!("remove what is left of them, then `caro init {name} --install`"),
        ),
        Loading::Unreadable(why) => Finding::warn(
            CHECK,
            format!("{name}: {file} cannot be read: {why}"),
            "correct its permissions, or save it as UTF-8",
        ),
    }
}

fn path_finding(facts: &Facts) -> Finding {
    const CHECK: &str = "path";
    let folder = |path: &Path| path.parent().unwrap_or(path).display().to_string();
    match (&facts.found, &facts.own) {
        (Some(found), _) if facts.is_same => Finding::ok(CHECK, format!("{} is this program", found.display())),
        (Some(found), Some(own)) => Finding::warn(
            CHECK,
            format!("`caro` is {}, and this program is {}", found.display(), own.display()),
            "remove the one that is not wanted, or put the folder of the other first in PATH",
        ),
        (Some(found), None) => Finding::ok(CHECK, format!("`caro` is {}", found.display())),
        (None, own) => {
            let own = own.as_deref().map_or_else(|| "its folder".to_owned(), folder);
            let is_loaded = facts.prompts.iter().any(|p| matches!(p.loading, Loading::Block | Loading::ByHand));
            let harm = if is_loaded { ", though shells load it at their start" } else { "" };
            let remedy = format!("`cargo install --path .` puts it into ~/.cargo/bin; or add {own} to PATH");
            Finding::warn(CHECK, format!("no `caro` is on PATH{harm}"), remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    fn facts(loading: Loading) -> Facts {
        Facts {
            calling: "bash".into(),
            shells: vec!["bash", "sh"],
            prompts: vec![Prompt { name: "bash", file: Some("/h/.bashrc".into()), loading }],
            own: Some("/opt/caro/caro".into()),
            found: Some("/usr/bin/caro".into()),
            is_same: true,
        }
    }

    #[test]
    fn a_prompt_without_caro_is_no_fault_and_says_how_to_add_it() {
        let none = &findings(&facts(Loading::None))[1];
        assert_eq!((none.check, none.state), ("prompt", State::Ok));
        assert!(none.remedy.as_deref().unwrap().contains("caro init bash --install"), "{none:?}");
        for loading in [Loading::Block, Loading::ByHand] {
            assert_eq!(findings(&facts(loading))[1].remedy, None);
        }
        for loading in [Loading::Broken, Loading::Unreadable("denied".into())] {
            assert_eq!(findings(&facts(loading))[1].state, State::Warn);
        }
    }

    #[test]
    fn another_program_with_that_name_is_reported() {
        let of = |facts: Facts| findings(&facts).pop().unwrap();
        assert_eq!(of(facts(Loading::None)).state, State::Ok);
        let other = of(Facts { is_same: false, ..facts(Loading::None) });
        assert!(
            other.state == State::Warn && other.fact.contains("/usr/bin/caro") && other.fact.contains("/opt/caro"),
            "{other:?}"
        );
        let missing = of(Facts { found: None, is_same: false, ..facts(Loading::Block) });
        assert!(missing.state == State::Warn && missing.fact.contains("though shells load it"), "{missing:?}");
        assert!(missing.remedy.unwrap().contains("add /opt/caro to PATH"));
    }
}
