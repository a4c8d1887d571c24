//! Finds secrets that a command would print without naming them: `grep -r KEY .`, `find -exec cat`,
//! `ls -A | xargs cat`, `cat $(...)`. Only the disk can tell which files such a command reads, so it is searched.

use super::written::folders_at;
use crate::tool::{home, normal};
use caro_base::wildcard::name_fits;
use caro_policy::secret::reads_secret;
use caro_policy::{is_secret, leads_to_secret};
use caro_shell::effects::Kind;
use caro_shell::{Dialect, Effect, Invocation, Script, Word};
use std::path::{Path, PathBuf};

/// Programs that print facts about files, but not their contents.
const FACT_PRINTERS: &[&str] = &[
    "[",
    "basename",
    "cksum",
    "dir",
    "dirname",
    "du",
    "echo",
    "exa",
    "eza",
    "fd",
    "fdfind",
    "file",
    "find",
    "get-childitem",
    "gfind",
    "gls",
    "locate",
    "ls",
    "md5sum",
    "printf",
    "readlink",
    "realpath",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "stat",
    "test",
    "tree",
    "wc",
    "xargs",
];

/// Programs that list files for others to read.
const LISTERS: &[&str] = &["find", "gfind", "fd", "fdfind", "ls", "gls", "dir", "locate", "tree"];

/// Options of `find` and `grep` whose value is a pattern for file names.
const NARROWING: &[&str] = &["-name", "-iname", "--include"];

/// Most entries searched; a larger tree counts as holding a secret.
const MAX_ENTRIES: usize = 100_000;

/// Returns a file with keys or passwords that the script reads through a folder or a computed name, or the folder if
/// it is too large to search.
pub(super) fn unnamed_secret(script: &Script, effects: &[Effect], root: &Path) -> Option<PathBuf> {
    let read_by = |at: usize| {
        let own = effects.iter().filter(move |e| e.command == Some(at) && e.kind == Kind::Read && !e.remote);
        own.filter_map(|effect| effect.path.as_deref())
    };
    let listed: Vec<PathBuf> = (0..script.commands.len())
        .filter(|at| script.commands[*at].name().is_some_and(prints_only_facts))
        .flat_map(|at| read_by(at).map(|path| normal(root, &home(path))))
        .collect();
    // each folder with the name patterns that the reading is limited to
    let mut folders: Vec<(PathBuf, Vec<String>)> = Vec::new();
    let lists = |command: &&Invocation| command.name().is_some_and(|name| LISTERS.contains(&name));
    let list_patterns = if script.commands.iter().filter(lists).count() > 1 {
        Vec::new()
    } else {
        patterns(
            script.commands.iter().filter(|command| !command.name().is_some_and(|name| reads_folders(name, command))),
        )
    };
    for (at, command) in script.commands.iter().enumerate() {
        let Some(name) = command.name().filter(|name| !prints_only_facts(name)) else { continue };
        let run_by = |names: &[&str]| command.runner().is_some_and(|outer| names.contains(&outer));
        let run_by_find = run_by(&["find", "gfind", "fd", "fdfind"]);
        let is_computed = read_by(at).any(|path| path.contains(['$', '`']));
        if run_by_find || is_computed || takes_names(name, command) || run_by(&["xargs", "gxargs", "parallel"]) {
            // the files listed by other programs, and the working folder unless `find` itself passes the names
            folders.extend(listed.iter().map(|folder| (folder.clone(), list_patterns.clone())));
            if !run_by_find || listed.is_empty() {
                folders.push((root.to_path_buf(), list_patterns.clone()));
            }
        } else if reads_folders(name, command) {
            let before = folders.len();
            let own = patterns(std::iter::once(command));
            folders.extend(read_by(at).map(|path| (normal(root, &home(path)), own.clone())));
            // the table of effects does not know the arguments of `tar` as paths
            if matches!(name, "tar" | "gtar" | "bsdtar") {
                let named = command.operands().map(|word| normal(root, &home(&word.text)));
                folders.extend(named.filter(|path| path.exists()).map(|path| (path, own.clone())));
            }
            if folders.len() == before {
                folders.push((root.to_path_buf(), own));
            }
        }
    }
    folders.sort();
    folders.dedup();
    let mut left = MAX_ENTRIES;
    folders.iter().find_map(|(folder, patterns)| below(folder, patterns, &mut left))
}

/// Returns the secrets that the script names where the table of effects sees no file that is read:
/// `git diff --no-index /dev/null KEYS`, `date -f .env`, and paths after more than one `cd`.
pub(super) fn unlisted_secrets(script: &Script, effects: &[Effect], root: &Path) -> Vec<PathBuf> {
    let reads = |at: usize| {
        effects.iter().filter(move |e| e.command == Some(at) && e.kind == Kind::Read).filter_map(|e| e.path.as_deref())
    };
    let end = script.text.len();
    let folders = folders_at(script, &(end..end), root);
    // a program that reads names from a pipe opens the files that they name
    let reads_names = |c: &Invocation| matches!(c.name(), Some("cpio" | "pax" | "tar" | "rsync" | "zip"));
    let has_name_reader = script.commands.iter().any(reads_names);
    let mut found = Vec::new();
    for (at, command) in script.commands.iter().enumerate() {
        let Some(name) = command.name().filter(|name| !matches!(*name, "cd" | "pushd")) else { continue };
        let has_reads = reads(at).any(|path| path != "-");
        let named: Vec<&str> = if has_reads {
            // the files are known; only their folder may be another one
            reads(at).collect()
        } else if command.stdin_pipe
            || prints_only_facts(name) && !(has_name_reader && matches!(name, "echo" | "printf" | "find" | "ls"))
        {
            // the arguments of a program that reads a pipe are not files: `jq .key`
            Vec::new()
        } else {
            let value = |word: &Word| word.text.split_once('=').map_or(0, |(name, _)| name.len() + 1);
            let words =
                command.args().iter().map(|w| if w.text.starts_with('-') { &w.text[value(w)..] } else { &w.text });
            let plain = words.filter(|text| !text.starts_with('-')).flat_map(str::split_whitespace);
            // a bare word may be anything, `git log --grep token`, unless there is a file of that name
            let exists = |text: &&str| folders.iter().any(|at| at.join(text).exists());
            let may_be_path = |text: &&str| text.contains(['.', '/']) || exists(text);
            // `git show HEAD:.env`
            let parts =
                |text| Some(text).filter(may_be_path).into_iter().chain(text.split_once(':').map(|(_, path)| path));
            plain.flat_map(parts).collect()
        };
        let places = named.iter().flat_map(|path| folders.iter().map(|folder| normal(folder, &home(path))));
        found.extend(places.filter(|path| leads_to_secret(path)));
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the files with keys or passwords that the text of a script names: the files that its commands read if it is
/// a shell's, and its quoted texts.
pub(crate) fn secrets_in_script(text: &str, is_shell: bool, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if is_shell {
        let script = caro_shell::parse(text, Dialect::Bash);
        let effects = caro_shell::effects(&script);
        found.extend(unlisted_secrets(&script, &effects, root));
        let prints_content = |effect: &&Effect| {
            let program = effect.command.and_then(|at| script.commands[at].name());
            effect.kind == Kind::Read && !program.is_some_and(prints_only_facts)
        };
        let read = effects.iter().filter(prints_content).filter_map(|effect| effect.path.as_deref());
        found.extend(read.map(|path| normal(root, &home(path))).filter(|path| reads_secret(path)));
    }
    // a path has no blanks here, as the text between two quoted ones looks like a quoted one, too
    let is_path = |text: &&str| {
        text.contains(['/', '.']) && !text.contains(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ';' | ','))
    };
    let quoted = text.lines().flat_map(|line| line.split(['"', '\'', '`']).skip(1)).filter(is_path);
    found.extend(quoted.map(|path| normal(root, &home(path))).filter(|path| leads_to_secret(path)));
    found.sort();
    found.dedup();
    found
}

/// True if the program prints nothing of a file's content.
fn prints_only_facts(name: &str) -> bool {
    FACT_PRINTERS.contains(&name.to_lowercase().as_str())
}

/// True if the command reads files whose names come from its input.
fn takes_names(name: &str, command: &Invocation) -> bool {
    let listed = |word: &Word| word.text.starts_with("--files0-from") || word.text.starts_with("--files-from");
    name == "cpio" && command.stdin_pipe || command.args().iter().any(listed)
}

/// True if the command reads all files of the folders given to it.
fn reads_folders(name: &str, command: &Invocation) -> bool {
    let has_option = |options: &[&str]| command.args().iter().any(|w| options.contains(&w.text.as_str()));
    // the letters of `tar cf`, `tar -cf`
    let letters = command.args().first().map_or("", |w| w.text.as_str());
    let letter = |c: char| !letters.starts_with("--") && letters.contains(c);
    let is_recursive = |word: &Word| {
        let short = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        short.is_some_and(|letters| letters.contains(['r', 'R'])) || word.text.contains("recursive")
    };
    match name {
        "rg" | "ag" | "ack" | "rgrep" => true,
        "grep" | "egrep" | "fgrep" | "ggrep" | "zgrep" | "diff" | "select-string" => {
            command.args().iter().any(is_recursive)
        }
        "tar" | "gtar" | "bsdtar" => {
            let to_file =
                letter('f') || has_option(&["-f"]) || command.args().iter().any(|w| w.text.starts_with("--file"));
            (letter('c') || has_option(&["-c", "--create"])) && (has_option(&["-", "--file=-"]) || !to_file)
        }
        "zip" => has_option(&["-"]),
        "pax" => letter('w') && !letter('f') && !has_option(&["-f"]),
        "git" => has_option(&["grep"]) && has_option(&["--no-index", "--untracked"]),
        _ => false,
    }
}

/// Returns the name patterns (lower case) that these commands are limited to; empty if there are none, or if negations
/// or alternatives make them unclear.
fn patterns<'a>(commands: impl Iterator<Item = &'a Invocation> + Clone) -> Vec<String> {
    let words = || commands.clone().flat_map(|command| command.args());
    if words().any(|word| ["!", "-not", "-o", "-or", "--exclude"].contains(&word.text.as_str())) {
        return Vec::new();
    }
    let values = commands.clone().flat_map(|command| {
        let args = command.args();
        args.iter().enumerate().filter_map(move |(at, word)| match word.text.split_once('=') {
            Some((option, value)) if NARROWING.contains(&option) => Some(value.to_owned()),
            _ if NARROWING.contains(&word.text.as_str()) => args.get(at + 1).map(|value| value.text.clone()),
            _ => None,
        })
    });
    values.map(|pattern| pattern.to_lowercase()).collect()
}

/// Returns the first secret below a folder whose name fits one of the patterns, if there are any. `left` counts down
/// the entries that may still be searched; at 0 the folder itself is returned.
fn below(path: &Path, patterns: &[String], left: &mut usize) -> Option<PathBuf> {
    let fits = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        patterns.is_empty() || patterns.iter().any(|pattern| name_fits(pattern, &name))
    };
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        // a folder that cannot be listed cannot be read by the command either
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return Some(path.to_path_buf());
            }
            let (at, kind) = (entry.path(), entry.file_type().ok());
            let (is_folder, is_link) = (kind.is_some_and(|k| k.is_dir()), kind.is_some_and(|k| k.is_symlink()));
            if is_folder {
                folders.push(at);
            } else if fits(&at) && (is_secret(&at) || is_link && leads_to_secret(&at)) {
                return Some(at);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::parse;

    #[test]
    fn a_script_that_names_a_secret_is_found() {
        let root = Path::new("/w");
        for (text, is_shell) in [
            ("#!/bin/sh\nset -e\ncat ~/.ssh/id_rsa\n", true),
            ("f() { cat \"$HOME/.ssh/id_rsa\"; }\nf\n", true),
            ("cat /proc/*/environ | tr '\\0' '\\n'\n", true),
            ("while read -r l; do echo \"$l\"; done < ~/.aws/credentials\n", true),
            ("if true; then ps auxe; fi\n", true),
            ("print(open(os.path.expanduser(\"~/.ssh/id_rsa\")).read())", false),
            ("fs.readFileSync('.env', 'utf8')", false),
        ] {
            assert!(!secrets_in_script(text, is_shell, root).is_empty(), "{text}");
        }
        for (text, is_shell) in [
            ("echo \"$1 $CARO_SKILL_DIR $(pwd)\"\nwc -l \"$1\"\n", true),
            ("grep -c 'token' notes.txt\ncat /etc/hosts\n", true),
            ("print('counted', len(open(sys.argv[1]).read().split()), *sorted(os.environ))", false),
            ("const a = process.env.HOME; run('./build', 'src/token.js')", false),
        ] {
            assert_eq!(secrets_in_script(text, is_shell, root), Vec::<PathBuf>::new(), "{text}");
        }
    }

    #[test]
    fn secrets_that_are_read_without_being_named_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = &dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        for file in ["src/a.rs", "src/deep/.env", "notes.txt", "a.log"] {
            std::fs::write(root.join(file), "x").unwrap();
        }
        let found = |command: &str| {
            let script = parse(command, Dialect::Bash);
            unnamed_secret(&script, &caro_shell::effects(&script), root)
        };
        for command in [
            "grep -r KEY .",
            "grep -rn KEY",
            "find . -type f -exec cat {} +",
            "find . -type f | xargs cat",
            "find . -type f | xargs nice cat",
            "find . -type f -exec env cat {} +",
            "ls -A | xargs cat",
            "ls -A src/deep | xargs -I{} head -n1 src/deep/{}",
            "cat $(ls -A)",
            "for f in .e*; do cat $f; done",
            "find src -name '.e*' -exec cat {} ;",
            "find . ! -name '*.rs' -exec cat {} +",
            "find . -name '*.md' | head -1; grep -r KEY .",
            "find . -name '*.md'; find . | xargs cat",
            "tar cf - . | cat",
            "tar -c src | cat",
            "zip -qr - .",
            "pax -w src",
            "find . -type f | cpio -o",
            "find . -print0 | sort --files0-from=-",
            "git grep --no-index ''",
        ] {
            assert_eq!(found(command), Some(root.join("src/deep/.env")), "{command}");
        }
        std::fs::remove_file(root.join("src/deep/.env")).unwrap();
        #[cfg(unix)]
        {
            let elsewhere = tempfile::tempdir().unwrap();
            std::fs::write(elsewhere.path().join(".env"), "x").unwrap();
            std::os::unix::fs::symlink(elsewhere.path().join(".env"), root.join("src/config")).unwrap();
            assert_eq!(found("find . -exec cat {} +"), Some(root.join("src/config")), "a link to one");
            std::fs::remove_file(root.join("src/config")).unwrap();
        }
        std::fs::write(root.join("src/deep/.env"), "x").unwrap();
        for command in [
            "find . -type f",
            "find . -type f | wc -l",
            "ls -laR",
            "du -ah . | sort -rh | head",
            "find . -name '*.log' -exec grep -c ERROR {} +",
            "grep -rn --include='*.rs' TODO .",
            "find . -type f | xargs wc -l",
            "cat notes.txt a.log",
            "tar tf a.tgz",
            "tar cf - notes.txt | cat",
            "tar -xOf a.tgz",
            "git grep TODO",
            "grep -c x *.log",
            "find . -type f -printf '%s %p\\n' | sort -n",
        ] {
            assert_eq!(found(command), None, "{command}");
        }
    }
}
