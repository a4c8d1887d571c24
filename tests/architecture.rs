//! The house keeps its shape: which module may name which, who spawns, who opens sockets, who prints, who asks the model.
//!
//! Reads the source as text. What is compiled for tests only (`#[cfg(test)]`) may do what it likes.

use std::path::{Path, PathBuf};

/// A source file without its tests and comments.
struct Source {
    /// Path below `src`, with forward slashes.
    path: String,
    code: String,
    lines: usize,
}

/// The code without comments and without the items that stand behind a `#[cfg(test)]` of their own.
pub fn without_tests(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if ["#[cfg(test)]", "#[cfg(all(test, "].iter().any(|mark| line.starts_with(mark)) {
            let mut item = lines.by_ref().skip_while(|l| l.starts_with("#[") || l.trim_start().starts_with("//"));
            // a line, or to the brace that closes it: the formatter puts that where the line begins
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

/// The files below a folder of the project whose names end so, tests and all, with their texts.
pub fn files(folder: &str, endings: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/"), text));
            }
        }
    }
    assert!(files.len() > 20, "the test does not see {}", root.display());
    files
}

/// The text of a file below `src` with every path from the root of the house, as if the rooms were no crates of their own:
/// `crate::x` of `shell` is `crate::shell::x`, and so is `caro_shell::x` of another room.
pub fn from_the_root(path: &str, text: &str) -> String {
    let Some((room, _)) = path.split_once('/') else { return text.to_owned() };
    let text =
        text.replace("crate::", &format!("crate::{room}::")).replace("use crate as", &format!("use crate::{room} as"));
    text.replace("caro_terminal", "crate::cli").replace("caro_", "crate::")
}

fn sources() -> Vec<Source> {
    // modules that are only compiled for tests
    let is_test = |path: &str| {
        let name = path.rsplit('/').next().unwrap();
        ["tests.rs", "testing.rs"].contains(&name) || name.ends_with("_tests.rs")
    };
    let files = files("src", &["rs"]).into_iter().filter(|(path, _)| !is_test(path));
    let source = |(path, text): (String, String)| {
        let code = from_the_root(&path, &without_tests(&text));
        Source { path, code, lines: text.lines().count() }
    };
    files.map(source).collect()
}

/// Files outside `allowed` (path prefixes) whose code holds one of `words`.
fn offenders(allowed: &[&str], words: &[&str]) -> Vec<String> {
    sources()
        .iter()
        .filter(|s| !allowed.iter().any(|a| s.path.starts_with(a)))
        .flat_map(|s| words.iter().filter(|w| s.code.contains(**w)).map(|w| format!("{} has {w}", s.path)))
        .collect()
}

#[test]
fn all_of_the_source_is_seen() {
    let text = "use a;\n#[cfg(test)]\nmod x;\n// no\nfn f() {} // say\n#[cfg(test)]\nmod tests {\n    hidden\n}\nfn g() {\n    seen\n}\n\
                #[cfg(test)]\n#[allow(x)]\nfn only() {\n    hidden\n}\nlast\n";
    assert_eq!(without_tests(text), "use a;\nfn f() {}\nfn g() {\n    seen\n}\nlast\n");
    let text =
        "use crate::parse::A;\nuse caro_base::files;\nuse crate as shell;\npub(crate) fn f() { caro_terminal::g() }";
    assert_eq!(
        from_the_root("shell/x.rs", text),
        "use crate::shell::parse::A;\nuse crate::base::files;\nuse crate::shell as shell;\npub(crate) fn f() { crate::cli::g() }"
    );
    let all = sources();
    for name in ["model/engine/mod.rs", "agent/turn/mod.rs"] {
        let source = all.iter().find(|s| s.path == name).unwrap();
        assert!(source.code.lines().count() * 2 > source.lines, "{name}: {} lines seen", source.code.lines().count());
    }
    let (seen, there) = all.iter().fold((0, 0), |(a, b), s| (a + s.code.lines().count(), b + s.lines));
    assert!(seen * 2 > there, "{seen} of {there} lines are looked at");
}

/// Which rooms a room stands on. That no room is below itself is held by cargo; that it is on nothing else, here.
pub const STANDS_ON: &[(&str, &str)] = &[
    ("base", ""),
    ("intent", ""),
    ("database", ""),
    ("exec", ""),
    ("model", "base"),
    ("shell", "base"),
    ("inference", "model"),
    ("policy", "intent"),
    ("host", "base exec shell"),
    ("undo", "base exec shell"),
    ("manual", "database exec shell"),
    ("documents", "base database exec intent model policy"),
    ("command", "base documents exec host inference intent manual model policy shell"),
    ("agent", "base command database documents exec inference intent model policy shell"),
    // the resident is a child process of the first caller; the server wraps the harness
    ("serve", "agent base exec inference model"),
    ("cli", "agent base command database documents exec host inference manual model policy serve shell undo"),
];

#[test]
fn arrows_point_one_way() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let rooms = std::fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut rooms: Vec<String> = rooms.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    rooms.sort();
    let mut named: Vec<&str> = STANDS_ON.iter().map(|(room, _)| *room).collect();
    named.sort_unstable();
    assert_eq!(rooms, named, "each room has its arrows in the table");
    for (room, below) in STANDS_ON {
        let manifest = std::fs::read_to_string(src.join(room).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let all = ["dependencies", "dev-dependencies", "build-dependencies"].map(|kind| manifest.get(kind));
        let names = all.into_iter().flatten().flat_map(|kind| kind.as_table().unwrap().keys());
        let mut found: Vec<&str> = names.filter_map(|name| name.strip_prefix("caro-")).collect();
        found.sort_unstable();
        assert_eq!(found.join(" "), *below, "{room}");
    }
}

/// A crate that builds on some systems alone is asked for on those alone, in tests too.
#[test]
fn what_one_system_has_is_asked_for_there_alone() {
    const OF_ONE: [&str; 4] = ["landlock", "libc", "rustix", "seccompiler"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rooms = STANDS_ON.iter().map(|(room, _)| root.join("src").join(room));
    for folder in rooms.chain([root.to_owned()]) {
        let manifest: toml::Table =
            toml::from_str(&std::fs::read_to_string(folder.join("Cargo.toml")).unwrap()).unwrap();
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let everywhere = manifest.get(kind).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            let wrong: Vec<&String> = everywhere.filter(|name| OF_ONE.contains(&name.as_str())).collect();
            assert!(wrong.is_empty(), "{}: {wrong:?} stand below {kind}", folder.display());
        }
    }
}

#[test]
fn one_call_site_of_the_model() {
    let sources = sources();
    for way in [".generate(", ".sample("] {
        // a step of the loop that is called so takes no argument, a model does
        let asks =
            |code: &str| code.match_indices(way).filter(|(at, _)| !code[at + way.len()..].starts_with(')')).count();
        let calls: Vec<&str> = sources
            .iter()
            .filter(|s| !s.path.starts_with("model/"))
            .flat_map(|s| (0..asks(&s.code)).map(|_| s.path.as_str()))
            .collect();
        // `serve` is a model that hands each call on, to the other process and there to the weights: it asks nothing itself.
        let (mut relays, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|path| path.starts_with("serve/"));
        relays.sort_unstable();
        relays.dedup();
        assert_eq!(calls, ["inference/generate.rs"], "{way}");
        assert_eq!(relays, ["serve/resident/client.rs", "serve/resident/worker.rs"], "{way}");
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
    assert_eq!(drivers, machines, "each is driven by the loop");
    assert_eq!(of("machine.next_step()"), ["inference/drive.rs"], "and nobody else drives");
    let loops: Vec<&str> = of("loop {").into_iter().filter(|path| machines.contains(path)).collect();
    assert_eq!(loops, [""; 0], "no recipe has a loop of its own");
}

#[test]
fn one_call_site_of_a_tool() {
    let calls: Vec<String> = sources()
        .iter()
        .filter(|s| s.path.starts_with("agent/") || s.path.starts_with("cli/"))
        .flat_map(|s| s.code.matches(".call(").map(|_| s.path.clone()))
        .collect();
    assert_eq!(calls, ["agent/runtime/batch.rs"]);
}

#[test]
fn only_the_pipeline_opens_what_a_tool_returned() {
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
    // `agent/mcp/http.rs`: servers of tools that the person named by their address, through the fetcher's own client;
    // `agent/memory/redis.rs`: the server that the person named to keep notes on, in builds with that feature;
    // `agent/workspace/s3.rs`: the bucket that the person named to keep files in, likewise, through the fetcher's client;
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
    // these do not leave the machine
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

/// 800 lines. The data of rules below `platform-rules` is exempt: nobody reads that from one end to the other.
#[test]
fn no_file_is_too_long_to_read() {
    for folder in ["src", "tests", "benches"] {
        let lines = files(folder, &["rs", "toml", "py"]).into_iter().map(|(path, text)| (path, text.lines().count()));
        assert_eq!(lines.filter(|(_, lines)| *lines > 800).collect::<Vec<_>>(), [], "below {folder}");
    }
}

#[test]
fn nothing_is_left_unfinished() {
    assert_eq!(offenders(&[], &["todo!(", "unimplemented!(", "TODO", "FIXME"]), [""; 0]);
}

/// What of the harness, and of the terminal's side of it, touches the disk by itself, and why; everything else goes through these.
const ON_DISK: &[(&str, &str)] = &[
    ("agent/evidence/", "none: the driver brings what it looks at"),
    ("agent/forge/", "keeps a skill in quarantine while it is made, and puts it on the shelf"),
    ("agent/harness/place.rs", "reads the working folder, for the prompt"),
    ("agent/mcp/config.rs", "reads the list of servers"),
    ("agent/mcp/trust.rs", "keeps what the person said about a project's servers"),
    ("agent/perpetual/channel.rs", "reads and adds to the two files that the person named to talk through"),
    ("agent/runtime/disk.rs", "looks at the working folder before and after a call"),
    ("agent/skill/", "finds and reads skills"),
    ("agent/store/", "opens the file of runs and events"),
    ("agent/tools/", "the person's files, as the calls of the model say and the guards allow"),
    ("agent/workspace/", "the one surface for files of the harness itself"),
    ("documents/", "reads the person's own documents, and keeps their index"),
    ("policy/secret.rs", "lists folders, to know which names a pattern of the shell stands for"),
    ("cli/verbs/bench/", "makes the folders that it measures in"),
    ("cli/verbs/completions/", "writes manual pages into the folder that is named"),
    ("cli/setup/layers.rs", "reads the files of settings"),
    ("cli/setup/change/", "changes the files of settings"),
    ("cli/verbs/doctor/", "looks at folders and files of ours, and changes nothing"),
    ("cli/verbs/eval/", "reads suites and sets the stages of their tasks"),
    ("cli/verbs/fix.rs", "reads the error text that is named"),
    ("cli/answer/followup/tty.rs", "reads the keys of the terminal"),
    ("cli/harness/forging.rs", "reads the samples that are named"),
    ("cli/term/history.rs", "keeps what was typed"),
    ("cli/setup/rc.rs", "reads the shell's own file"),
    ("cli/verbs/init/install.rs", "writes the line into it"),
    ("cli/verbs/config/editor.rs", "keeps the copy that is edited"),
    ("cli/term/interrupt.rs", "opens the terminal, to give it back as it was"),
    ("cli/answer/log/", "keeps requests, once that is turned on, and the last answer of a terminal"),
    ("cli/setup/policy.rs", "reads the files of policies"),
    ("cli/verbs/skills.rs", "makes a new skill"),
    ("cli/verbs/uninstall/", "lists everything of ours, and takes it away"),
    ("cli/term/stdin.rs", "looks at what comes in beside a request"),
];

#[test]
fn the_workspace_is_where_the_harness_keeps_files() {
    let touches = |code: &str| {
        let starts = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let grouped = |rest: &str| rest.split('}').next().is_some_and(|names| names.split(", ").any(|n| n == "files"));
        ["fs::", "File::", "base::files"].iter().any(|word| code.match_indices(word).any(|(at, _)| starts(at)))
            || code.split("base::{").skip(1).any(grouped)
    };
    let sources = sources();
    let ours = |s: &&Source| ["agent/", "cli/", "documents/", "policy/"].iter().any(|room| s.path.starts_with(room));
    let on_disk: Vec<&str> =
        sources.iter().filter(ours).filter(|s| touches(&s.code)).map(|s| s.path.as_str()).collect();
    let unlisted: Vec<&&str> =
        on_disk.iter().filter(|path| !ON_DISK.iter().any(|(place, _)| path.starts_with(place))).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}: go through the workspace, or say here why not");
    for (place, why) in ON_DISK {
        let used = on_disk.iter().any(|path| path.starts_with(place));
        assert_eq!(used, !why.starts_with("none"), "{place}: {why}");
    }
}

#[test]
fn one_list_says_what_is_never_offloaded() {
    // a tool's name stands where the tool is made, and in the list
    let sources = sources();
    let names = ["\"read_artifact\"", "\"list_artifacts\"", "\"workspace_view\"", "\"workspace_clear\""];
    let mut lists: Vec<&str> = sources
        .iter()
        .filter(|s| names.iter().filter(|name| s.code.contains(**name)).count() > 1)
        .map(|s| s.path.as_str())
        .collect();
    lists.sort_unstable();
    assert_eq!(lists, ["agent/observe/artifact.rs", "agent/tools/artifact.rs", "agent/tools/workspace.rs"]);
    // and nobody goes by where a tool comes from
    assert_eq!(
        offenders(&["agent/tools/", "cli/verbs/tools.rs", "serve/http/sessions.rs"], &["Provider::Workspace"]),
        [""; 0]
    );
    let offloads: Vec<&str> =
        sources.iter().flat_map(|s| s.code.matches("Offload::store(").map(|_| s.path.as_str())).collect();
    assert_eq!(offloads, ["agent/observe/mod.rs"], "one place decides");
}

#[test]
fn memory_and_workspace_never_share_a_name() {
    for source in sources() {
        let names = source.code.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase);
        let both: Vec<String> = names.filter(|n| n.contains("memory") && n.contains("workspace")).collect();
        assert!(both.is_empty(), "{} joins them: {both:?}", source.path);
    }
    // and neither names the other
    for (one, other) in [("agent/memory/", "workspace::"), ("agent/workspace/", "memory::")] {
        let named: Vec<String> = sources()
            .into_iter()
            .filter(|s| s.path.starts_with(one) && s.code.contains(other))
            .map(|s| s.path)
            .collect();
        assert_eq!(named, [""; 0], "{one} names {other}");
    }
}

/// A fact is true of a command whatever was asked.
#[test]
fn facts_know_no_check_of_a_request() {
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
    // what is no backend: names of tools, rules, where events go, what stops it, numbers
    const PLAIN: [&str; 5] = ["Registry", "Guards", "Arc<Emitter>", "Cancel", "Config"];
    let concrete: Vec<&&str> = fields.iter().filter(|kind| !kind.contains("dyn ") && !PLAIN.contains(kind)).collect();
    assert!(concrete.is_empty(), "{concrete:?}");
    // the core knows no backend by name
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
fn each_type_of_event_is_emitted_or_is_said_not_to_be() {
    let document = include_str!("../src/agent/event/EVENTS.md");
    let sources = sources();
    let named = |kind: &str| {
        let word = format!("Kind::{kind}");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        // who only looks at events (what is shown, what the store makes of them) emits none
        let emits = |s: &&Source| s.path.starts_with("agent/") && !s.path.starts_with("agent/store/");
        sources
            .iter()
            .filter(emits)
            .any(|s| s.code.match_indices(&word).any(|(at, _)| ends(&s.code[at + word.len()..])))
    };
    for kind in caro::agent::Kind::ALL {
        let row = document.lines().find(|line| line.starts_with(&format!("| `{}` |", kind.name()))).unwrap();
        assert!(row.contains("Nothing emits it yet.") || named(&format!("{kind:?}")), "nothing emits {}", kind.name());
    }
}
