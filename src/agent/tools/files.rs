//! The tools `write`, `edit` and `append`: create and change the user's files, always atomically.

use super::{io, path, replace_file, shown, text};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError, ToolSpec};
use caro_base::files::read_text;
use serde_json::json;
use std::path::Path;

/// Most bytes of a file that is edited.
const MAX_BYTES: u64 = 16 << 20;

/// The count in the examples ([`crate::action::EXAMPLE`]).
const EXAMPLE_COUNT: &str = "8317 lines";

/// The tool that writes a file.
pub struct Write(ToolSpec);

impl Default for Write {
    fn default() -> Self {
        let parameters = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let description = "writes a text file, in the place of an old one if there is one. Give the whole content.";
        let mut spec = ToolSpec::new("write", description, parameters, &["path", "content"]);
        spec.example = json!({"path": "notes.txt", "content": format!("# Notes\n\n- a.txt has {EXAMPLE_COUNT}\n")});
        (spec.core, spec.parallel) = (true, false);
        Self(spec)
    }
}

impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let path = path(args, &cx.root);
        let reasons = match std::fs::metadata(&path) {
            Ok(meta) => vec![format!("it replaces {} ({} bytes)", shown(&path, &cx.root), meta.len())],
            Err(_) => Vec::new(),
        };
        Effects { writes: vec![path], reasons, ..Effects::default() }
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
        replace_file(&path, content.as_bytes()).map_err(|e| io("could not write", &path, &cx.root, e))?;
        let lines = content.lines().count();
        Ok(Raw::text(format!("wrote {} ({lines} lines, {} bytes)", shown(&path, &cx.root), content.len())))
    }
}

/// The tool that replaces one piece of a file.
pub struct Edit(ToolSpec);

impl Default for Edit {
    fn default() -> Self {
        let text = || json!({"type": "string"});
        let parameters = json!({"path": text(), "old": text(), "new": text()});
        let description = "replaces a piece of a file: `old` must stand in it exactly once.";
        let mut spec = ToolSpec::new("edit", description, parameters, &["path", "old", "new"]);
        spec.example = json!({"path": "notes.txt", "old": EXAMPLE_COUNT, "new": "8318 lines"});
        (spec.core, spec.parallel) = (true, false);
        Self(spec)
    }
}

impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        Effects { writes: vec![path(args, &cx.root)], edits: true, ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let path = path(args, &cx.root);
        let name = shown(&path, &cx.root);
        let failed = |e| io("could not edit", &path, &cx.root, e);
        let (old, new) = (text(args, "old"), text(args, "new"));
        if old.is_empty() {
            return Err(ToolError::Arguments("`old` is empty: give the text to replace".into()));
        }
        let before = regular_text(&path, &name, "edit", failed)?;
        match before.matches(old).count() {
            1 => {}
            0 => {
                let first = old.lines().next().unwrap_or_default().trim();
                let line = before.lines().position(|l| !first.is_empty() && l.contains(first));
                let near = line.map(|at| format!(" (its first line is in line {})", at + 1)).unwrap_or_default();
                return Err(ToolError::Failed(format!(
                    "`old` does not stand in {name} as it is written{near}: read it"
                )));
            }
            n => return Err(ToolError::Failed(format!("`old` stands in {name} {n} times: give more of the text"))),
        }
        let after = before.replacen(old, new, 1);
        replace_file(&path, after.as_bytes()).map_err(failed)?;
        let line = before[..before.find(old).unwrap_or_default()].matches('\n').count() + 1;
        Ok(Raw::text(format!("changed {name} at line {line}")))
    }
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

/// The tool that adds text at the end of an existing file.
pub struct Append(ToolSpec);

impl Default for Append {
    fn default() -> Self {
        let parameters = json!({"path": {"type": "string"}, "content": {"type": "string"}});
        let description = "adds text at the end of a file that is there.";
        let mut spec = ToolSpec::new("append", description, parameters, &["path", "content"]);
        spec.example = json!({"path": "notes.txt", "content": format!("- a.txt has {EXAMPLE_COUNT}\n")});
        spec.parallel = false;
        Self(spec)
    }
}

impl Tool for Append {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        Effects { writes: vec![path(args, &cx.root)], edits: true, ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let path = path(args, &cx.root);
        let name = shown(&path, &cx.root);
        let failed = |e| io("could not append to", &path, &cx.root, e);
        let mut whole = regular_text(&path, &name, "append", failed)?;
        for part in ["", text(args, "content")] {
            whole.push_str(part);
            if !whole.is_empty() && !whole.ends_with('\n') {
                whole.push('\n');
            }
        }
        replace_file(&path, whole.as_bytes()).map_err(failed)?;
        Ok(Raw::text(format!("appended to {name} (now {} lines)", whole.lines().count())))
    }
}
