//! Paths: resolved as far as the text allows, and sorted by what hangs on them.

use crate::shell::Dialect;
use crate::shell::parse::{How, Invocation, Script, Word};

/// What hangs on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// `/dev/null` and its kin: nothing is lost by writing there.
    Sink,
    /// Below a folder for temporary files.
    Temporary,
    /// Any other path.
    Ordinary,
    /// It depends on a variable or on another command's output.
    Variable,
    /// All of the working directory or what is above it: `*`, `.`, `..`.
    Here,
    /// Below the home folder, what is hard to replace: keys, documents.
    Personal,
    /// A whole home folder.
    Home,
    /// Below a folder of the system's, but meant to be edited by its administrator.
    Configuration,
    /// A folder or file of the system's.
    System,
    /// The whole disk.
    Root,
    /// A raw device.
    Device,
}

/// Top-level folders that the system owns.
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
/// Of those, the ones whose deeper contents are the system's too.
const DEEP: &[&str] =
    &["bin", "boot", "efi", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "System", "Library", "root"];
/// Files and folders of `/etc` without which the system does not start or let anyone in.
const VITAL: &[&str] =
    &["passwd", "shadow", "group", "gshadow", "sudoers", "fstab", "pam.d", "ld.so.preload", "crypttab", "inittab"];
/// What people keep in their home folder.
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

/// Sorts a resolved path.
pub fn place_of(path: &str) -> Place {
    let unquoted = path.trim_end_matches(['"', '\'']);
    if unquoted == "-" {
        return Place::Sink;
    }
    if let Some(place) = windows(unquoted) {
        return place;
    }
    let path = normal(unquoted);
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
        let all = matches!(rest.as_str(), "" | "*" | ".*" | "*.*" | "**" | "**/*" | ".[!.]*" | "{*,.*}" | "{.*,*}");
        let up = first == "..";
        return if all || up && rest.is_empty() { Place::Here } else { Place::Ordinary };
    }
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
    let Some(top) = parts.first() else { return Place::Root };
    if top.starts_with(['*', '?', '.', '[', '{', '$']) {
        return Place::Root;
    }
    if matches!(*top, "tmp" | "temp") || parts.starts_with(&["var", "tmp"]) || parts.starts_with(&["private", "tmp"]) {
        return if parts.len() > 1 { Place::Temporary } else { Place::System };
    }
    // A glob in the top name stands for whatever it can match: `/us*`.
    let known = SYSTEM
        .iter()
        .any(|s| s == top || top.contains(['*', '?']) && s.starts_with(top.split(['*', '?']).next().unwrap_or(top)));
    if !known {
        return Place::Ordinary;
    }
    let whole = parts.len() == 1 || parts.len() == 2 && parts[1].starts_with(['*', '.', '$']);
    match *top {
        "home" | "Users" if parts.len() <= 2 => Place::Home,
        "home" | "Users" => home(&format!("/{}", parts[2..].join("/"))),
        "root" => home(&format!("/{}", parts[1..].join("/"))),
        _ if whole => Place::System,
        "etc" | "private" if parts.iter().any(|p| VITAL.contains(p)) => Place::System,
        "etc" => Place::Configuration,
        "usr" if parts[1] != "local" && parts[1] != "src" => Place::System,
        "usr" if parts.len() == 2 => Place::System,
        "proc" | "sys" if !path.contains("sysrq") && !path.starts_with("/proc/sys/kernel") => Place::Configuration,
        "var" if parts.len() == 2 && matches!(parts[1], "www" | "games" | "opt" | "local") => Place::Ordinary,
        "var" if parts.len() == 2 || matches!(parts[1], "lib" | "db" | "spool") && parts.len() == 3 => Place::System,
        top if DEEP.contains(&top) => Place::System,
        _ => Place::Ordinary,
    }
}

/// A path below a home folder, from the slash on.
fn home(inside: &str) -> Place {
    let parts: Vec<&str> = inside.split('/').filter(|p| !p.is_empty()).collect();
    match parts.as_slice() {
        [] => Place::Home,
        [first] if matches!(*first, "*" | ".*" | "." | ".." | "*.*" | ".[!.]*") => Place::Home,
        [first] if first.starts_with('$') => Place::Home,
        [first] | [first, "*"] if PERSONAL.contains(first) => Place::Personal,
        [".ssh" | ".gnupg" | ".password-store", ..] => Place::Personal,
        _ => Place::Ordinary,
    }
}

/// A Windows path, if it is one.
fn windows(path: &str) -> Option<Place> {
    let lower = path.to_ascii_lowercase().replace('\\', "/");
    let profile = ["%userprofile%", "$env:userprofile", "$home", "%homepath%"];
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
    if bytes.len() < 2 || bytes[1] != b':' || !bytes[0].is_ascii_alphabetic() {
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

/// Without doubled slashes, `.` and what `..` takes back.
fn normal(path: &str) -> String {
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

/// The paths that a word stands for: variables that the script itself sets are filled in, braces are opened.
pub(super) fn resolved(script: &Script, word: &Word) -> Vec<String> {
    let text =
        if word.raw.contains('=') && word.raw.starts_with(|c: char| c == '-' || c.is_ascii_lowercase()) && !word.quoted
        {
            // `--output=x`, `of=x`: the path is the value.
            word.text.split_once('=').map_or(word.text.as_str(), |(_, value)| value)
        } else {
            word.text.as_str()
        };
    let mut text = text.to_owned();
    if script.dialect == Dialect::PowerShell {
        return vec![text.replace('\\', "/")];
    }
    if script.dialect == Dialect::Zsh && word.glob && text.ends_with(')') {
        // A glob qualifier says which of the matches are meant.
        text.truncate(text.rfind('(').unwrap_or(text.len()));
    }
    if word.expands {
        text = filled(script, &text, word);
    }
    if word.expands && text.contains('{') && !text.contains("${") { opened(&text) } else { vec![text] }
}

/// `$name` and `${name}` replaced by what the script assigned before, if that is plain text.
fn filled(script: &Script, text: &str, word: &Word) -> String {
    let mut out = text.replace("${HOME:?}", "~");
    for (name, value) in
        [("HOME", "~"), ("PWD", "."), ("TMPDIR", "/tmp/_"), ("USER", "user"), ("LOGNAME", "user"), ("OLDPWD", "..")]
    {
        out = out.replace(&format!("${{{name}}}"), value);
        if let Some(at) = out.find(&format!("${name}")) {
            let end = at + name.len() + 1;
            if !out[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                out.replace_range(at..end, value);
            }
        }
    }
    let before = |a: &&crate::shell::parse::Assignment| a.value.span.start <= word.span.start;
    for assignment in script.assignments.iter().filter(before) {
        let value = match &assignment.value.value {
            Some(value) => value.clone(),
            None if assignment.value.text.starts_with("$HOME") || assignment.value.text.starts_with('~') => {
                assignment.value.text.replacen("$HOME", "~", 1)
            }
            None => continue,
        };
        out = out.replace(&format!("${{{}}}", assignment.name), &value);
        if out.contains(&format!("${}", assignment.name)) {
            out = out.replace(&format!("${}", assignment.name), &value);
        }
    }
    out
}

/// The first braces of a text opened: `/{bin,etc}` is `/bin` and `/etc`.
fn opened(text: &str) -> Vec<String> {
    let Some(open) = text.find('{') else { return vec![text.to_owned()] };
    let Some(close) = text[open..].find('}').map(|i| open + i) else { return vec![text.to_owned()] };
    let (head, tail) = (&text[..open], &text[close + 1..]);
    text[open + 1..close].split(',').take(64).map(|part| format!("{head}{part}{tail}")).collect()
}

/// What a PowerShell pipeline hands to a command without operands: paths, whether they are narrowed, and whether they
/// come from below folders.
pub(super) fn piped(script: &Script, index: usize) -> Vec<(String, bool, bool)> {
    let mut narrowed = false;
    let mut at = index;
    for _ in 0..8 {
        let Some((feeder, command)) = script.commands.iter().enumerate().find(|(_, c)| c.feeds.contains(&at)) else {
            break;
        };
        let key = super::canonical(&command.key().unwrap_or_default(), script.dialect);
        let says = |names: &[&str]| command.args().iter().any(|w| names.iter().any(|n| w.text.eq_ignore_ascii_case(n)));
        if key == "get-childitem" || key == "get-item" {
            let filtered = narrowed || says(&["-filter", "-include", "-exclude"]);
            let mut roots: Vec<String> =
                command.operands().flat_map(|w| resolved(script, w)).filter(|p| filtered || !p.is_empty()).collect();
            if roots.is_empty() {
                roots.push("*".to_owned());
            }
            let deep = says(&["-recurse", "-r", "-rec", "-s"]);
            return roots.into_iter().map(|root| (root, filtered, deep)).collect();
        }
        narrowed |= matches!(key.as_str(), "where-object" | "select-object");
        at = feeder;
    }
    Vec::new()
}

/// Where `find` or `fd` starts.
pub(super) fn roots(script: &Script, command: &Invocation) -> Vec<String> {
    let mut roots = Vec::new();
    for word in command.args() {
        if word.text.starts_with(['-', '(', '!']) && word.text != "-" {
            if matches!(word.text.as_str(), "-H" | "-L" | "-P") || word.text.starts_with("-O") {
                continue;
            }
            break;
        }
        roots.extend(resolved(script, word));
    }
    if command.name().is_some_and(|n| n.starts_with("fd")) || roots.is_empty() { vec![".".to_owned()] } else { roots }
}

/// True if a `find` has a test that leaves most of what it walks alone.
pub(super) fn narrowed(command: &Invocation) -> bool {
    let tests = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-newer",
        "-newermt",
        "-size",
        "-empty",
        "-user",
        "-group",
        "-nouser",
        "-nogroup",
        "-perm",
        "-samefile",
        "-inum",
        "-links",
        "-xtype",
    ];
    let everything =
        |i: usize| command.words.get(i + 1).is_some_and(|w| matches!(w.text.as_str(), "*" | ".*" | "*.*" | "**"));
    command.name().is_some_and(|n| n.starts_with("fd"))
        || command.words.iter().enumerate().any(|(i, w)| tests.contains(&w.text.as_str()) && !everything(i))
}

/// What `{}` of `find -exec` and the end of an `xargs` command stand for: paths, and whether they are narrowed.
pub(super) fn handed(script: &Script, index: usize) -> Vec<(String, bool)> {
    let mut at = index;
    while let Some(inside) = script.commands[at].inside.filter(|i| i.how == How::Wrapped) {
        at = inside.command;
        let wrapper = &script.commands[at];
        match wrapper.name() {
            Some("find" | "gfind" | "fd" | "fdfind") => {
                let narrowed = narrowed(wrapper);
                return roots(script, wrapper).into_iter().map(|root| (root, narrowed)).collect();
            }
            Some("xargs" | "gxargs") => {
                let feeders: Vec<&Invocation> = script.commands.iter().filter(|c| c.feeds.contains(&at)).collect();
                return feeders.iter().flat_map(|f| from_feeder(script, f)).collect();
            }
            Some("parallel") => {
                let after = wrapper.words.iter().skip_while(|w| !w.text.starts_with(":::")).skip(1);
                return after.flat_map(|w| resolved(script, w)).map(|path| (path, false)).collect();
            }
            _ => {}
        }
    }
    Vec::new()
}

fn from_feeder(script: &Script, feeder: &Invocation) -> Vec<(String, bool)> {
    match feeder.name() {
        Some("echo" | "printf") => feeder
            .operands()
            .flat_map(|w| resolved(script, w))
            .filter(|p| !p.contains('%'))
            .map(|p| (p.replace("\\0", "").replace("\\n", ""), false))
            .collect(),
        Some("find" | "gfind") => {
            let narrowed = narrowed(feeder);
            roots(script, feeder).into_iter().map(|root| (root, narrowed)).collect()
        }
        Some("ls" | "dir") => {
            let named: Vec<String> = feeder.operands().flat_map(|w| resolved(script, w)).collect();
            if named.is_empty() {
                vec![("*".to_owned(), false)]
            } else {
                named.into_iter().map(|p| (p, false)).collect()
            }
        }
        _ => Vec::new(),
    }
}
