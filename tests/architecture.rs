//! Tests the architecture: which crate may depend on which, and which modules may spawn processes, open sockets,
//! print or call the model.
//!
//! Reads the source as text. Code compiled only for tests (`#[cfg(test)]`) is exempt.

use std::path::{Path, PathBuf};

/// A source file without its tests and comments.
struct Source {
    /// Path below `src`, with forward slashes.
    path: String,
    code: String,
    lines: usize,
}

/// Removes comments and the items marked `#[cfg(test)]`.
pub fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if ["#[cfg(test)]", "#[cfg(all(test, "].iter().any(|mark| line.starts_with(mark)) {
            let mut item = lines.by_ref().skip_while(|l| l.starts_with("#[") || l.trim_start().starts_with("//"));
            // one line, or up to the closing brace, which the formatter puts at the start of a line
            let ends_at_once = item.next().is_none_or(|first| first.ends_with(';') || first.ends_with('}'));
            if !ends_at_once {
                lines.by_ref().find(|l| l.starts_with(['}', ')', ']']));
            }
            continue;
        }
        if !line.trim_start().starts_with("//") {
            code.push_str(line.split(" // ").next().unwrap());
            code.push('\n');
        }
    }
    code
}

/// The files below a folder of the project with one of these extensions, including tests, with their texts.
pub fn files(folder: &str, extensions: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| extensions.iter().any(|extension| e == *extension)) {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/"), text));
            }
        }
    }
    assert!(files.len() > 20, "the test does not see {}", root.display());
    files
}

/// Rewrites the paths in a file below `src` as if the whole source were one crate: both `crate::x` in `shell` and
/// `caro_shell::x` in another crate become `crate::shell::x`.
pub fn with_absolute_paths(path: &str, text: &str) -> String {
    let Some((name, _)) = path.split_once('/') else { return text.to_owned() };
    let text =
        text.replace("crate::", &format!("crate::{name}::")).replace("use crate as", &format!("use crate::{name} as"));
    text.replace("caro_terminal", "crate::cli").replace("caro_", "crate::")
}

fn sources() -> Vec<Source> {
    // modules compiled only for tests
    let is_test = |path: &str| {
        let name = path.rsplit('/').next().unwrap();
        ["tests.rs", "testing.rs"].contains(&name) || name.ends_with("_tests.rs")
    };
    let files = files("src", &["rs"]).into_iter().filter(|(path, _)| !is_test(path));
    let source = |(path, text): (String, String)| {
        let code = with_absolute_paths(&path, &without_tests(&text));
        Source { path, code, lines: text.lines().count() }
    };
    files.map(source).collect()
}

/// The files outside `allowed` (path prefixes) whose code contains one of `words`.
fn offenders(allowed: &[&str], words: &[&str]) -> Vec<String> {
    sources()
        .iter()
        .filter(|s| !allowed.iter().any(|a| s.path.starts_with(a)))
        .flat_map(|s| words.iter().filter(|w| s.code.contains(**w)).map(|w| format!("{} has {w}", s.path)))
        .collect()
}

#[test]
fn the_source_is_read_without_tests_and_comments() {
    let text = "use a;\n#[cfg(test)]\nmod x;\n// no\nfn f() {} // say\n#[cfg(test)]\nmod tests {\n    hidden\n}\nfn g() {\n    seen\n}\n\
                #[cfg(test)]\n#[allow(x)]\nfn only() {\n    hidden\n}\nlast\n";
    assert_eq!(without_tests(text), "use a;\nfn f() {}\nfn g() {\n    seen\n}\nlast\n");
    let text =
        "use crate::parse::A;\nuse caro_base::files;\nuse crate as shell;\npub(crate) fn f() { caro_terminal::g() }";
    assert_eq!(
        with_absolute_paths("shell/x.rs", text),
        "use crate::shell::parse::A;\nuse crate::base::files;\nuse crate::shell as shell;\npub(crate) fn f() { crate::cli::g() }"
    );
    let all = sources();
    for name in ["model/engine/mod.rs", "agent/turn/mod.rs"] {
        let source = all.iter().find(|s| s.path == name).unwrap();
        assert!(source.code.lines().count() * 2 > source.lines, "{name}: {} lines seen", source.code.lines().count());
    }
    let (seen, total) = all.iter().fold((0, 0), |(a, b), s| (a + s.code.lines().count(), b + s.lines));
    assert!(seen * 2 > total, "only {seen} of {total} lines are seen");
}

/// The crates that each crate may depend on. Cargo itself forbids cycles.
pub const DEPENDENCIES: &[(&str, &str)] = &[
    ("base", ""),
    ("intent", ""),
    ("database", ""),
    ("exec", ""),
    ("model", "base"),
    ("shell", "base"),
    ("inference", "model"),
    ("policy", "base intent"),
    ("host", "base exec shell"),
    ("undo", "base exec shell"),
    ("manual", "database exec shell"),
    ("documents", "base database exec intent model policy"),
    ("command", "base documents exec host inference intent manual model policy shell"),
    ("agent", "base command database documents exec inference intent model policy shell"),
    // `serve` runs the harness behind HTTP, and the model in a resident process
    ("serve", "agent base exec inference model"),
    ("cli", "agent base command database documents exec host inference manual model policy serve shell undo"),
];

#[test]
fn dependencies_of_crates_match_the_table() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = std::fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut crates: Vec<String> = folders.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    crates.sort();
    let mut listed: Vec<&str> = DEPENDENCIES.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(crates, listed, "the table lists each crate");
    for (name, allowed) in DEPENDENCIES {
        let manifest = std::fs::read_to_string(src.join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let all = ["dependencies", "dev-dependencies", "build-dependencies"].map(|kind| manifest.get(kind));
        let names = all.into_iter().flatten().flat_map(|kind| kind.as_table().unwrap().keys());
        let mut found: Vec<&str> = names.filter_map(|name| name.strip_prefix("caro-")).collect();
        found.sort_unstable();
        // one that is used may help in tests, too
        found.dedup();
        assert_eq!(found.join(" "), *allowed, "{name}");
    }
}

/// A library that builds only on some systems is a dependency only there, in tests too.
#[test]
fn platform_specific_dependencies_are_conditional() {
    const PLATFORM_SPECIFIC: [&str; 4] = ["landlock", "libc", "rustix", "seccompiler"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = DEPENDENCIES.iter().map(|(name, _)| root.join("src").join(name));
    for folder in crates.chain([root.to_owned()]) {
        let manifest: toml::Table =
            toml::from_str(&std::fs::read_to_string(folder.join("Cargo.toml")).unwrap()).unwrap();
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let everywhere = manifest.get(kind).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            let wrong: Vec<&String> = everywhere.filter(|name| PLATFORM_SPECIFIC.contains(&name.as_str())).collect();
            assert!(wrong.is_empty(), "{}: {wrong:?} are listed under {kind}", folder.display());
        }
    }
}

#[test]
fn the_model_is_called_in_one_place() {
    let sources = sources();
    for call in [".generate(", ".sample("] {
        // calls of a model have an argument; steps of the loop have none
        let count =
            |code: &str| code.match_indices(call).filter(|(at, _)| !code[at + call.len()..].starts_with(')')).count();
        let calls: Vec<&str> = sources
            .iter()
            .filter(|s| !s.path.starts_with("model/"))
            .flat_map(|s| (0..count(&s.code)).map(|_| s.path.as_str()))
            .collect();
        // `serve` only passes calls on, to the resident process and there to the model
        let (mut relays, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|path| path.starts_with("serve/"));
        relays.sort_unstable();
        relays.dedup();
        assert_eq!(calls, ["inference/generate.rs"], "{call}");
        assert_eq!(relays, ["serve/resident/client.rs", "serve/resident/worker.rs"], "{call}");
    }
}

#[test]
fn one_loop_drives_every_recipe() {
    let sources = sources();
    let of = |word: &str| -> Vec<&str> {
        sources.iter().filter(|s| s.code.contains(word)).map(|s| s.path.as_str()).collect()
    };
    let mut machines = of("impl StateMachine for");
    machines.sort_unstable();
    assert_eq!(
        machines,
        [
            "agent/forge/mod.rs",
            "agent/perpetual/driver.rs",
            "agent/runtime/mod.rs",
            "agent/shard/mod.rs",
            "command/recipe.rs"
        ]
    );
    let mut drivers = of(" drive(&mut ");
    drivers.sort_unstable();
    assert_eq!(drivers, machines, "the loop drives each of them");
    assert_eq!(of("machine.next_step()"), ["inference/drive.rs"], "only the loop drives");
    let loops: Vec<&str> = of("loop {").into_iter().filter(|path| machines.contains(path)).collect();
    assert_eq!(loops, [""; 0], "no recipe loops itself");
}

#[test]
fn tools_are_called_in_one_place() {
    let calls: Vec<String> = sources()
        .iter()
        .filter(|s| s.path.starts_with("agent/") || s.path.starts_with("cli/"))
        .flat_map(|s| s.code.matches(".call(").map(|_| s.path.clone()))
        .collect();
    assert_eq!(calls, ["agent/runtime/batch.rs"]);
}

#[test]
fn only_the_pipeline_opens_tool_results() {
    let opens: Vec<String> = sources()
        .iter()
        .filter(|s| s.path.starts_with("agent/") || s.path.starts_with("cli/"))
        .flat_map(|s| s.code.matches("raw.open()").map(|_| s.path.clone()))
        .collect();
    assert_eq!(opens, ["agent/observe/mod.rs"]);
}

#[test]
fn only_exec_spawns() {
    assert_eq!(offenders(&["exec/"], &["Command::new", "process::Command", "fork(", "posix_spawn"]), [""; 0]);
}

#[test]
fn only_the_fetcher_the_remote_model_tool_servers_the_resident_and_the_server_open_sockets() {
    let words =
        ["TcpStream", "TcpListener", "UdpSocket", "ureq::", "hf_hub::", "reqwest", " ::redis", "object_store::aws"];
    // `agent/mcp/http.rs`: tool servers configured by address, through the fetcher's client;
    // `agent/memory/redis.rs`: the configured server for notes, in builds with that feature;
    // `agent/workspace/s3.rs`: the configured bucket for files, likewise, through the fetcher's client;
    // `serve/http/listen.rs`: where `caro serve` listens
    assert_eq!(
        offenders(
            &[
                "model/fetch",
                "model/remote",
                "agent/mcp/http.rs",
                "agent/memory/redis.rs",
                "agent/workspace/s3.rs",
                "serve/http/listen.rs"
            ],
            &words
        ),
        [""; 0]
    );
    // Unix sockets stay on this machine
    assert_eq!(
        offenders(&["serve/resident/", "serve/http/listen.rs"], &["UnixStream", "UnixListener", "UnixDatagram"]),
        [""; 0]
    );
}

#[test]
fn only_the_engine_names_candle() {
    assert_eq!(offenders(&["model/engine/"], &["candle_core", "candle_nn", "candle_transformers"]), [""; 0]);
}

#[test]
fn only_the_terminal_prints() {
    assert_eq!(offenders(&["cli/"], &["println!", "eprintln!", "print!(", "io::stdout", "io::stderr"]), [""; 0]);
}

/// At most 800 lines. The rule data below `platform-rules` is exempt: it is looked up, not read through.
#[test]
fn no_file_is_longer_than_800_lines() {
    for folder in ["src", "tests", "benches"] {
        let lines = files(folder, &["rs", "toml", "py"]).into_iter().map(|(path, text)| (path, text.lines().count()));
        assert_eq!(lines.filter(|(_, lines)| *lines > 800).collect::<Vec<_>>(), [], "below {folder}");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    assert_eq!(offenders(&[], &["todo!(", "unimplemented!(", "TODO", "FIXME"]), [""; 0]);
}

/// The modules of the harness and of the command line that access the disk directly, with the reason. All others go
/// through these.
const ON_DISK: &[(&str, &str)] = &[
    ("agent/evidence/", "none: the driver reads the files for it"),
    ("agent/forge/", "stores a skill in quarantine until it is promoted"),
    ("agent/harness/place.rs", "reads the working folder, for the prompt"),
    ("agent/mcp/config.rs", "reads the list of servers"),
    ("agent/mcp/trust.rs", "stores the user's decisions about a project's servers"),
    ("agent/perpetual/channel.rs", "reads and appends to the two files of the channel"),
    ("agent/runtime/disk.rs", "compares the working folder before and after a call"),
    ("agent/skill/", "finds and reads skills"),
    ("agent/store/", "opens the database of runs and events"),
    ("agent/tools/", "access the user's files as the calls ask and the guards allow"),
    ("agent/workspace/", "the interface for the harness's own files"),
    ("documents/", "reads the user's documents, and stores their index"),
    ("policy/secret.rs", "lists folders, to expand patterns of the shell"),
    ("cli/verbs/bench/", "creates the folders that it measures in"),
    ("cli/verbs/completions/", "writes manual pages into the given folder"),
    ("cli/setup/layers.rs", "reads the files of settings"),
    ("cli/setup/change/", "changes the files of settings"),
    ("cli/verbs/doctor/", "inspects caro's folders and files, and changes nothing"),
    ("cli/verbs/eval/", "reads suites and creates the fixtures of their tasks"),
    ("cli/verbs/fix.rs", "reads the given error text"),
    ("cli/answer/followup/tty.rs", "reads the keys of the terminal"),
    ("cli/harness/forging.rs", "reads the given samples"),
    ("cli/term/history.rs", "stores what was typed"),
    ("cli/setup/rc.rs", "reads the shell's start-up file"),
    ("cli/verbs/init/install.rs", "writes into the shell's start-up file"),
    ("cli/verbs/config/editor.rs", "stores the copy that is edited"),
    ("cli/term/interrupt.rs", "opens the terminal, to restore its settings"),
    ("cli/answer/log/", "stores requests if that is turned on, and the last answer of a terminal"),
    ("cli/setup/policy.rs", "reads the files of policies"),
    ("cli/verbs/skills.rs", "creates a new skill"),
    ("cli/verbs/uninstall/", "lists all of caro's files, and deletes them"),
    ("cli/term/stdin.rs", "inspects the standard input of a request"),
];

#[test]
fn only_listed_modules_access_the_disk() {
    let touches = |code: &str| {
        let starts = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let grouped = |rest: &str| rest.split('}').next().is_some_and(|names| names.split(", ").any(|n| n == "files"));
        ["fs::", "File::", "base::files"].iter().any(|word| code.match_indices(word).any(|(at, _)| starts(at)))
            || code.split("base::{").skip(1).any(grouped)
    };
    let sources = sources();
    let ours = |s: &&Source| ["agent/", "cli/", "documents/", "policy/"].iter().any(|start| s.path.starts_with(start));
    let on_disk: Vec<&str> =
        sources.iter().filter(ours).filter(|s| touches(&s.code)).map(|s| s.path.as_str()).collect();
    let unlisted: Vec<&&str> =
        on_disk.iter().filter(|path| !ON_DISK.iter().any(|(place, _)| path.starts_with(place))).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}: go through the workspace, or add the reason to the list");
    for (place, why) in ON_DISK {
        let used = on_disk.iter().any(|path| path.starts_with(place));
        assert_eq!(used, !why.starts_with("none"), "{place}: {why}");
    }
}

#[test]
fn tools_that_are_never_offloaded_are_listed_once() {
    // the names of tools occur only where the tools are defined and in the list
    let sources = sources();
    let names = ["\"read_artifact\"", "\"list_artifacts\"", "\"workspace_view\"", "\"workspace_clear\""];
    let mut lists: Vec<&str> = sources
        .iter()
        .filter(|s| names.iter().filter(|name| s.code.contains(**name)).count() > 1)
        .map(|s| s.path.as_str())
        .collect();
    lists.sort_unstable();
    assert_eq!(lists, ["agent/observe/artifact.rs", "agent/tools/artifact.rs", "agent/tools/workspace.rs"]);
    // the decision does not depend on the provider of a tool
    assert_eq!(
        offenders(&["agent/tools/", "cli/verbs/tools.rs", "serve/http/sessions.rs"], &["Provider::Workspace"]),
        [""; 0]
    );
    let offloads: Vec<&str> =
        sources.iter().flat_map(|s| s.code.matches("Offload::store(").map(|_| s.path.as_str())).collect();
    assert_eq!(offloads, ["agent/observe/mod.rs"], "offloading is decided in one place");
}

#[test]
fn memory_and_workspace_never_share_a_name() {
    for source in sources() {
        let names = source.code.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase);
        let both: Vec<String> = names.filter(|n| n.contains("memory") && n.contains("workspace")).collect();
        assert!(both.is_empty(), "{} mixes them: {both:?}", source.path);
    }
    // neither uses the other
    for (one, other) in [("agent/memory/", "workspace::"), ("agent/workspace/", "memory::")] {
        let named: Vec<String> = sources()
            .into_iter()
            .filter(|s| s.path.starts_with(one) && s.code.contains(other))
            .map(|s| s.path)
            .collect();
        assert_eq!(named, [""; 0], "{one} uses {other}");
    }
}

/// Checks of facts depend only on the command, not on the request.
#[test]
fn checks_of_facts_do_not_use_the_request() {
    let all = sources();
    let facts: Vec<&Source> = all.iter().filter(|s| s.path.starts_with("command/checks/facts/")).collect();
    assert!(facts.len() > 20, "{} files of facts", facts.len());
    let named: Vec<&str> = facts.iter().filter(|s| s.code.contains("request::")).map(|s| s.path.as_str()).collect();
    assert_eq!(named, [""; 0]);
}

#[test]
fn backends_are_behind_traits_and_not_in_the_root() {
    let sources = sources();
    let runtime = sources.iter().find(|s| s.path == "agent/runtime/parts.rs").unwrap();
    let fields = runtime.code.split("pub struct Runtime {").nth(1).unwrap().split("\n}").next().unwrap();
    let fields: Vec<&str> = fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": "))
        .map(|(_, kind)| kind.trim_end_matches(','))
        .collect();
    assert!(fields.len() > 8, "{fields:?}");
    // not backends: names of tools, guards, the event emitter, the cancel flag, numbers
    const PLAIN: [&str; 5] = ["Registry", "Guards", "Arc<Emitter>", "Cancel", "Config"];
    let concrete: Vec<&&str> = fields.iter().filter(|kind| !kind.contains("dyn ") && !PLAIN.contains(kind)).collect();
    assert!(concrete.is_empty(), "{concrete:?}");
    // the core names no backend
    let core = [
        "agent/turn/",
        "agent/runtime/",
        "agent/guard/",
        "agent/observe/",
        "agent/evidence/",
        "agent/plan/",
        "agent/action.rs",
        "agent/assemble.rs",
        "agent/state.rs",
    ];
    let backends = ["store::", "workspace::", "documents::", "memory::", "mcp::", "skill::", "rusqlite"];
    let named: Vec<String> = sources
        .iter()
        .filter(|s| core.iter().any(|c| s.path.starts_with(c)))
        .flat_map(|s| backends.iter().filter(|b| s.code.contains(**b)).map(|b| format!("{} names {b}", s.path)))
        .collect();
    assert_eq!(named, [""; 0]);
}

#[test]
fn each_event_type_is_emitted_or_documented_as_unused() {
    let document = include_str!("../src/agent/event/EVENTS.md");
    let sources = sources();
    let emits = |kind: &str| {
        let word = format!("Kind::{kind}");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        // the store and the command line only read events
        let may_emit = |s: &&Source| s.path.starts_with("agent/") && !s.path.starts_with("agent/store/");
        sources
            .iter()
            .filter(may_emit)
            .any(|s| s.code.match_indices(&word).any(|(at, _)| ends(&s.code[at + word.len()..])))
    };
    for kind in caro::agent::Kind::ALL {
        let row = document.lines().find(|line| line.starts_with(&format!("| `{}` |", kind.name()))).unwrap();
        assert!(row.contains("Nothing emits it yet.") || emits(&format!("{kind:?}")), "nothing emits {}", kind.name());
    }
}
