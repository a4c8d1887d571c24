//! The tools `read` and `list`: show the content of a file or a folder.

use super::{io, number, read_path, shown};
use crate::observe::Raw;
use crate::tool::{Args, Effects, Tool, ToolCx, ToolError, ToolSpec, shown_part};
use caro_base::files::open_nonblocking;
use serde_json::json;
use std::io::{BufRead, BufReader, ErrorKind, Read as _};
use std::time::SystemTime;

/// Most bytes of a file shown at once: a page that fits into a prompt.
const MAX_PAGE: usize = 1600;
/// Most characters shown of a line.
const MAX_LINE: usize = 300;
/// Most entries of a folder shown.
const MAX_ENTRIES: usize = 40;

/// The tool that shows a text file page by page.
pub struct Read(ToolSpec);

impl Default for Read {
    fn default() -> Self {
        let parameters = json!({"path": {"type": "string"}, "from": super::line_number()});
        let description = "shows the text of a file, from a line on if it is long.";
        let mut spec = ToolSpec::new("read", description, parameters, &["path"]);
        spec.example = json!({"path": "docs/intro.txt"});
        spec.core = true;
        Self(spec)
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        let path = read_path(args, &cx.root);
        let part = number(args, "from").filter(|n| *n > 1).map(|n| n.to_string()).unwrap_or_default();
        Effects { shows: vec![shown_part(&path, &part)], reads: vec![path], ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let path = read_path(args, &cx.root);
        let name = shown(&path, &cx.root);
        let failed = |e| io("could not read", &path, &cx.root, e);
        let meta = std::fs::metadata(&path).map_err(failed)?;
        if meta.is_dir() {
            return Err(ToolError::Failed(format!("{name} is a folder: use list to see what is in it")));
        }
        if !meta.is_file() {
            return Err(ToolError::Failed(format!("{name} is not a regular file")));
        }
        let mut reader = BufReader::new(open_nonblocking(&path).map_err(failed)?);
        let start = reader.fill_buf().map_err(|why| match why.kind() {
            ErrorKind::WouldBlock => {
                ToolError::Failed(format!("there is nothing to read in {name} now: reading it would wait for more"))
            }
            _ => failed(why),
        })?;
        if start.iter().take(4096).any(|b| *b == 0) {
            return Ok(Raw::text(format!("{name} is a binary file of {} bytes", meta.len())));
        }
        let from = number(args, "from").unwrap_or(1).max(1);
        let (mut page, mut last, mut total) = (String::new(), from.saturating_sub(1), 0usize);
        let mut line = Vec::new();
        let mut full = false;
        while !cx.cancel.is_cancelled() {
            line.clear();
            // an endless line is read in pieces of 1 MiB
            let read = (&mut reader).take(1 << 20).read_until(b'\n', &mut line);
            let is_all = read.as_ref().is_err_and(|why| why.kind() == ErrorKind::WouldBlock);
            if is_all || read.map_err(failed)? == 0 {
                break;
            }
            total += 1;
            if total < from || full {
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            let cut = text.char_indices().nth(MAX_LINE).map(|(at, _)| at);
            if page.len() + cut.unwrap_or(text.len()) > MAX_PAGE && !page.is_empty() {
                full = true;
                continue;
            }
            page.push_str(&text[..cut.unwrap_or(text.len())]);
            page.push_str(if cut.is_some() { "…\n" } else { "\n" });
            last = total;
        }
        if total == 0 {
            return Ok(Raw::text(format!("{name} is empty")));
        }
        if from > total {
            return Err(ToolError::Failed(format!("{name} has only {total} lines")));
        }
        if from > 1 || last < total {
            let more = if last < total { format!("; more with from={}", last + 1) } else { String::new() };
            page.push_str(&format!("[lines {from} to {last} of {total}{more}]"));
        }
        Ok(Raw::text(page))
    }
}

/// The tool that lists a folder.
pub struct List(ToolSpec);

impl Default for List {
    fn default() -> Self {
        let sort = json!({"type": "string", "enum": ["name", "size", "time"]});
        let parameters = json!({"path": {"type": "string"}, "sort": sort});
        let description = "lists a folder with sizes in bytes, by name, size (largest first) or time (newest first).";
        let mut spec = ToolSpec::new("list", description, parameters, &["path"]);
        spec.example = json!({"path": "docs", "sort": "size"});
        spec.core = true;
        Self(spec)
    }
}

impl Tool for List {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effects(&self, args: &Args, cx: &ToolCx) -> Effects {
        Effects { reads: vec![read_path(args, &cx.root)], ..Effects::default() }
    }

    fn call(&self, args: &Args, cx: &ToolCx) -> Result<Raw, ToolError> {
        let path = read_path(args, &cx.root);
        let failed = |e| io("could not list", &path, &cx.root, e);
        if path.is_file() {
            return Err(ToolError::Failed(format!("{} is a file: use read", shown(&path, &cx.root))));
        }
        let mut entries: Vec<(String, bool, u64, SystemTime)> = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let Ok(entry) = entry else { continue };
            let Ok(meta) = entry.metadata() else { continue };
            let time = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            entries.push((entry.file_name().to_string_lossy().into_owned(), meta.is_dir(), meta.len(), time));
        }
        match super::text(args, "sort") {
            "size" => entries.sort_by(|a, b| (a.1, b.2, &a.0).cmp(&(b.1, a.2, &b.0))),
            "time" => entries.sort_by(|a, b| (b.3, &a.0).cmp(&(a.3, &b.0))),
            _ => entries.sort_by(|a, b| a.0.cmp(&b.0)),
        }
        let mut text = String::new();
        for (name, folder, size, _) in entries.iter().take(MAX_ENTRIES) {
            match folder {
                true => text.push_str(&format!("{name}/\n")),
                false => text.push_str(&format!("{name}  {size}\n")),
            }
        }
        if entries.is_empty() {
            text.push_str("(empty folder)");
        } else if entries.len() > MAX_ENTRIES {
            text.push_str(&format!("[{} of {} entries]", MAX_ENTRIES, entries.len()));
        }
        Ok(Raw::text(text))
    }
}
