//! The tools `write`, `edit` and `append`: create and change the user's files, each as a whole or not at all, and as
//! the user can undo it.

use super::keeper::{Change, Keeper, keep, reasons};
use super::{io, path, shown, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError, ToolSpec};
use caro_base::files::{Access, overwrite, read_text, replace};
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of a file that is edited.
const MAX_BYTES: u64 = 16 << 20;

/// The count in the examples ([`crate::action::EXAMPLE`]).
const EXAMPLE_COUNT: &str = "8317 lines";

/// One of these tools.
struct Writer {
    spec: ToolSpec,
    /// Saves what is changed, for undo.
    keeper: Option<Arc<dyn Keeper>>,
}

impl Writer {
    /// Returns the effects of writing a file.
    fn effects(&self, path: &Path, root: &Path, reasons_before: Vec<String>) -> Effects {
        let mut effects = Effects { writes: vec![path.to_path_buf()], reasons: reasons_before, ..Effects::default() };
        if let Some(keeper) = &self.keeper {
            effects.reasons.extend(reasons(&**keeper, Change::File { text: &self.title(path, root), path }, root));
        }
        effects
    }

    /// Replaces a file or creates it, after saving what is there.
    fn replace(&self, path: &Path, root: &Path, content: &[u8]) -> Result<(), ToolError> {
        let kept = keep(self.keeper.as_deref(), Change::File { text: &self.title(path, root), path }, root)?;
        let written = match path.try_exists() {
            Ok(false) => replace(path, content, Access::Umask),
            _ => overwrite(path, content),
        };
        if let Some(kept) = kept {
            kept.ended(i32::from(written.is_err()));
        }
        written.map_err(|why| self.failure(path, root, why))
    }

    /// Names what is done to a file, for the list of what can be undone.
    fn title(&self, path: &Path, root: &Path) -> String {
        format!("{} {}", self.spec.name, shown(path, root))
    }

    /// Says what is done to a file, for errors.
    fn verb(&self) -> &str {
        if self.spec.name == "append" { "append to" } else { &self.spec.name }
    }

    /// Converts an error of writing a file.
    fn failure(&self, path: &Path, root: &Path, why: std::io::Error) -> ToolError {
        let verb = self.verb();
        if why.kind() == ErrorKind::PermissionDenied && path.is_file() {
            return ToolError::Failed(format!(
                "could not {verb} {}, which is as it was: this user may not write it, or not into its folder ({why}). The \
                 user can allow it (chmod u+w)",
                shown(path, root)
            ));
        }
        io(&format!("could not {verb}"), path, root, why)
    }
}

/// The tool that writes a file.
pub struct Write(Writer);

impl Write {
    /// Creates the tool; the keeper saves what it changes, for undo.
    pub(crate) fn new(keeper: Option<Arc<dyn Keeper>>) -> Self {
        let parameters = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let description = "writes a text file, in the place of an old one if there is one. Give the whole content.";
        let mut spec = ToolSpec::new("write", description, parameters, &["path", "content"]);
        spec.example = json!({"path": "notes.txt", "content": format!("# Notes\n\n- a.txt has {EXAMPLE_COUNT}\n")});
        (spec.core, spec.parallel) = (true, false);
        Self(Writer { spec, keeper })
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.0.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let path = path(args, &cx.root);
        let reasons = match std::fs::metadata(&path) {
            Ok(meta) => vec![format!("it replaces {} ({} bytes)", shown(&path, &cx.root), meta.len())],
            Err(_) => Vec::new(),
        };
        self.0.effects(&path, &cx.root, reasons)
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let path = path(args, &cx.root);
        let content = text(args, "content");
        if path.is_dir() {
            return Err(ToolError::Failed(format!("{} is a folder: name a file", shown(&path, &cx.root))));
        }
        // a text file ends with a line break
        let mut content = content.to_owned();
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        self.0.replace(&path, &cx.root, content.as_bytes())?;
        let lines = content.lines().count();
        Ok(Raw::text(format!("wrote {} ({lines} lines, {} bytes)", shown(&path, &cx.root), content.len())))
    }
}

/// Computes a text file's new content, and what to say of the change, from the arguments, the file's shown name and
/// the reader of its old content.
type Rewrite = fn(&Args, &str, &dyn Fn() -> Result<String, ToolError>) -> Result<(String, String), ToolError>;

/// A tool that changes a part of an existing text file.
pub struct Revise {
    writer: Writer,
    rewrite: Rewrite,
}

impl Revise {
    /// Creates the tool that replaces one piece of a file; the keeper saves what it changes, for undo.
    pub(crate) fn edit(keeper: Option<Arc<dyn Keeper>>) -> Self {
        let text = || json!({"type": "string"});
        let parameters = json!({"path": text(), "old": text(), "new": text()});
        let description = "replaces a piece of a file: `old` must stand in it exactly once.";
        let mut spec = ToolSpec::new("edit", description, parameters, &["path", "old", "new"]);
        spec.example = json!({"path": "notes.txt", "old": EXAMPLE_COUNT, "new": "8318 lines"});
        (spec.core, spec.parallel) = (true, false);
        Self { writer: Writer { spec, keeper }, rewrite: replace_piece }
    }

    /// Creates the tool that adds text at the end of a file; the keeper saves what it changes, for undo.
    pub(crate) fn append(keeper: Option<Arc<dyn Keeper>>) -> Self {
        let parameters = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let description = "adds text at the end of a file that is there.";
        let mut spec = ToolSpec::new("append", description, parameters, &["path", "content"]);
        spec.example = json!({"path": "notes.txt", "content": format!("- a.txt has {EXAMPLE_COUNT}\n")});
        spec.parallel = false;
        Self { writer: Writer { spec, keeper }, rewrite: add_at_end }
    }
}

impl Tool for Revise {
    fn spec(&self) -> &ToolSpec {
        &self.writer.spec
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        Effects { edits: true, ..self.writer.effects(&path(args, &cx.root), &cx.root, Vec::new()) }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let path = path(args, &cx.root);
        let name = shown(&path, &cx.root);
        let failed = |e| io(&format!("could not {}", self.writer.verb()), &path, &cx.root, e);
        let read = || regular_text(&path, &name, &self.writer.spec.name, failed);
        let (after, said) = (self.rewrite)(args, &name, &read)?;
        self.writer.replace(&path, &cx.root, after.as_bytes())?;
        Ok(Raw::text(said))
    }
}

fn replace_piece(
    args: &Args,
    name: &str,
    read: &dyn Fn() -> Result<String, ToolError>,
) -> Result<(String, String), ToolError> {
    let (old, new) = (text(args, "old"), text(args, "new"));
    if old.is_empty() {
        return Err(ToolError::Arguments("`old` is empty: give the text to replace".into()));
    }
    let before = read()?;
    match before.matches(old).count() {
        1 => {}
        0 => {
            let first = old.lines().next().unwrap_or_default().trim();
            let line = before.lines().position(|l| !first.is_empty() && l.contains(first));
            let near = line.map(|at| format!(" (its first line is in line {})", at + 1)).unwrap_or_default();
            return Err(ToolError::Failed(format!("`old` does not stand in {name} as it is written{near}: read it")));
        }
        n => return Err(ToolError::Failed(format!("`old` stands in {name} {n} times: give more of the text"))),
    }
    let line = before[..before.find(old).unwrap_or_default()].matches('\n').count() + 1;
    Ok((before.replacen(old, new, 1), format!("changed {name} at line {line}")))
}

fn add_at_end(
    args: &Args,
    name: &str,
    read: &dyn Fn() -> Result<String, ToolError>,
) -> Result<(String, String), ToolError> {
    let mut whole = read()?;
    for part in ["", text(args, "content")] {
        whole.push_str(part);
        if !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
    }
    let said = format!("appended to {name} (now {} lines)", whole.lines().count());
    Ok((whole, said))
}

/// Reads a regular text file that is to be changed; `verb` names the change in error messages.
///
/// # Errors
/// If it is not a regular file, is too large, or cannot be read.
fn regular_text(
    path: &Path,
    name: &str,
    verb: &str,
    failed: impl Fn(std::io::Error) -> ToolError,
) -> Result<String, ToolError> {
    let meta = std::fs::metadata(path).map_err(&failed)?;
    if !meta.is_file() {
        // reading a pipe might never end
        return Err(ToolError::Failed(format!("{name} is not a regular file")));
    }
    let size = meta.len();
    if size > MAX_BYTES {
        return Err(ToolError::Failed(format!("{name} has {size} bytes: too many to {verb} here")));
    }
    read_text(path, MAX_BYTES).map_err(failed)
}
