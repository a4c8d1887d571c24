//! The tools that need no set-up. Each is a file; what they share is here. They look into and change the person's files;
//! what may be done unasked is not decided here but by the guards.

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

pub use files::{Append, Edit, Write};
pub use keeper::{Keeper, Kept};
pub use knowledge::KnowledgeSearch;
pub use manual::{ManualSearch, ManualSource};
pub use read::{List, Read};
pub use search::Search;
pub use shell::Shell;
pub(crate) use workspace::all as workspace_tools;

use super::observe::Artifacts;
use super::tool::{Args, Registry, RegistryError, Tool, ToolError, home, normal};
use super::workspace::Workspace;
use caro_base::files::{Access, replace};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the built-in tools stand on.
#[derive(Default)]
pub struct Setup {
    /// The shell that commands run in.
    pub shell: Option<Shell>,
    /// The agent's own files.
    pub workspace: Option<Arc<Workspace>>,
    /// Where long results go.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// The installed manuals.
    pub manual: Option<Arc<dyn ManualSource>>,
    /// The person's own documents.
    pub knowledge: Option<Arc<caro_documents::Librarian>>,
}

/// Every built-in tool.
///
/// # Errors
/// Never by themselves; the registry's word, should two of them ever have one name.
pub fn builtin(setup: Setup) -> Result<Registry, RegistryError> {
    let mut registry = Registry::default();
    let mut all: Vec<Arc<dyn Tool>> = vec![
        Arc::new(Read::default()),
        Arc::new(List::default()),
        Arc::new(Write::default()),
        Arc::new(Edit::default()),
        Arc::new(Search::default()),
    ];
    if let Some(shell) = setup.shell {
        all.push(Arc::new(shell));
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

/// The tools that belong to one session: those of its workspace, with `offloads` also those for what was too long for a
/// prompt and is kept there.
pub(crate) fn of_session(workspace: Arc<Workspace>, offloads: bool) -> Vec<Arc<dyn Tool>> {
    let mut all = workspace::all(workspace.clone());
    if offloads {
        all.extend(artifact::all(workspace));
    }
    all
}

/// The schema of a line's number. Bounded: a small model that begins to write zeros does not stop by itself.
fn line_number() -> Value {
    serde_json::json!({"type": "integer", "minimum": 1, "maximum": 999_999})
}

/// A text argument; empty if it is not there (the schema has said whether it may).
fn text<'a>(args: &'a Args, name: &str) -> &'a str {
    args.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A number argument.
fn number(args: &Args, name: &str) -> Option<usize> {
    args.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
}

/// The path argument, as the system follows it; `~` is the person's home, as in a shell.
fn path(args: &Args, root: &Path) -> PathBuf {
    normal(root, &home(text(args, "path")))
}

/// The same of a tool that only looks: where the working folder is called by its own name, and has nothing of that name, it
/// is meant.
fn looked_at(args: &Args, root: &Path) -> PathBuf {
    let path = path(args, root);
    let own = root.file_name().map(|name| root.join(name)).filter(|own| !own.exists());
    match own.and_then(|own| path.strip_prefix(own).ok().map(Path::to_path_buf)) {
        Some(rest) if rest.as_os_str().is_empty() => root.to_owned(),
        Some(rest) => root.join(rest),
        None => path,
    }
}

/// A path as it is shown: relative to the working directory where it is below it.
fn shown(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".into(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// An error of the file system, with what is there instead.
fn io(what: &str, path: &Path, root: &Path, source: std::io::Error) -> ToolError {
    let name = shown(path, root);
    if source.kind() == std::io::ErrorKind::NotFound
        && let Some(near) = nearest(path)
    {
        return ToolError::Failed(format!("there is no {name}; there is {}", shown(&near, root)));
    }
    ToolError::Io { what: format!("{what} {name}"), source }
}

/// The file of the same folder, or of a folder directly below it, with the most similar name.
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

/// Writes a file of the person's whole or not at all: one that was there stays as open to others as it was.
fn replace_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let access = std::fs::metadata(path).map_or(Access::Umask, |before| Access::Like(before.permissions()));
    replace(path, content, access)
}

#[cfg(test)]
mod tests;
