//! `caro agent --explain` and `--show-prompt` where the model is not on the machine: nothing is fetched to be shown something.

use super::TASK;
use crate::http_server::{Server, answer};
use crate::machine::{Machine, Ran};
use serde_json::json;

#[test]
fn what_is_only_shown_fetches_no_model_and_says_that_it_guesses() {
    let machine = Machine::new();
    let hub = Server::start(|_, socket| answer(socket, 404, &[], b""));
    let run = |args: &[&str]| {
        let mut caro = machine.caro(&[&["agent", TASK], args].concat());
        Ran::of(caro.env("CARO_HUB_URL", &hub.url).env("CARO_PYTHON", "/nowhere/python3").output().unwrap())
    };
    let guesses = |id: &str| {
        format!(
            "warning: {id} has not been fetched, and is not for this: tokens are estimated (`caro model pull {id}` \
             fetches it)\n"
        )
    };
    let explained = run(&["--explain"]);
    assert_eq!((explained.code, explained.err), (Some(0), guesses("qwen2.5-coder-1.5b")), "{}", explained.out);
    let persona = explained.out.lines().find(|line| line.contains("persona: ")).unwrap();
    assert!(persona.ends_with(" tokens") && !persona.ends_with(" 0 tokens"), "{}", explained.out);
    let shown = run(&["--show-prompt", "--plan", "model", "--model", "qwen2.5-coder-0.5b"]);
    assert_eq!((shown.code, shown.err), (Some(0), guesses("qwen2.5-coder-0.5b")), "{}", shown.out);
    assert!(shown.out.starts_with("--- system (planner)\n") && shown.out.contains("Task: count the errors"));
    assert_eq!(hub.seen().len(), 0, "{:#?}", hub.seen());
    // it would have been asked
    assert_eq!(run(&[]).code, Some(2));
    assert_ne!(hub.seen().len(), 0);
}

#[test]
fn a_model_that_counts_for_itself_is_not_guessed_for() {
    let machine = Machine::new();
    let explained = machine.ask(json!([]), &["agent", TASK, "--explain"]);
    assert!(explained.code == Some(0) && !explained.err.contains("estimated"), "{explained:#?}");
    // a file of the person's own that is gone is not one that can be fetched
    std::fs::create_dir(machine.path("models")).unwrap();
    let card = "id='tiny'\nname='Tiny'\npurpose='chat'\nfamily='f'\narch='llama'\nquant='F32'\nlicence='MIT'\nctx=512\n\
                [[file]]\nname='tiny.gguf'\npath='/nowhere/tiny.gguf'\n";
    machine.write("models/tiny.toml", card);
    let mut caro = machine.caro(&["agent", TASK, "--explain", "--model", "tiny"]);
    let gone = Ran::of(caro.env("CARO_MODELS_DIR", machine.path("models")).output().unwrap());
    gone.fails(2, &["/nowhere/tiny.gguf"]);
}
