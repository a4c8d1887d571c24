//! The fuzz targets: each takes any bytes and must neither panic nor hang, nor violate the assertions on its result.
//! The test suite runs them over `corpus/NAME`; `README.md` describes how to run them under libFuzzer.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use caro::cli::term::given;
use caro::cli::verbs::check::lines::judge;
use caro::cli::{Config, Dirs, Env, Settings};
use caro::command::{Input, input, library, risk, spelling};
use caro::intent::{self, courtesy, form, removal, said, tokens};
use caro::manual::{Entry, relevant};
use caro::model::engine::bytes::Bytes;
use caro::model::engine::gguf::Gguf;
use caro::model::engine::{AdapterOptions, check_adapter};
use caro::policy::{screen, text};
use caro::shell::policy::{Owner, Policy};
use caro::shell::rules::{self, Rule, rewritten, rule_matches};
use caro::shell::{self, Dialect, Level, Risk, Script, Target, Word, asked};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A target with its name, which is also the name of its corpus folder.
pub type Named = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: [Named; 10] = [
    ("shell", shell),
    ("verdict", verdict),
    ("lines", lines),
    ("rules", rules),
    ("policy", policy),
    ("settings", settings),
    ("manual", manual),
    ("request", request),
    ("gguf", gguf),
    ("adapter", adapter),
];

/// Most bytes given to a target; longer data are truncated, since the program refuses them.
const MAX_BYTES: usize = 16 << 10;

fn truncate(data: &[u8]) -> &[u8] {
    &data[..data.len().min(MAX_BYTES)]
}

/// Splits data into an option, whose name is the first line, and the text below it. Without such a line, the first byte
/// selects the option.
fn split_option<T: Copy>(data: &[u8], all: &[(&str, T)]) -> (T, String) {
    let text = String::from_utf8_lossy(truncate(data)).into_owned();
    if let Some((head, rest)) = text.split_once('\n')
        && let Some((_, found)) = all.iter().find(|(name, _)| *name == head)
    {
        return (*found, rest.to_owned());
    }
    (all[usize::from(data.first().copied().unwrap_or(0)) % all.len()].1, text)
}

/// Asserts that a span is within the text.
fn check_span(script: &Script, span: &Range<usize>) {
    assert!(script.text.get(span.clone()).is_some(), "{span:?} is not a part of {:?}", script.text);
}

/// Parses a shell command: all spans are within the text, and a quoted word is parsed as the same word.
pub fn shell(data: &[u8]) {
    let (dialect, text) = split_option(data, &Dialect::ALL);
    let script = shell::parse(&text, dialect);
    assert_eq!(script.text, text);
    let word = |word: &Word| check_span(&script, &word.span);
    for command in &script.commands {
        command.words.iter().for_each(word);
        command.redirects.iter().for_each(|redirect| word(&redirect.target));
        check_span(&script, &command.span());
        command.feeds.iter().for_each(|at| assert!(*at < script.commands.len()));
        if let Some(inside) = command.inside {
            assert!(inside.command < script.commands.len());
        }
    }
    script.errors.iter().for_each(|error| {
        check_span(&script, error);
        script.error_text(error);
    });
    script.constructs.iter().for_each(|(_, span)| check_span(&script, span));
    script.functions.iter().for_each(|function| check_span(&script, &function.span));
    script.loops.iter().for_each(|endless| check_span(&script, &endless.span));
    script.background.iter().for_each(|span| check_span(&script, span));
    shell::extract_commands(&script);
    // a name with control characters cannot be written on a command line
    let line: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    if !line.is_empty() {
        let quoted = shell::quote(&line, dialect);
        let script = shell::parse(&format!("ls {quoted}"), dialect);
        let values: Vec<_> = script.commands.first().unwrap().args().iter().map(|word| word.value.as_deref()).collect();
        assert_eq!(values, [Some(line.as_str())], "{quoted} of {dialect:?}");
    }
}

/// Asserts that the level is the highest of the reasons, and that all spans are within the text.
fn check_risk(script: &Script, risk: &Risk) {
    let highest = risk.reasons.iter().map(|reason| reason.level).max().unwrap_or(Level::Safe);
    assert_eq!(risk.level, highest, "{risk:?}");
    risk.reasons.iter().filter_map(|reason| reason.span.as_ref()).for_each(|span| check_span(script, span));
}

/// Assesses a command: its effects, risk, and findings for each target.
pub fn verdict(data: &[u8]) {
    let (dialect, command) = split_option(data, &Dialect::ALL);
    if given::check_command(&command, "").is_err() {
        return;
    }
    let script = shell::parse(&command, dialect);
    for effect in shell::effects(&script) {
        assert!(effect.command.is_none_or(|at| at < script.commands.len()));
        check_span(&script, &effect.span);
    }
    let risk = shell::assess(&script);
    check_risk(&script, &risk);
    check_risk(&script, &risk::assess_text(&command, dialect, Some(&PLACE.0)));
    if shell::is_read_only(&script) {
        assert_ne!(risk.level, Level::Danger, "{command:?} only reads");
    }
    for (_, target) in Target::ALL {
        for finding in rules::check(&script, target) {
            finding.span.iter().for_each(|span| check_span(&script, span));
            finding.fix.iter().for_each(|fix| drop(shell::parse(fix, dialect)));
        }
    }
}

/// Checks a line of `caro check --jsonl`: a verdict that can be serialised, or an error.
pub fn lines(data: &[u8]) {
    match judge(data, Dialect::Bash) {
        Ok(verdict) => assert!(serde_json::to_value(verdict).unwrap()["verdict"].is_string()),
        Err(why) => assert!(!why.is_empty()),
    }
}

/// A file of platform rules.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(default)]
    rule: Vec<Rule>,
}

/// Reads a file of platform rules, and applies each rule to its own examples.
pub fn rules(data: &[u8]) {
    let Ok(file) = toml::from_str::<Rules>(&String::from_utf8_lossy(truncate(data))) else { return };
    for rule in file.rule.iter().take(8) {
        for example in rule.matches.iter().chain(&rule.not_matches).take(8) {
            for (_, dialect) in Dialect::ALL {
                let script = shell::parse(example, dialect);
                if let Some(better) = rewritten(rule, &script) {
                    assert!(rule_matches(rule, &script), "{better}");
                }
            }
        }
    }
}

/// Reads a policy file, as the user's and as a project's.
pub fn policy(data: &[u8]) {
    let text = String::from_utf8_lossy(truncate(data));
    for owner in [Owner::User, Owner::Project] {
        match Policy::read(&text, "policy.toml", owner, Dialect::Bash) {
            Ok((_, faults)) => assert!(faults.iter().all(|fault| fault.starts_with("policy.toml:"))),
            Err(why) => assert!(why.starts_with("policy.toml:"), "{why}"),
        }
    }
}

/// A folder for files of settings, one per process: the working directory, and the home that owns it.
static PLACE: LazyLock<(PathBuf, tempfile::TempDir)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("work")).unwrap();
    std::fs::create_dir(dir.path().join("work/.git")).unwrap();
    (dir.path().join("work"), dir)
});

/// Reads a file of settings, as the user's, and as a project's, which never causes an error.
pub fn settings(data: &[u8]) {
    let (work, home) = &*PLACE;
    // a unique name, since the suite runs the targets in parallel
    let own = tempfile::Builder::new().suffix(".toml").tempfile_in(home.path()).unwrap();
    std::fs::write(own.path(), truncate(data)).unwrap();
    let dirs = Dirs { config_file: Some(own.path().to_path_buf()), ..Dirs::default() };
    if let Ok(config) = Config::load(&dirs, &Env::default(), None, &[]) {
        let _ = Settings::of(&config);
        let _ = caro::cli::setup::settings::serve(&config);
    }
    let project = tempfile::tempdir_in(work).unwrap();
    std::fs::write(project.path().join(".caro.toml"), truncate(data)).unwrap();
    let config = Config::load(&Dirs::default(), &Env::default(), Some(project.path()), &[]).unwrap();
    Settings::of(&config).map_err(|failure| failure.message).unwrap();
}

/// Parses a manual page or a help text (selected by the first line), and looks options up in it.
pub fn manual(data: &[u8]) {
    let (is_page, text) = split_option(data, &[("page", true), ("help", false)]);
    let (page, help) = if is_page { (Some(text.as_bytes()), None) } else { (None, Some(text.as_bytes())) };
    let entry = Entry::from_texts("tool", page, help);
    let words: Vec<&str> = text.split_whitespace().take(12).collect();
    entry.read_args(&words);
    entry.unknown_flags(&words);
    entry.subcommand_at(&words);
    for option in entry.options.iter().take(40) {
        assert!(option.names().next().is_some(), "{option:?}");
        option.line();
        assert!(option.names().all(|name| entry.option(name).is_some()), "{option:?}");
        option.names().for_each(|name| drop(entry.nearest(name, 3)));
    }
    relevant(&entry, &words, &["-x"], 5);
}

/// Analyses a request: its intent, its spelling, its nearest examples, and orders to the model in it.
pub fn request(data: &[u8]) {
    let text = String::from_utf8_lossy(truncate(data));
    // each result is a part of the text
    for part in [
        courtesy::without(&text),
        courtesy::ungreeted(&text),
        courtesy::without_politeness(&text),
        intent::order(&text),
    ] {
        assert!(text.contains(part), "{part:?}");
    }
    for part in intent::parts(&text) {
        intent::kind(&part, true);
        intent::composes(&part);
        intent::refer(&part, &["a.txt".into()]);
        intent::stand_in(&part, &text);
        intent::locate(&part);
        form::script(&part);
        form::report_parts(&part);
        form::split_questions(&part);
        form::proof_command(&part);
        form::before_file(&part, "a.txt");
        said::is_statement(&part);
        tokens::path_words(&part);
    }
    intent::files_to_write(&text);
    intent::promised_files(&text);
    intent::reads(&text, &["a.txt"]);
    intent::asks_documents(&text);
    intent::asks_world(&text);
    intent::is_told_at_length(&text);
    removal::orders_removal(&text);
    asked::only_looks(&text);
    asked::only_moves(&text, |_| true);
    if let Some((corrected, typos)) = spelling::correct(&text, |_| false) {
        assert!(!typos.is_empty() && corrected != text);
    }
    library::nearest(&text, Target::ALL[0].1, 3);
    screen::screen(&text);
    screen::cut_orders(&text);
    text::normalise(&text);
    text::compress(&text, 64);
    assert_eq!(input::of(data, true) == Input::Empty, data.is_empty());
}

/// Reads a model file: its header, values and tensors.
pub fn gguf(data: &[u8]) {
    let Ok(file) = Gguf::parse("fuzz.gguf", Bytes::from(data.to_vec())) else { return };
    for key in ["general.architecture", "tokenizer.ggml.tokens", "qwen2.block_count", "a", ""] {
        file.text(key);
        file.u32(key);
        file.f32(key);
        let _ = file.number(key, 100);
        if let Some(array) = file.array(key) {
            assert!(array.strings().is_none_or(|strings| strings.count() == array.len()));
            assert!(array.integers().is_none_or(|integers| integers.count() == array.len()));
        }
    }
    for name in file.tensor_names() {
        assert!(file.has_tensor(name));
        if let Ok(tensor) = file.tensor(name) {
            assert_eq!(tensor.to_f32().len(), tensor.elements());
        }
    }
}

/// A model file for checking adapters.
static MODEL: LazyLock<tempfile::NamedTempFile> = LazyLock::new(|| {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), include_bytes!("corpus/gguf/qwen2.gguf")).unwrap();
    file
});

/// Checks the data as an adapter of a model, and as the model of an adapter.
pub fn adapter(data: &[u8]) {
    let Ok(file) = Gguf::parse("fuzz.gguf", Bytes::from(data.to_vec())) else { return };
    let options = AdapterOptions { file: file.clone(), base_sha256: None, is_required: true };
    let info = options.info();
    if let Ok(fitting) = check_adapter(&file, MODEL.path(), None) {
        assert_eq!(info.unwrap().prompt, fitting.prompt);
        assert!(fitting.rank > 0);
    }
    let model = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(model.path(), data).unwrap();
    let ours = include_bytes!("corpus/adapter/lora.gguf");
    let ours = Gguf::parse("lora.gguf", Bytes::from(ours.to_vec())).unwrap();
    let _ = check_adapter(&ours, model.path(), None);
}
