//! Finds the documents of a folder, and reads their text.
//!
//! Skips files ignored by the project's own ignore files, hidden files, folders filled by tools, files that are not
//! written for reading, and files whose names suggest keys or passwords. Links are not followed. A folder that is
//! given explicitly is read even if an ignore file above it excludes all of it.

use super::error::LibraryError;
use super::format::{self, Format, Programs};
use caro_policy::is_secret;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of a document; larger files are data or logs.
pub const MAX_BYTES: u64 = 4 << 20;

/// Folders filled by tools.
const SKIPPED_FOLDERS: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".venv",
    "__pycache__",
    "bower_components",
    "build",
    "dist",
    "node_modules",
    "out",
    "site-packages",
    "target",
    "venv",
];

/// Endings of files that are not written for reading: generated, packed, or pictures as text.
const SKIPPED_ENDINGS: &[&str] = &[".lock", "-lock.json", "-lock.yaml", ".min.js", ".min.css", ".map", ".svg"];

/// The average length of lines, in bytes, from which a text was hardly written by hand.
const MAX_AVERAGE_LINE: usize = 2000;

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Found {
    /// Files to read, sorted.
    pub files: BTreeSet<PathBuf>,
    /// Files that seem to contain keys or passwords, which must not be stored.
    pub secret: BTreeSet<PathBuf>,
    /// Folders and files that could not be read, with the reason.
    pub errors: Vec<(PathBuf, String)>,
}

/// Finds the files below `root`, or `root` itself.
///
/// # Errors
/// If there is no `root`, or it cannot be read.
pub fn find(root: &Path, found: &mut Found) -> Result<(), LibraryError> {
    let input = |reason: String| LibraryError::Input { path: root.display().to_string(), reason };
    let meta = std::fs::metadata(root).map_err(|e| input(e.to_string()))?;
    if meta.is_dir() {
        std::fs::read_dir(root).map_err(|e| input(e.to_string()))?;
    } else if !meta.is_file() {
        return Err(input("neither a file nor a folder".into()));
    }
    let mut found_here = walk_folder(root, true);
    if found_here.files.is_empty() && found_here.secret.is_empty() && found_here.errors.is_empty() {
        found_here = walk_folder(root, false);
    }
    found.files.extend(found_here.files);
    found.secret.extend(found_here.secret);
    found.errors.extend(found_here.errors);
    Ok(())
}

/// Walks `root`; with `above` the ignore files of its parent folders count too.
fn walk_folder(root: &Path, above: bool) -> Found {
    let mut found = Found::default();
    let mut walk = ignore::WalkBuilder::new(root);
    walk.require_git(false).parents(above).filter_entry(|entry| {
        let name = entry.file_name().to_string_lossy();
        let folder = entry.file_type().is_some_and(|t| t.is_dir());
        entry.depth() == 0 || !(folder && SKIPPED_FOLDERS.contains(&&*name))
    });
    for entry in walk.build() {
        match entry {
            Ok(entry) => {
                let regular = entry.file_type().is_some_and(|t| t.is_file());
                let name = entry.file_name().to_string_lossy();
                // a file given explicitly is read; but a file may be secret because of the folder it is in
                if regular && entry.depth() > 0 && is_secret(entry.path()) {
                    found.secret.insert(entry.into_path());
                } else if regular && (entry.depth() == 0 || !SKIPPED_ENDINGS.iter().any(|end| name.ends_with(end))) {
                    found.files.insert(entry.into_path());
                }
            }
            Err(error) => {
                let path = path_of(&error).unwrap_or(root).to_owned();
                found.errors.push((path, reason_of(&error)));
            }
        }
    }
    found
}

/// Returns the system's error if there is one, as the outer errors only add the path.
fn reason_of(error: &ignore::Error) -> String {
    let Some(io) = error.io_error() else { return error.to_string() };
    let mut word: &dyn std::error::Error = io;
    while let Some(inner) = word.source() {
        word = inner;
    }
    word.to_string()
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

/// The result of reading a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Document {
    /// Its text, as UTF-8.
    Text(String),
    /// It is no document, with the reason.
    Skipped(&'static str),
}

/// Reads a file as a document. A format that is not plain text is converted, with the given `programs`.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path, programs: &Programs) -> std::io::Result<Document> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(Document::Skipped("no regular file"));
    }
    let format = Format::of(path);
    let max_bytes = format.map_or(MAX_BYTES, Format::max_bytes);
    let too_large = if max_bytes > MAX_BYTES { "larger than 32 MiB" } else { "larger than 4 MiB" };
    if meta.len() > max_bytes {
        return Ok(Document::Skipped(too_large));
    }
    let mut bytes = Vec::new();
    // it may grow while it is read
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Ok(Document::Skipped(too_large));
    }
    if let Some(format @ (Format::Docx | Format::Pdf)) = format {
        return Ok(match format::convert(format, path, &bytes, programs) {
            Ok(text) => Document::Text(text),
            Err(reason) => Document::Skipped(reason),
        });
    }
    let text = match utf16(&bytes) {
        Some(text) => text,
        None if bytes.contains(&0) => return Ok(Document::Skipped("binary")),
        None => match String::from_utf8(bytes) {
            // a byte order mark is not part of the first line
            Ok(text) => text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text),
            Err(error) => match legacy(error.as_bytes()) {
                Some(text) => text,
                None => return Ok(Document::Skipped("neither UTF-8 nor Latin-1")),
            },
        },
    };
    if format == Some(Format::Html) {
        return Ok(match format::html(&text) {
            Ok(text) => Document::Text(text),
            Err(reason) => Document::Skipped(reason),
        });
    }
    if text.len() > MAX_AVERAGE_LINE && text.len() / (text.lines().count().max(1)) > MAX_AVERAGE_LINE {
        return Ok(Document::Skipped("its lines are too long for a text"));
    }
    Ok(Document::Text(text))
}

/// Decodes a file that is UTF-16 with a byte order mark; `None` if it is not.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (unit, pairs): (fn([u8; 2]) -> u16, _) = match bytes {
        [0xff, 0xfe, rest @ ..] => (u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => (u16::from_be_bytes, rest),
        _ => return None,
    };
    let units = pairs.chunks_exact(2);
    let is_whole = units.remainder().is_empty();
    let text: String = char::decode_utf16(units.map(|pair| unit([pair[0], pair[1]]))).collect::<Result<_, _>>().ok()?;
    (is_whole && !text.contains('\0')).then_some(text)
}

/// Decodes text that is not UTF-8: UTF-8 with damaged bytes, which are marked, or Latin-1 as on Windows (code page
/// 1252). `None` if so many bytes are not ASCII that it is neither.
fn legacy(bytes: &[u8]) -> Option<String> {
    let lossy = String::from_utf8_lossy(bytes);
    let damaged = lossy.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    let sound = lossy.chars().filter(|c| !c.is_ascii() && *c != char::REPLACEMENT_CHARACTER).count();
    if damaged < sound {
        return Some(lossy.into_owned());
    }
    let beyond = bytes.iter().filter(|b| !b.is_ascii()).count();
    (beyond <= bytes.len() / 4).then(|| bytes.iter().map(|b| windows_1252(*b)).collect())
}

/// Decodes a byte. Source: the WHATWG encoding standard's index windows-1252; the bytes it leaves out are controls.
fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readable_documents_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["docs", "node_modules/x", "target", ".git", "src/build", ".hidden"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "README.md",
            "docs/a.txt",
            "docs/secret.txt",
            "node_modules/x/i.md",
            "target/t.md",
            ".git/c.md",
            "src/build/b.md",
            ".hidden/h.md",
            "Cargo.lock",
            "app.min.js",
            "src/main.rs",
            "docs/id_rsa",
            "docs/server.key",
        ] {
            std::fs::write(root.join(file), "x").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "secret.txt\n").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("..", root.join("docs/loop")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", root.join("docs/zero.md")).unwrap();
        }
        let mut found = Found::default();
        find(root, &mut found).unwrap();
        let names: Vec<String> =
            found.files.iter().map(|f| f.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/")).collect();
        assert_eq!(names, ["README.md", "docs/a.txt", "src/main.rs"]);
        assert!(found.errors.is_empty());
        assert_eq!(found.secret.len(), 2, "{:?}", found.secret);
        // a file given explicitly is read whatever its name
        let mut found = Found::default();
        find(&root.join("Cargo.lock"), &mut found).unwrap();
        find(&root.join("target"), &mut found).unwrap();
        assert_eq!(found.files.len(), 2);
        assert!(find(&root.join("nowhere"), &mut found).is_err());
        #[cfg(unix)]
        assert!(find(Path::new("/dev/null"), &mut found).unwrap_err().to_string().contains("neither a file nor"));
    }

    #[test]
    fn an_explicit_folder_is_read_though_one_above_ignores_it() {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        std::fs::create_dir(&notes).unwrap();
        for file in ["a.md", "b.md", "c.md"] {
            std::fs::write(notes.join(file), "x").unwrap();
        }
        std::fs::write(notes.join(".gitignore"), "c.md\n").unwrap();
        for (above, left) in [("*\n", 2), ("a.md\n", 1)] {
            std::fs::write(dir.path().join(".gitignore"), above).unwrap();
            let mut found = Found::default();
            find(&notes, &mut found).unwrap();
            assert_eq!(found.files.len(), left, "{above}");
        }
    }

    #[test]
    fn files_in_a_folder_of_keys_are_secret_though_it_is_explicit() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, key) = (dir.path().join(".ssh"), dir.path().join(".ssh/work"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&key, "x").unwrap();
        let mut found = Found::default();
        find(&folder, &mut found).unwrap();
        assert_eq!((found.files.len(), found.secret.iter().collect::<Vec<_>>()), (0, vec![&key]));
        find(&key, &mut found).unwrap();
        assert_eq!(found.files.iter().collect::<Vec<_>>(), [&key], "who names the file itself means it");
    }

    #[test]
    fn skipped_files_have_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let read = |content: &[u8]| {
            let file = dir.path().join("f");
            std::fs::write(&file, content).unwrap();
            super::read(&file, &Programs::default()).unwrap()
        };
        assert_eq!(read(b"plain"), Document::Text("plain".into()));
        assert_eq!(read("\u{feff}# Title\n".as_bytes()), Document::Text("# Title\n".into()));
        assert_eq!(read(b"\xff\xfe#\0 \0\xe9\0"), Document::Text("# é".into()));
        assert_eq!(read(b"\xfe\xff\0#\0 \0\xe9"), Document::Text("# é".into()));
        assert_eq!(read(b"\xff\xfe#\0 \0\0"), Document::Skipped("binary"));
        assert_eq!(read(b"\xff\xfe\0\0#\0\0\0"), Document::Skipped("binary"), "that is UTF-32");
        assert_eq!(read(b"caf\xe9 au lait \x93x\x94"), Document::Text("café au lait “x”".into()));
        assert_eq!(
            read("naïve café \u{1f600}".as_bytes().split_last().unwrap().1),
            Document::Text("naïve café \u{fffd}".into())
        );
        assert_eq!(read(b"\x7fELF\0\0"), Document::Skipped("binary"));
        assert_eq!(read(&[0xff, 0xfe, 0x81, 0x90, 0xaa]), Document::Skipped("neither UTF-8 nor Latin-1"));
        assert_eq!(read(&[b'x'; 5000]), Document::Skipped("its lines are too long for a text"));
        let huge = dir.path().join("huge");
        File::create(&huge).unwrap().set_len(200 << 20).unwrap();
        assert_eq!(super::read(&huge, &Programs::default()).unwrap(), Document::Skipped("larger than 4 MiB"));
        assert!(super::read(&dir.path().join("nothing"), &Programs::default()).is_err());
    }
}
