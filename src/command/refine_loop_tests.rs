//! The loop over scripted answers.

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

fn said(text: &str, finish: Finish) -> Completion {
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
    assert!(matches!(t.begin(), Step::Decide { iteration: 1, .. }));
    let Step::Inspect { cmd, .. } = t.decided(&said("ls", Finish::Stop), 0.95, true) else { panic!() };
    assert_eq!(command(t.inspected(draft(&cmd, 0.95, vec![]), true)), ("ls".into(), String::new()));
    assert_eq!(t.iterations, 1);
}

#[test]
fn what_is_asked_to_be_written_may_be_and_nothing_more() {
    let with = |level, id: Option<&str>| {
        let findings = id.map(|id| Finding { id: id.into(), severity: Severity::Warning, ..error("x", None) });
        let risk = Risk { level, reasons: Vec::new() };
        Draft { risk, ..draft("x", 0.9, findings.into_iter().collect()) }
    };
    for id in [saved::ID, in_place::ID] {
        assert!(better(&with(Level::Caution, None), &with(Level::Safe, Some(id)), true));
        assert!(!better(&with(Level::Danger, None), &with(Level::Safe, Some(id)), true));
    }
    assert!(!better(&with(Level::Caution, None), &with(Level::Safe, Some("time-sign")), true));
}

#[test]
fn a_rules_own_command_takes_the_place_of_one_that_cannot_work() {
    let old = |fix| draft("lsmod", 0.9, vec![error("lsmod", fix)]);
    let new = |level| Draft { risk: Risk { level, reasons: Vec::new() }, ..draft("kmutil showloaded", 0.9, vec![]) };
    assert!(better(&new(Level::Caution), &old(Some("kmutil showloaded")), true));
    assert!(!better(&new(Level::Caution), &old(Some("kmutil showloaded")), false), "a model's word is none");
    assert!(
        !better(&new(Level::Caution), &old(Some("kmutil")), true) && !better(&new(Level::Caution), &old(None), true)
    );
    assert!(!better(&new(Level::Danger), &old(Some("kmutil showloaded")), true));
}

#[test]
fn a_finding_leads_to_a_second_iteration_that_continues_the_first() {
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    let Step::Decide { prompt: first, .. } = t.begin() else { panic!() };
    t.decided(&said("ls --sise", Finish::Stop), 0.9, true);
    let Step::Decide { iteration: 2, prompt } = t.inspected(draft("ls --sise", 0.9, vec![error("--sise", None)]), true)
    else {
        panic!()
    };
    assert_eq!(prompt.messages[..first.messages.len()], first.messages[..]);
    t.decided(&said("ls --size", Finish::Stop), 0.9, true);
    let (cmd, changes) = command(t.inspected(draft("ls --size", 0.9, vec![]), true));
    assert_eq!(cmd, "ls --size");
    assert!(changes.contains("ls --sise") && changes.contains("no such option"), "{changes}");
}

#[test]
fn a_worse_or_riskier_second_command_is_not_taken() {
    for (second, level) in [(vec![error("a", None), error("b", None)], Level::Safe), (vec![], Level::Danger)] {
        let mut t = RefineLoop::new(&ask(Refine::Evidence));
        t.begin();
        t.decided(&said("one", Finish::Stop), 0.9, true);
        t.inspected(draft("one", 0.9, vec![error("a", None)]), true);
        t.decided(&said("two", Finish::Stop), 0.9, true);
        let mut two = draft("two", 0.9, second);
        two.risk.level = level;
        assert_eq!(command(t.inspected(two, true)), ("one".into(), String::new()));
    }
}

#[test]
fn never_and_no_time_left_stop_at_one() {
    for (refine, time_left) in [(Refine::Never, true), (Refine::Evidence, false)] {
        let mut t = RefineLoop::new(&ask(refine));
        t.begin();
        t.decided(&said("ls --sise", Finish::Stop), 0.1, true);
        let step = t.inspected(draft("ls --sise", 0.1, vec![error("--sise", None)]), time_left);
        assert_eq!(command(step).0, "ls --sise");
    }
}

#[test]
fn a_known_fix_needs_neither_model_nor_time() {
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.decided(&said("head -5", Finish::Stop), 0.9, true);
    let step = t.inspected(draft("head -5", 0.9, vec![error("-5", Some("head -6"))]), false);
    assert_eq!(step, Step::Inspect { cmd: "head -6".into(), confidence: 0.9 });
    assert_eq!(command(t.inspected(draft("head -6", 0.9, vec![]), true)).0, "head -6");
}

#[test]
fn several_faults_are_mended_one_after_the_other_and_a_useless_fix_is_tried_once() {
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.decided(&said("a b", Finish::Stop), 0.9, true);
    let two = vec![error("a", Some("A b")), error("b", Some("a B"))];
    assert!(matches!(t.inspected(draft("a b", 0.9, two.clone()), false), Step::Inspect { cmd, .. } if cmd == "A b"));
    // the first fix does not help, so the second is tried on the same command
    assert!(matches!(t.inspected(draft("A b", 0.9, two), false), Step::Inspect { cmd, .. } if cmd == "a B"));
    let one = vec![error("a", Some("A B"))];
    assert!(matches!(t.inspected(draft("a B", 0.9, one), false), Step::Inspect { cmd, .. } if cmd == "A B"));
    let (cmd, changes) = command(t.inspected(draft("A B", 0.9, vec![]), false));
    assert_eq!((cmd.as_str(), t.iterations), ("A B", 2));
    assert!(changes.contains("was `a b`") && changes.contains("then was `a B`"), "{changes}");
}

#[test]
fn a_fault_that_shows_once_another_is_mended_is_mended_too() {
    let of = |id: &str, fix| Finding { id: id.into(), ..error("x", fix) };
    let mut t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.decided(&said("a", Finish::Stop), 0.9, true);
    t.inspected(draft("a", 0.9, vec![of("one", Some("b"))]), false);
    let shown = t.inspected(draft("b", 0.9, vec![of("two", Some("c"))]), false);
    assert!(matches!(shown, Step::Inspect { cmd, .. } if cmd == "c"));
    assert_eq!(command(t.inspected(draft("c", 0.9, vec![]), false)).0, "c");

    // one that brings more than it takes away is not gone on with
    t = RefineLoop::new(&ask(Refine::Evidence));
    t.begin();
    t.decided(&said("a", Finish::Stop), 0.9, true);
    t.inspected(draft("a", 0.9, vec![of("one", Some("b"))]), false);
    let worse = vec![of("two", Some("c")), of("three", None)];
    assert_eq!(command(t.inspected(draft("b", 0.9, worse), false)).0, "a");
}

#[test]
fn refusals_cuts_and_silence_have_no_command() {
    for (text, finish, want) in [
        (reply::REFUSAL, Finish::Stop, Outcome::Refused),
        ("ls -", Finish::Cancelled, Outcome::Stopped),
        ("", Finish::Stop, Outcome::Nothing),
        ("find . -name '*.", Finish::Length, Outcome::Nothing),
    ] {
        let mut t = RefineLoop::new(&ask(Refine::Evidence));
        t.begin();
        assert_eq!(t.decided(&said(text, finish), 0.9, true), Step::Done(want), "{text:?}");
    }
}

#[test]
fn what_documents_have_a_command_for_is_not_refused() {
    let known = DocumentedCommand { command: "farmctl cycle".into(), ..DocumentedCommand::default() };
    let before = History { known: vec![known], ..History::default() };
    let mut t = RefineLoop::new(&CommandRequest { before, candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    let step = t.decided(&said(reply::REFUSAL, Finish::Stop), 0.9, true);
    assert_eq!(step, Step::Inspect { cmd: "farmctl cycle".into(), confidence: SAMPLE_BELOW });
    let Step::Done(Outcome::Command { draft, .. }) = t.inspected(draft("farmctl cycle", SAMPLE_BELOW, vec![]), true)
    else {
        panic!("it is what was written down, and nothing else is looked for");
    };
    assert_eq!(draft.cmd, "farmctl cycle");
}

#[test]
fn what_does_not_parse_is_no_command() {
    let mut t = RefineLoop::new(&ask(Refine::Never));
    t.begin();
    t.decided(&said("You're welcome!", Finish::Stop), 0.9, true);
    let torn = Finding { id: syntax::ID.into(), ..error("'re", None) };
    assert_eq!(t.inspected(draft("You're welcome!", 0.9, vec![torn]), true), Step::Done(Outcome::Nothing));
}

#[test]
fn for_want_of_an_answer_others_are_waited_for() {
    let torn = || Finding { id: syntax::ID.into(), ..error("'", None) };
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.decided(&said("find 'x", Finish::Stop), 0.1, true);
    // though the time for a better one is over
    let step = t.inspected(draft("find 'x", 0.1, vec![torn()]), false);
    assert!(matches!(step, Step::Sample { count: 4, .. }), "{step:?}");
    let chosen = Chosen::Draft(draft("find x", 0.4, vec![]), "it parses".into());
    assert_eq!(command(t.chosen(chosen, false)).0, "find x");
}

#[test]
fn a_second_answer_that_fails_keeps_the_first() {
    for (text, finish) in [("", Finish::Stop), (reply::REFUSAL, Finish::Stop), ("x", Finish::Cancelled)] {
        let mut t = RefineLoop::new(&ask(Refine::Evidence));
        t.begin();
        t.decided(&said("one", Finish::Stop), 0.9, true);
        t.inspected(draft("one", 0.9, vec![error("a", None)]), true);
        assert_eq!(command(t.decided(&said(text, finish), 0.9, true)).0, "one");
    }
}

#[test]
fn a_doubtful_command_is_held_against_others_once() {
    let ask = CommandRequest { candidates: 5, ..ask(Refine::Evidence) };
    for (confidence, time_left, refine, sampled) in [
        (0.3, true, Refine::Evidence, true),
        (0.9, true, Refine::Evidence, false),
        (0.3, false, Refine::Evidence, false),
        (0.3, true, Refine::Never, false),
    ] {
        let mut t = RefineLoop::new(&CommandRequest { refine, ..ask.clone() });
        t.begin();
        t.decided(&said("one", Finish::Stop), confidence, true);
        let step = t.inspected(draft("one", confidence, vec![]), time_left);
        if !sampled {
            assert_eq!(command(step).0, "one");
            continue;
        }
        let Step::Sample { found, prompt, count: 4 } = step else { panic!("{step:?}") };
        let (view, few_shot) = (View::Examples, FewShot::Nearest(NEAREST));
        let shown = prompt::first(&ask.request, ask.target, ask.dialect, view, few_shot, &History::default());
        assert_eq!((found[0].draft.cmd.as_str(), prompt), ("one", shown));
        let two = Chosen::Draft(draft("two", 0.5, vec![]), "three of five do this".into());
        let (cmd, changes) = command(t.chosen(two, true));
        assert_eq!((cmd.as_str(), changes.as_str()), ("two", "was `one`: three of five do this"));
    }
}

#[test]
fn a_faulty_command_is_held_against_others_and_then_reconsidered() {
    let faulty = |cmd: &str| draft(cmd, 0.9, vec![error("a", None)]);
    for (chosen, time_left, again) in
        [(faulty("one"), true, true), (faulty("one"), false, false), (draft("two", 0.5, vec![]), true, false)]
    {
        let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        t.decided(&said("one", Finish::Stop), 0.9, true);
        let Step::Sample { found, .. } = t.inspected(faulty("one"), true) else { panic!("{chosen:?}") };
        let best = &found[0];
        assert_eq!(best.draft.cmd, "one");
        assert!((best.likelihood - (-0.1_f64).exp()).abs() < 1e-6, "{}", best.likelihood);
        let cmd = chosen.cmd.clone();
        let step = t.chosen(Chosen::Draft(chosen, "likelier".into()), time_left);
        if !again {
            assert_eq!(command(step).0, cmd);
            continue;
        }
        assert!(matches!(step, Step::Decide { iteration: 2, .. }), "{step:?}");
        t.decided(&said("three", Finish::Stop), 0.3, true);
        assert_eq!(command(t.inspected(draft("three", 0.3, vec![]), true)).0, "three", "others come once");
    }
    // a model without probabilities cannot choose
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.decided(&Completion { tokens: vec![], ..said("one", Finish::Stop) }, 0.9, true);
    assert!(matches!(t.inspected(faulty("one"), true), Step::Decide { iteration: 2, .. }));
}

#[test]
fn what_a_rule_of_the_system_says_is_told_before_others_are_sampled() {
    let foreign = Finding { id: "macos-watch".into(), severity: Severity::Warning, ..error("watch", None) };
    let macos = Target::ALL.iter().find(|(name, _)| *name == "macos-bsd").unwrap().1;
    for (target, is_told) in [(macos, true), (Target::ALL[0].1, false)] {
        let mut t = RefineLoop::new(&CommandRequest { candidates: 5, target, ..ask(Refine::Evidence) });
        t.begin();
        t.decided(&said("watch ls", Finish::Stop), 0.9, true);
        let step = t.inspected(draft("watch ls", 0.9, vec![foreign.clone()]), true);
        assert_eq!(matches!(step, Step::Decide { iteration: 2, .. }), is_told, "{step:?}");
    }
}

#[test]
fn what_the_persons_documents_have_is_not_put_to_the_vote() {
    let known = DocumentedCommand { command: "farmctl cycle".into(), ..DocumentedCommand::default() };
    let before = History { known: vec![known], ..History::default() };
    for (cmd, is_known) in [("farmctl cycle", true), ("farmctl reboot", false)] {
        let mut t = RefineLoop::new(&CommandRequest { candidates: 5, before: before.clone(), ..ask(Refine::Evidence) });
        t.begin();
        t.decided(&said(cmd, Finish::Stop), 0.3, true);
        let step = t.inspected(draft(cmd, 0.3, vec![error("farmctl", None)]), true);
        assert_eq!(!matches!(step, Step::Sample { .. }), is_known, "{step:?}");
    }
}

#[test]
fn a_choice_that_is_the_first_changes_nothing() {
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.decided(&said("one", Finish::Stop), 0.3, true);
    assert!(matches!(t.inspected(draft("one", 0.3, vec![]), true), Step::Sample { .. }));
    assert_eq!(
        command(t.chosen(Chosen::Draft(draft("one", 0.7, vec![]), "all agree".into()), true)),
        ("one".into(), String::new())
    );
}

#[test]
fn a_spent_command_is_no_answer() {
    let rejected = |candidates| {
        let mut t =
            RefineLoop::new(&CommandRequest { candidates, rejected: vec!["one".into()], ..ask(Refine::Evidence) });
        t.begin();
        t
    };
    let mut t = rejected(5);
    let step = t.decided(&said("one", Finish::Stop), 0.99, true);
    let Step::Sample { found, count: 4, .. } = step else { panic!("{step:?}") };
    assert_eq!(found, []);
    assert_eq!(t.chosen(Chosen::Nothing, true), Step::Done(Outcome::Nothing));
    assert_eq!(rejected(1).decided(&said("one", Finish::Stop), 0.99, true), Step::Done(Outcome::Nothing));
    // nor is what does not end
    let mut t = RefineLoop::new(&CommandRequest { candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    let step = t.decided(&said("find . -o -o -o", Finish::Length), 0.9, false);
    assert!(matches!(&step, Step::Sample { found, .. } if found.is_empty()), "{step:?}");
    // nor is it the mend of another
    let mut t = rejected(1);
    t.decided(&said("oen", Finish::Stop), 0.9, true);
    assert!(matches!(t.inspected(draft("oen", 0.9, vec![error("a", Some("one"))]), true), Step::Decide { .. }));
}

/// A request to a model that can be asked in two ways, which first wrote `one` and is so sure of it.
fn of_two_views(confidence: f64, findings: Vec<Finding>) -> (RefineLoop, Step) {
    let mut t = RefineLoop::new(&CommandRequest { view: View::Adapted, candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    t.decided(&said("one", Finish::Stop), confidence, true);
    let step = t.inspected(draft("one", confidence, findings), true);
    (t, step)
}

fn second(cmd: &str, confidence: f64, findings: Vec<Finding>) -> Second {
    Second::Command(Written { draft: draft(cmd, confidence, findings), likelihood: 0.5 })
}

#[test]
fn an_answer_that_is_not_clear_is_asked_for_in_the_other_way_once() {
    for (confidence, findings, is_asked) in
        [(0.7, vec![], true), (CLEAR, vec![], false), (0.99, vec![error("a", None)], true)]
    {
        let (mut t, step) = of_two_views(confidence, findings);
        let Step::Other { prompt } = step else {
            assert!(!is_asked);
            assert_eq!(command(step).0, "one");
            continue;
        };
        assert!(is_asked && !prompt.adapted && prompt.stable_messages > 1, "with its worked examples");
        assert_eq!(command(t.seconded(prompt, second("two", CLEAR, vec![]), true)).0, "two");
    }
    // nor is there another way without an adapter, or for whoever wants the first answer
    for ask in [ask(Refine::Evidence), CommandRequest { view: View::Adapted, ..ask(Refine::Evidence) }] {
        let mut t = RefineLoop::new(&ask);
        t.begin();
        t.decided(&said("one", Finish::Stop), 0.7, true);
        assert_eq!(command(t.inspected(draft("one", 0.7, vec![]), true)).0, "one");
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
        (0.7, vec![], Second::Nothing, "one"),
        (0.7, vec![], Second::Refused(0.6), "one"),
    ] {
        let (mut t, step) = of_two_views(first, findings);
        let Step::Other { prompt } = step else { panic!("{step:?}") };
        let (cmd, changes) = command(t.seconded(prompt, other.clone(), false));
        assert_eq!((cmd.as_str(), changes.is_empty()), (stays, stays == "one"), "{other:?}");
    }
    // what is dangerous takes the place of nothing that is not
    let (mut t, step) = of_two_views(0.7, vec![]);
    let Step::Other { prompt } = step else { panic!("{step:?}") };
    let Second::Command(mut two) = second("two", 0.9, vec![]) else { panic!() };
    two.draft.risk.level = Level::Danger;
    assert_eq!(command(t.seconded(prompt, Second::Command(two), false)).0, "one");
}

#[test]
fn two_views_that_agree_are_believed_and_two_that_do_not_are_both_put_to_the_vote() {
    let (mut t, step) = of_two_views(0.5, vec![]);
    let Step::Other { prompt } = step else { panic!("{step:?}") };
    let Step::Done(Outcome::Command { draft, .. }) = t.seconded(prompt, second("one", 0.4, vec![]), true) else {
        panic!("nothing is sampled any more");
    };
    assert_eq!((draft.cmd.as_str(), draft.confidence), ("one", BOTH));

    for (sure, best, beside) in [(0.6, "two", "one"), (0.4, "one", "two")] {
        let (mut t, step) = of_two_views(0.5, vec![]);
        let Step::Other { prompt } = step else { panic!("{step:?}") };
        let step = t.seconded(prompt, second("two", sure, vec![]), true);
        let Step::Sample { found, .. } = step else { panic!("{step:?}") };
        let [kept, other] = &found[..] else { panic!("{found:?}") };
        assert_eq!((kept.draft.cmd.as_str(), other.draft.cmd.as_str()), (best, beside));
    }
}

#[test]
fn a_refusal_is_held_against_the_other_view() {
    for (sure, other, refused) in [
        (0.7, second("two", 0.8, vec![]), false),
        (0.7, second("two", 0.6, vec![]), true),
        (0.7, Second::Refused(0.1), true),
        (0.7, Second::Nothing, true),
    ] {
        let mut t = RefineLoop::new(&CommandRequest { view: View::Adapted, candidates: 5, ..ask(Refine::Evidence) });
        t.begin();
        let step = t.decided(&said(reply::REFUSAL, Finish::Stop), sure, true);
        let Step::Other { prompt } = step else { panic!("{step:?}") };
        let step = t.seconded(prompt, other, false);
        assert_eq!(step == Step::Done(Outcome::Refused), refused, "{step:?}");
    }
    let mut t = RefineLoop::new(&CommandRequest { view: View::Adapted, candidates: 5, ..ask(Refine::Evidence) });
    t.begin();
    assert_eq!(t.decided(&said(reply::REFUSAL, Finish::Stop), CLEAR, true), Step::Done(Outcome::Refused));
    let (mut t, step) = of_two_views(0.5, vec![]);
    let Step::Other { prompt } = step else { panic!("{step:?}") };
    assert_eq!(t.seconded(prompt, Second::Refused(0.6), true), Step::Done(Outcome::Refused));
}
