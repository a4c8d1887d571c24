//! Recognizes changes that lose nothing: files that tools recreate, temporary files, a line appended to a file.

use super::secrets::is_secret;
use crate::effects::{Effect, Kind, Place, is_hidden, is_remade, place_of};
use crate::find::is_changing_action;
use crate::parse::{How, Invocation, Script, Word};

/// Programs that write any amount of data.
const FILLERS: [&str; 8] = ["yes", "dd", "fallocate", "openssl", "mkfile", "fio", "stress", "stress-ng"];

/// Devices that can be read endlessly.
const ENDLESS: [&str; 4] = ["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"];

/// Methods of .NET that only compute, in lower case.
const METHODS: &str = " adddays addhours addminutes addmonths addseconds addyears tostring trim trimstart trimend split replace contains \
startswith endswith substring toupper tolower padleft padright indexof lastindexof gettype equals compareto touniversaltime tolocaltime \
toshortdatestring tolongdatestring toshorttimestring subtract insert round floor ceiling abs max min pow sqrt truncate format join \
isnullorempty isnullorwhitespace parse tryparse newguid daysinmonth isleapyear getenvironmentvariable getfolderpath combine getextension \
getfilename getfilenamewithoutextension getdirectoryname toarray tochararray getenumerator where sum average count reverse ";
/// Types of .NET whose static functions only compute, in lower case.
const TYPES: &str = " math string datetime int long double decimal char guid environment timespan system.math system.string io.path system.io.path \
system.environment version convert int32 int64 uri ";

/// True if an effect loses nothing, wherever the script runs.
pub(super) fn loses_nothing(script: &Script, all: &[Effect], effect: &Effect) -> bool {
    if is_sealed(script, all, effect) {
        return true;
    }
    let Some(path) = effect.path.as_deref() else { return false };
    match effect.kind {
        Kind::Delete => {
            let program = effect.command.and_then(|at| script.commands[at].name());
            // it removes only empty folders
            program == Some("rmdir")
                || is_recreated(path)
                || is_temporary(path)
                || effect.narrowed && finds_only_recreated(script, effect)
        }
        Kind::Append => {
            is_own(path) && only_appends(script, effect) && !reads_secrets(script, all) && !may_fill_disk(script, all)
        }
        Kind::Overwrite => {
            (is_temporary(path) || is_recreated(path)) && !reads_secrets(script, all) && !may_fill_disk(script, all)
        }
        _ => false,
    }
}

/// True for an effect inside of a container without access to this machine.
fn is_sealed(script: &Script, all: &[Effect], effect: &Effect) -> bool {
    let mut at = effect.command;
    while let Some(inside) = at.and_then(|at| script.commands[at].inside).filter(|inside| inside.how == How::Wrapped) {
        let wrapper = &script.commands[inside.command];
        let runs = matches!(wrapper.name(), Some("docker" | "podman" | "nerdctl"))
            && wrapper.args().iter().take(2).any(|w| matches!(w.text.as_str(), "run" | "create"));
        if runs && all.iter().any(|e| e.command == Some(inside.command) && e.kind == Kind::Start) {
            return true;
        }
        at = Some(inside.command);
    }
    false
}

/// True for a path of the project or below `~/.cache` that tools recreate.
fn is_recreated(path: &str) -> bool {
    let cached = path.strip_prefix("~/.cache/").or_else(|| path.strip_prefix("~/Library/Caches/"));
    if let Some(inside) = cached {
        return inside.starts_with(|c: char| c.is_ascii_alphanumeric()) && !inside.contains("..");
    }
    let path = path.strip_prefix("./").unwrap_or(path);
    !path.starts_with(['/', '~', '$', '`', '(', '%'])
        && !path.split('/').any(|part| part == "..")
        && path.split('/').any(is_remade)
}

/// True for a named file or folder in a folder for temporary files that belongs to no other program.
fn is_temporary(path: &str) -> bool {
    if place_of(path) != Place::Temporary || path.contains(['$', '`']) {
        return false;
    }
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let below = path.split("tmp/").nth(1).unwrap_or_default();
    below.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && !name.ends_with(".sock")
        && !below.starts_with("systemd")
        && !below.contains("..")
}

/// True if a `find` deletes only files selected by `-name` that tools recreate, or only empty folders.
fn finds_only_recreated(script: &Script, effect: &Effect) -> bool {
    let Some(at) = effect.command else { return false };
    let is_find = |c: &Invocation| matches!(c.name(), Some("find" | "gfind"));
    let own = &script.commands[at];
    let around = || own.inside.filter(|i| i.how == How::Wrapped).map(|i| &script.commands[i.command]);
    let Some(find) = Some(own).filter(|c| is_find(c)).or_else(|| around().filter(|c| is_find(c))) else { return false };
    // a test behind the action does not limit it
    let words = find.args().iter().map(|w| w.text.as_str());
    let words: Vec<&str> = words.take_while(|word| !is_changing_action(word)).collect();
    let other_tests = ["!", "-not", "-o", "-or", ",", "-path", "-regex", "-wholename"];
    let names: Vec<&str> =
        words.windows(2).filter(|pair| matches!(pair[0], "-name" | "-iname")).map(|pair| pair[1]).collect();
    let here = effect.path.as_deref().is_some_and(|path| !path.starts_with(['/', '~', '$']) && !path.contains(".."));
    // an empty file may matter all the same (`__init__.py`, a lock), unlike an empty folder
    let finds_empty_folders = words.contains(&"-empty") && words.windows(2).any(|pair| pair == ["-type", "d"]);
    here && !words.iter().any(|word| other_tests.contains(word))
        && (finds_empty_folders || !names.is_empty() && names.iter().all(|name| is_remade(name)))
}

/// True for a file in the current directory, or a temporary one, that is neither hidden nor part of the system.
fn is_own(path: &str) -> bool {
    !is_hidden(path)
        && !path.contains(['$', '`', '*', '?'])
        && (is_temporary(path) || place_of(path) == Place::Ordinary && !path.starts_with(['/', '~']))
}

/// True for a redirection or a program that only appends.
fn only_appends(script: &Script, effect: &Effect) -> bool {
    effect.token.contains(">>")
        || effect
            .command
            .and_then(|at| script.commands[at].key())
            .is_some_and(|key| ["tee", "sponge", "add-content", "out-file", "ac"].contains(&key.as_str()))
}

/// True if the script reads a key or a password, which it may write where others can read it.
pub(super) fn reads_secrets(script: &Script, all: &[Effect]) -> bool {
    let reads = |e: &&Effect| matches!(e.kind, Kind::Read | Kind::Move);
    let secret = |path: &str| {
        is_secret(path) || place_of(path) == Place::Personal || path.starts_with("/etc/") || path.starts_with("/root")
    };
    // `tar czf k.tgz ~/.ssh`: the packed files are no operands in the table
    let named = |w: &Word| is_secret(&w.text) || place_of(&w.text) == Place::Personal;
    all.iter().filter(reads).any(|e| e.path.as_deref().is_some_and(secret))
        || script.commands.iter().flat_map(|c| c.args()).any(named)
}

/// True if the script may fill the disk.
pub(super) fn may_fill_disk(script: &Script, all: &[Effect]) -> bool {
    let filler = |c: &Invocation| c.key().is_some_and(|key| FILLERS.contains(&key.as_str()));
    script.commands.iter().any(filler)
        || all.iter().any(|e| e.kind == Kind::Read && e.path.as_deref().is_some_and(|path| ENDLESS.contains(&path)))
}

/// True for a pure call of PowerShell: `(Get-Date).AddDays(-7)`, `[math]::Round(2.5)`.
pub(super) fn is_pure_method(token: &str) -> bool {
    let lower = token.to_ascii_lowercase();
    let Some(head) = lower.split_once('(').map(|_| &lower[..lower.rfind('(').unwrap_or(0)]) else { return false };
    let within = |list: &str, word: &str| !word.is_empty() && list.contains(&format!(" {word} "));
    if let Some((kind, method)) = head.rsplit_once("::") {
        let kind = kind.rsplit('[').next().unwrap_or_default().trim_end_matches(']');
        return within(METHODS, method) && within(TYPES, kind);
    }
    let method = head.rsplit('.').next().unwrap_or_default();
    head.contains('.') && within(METHODS, method)
}
