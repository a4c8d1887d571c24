//! Tests the prompt in windows of any size: it lists the tools of the grammar, or the run does not begin.

use super::tests::{ANSWER, Bench, Fake, bench, call, of, report, step, task, turn};
use super::view_tests::steps;
use super::*;
use crate::assemble::ContextProvider;
use crate::assemble::Fixed;
use crate::blueprint::persona::persona;
use crate::tools::{self, Setup, Shell};
use crate::turn::Mode as Fits;
use caro_model::scripted::Scripted;
use caro_shell::Dialect;

const OURS: [&str; 5] = ["edit", "list", "read", "shell", "write"];

/// Creates a run with the real persona and tools and a skill of `skill` words, on a model with this window.
fn in_window(context: usize, skill: usize) -> Bench {
    let mut bench = bench(&[ANSWER]);
    let script = json!({"context": context, "rules": [{"reply": ANSWER}]}).to_string();
    let model: Scripted = script.parse().unwrap();
    bench.runtime.model = Arc::new(model);
    let shell = Some(Shell::new("/bin/sh".into(), Dialect::Sh));
    bench.runtime.registry = tools::builtin(Setup { shell, ..Setup::default() }).unwrap();
    let layer = |name, priority, text: String| Arc::new(Fixed { name, priority, text }) as Arc<dyn ContextProvider>;
    bench.runtime.providers = vec![
        layer("persona", 0, persona("agent", false).into()),
        layer("skill", 10, vec!["rule"; skill].join(" ")),
        layer("memory", 40, vec!["note"; 60].join(" ")),
    ];
    bench
}

/// Returns the names that a prompt lists as tools.
fn listed<'a>(names: &[&'a str], asked: &str) -> Vec<&'a str> {
    names.iter().copied().filter(|name| asked.contains(&format!("\n- {name}: "))).collect()
}

#[test]
fn in_any_window_the_prompt_lists_the_grammars_tools_or_the_run_is_refused() {
    for skill in [0, 60, 400] {
        let mut refused = Vec::new();
        let mut accepted = Vec::new();
        for context in (700..2400).step_by(20).chain([800, 1000, 1200, 1600, 2048]) {
            let bench = in_window(context, skill);
            let ended = report(&bench, turn(8)).termination_reason;
            let events = bench.memory.events();
            if ended == "context_limit" {
                assert_eq!(of(&events, Kind::ModelCall).len(), 0, "{context}");
                refused.push(context);
                continue;
            }
            accepted.push(context);
            let steps = steps(&events);
            assert!(!steps.is_empty(), "{context}");
            for (actions, asked) in steps {
                assert_eq!(actions, listed(&OURS, &asked), "{context} with {skill}: {asked}");
                assert!(!actions.is_empty() && asked.contains("You are caro"), "{context} with {skill}: {asked}");
            }
        }
        assert!(refused.contains(&800) && accepted.contains(&1200), "{refused:?}");
        assert!(refused.iter().max() < accepted.iter().min(), "a larger window takes whatever a smaller one does");
    }
}

#[test]
fn the_least_needed_tools_are_dropped_and_reported() {
    let shown = |context: usize, skill: usize| {
        let (turn, assembly) = in_window(context, skill).runtime.preview(turn(8));
        let names: Vec<String> = turn.tools().iter().map(|tool| tool.name.clone()).collect();
        (names.join(" "), assembly.dropped)
    };
    assert_eq!(shown(4096, 0), ("edit list read shell write".into(), Vec::new()));
    assert_eq!(
        shown(1200, 0),
        ("read shell write".into(), ["tool edit", "tool list", "memory"].map(String::from).into())
    );
    // a skill comes before tools, but not before the last tool
    assert_eq!(shown(1200, 60).0, "shell");
    assert!(shown(1200, 400).1.contains(&"skill".to_owned()));
}

#[test]
fn a_run_without_room_says_what_can_be_done() {
    let small = in_window(800, 0);
    let ended = report(&small, turn(8));
    assert_eq!((ended.status.as_str(), ended.termination_reason.as_str()), ("failed", "context_limit"));
    for what in ["window of 800 tokens is too small", "700 are kept", "(--model)"] {
        assert!(ended.response.contains(what), "{}", ended.response);
    }
    assert!(!ended.response.contains(". ") && !ended.response.contains("into a file"), "{}", ended.response);
    assert_eq!(of(&small.memory.events(), Kind::ResourceGuardHalt).len(), 1);
    // a preview says so too
    let (_, assembly) = in_window(800, 0).runtime.preview(turn(8));
    assert_eq!(assembly.failed, [("the run".to_owned(), ended.response)]);

    let long = format!("sum this up: {}", "word ".repeat(1300));
    let ended = report(&in_window(2048, 0), task(8, &long));
    assert!(
        ended.termination_reason == "context_limit" && ended.response.contains("into a file"),
        "{}",
        ended.response
    );
    // tools are dropped rather than a part of the task
    let long = format!("sum this up: {}", "word ".repeat(1000));
    let bench = in_window(2048, 0);
    report(&bench, task(8, &long));
    let (actions, asked) = steps(&bench.memory.events()).remove(0);
    assert!(actions == ["read", "shell"] && asked.contains(long.trim_end()), "{actions:?}");
}

#[test]
fn an_unavailable_model_reports_its_own_error() {
    let bench = in_window(0, 0);
    let ended = report(&bench, turn(8));
    assert_eq!(ended.termination_reason, "model_error", "{}", ended.response);
}

/// This holds for tools revealed by a result too.
#[test]
fn with_long_results_the_grammar_has_only_listed_tools() {
    for context in (400..900).step_by(7) {
        for fits in [Fits::TokenBudget, Fits::SlidingWindow(1)] {
            let mut replies = vec![step(&[call("read", "flood")])];
            replies.extend((0..4).map(|n| step(&[call("read", &format!("b{n}"))])));
            replies.push(ANSWER.into());
            let mut bench = bench(&[ANSWER]);
            let script = json!({"context": context, "rules": [{"replies": replies}]}).to_string();
            let model: Scripted = script.parse().unwrap();
            bench.runtime.model = Arc::new(model);
            for name in ARTIFACT_TOOLS {
                bench.runtime.registry.add(Arc::new(Fake::new(name, true))).unwrap();
            }
            (bench.runtime.config.decision_tokens, bench.runtime.config.fitting.mode) = (300, fits);
            report(&bench, turn(12));
            let names: Vec<&str> = ["read", "write"].iter().chain(ARTIFACT_TOOLS).copied().collect();
            for (actions, asked) in steps(&bench.memory.events()) {
                let listed = listed(&names, &asked);
                assert!(actions.iter().all(|name| listed.contains(&name.as_str())), "{context}: {actions:?} {asked}");
            }
        }
    }
}
