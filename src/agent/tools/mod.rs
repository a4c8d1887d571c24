//! The built-in tools, one file each, and what they share. They read and change the user's files; the guards decide
//! what needs approval.

mod artifact;
pub(crate) mod child;
mod ended;
mod files;
mod keeper;
mod knowledge;
mod manual;
mod read;
mod search;
mod shell;
mod sockets;
mod sweep;
mod workspace;
mod written;

pub use files::{Revise, Write};
pub use keeper::{Change, Keeper, Kept};
pub use knowledge::KnowledgeSearch;
pub use manual::{ManualSearch, ManualSource};
pub use read::{List, Read};
pub use search::Search;
pub use shell::Shell;
pub(crate) use sweep::secrets_in_script;
pub(crate) use workspace::all as workspace_tools;

use super::observe::Artifacts;
use super::tool::{Args, Registry, RegistryError, Tool, ToolError, home, normal};
use super::workspace::Workspace;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The resources of the built-in tools; a tool whose resource is absent is left out.
#[derive(Default)]
pub struct Setup {
    /// The shell that commands run in.
    pub shell: Option<Shell>,
    /// Saves what commands and the file tools change, for undo.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// The agent's own files.
    pub workspace: Option<Arc<Workspace>>,
    /// The store of long results.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// The installed manuals.
    pub manual: Option<Arc<dyn ManualSource>>,
    /// The user's own documents.
    pub knowledge: Option<Arc<caro_documents::Librarian>>,
}

/// Creates the built-in tools.
///
/// # Errors
/// If two of them have the same name, which does not happen.
pub fn builtin(setup: Setup) -> Result<Registry, RegistryError> {
    let mut registry = Registry::default();
    let mut all: Vec<Arc<dyn Tool>> = vec![
        Arc::new(Read::default()),
        Arc::new(List::default()),
        Arc::new(Write::new(setup.keeper.clone())),
        Arc::new(Revise::edit(setup.keeper.clone())),
        Arc::new(Search::default()),
    ];
    if let Some(shell) = setup.shell {
        all.push(Arc::new(shell.keeping(setup.keeper)));
    }
    if let Some(manual) = setup.manual {
        all.push(Arc::new(ManualSearch::new(manual)));
    }
    if let Some(knowledge) = setup.knowledge {
        all.push(Arc::new(KnowledgeSearch::new(knowledge)));
    }
    if let Some(artifacts) = setup.artifacts {
        all.extend(artifact::all(artifacts));
    }
    if let Some(workspace) = setup.workspace {
        all.extend(workspace::all(workspace));
    }
    for tool in all {
        registry.add(tool)?;
    }
    Ok(registry)
}

/// Returns the tools of one session: those of its workspace and, with `offloads`, those for results that were too long
/// for a prompt and are stored there.
pub(crate) fn of_session(workspace: Arc<Workspace>, offloads: bool) -> Vec<Arc<dyn Tool>> {
    let mut all = workspace::all(workspace.clone());
    if offloads {
        all.extend(artifact::all(workspace));
    }
    all
}

/// Returns the schema of a line number. It has a maximum, because a small model that begins to write zeros does not
/// stop by itself.
fn line_number() -> Value {
    serde_json::json!({"type": "integer", "minimum": 1, "maximum": 999_999})
}

/// Returns a string argument; empty if it is absent (the schema has checked that it may be).
fn text<'a>(args: &'a Args, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number argument.
fn number(args: &Args, name: &str) -> Option<usize> {
    args.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
}

/// Returns the path argument, resolved like the system does; `~` is the home folder, as in a shell.
fn path(args: &Args, root: &Path) -> PathBuf {
    normal(root, &home(text(args, "path")))
}

/// Returns the path argument of a tool that only reads. The working folder's own name stands for the working folder if
/// there is nothing of that name in it.
fn read_path(args: &Args, root: &Path) -> PathBuf {
    let path = path(args, root);
    let own = root.file_name().map(|name| root.join(name)).filter(|own| !own.exists());
    match own.and_then(|own| path.strip_prefix(own).ok().map(Path::to_path_buf)) {
        Some(rest) if rest.as_os_str().is_empty() => root.to_owned(),
        Some(rest) => root.join(rest),
        None => path,
    }
}

/// Returns a path as it is shown: relative to the working directory if it is below it.
fn shown(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Converts an error of the file system; if the file does not exist, the message names a similar one.
fn io(what: &str, path: &Path, root: &Path, source: std::io::Error) -> ToolError {
    let name = shown(path, root);
    if source.kind() == std::io::ErrorKind::NotFound
        && let Some(near) = nearest(path)
    {
        return ToolError::Failed(format!("there is no {name}; there is {}", shown(&near, root)));
    }
    ToolError::Io { what: format!("{what} {name}"), source }
}

/// Returns the file with the most similar name in the same folder or a folder directly below it.
fn nearest(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let folder = path.parent()?;
    let entries = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().take(500).flatten().map(|e| e.path()).collect()
    };
    let here = entries(folder);
    let below: Vec<PathBuf> = here.iter().filter(|p| p.is_dir()).take(50).flat_map(|p| entries(p)).collect();
    let of = |p: &PathBuf| p.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let all = || here.iter().chain(&below);
    let same = all().find(|p| of(p) == name);
    let stem = name.split('.').next().unwrap_or_default();
    same.or_else(|| all().find(|p| !stem.is_empty() && of(p).split('.').next() == Some(stem))).cloned()
}

#[cfg(test)]
mod tests;
