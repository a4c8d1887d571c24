//! Classifies SQL, and the commands of its shells: reading, changing, or losing all of something.

/// The action of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// It only shows something.
    Reads,
    /// It changes rows or settings, or it is unknown.
    Changes,
    /// It loses all of something, described for the user: `all rows of users`.
    Destroys(String),
    /// It passes a command to a shell.
    Runs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A keyword or a name, in upper case, and as written.
    Name(String, String),
    /// A string literal or a number.
    Value(String),
    Mark(char),
}

/// Returns the action of each statement of a text.
pub(crate) fn actions(text: &str) -> Vec<Action> {
    let mut found = Vec::new();
    let mut rest = String::new();
    for line in text.lines() {
        match line.trim_start() {
            own if own.starts_with(['\\', '.']) && own.len() > 1 => found.push(client_command(own)),
            _ => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
    }
    let tokens = tokens(&rest);
    let statements: Vec<&[Token]> = tokens.split(|t| *t == Token::Mark(';')).filter(|s| !s.is_empty()).collect();
    let first = |s: &&[Token], words: &[&str]| keyword(s, 0).is_some_and(|k| words.contains(&k));
    // a transaction that is rolled back loses nothing
    let in_transaction = statements.first().is_some_and(|s| first(s, &["BEGIN", "START"]));
    let rolled_back = in_transaction
        && statements.last().is_some_and(|s| first(s, &["ROLLBACK"]))
        && !statements.iter().any(|s| first(s, &["COMMIT", "END"]));
    found.extend(statements.into_iter().map(classify).map(|action| match action {
        Action::Destroys(_) if rolled_back => Action::Changes,
        action => action,
    }));
    found
}

/// Classifies a command of psql or sqlite3: `\dt`, `.schema`, `\! ls`.
fn client_command(line: &str) -> Action {
    let name: String =
        line[1..].chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '!' | '?' | '+')).collect();
    match name.trim_end_matches('+') {
        "!" | "shell" | "system" | "i" | "ir" | "include" | "read" | "gexec" | "load" => Action::Runs,
        "o" | "out" | "g" | "w" | "write" | "output" | "once" | "import" | "restore" | "backup" | "save"
        | "password" | "clone" => Action::Changes,
        "copy" if line.to_ascii_lowercase().contains("program") => Action::Runs,
        "copy" => Action::Changes,
        _ => Action::Reads,
    }
}

fn keyword(tokens: &[Token], at: usize) -> Option<&str> {
    match tokens.get(at)? {
        Token::Name(upper, _) => Some(upper),
        _ => None,
    }
}

fn has(tokens: &[Token], word: &str) -> bool {
    tokens.iter().any(|t| matches!(t, Token::Name(upper, _) if upper == word))
}

fn object_name(tokens: &[Token], from: usize) -> String {
    const FILL: [&str; 8] = ["IF", "EXISTS", "ONLY", "TABLE", "LOW_PRIORITY", "QUICK", "IGNORE", "FROM"];
    let mut name = String::new();
    for token in tokens.iter().skip(from) {
        match token {
            Token::Name(upper, _) if name.is_empty() && FILL.contains(&upper.as_str()) => {}
            Token::Name(_, own) if name.is_empty() || name.ends_with('.') => name.push_str(own),
            Token::Value(own) if name.is_empty() || name.ends_with('.') => name.push_str(own),
            Token::Mark('.') => name.push('.'),
            _ => break,
        }
    }
    name
}

fn classify(statement: &[Token]) -> Action {
    let Some(first) = keyword(statement, 0) else {
        return match statement.first() {
            Some(Token::Mark('(')) => classify(&statement[1..]),
            _ => Action::Changes,
        };
    };
    match first {
        "EXPLAIN" | "DESCRIBE" | "DESC" => {
            // the explained statement is run only with ANALYZE
            let inner = statement.iter().position(|t| {
                matches!(t, Token::Name(upper, _) if matches!(upper.as_str(), "DELETE" | "UPDATE" | "INSERT" | "MERGE" | "WITH"))
            });
            match inner.filter(|at| has(&statement[..*at], "ANALYZE")) {
                Some(at) => classify(&statement[at..]),
                None => Action::Reads,
            }
        }
        "SELECT" | "VALUES" | "WITH" | "TABLE" => {
            let changing = |t: &Token| matches!(t, Token::Name(upper, _) if matches!(upper.as_str(), "DELETE" | "UPDATE" | "INSERT" | "MERGE"));
            if first == "WITH"
                && let Some(at) = statement.iter().position(changing)
            {
                return classify(&statement[at..]);
            }
            let acting = |t: &Token| {
                matches!(t, Token::Name(upper, _) if upper == "INTO" || upper == "OUTFILE" || upper == "DUMPFILE"
                    || upper.starts_with("PG_TERMINATE") || upper.starts_with("LO_") || upper.starts_with("DBLINK")
                    || upper.starts_with("SYS_") || upper == "LOAD_EXTENSION" || upper == "WRITEFILE")
            };
            if statement.iter().any(acting) { Action::Changes } else { Action::Reads }
        }
        "SHOW" | "USE" | "HELP" | "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "LIST" | "PRINT" | "STATUS"
        | "EXISTS" => Action::Reads,
        "PRAGMA" => match statement.contains(&Token::Mark('=')) {
            true => Action::Changes,
            false => Action::Reads,
        },
        "DROP" => classify_drop(statement),
        "TRUNCATE" => Action::Destroys(format!("all rows of {}", object_name(statement, 1))),
        "DELETE" | "UPDATE" if !is_narrowed(statement) => {
            let rows = if first == "DELETE" { "all rows of" } else { "a column in every row of" };
            Action::Destroys(format!("{rows} {}", object_name(statement, 1)))
        }
        "ALTER" => {
            let drop = statement.iter().position(|t| matches!(t, Token::Name(upper, _) if upper == "DROP"));
            let what = drop.and_then(|at| keyword(statement, at + 1)).unwrap_or("");
            let harmless = [
                "CONSTRAINT",
                "INDEX",
                "KEY",
                "PRIMARY",
                "FOREIGN",
                "CHECK",
                "DEFAULT",
                "NOT",
                "EXPRESSION",
                "IDENTITY",
                "",
            ];
            match drop {
                Some(_) if keyword(statement, 1) == Some("TABLE") && !harmless.contains(&what) => {
                    Action::Destroys(format!("a column of {}", object_name(statement, 2)))
                }
                _ => Action::Changes,
            }
        }
        "COPY" if has(statement, "PROGRAM") => Action::Runs,
        "COPY" if has(statement, "STDOUT") => Action::Reads,
        "EXEC" | "EXECUTE" if has(statement, "XP_CMDSHELL") => Action::Runs,
        _ => Action::Changes,
    }
}

/// Classifies a DROP: dropping something that holds data destroys it, while an index or a view can be recreated.
fn classify_drop(statement: &[Token]) -> Action {
    const HOLDS_DATA: [&str; 14] = [
        "DATABASE",
        "SCHEMA",
        "TABLE",
        "TABLES",
        "KEYSPACE",
        "TABLESPACE",
        "COLLECTION",
        "USER",
        "ROLE",
        "OWNED",
        "MEASUREMENT",
        "SERIES",
        "LOGIN",
        "BUCKET",
    ];
    let what = keyword(statement, 1).unwrap_or("");
    if HOLDS_DATA.contains(&what) {
        Action::Destroys(format!("the {} {}", what.to_ascii_lowercase(), object_name(statement, 2)))
    } else {
        Action::Changes
    }
}

/// True if a WHERE or a LIMIT excludes rows; `WHERE 1 = 1` and `WHERE true` do not.
fn is_narrowed(statement: &[Token]) -> bool {
    if has(statement, "LIMIT") {
        return true;
    }
    let Some(at) = statement.iter().position(|t| matches!(t, Token::Name(upper, _) if upper == "WHERE")) else {
        return false;
    };
    let test: Vec<&Token> = statement[at + 1..].iter().filter(|t| !matches!(t, Token::Mark('(' | ')'))).collect();
    match test.as_slice() {
        [] => false,
        [Token::Value(value)] => matches!(value.as_str(), "0"),
        [Token::Name(upper, _)] => upper != "TRUE",
        [left, Token::Mark('='), right] => left != right,
        _ => true,
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    let until = |from: usize, end: &[char]| {
        let mut to = from;
        while to < chars.len() && !chars[to..].starts_with(end) {
            to += 1;
        }
        to
    };
    while let Some(c) = chars.get(at).copied() {
        match c {
            '-' if chars.get(at + 1) == Some(&'-') => at = until(at, &['\n']),
            '#' => at = until(at, &['\n']),
            // MySQL runs the content of `/*!`
            '/' if chars[at..].starts_with(&['/', '*']) && chars.get(at + 2) != Some(&'!') => {
                at = until(at + 2, &['*', '/']) + 2
            }
            '/' if chars[at..].starts_with(&['/', '*', '!']) => {
                // skips the minimum version
                at += 3 + chars[at + 3..].iter().take_while(|c| c.is_ascii_digit()).count();
            }
            '*' if chars.get(at + 1) == Some(&'/') => at += 2,
            '\'' | '"' | '`' => {
                let end = until(at + 1, &[c]);
                let inner: String = chars[at + 1..end.min(chars.len())].iter().collect();
                found.push(if c == '\'' { Token::Value(inner) } else { Token::Name(format!("{c}{inner}"), inner) });
                at = end + 1;
            }
            '$' if chars.get(at + 1) == Some(&'$') => {
                let end = until(at + 2, &['$', '$']);
                found.push(Token::Value("$$".to_owned()));
                at = end + 2;
            }
            c if c.is_ascii_digit() => {
                let end = (at..chars.len())
                    .find(|i| !chars[*i].is_ascii_alphanumeric() && chars[*i] != '.')
                    .unwrap_or(chars.len());
                found.push(Token::Value(chars[at..end].iter().collect()));
                at = end;
            }
            c if c.is_alphanumeric() || c == '_' || c == '$' || c == '@' => {
                let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '@');
                let end = (at..chars.len()).find(|i| !inside(chars[*i])).unwrap_or(chars.len());
                let own: String = chars[at..end].iter().collect();
                found.push(Token::Name(own.to_uppercase(), own));
                at = end;
            }
            c if c.is_whitespace() => at += 1,
            c => {
                found.push(Token::Mark(c));
                at += 1;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(text: &str) -> Action {
        let rank = |d: &Action| match d {
            Action::Reads => 0,
            Action::Changes => 1,
            Action::Runs => 2,
            Action::Destroys(_) => 3,
        };
        actions(text).into_iter().max_by_key(rank).unwrap_or(Action::Changes)
    }

    #[test]
    fn statements_are_classified_by_words_outside_of_quotes() {
        for text in [
            "select 'drop table users'",
            "SELECT * FROM logs WHERE msg LIKE '%delete from%' -- drop table x",
            "/* drop table x */ select 1",
            "explain delete from users",
            "\\dt",
            ".schema",
            "with a as (select 1) select * from a",
            "begin; select 1; rollback",
            "copy t to stdout",
            "pragma table_info(t)",
        ] {
            assert_eq!(worst(text), Action::Reads, "{text}");
        }
        for text in [
            "delete from t where id = 3",
            "update t set a = 1 where b = 2",
            "insert into t values (1)",
            "drop index i",
            "alter table t add column c int",
            "alter table t drop constraint c",
            "begin; delete from t; rollback;",
            "delete from t limit 10",
            "create table t(a)",
            "vacuum",
        ] {
            assert_eq!(worst(text), Action::Changes, "{text}");
        }
        for (text, what) in [
            ("drop table if exists users cascade", "the table users"),
            ("DELETE FROM users;", "all rows of users"),
            ("delete from app.users where 1=1", "all rows of app.users"),
            ("truncate table t", "all rows of t"),
            ("Truncate t", "all rows of t"),
            ("update users set admin = true", "a column in every row of users"),
            ("alter table users drop column email", "a column of users"),
            ("select 1; drop database app", "the database app"),
            ("explain analyze delete from t", "all rows of t"),
            ("with x as (select 1) delete from t", "all rows of t"),
            ("/*!50000 drop table t */", "the table t"),
            ("delete from \"My Table\" where true", "all rows of My Table"),
        ] {
            assert_eq!(worst(text), Action::Destroys(what.to_owned()), "{text}");
        }
        assert_eq!(worst("copy t from program 'sh x'"), Action::Runs);
        assert_eq!(worst("\\! rm -rf /"), Action::Runs);
    }

    #[test]
    fn unterminated_text_terminates() {
        for text in ["'", "/*", "$$", "\"", "--", "", ";;;", "delete", "drop", "é'漢"] {
            let _ = actions(text);
        }
    }
}
