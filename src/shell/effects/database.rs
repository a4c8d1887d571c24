//! The clients of databases: reads what they are told to do in their options, their operands and on standard input.

use super::kind::Kind;
use super::reading::Reading;
use super::row::{Database, Program};
use super::table::{self, canonical};
use crate::embedded::sql::{self, Deed};
use crate::parse::{Invocation, Script};
use crate::safety::given;

/// The statements that a client is told, each with the index of the word that tells it (0 for standard input).
pub(crate) fn deeds(script: &Script, index: usize) -> Vec<(Deed, usize)> {
    let command = &script.commands[index];
    let dialect = script.dialect_of(command);
    let known = command.key().and_then(|key| table::program(&canonical(&key, dialect), dialect));
    let Some(program) = known.filter(|p| p.database.is_some()) else { return Vec::new() };
    told(script, index, program, &Reading::of(command, program))
}

/// The effect of a client that is one; none where nothing outlives it.
pub(super) fn effect(
    script: &Script,
    index: usize,
    program: &Program,
    read: &Reading<'_>,
    wraps: bool,
) -> Option<Kind> {
    program.database?;
    if program.only_shows(read) || in_memory(read) || program.asks.iter().any(|shape| shape.fits(&read.line)) {
        return None;
    }
    let deeds = told(script, index, program, read);
    let any = |test: fn(&Deed) -> bool| deeds.iter().any(|(deed, _)| test(deed));
    if deeds.is_empty() {
        // what stands in a file or comes through a pipe is not in the command; what is typed is seen by who types it
        let command = &script.commands[index];
        let fed = command.stdin_pipe
            || command.inside.is_some()
            || command.redirects.iter().chain(&script.redirects).any(|r| r.operator.contains('<'));
        return (!wraps).then_some(if fed { Kind::Run } else { Kind::Start });
    }
    Some(match () {
        () if any(|d| *d == Deed::Runs) => Kind::Run,
        () if any(|d| matches!(d, Deed::Changes | Deed::Destroys(_))) => Kind::System,
        () => Kind::Fetch,
    })
}

/// `sqlite3 :memory:`: it is gone with the program.
fn in_memory(read: &Reading<'_>) -> bool {
    read.operands.first().is_some_and(|o| matches!(o.text(), ":memory:" | "file::memory:"))
}

fn told(script: &Script, index: usize, program: &Program, read: &Reading<'_>) -> Vec<(Deed, usize)> {
    let command = &script.commands[index];
    let Some(database) = program.database else { return Vec::new() };
    if in_memory(read) {
        return Vec::new();
    }
    let at = |word: &crate::Word| command.words.iter().position(|w| w.span == word.span).unwrap_or(0);
    let mut found = Vec::new();
    for value in read.values.iter().filter(|v| program.says.contains(&v.of)) {
        found.extend(deeds_of(database, value.text()).into_iter().map(|deed| (deed, at(value.word))));
    }
    if let Some(skip) = program.says_after {
        let said: Vec<_> = read.operands.iter().skip(skip).collect();
        if database == Database::Redis && !said.is_empty() {
            let words: Vec<&str> = said.iter().map(|o| o.text()).collect();
            let deletes = words[0].eq_ignore_ascii_case("del") || words[0].eq_ignore_ascii_case("unlink");
            let all = deletes && all_keys(script, index, command);
            let deed = if all { Deed::Destroys("all keys".to_owned()) } else { redis(&words) };
            found.push((deed, at(said[0].word)));
        } else {
            for operand in said {
                found.extend(deeds_of(database, operand.text()).into_iter().map(|deed| (deed, at(operand.word))));
            }
        }
    }
    if found.is_empty() {
        let said = given(script, index);
        found.extend(said.iter().flat_map(|text| deeds_of(database, text)).map(|deed| (deed, 0)));
    }
    if found.is_empty() && database == Database::Sql && command.stdin_pipe && makes_losses(script, index) {
        found.push((Deed::Destroys("what the statements name that are made there".to_owned()), 0));
    }
    found
}

/// True if what is piped into it makes statements that lose something: `mysqldump --add-drop-table | grep DROP | mysql`.
fn makes_losses(script: &Script, index: usize) -> bool {
    let mut at = index;
    for _ in 0..8 {
        let Some((before, feeder)) = script.commands.iter().enumerate().find(|(_, c)| c.feeds.contains(&at)) else {
            return false;
        };
        let loses = |text: &str| {
            let lower = text.to_ascii_lowercase();
            ["drop ", "truncate ", "delete from", "^drop", "drop-table"].iter().any(|word| lower.contains(word))
        };
        if feeder.args().iter().any(|w| loses(&w.text)) {
            return true;
        }
        at = before;
    }
    false
}

/// True if `xargs` or a substitution hands every key of the database over.
fn all_keys(script: &Script, index: usize, command: &Invocation) -> bool {
    let lists_all = |c: &Invocation| {
        let args: Vec<String> = c.args().iter().map(|w| w.text.to_ascii_lowercase()).collect();
        let pattern = args.iter().position(|a| a == "keys" || a == "--pattern").and_then(|at| args.get(at + 1));
        c.name() == Some("redis-cli")
            && args.iter().any(|a| a == "keys" || a == "--scan")
            && pattern.is_none_or(|p| p.chars().all(|c| c == '*'))
    };
    let handed = command.via.iter().any(|v| v == "xargs");
    let inside = |c: &Invocation| c.inside.is_some_and(|i| i.command == index);
    script.commands.iter().any(|c| lists_all(c) && (handed || inside(c)))
}

fn deeds_of(database: Database, text: &str) -> Vec<Deed> {
    match database {
        Database::Sql => sql::deeds(text),
        Database::Mongo => vec![mongo(text)],
        Database::Redis => text.lines().map(|line| redis(&line.split_whitespace().collect::<Vec<_>>())).collect(),
    }
}

/// The deed of a line of Redis.
fn redis(words: &[&str]) -> Deed {
    const READS: [&str; 40] = [
        "get",
        "mget",
        "keys",
        "scan",
        "info",
        "ping",
        "dbsize",
        "exists",
        "ttl",
        "pttl",
        "type",
        "strlen",
        "hget",
        "hgetall",
        "hkeys",
        "hlen",
        "hmget",
        "hvals",
        "hscan",
        "lrange",
        "llen",
        "lindex",
        "smembers",
        "scard",
        "sismember",
        "sscan",
        "zrange",
        "zcard",
        "zscore",
        "zrank",
        "zcount",
        "xrange",
        "xlen",
        "xinfo",
        "time",
        "lastsave",
        "role",
        "memory",
        "object",
        "monitor",
    ];
    // a script that the store runs
    let scripted = words.first().is_some_and(|w| w.eq_ignore_ascii_case("eval"));
    if scripted && words.iter().any(|w| w.to_ascii_lowercase().contains("flush")) {
        return Deed::Destroys("everything in the data store".to_owned());
    }
    let word = |at: usize| words.get(at).map(|w| w.to_ascii_lowercase()).unwrap_or_default();
    match (word(0).as_str(), word(1).as_str(), word(2).as_str()) {
        ("", ..) => Deed::Reads,
        ("flushall", ..) => Deed::Destroys("everything in the data store".to_owned()),
        ("flushdb", ..) => Deed::Destroys("all keys of the database".to_owned()),
        ("shutdown" | "replicaof" | "slaveof", ..) => Deed::Destroys("the running data store".to_owned()),
        ("cluster", "reset", _) => Deed::Destroys("the node's part of the cluster".to_owned()),
        // it is told where to write its files: that is how it is made to write others
        ("config", "set", "dir" | "dbfilename") => Deed::Destroys("the files that it writes from then on".to_owned()),
        ("config" | "client" | "slowlog" | "acl" | "latency" | "command" | "cluster", verb, _) => match verb {
            "get" | "list" | "info" | "len" | "whoami" | "doctor" | "nodes" | "count" | "docs" | "" => Deed::Reads,
            _ => Deed::Changes,
        },
        (verb, ..) if READS.contains(&verb) => Deed::Reads,
        _ => Deed::Changes,
    }
}

/// The deed of a script of MongoDB's shell, by the methods that it calls.
fn mongo(text: &str) -> Deed {
    const READS: [&str; 36] = [
        "find",
        "findOne",
        "count",
        "countDocuments",
        "estimatedDocumentCount",
        "aggregate",
        "distinct",
        "explain",
        "stats",
        "limit",
        "sort",
        "skip",
        "toArray",
        "pretty",
        "forEach",
        "map",
        "getCollectionNames",
        "getCollection",
        "getSiblingDB",
        "getIndexes",
        "serverStatus",
        "hostInfo",
        "version",
        "currentOp",
        "help",
        "status",
        "print",
        "printjson",
        "projection",
        "getName",
        "getMongo",
        "totalSize",
        "dataSize",
        "isMaster",
        "hello",
        "listDatabases",
    ];
    let calls = || {
        text.match_indices('(').map(|(at, _)| {
            let head = &text[..at];
            let start = head
                .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or(0, |i| i + head[i..].chars().next().map_or(1, char::len_utf8));
            let rest: String = text[at + 1..].chars().filter(|c| !c.is_whitespace()).take(4).collect();
            (&head[start..], rest)
        })
    };
    for (name, rest) in calls() {
        let everything = rest.starts_with(')') || rest.starts_with("{})") || rest.starts_with("{},");
        match name {
            "dropDatabase" => return Deed::Destroys("the whole database".to_owned()),
            "dropAllUsers" | "dropAllRoles" | "dropAllUsersFromDatabase" => {
                return Deed::Destroys("all accounts of the database".to_owned());
            }
            "drop" => return Deed::Destroys("a whole collection".to_owned()),
            "deleteMany" | "remove" if everything => return Deed::Destroys("all documents of a collection".to_owned()),
            "updateMany" if everything => return Deed::Destroys("a field in all documents of a collection".to_owned()),
            "shutdownServer" => return Deed::Destroys("the running server".to_owned()),
            _ => {}
        }
    }
    if text.contains("dropDatabase") {
        return Deed::Destroys("the whole database".to_owned());
    }
    let shown = [
        "listDatabases",
        "ping",
        "serverStatus",
        "buildInfo",
        "getParameter",
        "dbStats",
        "collStats",
        "hostInfo",
        "replSetGetStatus",
    ];
    let commands = shown.iter().any(|own| text.contains(own));
    let asks = |name: &str| matches!(name, "adminCommand" | "runCommand") && commands;
    let reads = calls().all(|(name, _)| name.is_empty() || READS.contains(&name) || asks(name));
    let shows = ["show ", "use ", "db"].iter().any(|word| text.trim_start().starts_with(word));
    if reads && (shows || text.contains('(')) { Deed::Reads } else { Deed::Changes }
}
