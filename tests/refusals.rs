//! What is no task for a shell is refused, and what is one is not, by the real model.

use crate::real::Batch;

/// Asks every line of a list; what was answered, where there was an answer.
fn ask(caro: &mut Batch, list: &'static str) -> Vec<(&'static str, Option<String>)> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let answer = caro.ask(line);
            (line, answer["cmd"].as_str().filter(|cmd| !cmd.is_empty()).map(String::from))
        })
        .collect()
}

#[test]
fn chat_is_refused_and_work_is_not() {
    if cfg!(debug_assertions) {
        println!("skipped: two hundred answers take too long in a debug build");
        return;
    }
    let Some(mut caro) = Batch::start() else { return };
    let chat = ask(&mut caro, include_str!("refusals.txt"));
    assert!(chat.len() >= 120);
    let answered: Vec<_> = chat.iter().filter(|(_, cmd)| cmd.is_some()).collect();
    println!("{} of {} refused; answered: {answered:#?}", chat.len() - answered.len(), chat.len());
    assert!(answered.len() * 20 <= chat.len(), "at least 95 %: {answered:#?}");

    let work = ask(&mut caro, include_str!("../benches/requests.txt"));
    let refused: Vec<_> = work.iter().filter(|(_, cmd)| cmd.is_none()).collect();
    assert!(refused.is_empty(), "{refused:?}");
}
