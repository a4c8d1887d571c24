//! Finds what programs of Python, Perl, Ruby, PHP, JavaScript and Lua in an argument do, by the names that they call.
//! None of these languages is parsed, only string literals and comments are distinguished from names.

/// An action of a program in an argument besides computing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Deletes this path; `None` if the path is computed. True if everything below it is deleted too.
    Delete(Option<String>, bool),
    /// Writes to this file.
    Write(String),
    /// Changes the permissions or the owner of this path.
    Mode(String),
    /// Runs this command; `None` if it is computed.
    Run(Option<String>),
    /// Kills the process with this number.
    Kill(String),
    /// Runs code from the network, or gives a shell to another machine.
    RunsNetwork,
    /// Runs code that it has decoded.
    RunsDecoded,
    /// Sends this file to another machine.
    Sends(String),
    /// Starts processes endlessly.
    Forks,
    /// Allocates memory endlessly.
    Fills,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A qualified name, in one spelling: `os.system`, `IO.popen` for `IO::popen`, `x.run` for `x->run`.
    Name(String),
    Text(String),
    Number(String),
    Mark(char),
}

/// Names that run a program.
const RUNS: &[&str] = &[
    "system",
    "popen",
    "popen2",
    "popen3",
    "Popen",
    "execSync",
    "exec",
    "execl",
    "execlp",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "execFile",
    "execFileSync",
    "spawn",
    "spawnSync",
    "spawnl",
    "spawnlp",
    "spawnv",
    "shell_exec",
    "passthru",
    "proc_open",
    "pcntl_exec",
    "check_output",
    "check_call",
    "getoutput",
    "getstatusoutput",
    "capture2",
    "capture3",
    "qx",
    "startfile",
    "ShellExecute",
    "getRuntime",
];
/// Names that run a program only when qualified like this.
const RUNS_OF: &[(&str, &[&str])] = &[
    ("subprocess", &["run", "call"]),
    ("pty", &["spawn"]),
    ("asyncio", &["create_subprocess_shell"]),
    ("os", &["execute"]),
];
/// Names that run text as code of the language.
const EVALUATES: &[&str] = &[
    "eval",
    "exec",
    "compile",
    "Function",
    "instance_eval",
    "class_eval",
    "runInThisContext",
    "runInNewContext",
    "create_function",
    "loadstring",
    "execfile",
];
/// Names that open a stream to another machine.
const CONNECTS: &[&str] = &[
    "socket",
    "Socket",
    "TCPSocket",
    "UDPSocket",
    "fsockopen",
    "pfsockopen",
    "create_connection",
    "createConnection",
    "INET",
    "stream_socket_client",
    "socket_create",
];
/// Names that fetch or send something by HTTP.
const FETCHES: &[&str] = &[
    "urlopen",
    "urlretrieve",
    "urllib",
    "requests",
    "httpx",
    "aiohttp",
    "http",
    "https",
    "LWP",
    "HTTP",
    "fetch",
    "axios",
    "curl_exec",
    "curl_init",
    "open_uri",
    "URI",
    "httplib",
];
/// Names that decode text.
const DECODES: &[&str] = &[
    "b64decode",
    "b32decode",
    "b85decode",
    "base64_decode",
    "decode_base64",
    "decode64",
    "urlsafe_decode64",
    "strict_decode64",
    "unhexlify",
    "fromhex",
    "a2b_hex",
    "atob",
    "decompress",
    "gzinflate",
    "gzuncompress",
    "gzdecode",
    "str_rot13",
    "hex2bin",
    "unpack",
    "unpack1",
    "pack",
    "chr",
    "fromCharCode",
    "Buffer",
    "decode",
    "loads",
    "unserialize",
    "inflateSync",
    "gunzipSync",
];
/// Names that delete one file or an empty folder.
const DELETES: &[&str] = &["unlink", "unlinkSync", "rmdir", "rmdirSync", "removedirs", "rmSync"];
/// Qualified names that delete one file or an empty folder.
const DELETES_OF: &[(&str, &[&str])] = &[
    ("os", &["remove", "unlink", "rmdir"]),
    ("File", &["delete", "unlink"]),
    ("fs", &["rm", "rmSync", "unlink"]),
    ("FileUtils", &["rm", "rm_f"]),
    ("Dir", &["delete", "rmdir"]),
];
/// Names that delete a folder with everything below it.
const DELETES_ALL: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm_r",
    "remove_tree",
    "rimraf",
    "remove_entry_secure",
    "remove_dir",
    "deleteRecursive",
    "emptyDirSync",
    "removeSync",
];

/// Names that walk a folder recursively.
const WALKS: &[&str] =
    &["rglob", "walk", "Find", "find", "finddepth", "RecursiveDirectoryIterator", "walkSync", "globstar"];

/// Returns the actions of a program.
pub(crate) fn actions(text: &str) -> Vec<Action> {
    let tokens = tokens(text);
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let any = |names: &[&str]| {
        tokens.iter().any(|t| matches!(t, Token::Name(name) if name.split('.').any(|part| names.contains(&part))))
    };
    let mut found = Vec::new();
    let mut runs = false;
    let mut evaluates = false;
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(name) = token else { continue };
        let own = last(name);
        let of = |table: &[(&str, &[&str])]| {
            let part = name.rsplit('.').nth(1).unwrap_or_default();
            table.iter().any(|(owner, names)| *owner == part && names.contains(&own.as_str()))
        };
        let called = || matches!(tokens.get(at + 1), Some(Token::Mark('(') | Token::Text(_)) | Some(Token::Name(_)));
        // `/x/.exec(y)` and `re.compile` are methods of patterns
        let bare = name.starts_with('.') && own == "exec" && !text.contains("child_process");
        let method = bare || name.starts_with("re.") || name.contains(".compile");
        // AppleScript's `do shell script "..."`
        let apple = own == "script" && at > 0 && tokens[at - 1] == Token::Name("shell".to_owned());
        // `import subprocess as p; p.call(...)`
        let renamed = matches!(own.as_str(), "run" | "call") && name.contains('.') && any(&["subprocess"]);
        if (RUNS.contains(&own.as_str()) && !method || of(RUNS_OF) || apple || renamed) && called() {
            let python = own == "exec" && !name.contains('.') && matches!(tokens.get(at + 1), Some(Token::Mark('(')));
            let command = command_argument(&tokens, at + 1);
            // Python's `exec` runs Python, that of other languages a program
            evaluates |= python;
            runs = true;
            found.push(Action::Run(command));
        }
        evaluates |= EVALUATES.contains(&own.as_str()) && !method;
        let path = || path_argument(&tokens, at + 1);
        if DELETES_ALL.contains(&own.as_str()) && called() {
            found.push(Action::Delete(path(), true));
        } else if (DELETES.contains(&own.as_str()) || of(DELETES_OF)) && called() {
            let recursive = own.starts_with("rm") && any(&["recursive"]);
            let deep = recursive || any(WALKS) && !selects_by_extension(&tokens);
            found.push(Action::Delete(path(), deep));
        } else if matches!(own.as_str(), "chmod" | "chown" | "lchown" | "chmodSync" | "chmod_R" | "chown_R") && called()
        {
            found.extend(path().map(Action::Mode));
        } else if own == "kill" && called() {
            found.extend(number_argument(&tokens, at + 1).map(Action::Kill));
        } else if matches!(
            own.as_str(),
            "open"
                | "writeFile"
                | "writeFileSync"
                | "appendFileSync"
                | "file_put_contents"
                | "fopen"
                | "write"
                | "truncate"
        ) {
            let writes = own != "open" && own != "fopen" || opens_to_write(&tokens, at + 1);
            found.extend(path().filter(|p| writes && p.starts_with(['/', '~'])).map(Action::Write));
        }
    }
    if text.contains('`') && any(&["puts", "system"]) {
        runs = true;
    }
    let required = tokens
        .iter()
        .any(|t| matches!(t, Token::Text(text) if matches!(text.as_str(), "net" | "socket" | "tls" | "dgram")));
    let streams = any(CONNECTS) || required && any(&["require", "connect"]);
    let network = streams || any(FETCHES) || any(&["file_get_contents"]) && text.contains("://");
    let hands_over = any(&["dup2", "fdopen", "pipe"]) && (runs || text.contains("/bin/"))
        || text.contains("/bin/sh")
        || text.contains("/bin/bash");
    if streams && (runs || hands_over)
        || network && (runs && found.contains(&Action::Run(None)) || evaluates && !is_pattern_only(&tokens))
    {
        found.push(Action::RunsNetwork);
    }
    if any(DECODES) && (evaluates || runs && found.contains(&Action::Run(None))) {
        found.push(Action::RunsDecoded);
    }
    if network {
        let texts = tokens.iter().filter_map(|t| if let Token::Text(text) = t { Some(text) } else { None });
        if any(&["environ", "ENV"]) || text.contains("process.env") {
            found.push(Action::Sends("/proc/self/environ".to_owned()));
        }
        found.extend(texts.filter(|t| t.starts_with(['/', '~', '.'])).map(|t| Action::Sends(t.clone())));
    }
    let waits = any(&[
        "sleep",
        "break",
        "last",
        "exit",
        "wait",
        "waitpid",
        "accept",
        "recv",
        "read",
        "readline",
        "gets",
        "input",
        "setTimeout",
        "usleep",
        "die",
        "return",
        "quit",
    ]);
    let endless = is_endless(text, &tokens);
    if any(&["fork"]) && (endless || any(&["while", "loop", "for", "until"])) {
        found.push(Action::Forks);
    }
    let grows = any(&["append", "push", "extend", "alloc", "concat", "repeat"])
        || ["+=", "<<", "*=", " x ", ".="].iter().any(|sign| text.contains(sign));
    if endless && !waits && grows {
        found.push(Action::Fills);
    }
    found
}

/// True if the program has a file extension as a string literal, so it may select files by it.
fn selects_by_extension(tokens: &[Token]) -> bool {
    let ends = |text: &str| {
        let text = text.trim_start_matches('*');
        text.starts_with('.') && text.len() > 1 && text[1..].chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
    };
    tokens.iter().any(|t| matches!(t, Token::Text(text) if ends(text)))
}

/// True if `exec` and `compile` occur only as methods of patterns.
fn is_pattern_only(tokens: &[Token]) -> bool {
    !tokens.iter().any(|t| matches!(t, Token::Name(name) if EVALUATES.contains(&name.as_str())))
}

/// True for a program with a loop whose condition is always true.
pub(crate) fn loops_forever(text: &str) -> bool {
    is_endless(text, &tokens(text))
}

/// True if there is a loop whose condition is always true.
fn is_endless(text: &str, tokens: &[Token]) -> bool {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    [
        "while1",
        "whileTrue",
        "while(1)",
        "while(true)",
        "for(;;)",
        "loop{",
        "loopdo",
        "whiletrue",
        "1while",
        "untilfalse",
        "iter(int,1)",
    ]
    .iter()
    .any(|form| compact.contains(form))
        && tokens
            .iter()
            .any(|t| matches!(t, Token::Name(name) if matches!(name.as_str(), "while" | "for" | "loop" | "until")))
}

/// Returns the command that is passed to a call: one string literal, or a list of them.
fn command_argument(tokens: &[Token], at: usize) -> Option<String> {
    let mut words = Vec::new();
    let mut list = false;
    for token in tokens.iter().skip(at) {
        match token {
            Token::Mark('(') if words.is_empty() => {}
            Token::Mark('[') => list = true,
            Token::Text(text) => words.push(text.clone()),
            Token::Mark(',') if list || words.len() < 8 => {}
            Token::Mark(']') => list = false,
            Token::Mark(')' | ';' | '}') => break,
            // concatenated with something computed
            Token::Mark('+' | '.' | '%') => return None,
            Token::Name(name) if name.starts_with('.') => return None,
            // `shell=True`, `stdio: ...`
            _ if !words.is_empty() => break,
            _ => return None,
        }
    }
    match words.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(many.iter().map(|w| crate::quote(w, crate::Dialect::Sh)).collect::<Vec<_>>().join(" ")),
    }
}

/// Returns the first string literal passed to a call; `glob`, `Path` and similar calls around it are ignored.
fn path_argument(tokens: &[Token], at: usize) -> Option<String> {
    for token in tokens.iter().skip(at).take(6) {
        match token {
            Token::Text(text) => return Some(text.clone()),
            Token::Mark('(' | ',') | Token::Number(_) => {}
            Token::Name(name)
                if matches!(
                    name.as_str(),
                    "glob" | "Path" | "pathlib.Path" | "glob.glob" | "Dir.glob" | "os.path.expanduser"
                ) => {}
            _ => return None,
        }
    }
    None
}

fn number_argument(tokens: &[Token], at: usize) -> Option<String> {
    let mut sign = "";
    for token in tokens.iter().skip(at).take(4) {
        match token {
            Token::Number(number) if number != "9" && number != "15" => return Some(format!("{sign}{number}")),
            Token::Number(_) | Token::Text(_) => sign = "",
            Token::Mark('-') => sign = "-",
            Token::Mark('(' | ',') => {}
            _ => return None,
        }
    }
    None
}

/// True for `open("f", "w")`, `open(F, ">f")`.
fn opens_to_write(tokens: &[Token], at: usize) -> bool {
    let texts = tokens.iter().skip(at).take(7).take_while(|t| !matches!(t, Token::Mark(')' | ';')));
    texts.skip(1).any(|t| matches!(t, Token::Text(text) if text.starts_with(['w', 'a', '>', '+', 'r']) && text.contains(['w', 'a', '>', '+']) && text.len() < 4))
}

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut found: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        match c {
            '\'' | '"' => {
                let Some((inner, end)) = string_literal(&chars, at) else {
                    // no closing quote: it is part of a pattern or a comment, and code follows
                    at += 1;
                    continue;
                };
                found.push(Token::Text(inner));
                at = end;
            }
            '#' if at == 0 || chars[at - 1].is_whitespace() => {
                at = (at..chars.len()).find(|i| chars[*i] == '\n').unwrap_or(chars.len());
            }
            c if c.is_ascii_digit() => {
                let end = (at..chars.len()).find(|i| !chars[*i].is_ascii_alphanumeric()).unwrap_or(chars.len());
                found.push(Token::Number(chars[at..end].iter().collect()));
                at = end;
            }
            c if c.is_alphabetic() || c == '_' || c == '$' || c == '@' || c == '.' => {
                let (name, end) = name(&chars, at);
                if name.chars().any(char::is_alphanumeric) {
                    found.push(Token::Name(name));
                } else {
                    found.push(Token::Mark(c));
                }
                at = end.max(at + 1);
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

/// Reads a qualified name; also returns the index after it.
fn name(chars: &[char], from: usize) -> (String, usize) {
    let (mut name, mut at) = (String::new(), from);
    while let Some(c) = chars.get(at).copied() {
        if c.is_alphanumeric() || c == '_' || name.is_empty() && matches!(c, '$' | '@') {
            name.push(c);
            at += 1;
        } else if c == '.' && chars.get(at + 1).is_some_and(|n| n.is_alphabetic() || *n == '_') {
            name.push('.');
            at += 1;
        } else if chars[at..].starts_with(&[':', ':']) || chars[at..].starts_with(&['-', '>']) {
            name.push('.');
            at += 2;
        } else {
            break;
        }
    }
    (name, at)
}

/// Reads the string literal at `at`; also returns the index after it.
pub(super) fn string_literal(chars: &[char], at: usize) -> Option<(String, usize)> {
    let quote = chars[at];
    let triple = chars[at..].starts_with(&[quote; 3]);
    let width = if triple { 3 } else { 1 };
    let mut inner = String::new();
    let mut i = at + width;
    while i < chars.len() {
        if chars[i] == '\\' {
            let next = chars.get(i + 1).copied()?;
            let (c, length) = unescape(&chars[i + 1..], next);
            inner.extend(c);
            i += 1 + length;
        } else if chars[i] == quote && (!triple || chars[i..].starts_with(&[quote; 3])) {
            return Some((inner, i + width));
        } else {
            inner.push(chars[i]);
            i += 1;
        }
    }
    None
}

/// Decodes the character after a backslash; also returns the length of its code: `x72` is `r`.
fn unescape(rest: &[char], next: char) -> (Option<char>, usize) {
    let digits = |from: usize, most: usize, radix: u32| {
        let text: String = rest.iter().skip(from).take(most).take_while(|c| c.is_digit(radix)).collect();
        (u32::from_str_radix(&text, radix).ok().and_then(char::from_u32), from + text.len())
    };
    match next {
        'n' => (Some('\n'), 1),
        't' => (Some('\t'), 1),
        'x' => digits(1, 2, 16),
        'u' => digits(1, 4, 16),
        '0'..='7' => digits(0, 3, 8),
        c => (Some(c), 1),
    }
}
