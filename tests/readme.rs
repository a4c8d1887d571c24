//! Tests the README and the other documents: their tables and figures match the program and the records, every named
//! verb and flag exists, every link resolves, and none is too long.

use crate::machine::{Machine, Ran};
use std::path::Path;

const README: &str = include_str!("../README.md");
const SETTINGS: &str = include_str!("../src/cli/SETTINGS.md");
const AGENT: &str = include_str!("../src/agent/README.md");

/// The documents for users, each with its path.
const DOCUMENTS: [(&str, &str); 11] = [
    ("README.md", README),
    ("src/README.md", include_str!("../src/README.md")),
    ("src/cli/README.md", include_str!("../src/cli/README.md")),
    ("src/cli/SETTINGS.md", SETTINGS),
    ("src/agent/README.md", AGENT),
    ("src/documents/README.md", include_str!("../src/documents/README.md")),
    ("src/serve/README.md", include_str!("../src/serve/README.md")),
    ("src/shell/README.md", include_str!("../src/shell/README.md")),
    ("models/README.md", include_str!("../models/README.md")),
    ("benches/README.md", include_str!("../benches/README.md")),
    (".github/packaging/README.md", include_str!("../.github/packaging/README.md")),
];

/// Most bytes of the README, and of every other document.
const MAX_BYTES: (usize, usize) = (10_000, 15_000);

#[test]
fn no_document_is_too_long() {
    for (path, text) in DOCUMENTS {
        let most = if path == "README.md" { MAX_BYTES.0 } else { MAX_BYTES.1 };
        assert!(text.len() <= most, "{path} has {} bytes of {most}", text.len());
    }
}

#[test]
fn every_link_resolves_to_a_file_and_every_anchor_to_a_heading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let anchor = |heading: &str| {
        let words = heading.to_lowercase().replace(' ', "-");
        words.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>()
    };
    let mut links = 0;
    for (path, text) in DOCUMENTS {
        let folder = root.join(path).parent().unwrap().to_path_buf();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, part) = link.split_once('#').map_or((link, None), |(file, part)| (file, Some(part)));
            if link.starts_with("https://") {
                continue;
            }
            let target = if file.is_empty() { root.join(path) } else { folder.join(file) };
            assert!(target.exists(), "{path}: {link}");
            if let Some(part) = part {
                let headings = std::fs::read_to_string(&target).unwrap();
                let mut headings = headings.lines().filter_map(|line| line.strip_prefix('#'));
                assert!(headings.any(|line| anchor(line.trim_start_matches('#').trim()) == part), "{path}: {link}");
            }
            links += 1;
        }
    }
    assert!(links > 30, "{links}");
}

#[test]
fn the_tables_of_settings_match_the_program() {
    // the variables that tests set are not the program's defaults
    let settings =
        Ran::of(Machine::new().caro(&["config"]).env_remove("CARO_RESIDENT").env_remove("CARO_KEYS").output().unwrap());
    assert_eq!(settings.code, Some(0), "{settings:#?}");
    let mut rows = 0;
    for line in settings.out.lines() {
        let (name, rest) = line.split_once(" = ").unwrap();
        let default = rest.split('"').nth(1).unwrap();
        let row = format!("| `{name}` | `CARO_{}` | `{default}` |", name.to_uppercase().replace('.', "_"));
        let document = if name.starts_with("serve.") { include_str!("../src/serve/README.md") } else { SETTINGS };
        assert!(document.contains(&row), "no document has {row}");
        rows += 1;
    }
    assert!(rows >= 8, "{settings:#?}");
}

#[test]
fn the_table_of_the_harness_has_the_defaults_of_the_code() {
    use caro::agent::plan::{CAP, FLOOR};
    let config = caro::agent::runtime::Config::new("/".into());
    let fitting = config.fitting;
    let mut rows = vec![
        format!(
            "from {} % of the window, the last {} entries whole | `--context` |",
            fitting.threshold, fitting.recent
        ),
        format!("| steps of a run | {FLOOR} to {CAP}, by the plan | `--max-steps` |"),
        format!("| tools shown for a task | {}, at most {} in a run |", config.tools, caro::agent::retrieve::MOST),
        format!("| calls of one step side by side | {}, ", config.parallel),
        format!("| tokens of a step | {} |", config.decision_tokens),
        format!("| who brings context may take | {} s, ", config.patience.as_secs()),
    ];
    let history = Ran::of(Machine::new().caro(&["config", "get", "history"]).output().unwrap()).out;
    rows.push(format!("| what is remembered of a conversation | `{}`: ", history.trim()));
    let help = Ran::of(Machine::new().caro(&["agent", "--help"]).output().unwrap()).out;
    let (mut flag, mut choices, mut switches) = ("", 0, Vec::new());
    for line in help.lines().map(str::trim) {
        if let Some(at) = line.find("--").filter(|at| *at == 0 || line.starts_with('-')) {
            flag = line[at..].split([' ', ',']).next().unwrap();
            switches.push(flag);
        }
        if let Some(default) = line.strip_prefix("[default: ") {
            rows.push(format!("| `{}`", default.trim_end_matches(']')));
            rows.push(format!("| `{flag}` |"));
            choices += 1;
        }
    }
    assert!(choices >= 5, "{help}");
    for row in rows {
        assert!(AGENT.contains(&row), "src/agent/README.md lacks {row}");
    }
    for switch in
        ["--subagents", "--no-memory", "--no-rag", "--no-skills", "--no-mcp", "--max-requests", "--max-tokens"]
    {
        assert!(switches.contains(&switch) && AGENT.contains(switch), "{switch}");
    }
}

/// The calls of caro in the code of the documents: the words after each `caro `.
fn calls() -> Vec<Vec<&'static str>> {
    let spans = DOCUMENTS.iter().flat_map(|(_, text)| text.split('`').skip(1).step_by(2));
    let blocks = DOCUMENTS.iter().flat_map(|(_, text)| text.lines().filter_map(|line| line.strip_prefix("    ")));
    let command = |text: &'static str| {
        let text = text.strip_prefix("$ ").unwrap_or(text).strip_prefix("caro ")?;
        // quoted words, placeholders in capitals and comments after a `#` are no verbs or flags
        let ends = |word: &str| word.starts_with(['"', '\'', '#', '(']) || word.chars().all(|c| c.is_ascii_uppercase());
        Some(text.split_whitespace().take_while(|word| !ends(word)).collect::<Vec<_>>())
    };
    spans.chain(blocks).filter_map(command).collect()
}

/// True if a help text has the flag as a whole word: `--timeout` does not count as `--time`.
fn has(help: &str, flag: &str) -> bool {
    let part = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    help.split(part).any(|word| word.strip_prefix("--") == Some(flag))
}

/// The verbs that a help text lists.
fn listed(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| !line.starts_with("Commands:") && !line.starts_with("Verbs:")).skip(1);
    list.take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// The files and folders of a folder of the repository, by their paths; folders end with a slash.
fn in_folder(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap().flatten();
    let path = |entry: std::fs::DirEntry| {
        let slash = if entry.path().is_dir() { "/" } else { "" };
        format!("{folder}/{}{slash}", entry.file_name().to_string_lossy())
    };
    entries.map(path).collect()
}

/// A file that is gone is named in a record as one of its day.
#[test]
fn what_records_name_is_there_or_is_told_to_be_of_that_day() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut named = 0;
    for record in in_folder("benches/records").iter().filter(|path| path.ends_with(".md")) {
        let text = std::fs::read_to_string(root.join(record)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_there =
                link.is_empty() || link.starts_with("https://") || root.join("benches/records").join(link).exists();
            assert!(is_there, "{record}: {link}");
            named += 1;
        }
        let spans: Vec<&str> = text.split('`').collect();
        for pair in spans.windows(2).skip(1).step_by(2) {
            let is_source = pair[0].starts_with("src/") && pair[0].ends_with(".rs");
            if is_source && !root.join(pair[0]).exists() {
                assert!(pair[1].starts_with(" of that day"), "{record}: {} is gone", pair[0]);
            }
            named += usize::from(is_source);
        }
    }
    assert!(named > 20, "{named}");
}

/// The variables of the downloader, which its code lists, are in the paper of the settings.
#[test]
fn the_variables_of_downloads_are_in_the_settings() {
    let code = include_str!("../src/model/fetch/settings.rs");
    let rows = code.lines().filter_map(|line| line.trim().strip_prefix("/// | `")?.split(" | ").next());
    let names: Vec<&str> = rows.flat_map(|row| row.split('`')).filter(|name| name.contains('_')).collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        assert!(SETTINGS.contains(&format!("`{name}`")), "src/cli/SETTINGS.md lacks {name}");
    }
}

/// The README names the version of Rust that the manifest wants.
#[test]
fn the_wanted_version_of_rust_is_named() {
    let manifest: toml::Table = toml::from_str(include_str!("../Cargo.toml")).unwrap();
    let version = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(README.contains(&format!("Rust {version} or newer")), "{version}");
}

/// Figures that are copied from a record match it.
#[test]
fn figures_match_their_records() {
    let record = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let peer = record(include_str!("../benches/records/2026-11-24-peer.json"));
    let knowledge = record(include_str!("../benches/records/2026-11-21-knowledge.json"));
    let of = |value: &serde_json::Value| value.as_f64().unwrap();
    let versus = |what: &str, p50: &serde_json::Value, ratio: &serde_json::Value| {
        format!("{what} | {:.1} s | {:.1} s | {:.2}x |", of(&p50["peer"]), of(&p50["caro"]), of(ratio))
    };
    let asked = &knowledge["query_ms"]["words and meaning"];
    for figure in [
        format!("call itself needs {:.0} MB", of(&peer["peak_bytes_client"]) / 1e6),
        format!("took {:.2}x of what a warm llama.cpp takes", of(&peer["warm_ratio"])),
        versus("p50 of four", &peer["cold_p50_s"], &peer["cold_ratio"]),
        versus("p50 of twelve", &peer["warm_p50_s"], &peer["warm_ratio"]),
        format!("Vectors took {:.0} ms a", of(&knowledge["ingest"]["vectors"]["ms_each"])),
        format!("reading in takes {} MB", knowledge["ingest"]["peak_rss_mb"]),
        format!(
            "{:.0} ms by words and meaning (95 %: {:.0} ms)",
            of(&asked["answer"]["p50"]),
            of(&asked["answer"]["p95"])
        ),
        format!("Words alone: {:.0} ms", of(&knowledge["query_ms"]["words"]["answer"]["p50"])),
    ] {
        assert!(DOCUMENTS.iter().any(|(_, text)| text.contains(&figure)), "no document has {figure:?}");
    }
    let benches = include_str!("../benches/README.md");
    let count = |texts: &[&str]| texts.iter().flat_map(|t| t.lines()).filter(|l| l.starts_with("[[task")).count();
    let tasks = count(&[
        include_str!("../benches/agent/tasks.toml"),
        include_str!("../benches/agent/fresh2.toml"),
        include_str!("../benches/agent/unseen.toml"),
    ]);
    assert!(benches.contains(&format!("| {tasks} tasks of several steps")), "there are {tasks}");
    let skills = count(&[include_str!("../benches/agent/skills.toml")]);
    assert!(benches.contains(&format!("{skills} texts that a skill has rules for")), "there are {skills}");
    let reading =
        count(&[include_str!("../benches/agent/reading.toml"), include_str!("../benches/agent/reading-held.toml")]);
    assert!(benches.contains(&format!("{reading} questions that texts answer")), "there are {reading}");
    let text = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let own: usize =
        in_folder("benches/tasks").iter().filter(|p| p.ends_with(".toml")).map(|p| count(&[&text(p)])).sum();
    assert!(benches.contains(&format!("our own {own} tasks")), "there are {own}");
    for name in in_folder("benches").iter().filter_map(|path| path.strip_prefix("benches/")) {
        let is_command = name.ends_with(".py") || name.ends_with(".sh") || name.ends_with('/');
        assert!(!is_command || benches.contains(name), "benches/README.md lacks {name}");
    }
    let checks = text("benches/records/2026-11-28-checks.md");
    let of_all = checks.lines().find_map(|line| line.strip_prefix("| **all** | **")).unwrap();
    let (all, rest) = of_all.split_once("** | **").unwrap();
    let right = rest.split_once(' ').unwrap().0;
    assert!(README.contains(&format!("[{right} of {all}]")), "{right} of {all}");
    assert!(benches.contains(&format!("**{all} tasks that nobody has read {right} are right with it**")));
    let share = 1.0 - right.parse::<f64>().unwrap() / all.parse::<f64>().unwrap();
    assert!((0.30..0.36).contains(&share) && README.contains("about one answer in three is wrong"), "{share}");
    let mut rows: Vec<&str> = benches.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    rows.sort_unstable();
    assert!(rows.windows(2).all(|pair| pair[0] != pair[1]), "a duplicate row: {rows:#?}");
}

#[test]
fn every_named_verb_and_flag_exists() {
    let machine = Machine::new();
    let help = |verbs: &[&str]| {
        let ran = machine.run(&[verbs, &["--help"]].concat());
        assert_eq!(ran.code, Some(0), "{verbs:?}: {ran:#?}");
        ran.out
    };
    let top = help(&[]);
    let verbs = listed(&top);
    let mut named = Vec::new();
    for words in calls() {
        // the only request of the README without quotes
        if words.first() == Some(&"find") {
            continue;
        }
        let (mut path, mut text) = (Vec::new(), top.clone());
        for (at, word) in words.into_iter().enumerate() {
            let word = word.trim_end_matches(',');
            if let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) {
                let flag = flag.split('=').next().unwrap();
                assert!([&text, &top].iter().any(|help| has(help, flag)), "`caro {}` has no --{flag}", path.join(" "));
            } else if listed(&text).contains(&word) {
                path.push(word);
                text = help(&path);
            } else if word == "|" && !path.is_empty() {
                // `caro model list | pull`: another subcommand of the same verb
                path.truncate(1);
                text = help(&path);
            } else if at == 0 {
                assert!(word.starts_with('-'), "`caro {word}` is not a verb");
            }
        }
        named.extend(path.first().copied());
    }
    let undocumented: Vec<&&str> =
        verbs.iter().filter(|verb| !["help", "version"].contains(verb) && !named.contains(verb)).collect();
    assert!(undocumented.is_empty(), "the documents lack {undocumented:?}");
    // a flag named without its verb may belong to any verb
    let of_verbs: String = verbs.iter().filter(|v| **v != "help").map(|verb| help(&[verb])).collect();
    let ingest = help(&["knowledge", "ingest"]);
    let documents = DOCUMENTS.iter().filter(|(path, _)| !path.starts_with("benches"));
    for (text, at) in documents.flat_map(|(_, text)| text.match_indices("`--").map(move |(at, _)| (text, at))) {
        let rest = &text[at + "`--".len()..];
        let flag = &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len())];
        // a flag of cargo
        let of_cargo = ["profile", "features"].contains(&flag) || flag.is_empty();
        assert!(of_cargo || [&top, &of_verbs, &ingest].iter().any(|help| has(help, flag)), "--{flag} is not a flag");
    }
}

/// The questions of `benches/agent/table.py` ask for phrases that are in our own documents.
#[test]
fn the_phrases_of_the_questions_are_in_their_files() {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let questions: toml::Table = toml::from_str(include_str!("../benches/agent/questions.toml")).unwrap();
    let questions = questions["question"].as_array().unwrap();
    assert!(questions.len() >= 20, "{}", questions.len());
    for question in questions {
        let also = question.get("also").and_then(|also| also.as_array()).into_iter().flatten();
        let also = also.map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()));
        let own = (question["file"].as_str().unwrap(), question["phrase"].as_str().unwrap());
        for (file, phrase) in also.chain([own]) {
            let text = std::fs::read_to_string(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
            assert!(flat(&text).contains(&flat(phrase)), "{file} has no {phrase:?}");
        }
    }
}

/// The features of a release include every backend, and the documents say how to test each.
#[test]
fn a_release_includes_every_backend() {
    let features = |manifest: &str| -> toml::Table {
        let manifest: toml::Table = toml::from_str(manifest).unwrap();
        manifest["features"].as_table().unwrap().clone()
    };
    let names = |list: &toml::Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let harness = features(include_str!("../src/agent/Cargo.toml"));
    let is_backend = |list: &toml::Value| names(list).iter().any(|name| name.starts_with("dep:"));
    let mut backends: Vec<String> =
        harness.iter().filter(|(_, list)| is_backend(list)).map(|(name, _)| name.clone()).collect();
    backends.sort_unstable();
    let mut shipped = names(&features(include_str!("../Cargo.toml"))["default"]);
    shipped.sort_unstable();
    assert_eq!((shipped.clone(), shipped), (backends, vec!["redis".into(), "s3".into()]));
    assert!(include_str!("../README.md").contains("`cargo build --profile dist`"));
    let document = include_str!("../src/documents/README.md");
    assert!(["redis-server --port ", "moto_server -p "].iter().all(|command| document.contains(command)));
}
