//! Judges code of another language by the texts in it, where it does more than compute: a command, a statement of a database, a
//! path or an address says what it is for, by whatever name the code calls what does it.

use super::secrets::is_secret;
use super::{Level, Reason, assess, reason, startup};
use crate::Dialect;
use crate::effects::{Place, place_of};
use crate::embedded::sql;
use crate::embedded::texts::texts;
use std::ops::Range;

/// Names that take a file away, put another in its place, or change whose it is, in any of the languages.
const HARMS: [&str; 30] = [
    "unlink",
    "rmdir",
    "rmtree",
    "rm_rf",
    "rm_r",
    "os.remove",
    "os.rename",
    "os.replace",
    "file.remove",
    "file.rename",
    "File.delete",
    "File.rename",
    "FileUtils.",
    "fs.rm",
    "unlinkSync",
    "renameSync",
    "rename ",
    "rename(",
    "shutil.move",
    "file delete",
    "file rename",
    "delete-directory",
    "delete-file",
    "delete every",
    "chown",
    "chmod",
    "truncate",
    "symlink",
    "rimraf",
    "removeSync",
];

/// Signs that something is written.
const WRITES: [&str; 17] = [
    "'w",
    "\"w",
    "'a'",
    "\"a\"",
    "'a+",
    "\"a+",
    ">>",
    "'>",
    "\">",
    "write",
    "append",
    "binwrite",
    "put_contents",
    "copyfile",
    "dump(",
    "puts(",
    "print ",
];

/// Signs that another machine is reached.
const REACHES: [&str; 22] = [
    "://",
    "socket",
    "Socket",
    "gethostby",
    "getaddrinfo",
    "requests",
    "urllib",
    "urlopen",
    "http",
    "smtplib",
    "mail(",
    "Net::",
    "LWP",
    "fetch(",
    "dns.",
    "boto3",
    "paramiko",
    "ftplib",
    "Mechanize",
    "axios",
    "inet",
    "dgram",
];

/// Names that run a text as code.
const RUNS_TEXT: [&str; 10] = [
    "eval",
    "exec(",
    "instance_eval",
    "loadstring",
    "load(",
    "Function(",
    "source(",
    "runInThisContext",
    "execfile",
    "compile(",
];

/// Names that empty a store through a library.
const EMPTIES: [&str; 14] = [
    "drop_database",
    "dropDatabase",
    "drop_collection",
    "drop_table",
    "dropTable",
    "drop_all",
    "dropAllTables",
    "flushall",
    "flushdb",
    "delete_bucket",
    "delete_db_instance",
    "terminate_instances",
    "object_versions.delete",
    "delete_many({})",
];

/// Names that make a text unreadable without a key.
const ENCRYPTS: [&str; 8] =
    ["encrypt", "createCipher", "Fernet", "OpenSSL::Cipher", "AES.new", "openssl_encrypt", "Crypt::", "EVP_"];

/// Signs that it goes through a folder with all below it.
const WALKS: [&str; 12] = [
    "rglob",
    "walk",
    "**/",
    "/**",
    "recursive",
    "Find",
    "find(",
    "readdir",
    "each_child",
    "RecursiveDirectoryIterator",
    "list.files",
    "scandir",
];

/// The longest text that is taken for a command, bytes.
const LONGEST: usize = 2000;

/// True for code that reaches another machine.
pub(super) fn reaches(code: &str) -> bool {
    REACHES.iter().any(|sign| code.contains(sign))
}

/// True if each file that is found is opened to be written from its beginning: `open(f, 'w')`.
fn empties_each(code: &str) -> bool {
    let squeezed: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    squeezed.split("open(").skip(1).any(|rest| {
        let name = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        name.len() < rest.len() && [",'w", ",\"w"].iter().any(|mode| name.starts_with(mode))
    })
}

/// What the texts in a program say that it does, if that is a danger.
pub(super) fn reasons(code: &str, token: &str, span: &Range<usize>) -> Vec<Reason> {
    let shown: String = token.chars().take(60).collect();
    let say = |effect: &str, why: String, scope: &str| {
        reason(Level::Danger, effect, &shown, span.clone(), why).reaching(scope)
    };
    let has = |signs: &[&str]| signs.iter().any(|sign| code.contains(sign));
    let texts = texts(code);
    let mut found = Vec::new();
    for text in &texts {
        found.extend(command(text).map(|inner| say(&inner.effect, inner.why.clone(), text)));
        if let Some(what) = destroys(text) {
            found.push(say("delete", format!("it loses {what}, and only a backup brings that back"), &what));
        }
        if has(&WRITES) && startup::runs_by_itself(text) {
            found.push(say(
                "persistence",
                format!("the code in it writes to {text}, which runs by itself or lets others in"),
                text,
            ));
        }
        if is_secret(text) && reaches(code) {
            found.push(say("network", format!("the code in it reads {text} and reaches another machine"), text));
        }
    }
    if has(&EMPTIES) {
        found.push(say(
            "delete",
            "the code in it empties a store, and only a backup brings that back".to_owned(),
            "a whole store",
        ));
    }
    if has(&ENCRYPTS) && has(&WALKS) && has(&WRITES) {
        found.push(say(
            "overwrite",
            "the code in it makes files unreadable that it finds".to_owned(),
            "every file that it finds",
        ));
    }
    if has(&WALKS) && empties_each(code) {
        found.push(say(
            "overwrite",
            "the code in it empties each file that it finds".to_owned(),
            "every file that it finds",
        ));
    }
    let wanted = |text: &&str| {
        matches!(place_of(text), Place::Root | Place::System | Place::Home | Place::Device | Place::Configuration)
    };
    let bare = words(code);
    if has(&HARMS)
        && let Some(path) =
            texts.iter().flat_map(|text| text.split_whitespace()).chain(bare.iter().copied()).find(wanted)
    {
        found.push(say("delete", format!("the code in it takes away or changes what lies in {path}"), path));
    }
    if has(&RUNS_TEXT) && texts.iter().any(|text| text.contains("://") && !text.contains(' ')) {
        let all = "all that you may do on this machine";
        found.push(say("network-to-shell", "the code in it runs what another machine says".to_owned(), all));
    }
    found
}

/// The danger of a text as a command, if it is one.
fn command(text: &str) -> Option<Reason> {
    // what is put behind it is computed; a line of a table of jobs has its times first
    let whole = if text.ends_with(' ') { format!("{text}\"$x\"") } else { text.trim().to_owned() };
    let text = if whole.starts_with(['*', '@']) { startup::scheduled(&whole).unwrap_or(&whole) } else { &whole };
    if !text.contains(' ') || text.len() > LONGEST {
        return None;
    }
    let script = crate::parse(text, Dialect::Sh);
    assess(&script).reasons.into_iter().find(|r| r.level == Level::Danger)
}

/// The data that a text loses as a statement of SQL, if it is one.
fn destroys(text: &str) -> Option<String> {
    let start: String = text.trim_start().chars().take(9).collect::<String>().to_lowercase();
    if !["drop ", "truncate ", "delete "].iter().any(|verb| start.starts_with(verb)) {
        return None;
    }
    sql::deeds(text).into_iter().find_map(|deed| if let sql::Deed::Destroys(what) = deed { Some(what) } else { None })
}

/// The words of code in a language that needs no quotes: `file delete -force /home`.
fn words(code: &str) -> Vec<&str> {
    let words = code.split(|c: char| c.is_whitespace() || "\"'()[]{},;=".contains(c));
    words.filter(|word| word.len() > 1 && word.starts_with(['/', '~'])).collect()
}
