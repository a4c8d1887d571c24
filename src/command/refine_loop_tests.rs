//! Tests of the refinement loop on scripted replies.

use super::*;
use crate::documents::DocumentedCommand;
use caro_model::{Cancel, Token, Usage};
use caro_shell::{Dialect, Target};
use std::time::Duration;

fn ask(refine: Refine) -> CommandRequest {
    CommandRequest {
        request: "list files".into(),
        cwd: "/".into(),
        target: Target::ALL[0].1,
        dialect: Dialect::Bash,
        refine,
        max_iterations: 2,
        timeout: Duration::from_secs(5),
        alternatives: 1,
        few_shot: FewShot::Nearest(0),
        candidates: 1,
        rehearse: true,
        view: View::Examples,
        budget: Duration::from_secs(5),
        before: History::default(),
        rejected: vec![],
        cancel: Cancel::new(),
    }
}

fn completion(text: &str, finish: Finish) -> Completion {
    let token = Token { bytes: text.into(), logprob: Some(-0.1), runner_up: None };
    Completion { text: text.into(), tokens: vec![token], end: None, finish, usage: Usage::default() }
}

fn draft(cmd: &str, confidence: f64, findings: Vec<Finding>) -> Draft {
    Draft { cmd: cmd.into(), confidence, findings, ..Draft::none() }
}

fn error(token: &str, fix: Option<&str>) -> Finding {
    Finding {
        id: "unknown-flag".into(),
        severity: Severity::Error,
        token: token.into(),
        span: None,
        why: "no such option".into(),
        evidence: Vec::new(),
        fix: fix.map(String::from),
    }
}

fn command(step: Step) -> (String, String) {
    match step {
        Step::Done(Outcome::Command { draft, changes }) => (draft.cmd, changes),
        other => panic!("no command: {other:?}"),
    }
}

#[test]
fn a_clean_command_needs_one_iteration() {
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    assert!(matches!(t.begin(), Step::AskModel { iteration: 1, .. }));
    let Step::Inspect { cmd, .. } = t.on_reply(&completion("ls", Finish::Stop), 0.95, true) else { panic!() };
    assert_eq!(command(t.on_inspected(draft(&cmd, 0.95, vec![]), true)), ("ls".into(), String::new()));
    assert_eq!(t.iterations, 1);
}

#[test]
fn a_rules_own_fix_of_an_error_may_raise_the_risk_to_caution() {
    let old = |fix| draft("lsmod", 0.9, vec![error("lsmod", fix)]);
    let new = |level| Draft { risk: Risk { level, reasons: Vec::new() }, ..draft("kmutil showloaded", 0.9, vec![]) };
    assert!(is_better(&new(Level::Caution), &old(Some("kmutil showloaded")), true));
    assert!(!is_better(&new(Level::Caution), &old(Some("kmutil showloaded")), false), "only for a mechanical fix");
    for fix in [Some("kmutil"), None] {
        assert!(!is_better(&new(Level::Caution), &old(fix), true), "{fix:?}");
    }
    assert!(!is_better(&new(Level::Danger), &old(Some("kmutil showloaded")), true));
}

#[test]
fn a_refused_word_is_asked_once_more_as_an_order() {
    let refusal = || completion(reply::REFUSAL, Finish::Stop);
    let word = |ask: CommandRequest| CommandRequest { request: "dns?".into(), ..ask };
    let begun = |ask: CommandRequest| {
        let mut t = RefineLoop::new(&ask);
        t.begin();
        let step = t.on_reply(&refusal(), 0.99, true);
        (t, step)
    };
    let asks_again = |step: &Step| matches!(step, Step::AskModel { iteration: 1, prompt } if prompt.messages.last().unwrap().text.contains("show dns"));
    let (mut t, step) = begun(word(ask(Refine::Evidence)));
    assert!(asks_again(&step), "{step:?}");
    let step = t.on_reply(&completion("cat /etc/resolv.conf", Finish::Stop), 0.95, true);
    assert!(matches!(&step, Step::Inspect { cmd, .. } if cmd == "cat /etc/resolv.conf"), "{step:?}");
    let (mut t, _) = begun(word(ask(Refine::Evidence)));
    assert_eq!(t.on_reply(&refusal(), 0.99, true), Step::Done(Outcome::Refused), "it is asked once");
    let input = History { input: Some("a b".into()), ..History::default() };
    for other in [
        ask(Refine::Evidence),
        word(ask(Refine::Never)),
        CommandRequest { before: input, ..word(ask(Refine::Evidence)) },
    ] {
        assert_eq!(begun(other).1, Step::Done(Outcome::Refused));
    }
}

#[test]
fn a_finding_leads_to_a_second_iteration_that_continues_the_first() {
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    let Step::AskModel { prompt: first, .. } = t.begin() else { panic!() };
    t.on_reply(&completion("ls --sise", Finish::Stop), 0.9, true);
    let first_draft = draft("ls --sise", 0.9, vec![error("--sise", None)]);
    let Step::AskModel { iteration: 2, prompt } = t.on_inspected(first_draft, true) else { panic!() };
    assert_eq!(prompt.messages[..first.messages.len()], first.messages[..]);
    t.on_reply(&completion("ls --size", Finish::Stop), 0.9, true);
    let (cmd, changes) = command(t.on_inspected(draft("ls --size", 0.9, vec![]), true));
    assert_eq!(cmd, "ls --size");
    assert!(changes.contains("ls --sise") && changes.contains("no such option"), "{changes}");
}

#[test]
fn a_worse_or_riskier_second_command_is_not_taken() {
    for (second, level) in [(vec![error("a", None), error("b", None)], Level::Safe), (vec![], Level::Danger)] {
        let mut t = RefineLoop::new(&ask(Refine::Evidence));
        t.begin();
        t.on_reply(&completion("one", Finish::Stop), 0.9, true);
        t.on_inspected(draft("one", 0.9, vec![error("a", None)]), true);
        t.on_reply(&completion("two", Finish::Stop), 0.9, true);
        let mut two = draft("two", 0.9, second);
        two.risk.level = level;
        assert_eq!(command(t.on_inspected(two, true)), ("one".into(), String::new()));
    }
}

#[test]
fn never_and_no_time_left_stop_at_one() {
    for (refine, time_left) in [(Refine::Never, true), (Refine::Evidence, false)] {
        let mut t = RefineLoop::new(&ask(refine));
        t.begin();
        t.on_reply(&completion("ls --sise", Finish::Stop), 0.1, true);
        let step = t.on_inspected(draft("ls --sise", 0.1, vec![error("--sise", None)]), time_left);
        assert_eq!(command(step).0, "ls --sise");
    }
}

#[test]
fn a_known_fix_needs_neither_model_nor_time() {
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.on_reply(&completion("head -5", Finish::Stop), 0.9, true);
    let step = t.on_inspected(draft("head -5", 0.9, vec![error("-5", Some("head -6"))]), false);
    assert_eq!(step, Step::Inspect { cmd: "head -6".into(), confidence: 0.9 });
    assert_eq!(command(t.on_inspected(draft("head -6", 0.9, vec![]), true)).0, "head -6");
}

#[test]
fn several_faults_are_fixed_one_after_the_other_and_a_useless_fix_is_tried_once() {
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.on_reply(&completion("a b", Finish::Stop), 0.9, true);
    let two = vec![error("a", Some("A b")), error("b", Some("a B"))];
    assert!(matches!(t.on_inspected(draft("a b", 0.9, two.clone()), false), Step::Inspect { cmd, .. } if cmd == "A b"));
    // the first fix does not help, so the second is tried on the same command
    assert!(matches!(t.on_inspected(draft("A b", 0.9, two), false), Step::Inspect { cmd, .. } if cmd == "a B"));
    let one = vec![error("a", Some("A B"))];
    assert!(matches!(t.on_inspected(draft("a B", 0.9, one), false), Step::Inspect { cmd, .. } if cmd == "A B"));
    let (cmd, changes) = command(t.on_inspected(draft("A B", 0.9, vec![]), false));
    assert_eq!((cmd.as_str(), t.iterations), ("A B", 2));
    assert!(changes.contains("was `a b`") && changes.contains("then was `a B`"), "{changes}");
}

#[test]
fn a_fault_that_shows_once_another_is_fixed_is_fixed_too() {
    let of = |id: &str, fix| Finding { id: id.into(), ..error("x", fix) };
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.on_reply(&completion("a", Finish::Stop), 0.9, true);
    t.on_inspected(draft("a", 0.9, vec![of("one", Some("b"))]), false);
    let shown = t.on_inspected(draft("b", 0.9, vec![of("two", Some("c"))]), false);
    assert!(matches!(shown, Step::Inspect { cmd, .. } if cmd == "c"));
    assert_eq!(command(t.on_inspected(draft("c", 0.9, vec![]), false)).0, "c");

    // a fix that adds more findings than it removes is given up
    t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.on_reply(&completion("a", Finish::Stop), 0.9, true);
    t.on_inspected(draft("a", 0.9, vec![of("one", Some("b"))]), false);
    let worse = vec![of("two", Some("c")), of("three", None)];
    assert_eq!(command(t.on_inspected(draft("b", 0.9, worse), false)).0, "a");
}

#[test]
fn refused_truncated_and_empty_replies_have_no_command() {
    for (text, finish, want) in [
        (reply::REFUSAL, Finish::Stop, Outcome::Refused),
        ("ls -", Finish::Cancelled, Outcome::Stopped),
        ("", Finish::Stop, Outcome::Nothing),
        ("find . -name '*.", Finish::Length, Outcome::Nothing),
    ] {
        let mut t = RefineLoop::new(&ask(Refine::Evidence));
        t.begin();
        assert_eq!(t.on_reply(&completion(text, finish), 0.9, true), Step::Done(want), "{text:?}");
    }
}

#[test]
fn a_request_with_a_documented_command_is_not_refused() {
    let known = DocumentedCommand { command: "farmctl cycle".into(), ..DocumentedCommand::default() };
    let before = History { known: vec![known], ..History::default() };
    let mut t = RefineLoop::new(&CommandRequest { before, candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    let step = t.on_reply(&completion(reply::REFUSAL, Finish::Stop), 0.9, true);
    assert_eq!(step, Step::Inspect { cmd: "farmctl cycle".into(), confidence: SAMPLE_BELOW });
    let Step::Done(Outcome::Command { draft, .. }) = t.on_inspected(draft("farmctl cycle", SAMPLE_BELOW, vec![]), true)
    else {
        panic!("the documented command is the answer");
    };
    assert_eq!(draft.cmd, "farmctl cycle");
}

#[test]
fn a_reply_that_does_not_parse_is_no_command() {
    let mut t = RefineLoop::new(&ask(Refine::Never));
    t.begin();
    t.on_reply(&completion("You're welcome!", Finish::Stop), 0.9, true);
    let unparsable = Finding { id: syntax::ID.into(), ..error("'re", None) };
    assert_eq!(t.on_inspected(draft("You're welcome!", 0.9, vec![unparsable]), true), Step::Done(Outcome::Nothing));
}

#[test]
fn without_a_usable_command_others_are_sampled_even_without_time() {
    let unparsable = || Finding { id: syntax::ID.into(), ..error("'", None) };
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.on_reply(&completion("find 'x", Finish::Stop), 0.1, true);
    // even though half of the budget is spent
    let step = t.on_inspected(draft("find 'x", 0.1, vec![unparsable()]), false);
    assert!(matches!(step, Step::Sample { count: 4, .. }), "{step:?}");
    let chosen = Chosen::Draft(draft("find x", 0.4, vec![]), "it parses".into());
    assert_eq!(command(t.on_choice(chosen, false)).0, "find x");
}

#[test]
fn a_second_answer_that_fails_keeps_the_first() {
    for (text, finish) in [("", Finish::Stop), (reply::REFUSAL, Finish::Stop), ("x", Finish::Cancelled)] {
        let mut t = RefineLoop::new(&ask(Refine::Evidence));
        t.begin();
        t.on_reply(&completion("one", Finish::Stop), 0.9, true);
        t.on_inspected(draft("one", 0.9, vec![error("a", None)]), true);
        assert_eq!(command(t.on_reply(&completion(text, finish), 0.9, true)).0, "one");
    }
}

#[test]
fn a_doubtful_command_is_compared_with_samples_once() {
    let ask = CommandRequest { candidates: 5, ..ask(Refine::Evidence) };
    for (confidence, time_left, refine, sampled) in [
        (0.3, true, Refine::Evidence, true),
        (0.9, true, Refine::Evidence, false),
        (0.3, false, Refine::Evidence, false),
        (0.3, true, Refine::Never, false),
    ] {
        let mut t = RefineLoop::new(&CommandRequest { refine, ..ask.clone() });
        t.begin();
        t.on_reply(&completion("one", Finish::Stop), confidence, true);
        let step = t.on_inspected(draft("one", confidence, vec![]), time_left);
        if !sampled {
            assert_eq!(command(step).0, "one");
            continue;
        }
        let Step::Sample { found, prompt, count: 4 } = step else { panic!("{step:?}") };
        let (view, few_shot) = (View::Examples, FewShot::Nearest(NEAREST_PAIRS));
        let shown = prompt::first(&ask.request, ask.target, ask.dialect, view, few_shot, &History::default());
        assert_eq!((found[0].draft.cmd.as_str(), prompt), ("one", shown));
        let two = Chosen::Draft(draft("two", 0.5, vec![]), "three of five do this".into());
        let (cmd, changes) = command(t.on_choice(two, true));
        assert_eq!((cmd.as_str(), changes.as_str()), ("two", "was `one`: three of five do this"));
    }
}

#[test]
fn a_faulty_command_is_compared_with_samples_and_then_refined() {
    let faulty = |cmd: &str| draft(cmd, 0.9, vec![error("a", None)]);
    for (chosen, time_left, again) in
        [(faulty("one"), true, true), (faulty("one"), false, false), (draft("two", 0.5, vec![]), true, false)]
    {
        let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        t.on_reply(&completion("one", Finish::Stop), 0.9, true);
        let Step::Sample { found, .. } = t.on_inspected(faulty("one"), true) else { panic!("{chosen:?}") };
        let best = &found[0];
        assert_eq!(best.draft.cmd, "one");
        assert!((best.likelihood - (-0.1_f64).exp()).abs() < 1e-6, "{}", best.likelihood);
        let cmd = chosen.cmd.clone();
        let step = t.on_choice(Chosen::Draft(chosen, "likelier".into()), time_left);
        if !again {
            assert_eq!(command(step).0, cmd);
            continue;
        }
        assert!(matches!(step, Step::AskModel { iteration: 2, .. }), "{step:?}");
        t.on_reply(&completion("three", Finish::Stop), 0.3, true);
        assert_eq!(command(t.on_inspected(draft("three", 0.3, vec![]), true)).0, "three", "others are sampled once");
    }
    // a model without probabilities cannot choose
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.on_reply(&Completion { tokens: vec![], ..completion("one", Finish::Stop) }, 0.9, true);
    assert!(matches!(t.on_inspected(faulty("one"), true), Step::AskModel { iteration: 2, .. }));
}

#[test]
fn a_finding_of_the_systems_own_rules_goes_to_the_model_before_others_are_sampled() {
    let foreign = Finding { id: "macos-watch".into(), severity: Severity::Warning, ..error("watch", None) };
    let macos = Target::ALL.iter().find(|(name, _)| *name == "macos-bsd").unwrap().1;
    for (target, is_told) in [(macos, true), (Target::ALL[0].1, false)] {
        let mut t = RefineLoop::new(&CommandRequest { candidates: 5, target, ..ask(Refine::Evidence) });
        t.begin();
        t.on_reply(&completion("watch ls", Finish::Stop), 0.9, true);
        let step = t.on_inspected(draft("watch ls", 0.9, vec![foreign.clone()]), true);
        assert_eq!(matches!(step, Step::AskModel { iteration: 2, .. }), is_told, "{step:?}");
    }
}

#[test]
fn a_documented_command_is_not_compared_with_samples() {
    let known = DocumentedCommand { command: "farmctl cycle".into(), ..DocumentedCommand::default() };
    let before = History { known: vec![known], ..History::default() };
    for (cmd, is_known) in [("farmctl cycle", true), ("farmctl reboot", false)] {
        let mut t = RefineLoop::new(&CommandRequest { candidates: 5, before: before.clone(), ..ask(Refine::Evidence) });
        t.begin();
        t.on_reply(&completion(cmd, Finish::Stop), 0.3, true);
        let step = t.on_inspected(draft(cmd, 0.3, vec![error("farmctl", None)]), true);
        assert_eq!(!matches!(step, Step::Sample { .. }), is_known, "{step:?}");
    }
}

#[test]
fn choosing_the_first_command_changes_nothing() {
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.on_reply(&completion("one", Finish::Stop), 0.3, true);
    assert!(matches!(t.on_inspected(draft("one", 0.3, vec![]), true), Step::Sample { .. }));
    assert_eq!(
        command(t.on_choice(Chosen::Draft(draft("one", 0.7, vec![]), "all agree".into()), true)),
        ("one".into(), String::new())
    );
}

#[test]
fn a_rejected_command_is_no_answer() {
    let rejected = |candidates| {
        let mut t =
            RefineLoop::new(&CommandRequest { candidates, rejected: vec!["one".into()], ..ask(Refine::Evidence) });
        t.begin();
        t
    };
    let mut t = rejected(5);
    let step = t.on_reply(&completion("one", Finish::Stop), 0.99, true);
    let Step::Sample { found, count: 4, .. } = step else { panic!("{step:?}") };
    assert_eq!(found, []);
    assert_eq!(t.on_choice(Chosen::Nothing, true), Step::Done(Outcome::Nothing));
    assert_eq!(rejected(1).on_reply(&completion("one", Finish::Stop), 0.99, true), Step::Done(Outcome::Nothing));
    // nor is a reply that does not end
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    let step = t.on_reply(&completion("find . -o -o -o", Finish::Length), 0.9, false);
    assert!(matches!(&step, Step::Sample { found, .. } if found.is_empty()), "{step:?}");
    // nor is it the fix of another
    let mut t = rejected(1);
    t.on_reply(&completion("oen", Finish::Stop), 0.9, true);
    assert!(matches!(t.on_inspected(draft("oen", 0.9, vec![error("a", Some("one"))]), true), Step::AskModel { .. }));
}

/// A loop whose model has two views and first wrote `one` with this confidence, and the next step.
fn of_two_views(confidence: f64, findings: Vec<Finding>) -> (RefineLoop, Step) {
    let mut t = RefineLoop::new(&CommandRequest { view: View::Adapted, candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.on_reply(&completion("one", Finish::Stop), confidence, true);
    let step = t.on_inspected(draft("one", confidence, findings), true);
    (t, step)
}

fn second(cmd: &str, confidence: f64, findings: Vec<Finding>) -> SecondAnswer {
    SecondAnswer::Command(ScoredDraft { draft: draft(cmd, confidence, findings), likelihood: 0.5 })
}

#[test]
fn an_answer_that_is_not_clear_is_asked_for_in_the_other_view_once() {
    for (confidence, findings, is_asked) in
        [(0.7, vec![], true), (SECOND_VIEW_BELOW, vec![], false), (0.99, vec![error("a", None)], true)]
    {
        let (mut t, step) = of_two_views(confidence, findings);
        let Step::AskOtherView { prompt } = step else {
            assert!(!is_asked);
            assert_eq!(command(step).0, "one");
            continue;
        };
        assert!(is_asked && !prompt.adapted && prompt.stable_messages > 1, "with its worked examples");
        assert_eq!(command(t.on_second_answer(prompt, second("two", SECOND_VIEW_BELOW, vec![]), true)).0, "two");
    }
    // nor is there another view without an adapter, or if only the first answer is wanted
    for ask in [ask(Refine::Evidence), CommandRequest { view: View::Adapted, ..ask(Refine::Evidence) }] {
        let mut t = RefineLoop::new(&ask);
        t.begin();
        t.on_reply(&completion("one", Finish::Stop), 0.7, true);
        assert_eq!(command(t.on_inspected(draft("one", 0.7, vec![]), true)).0, "one");
    }
}

#[test]
fn the_surer_of_two_views_stays_unless_the_checks_say_otherwise() {
    let faulty = || vec![error("a", None)];
    for (first, findings, other, stays) in [
        (0.7, vec![], second("two", 0.8, vec![]), "two"),
        (0.8, vec![], second("two", 0.7, vec![]), "one"),
        (0.7, vec![], second("two", 0.8, faulty()), "one"),
        (0.95, faulty(), second("two", 0.7, vec![]), "two"),
        (0.7, vec![], SecondAnswer::Nothing, "one"),
        (0.7, vec![], SecondAnswer::Refused(0.6), "one"),
    ] {
        let (mut t, step) = of_two_views(first, findings);
        let Step::AskOtherView { prompt } = step else { panic!("{step:?}") };
        let (cmd, changes) = command(t.on_second_answer(prompt, other.clone(), false));
        assert_eq!((cmd.as_str(), changes.is_empty()), (stays, stays == "one"), "{other:?}");
    }
    // a dangerous command does not replace one that is not
    let (mut t, step) = of_two_views(0.7, vec![]);
    let Step::AskOtherView { prompt } = step else { panic!("{step:?}") };
    let SecondAnswer::Command(mut two) = second("two", 0.9, vec![]) else { panic!() };
    two.draft.risk.level = Level::Danger;
    assert_eq!(command(t.on_second_answer(prompt, SecondAnswer::Command(two), false)).0, "one");
}

#[test]
fn views_that_agree_are_believed_and_those_that_differ_are_both_compared_with_samples() {
    let (mut t, step) = of_two_views(0.5, vec![]);
    let Step::AskOtherView { prompt } = step else { panic!("{step:?}") };
    let Step::Done(Outcome::Command { draft, .. }) = t.on_second_answer(prompt, second("one", 0.4, vec![]), true)
    else {
        panic!("nothing is sampled any more");
    };
    assert_eq!((draft.cmd.as_str(), draft.confidence), ("one", AGREED_CONFIDENCE));

    for (sure, best, beside) in [(0.6, "two", "one"), (0.4, "one", "two")] {
        let (mut t, step) = of_two_views(0.5, vec![]);
        let Step::AskOtherView { prompt } = step else { panic!("{step:?}") };
        let step = t.on_second_answer(prompt, second("two", sure, vec![]), true);
        let Step::Sample { found, .. } = step else { panic!("{step:?}") };
        let [chosen_best, other] = &found[..] else { panic!("{found:?}") };
        assert_eq!((chosen_best.draft.cmd.as_str(), other.draft.cmd.as_str()), (best, beside));
    }
}

#[test]
fn a_refusal_is_compared_with_the_other_view() {
    for (sure, other, refused) in [
        (0.7, second("two", 0.8, vec![]), false),
        (0.7, second("two", 0.6, vec![]), true),
        (0.7, SecondAnswer::Refused(0.1), true),
        (0.7, SecondAnswer::Nothing, true),
    ] {
        let mut t = RefineLoop::new(&CommandRequest { view: View::Adapted, candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        let step = t.on_reply(&completion(reply::REFUSAL, Finish::Stop), sure, true);
        let Step::AskOtherView { prompt } = step else { panic!("{step:?}") };
        let step = t.on_second_answer(prompt, other, false);
        assert_eq!(step == Step::Done(Outcome::Refused), refused, "{step:?}");
    }
    let mut t = RefineLoop::new(&CommandRequest { view: View::Adapted, candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    let refusal = completion(reply::REFUSAL, Finish::Stop);
    assert_eq!(t.on_reply(&refusal, SECOND_VIEW_BELOW, true), Step::Done(Outcome::Refused));
    let (mut t, step) = of_two_views(0.5, vec![]);
    let Step::AskOtherView { prompt } = step else { panic!("{step:?}") };
    assert_eq!(t.on_second_answer(prompt, SecondAnswer::Refused(0.6), true), Step::Done(Outcome::Refused));
}
