//! Loads the policy files: the user's own, next to the configuration file, and a project's, next to its `.caro.toml`.

use crate::{Cx, Failure};
use caro_base::files;
use caro_shell::Dialect;
use caro_shell::policy::{Owner, Policy, enforce};
use std::io::ErrorKind;
use std::path::Path;

/// The name of the user's file, next to the configuration file.
pub const USER_FILE: &str = "policy.toml";

/// The name of a project's file.
pub const PROJECT_FILE: &str = ".caro-policy.toml";

/// Most bytes of a file.
const MAX_FILE: u64 = 256 << 10;

/// Reads both files, warns of rules that cannot be used, and puts the rest in force for this process.
///
/// # Errors
/// If a file exists and cannot be read as a policy: no command is rated without it.
pub fn load(cx: &Cx) -> Result<(), Failure> {
    let own = cx.dirs.config_file.as_ref().map(|file| (file.with_file_name(USER_FILE), Owner::User));
    let project =
        cx.cwd.as_deref().and_then(|cwd| super::project::nearest(cwd, PROJECT_FILE)).map(|path| (path, Owner::Project));
    let mut policies = Vec::new();
    for (path, owner) in own.into_iter().chain(project) {
        let Some(text) = text(&path)? else { continue };
        let (policy, faults) =
            Policy::read(&text, &path.display().to_string(), owner, Dialect::Bash).map_err(|why| {
                Failure::usage(why).hint("`caro help policies` says what a rule has; no command is judged without it")
            })?;
        faults.iter().for_each(|fault| cx.ui.warn(&crate::term::ui::in_line(fault)));
        policies.push(policy);
    }
    enforce(policies);
    Ok(())
}

/// Reads the text of a file; `None` if it does not exist.
fn text(path: &Path) -> Result<Option<String>, Failure> {
    match files::read_text(path, MAX_FILE) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::usage(format!("{}: the policy cannot be read: {e}", path.display()))
            .hint("correct the file or move it away")),
    }
}
