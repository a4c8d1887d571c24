//! Finds programs that read a compressed file as text, such as `grep error app.log.1.gz`; it has to be unpacked
//! first.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::input::{files, is_reader};
use caro_shell::{Finding, Invocation, Userland, Word};
use std::path::Path;

/// A format of compression.
struct Packer {
    ending: &'static str,
    /// The first bytes of such a file.
    magic: &'static [u8],
    program: &'static str,
    /// The variant of grep that unpacks by itself.
    grep: &'static str,
}

const PACKERS: [Packer; 4] = [
    Packer { ending: ".gz", magic: &[0x1f, 0x8b], program: "gzip", grep: "zgrep" },
    Packer { ending: ".bz2", magic: b"BZh", program: "bzip2", grep: "bzgrep" },
    Packer { ending: ".xz", magic: b"\xfd7zXZ", program: "xz", grep: "xzgrep" },
    Packer { ending: ".zst", magic: &[0x28, 0xb5, 0x2f, 0xfd], program: "zstd", grep: "zstdgrep" },
];

pub(super) fn check(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let name = command.name()?;
    let files = files(command)?;
    let (file, packer) = files.iter().find_map(|file| Some((*file, packer(cx, command, file)?)))?;
    if wants_raw_bytes(cx, command, name) {
        return None;
    }
    let is_installed = cx.context.is_none_or(|context| context.available_commands.contains_key(packer.program));
    let fix = if is_installed { unpacked(cx, command, &files, packer) } else { None };
    let why = format!("{} is compressed: {name} sees what {} wrote, not its text", file.raw, packer.program);
    Some(warning("compressed", file, why, fix))
}

/// Returns the command on the unpacked files, in simple cases.
fn unpacked(cx: &CheckContext, command: &Invocation, files: &[&Word], packer: &Packer) -> Option<String> {
    let (name, program) = (command.name()?, command.words.first()?);
    let kind = match name {
        "grep" => "",
        "egrep" => " -E",
        "fgrep" => " -F",
        _ => return unpacked_by_pipe(cx, command, files, packer),
    };
    let args = || command.args().iter().map(|w| w.text.as_str());
    // zgrep and its variants do not come with busybox, and have no options for folders and no long options
    let folders = [('r', "recursive"), ('R', "dereference-recursive"), ('d', "directories")];
    let has_known_options = !folders.iter().any(|(short, long)| command.has_option(Some(*short), long))
        && !args().any(|arg| arg.starts_with("--"))
        && args().filter(|arg| arg.starts_with("-e")).count() < 2;
    let is_plain = program.text == name && command.via.iter().all(|via| via == "find");
    if !has_known_options || !is_plain || cx.target.userland == Userland::Busybox {
        return None;
    }
    Edits::new(cx.script).replace(program, &format!("{}{kind}", packer.grep)).apply()
}

/// Returns a pipeline that unpacks the files and feeds them to the program.
fn unpacked_by_pipe(cx: &CheckContext, command: &Invocation, files: &[&Word], packer: &Packer) -> Option<String> {
    let (name, program) = (command.name()?, command.words.first()?);
    let edits = Edits::new(cx.script);
    let are_packed = files.iter().all(|file| file.text.ends_with(packer.ending));
    let is_single = files.len() == 1 && !files[0].glob;
    let has_options = command.args().len() > files.len();
    // wrappers, assignments and redirections would apply to the unpacking program
    let is_direct = program.text == name && command.via.is_empty() && command.inside.is_none();
    let is_plain = is_direct && command.assignments.is_empty() && command.redirects.is_empty();
    if !are_packed || !is_plain || cx.target.userland == Userland::Busybox && packer.program == "zstd" {
        return None;
    }
    let unpack = format!("{} -dc", packer.program);
    if name == "cat" && !has_options {
        return edits.replace(program, &unpack).apply();
    }
    // only these programs treat several files as one
    let merges = command.has_option(Some('m'), "merge") || command.has_option(Some('c'), "check");
    let joins = ["cut", "cat", "jq", "sort", "uniq"].contains(&name) && !merges;
    if !is_single && !joins {
        return None;
    }
    let raw = files.iter().map(|file| file.raw.as_str()).collect::<Vec<_>>().join(" ");
    let edits = files.iter().fold(edits, |edits, file| edits.replace(file, ""));
    edits.insert_before(program, &format!("{unpack} {raw} | ")).apply()
}

/// Returns the compression of a file, by its name and, if the file exists, by its first bytes. `None` for tar
/// archives.
fn packer(cx: &CheckContext, command: &Invocation, file: &Word) -> Option<&'static Packer> {
    let name = if file.text == "{}" { find_pattern(cx, command)? } else { &file.text };
    let packer = PACKERS.iter().find(|p| name.ends_with(p.ending))?;
    if name.trim_end_matches(packer.ending).ends_with(".tar") {
        return None;
    }
    let here = cx.cwd.map(|cwd| cwd.join(name)).filter(|path| path.exists());
    let prefix = |path: &Path| super::read_prefix(path, packer.magic.len() as u64);
    let is_packed = |path: &Path| path.is_file() && prefix(path).is_none_or(|bytes| bytes == packer.magic);
    here.is_none_or(|path| is_packed(&path)).then_some(packer)
}

/// Returns the name pattern of the `find` that passes the files on.
fn find_pattern<'a>(cx: &'a CheckContext, command: &Invocation) -> Option<&'a str> {
    let find = &cx.script.commands.get(command.inside.as_ref()?.command).filter(|c| c.name() == Some("find"))?;
    let has_operator = |word: &Word| matches!(word.text.as_str(), "!" | "-not" | "-prune" | "-o" | "-or" | "(");
    if find.args().iter().any(has_operator) {
        return None;
    }
    let at = find.args().iter().position(|w| matches!(w.text.as_str(), "-name" | "-iname"))?;
    find.args().get(at + 1).map(|w| w.text.as_str())
}

/// True if the command needs the compressed bytes: it works on bytes, or passes them on.
fn wants_raw_bytes(cx: &CheckContext, command: &Invocation, name: &str) -> bool {
    let has = |letter, long| command.has_option(Some(letter), long);
    match name {
        "head" | "tail" | "wc" => has('c', "bytes"),
        // BSD's grep unpacks with `-z` and `-Z`
        name if name.ends_with("grep") => {
            let is_binary = command.args().iter().any(|w| w.text.starts_with("--binary-files"));
            is_binary || has('a', "text") || has('z', "decompress") || has('Z', "decompress")
        }
        "sed" => has('i', "in-place"),
        "cat" => match cx.script.reader(command) {
            Some(reader) => reader.name().is_none_or(|name| !is_reader(name) || wants_raw_bytes(cx, reader, name)),
            // the output does not go to the terminal
            None => {
                let writes = |c: &Invocation| c.redirects.iter().any(|r| r.writes());
                let is_passed_on = command.inside.is_some() || !command.via.is_empty() || command.remote;
                is_passed_on || command.stdout_pipe || writes(command) || !cx.script.redirects.is_empty()
            }
        },
        _ => false,
    }
}
