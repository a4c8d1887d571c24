//! Tests `caro knowledge` end to end: search by words without a model, by meaning with the real one, and which passages
//! reach the agent. Documents other than plain text are in `formats`.

mod formats;

use crate::machine::{Machine, Ran, feed};
use crate::support::{embedding_model_or_skip, model_or_skip};
use caro::model::embed::Embedder;
use caro::model::engine::SentenceEncoder;
use serde_json::{Value, json};
use std::path::Path;

/// Writes three documents with facts that no model knows, and a picture.
fn write_documents(machine: &Machine) {
    std::fs::create_dir_all(machine.path("work/docs/ops")).unwrap();
    machine.write(
        "work/docs/ops/deploy.md",
        "# Operations\n\n## Rebooting the compile farm\n\nLog in to gopher and run `farmctl cycle`.\n\n\
         ## Backups\n\nSnapshots of every database are stored on the host badger at night.\n",
    );
    machine.write("work/docs/cake.txt", "Flour, sugar and eggs make a cake. Bake it for an hour.\n");
    machine.write("work/docs/tool.py", "import os\n\n\ndef parseInvoice(path):\n    return os.stat(path)\n");
    machine.write("work/docs/picture.png", b"\x89PNG\0\0");
}

fn ingest(machine: &Machine) -> Value {
    let ran = machine.run(&["knowledge", "ingest", "docs", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    ran.json()
}

fn hits(ran: &Ran) -> Vec<String> {
    let document = ran.json();
    let hits = document["answer"]["hits"].as_array().unwrap().clone();
    hits.iter()
        .map(|h| Path::new(h["path"].as_str().unwrap()).file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn documents_are_ingested_searched_and_removed_without_a_model() {
    let machine = Machine::new();
    write_documents(&machine);
    machine.run(&["knowledge", "query", "backups"]).fails(1, &["nothing has been ingested", "caro knowledge ingest"]);
    machine.run(&["knowledge", "ingest", "nowhere"]).fails(2, &["nowhere"]);
    #[cfg(unix)]
    machine.run(&["-q", "knowledge", "ingest", "/dev/null"]).fails(2, &["/dev/null: neither a file nor a folder"]);
    machine.run(&["knowledge", "query", ""]).fails(2, &["nothing to look for", "plain words"]);

    let ran = machine.run(&["knowledge", "ingest", "docs"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "read 3 files (4 passages), 1 no documents\n"), "{ran:#?}");
    assert_eq!(ran.err.matches("caro model pull all-minilm-l6-v2").count(), 1, "{ran:#?}");
    assert!(ran.err.contains("picture.png: binary"), "{ran:#?}");
    let again = ingest(&machine);
    for zero in ["files_processed", "chunks_indexed", "errors", "updated", "removed"] {
        assert_eq!(again[zero], 0, "{again}");
    }

    let ran = machine.run(&["knowledge", "query", "where are the backups of databases?", "--json", "--limit", "1"]);
    let hit = &ran.json()["answer"]["hits"][0];
    assert_eq!((&hit["title"], &hit["first"]), (&json!("Operations > Backups"), &json!(7)), "{ran:#?}");
    assert!(hit["text"].as_str().unwrap().contains("badger") && hit["score"].as_f64().unwrap() > 0.5);
    assert_eq!(hits(&machine.run(&["knowledge", "query", "invoice", "--json"])), ["tool.py"], "a part of a name");
    let shown = machine.run(&["knowledge", "query", "backups"]);
    assert!(shown.out.contains("deploy.md:7-9") && shown.out.contains("badger"), "{shown:#?}");
    let nothing = machine.run(&["knowledge", "query", "giraffe"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(1), ""), "{nothing:#?}");

    let stats = machine.run(&["knowledge", "stats", "--json"]).json();
    assert_eq!((&stats["documents"], &stats["chunks"], &stats["vectors"]), (&json!(3), &json!(4), &json!(0)));
    assert_eq!(stats["kinds"], json!({"code": 1, "markdown": 1, "text": 1}));
    assert_eq!(machine.run(&["knowledge", "rm", "docs/ops"]).code, Some(0));
    assert!(hits(&machine.run(&["knowledge", "query", "backups", "--json"])).is_empty());
    assert_eq!(machine.run(&["knowledge", "rm", "docs/ops"]).code, Some(1), "it was removed already");
    // the alias of the verb, and a single file
    let added = machine.run(&["knowledge", "add", "docs/ops/deploy.md"]);
    assert!(added.out.starts_with("read 1 file (2 passages)"), "{added:#?}");
    let clean = machine.run(&["knowledge", "ingest", "docs/cake.txt", "--clean", "--json"]).json();
    assert_eq!(clean["files_processed"], 1);
    assert_eq!(machine.run(&["knowledge", "stats", "--json"]).json()["documents"], 1);
}

#[cfg(unix)]
#[test]
fn a_deleted_folder_is_removed_by_name_and_a_file_name_with_a_line_break_is_escaped() {
    let machine = Machine::new();
    write_documents(&machine);
    machine.write("work/docs/two\nlines.txt", "The ferry leaves at noon.\n");
    ingest(&machine);
    let ferry = machine.run(&["knowledge", "query", "when does the ferry leave"]).out;
    assert!(ferry.lines().next().unwrap().contains("/docs/two\\nlines.txt:1-1  "), "{ferry}");
    std::fs::remove_dir_all(machine.path("work/docs")).unwrap();
    machine.run(&["-q", "knowledge", "ingest", "docs"]).fails(2, &["caro knowledge rm docs", "(4 documents)"]);
    let never = machine.run(&["-q", "knowledge", "ingest", "nowhere"]);
    never.fails(2, &["give a folder or file that exists"]);
    let rm = machine.run(&["knowledge", "rm", "docs/cake.txt", "nowhere", "docs/ops"]);
    assert!(rm.code == Some(0) && rm.err.contains("forgot 2 documents"), "{rm:#?}");
    assert_eq!(rm.err.matches("nothing was read in from").count(), 1, "{rm:#?}");
    assert!(rm.err.contains("nothing was read in from nowhere\n"), "{rm:#?}");
    let rm = machine.run(&["knowledge", "rm", "docs", "nowhere"]);
    assert!(rm.code == Some(0) && rm.err.contains("forgot 2 documents"), "{rm:#?}");
}

/// The counts of files that the progress bar has shown, in order.
#[cfg(unix)]
fn progress_counts(written: &str, total: usize) -> Vec<usize> {
    let frames = written.split('\r').filter(|frame| frame.contains("reading ("));
    let at = frames.filter_map(|frame| frame.split(&format!("/{total} ")).next()?.rsplit(' ').next()?.parse().ok());
    at.collect()
}

#[cfg(unix)]
#[test]
fn ingest_shows_a_progress_bar_and_removes_it() {
    use crate::pty::Terminal;
    const FILES: usize = 40;
    let with_notes = || {
        let machine = Machine::new();
        std::fs::create_dir(machine.path("work/docs")).unwrap();
        for i in 0..FILES {
            machine.write(format!("work/docs/{i:04}.md"), format!("# Note {i}\n\nThe number is {i}.\n"));
        }
        machine
    };
    let (summary, parts) = ("read 40 files (40 passages)", ["reading", "\u{2588}", "\u{2591}"]);
    let ingest = ["knowledge", "ingest", "docs"];
    let machine = with_notes();
    let mut terminal = Terminal::start(&machine, json!([]), &ingest);
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    let (written, text) = (terminal.written(), terminal.text());
    let mut at = progress_counts(&written, FILES);
    assert!(at.is_sorted() && at.iter().all(|n| *n <= FILES), "{at:?}");
    at.dedup();
    // the first twenty frames are always drawn; later ones may be skipped
    assert!(at.len() >= 5, "it advances: {at:?} in {written:?}");
    assert!(text.trim_end().ends_with(summary) && !parts.iter().any(|part| text.contains(part)), "{text}");
    assert!(!terminal.screen().hide_cursor());

    let machine = with_notes();
    let mut terminal = Terminal::start(&machine, json!([]), &[&["-q"][..], &ingest].concat());
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert_eq!(terminal.written().trim_end(), summary, "quiet");

    // standard output on a terminal, standard error in a file
    let machine = with_notes();
    let line = "\"$0\" \"$@\" 2> told";
    let args = [&["-c", line, env!("CARGO_BIN_EXE_caro")][..], &ingest].concat();
    let mut terminal = Terminal::start_program("/bin/sh", &machine, json!([]), &args);
    assert_eq!(terminal.ends(), 0, "{}", terminal.text());
    assert_eq!(terminal.written().trim_end(), summary);
    let err = std::fs::read_to_string(machine.path("work/told")).unwrap();
    assert!(err.contains("caro model pull"), "{err:?}");
    assert!(!err.contains(['\r', '\u{1b}']) && !parts.iter().any(|part| err.contains(part)), "{err:?}");
}

/// Kills `ingest` three times; in the end every document is in the library exactly once.
#[cfg(unix)]
#[test]
fn a_killed_ingest_resumes() {
    let machine = Machine::new();
    std::fs::create_dir(machine.path("work/docs")).unwrap();
    for i in 0..1500 {
        machine.write(format!("work/docs/{i:04}.md"), format!("# Note {i}\n\nThe number is {i}.\n"));
    }
    let mut before = 0;
    for delay_ms in [60, 90, 120] {
        let mut child = machine.caro(&["-q", "knowledge", "ingest", "docs"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let stats = machine.run(&["knowledge", "stats", "--json"]).json();
        let documents = stats["documents"].as_u64().unwrap();
        assert!(documents >= before && stats["chunks"] == stats["documents"], "{stats} after {before}");
        before = documents;
    }
    assert_eq!(ingest(&machine)["files_processed"], 1500 - before);
    assert_eq!(hits(&machine.run(&["knowledge", "query", "note 1234", "--json", "--limit", "1"])), ["1234.md"]);
}

fn answer(text: &str) -> Value {
    json!([{ "reply": format!("Thought: done\nAction: answer {{\"text\": \"{text}\"}}") }])
}

#[test]
fn the_agents_prompt_has_matching_passages_as_data_and_its_events_record_them() {
    let machine = Machine::new();
    write_documents(&machine);
    ingest(&machine);
    let task = "how to reboot the compile farm";
    let ran = machine.ask(answer("x"), &["agent", task, "--show-prompt"]);
    let (system, user) = ran.out.split_once("--- user\n").unwrap();
    assert!(!system.contains("farmctl"), "others' words are no instructions: {system}");
    assert!(user.contains("<knowledge>\n## Relevant Knowledge\n\n### Source 1: "), "{user}");
    assert!(user.contains("deploy.md:1-5\n") && user.contains("farmctl cycle") && !user.contains("sugar"), "{user}");
    let explained = machine.ask(answer("x"), &["agent", task, "--explain"]);
    assert!(explained.out.contains("knowledge: yes (how to)"), "{explained:#?}");
    assert!(explained.out.contains("  40  knowledge (data): "), "{explained:#?}");

    let events = machine.ask(answer("x"), &["agent", task, "--events", "jsonl"]).out;
    let events: Vec<Value> = events.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let of = |kind: &str| events.iter().find(|e| e["event_type"] == kind).map(|e| &e["metadata"]);
    let retrieved = of("knowledge_retrieved").unwrap();
    assert_eq!((&retrieved["hits"], retrieved["scores"].as_array().unwrap().len()), (&json!(1), 1));
    assert!(retrieved["ms"].as_f64().unwrap() < 60_000.0);
    let layers = of("context_assembly").unwrap()["layers"].as_array().unwrap();
    assert!(layers.iter().any(|l| l["name"] == "knowledge" && l["priority"] == 40), "{layers:?}");

    let other = machine.ask(answer("x"), &["agent", "list the largest files here", "--explain"]);
    assert!(other.out.contains("knowledge: no") && !other.out.contains("knowledge (data)"), "{other:#?}");
}

#[test]
fn a_match_inside_another_word_is_no_hit() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("work/docs")).unwrap();
    machine.write("work/docs/old.md", "Rustic furniture improves relations with the neighbours.\n");
    ingest(&machine);
    for task in ["what is rust", "explain ions"] {
        let ran = machine.ask(answer("x"), &["agent", task, "--show-prompt"]);
        assert!(ran.code == Some(0) && !ran.out.contains("Rustic furniture"), "{task}: {ran:#?}");
    }
    let ran = machine.ask(answer("x"), &["agent", "what is rustic furniture", "--show-prompt"]);
    assert!(ran.out.contains("Rustic furniture improves"), "{ran:#?}");
}

#[test]
fn without_retrieval_the_library_is_not_opened() {
    let machine = Machine::new();
    write_documents(&machine);
    ingest(&machine);
    // a library that cannot be opened
    let data = machine.path("home/.local/share/caro");
    std::fs::write(data.join("knowledge.db"), "no library".repeat(999)).unwrap();
    for rest in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(data.join(format!("knowledge.db{rest}")));
    }
    let explain = |more: &[&str]| {
        let args = [&["agent", "how to reboot the compile farm", "--explain"], more].concat();
        machine.ask(answer("x"), &args).out
    };
    assert!(explain(&[]).contains("knowledge: left out, could not open"), "{}", explain(&[]));
    assert!(!explain(&["--no-rag"]).contains("left out"));
    let search = json!([
        {"match": "\nStep 2 of ", "reply": "Thought: so\nAction: answer {\"text\": \"fine\"}"},
        {"reply": "Thought: look\nAction: knowledge_search {\"query\": \"farm\"}"}
    ]);
    let task = "look into my documents for the farm";
    let ran = machine.ask(search.clone(), &["agent", task, "--no-rag", "--json"]);
    assert!(ran.err.contains("knowledge_search") || ran.code != Some(0), "the tool is absent: {ran:#?}");
    // the tool searches an intact library
    std::fs::remove_file(data.join("knowledge.db")).unwrap();
    ingest(&machine);
    let ran = machine.ask(search, &["agent", task, "--json"]);
    assert_eq!(ran.json()["response"], "fine", "{ran:#?}");
    let events = machine.run(&["events", "", "--json"]).out;
    assert!(events.contains("farmctl cycle"), "{events}");
}

/// Runs caro with a model that always answers `farmctl cycle`.
fn ask(machine: &Machine, args: &[&str]) -> Ran {
    machine.ask(json!([{ "reply": "farmctl cycle" }]), args)
}

#[test]
fn a_command_from_the_documents_is_an_example_for_a_similar_request() {
    let machine = Machine::new();
    write_documents(&machine);
    let request = "reboot the compile farm";
    let unread = ask(&machine, &[request, "--verbose"]);
    assert!(unread.code == Some(1) && !unread.err.contains("shown beside"), "the program is unknown: {unread:#?}");
    ingest(&machine);

    let ran = ask(&machine, &[request, "--debug"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "farmctl cycle\n"), "{ran:#?}");
    assert!(!ran.err.contains("worth another iteration"), "that it is not installed here is no failure: {ran:#?}");
    let shown = "[user] Rebooting the compile farm\n[assistant] farmctl cycle\n[user] reboot the compile farm\n";
    assert!(ran.err.contains(shown), "{ran:#?}");
    assert!(
        ran.err.contains("decision: shown beside the request: `farmctl cycle` (") && ran.err.contains("deploy.md:5)")
    );
    let answer = ask(&machine, &[request, "--json"]).json();
    let known = &answer["documents"][0];
    assert_eq!((&known["command"], &known["line"]), (&json!("farmctl cycle"), &json!(5)), "{answer}");

    for other in [&["show the largest files", "--debug"][..], &[request, "--debug", "--knowledge", "off"]] {
        let ran = ask(&machine, other);
        assert!(!ran.err.contains("shown beside the request"), "{ran:#?}");
    }
    assert!(ask(&machine, &["show the largest files", "--json"]).json().get("documents").is_none());
    // a library that cannot be read is reported, and the request is answered without it
    machine.write("home/.local/share/caro/knowledge.db", "no library".repeat(999));
    let ran = ask(&machine, &[request, "--verbose"]);
    assert!(ran.err.contains("without the documents: ") && ran.err.contains("decision: "), "{ran:#?}");
    let ran = machine.ask(json!([{ "reply": "ls -S" }]), &["show the largest files"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "ls -S\n", ""), "{ran:#?}");
}

#[test]
fn pages_downloaded_by_a_tldr_client_are_ingested() {
    let machine = Machine::new();
    machine.run(&["knowledge", "ingest", "--tldr"]).fails(2, &["tldr", "tldr --update", "caro knowledge ingest DIR"]);
    let page = |name: &str, does: &str, command: &str| {
        format!(
            "# {name}\n\n> About {name}.\n> More information: <https://example.org/{name}>.\n\n- {does}:\n\n`{command}`\n"
        )
    };
    for (folder, name, does, command) in [
        (
            "common",
            "squash",
            "S[q]ueeze a picture to a given quality",
            "squash {{[-q|--quality]}} {{80}} {{path/to/picture}}",
        ),
        ("linux", "lumen", "Set the brightness of the screen", "lumen set {{50}}%"),
        ("osx", "glow", "Set the brightness of the display", "glow {{50}}"),
    ] {
        let pages = format!("home/.cache/tealdeer/tldr-pages/pages.en/{folder}");
        std::fs::create_dir_all(machine.path(&pages)).unwrap();
        machine.write(format!("{pages}/{name}.md"), page(name, does, command));
    }
    let ran = machine.run(&["knowledge", "ingest", "--tldr"]);
    assert!(ran.out.starts_with("read 2 files (2 passages)"), "{ran:#?}");
    let ran = ask(&machine, &["squeeze a picture to the given quality", "--debug"]);
    let shown = "[user] Squeeze a picture to a given quality\n[assistant] squash -q 80 path/to/picture\n";
    assert!(ran.err.contains(shown), "{ran:#?}");
    let ran = ask(&machine, &["set the brightness of the screen", "--debug"]);
    assert!(ran.err.contains("[assistant] lumen set 50%\n") && !ran.err.contains("glow"), "{ran:#?}");
}

#[test]
fn the_real_model_answers_with_a_command_from_the_documents() {
    let Some(mut caro) = model_or_skip("batch") else { return };
    let machine = Machine::new();
    write_documents(&machine);
    ingest(&machine);
    if cfg!(debug_assertions) {
        println!("skipped: without optimisation two answers take minutes (`cargo test --release` has this test)");
        return;
    }
    caro.env("CARO_KNOWLEDGE", "on").env("XDG_DATA_HOME", machine.path("home/.local/share"));
    let requests = "{\"id\": 1, \"request\": \"reboot the compile farm\"}\n{\"id\": 2, \"request\": \"count the lines of a.txt\"}\n";
    let ran = feed(caro, requests.as_bytes());
    let answers: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["cmd"], "farmctl cycle", "{ran:#?}");
    let counts = ["wc -l a.txt", "wc -l < a.txt"].map(Value::from);
    assert!(counts.contains(&answers[1]["cmd"]), "it is not disturbed where it knows the answer: {ran:#?}");
}

/// Components 0 to 7 of reference vectors: computed by our own forward pass in numpy (f32; BERT with mean pooling,
/// written from the paper), on the model files whose checksums are in the catalog.
const REFERENCE: [(&str, [f32; 8]); 4] = [
    (
        "How do I restart the build server?",
        [0.05347, -0.02923, -0.01436, -0.01658, 0.01255, 0.00223, -0.06584, -0.05715],
    ),
    ("Flour, sugar and eggs make a cake.", [-0.00788, 0.02641, -0.0038, 0.05659, -0.04063, 0.06062, 0.0599, -0.04436]),
    ("Größe 日本語 emoji 😀", [-0.02259, 0.03197, 0.10234, -0.05376, -0.0368, 0.00572, 0.16879, 0.00816]),
    ("", [-0.11884, 0.0483, -0.00255, -0.01101, 0.05195, 0.01029, 0.11543, 0.0007]),
];

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[test]
fn the_real_embedder_gives_the_reference_vectors_alone_and_in_a_batch() {
    let Some(folder) = embedding_model_or_skip() else { return };
    let encoder = SentenceEncoder::new(&folder, "all-minilm-l6-v2");
    let long = "word ".repeat(400);
    let texts: Vec<&str> = REFERENCE.iter().map(|(text, _)| *text).chain([long.as_str()]).collect();
    let together = encoder.embed(&texts).unwrap();
    for (i, (text, wanted)) in REFERENCE.iter().enumerate() {
        let alone = encoder.embed(&[text]).unwrap().remove(0);
        for vector in [&alone, &together[i]] {
            assert_eq!(vector.len(), 384);
            assert!((dot(vector, vector) - 1.0).abs() < 1e-5);
            let off = vector.iter().zip(wanted).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
            // matrices and activations are quantized to eight bits: over 57 texts in batches the cosine with the exact
            // vector was at least 0.9996; texts of two tokens are the least exact
            assert!(off < 1e-2, "{text:?} is {off} off: {:?}", &vector[..8]);
        }
    }
    // of a long text only the first 256 tokens count
    let longer = encoder.embed(&["word ".repeat(90_000).as_str()]).unwrap().remove(0);
    assert!(dot(&together[4], &longer) > 0.9999 && (together[4][0] + 0.00812).abs() < 1e-2);
    assert!(encoder.embed(&[]).unwrap().is_empty());
}

#[test]
fn texts_of_the_same_meaning_are_near() {
    let Some(folder) = embedding_model_or_skip() else { return };
    let encoder = SentenceEncoder::new(&folder, "all-minilm-l6-v2");
    // each with a paraphrase, and with a text that shares a word but has another meaning
    for (text, near, far) in [
        ("rebooting the compile farm", "how to restart our build servers", "the farm compiles its harvest figures"),
        ("delete old log files", "remove logs from last month", "log in to the old system"),
        ("the disk is full", "no space left on the device", "the glass is full of water"),
        ("compress a folder", "make an archive of this directory", "press the folder into the shelf"),
    ] {
        let vectors = encoder.embed(&[text, near, far]).unwrap();
        let (near, far) = (dot(&vectors[0], &vectors[1]), dot(&vectors[0], &vectors[2]));
        assert!(near > far + 0.1, "{text}: {near} against {far}");
    }
}

#[test]
fn a_question_without_a_word_in_common_finds_its_answer_by_meaning() {
    let Some(folder) = embedding_model_or_skip() else { return };
    let machine = Machine::new();
    write_documents(&machine);
    let caro =
        |args: &[&str]| Ran::of(machine.caro(args).env("CARO_MODELS_DIR", folder.parent().unwrap()).output().unwrap());
    let by_words = ingest(&machine);
    assert_eq!(by_words["chunks_indexed"], 4);
    // documents ingested without the model get their vectors now
    let ran = caro(&["knowledge", "ingest", "docs", "--json"]);
    assert_eq!((&ran.json()["files_processed"], &ran.json()["vectors_added"]), (&json!(0), &json!(4)), "{ran:#?}");
    assert!(!ran.err.contains("model pull"), "{ran:#?}");
    let question = ["knowledge", "query", "how can I restart our build servers?", "--json", "--limit", "1"];
    let ran = caro(&question);
    let document = ran.json();
    assert_eq!(hits(&ran), ["deploy.md"]);
    assert_eq!(document["answer"]["hits"][0]["title"], "Operations > Rebooting the compile farm");
    assert_eq!(document["answer"]["by_meaning"], true);
    for part in ["load", "embed", "search"] {
        assert!(document["answer"]["ms"][part].is_number(), "{document}");
    }
}
