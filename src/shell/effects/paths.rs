//! Resolves paths as far as the text allows, and classifies them by how much depends on them.

use crate::Dialect;
use crate::parse::{Assignment, How, Invocation, Script, Word};
use std::ops::Range;

/// True for the paths by which bash opens network connections.
pub fn is_socket(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}

/// The kind of place that a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// `/dev/null` and similar: writing there loses nothing.
    Sink,
    /// Below a folder for temporary files.
    Temporary,
    /// Any other path.
    Ordinary,
    /// Depends on a variable or on the output of another command.
    Variable,
    /// The whole working directory or a folder above it: `*`, `.`, `..`.
    Here,
    /// Something in the home folder that is hard to replace: keys, documents.
    Personal,
    /// A whole home folder.
    Home,
    /// Below a system folder, but meant to be edited by the administrator.
    Configuration,
    /// A folder or file of the system.
    System,
    /// The whole disk.
    Root,
    /// A raw device.
    Device,
}

/// Top-level folders of the system.
const SYSTEM: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "efi",
    "etc",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "opt",
    "mnt",
    "media",
    "home",
    "System",
    "Library",
    "Applications",
    "Users",
    "private",
    "cores",
    "Volumes",
    "nix",
    "snap",
];
/// System folders whose contents belong to the system at any depth.
const DEEP: &[&str] =
    &["bin", "boot", "efi", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "System", "Library", "root"];
/// Files and folders of `/etc` that the system needs to start and to let users log in.
const VITAL: &[&str] =
    &["passwd", "shadow", "group", "gshadow", "sudoers", "fstab", "pam.d", "ld.so.preload", "crypttab", "inittab"];
/// Important files and folders of a home folder.
const PERSONAL: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".config",
    ".local",
    ".password-store",
    "Documents",
    "Desktop",
    "Pictures",
    "Movies",
    "Music",
    "Videos",
    "Downloads",
    "Library",
];

/// True for a path with a hidden file or folder in it, which may hold the configuration of programs.
pub(crate) fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') && !matches!(part, "." | ".."))
}

/// Classifies a resolved path.
pub fn place_of(path: &str) -> Place {
    let unquoted = path.trim_end_matches(['"', '\'']);
    if unquoted == "-" {
        return Place::Sink;
    }
    if let Some(place) = windows(unquoted) {
        return place;
    }
    let path = normalize(unquoted);
    if let Some(device) = path.strip_prefix("/dev/") {
        let name = device.split('/').next().unwrap_or(device);
        return match name {
            "null" | "stdout" | "stderr" | "stdin" | "tty" | "fd" | "zero" | "full" | "random" | "urandom" | "pts"
            | "tcp" | "udp" => Place::Sink,
            "shm" if device.len() > 4 => Place::Temporary,
            _ => Place::Device,
        };
    }
    if let Some(inside) = path.strip_prefix('~') {
        return home(inside.trim_start_matches(|c| c != '/'));
    }
    if path.find(['$', '`', '%', '(']).is_some_and(|i| i < 2) {
        return if path.contains(":?") { Place::Ordinary } else { Place::Variable };
    }
    if !path.starts_with('/') {
        let first = path.split('/').next().unwrap_or_default();
        let rest = path.split('/').skip_while(|p| matches!(*p, ".." | ".")).collect::<Vec<_>>().join("/");
        let matches_all = rest.is_empty() || rest.split('/').all(matches_most);
        let up = first == "..";
        return if matches_all || up && rest.is_empty() { Place::Here } else { Place::Ordinary };
    }
    // the folders of macOS
    let path = match path.strip_prefix("/private") {
        Some(own) if own.starts_with("/etc") || own.starts_with("/var") => own.to_owned(),
        _ => path,
    };
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let Some(top) = parts.first() else { return Place::Root };
    if top.starts_with(['*', '?', '.', '[', '{', '$', '!']) {
        return Place::Root;
    }
    if matches!(*top, "tmp" | "temp") || parts.starts_with(&["var", "tmp"]) || parts.starts_with(&["private", "tmp"]) {
        return if parts.len() > 1 { Place::Temporary } else { Place::System };
    }
    // deleting everything in a folder is like deleting the folder; logs and caches are recreated
    let is_recreated = matches!(parts.as_slice(), ["var", "log" | "cache", ..]);
    let deletes_contents = parts.len() > 2 && !is_recreated && parts.last().is_some_and(|name| matches_most(name));
    let parts = if deletes_contents { &parts[..parts.len() - 1] } else { parts.as_slice() };
    // a glob in the first name counts as any system folder that it may match: `/us*`
    let known =
        SYSTEM.iter().any(|s| s == top || top.find(['*', '?', '[']).is_some_and(|at| s.starts_with(&top[..at])));
    if !known {
        return Place::Ordinary;
    }
    let whole = parts.len() == 1 || parts.len() == 2 && parts[1].starts_with(['*', '.', '$']);
    match *top {
        "home" | "Users" if parts.len() <= 2 => Place::Home,
        "home" | "Users" => home(&format!("/{}", parts[2..].join("/"))),
        "root" => home(&format!("/{}", parts[1..].join("/"))),
        _ if whole => Place::System,
        // another disk, or all of them
        "mnt" | "media" if parts.len() <= 2 => Place::System,
        "etc" | "private" if parts.iter().any(|p| VITAL.contains(p)) => Place::System,
        "etc" => Place::Configuration,
        "usr" if parts[1] != "local" && parts[1] != "src" => Place::System,
        "usr" if parts.len() == 2 => Place::System,
        "proc" | "sys" if !path.contains("sysrq") && !path.starts_with("/proc/sys/kernel") => Place::Configuration,
        "var" if parts.len() == 2 && matches!(parts[1], "www" | "games" | "opt" | "local") => Place::Ordinary,
        "var" if parts.len() == 2 || matches!(parts[1], "lib" | "db" | "spool") && parts.len() == 3 => Place::System,
        top if DEEP.contains(&top) || top.contains(['*', '?', '[']) => Place::System,
        _ => Place::Ordinary,
    }
}

/// True for a glob that matches nearly every name: `*`, `.??*`, `[a-z]*`, `!(x)`.
pub(crate) fn matches_most(name: &str) -> bool {
    if name == "!" || name.starts_with("!(") {
        return true;
    }
    let mut class = false;
    let literal = |c: char| {
        class = if class { c != ']' } else { c == '[' };
        !class && !matches!(c, '*' | '?' | ']' | '.' | '{' | '}' | ',')
    };
    name.contains(['*', '?', '[']) && !name.contains(literal)
}

/// Folders where the system and package managers install programs.
const PROGRAMS: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr",
    "/lib",
    "/libexec",
    "/System",
    "/opt/homebrew",
    "/opt/local",
    "/home/linuxbrew/.linuxbrew",
    "/nix/store",
    "/nix/var/nix/profiles",
    "/run/current-system",
    "/run/wrappers",
    "/snap/bin",
    "/var/lib/flatpak",
];

/// True for a program called by a path outside of these folders, where any file may have the name of a known program:
/// `./test`, `/tmp/ls`.
pub(super) fn is_elsewhere(program: &Word) -> bool {
    let Some(path) = program.value.as_deref().filter(|path| path.contains('/')) else { return false };
    let own = windows(path) == Some(Place::System);
    let path = normalize(path);
    let below = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    !own && !PROGRAMS.iter().any(|folder| below(folder))
}

/// True if the name is `own`, or a glob that begins like it.
fn may_match(name: &str, own: &str) -> bool {
    name == own || name.find(['*', '?', '[']).is_some_and(|at| at > 0 && own.starts_with(&name[..at]))
}

/// Classifies a path below a home folder, from the slash on.
fn home(inside: &str) -> Place {
    let parts: Vec<&str> = inside.split('/').filter(|p| !p.is_empty()).collect();
    match parts.as_slice() {
        [] => Place::Home,
        [first] if matches!(*first, "." | "..") || first.starts_with('$') || matches_most(first) => Place::Home,
        [first] | [first, "*"] if PERSONAL.iter().any(|own| may_match(first, own)) => Place::Personal,
        [".ssh" | ".gnupg" | ".password-store", ..] => Place::Personal,
        _ => Place::Ordinary,
    }
}

/// Classifies a Windows path; `None` if it is none.
fn windows(path: &str) -> Option<Place> {
    let lower = path.to_ascii_lowercase().replace('\\', "/");
    let profile = ["%userprofile%", "$env:userprofile", "$home", "${home}", "%homepath%"];
    if let Some(rest) = profile.iter().find_map(|p| lower.strip_prefix(p)) {
        return Some(home(rest));
    }
    let system = [
        "%systemroot%",
        "%windir%",
        "$env:systemroot",
        "$env:windir",
        "%programfiles%",
        "$env:programfiles",
        "%systemdrive%",
        "$env:systemdrive",
    ];
    if system.iter().any(|p| lower.starts_with(p)) {
        return Some(Place::System);
    }
    if lower.starts_with("//./") || lower.starts_with("//?/") {
        return Some(Place::Device);
    }
    if ["hklm:", "hkcu:", "hkey_", "cert:"].iter().any(|p| lower.starts_with(p)) {
        return Some(Place::System);
    }
    let bytes = lower.as_bytes();
    // `h:` and `h:dir` are a host to rsync and scp
    if bytes.len() < 3 || &bytes[1..3] != b":/" || !bytes[0].is_ascii_alphabetic() {
        return None;
    }
    let parts: Vec<&str> = lower[2..].split('/').filter(|p| !p.is_empty()).collect();
    Some(match parts.as_slice() {
        [] | ["*" | "*.*" | "."] => Place::Root,
        ["temp" | "tmp", _, ..] => Place::Temporary,
        ["windows" | "program files" | "program files (x86)" | "programdata" | "boot" | "recovery", ..] => {
            Place::System
        }
        ["users"] | ["users", _] => Place::Home,
        ["users", _, rest @ ..] => home(&format!("/{}", rest.join("/"))),
        _ => Place::Ordinary,
    })
}

/// Normalizes a path: removes doubled slashes and `.`, resolves `..`.
fn normalize(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != ".." && *p != "~") => {
                parts.pop();
            }
            ".." if absolute => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if absolute { format!("/{joined}") } else { joined }
}

/// Returns the folder above the working directory that a path leads to: `../..` of `../../*`.
pub(crate) fn folder_above(path: &str) -> Option<String> {
    let path = normalize(path.trim_end_matches(['"', '\'']));
    let up: Vec<&str> = path.split('/').take_while(|part| *part == "..").collect();
    (!up.is_empty()).then(|| up.join("/"))
}

/// Returns the paths that a word expands to, with the variables of the script replaced and braces expanded.
pub(crate) fn resolve_paths(script: &Script, word: &Word) -> Vec<String> {
    resolve_part(script, word, None)
}

/// Like [`resolve_paths`], for a part of the word if given: the value of `--output=x`.
pub(super) fn resolve_part(script: &Script, word: &Word, part: Option<&str>) -> Vec<String> {
    let own = || {
        let named = word.raw.contains('=') && word.raw.starts_with(|c: char| c == '-' || c.is_ascii_lowercase());
        // `name=path`: the path is the value
        let value = if named && !word.quoted { word.text.split_once('=') } else { None };
        value.map_or(word.text.as_str(), |(_, value)| value)
    };
    let mut text = part.unwrap_or_else(own).to_owned();
    if script.dialect == Dialect::PowerShell {
        let path = text.replace('\\', "/");
        let drive = path.as_bytes().get(1) == Some(&b':') && path.as_bytes().get(2) != Some(&b'/');
        return vec![if drive { path.replacen(':', ":/", 1) } else { path }];
    }
    if script.dialect == Dialect::Zsh && word.glob && text.ends_with(')') {
        // a glob qualifier only selects among the matches
        text.truncate(text.rfind('(').unwrap_or(text.len()));
    }
    if word.expands {
        text = if is_mktemp(&text) { TEMPORARY.to_owned() } else { expand_variables(script, &text, word) };
    }
    let mut paths = if word.expands && text.contains('{') { expand_braces(&text) } else { vec![text] };
    if let Some(folder) = folder_before(script, word) {
        for path in &mut paths {
            *path = join_folder(&folder, path);
        }
    }
    if paths.iter().any(|path| place_of(path) == Place::Here)
        && let Some(folder) = certain_folder(script, word)
    {
        for path in paths.iter_mut().filter(|path| place_of(path) == Place::Here && !path.starts_with("..")) {
            *path =
                format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches("./").trim_start_matches('.'));
        }
    }
    paths
}

/// Returns the folder of a `cd` before the word if it is not below the current one: after `cd /`, `rm -rf etc`
/// deletes `/etc`; after `cd build`, `rm x` deletes a file here.
fn folder_before(script: &Script, word: &Word) -> Option<String> {
    let folder = folder_changes(script, &word.span).filter_map(cd_target).last()?.replacen("$HOME", "~", 1);
    (folder.starts_with(['/', '~']) || folder == ".." || folder.starts_with("../")).then_some(folder)
}

/// Returns the folders that the script changes to before this part of its text, each as it is named from the one
/// before, with the variables of the script replaced.
pub fn entered_folders(script: &Script, part: &Range<usize>) -> Vec<String> {
    let goal = |command: &Invocation| Some(expand_variables(script, &cd_target(command)?, command.words.last()?));
    folder_changes(script, part).filter_map(goal).filter(|goal| !goal.is_empty()).collect()
}

/// Returns the commands that change the folder before this part of the text. `env -C` and `sudo -D` count for the
/// command they run.
fn folder_changes<'s>(script: &'s Script, part: &'s Range<usize>) -> impl Iterator<Item = &'s Invocation> {
    let moves = move |(at, command): &(usize, &Invocation)| match command.name() {
        Some("cd" | "pushd" | "chdir") => command.words.last().is_some_and(|w| w.span.end <= part.start),
        Some("env" | "sudo") => wraps(script, *at, part),
        _ => false,
    };
    script.commands.iter().enumerate().filter(moves).map(|(_, command)| command)
}

/// Returns the working directory at a word if it is certain: after `cd FOLDER &&`, with nothing but `&&` in between.
fn certain_folder(script: &Script, word: &Word) -> Option<String> {
    let before = |c: &&Invocation| c.words.last().is_some_and(|w| w.span.end <= word.span.start);
    let cd = script.commands.iter().rfind(|c| matches!(c.name(), Some("cd" | "pushd")) && before(c))?;
    let own = script.commands.iter().rfind(|c| c.words.iter().any(|w| w.span == word.span))?;
    let between = script.text.get(cd.words.last()?.span.end..own.words.first()?.span.start)?;
    if !between.trim_start().starts_with("&&")
        || between.contains([';', '|', '\n', '(', ')', '{', '}'])
        || between.replace("&&", "").contains('&')
    {
        return None;
    }
    let [target] = cd.operands().collect::<Vec<_>>()[..] else { return None };
    let folder =
        if is_mktemp(&target.text) { TEMPORARY.to_owned() } else { expand_variables(script, &target.text, target) };
    // after `cd -` it is the one before
    let known = folder != "-"
        && !folder.contains(['$', '`', '*', '?'])
        && !matches!(place_of(&folder), Place::Variable | Place::Here);
    known.then_some(folder)
}

/// Returns the folder that a `cd`, an `env -C` or a `sudo -D` names; a `cd` without any goes home.
fn cd_target(command: &Invocation) -> Option<String> {
    if matches!(command.name(), Some("env" | "sudo")) {
        let short = if command.name() == Some("env") { "-C" } else { "-D" };
        let at = command.words.iter().position(|w| w.text.starts_with(short) || w.text.starts_with("--chdir"))?;
        let text = command.words[at].text.as_str();
        let attached = text.strip_prefix("--chdir=").or_else(|| text.strip_prefix(short)).filter(|a| !a.is_empty());
        return attached.or_else(|| Some(&command.words.get(at + 1)?.text)).map(str::to_owned);
    }
    match command.operands().collect::<Vec<_>>().as_slice() {
        [] if command.name() == Some("cd") => Some("~".to_owned()),
        [target] => Some(target.text.clone()),
        _ => Some(String::new()),
    }
}

/// True if the part belongs to a command that is wrapped by the command at `wrapper`.
fn wraps(script: &Script, wrapper: usize, part: &Range<usize>) -> bool {
    let targets = |c: &Invocation| c.redirects.iter().any(|r| r.target.span == *part);
    let holds = |c: &Invocation| c.words.iter().any(|w| w.span == *part) || targets(c);
    let mut at = wrapper;
    while let Some(command) = script.commands.get(at + 1) {
        if command.inside.is_none_or(|i| i.how != How::Wrapped || i.command != at) {
            return false;
        }
        if holds(command) {
            return true;
        }
        at += 1;
    }
    false
}

/// Joins a path to the folder of a `cd`. A path that means the whole folder stays: if the `cd` fails, that is the
/// current one.
fn join_folder(folder: &str, path: &str) -> String {
    if matches!(path, "." | "./") {
        return folder.to_owned();
    }
    let is_name = !path.starts_with(['/', '~', '-', '$']) && place_of(path) == Place::Ordinary;
    if is_name { format!("{}/{path}", folder.trim_end_matches('/')) } else { path.to_owned() }
}

/// Length in bytes at which a word is not expanded any further; no path is longer.
const MAX_EXPANDED: usize = 4096;

/// Replaces `$name` and `${name}` by the last assigned value, if that is plain text. Replaces only once, as the shell
/// does: a `$` in a value is no variable.
pub(super) fn expand_variables(script: &Script, text: &str, word: &Word) -> String {
    let mut out = String::new();
    let mut rest = text;
    while out.len() < MAX_EXPANDED
        && let Some(at) = rest.find('$')
    {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match variable_at(rest).and_then(|(name, length)| Some((value_of(script, name, word)?, length))) {
            // `$HOME.txt` lies beside the home folder
            Some((value, length)) if value == "~" && !is_end_of_name(&rest[length..]) => {
                out.push_str(&rest[..length]);
                rest = &rest[length..];
            }
            Some((value, length)) => {
                out.push_str(&value);
                rest = &rest[length..];
            }
            None => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

/// True if a name in a path ends where the text begins; a wildcard may stand for nothing.
fn is_end_of_name(text: &str) -> bool {
    text.is_empty() || text.starts_with(['/', '*', '?', '[', '{', '"', '\'', '$', '`'])
}

/// Returns the name of the variable at the beginning of a text, and the length of the expression: `$x`, `${x}`,
/// `${x:?}`.
fn variable_at(text: &str) -> Option<(&str, usize)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let braced = text.strip_prefix("${");
    let inner = braced.or_else(|| text.strip_prefix('$'))?;
    let end = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
    let close = match braced {
        Some(_) if inner[end..].starts_with(":?}") => 3,
        // `${TMPDIR:-/tmp}`: the value, if it is known
        Some(_) if inner[end..].starts_with(":-") => inner[end..].find('}').map_or(0, |at| at + 1),
        Some(_) => usize::from(inner[end..].starts_with('}')),
        None => 0,
    };
    let start = text.len() - inner.len();
    (end > 0 && (braced.is_none() || close > 0)).then_some((&inner[..end], start + end + close))
}

/// The path that stands for a file or folder created by `mktemp`.
const TEMPORARY: &str = "/tmp/_made";

/// True for `$(mktemp -d)`: something new in the folder for temporary files.
fn is_mktemp(text: &str) -> bool {
    let inner =
        text.strip_prefix("$(").and_then(|t| t.strip_suffix(')')).or_else(|| text.strip_prefix('`')?.strip_suffix('`'));
    let plain = |inner: &str| {
        !inner.contains([';', '|', '&', '$', '`', '/', '~'])
            || inner.contains("/tmp/") && !inner.contains([';', '|', '&', '$', '`'])
    };
    inner.is_some_and(|inner| {
        inner.split_whitespace().next() == Some("mktemp")
            && plain(inner)
            && !inner.contains("-p")
            && !inner.contains("-u")
    })
}

/// Returns the value of a variable at the position of a word, as far as the text tells.
fn value_of(script: &Script, name: &str, word: &Word) -> Option<String> {
    let before = |a: &&Assignment| a.name == name && a.value.span.start <= word.span.start;
    if let Some(assignment) = script.assignments.iter().rfind(before) {
        let value = &assignment.value;
        if is_mktemp(&value.text) {
            return Some(TEMPORARY.to_owned());
        }
        let home = || value.text.starts_with("$HOME") || value.text.starts_with('~');
        return value.value.clone().or_else(|| home().then(|| value.text.replacen("$HOME", "~", 1)));
    }
    let known =
        [("HOME", "~"), ("PWD", "."), ("TMPDIR", "/tmp/_"), ("USER", "user"), ("LOGNAME", "user"), ("OLDPWD", "..")];
    known.into_iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_owned())
}

/// Most paths that braces expand to.
const MAX_BRACES: usize = 64;

/// Expands the braces of a text, as the shell does: `/{bin,etc}` to `/bin` and `/etc`, `{a..c}x` to `ax`, `bx` and
/// `cx`.
pub(crate) fn expand_braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut pending = vec![text.to_owned()];
    while let Some(text) = pending.pop() {
        match expand_first_braces(&text) {
            Some(parts) if done.len() + pending.len() + parts.len() <= MAX_BRACES => pending.extend(parts),
            _ => done.push(text),
        }
    }
    done.reverse();
    done
}

/// Expands the first braces that can be expanded.
fn expand_first_braces(text: &str) -> Option<Vec<String>> {
    for (open, _) in text.match_indices('{').filter(|(at, _)| !text[..*at].ends_with('$')) {
        let mut depth = 0usize;
        let mut cuts = Vec::new();
        let close = text[open + 1..].char_indices().find_map(|(at, c)| {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => return Some(open + 1 + at),
                '}' => depth -= 1,
                ',' if depth == 0 => cuts.push(open + 1 + at),
                _ => {}
            }
            None
        });
        let Some(close) = close else { continue };
        let parts: Vec<String> = match (cuts.is_empty(), text[open + 1..close].split_once("..")) {
            (true, None) => continue,
            (true, Some((from, to))) => match range(from, to) {
                Some(parts) => parts,
                None => continue,
            },
            _ => {
                let starts = std::iter::once(open + 1).chain(cuts.iter().map(|c| c + 1));
                let ends = cuts.iter().copied().chain([close]);
                starts.zip(ends).map(|(start, end)| text[start..end].to_owned()).collect()
            }
        };
        let (head, tail) = (&text[..open], &text[close + 1..]);
        return Some(parts.into_iter().map(|part| format!("{head}{part}{tail}")).collect());
    }
    None
}

/// Expands `a..e`, `1..9`, `a..z..2`; the step is ignored.
fn range(from: &str, to: &str) -> Option<Vec<String>> {
    let to = to.split("..").next().unwrap_or(to);
    if let (Ok(from), Ok(to)) = (from.parse::<i64>(), to.parse::<i64>()) {
        let (low, high) = (from.min(to), from.max(to));
        return Some((low..=high).take(MAX_BRACES).map(|n| n.to_string()).collect());
    }
    let letter = |text: &str| text.chars().next().filter(|c| text.len() == 1 && c.is_ascii_alphabetic());
    let (from, to) = (letter(from)?, letter(to)?);
    Some((from.min(to)..=from.max(to)).map(String::from).collect())
}
