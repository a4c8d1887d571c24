//! Repairs invalid values of options and operands: names of users and services, expressions, ports.

use super::complaint::{self, Kind};
use super::near::nearest;
use super::{Case, Class, Repair, repair};
use caro_base::files;
use caro_shell::{Invocation, Word};
use std::path::Path;

/// Most bytes of the lists of users and groups.
const MAX_LIST: u64 = 4 << 20;
/// The folders of systemd's unit files.
const UNIT_FOLDERS: [&str; 3] = ["/etc/systemd/system", "/lib/systemd/system", "/usr/lib/systemd/system"];
/// Letters of `tar` that name a compression. Without one, `tar` detects it.
const COMPRESSIONS: [char; 4] = ['z', 'j', 'J', 'Z'];

/// Repairs an invalid value, a wrong compression, a missing operand, or an open `[`.
pub(super) fn invalid(case: &Case) -> Option<Repair> {
    near_value(case).or_else(|| compression(case)).or_else(|| operand(case)).or_else(|| bracket(case))
}

/// Replaces a name that does not exist by the nearest one that does.
fn near_value(case: &Case) -> Option<Repair> {
    let list = |file: &str| -> Vec<String> {
        let text = files::read_text(Path::new(file), MAX_LIST).unwrap_or_default();
        text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned()).collect()
    };
    let units = || {
        let names = UNIT_FOLDERS.iter().flat_map(|folder| case.facts.names(Path::new(folder), false));
        names.filter_map(|name| name.strip_suffix(".service").map(str::to_owned)).collect()
    };
    for kind in [Kind::BadValue, Kind::NoUser, Kind::NoGroup, Kind::NoUnit] {
        let Some(complaint) = case.first(kind) else { continue };
        let names = match kind {
            Kind::BadValue => complaint::offers(case.stderr),
            Kind::NoUser => list("/etc/passwd"),
            Kind::NoGroup => list("/etc/group"),
            _ => units(),
        };
        let Some(meant) = nearest(&complaint.name, names.iter().map(String::as_str), |_| false) else { continue };
        let Some(word) = case.words().find(|word| has_part(word, &complaint.name)) else { continue };
        let why = format!("there is no `{}`, there is `{meant}`", complaint.name);
        return repair(Class::Value, case.edits().replace(word, &word.raw.replacen(&complaint.name, meant, 1)), why);
    }
    None
}

/// True if a word is that name, or has it as a part between `=` and `:`.
fn has_part(word: &Word, name: &str) -> bool {
    word.text.split(['=', ':']).any(|part| part == name || part.strip_suffix(".service") == Some(name))
}

/// `tar xzf a.tar.bz2`.
fn compression(case: &Case) -> Option<Repair> {
    case.first(Kind::WrongCompression)?;
    let tar = case.commands().find(|command| command.name() == Some("tar"))?;
    let letters = tar.args().first().filter(|word| {
        let bundle = word.text.strip_prefix('-').unwrap_or(&word.text);
        !bundle.starts_with('-') && bundle.contains(COMPRESSIONS) && bundle.chars().all(|c| c.is_ascii_alphabetic())
    })?;
    let without: String = letters.raw.chars().filter(|c| !COMPRESSIONS.contains(c)).collect();
    repair(
        Class::Value,
        case.edits().replace(letters, &without),
        "it is packed in another way, which tar finds out itself",
    )
}

/// `ls | rm` becomes `ls | xargs rm`; `cp dir/a` becomes `cp dir/a .`.
fn operand(case: &Case) -> Option<Repair> {
    if let Some(complaint) = case.first(Kind::MissingDestination) {
        let command = case.complainer(&complaint.line)?;
        let is_elsewhere = complaint.name.contains('/');
        let edits = case.edits().insert_after(command.words.last()?, " .");
        return if is_elsewhere { repair(Class::Value, edits, "it has to be told where to") } else { None };
    }
    let complaint = case.first(Kind::MissingOperand)?;
    let piped = |command: &&Invocation| command.name() == Some(complaint.name.as_str()) && command.stdin_pipe;
    let command = case.commands().find(piped)?;
    let why = format!("{} takes its files from its words, not from a pipe", complaint.name);
    repair(Class::Value, case.edits().insert_before(command.words.first()?, "xargs "), why)
}

/// `[ 1 -eq 1`.
fn bracket(case: &Case) -> Option<Repair> {
    case.first(Kind::OpenBracket)?;
    let test = case.commands().find(|command| command.words.first().is_some_and(|word| word.text == "["))?;
    repair(Class::Value, case.edits().insert_after(test.words.last()?, " ]"), "`[` ends with `]`")
}

/// `sed 's/a/b'`: the last delimiter is missing.
pub(super) fn expression(case: &Case) -> Option<Repair> {
    case.first(Kind::OpenExpression)?;
    let sed = case.commands().find(|command| command.name() == Some("sed"))?;
    let word = sed.args().iter().find(|word| {
        let mut letters = word.text.chars();
        let delimiter = if letters.next().is_some_and(|c| "sy".contains(c)) { letters.next() } else { None };
        delimiter.is_some_and(|d| !d.is_alphanumeric() && word.text.matches(d).count() == 2)
    })?;
    let delimiter = word.text.chars().nth(1)?;
    let end = word.raw.trim_end_matches(['\'', '"']).len();
    let closed = format!("{}{delimiter}{}", &word.raw[..end], &word.raw[end..]);
    repair(Class::Value, case.edits().replace(word, &closed), format!("the expression lacks its last {delimiter}"))
}

/// Suggests a command that shows which process listens on the port.
pub(super) fn port(case: &Case) -> Option<Repair> {
    let complaint = case.first(Kind::PortUsed)?;
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<u16>().ok().filter(|port| *port > 0)
    };
    // `0.0.0.0:8080`, `:::3000`
    let in_complaint = complaint.line.split(':').skip(1).filter_map(number).last();
    let in_command =
        || case.words().filter_map(|word| word.text.split([':', '=']).filter_map(number).next_back()).last();
    let port = in_complaint.or_else(in_command)?;
    let command = match case.facts.has_program("ss") {
        true => format!("ss -ltnp 'sport = :{port}'"),
        false => format!("lsof -nP -iTCP:{port} -sTCP:LISTEN"),
    };
    let why = format!("another process listens on port {port}: this shows which, end it or take another port");
    Some(Repair { command, why, class: Class::Port })
}
