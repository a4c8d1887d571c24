//! `scripts/backup.sh`, which nobody may execute: its interpreter can read it all the same.

use super::edit::{Edits, warning};
use super::{CheckContext, made};
use caro_shell::Finding;
use std::io::Read;
use std::path::Path;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

/// Interpreters by the ending of a script that does not name one.
const BY_ENDING: [(&str, &str); 5] =
    [("sh", "sh"), ("bash", "bash"), ("py", "python3"), ("pl", "perl"), ("rb", "ruby")];

fn check_script(it: &CheckContext) -> Option<Finding> {
    let cwd = it.cwd?;
    let (program, file) = it.script.commands.iter().filter(|c| !c.remote).find_map(|command| {
        let program = command.words.first().filter(|w| w.value.is_some() && w.text.contains('/') && !w.glob)?;
        let file = cwd.join(&program.text);
        (is_plain(&file) && !made(it.script, command, &program.text)).then_some((program, file))
    })?;
    // what stands before it may make it, make it executable, or go elsewhere
    let before = it.script.text.get(..program.span.start)?;
    let interpreter = interpreter(&file).filter(|_| !before.contains([';', '&', '|', '\n', '(', '{']))?;
    let why = format!("{} is not executable: {interpreter} reads it", program.text);
    let fix = Edits::new(it.script).before(program, &format!("{interpreter} ")).done();
    Some(warning("not-executable", program, why, fix))
}

/// True for a file that nobody may execute.
#[cfg(unix)]
fn is_plain(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 == 0)
}

#[cfg(not(unix))]
fn is_plain(_: &Path) -> bool {
    false
}

/// What a script is read by: what its first line says, or what its ending does.
fn interpreter(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(200).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    if let Some(line) = text.lines().next().and_then(|line| line.strip_prefix("#!")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (path, rest) = words.split_first()?;
        let folder = ["/bin/", "/usr/bin/", "/usr/local/bin/"].iter().find_map(|folder| path.strip_prefix(folder));
        // `env` finds it by its name; one option is kept, and no text of the file but these
        return match (folder?, rest) {
            ("env", [name]) if is_known(name) => Some((*name).to_owned()),
            (name, []) if is_known(name) => Some(name.to_owned()),
            (name, [option]) if is_known(name) && is_letters(option) => Some(format!("{name} {option}")),
            _ => None,
        };
    }
    let ending = file.extension()?.to_str()?;
    BY_ENDING.iter().find(|(other, _)| *other == ending).map(|(_, name)| (*name).to_owned())
}

/// Programs that read a script which they are given by its path.
fn is_known(name: &str) -> bool {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    ["sh", "bash", "dash", "zsh", "ksh", "python", "perl", "ruby", "node"].contains(&base)
}

/// `-eu`
fn is_letters(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| letters.chars().all(|c| c.is_ascii_alphabetic()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::tests::findings_in;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_not_executable_is_read_by_its_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text, mode) in [
            ("run.sh", "echo\n", 0o644),
            ("say.py", "#!/usr/bin/env python3\n", 0o600),
            ("strict.sh", "#!/bin/bash -e\n", 0o644),
            ("x.awk", "#!/usr/bin/awk -f\n", 0o644),
            ("rm.sh", "#!/bin/rm\n", 0o644),
            ("may.sh", "#!/bin/bash\n", 0o755),
            ("notes", "x\n", 0o644),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
            std::fs::set_permissions(dir.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let fix =
            |command: &str| findings_in(Some(dir.path()), check, "", command).into_iter().next().and_then(|f| f.fix);
        assert_eq!(fix("nohup ./run.sh > out 2>&1 &").as_deref(), Some("nohup sh ./run.sh > out 2>&1 &"));
        assert_eq!(fix("./say.py | head").as_deref(), Some("python3 ./say.py | head"));
        for right in
            ["./may.sh", "sh run.sh", "./notes", "./gone.sh", "chmod +x ./run.sh && ./run.sh", "ssh box ./run.sh"]
        {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
