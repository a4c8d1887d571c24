//! Tests that `caro agent --explain` and `--show-prompt` fetch no model.

use super::TASK;
use crate::http_server::{Server, answer};
use crate::machine::{Machine, Ran};
use serde_json::json;

#[test]
fn previews_fetch_no_model_and_warn_that_tokens_are_estimated() {
    let machine = Machine::new();
    let hub = Server::start(|_, socket| answer(socket, 404, &[], b""));
    let run = |args: &[&str]| {
        let mut caro = machine.caro(&[&["agent", TASK], args].concat());
        Ran::of(caro.env("CARO_HUB_URL", &hub.url).env("CARO_PYTHON", "/nowhere/python3").output().unwrap())
    };
    let estimate_warning = |id: &str| {
        format!(
            "warning: {id} has not been fetched, and is not for this: tokens are estimated (`caro model pull {id}` \
             fetches it)\n"
        )
    };
    let explained = run(&["--explain"]);
    assert_eq!((explained.code, explained.err), (Some(0), estimate_warning("qwen2.5-coder-1.5b")), "{}", explained.out);
    let persona = explained.out.lines().find(|line| line.contains("persona: ")).unwrap();
    assert!(persona.ends_with(" tokens") && !persona.ends_with(" 0 tokens"), "{}", explained.out);
    let shown = run(&["--show-prompt", "--plan", "model", "--model", "qwen2.5-coder-0.5b"]);
    assert_eq!((shown.code, shown.err), (Some(0), estimate_warning("qwen2.5-coder-0.5b")), "{}", shown.out);
    assert!(shown.out.starts_with("--- system (planner)\n") && shown.out.contains("Task: count the errors"));
    assert_eq!(hub.seen().len(), 0, "{:#?}", hub.seen());
    // a real run asks the hub
    assert_eq!(run(&[]).code, Some(2));
    assert_ne!(hub.seen().len(), 0);
}

#[test]
fn tokens_are_not_estimated_if_the_model_counts_them() {
    let machine = Machine::new();
    let explained = machine.ask(json!([]), &["agent", TASK, "--explain"]);
    assert!(explained.code == Some(0) && !explained.err.contains("estimated"), "{explained:#?}");
    // a missing file of the user's own cannot be fetched
    std::fs::create_dir(machine.path("models")).unwrap();
    let card = "id='tiny'\nname='Tiny'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F32'\nlicence='MIT'\nctx=512\n\
                [[file]]\nname='tiny.gguf'\npath='/nowhere/tiny.gguf'\n";
    machine.write("models/tiny.toml", card);
    let mut caro = machine.caro(&["agent", TASK, "--explain", "--model", "tiny"]);
    let ran = Ran::of(caro.env("CARO_MODELS_DIR", machine.path("models")).output().unwrap());
    ran.fails(2, &["/nowhere/tiny.gguf"]);
}
