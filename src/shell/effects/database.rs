//! Database clients: reads the statements in their options, their operands and on standard input.

use super::kind::Kind;
use super::parsed_args::ParsedArgs;
use super::row::{Database, Program};
use super::table::{self, canonical};
use crate::embedded::sql::{self, Action};
use crate::parse::{Invocation, Script};
use crate::safety::stdin_texts;

/// Returns the actions of the statements given to a client, each with the index of the word that contains it (0 for
/// standard input).
pub(crate) fn actions(script: &Script, index: usize) -> Vec<(Action, usize)> {
    let command = &script.commands[index];
    let dialect = script.dialect_of(command);
    let known = command.key().and_then(|key| table::program(&canonical(&key, dialect), dialect));
    let Some(program) = known.filter(|p| p.database.is_some()) else { return Vec::new() };
    statements(script, index, program, &ParsedArgs::parse(command, program))
}

/// Returns the effect of a command that is a database client; `None` if it changes nothing that persists.
pub(super) fn effect(
    script: &Script,
    index: usize,
    program: &Program,
    read: &ParsedArgs<'_>,
    wraps: bool,
) -> Option<Kind> {
    program.database?;
    if program.only_shows(read) || in_memory(read) || program.asks.iter().any(|shape| shape.fits(&read.line)) {
        return None;
    }
    let actions = statements(script, index, program, read);
    let any = |test: fn(&Action) -> bool| actions.iter().any(|(action, _)| test(action));
    if actions.is_empty() {
        // statements from a file or a pipe are not in the command; interactive input is typed by the user
        let command = &script.commands[index];
        let fed = command.stdin_pipe
            || command.inside.is_some()
            || command.redirects.iter().chain(&script.redirects).any(|r| r.operator.contains('<'));
        return (!wraps).then_some(if fed { Kind::Run } else { Kind::Start });
    }
    Some(match () {
        () if any(|d| *d == Action::Runs) => Kind::Run,
        () if any(|d| matches!(d, Action::Changes | Action::Destroys(_))) => Kind::System,
        () => Kind::Fetch,
    })
}

/// True for `sqlite3 :memory:`, whose data ends with the program.
fn in_memory(read: &ParsedArgs<'_>) -> bool {
    read.operands.first().is_some_and(|o| matches!(o.text(), ":memory:" | "file::memory:"))
}

fn statements(script: &Script, index: usize, program: &Program, read: &ParsedArgs<'_>) -> Vec<(Action, usize)> {
    let command = &script.commands[index];
    let Some(database) = program.database else { return Vec::new() };
    if in_memory(read) {
        return Vec::new();
    }
    let at = |word: &crate::Word| command.words.iter().position(|w| w.span == word.span).unwrap_or(0);
    let mut found = Vec::new();
    for value in read.values.iter().filter(|v| program.says.contains(&v.of)) {
        found.extend(actions_of(database, value.text()).into_iter().map(|action| (action, at(value.word))));
    }
    if let Some(skip) = program.says_after {
        let operands: Vec<_> = read.operands.iter().skip(skip).collect();
        if database == Database::Redis && !operands.is_empty() {
            let words: Vec<&str> = operands.iter().map(|o| o.text()).collect();
            let deletes = words[0].eq_ignore_ascii_case("del") || words[0].eq_ignore_ascii_case("unlink");
            let all = deletes && all_keys(script, index, command);
            let action = if all { Action::Destroys("all keys".to_owned()) } else { redis(&words) };
            found.push((action, at(operands[0].word)));
        } else {
            for operand in operands {
                found.extend(actions_of(database, operand.text()).into_iter().map(|action| (action, at(operand.word))));
            }
        }
    }
    if found.is_empty() {
        let texts = stdin_texts(script, index);
        found.extend(texts.iter().flat_map(|text| actions_of(database, text)).map(|action| (action, 0)));
    }
    if found.is_empty() && database == Database::Sql && command.stdin_pipe && generates_losses(script, index) {
        found.push((Action::Destroys("what the statements name that are made there".to_owned()), 0));
    }
    found
}

/// True if the piped input is made of statements that destroy data: `mysqldump --add-drop-table | grep DROP | mysql`.
fn generates_losses(script: &Script, index: usize) -> bool {
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

/// True if `xargs` or a substitution passes all keys of the database to the command.
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

fn actions_of(database: Database, text: &str) -> Vec<Action> {
    match database {
        Database::Sql => sql::actions(text),
        Database::Mongo => vec![mongo(text)],
        Database::Redis => text.lines().map(|line| redis(&line.split_whitespace().collect::<Vec<_>>())).collect(),
    }
}

/// Classifies a Redis command.
fn redis(words: &[&str]) -> Action {
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
    // a script that the server runs
    let scripted = words.first().is_some_and(|w| w.eq_ignore_ascii_case("eval"));
    if scripted && words.iter().any(|w| w.to_ascii_lowercase().contains("flush")) {
        return Action::Destroys("everything in the data store".to_owned());
    }
    let word = |at: usize| words.get(at).map(|w| w.to_ascii_lowercase()).unwrap_or_default();
    match (word(0).as_str(), word(1).as_str(), word(2).as_str()) {
        ("", ..) => Action::Reads,
        ("flushall", ..) => Action::Destroys("everything in the data store".to_owned()),
        ("flushdb", ..) => Action::Destroys("all keys of the database".to_owned()),
        ("shutdown" | "replicaof" | "slaveof", ..) => Action::Destroys("the running data store".to_owned()),
        ("cluster", "reset", _) => Action::Destroys("the node's part of the cluster".to_owned()),
        // these set the files that the server writes: attacks use them to overwrite other files
        ("config", "set", "dir" | "dbfilename") => Action::Destroys("the files that it writes from then on".to_owned()),
        ("config" | "client" | "slowlog" | "acl" | "latency" | "command" | "cluster", verb, _) => match verb {
            "get" | "list" | "info" | "len" | "whoami" | "doctor" | "nodes" | "count" | "docs" | "" => Action::Reads,
            _ => Action::Changes,
        },
        (verb, ..) if READS.contains(&verb) => Action::Reads,
        _ => Action::Changes,
    }
}

/// Classifies a script for MongoDB's shell by the methods that it calls.
fn mongo(text: &str) -> Action {
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
            "dropDatabase" => return Action::Destroys("the whole database".to_owned()),
            "dropAllUsers" | "dropAllRoles" | "dropAllUsersFromDatabase" => {
                return Action::Destroys("all accounts of the database".to_owned());
            }
            "drop" => return Action::Destroys("a whole collection".to_owned()),
            "deleteMany" | "remove" if everything => {
                return Action::Destroys("all documents of a collection".to_owned());
            }
            "updateMany" if everything => {
                return Action::Destroys("a field in all documents of a collection".to_owned());
            }
            "shutdownServer" => return Action::Destroys("the running server".to_owned()),
            _ => {}
        }
    }
    if text.contains("dropDatabase") {
        return Action::Destroys("the whole database".to_owned());
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
    if reads && (shows || text.contains('(')) { Action::Reads } else { Action::Changes }
}
