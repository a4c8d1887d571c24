//! Tests that the real model refuses requests that are no shell task, and answers those that are.

use crate::real::Batch;

/// Asks every `step`-th line of a list; returns each with its command, if there is one.
fn ask(caro: &mut Batch, list: &'static str, step: usize) -> Vec<(&'static str, Option<String>)> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .step_by(step)
        .map(|line| {
            let answer = caro.ask(line);
            (line, answer["cmd"].as_str().filter(|cmd| !cmd.is_empty()).map(String::from))
        })
        .collect()
}

#[test]
fn a_sample_of_chat_is_refused_and_of_work_answered() {
    check_refusals(3);
}

#[test]
#[ignore = "a minute and a half: benches/full.sh runs it"]
fn chat_is_refused_and_work_answered() {
    check_refusals(1);
}

fn check_refusals(step: usize) {
    if cfg!(debug_assertions) {
        println!("skipped: two hundred answers take too long in a debug build");
        return;
    }
    let Some(mut caro) = Batch::start() else { return };
    let chat = ask(&mut caro, include_str!("refusals.txt"), step);
    assert!(chat.len() * step >= 120);
    let answered: Vec<_> = chat.iter().filter(|(_, cmd)| cmd.is_some()).collect();
    println!("{} of {} refused; answered: {answered:#?}", chat.len() - answered.len(), chat.len());
    assert!(answered.len() * 20 <= chat.len(), "at least 95 %: {answered:#?}");

    let (tasks, talk) = include_str!("one-word.txt").split_once("# talk").unwrap();
    let (tasks, talk) = (ask(&mut caro, tasks, step), ask(&mut caro, talk, step));
    let refused: Vec<_> = tasks.iter().filter(|(_, cmd)| cmd.is_none()).collect();
    assert!(refused.len() * 6 <= tasks.len(), "at least five of six: {refused:?}");
    let answered: Vec<_> = talk.iter().filter(|(_, cmd)| cmd.is_some()).collect();
    assert!(answered.len() * 7 <= talk.len(), "at least six of seven: {answered:#?}");

    let work = ask(&mut caro, include_str!("../benches/requests.txt"), step);
    let refused: Vec<_> = work.iter().filter(|(_, cmd)| cmd.is_none()).collect();
    assert!(refused.is_empty(), "{refused:?}");
}
