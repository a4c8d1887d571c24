//! Programs of Python, Perl, Ruby, PHP, JavaScript and Lua in an argument, as far as the names of what they call tell:
//! none of these languages is parsed, but texts and comments are told from names.

/// One thing that a program in an argument does besides computing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It deletes this path; `None` if the path is computed. True if all below it goes too.
    Delete(Option<String>, bool),
    /// It writes to this file.
    Write(String),
    /// It changes who may do what with this path.
    Mode(String),
    /// It runs this command; `None` if that is computed.
    Run(Option<String>),
    /// It ends a process of this number.
    Kill(String),
    /// It runs what comes from the network, or gives a shell to another machine.
    RunsNetwork,
    /// It runs what it has decoded.
    RunsDecoded,
    /// It sends this file to another machine.
    Sends(String),
    /// It starts processes without end.
    Forks,
    /// It takes memory without end.
    Fills,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name with what it belongs to, in one spelling: `os.system`, `IO.popen` for `IO::popen`, `x.run` for `x->run`.
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
/// Names that run a program only behind what they belong to.
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
/// Names that reach another machine as a stream.
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
/// Names that get or send something by HTTP.
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
/// Names that make text of what cannot be read.
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
/// Names that delete one thing, and all below a folder.
const DELETES: &[&str] = &["unlink", "unlinkSync", "rmdir", "rmdirSync", "removedirs", "rmSync"];
const DELETES_OF: &[(&str, &[&str])] = &[
    ("os", &["remove", "unlink", "rmdir"]),
    ("File", &["delete", "unlink"]),
    ("fs", &["rm", "rmSync", "unlink"]),
    ("FileUtils", &["rm", "rm_f"]),
    ("Dir", &["delete", "rmdir"]),
];
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

/// Names that go through a folder with all below it.
const WALKS: &[&str] =
    &["rglob", "walk", "Find", "find", "finddepth", "RecursiveDirectoryIterator", "walkSync", "globstar"];

/// Lists what the program does.
pub(crate) fn deeds(text: &str) -> Vec<Deed> {
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
        // `/x/.exec(y)` and `re.compile` belong to patterns, `res.fetch` to what was fetched
        let bare = name.starts_with('.') && own == "exec" && !text.contains("child_process");
        let method = bare || name.starts_with("re.") || name.contains(".compile");
        // AppleScript's `do shell script "..."`
        let apple = own == "script" && at > 0 && tokens[at - 1] == Token::Name("shell".to_owned());
        // `import subprocess as p; p.call(...)`
        let renamed = matches!(own.as_str(), "run" | "call") && name.contains('.') && any(&["subprocess"]);
        if (RUNS.contains(&own.as_str()) && !method || of(RUNS_OF) || apple || renamed) && called() {
            let python = own == "exec" && !name.contains('.') && matches!(tokens.get(at + 1), Some(Token::Mark('(')));
            let command = command_at(&tokens, at + 1);
            // Python's own `exec` runs Python, the others' a program
            evaluates |= python;
            runs = true;
            found.push(Deed::Run(command));
        }
        evaluates |= EVALUATES.contains(&own.as_str()) && !method;
        let path = || path_at(&tokens, at + 1);
        if DELETES_ALL.contains(&own.as_str()) && called() {
            found.push(Deed::Delete(path(), true));
        } else if (DELETES.contains(&own.as_str()) || of(DELETES_OF)) && called() {
            let recursive = own.starts_with("rm") && any(&["recursive"]);
            let deep = recursive || any(WALKS) && !is_choosy(&tokens);
            found.push(Deed::Delete(path(), deep));
        } else if matches!(own.as_str(), "chmod" | "chown" | "lchown" | "chmodSync" | "chmod_R" | "chown_R") && called()
        {
            found.extend(path().map(Deed::Mode));
        } else if own == "kill" && called() {
            found.extend(number_at(&tokens, at + 1).map(Deed::Kill));
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
            found.extend(path().filter(|p| writes && p.starts_with(['/', '~'])).map(Deed::Write));
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
        || network && (runs && found.contains(&Deed::Run(None)) || evaluates && !is_pattern_only(&tokens))
    {
        found.push(Deed::RunsNetwork);
    }
    if any(DECODES) && (evaluates || runs && found.contains(&Deed::Run(None))) {
        found.push(Deed::RunsDecoded);
    }
    if network {
        let texts = tokens.iter().filter_map(|t| if let Token::Text(text) = t { Some(text) } else { None });
        if any(&["environ", "ENV"]) || text.contains("process.env") {
            found.push(Deed::Sends("/proc/self/environ".to_owned()));
        }
        found.extend(texts.filter(|t| t.starts_with(['/', '~', '.'])).map(|t| Deed::Sends(t.clone())));
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
        found.push(Deed::Forks);
    }
    let grows = any(&["append", "push", "extend", "alloc", "concat", "repeat"])
        || ["+=", "<<", "*=", " x ", ".="].iter().any(|sign| text.contains(sign));
    if endless && !waits && grows {
        found.push(Deed::Fills);
    }
    found
}

/// True if the program looks at the ends of names: it takes some files, and leaves the others.
fn is_choosy(tokens: &[Token]) -> bool {
    let ends = |text: &str| {
        let text = text.trim_start_matches('*');
        text.starts_with('.') && text.len() > 1 && text[1..].chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
    };
    tokens.iter().any(|t| matches!(t, Token::Text(text) if ends(text)))
}

/// True if `exec` and `compile` are only there as methods of patterns.
fn is_pattern_only(tokens: &[Token]) -> bool {
    !tokens.iter().any(|t| matches!(t, Token::Name(name) if EVALUATES.contains(&name.as_str())))
}

/// True for a program with a loop whose test is always true.
pub(crate) fn loops_for_ever(text: &str) -> bool {
    is_endless(text, &tokens(text))
}

/// A loop whose test is always true.
fn is_endless(text: &str, tokens: &[Token]) -> bool {
    let squeezed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
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
    .any(|form| squeezed.contains(form))
        && tokens
            .iter()
            .any(|t| matches!(t, Token::Name(name) if matches!(name.as_str(), "while" | "for" | "loop" | "until")))
}

/// The command that a call is given: one text, or a list of texts.
fn command_at(tokens: &[Token], at: usize) -> Option<String> {
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
            // joined with something that is computed
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

/// The text that a call is given first; `glob`, `Path` and their kin are looked through.
fn path_at(tokens: &[Token], at: usize) -> Option<String> {
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

fn number_at(tokens: &[Token], at: usize) -> Option<String> {
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

/// `open("f", "w")`, `open(F, ">f")`.
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
                let Some((inner, end)) = quoted(&chars, at) else {
                    // it never ends: a sign of a pattern or a comment, and what follows is code again
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

/// A name with what it belongs to.
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

/// The text in the quotes at that place, and where it ends.
pub(super) fn quoted(chars: &[char], at: usize) -> Option<(String, usize)> {
    let quote = chars[at];
    let triple = chars[at..].starts_with(&[quote; 3]);
    let width = if triple { 3 } else { 1 };
    let mut inner = String::new();
    let mut i = at + width;
    while i < chars.len() {
        if chars[i] == '\\' {
            let next = chars.get(i + 1).copied()?;
            let (c, length) = escaped(&chars[i + 1..], next);
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

/// The character that stands behind a backslash, and its length there: `x72` is `r`.
fn escaped(rest: &[char], next: char) -> (Option<char>, usize) {
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
