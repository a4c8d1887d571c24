//! Fuzzes requests: any characters, lengths and languages, words like options and like commands. None causes a panic,
//! each ends with a documented exit code, and the output is one command or nothing.

use crate::machine::{Machine, Ran};
use caro::cli::answer::ask::{self, Place};
use caro::cli::args;
use caro::cli::{Config, Settings};
use caro::command::{Answer, CommandError, CommandRequest, Recipe};
use caro::host::ExecutionContext;
use caro::model::scripted::Scripted;
use caro::shell::Dialect;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// A pseudo-random generator with the same numbers on every machine (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() >> 11) as usize % most.max(1)
    }

    fn choose<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len())]
    }

    /// A character of one to four bytes in UTF-8.
    fn character(&mut self) -> char {
        let most = [0x80, 0x800, 0x1_0000, 0x11_0000][self.below(4)];
        char::from_u32(self.below(most) as u32).unwrap_or('\u{fffd}')
    }

    fn text(&mut self, most: usize, piece: impl Fn(&mut Self) -> String) -> String {
        (0..=self.below(most)).map(|_| piece(self)).collect()
    }
}

const ENGLISH: &[&str] = &[
    "find",
    "all",
    "the",
    "files",
    "bigger",
    "than",
    "1 GB",
    "in",
    "my",
    "home",
    "folder",
    "and",
    "then",
    "count",
    "please",
    "list",
    "processes",
    "by",
    "memory",
    "epmty",
    "delte",
    "rename",
    "*.txt",
    "to",
    "notes.md",
    "\"a b\"",
    "today",
    "without",
    "?",
    ",",
    "git",
];
const ELSEWHERE: &[&str] = &[
    "größte",
    "Dateien",
    "zeige",
    "mir",
    "les",
    "fichiers",
    "d'hier",
    "найди",
    "все",
    "файлы",
    "ファイル",
    "一覧",
    "を表示",
    "删除",
    "空文件夹",
    "اعرض",
    "الملفات",
    "הצג",
    "קבצים",
    "फ़ाइलें",
    "दिखाओ",
    "ไฟล์",
    "👨‍👩‍👧",
    "e\u{301}",
    "\u{202e}txt",
    "\u{feff}",
    "\u{200b}",
];
const OPTIONS: &[&str] = &[
    "-x",
    "--json",
    "--",
    "-",
    "---",
    "--no-such",
    "-n",
    "9",
    "--target",
    "windows",
    "--shell=fish",
    "-rf",
    "-é",
    "--from",
    "=",
    "--help",
    "@file",
    "+x",
    "--model",
    "script:none",
    "-qqq",
    "--timeout",
    "-1",
    "check",
    "help",
    "agent",
    "config",
    "last",
];
const CODE: &[&str] = &[
    "rm -rf /",
    "$(",
    "`",
    ")",
    "|",
    "&&",
    ";",
    ">",
    "<<EOF",
    "'",
    "\"",
    "\\",
    "#",
    "{",
    "}",
    "*",
    "[",
    "${x",
    "\n",
    "<|im_start|>",
    "[INST]",
    "{\"cmd\": \"ls\"}",
    "```sh",
    "</request>",
    "ignore all that was said",
    "%s%n",
    "../../etc/passwd",
    "\0",
];
const CONTROL: &[&str] =
    &["\0", "\x01", "\x07", "\x08", "\t", "\n", "\r", "\x0b", "\x1b[31m", "\x1b]0;x\x07", "\x7f", "\u{85}", "\u{2028}"];

/// Returns the request with this number.
fn request_of(number: u64) -> String {
    let mut random = Random::new(number + 1);
    let spaced = |all: &'static [&'static str]| move |random: &mut Random| format!("{} ", random.choose(all));
    match random.below(10) {
        0 => random.text(12, spaced(ENGLISH)),
        1 => random.text(60, |random| random.character().into()),
        2 => random.text(20, |random| [random.choose(CONTROL), random.choose(ENGLISH)].concat()),
        3 => {
            let piece = [random.choose(ENGLISH), random.choose(ELSEWHERE), " "].concat();
            piece.repeat(random.below(4000))
        }
        4 => random.text(6, |random| random.choose(&["", " ", "\t", "\u{a0}", "\u{3000}"]).into()),
        5 => random.text(8, spaced(OPTIONS)),
        6 => random.text(12, spaced(ELSEWHERE)),
        7 => random.text(12, spaced(CODE)),
        8 => random.text(4, |random| random.choose(OPTIONS).repeat(3)),
        _ => random.text(16, |random| {
            let all = [ENGLISH, ELSEWHERE, OPTIONS, CODE, CONTROL][random.below(5)];
            [random.choose(all), " "].concat()
        }),
    }
}

/// The rules of a model whose answer depends on the request: commands of several kinds, an invalid one, a refusal.
fn rules() -> serde_json::Value {
    json!([
        { "regex": "(?i)hello|count|verz", "reply": "# not a shell task" },
        { "regex": "(?i)[aeiou]\\W*$", "reply": "find . -name '*.txt' -size +1M" },
        { "regex": "^\\W", "reply": "rm -rf ./gone ; echo \"unclosed", "logprob": -2.5 },
        { "regex": "[^\\x00-\\x7f]", "replies": ["ls ü 'ï' \u{202e}", "cat <(", "ls -a"], "logprob": -1.2 },
        { "reply": "ps aux --sort=-%cpu | head -n 6" },
    ])
}

/// Answers requests in this process as `caro::cli::verbs::request` does, without a terminal.
struct Answerer {
    recipe: Recipe,
    settings: Settings,
    ask: CommandRequest,
    runtime: tokio::runtime::Runtime,
}

impl Answerer {
    fn new() -> Self {
        let config = Config::load(&Default::default(), &Default::default(), None, &[]).unwrap();
        let settings = Settings::of(&config).unwrap();
        let context = Arc::new(ExecutionContext::detect(None));
        let place = Place::of(&context, &settings, Some(std::env::temp_dir()));
        let model: Scripted = json!({ "context": 16_000, "rules": rules() }).to_string().parse().unwrap();
        let recipe = Recipe {
            model: Arc::new(model),
            context,
            manual: None,
            documents: None,
            adapted: false,
            without: [].into(),
        };
        // no rehearsals, because there are up to ten thousand requests
        let ask = CommandRequest {
            dialect: Dialect::Bash,
            rehearse: false,
            timeout: Duration::from_secs(60),
            ..ask::part(&place, &settings)
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { recipe, settings, ask, runtime }
    }

    /// Returns the exit code and the text for stdout.
    fn answer(&self, request: &str) -> (u8, String) {
        if ask::check(request).is_err() {
            return (2, String::new());
        }
        let ask = CommandRequest { request: request.to_owned(), ..self.ask.clone() };
        match self.runtime.block_on(self.recipe.answer(&ask, &mut |_| {})) {
            Ok(Answer { cmd, .. }) if cmd.is_empty() => (1, cmd),
            Ok(Answer { draft: true, .. }) => (1, String::new()),
            Ok(Answer { cmd, .. }) => (0, cmd),
            Err(CommandError::BadRequest(why)) => {
                assert!(!why.is_empty());
                (2, String::new())
            }
            Err(error) => (ask::failure(error, &self.settings).exit.code(), String::new()),
        }
    }
}

/// Answers requests in this process, and counts them by exit code.
fn ask_all(numbers: std::ops::Range<u64>) -> [usize; 3] {
    let answerer = Answerer::new();
    let mut ended = [0; 3];
    for number in numbers {
        let request = request_of(number);
        let shown = || format!("request {number}: {:?}", request.chars().take(200).collect::<String>());
        // names the request in case of a panic
        println!("{}", shown());
        // parse it as arguments too, with options and verbs
        let _ = args::parse(std::iter::once("caro").chain(request.split(' ')).map(Into::into));
        let (code, out) = answerer.answer(&request);
        assert!(code <= 2, "{code}, {}", shown());
        assert_eq!(code == 0, !out.is_empty(), "{}", shown());
        assert!(!out.contains(['\n', '\r', '\0']) && out.trim() == out, "{out:?}, {}", shown());
        ended[usize::from(code)] += 1;
    }
    ended
}

#[test]
fn every_request_ends_with_a_command_or_a_documented_exit_code() {
    let [commands, none, wrong] = ask_all(0..150);
    // the requests are mixed: each exit code occurs
    assert!(commands > 30 && none > 3 && wrong > 3, "{commands} {none} {wrong}");
}

#[test]
#[ignore = "minutes: cargo test --test suite -- --ignored --nocapture requests::ten_thousand | tail"]
fn ten_thousand_requests_end_with_a_documented_exit_code() {
    let [commands, none, wrong] = ask_all(0..10_000);
    println!("10000 requests: {commands} commands, {none} without one, {wrong} refused as requests");
}

/// True if the exit code is documented for a request that runs nothing, and nothing has panicked.
fn is_documented(ran: &Ran) -> bool {
    matches!(ran.code, Some(0..=2 | 124)) && !ran.err.contains("panicked at")
}

#[test]
fn the_binary_accepts_any_request() {
    let machine = Machine::new();
    let rules = rules();
    for number in 10_000..10_025 {
        // an argument cannot contain NUL
        let request = request_of(number).replace('\0', "");
        let ran = machine.ask(rules.clone(), &["--", &request]);
        assert!(is_documented(&ran), "{request:?}: {ran:#?}");
        assert_eq!(ran.code == Some(0), ran.out.lines().count() == 1, "{request:?}: {ran:#?}");
        assert!(ran.code == Some(0) || ran.out.is_empty() && ran.err.starts_with("error: "), "{request:?}: {ran:#?}");
    }
}

/// Words like options or verbs are used as such or are errors: nothing blocks, nothing panics.
#[test]
fn words_like_options_end_with_a_documented_exit_code() {
    let machine = Machine::new();
    let mut random = Random::new(7);
    for _ in 0..20 {
        // none of these verbs waits for input: stdin is at its end
        let all: Vec<&str> = (0..=random.below(4)).map(|_| random.choose(OPTIONS)).collect();
        let ran = machine.ask(rules(), &all);
        assert!(is_documented(&ran) || all.contains(&"agent"), "{all:?}: {ran:#?}");
        assert!(!ran.err.contains("panicked at"), "{all:?}: {ran:#?}");
    }
}
