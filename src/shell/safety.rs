//! Assesses the risk of a command: whether it may run without confirmation.
//!
//! Reasons come from three sources, none of which looks at raw text: the effects of every command on paths, the flow
//! of data from the network or a decoder into something that runs it, and the `confirm` and `deny` rules of
//! `platform-rules/`.

mod behind;
mod code;
mod database;
mod disguise;
mod endless;
mod flow;
mod folder;
mod given;
mod indices;
mod keeps;
mod processes;
mod said;
mod secrets;
mod startup;
#[cfg(test)]
mod tests;
mod written;

use super::Dialect;
use super::effects::{
    Effect, Kind, Place, Variable, effects, expand_braces, folder_above, is_help, is_refused, place_of, resolve_paths,
    variable,
};
use super::parse::{Assignment, How, Script};
use super::rules::{Verdict, matching};
use super::substitution;
pub use folder::{Found, Surroundings};
pub(super) use given::stdin_texts;
pub use startup::runs_by_itself;
use std::collections::HashSet;
use std::ops::Range;

/// The effect of a reason that tells that something is moved or renamed.
const MOVE: &str = "move";

/// The level of a risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Loses nothing: it reads and prints, creates something new, or runs what the project's own files say.
    Safe,
    /// May lose something, sends data to another machine, gains rights, or runs something unpredictable.
    Caution,
    /// Destroys, exposes or gives away something.
    Danger,
}

/// The assessed risk, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Risk {
    /// The highest level of the reasons.
    pub level: Level,
    /// The reasons, highest level first; at one level a move comes last, since it loses nothing itself.
    pub reasons: Vec<Reason>,
}

/// A reason for a risk.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reason {
    /// The level.
    pub level: Level,
    /// `delete`, `overwrite`, `permission`, `device`, `privilege`, `network-to-shell` ...
    pub effect: String,
    /// The part of the command that causes it.
    pub token: String,
    /// The range of that part, in bytes.
    pub span: Option<Range<usize>>,
    /// One sentence for the user.
    pub why: String,
    /// The extent of the harm, if known: `everything on this disk`, `all rows of users`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scope: Option<String>,
}

/// Assesses a parsed command.
///
/// ```
/// use caro_shell::{Dialect, parse, safety::{Level, assess}};
/// assert_eq!(assess(&parse("du -sh * | sort -h", Dialect::Bash)).level, Level::Safe);
/// assert_eq!(assess(&parse("sudo sh -c 'rm -rf /'", Dialect::Bash)).level, Level::Danger);
/// ```
pub fn assess(script: &Script) -> Risk {
    super::policy::apply(script, builtin_risk(script))
}

/// Like [`assess`], for a command that runs on this machine, with access to its disk: a file that does not exist
/// cannot be overwritten.
pub fn assess_in(script: &Script, around: &Surroundings<'_>) -> Risk {
    super::policy::apply(script, builtin_risk_in(script, Some(around)))
}

/// Assesses a command without policies.
pub(super) fn builtin_risk(script: &Script) -> Risk {
    builtin_risk_in(script, None)
}

fn builtin_risk_in(script: &Script, around: Option<&Surroundings<'_>>) -> Risk {
    let all = effects(script);
    let of_one = |effect: &Effect| {
        let renamed = around.and_then(|around| folder::as_working_folder(script, effect, around));
        let effect = renamed.as_ref().unwrap_or(effect);
        let reason = reason_of(script, &all, effect)?;
        if reason.level <= Level::Caution && keeps::loses_nothing(script, &all, effect) {
            return None;
        }
        match around {
            Some(around) => folder::reassess(script, &all, effect, reason, around),
            None => Some(reason),
        }
    };
    let mut reasons: Vec<Reason> = all.iter().filter_map(of_one).collect();
    reasons.extend(flow::reasons(script));
    reasons.extend(secrets::reasons(script));
    reasons.extend(indices::reasons(script));
    reasons.extend(database::reasons(script));
    reasons.extend(code::reasons(script, &all));
    reasons.extend(endless::reasons(script, &all));
    reasons.extend(behind::reasons(script, &all));
    reasons.extend(processes::reasons(script));
    reasons.extend(startup::reasons(script, &all));
    reasons.extend(written::reasons(script, &all));
    reasons.extend(disguise::reasons(script));
    reasons.extend(structure_reasons(script));
    for found in matching(script, None) {
        let help = |at: usize| is_help(&script.commands[at], script.dialect_of(&script.commands[at]));
        if found.rule.verdict >= Verdict::Confirm && found.command.is_some_and(help) {
            continue;
        }
        let level = match found.rule.verdict {
            Verdict::Confirm => Level::Caution,
            Verdict::Deny => Level::Danger,
            Verdict::Hint | Verdict::Warn | Verdict::Error => continue,
        };
        let effect = if found.rule.effect.is_empty() { "system" } else { &found.rule.effect };
        let reason_with_scope = reason(level, effect, &found.token, found.span, found.rule.why.clone());
        reasons.push(reason_with_scope.with_scope(&found.rule.scope));
    }
    let order = |r: &Reason| (std::cmp::Reverse(r.level), r.effect == MOVE, r.span.as_ref().map_or(0, |s| s.start));
    reasons.sort_by_key(order);
    let mut reported = HashSet::new();
    reasons.retain(|r| reported.insert((r.effect.clone(), r.span.clone())));
    let level = reasons.iter().map(|r| r.level).max().unwrap_or(Level::Safe);
    Risk { level, reasons }
}

/// True if the script only reads, prints and computes, and every program in it is known. False for unknown programs,
/// syntax errors, other machines, the network and rights of other users.
pub fn is_read_only(script: &Script) -> bool {
    let reads = |e: &Effect| match e.kind {
        Kind::None | Kind::Read => true,
        Kind::Overwrite | Kind::Append => e.path.as_deref().is_some_and(|p| place_of(p) == Place::Sink),
        _ => false,
    };
    script.errors.is_empty()
        && script.functions.is_empty()
        && script.commands.iter().all(|c| !c.remote && c.name().is_some())
        && !assignments(script).any(|a| is_code(a, script.dialect))
        && effects(script).iter().all(reads)
        && is_safe(script)
}

/// True if neither the built-in assessment nor a policy has a reason. Both must agree: a policy may ask for
/// confirmation of reading, and allowing something does not make it read-only.
fn is_safe(script: &Script) -> bool {
    let risk = builtin_risk(script);
    risk.level == Level::Safe && super::policy::apply(script, risk).level == Level::Safe
}

fn reason(level: Level, effect: &str, token: &str, span: Range<usize>, why: impl Into<String>) -> Reason {
    Reason { level, effect: effect.to_owned(), token: token.to_owned(), span: Some(span), why: why.into(), scope: None }
}

impl Risk {
    /// Returns the reason of a policy that denies the command, if one does. It is not run then, even if the user
    /// agrees.
    pub fn refused(&self) -> Option<&Reason> {
        self.reasons.iter().find(|r| r.effect == super::policy::DENIED)
    }
}

impl Reason {
    /// Adds the extent of the harm.
    fn with_scope(self, scope: impl Into<String>) -> Self {
        Self { scope: Some(scope.into()).filter(|scope| !scope.is_empty()), ..self }
    }
}

/// True if the assignment may make a program run other code.
fn is_code(assignment: &Assignment, dialect: Dialect) -> bool {
    match variable(&assignment.name) {
        Some(Variable::Runs) => !is_read_only(&super::parse(&assignment.value.text, dialect)),
        Some(Variable::Loads | Variable::Steers) => true,
        Some(Variable::Writes) => is_path(&assignment.value.text),
        None => false,
    }
}

/// True for the value of a variable that may be a path; `1` and `2` are descriptors.
fn is_path(value: &str) -> bool {
    value.starts_with(['/', '~', '$', '`'])
}

/// Returns all assignments: those before a command, those that stand alone, and exported ones.
fn assignments(script: &Script) -> impl Iterator<Item = &Assignment> {
    script.commands.iter().flat_map(|c| &c.assignments).chain(&script.assignments)
}

/// Returns the reason for a risk that an effect causes, if any.
fn reason_of(script: &Script, all: &[Effect], effect: &Effect) -> Option<Reason> {
    let place = effect.path.as_deref().map_or(Place::Ordinary, place_of);
    let path = effect.path.as_deref().unwrap_or_default();
    let say = |level, name: &str, why: String| {
        let mut made = reason(level, name, &effect.token, effect.span.clone(), why).with_scope(path);
        if effect.remote {
            made.why.push_str(" (on another machine or in a container)");
        }
        Some(made)
    };
    use Level::{Caution, Danger};
    match effect.kind {
        Kind::Fetch => say(Caution, "network", reveals(script, all, effect.command?)?),
        Kind::None | Kind::Read => None,
        Kind::Create if place == Place::Device => {
            say(Danger, "device", format!("it puts something in the place of the device {path}"))
        }
        Kind::Create if matches!(place, Place::Root | Place::System | Place::Configuration) => {
            say(Caution, "overwrite", format!("it puts files into {path}, which belongs to the system"))
        }
        Kind::Create if place == Place::Home => {
            say(Caution, "overwrite", format!("it puts files into the home folder {path}, over what is there"))
        }
        Kind::Create => None,
        Kind::Delete => {
            let hidden = |at: usize| script.commands[at].inside.is_some_and(|i| i.how == How::Substitution);
            // nobody expects a deletion among the arguments of another command
            let level = match effect.recursive && effect.command.is_some_and(hidden) && place != Place::Temporary {
                true => Danger,
                false => deletion_level(effect, place),
            };
            let what = match place {
                _ if effect.narrowed => format!("what it finds below {path}"),
                Place::Root => "everything on this disk".to_owned(),
                Place::Home => format!("the whole home folder {path}"),
                Place::Here => whole_folder(path),
                Place::Variable => format!("{path}, which cannot be known beforehand"),
                Place::System => format!("{path}, which belongs to the system"),
                _ if path.is_empty() => "what it is handed".to_owned(),
                _ => path.to_owned(),
            };
            let how = if effect.recursive && !effect.narrowed { " with all below it" } else { "" };
            let refused = if is_refused(script, effect) { ", which rm refuses" } else { "" };
            let made = say(level, "delete", format!("it deletes {what}{how}{refused}"));
            let scope = match place {
                Place::Root | Place::Home | Place::Here if !effect.narrowed => what,
                Place::System | Place::Variable if !effect.narrowed => format!("{path}{how}"),
                _ => format!("{what}{how}"),
            };
            made.map(|reason| reason.with_scope(scope))
        }
        Kind::Overwrite | Kind::Append => {
            let word = match effect.kind {
                Kind::Append => "adds to",
                // what the name is shows only when it runs
                _ if path.contains(['$', '`']) => "may overwrite",
                _ => "overwrites",
            };
            match place {
                Place::Sink => None,
                Place::Device => say(Danger, "device", format!("it writes over the raw device {path}")),
                // writing to another disk is normal use
                Place::System if is_mounted(path) => say(Caution, "overwrite", format!("it {word} {path}")),
                _ if path.is_empty() => say(Caution, "overwrite", format!("it {word} files that may be there")),
                Place::System | Place::Root if is_folder_target(effect) && (effect.narrowed || !effect.recursive) => {
                    say(Caution, "overwrite", format!("it writes into {path}, which belongs to the system"))
                }
                Place::System | Place::Root => {
                    say(Danger, "overwrite", format!("it {word} {path}, which belongs to the system"))
                }
                Place::Personal if path.contains(".ssh/") => {
                    say(Danger, "overwrite", format!("it {word} {path}, which decides who may log in"))
                }
                _ => say(Caution, "overwrite", format!("it {word} {path}")),
            }
        }
        Kind::Move => match place {
            Place::Root | Place::System | Place::Home => {
                say(Danger, MOVE, format!("it moves {path} away, which this machine needs where it is"))
            }
            Place::Here => say(Caution, MOVE, format!("it moves {}", whole_folder(path))),
            Place::Device => say(Danger, "device", format!("it moves the device {path}")),
            _ if moves_to_null(script, effect) => {
                say(Danger, "delete", format!("it moves {path} where nothing is kept"))
            }
            _ => say(Caution, MOVE, format!("it moves or renames {path}")),
        },
        Kind::Mode | Kind::Owner => {
            let name = "permission";
            let what = if effect.kind == Kind::Mode { "permissions" } else { "the owner" };
            let wide = matches!(place, Place::Root | Place::System | Place::Home | Place::Device);
            let all = matches!(place, Place::Configuration | Place::Variable) && effect.recursive;
            let own =
                place == Place::Home && (!effect.recursive || effect.kind == Kind::Owner && matches!(path, "~" | "~/"));
            if wide && !own || all {
                say(Danger, name, format!("it changes {what} of {path}, and the system may not work after"))
            } else {
                say(Caution, name, format!("it changes {what} of {path}"))
            }
        }
        Kind::Send => {
            say(Caution, "network", format!("`{}` reaches another machine, and may send data there", effect.token))
        }
        Kind::Privilege => {
            say(Caution, "privilege", format!("`{}` runs what follows with another user's rights", effect.token))
        }
        Kind::Kill => say(Caution, "process", format!("`{}` ends or hinders running processes", effect.token)),
        Kind::System => say(Caution, "system", format!("`{}` can change the state of this system", effect.token)),
        Kind::Package => say(Caution, "package", format!("`{}` can install, change or remove software", effect.token)),
        Kind::Repository => {
            say(Caution, "repository", "it takes something out of the repository, or changes what is there".to_owned())
        }
        Kind::Record | Kind::Start | Kind::Build | Kind::Compute => None,
        Kind::Run => say(Caution, "code", format!("`{}` runs code that is not in the command itself", effect.token)),
        // `structure_reasons` assesses a program word that is no plain text
        Kind::Unknown if effect.command.is_some_and(|i| script.commands[i].name().is_none()) => None,
        Kind::Unknown => say(Caution, "unknown", format!("what `{}` does cannot be foreseen", effect.token)),
    }
}

/// Returns the reason why a download reveals something of this machine: its address or a header contains local data.
fn reveals(script: &Script, all: &[Effect], index: usize) -> Option<String> {
    const SECRET_NAMES: [&str; 7] = ["secret", "token", "passw", "key", "credential", "auth", "cookie"];
    let command = &script.commands[index];
    let name = &command.words.first()?.raw;
    // data sent to this machine stays here
    let host = |word: &super::parse::Word| word.text.split_once("://").map(|(_, rest)| rest.to_owned());
    let mut hosts = command.args().iter().filter_map(host).peekable();
    let own = |host: String| {
        let end = host.find(['/', ':', '?']).unwrap_or(host.len());
        ["localhost", "127.0.0.1"].contains(&&host[..end])
    };
    if hosts.peek().is_some() && hosts.all(own) {
        return None;
    }
    if matches!(command.runner(), Some("xargs" | "gxargs" | "parallel" | "find" | "fd")) {
        return Some(format!("`{name}` reaches addresses that another program puts together"));
    }
    let named = |word: &super::parse::Word| {
        let lower = word.text.to_lowercase();
        word.expands && lower.split('$').skip(1).any(|variable| SECRET_NAMES.iter().any(|word| variable.contains(word)))
    };
    // to other programs, `@me` and `@types/node` are names
    let posts = ["curl", "wget", "http", "https", "xh", "xhs", "httpie", "invoke-webrequest", "invoke-restmethod"];
    let posting = command.key().is_some_and(|key| posts.contains(&key.as_str()));
    let from_file = |word: &super::parse::Word| posting && word.text.len() > 1 && word.text.starts_with('@');
    let revealing = command.args().iter().find(|word| named(word) || from_file(word));
    if let Some(word) = revealing {
        return Some(format!("`{name}` hands {} to another machine", word.raw));
    }
    let inner = script.commands.iter().enumerate().find(|(at, inner)| {
        let substituted = inner.inside.is_some_and(|i| i.command == index && i.how == How::Substitution);
        let reads = || all.iter().any(|e| e.command == Some(*at) && e.kind == Kind::Read && e.path.is_some());
        substituted && (matches!(inner.name(), Some("env" | "printenv" | "set" | "export" | "declare")) || reads())
    })?;
    Some(format!("`{name}` hands what `{}` reads to another machine", inner.1.words.first()?.raw))
}

/// Names the contents of the working directory, or of the folder above it that the path leads to.
fn whole_folder(path: &str) -> String {
    match folder_above(path) {
        Some(above) => format!("everything in the folder {above} above this one"),
        None => "everything in this folder".to_owned(),
    }
}

/// Returns the level of a deletion.
fn deletion_level(effect: &Effect, place: Place) -> Level {
    let glob = effect.path.as_deref().is_some_and(|p| p.contains('*'));
    let refilled = ["/tmp", "/var/tmp", "/var/log", "/var/cache", "/private/tmp"];
    match place {
        Place::System
            if effect.narrowed
                && effect.path.as_deref().is_some_and(|p| refilled.contains(&p.trim_end_matches('/'))) =>
        {
            Level::Caution
        }
        // a selection by name or age, not everything
        Place::Home | Place::Personal if effect.narrowed => Level::Caution,
        Place::Root | Place::System | Place::Home | Place::Device => Level::Danger,
        Place::Personal if effect.recursive || effect.path.as_deref().is_some_and(is_key) => Level::Danger,
        Place::Personal => Level::Caution,
        Place::Configuration if effect.recursive || glob => Level::Danger,
        Place::Here | Place::Variable if effect.recursive && !effect.narrowed => Level::Danger,
        // the whole history of a project
        Place::Ordinary if effect.recursive && effect.path.as_deref().is_some_and(is_history) => Level::Danger,
        // `/data`, `/srv/git`, `/var/www`: a whole part of the disk
        Place::Ordinary if effect.recursive && !effect.narrowed && effect.path.as_deref().is_some_and(is_top) => {
            Level::Danger
        }
        _ => Level::Caution,
    }
}

/// True for a file that gives access to something, or others access to this machine.
fn is_key(path: &str) -> bool {
    path.ends_with("/authorized_keys") || secrets::is_secret(path)
}

/// True for the folder in which a version control system stores a project, and its essential subfolders.
fn is_history(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    [".git", ".hg", ".svn", ".jj", ".git/objects", ".git/refs"]
        .iter()
        .any(|own| path == *own || path.ends_with(&format!("/{own}")))
}

/// True for a folder at the top of the disk or directly below a system folder for data, and for everything in it.
fn is_top(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_end_matches(['/', '*']).split('/').filter(|p| !p.is_empty()).collect();
    let data = matches!(
        parts.as_slice(),
        ["srv" | "opt" | "mnt" | "media", _] | ["var", "www"] | ["var", "www", _] | ["usr", "local", _]
    );
    path.starts_with('/') && (parts.len() == 1 || data)
}

/// True for a `PATH` that begins with a folder in which anyone may create files.
fn is_open_to_all(value: &str) -> bool {
    let first = value.split(':').next().unwrap_or_default();
    matches!(first, "/tmp" | "/var/tmp") || place_of(first) == Place::Temporary
}

/// True for zsh's `path=(/tmp/x $path)`, the list that is `PATH`.
fn is_list_open_to_all(value: &str) -> bool {
    let first = value.trim_start_matches('(').split_whitespace().next();
    first.is_some_and(|folder| is_open_to_all(folder.trim_matches(['"', '\'', ')'])))
}

/// True for a `PATH` with a relative folder, which depends on the current directory.
fn is_relative(value: &str) -> bool {
    // a colon inside of an expansion separates nothing
    let named = substitution::without(&value.replace("${", "/${").replace("$(", "/$("));
    named.split(':').any(|folder| !folder.starts_with(['/', '~', '$', '`']))
}

/// True for `cp x /usr/bin/`: adding a file to a system folder loses nothing.
fn is_folder_target(effect: &Effect) -> bool {
    effect.path.as_deref().is_some_and(|p| {
        p.ends_with('/')
            || p.matches('/').count() == 1 && !p.starts_with("/dev")
            || matches!(
                p,
                "/opt"
                    | "/srv"
                    | "/usr/bin"
                    | "/usr/local"
                    | "/usr/sbin"
                    | "/usr/share"
                    | "/var/www"
                    | "/var/log"
                    | "/var/lib"
            )
    })
}

/// True for a disk mounted in the usual folders, and for what is on it.
fn is_mounted(path: &str) -> bool {
    ["/mnt/", "/media/"].iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| !rest.is_empty()))
}

/// True for `mv x /dev/null`.
fn moves_to_null(script: &Script, effect: &Effect) -> bool {
    let Some(command) = effect.command.map(|i| &script.commands[i]) else { return false };
    command.words.last().is_some_and(|w| place_of(&w.text) == Place::Sink)
}

/// Assesses a word whose braces expand to a command line: `{rm,-rf,/}`.
fn brace_reasons(script: &Script, word: &str, args: &[super::parse::Word], span: &Range<usize>) -> Vec<Reason> {
    let words = if word.starts_with('{') { expand_braces(word) } else { Vec::new() };
    if words.len() < 2 || words.iter().any(|word| word.contains('{')) {
        return Vec::new();
    }
    let rest = args.iter().map(|w| w.raw.as_str());
    let line: Vec<&str> = words.iter().map(String::as_str).chain(rest).collect();
    let inner = assess(&super::parse(&line.join(" "), script.dialect));
    inner.reasons.into_iter().map(|r| Reason { span: Some(span.clone()), ..r }).collect()
}

/// Returns the dangers of a command line that the script has put into variables: `x='rm -rf /'; eval $x`, also with
/// another `IFS`.
fn expanded_reasons(script: &Script, command: &super::parse::Invocation) -> Vec<Reason> {
    let listed = command.words.first().and_then(|first| array_of(script, &first.text));
    let rest = command.words.iter().skip(usize::from(listed.is_some())).flat_map(|w| resolve_paths(script, w));
    let words: Vec<String> = listed.into_iter().chain(rest).collect();
    let separators =
        script.assignments.iter().rfind(|a| a.name == "IFS").and_then(|a| a.value.value.clone()).unwrap_or_default();
    let mut line = words.join(" ");
    for separator in separators.chars().filter(|c| !c.is_alphanumeric()) {
        line = line.replace(separator, " ");
    }
    let is_known = !line.contains('$')
        && line.contains(' ')
        && line.len() < 4096
        && words != command.words.iter().map(|w| w.text.clone()).collect::<Vec<_>>();
    let Some(first) = command.words.first() else { return Vec::new() };
    if !is_known {
        return Vec::new();
    }
    let inner = super::parse(&line, script.dialect);
    // the expanded text has no variables, so the recursion ends
    let inner = builtin_risk(&inner).reasons.into_iter().filter(|r| r.level == Level::Danger);
    inner.map(|r| Reason { span: Some(first.span.clone()), ..r }).collect()
}

/// Returns the words of an array of the script: `rm -rf x` for `${a[@]}` after `a=(rm -rf x)`.
fn array_of(script: &Script, text: &str) -> Option<String> {
    let name = text.strip_prefix("${")?;
    let name = name.strip_suffix("[@]}").or_else(|| name.strip_suffix("[*]}"))?;
    let value = &script.assignments.iter().rfind(|a| a.name == name)?.value;
    Some(value.raw.trim().strip_prefix('(')?.strip_suffix(')')?.to_owned())
}

/// Returns the reasons that follow from the structure of the script: fork bombs, programs named by a variable,
/// invalid text.
fn structure_reasons(script: &Script) -> Vec<Reason> {
    let mut found = Vec::new();
    for function in &script.functions {
        let calls = script.commands[function.commands.clone()]
            .iter()
            .filter(|c| c.words.first().is_some_and(|w| w.text == function.name));
        if calls.count() >= 2 {
            let why = format!(
                "the function {} calls itself twice over, until the machine stops (a fork bomb)",
                function.name
            );
            found.push(reason(Level::Danger, "process", &function.name, function.span.clone(), why));
        }
    }
    for command in &script.commands {
        let Some(first) = command.words.first().filter(|w| w.value.is_none()) else { continue };
        found.extend(brace_reasons(script, &first.text, command.args(), &first.span));
        found.extend(expanded_reasons(script, command));
        let why = format!("which program runs depends on `{}`", first.raw);
        let vital = |w: &super::parse::Word| {
            let recursive = command.has_option(Some('r'), "recursive") || command.has_option(Some('R'), "");
            matches!(place_of(&w.text), Place::Root | Place::Home | Place::Device)
                || recursive && place_of(&w.text) == Place::System
        };
        // `/b?n/r?`: disguises the name of the program
        let cut = first
            .text
            .split("${")
            .skip(1)
            .any(|part| part.split('}').next().is_some_and(|p| p.contains(':') && !p.contains(":-")));
        let hidden = first.glob && first.text.contains('?') || cut;
        let level = match hidden
            || command.args().iter().any(vital)
            || first.text.contains("$IFS")
            || first.text.contains("${IFS}")
        {
            true => Level::Danger,
            false => Level::Caution,
        };
        found.push(reason(level, "code", &first.raw, first.span.clone(), why));
    }
    for assignment in assignments(script) {
        let (name, value) = (assignment.name.as_str(), &assignment.value);
        let kind = variable(name);
        if matches!(name, "PS0" | "PS1" | "PS2" | "PS3" | "PS4" | "PROMPT") {
            // a prompt is expanded each time it is shown
            for part in substitution::find_all(&value.text, false) {
                let inner = assess(&super::parse(&value.text[part], script.dialect));
                found.extend(inner.reasons.into_iter().map(|r| Reason { span: Some(value.span.clone()), ..r }));
            }
        } else if name == "PATH" && is_open_to_all(&value.text)
            || name == "path" && script.dialect == Dialect::Zsh && is_list_open_to_all(&value.raw)
        {
            let why = "programs are looked for first where anybody may have put one";
            found.push(reason(Level::Caution, "code", &value.raw, value.span.clone(), why));
        } else if name == "PATH" && script.dialect != Dialect::PowerShell && is_relative(&value.text) {
            let why = "programs are looked for in whatever folder one happens to be in";
            found.push(reason(Level::Caution, "code", &value.raw, value.span.clone(), why));
        } else if kind == Some(Variable::Steers) && name != "PATH" && !script.assignments.contains(assignment) {
            let why = format!("{name} says where the program finds code or what its options are");
            found.push(reason(Level::Caution, "code", &value.raw, value.span.clone(), why));
        } else if kind == Some(Variable::Writes) && is_path(&value.text) {
            let why = format!("with {name} set, something is added to {}", value.text);
            found.push(reason(Level::Caution, "overwrite", &value.raw, value.span.clone(), why));
        } else if kind == Some(Variable::Loads) {
            let why = format!("with {name} set, programs run code that is not theirs");
            found.push(reason(Level::Danger, "code", &value.raw, value.span.clone(), why));
        } else if kind == Some(Variable::Runs) && !value.text.is_empty() {
            // `|lesspipe %s`: LESSOPEN may begin with a bar
            let inner = assess(&super::parse(value.text.trim_start_matches('|'), script.dialect));
            // an exported command runs later, and `EDITOR=vim` is harmless
            let exported = script.assignments.contains(assignment);
            // a deletion at each prompt goes unnoticed
            let each_time = |r: Reason| match (name, r.effect.as_str()) {
                ("PROMPT_COMMAND", "delete") => Reason { level: Level::Danger, ..r },
                _ => r,
            };
            let idle = |r: &Reason| exported && matches!(r.effect.as_str(), "code" | "unknown");
            let reasons = inner.reasons.into_iter().filter(|r| !idle(r));
            found.extend(reasons.map(each_time).map(|r| Reason { span: Some(value.span.clone()), ..r }));
        }
    }
    for (construct, span) in &script.constructs {
        if *construct == super::parse::Construct::MethodCall {
            let token = script.text.get(span.clone()).unwrap_or_default();
            let lower = token.to_ascii_lowercase();
            if keeps::is_pure_method(token) {
                continue;
            }
            if lower.contains("directory]::delete(") || lower.contains("file]::delete(") && lower.contains("windows") {
                found.push(reason(
                    Level::Danger,
                    "delete",
                    token,
                    span.clone(),
                    "it deletes a folder with all below it",
                ));
                continue;
            }
            found.push(reason(
                Level::Caution,
                "code",
                token,
                span.clone(),
                "it calls a method whose effects cannot be foreseen",
            ));
        }
    }
    if let Some(span) = script.errors.first() {
        // at the beginning of a command the grammar takes braces for a block
        let words = script.text.split_whitespace();
        found.extend(words.flat_map(|word| brace_reasons(script, word, &[], span)));
        let token: String = script.error_text(span).0.chars().take(40).collect();
        found.push(reason(
            Level::Caution,
            "unknown",
            &token,
            span.clone(),
            "it cannot be read as a whole, so its effects cannot be foreseen",
        ));
    }
    found
}
