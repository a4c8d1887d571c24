//! `grep error app.log.1.gz` looks into what gzip wrote, where no such word stands: a compressed file is unpacked first.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::input::{files, is_reader};
use caro_shell::{Finding, Invocation, Userland, Word};
use std::path::Path;

/// A way to compress a file.
struct Packer {
    ending: &'static str,
    /// What such a file begins with.
    magic: &'static [u8],
    program: &'static str,
    /// The grep that unpacks by itself.
    grep: &'static str,
}

const PACKERS: [Packer; 4] = [
    Packer { ending: ".gz", magic: &[0x1f, 0x8b], program: "gzip", grep: "zgrep" },
    Packer { ending: ".bz2", magic: b"BZh", program: "bzip2", grep: "bzgrep" },
    Packer { ending: ".xz", magic: b"\xfd7zXZ", program: "xz", grep: "xzgrep" },
    Packer { ending: ".zst", magic: &[0x28, 0xb5, 0x2f, 0xfd], program: "zstd", grep: "zstdgrep" },
];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    it.script.commands.iter().filter_map(|command| of_command(it, command)).collect()
}

fn of_command(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let name = command.name()?;
    let files = files(command)?;
    let (file, packer) = files.iter().find_map(|file| Some((*file, packer(it, command, file)?)))?;
    if reads_as_it_is(it, command, name) {
        return None;
    }
    let is_here = it.context.is_none_or(|context| context.available_commands.contains_key(packer.program));
    let fix = if is_here { mended(it, command, &files, packer) } else { None };
    let why = format!("{} is compressed: {name} sees what {} wrote, not its text", file.raw, packer.program);
    Some(warning("compressed", file, why, fix))
}

/// The same for the text of the files, in the plain cases.
fn mended(it: &CheckContext, command: &Invocation, files: &[&Word], packer: &Packer) -> Option<String> {
    let (name, program) = (command.name()?, command.words.first()?);
    let kind = match name {
        "grep" => "",
        "egrep" => " -E",
        "fgrep" => " -F",
        _ => return piped(it, command, files, packer),
    };
    let args = || command.args().iter().map(|w| w.text.as_str());
    // these come with gzip and its like, but not with busybox; they know neither folders nor long options
    let folders = [('r', "recursive"), ('R', "dereference-recursive"), ('d', "directories")];
    let known = !folders.iter().any(|(short, long)| command.has_option(Some(*short), long))
        && !args().any(|arg| arg.starts_with("--"))
        && args().filter(|arg| arg.starts_with("-e")).count() < 2;
    let is_plain = program.text == name && command.via.iter().all(|via| via == "find");
    let can = known && is_plain && it.target.userland != Userland::Busybox;
    can.then(|| Edits::new(it.script).replace(program, &format!("{}{kind}", packer.grep))).and_then(Edits::done)
}

/// The program behind one that unpacks its files.
fn piped(it: &CheckContext, command: &Invocation, files: &[&Word], packer: &Packer) -> Option<String> {
    let (name, program) = (command.name()?, command.words.first()?);
    let edits = Edits::new(it.script);
    let all_are = files.iter().all(|file| file.text.ends_with(packer.ending));
    let one = files.len() == 1 && !files[0].glob;
    let options = command.args().len() > files.len();
    // what stands before the program would be the other's
    let is_bare = program.text == name && command.via.is_empty() && command.inside.is_none();
    let lone = is_bare && command.assignments.is_empty() && command.redirects.is_empty();
    if !all_are || !lone || it.target.userland == Userland::Busybox && packer.program == "zstd" {
        return None;
    }
    let unpack = format!("{} -dc", packer.program);
    if name == "cat" && !options {
        return edits.replace(program, &unpack).done();
    }
    // of several files these tell each on its own
    let merges = command.has_option(Some('m'), "merge") || command.has_option(Some('c'), "check");
    let joins = ["cut", "cat", "jq", "sort", "uniq"].contains(&name) && !merges;
    if !one && !joins {
        return None;
    }
    let raw = files.iter().map(|file| file.raw.as_str()).collect::<Vec<_>>().join(" ");
    let edits = files.iter().fold(edits, |edits, file| edits.replace(file, ""));
    edits.before(program, &format!("{unpack} {raw} | ")).done()
}

/// What the file is compressed with, by its name and, where it is here, by how it begins. Of archives the text is not all.
fn packer(it: &CheckContext, command: &Invocation, file: &Word) -> Option<&'static Packer> {
    let name = if file.text == "{}" { found(it, command)? } else { &file.text };
    let packer = PACKERS.iter().find(|p| name.ends_with(p.ending))?;
    if name.trim_end_matches(packer.ending).ends_with(".tar") {
        return None;
    }
    let here = it.cwd.map(|cwd| cwd.join(name)).filter(|path| path.exists());
    let begins = |path: &Path| super::beginning(path, packer.magic.len() as u64);
    let is_packed = |path: &Path| path.is_file() && begins(path).is_none_or(|bytes| bytes == packer.magic);
    here.is_none_or(|path| is_packed(&path)).then_some(packer)
}

/// The pattern by which `find` has found what it hands over.
fn found<'a>(it: &'a CheckContext, command: &Invocation) -> Option<&'a str> {
    let find = &it.script.commands.get(command.inside.as_ref()?.command).filter(|c| c.name() == Some("find"))?;
    let chooses = |word: &Word| matches!(word.text.as_str(), "!" | "-not" | "-prune" | "-o" | "-or" | "(");
    let at = find.args().iter().position(|w| matches!(w.text.as_str(), "-name" | "-iname"))?;
    find.args().get(at + 1).map(|w| w.text.as_str()).filter(|_| !find.args().iter().any(chooses))
}

/// True where the file is to be read as it is: by its bytes, or to be handed on.
fn reads_as_it_is(it: &CheckContext, command: &Invocation, name: &str) -> bool {
    let short = |letter, long| command.has_option(Some(letter), long);
    match name {
        "head" | "tail" | "wc" => short('c', "bytes"),
        // BSD's grep unpacks with it
        name if name.ends_with("grep") => {
            let text = command.args().iter().any(|w| w.text.starts_with("--binary-files"));
            text || short('a', "text") || short('z', "decompress") || short('Z', "decompress")
        }
        "sed" => short('i', "in-place"),
        "cat" => match it.script.reader(command) {
            Some(reader) => reader.name().is_none_or(|name| !is_reader(name) || reads_as_it_is(it, reader, name)),
            // shown to nobody here
            None => {
                let writes = |c: &Invocation| c.redirects.iter().any(|r| r.writes());
                let sent = command.inside.is_some() || !command.via.is_empty() || command.remote;
                sent || command.stdout_pipe || writes(command) || !it.script.redirects.is_empty()
            }
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{findings, findings_in};
    use super::*;

    fn fix(command: &str) -> Option<Option<String>> {
        findings(check, "", command).into_iter().next().map(|f| f.fix)
    }

    #[test]
    fn what_is_compressed_is_unpacked_before_it_is_read() {
        for (wrong, right) in [
            ("grep -i timeout old/app.log.1.gz", "zgrep -i timeout old/app.log.1.gz"),
            ("egrep -c 'a|b' app.log app.log.1.gz", "zgrep -E -c 'a|b' app.log app.log.1.gz"),
            ("find . -name '*.log.bz2' -exec grep -l x {} +", "find . -name '*.log.bz2' -exec bzgrep -l x {} +"),
            ("cat a.txt.xz | grep x", "xz -dc a.txt.xz | grep x"),
            ("cat *.gz", "gzip -dc *.gz"),
            ("cat -n a.gz | head", "gzip -dc a.gz | cat -n | head"),
            ("awk 'NR==2' a.gz", "gzip -dc a.gz | awk 'NR==2'"),
            ("cut -f1 a.gz b.gz", "gzip -dc a.gz b.gz | cut -f1"),
            ("wc -l words.gz", "gzip -dc words.gz | wc -l"),
            ("awk '{print $1}' a.gz | sort", "gzip -dc a.gz | awk '{print $1}' | sort"),
            ("ls && head -n 3 notes.zst", "ls && zstd -dc notes.zst | head -n 3"),
        ] {
            assert_eq!(fix(wrong), Some(Some(right.to_owned())), "{wrong}");
        }
        for unclear in [
            "head -n 3 a.gz b.gz",
            "awk 'NR==FNR{s[$1];next} $1 in s' a.gz b.gz",
            "sort -m a.gz b.gz",
            "sort a.txt b.gz",
            "sudo cut -f1 a.gz",
            "LC_ALL=C sort a.gz",
            "grep -rn error a.gz",
            "grep -e a -e b a.bz2",
            "busybox grep error a.gz",
        ] {
            assert_eq!(fix(unclear), Some(None), "{unclear}");
        }
    }

    #[test]
    fn what_is_meant_as_it_is_stays() {
        for right in [
            "zgrep x a.gz",
            "grep -c x a.txt",
            "grep -a x a.gz",
            "cat a.gz | gunzip",
            "cat a.gz b.gz > c.gz",
            "cat part1.gz part2.gz | ssh host 'cat > all.gz'",
            "cat a.gz | wc -c",
            "cat a.gz | tail -c 4 | od -An -tu4",
            "sudo cat a.gz > copy.gz",
            "ssh host 'cat dump.gz' > dump.gz",
            "md5sum <(cat a.gz)",
            "find . -name a.gz -exec cat {} + > all.gz",
            "find . -type f ! -name '*.gz' -exec grep -l error {} +",
            "grep --binary-files=text error a.gz",
            "wc -c a.gz",
            "head -c 2 a.gz",
            "cat backup.tar.gz",
            "grep '.gz' list.txt",
            "gzip -dc a.gz | grep x",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn a_name_alone_makes_nothing_compressed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plain.gz"), "just text\n").unwrap();
        std::fs::write(dir.path().join("packed.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
        assert!(findings_in(Some(dir.path()), check, "", "grep x plain.gz").is_empty());
        assert_eq!(findings_in(Some(dir.path()), check, "", "grep x packed.gz").len(), 1);
        // opening a pipe would wait for whoever writes to it
        assert!(std::process::Command::new("mkfifo").arg(dir.path().join("pipe.gz")).status().unwrap().success());
        assert!(findings_in(Some(dir.path()), check, "", "grep x pipe.gz").is_empty());
    }
}
