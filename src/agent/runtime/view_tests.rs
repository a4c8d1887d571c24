//! Tests which tools a model sees, under which names, and that the grammar has the same, with a scripted model.

use super::tests::{ANSWER, Fake, bench, call, of, report, step, turn};
use super::*;
use crate::turn::Mode;
use std::sync::atomic::Ordering;

/// Returns the actions of each step, without those that end the run, and its prompt.
pub(super) fn steps(events: &[crate::Event]) -> Vec<(Vec<String>, String)> {
    let actions = |event: &&crate::Event| -> Vec<String> {
        let all = event.metadata["actions"].as_array().cloned().unwrap_or_default();
        all.iter()
            .filter_map(|name| name.as_str())
            .filter(|name| !["answer", "cannot"].contains(name))
            .map(str::to_owned)
            .collect()
    };
    let asked = of(events, Kind::ModelCall).into_iter().map(|event| {
        let turns = event.input.as_array().cloned().unwrap_or_default();
        turns.iter().filter_map(|turn| turn["text"].as_str()).collect::<Vec<_>>().join("\n")
    });
    of(events, Kind::AgentStep).iter().map(actions).zip(asked).collect()
}

#[test]
fn the_prompt_lists_every_tool_that_the_grammar_has() {
    for mode in [Mode::TokenBudget, Mode::SlidingWindow(1)] {
        let mut replies = vec![step(&[call("read", "a")]), step(&[call("read", "flood")])];
        replies.extend((0..4).map(|n| step(&[call("read", &format!("b{n}"))])));
        replies.push(ANSWER.into());
        let mut bench = bench(&replies.iter().map(String::as_str).collect::<Vec<_>>());
        for name in ARTIFACT_TOOLS {
            bench.runtime.registry.add(Arc::new(Fake::new(name, true))).unwrap();
        }
        bench.runtime.config.fitting.mode = mode;
        report(&bench, turn(12));
        let events = bench.memory.events();
        let steps = steps(&events);
        assert_eq!(steps.len(), 7);
        for (actions, asked) in &steps {
            for name in actions {
                assert!(asked.contains(&format!("- {name}: does it.")), "{name} is not in {asked}");
            }
        }
        let known = |at: usize| steps[at].0.iter().any(|name| name == "read_artifact");
        assert_eq!((known(1), known(2), known(6)), (false, true, true), "from the step on that has the results");
        assert_eq!(steps[6].1.matches("- read_artifact: ").count(), 1, "once, and not in every step");
    }
}

#[test]
fn the_grammar_has_a_limited_number_of_tools() {
    let mut bench = bench(&[&step(&[call("read", "flood")]), ANSWER]);
    for name in ARTIFACT_TOOLS {
        bench.runtime.registry.add(Arc::new(Fake::new(name, true))).unwrap();
    }
    for n in 0..40 {
        bench.runtime.registry.add(Arc::new(Fake::new(&format!("stool{n}"), true))).unwrap();
    }
    bench.runtime.config.tools = 1000;
    // far more than the grammar can take
    report(&bench, turn(8));
    let many: Vec<usize> = steps(&bench.memory.events()).iter().map(|(actions, _)| actions.len()).collect();
    assert_eq!(many, [16, 20]);
}

#[test]
fn a_call_by_an_alias_calls_the_tool() {
    let mut bench = bench(&[&step(&[call("look_at_it", "a")]), ANSWER]);
    let fake = Fake::new("Look.at-it", true);
    let calls = fake.calls();
    bench.runtime.registry.add(Arc::new(fake)).unwrap();
    report(&bench, turn(8));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let events = bench.memory.events();
    assert_eq!(of(&events, Kind::ToolCall)[0].input["tool"], "Look.at-it");
    let steps = steps(&events);
    assert!(steps[0].0.contains(&"Look.at-it".to_owned()), "guards and events have its own name");
    for (_, asked) in steps {
        assert!(asked.contains("- look_at_it: does it.") && !asked.contains("Look.at-it"), "{asked}");
    }
}

#[test]
fn covered_tools_are_neither_listed_nor_in_the_grammar() {
    let mut bench = bench(&[ANSWER]);
    bench.runtime.registry.add(Arc::new(Fake::new("peek", true))).unwrap();
    bench.runtime.registry.add(Arc::new(Fake::new("look", true).covering("peek"))).unwrap();
    report(&bench, turn(8));
    let steps = steps(&bench.memory.events());
    assert_eq!(steps[0].0, ["look", "read", "write"]);
    assert!(!steps[0].1.contains("peek"), "{}", steps[0].1);
}
