//! `caro model recommend`: recommends a model for this machine.
//!
//! Models that are here are timed as `caro bench --quick` does; the speed of the others is estimated from a timed
//! one. The free memory is compared with what each model needs. How often a model is right comes from the records in
//! its card.

use crate::term::interrupt::Phase;
use crate::term::ui::{Role, plural, size};
use crate::{Cx, Exit, Failure, Outcome};
use caro_model::ModelError;
use caro_model::catalog::{Card, Purpose};
use caro_model::engine::{self, Device, EngineKind, Options, Tier};
use caro_model::fetch::{self, Settings as Folders};
use caro_serve::resident::room;
use std::path::Path;

/// Prompt tokens read for a typical answer: the request, after the cached start of the prompt.
const PROMPT_TOKENS: usize = 128;
/// Tokens generated for a typical answer: a command of some length.
const ANSWER_TOKENS: f64 = 32.0;

/// Most seconds that an answer of a quick model takes.
const MAX_QUICK_S: f64 = 2.0;
/// Most seconds that an answer of a fair model takes; above that it is slow.
const MAX_FAIR_S: f64 = 6.0;

/// The time that a typical answer takes.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
struct Speed {
    /// Seconds.
    answer_s: f64,
    /// True if it was measured now; false if it was estimated by size from a measured one.
    is_measured: bool,
}

/// A class of speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Quick,
    Fair,
    Slow,
}

impl Speed {
    fn class(self) -> Class {
        match self.answer_s {
            seconds if seconds <= MAX_QUICK_S => Class::Quick,
            seconds if seconds <= MAX_FAIR_S => Class::Fair,
            _ => Class::Slow,
        }
    }
}

/// A model compared with this machine.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
struct Candidate {
    id: String,
    licence: String,
    /// Size of its file in bytes, if known.
    bytes: Option<u64>,
    is_here: bool,
    is_in_use: bool,
    /// Memory that it needs in bytes, if known.
    wants_memory: Option<u64>,
    /// True if that much memory is free; `None` if the size or the free memory is not known.
    fits: Option<bool>,
    /// Its speed here.
    speed: Option<Speed>,
    /// The share of the evaluation tasks that it does right, as its card records.
    eval: Option<f64>,
    /// The reason if it could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The model that is recommended.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
struct Choice {
    id: String,
    reason: String,
    /// The command that takes it into use; `None` if it is in use.
    command: Option<String>,
}

/// Measures the models that are here, compares all of them and recommends one.
///
/// # Errors
/// If the settings cannot be read, or stdout cannot be written.
pub fn run(folders: &Folders, json: bool, cx: &Cx) -> Outcome {
    let settings = cx.settings(&[])?;
    let (listed, broken): (Vec<_>, Vec<_>) = fetch::list(folders).into_iter().partition(Result::is_ok);
    for error in broken.into_iter().filter_map(Result::err) {
        cx.ui.warn(&error.to_string());
    }
    let mut free = None;
    let mut candidates = Vec::new();
    for model in listed.into_iter().flatten().filter(|model| model.card.purpose == Purpose::Chat) {
        let bytes = model.card.bytes().or_else(|| Some(model.path.as_ref()?.metadata().ok()?.len()));
        let room = bytes.and_then(room);
        free = free.or(room.map(|room| room.available));
        let wants_memory = model.card.min_ram.or(room.map(|room| room.wanted));
        let fits = wants_memory.zip(room).map(|(wanted, room)| room.available >= wanted);
        let mut candidate = Candidate {
            eval: eval(&model.card),
            is_here: model.path.is_some(),
            is_in_use: model.card.id == settings.model,
            id: model.card.id,
            licence: model.card.licence,
            bytes,
            wants_memory,
            fits,
            speed: None,
            problem: None,
        };
        // with too little memory it would be the disk that is measured
        if let Some(file) = model.path
            && fits != Some(false)
        {
            // Ctrl-C has to end the process: measuring does not check for it
            let _phase = cx.interrupt().during(Phase::Ends);
            let _status = cx.ui.status("measuring");
            match measure(&file, settings.engine, settings.device) {
                Ok(speed) => candidate.speed = Some(speed),
                Err(why) => candidate.problem = Some(why.to_string()),
            }
        }
        candidates.push(candidate);
    }
    estimate(&mut candidates);
    candidates.sort_by_key(|one| one.bytes.unwrap_or(u64::MAX));
    let choice = choose(&candidates);
    let tier = Tier::detect();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if json {
        cx.ui.document(&serde_json::json!({
            "kernels": tier.name(),
            "threads": threads,
            "free_memory": free,
            "models": candidates,
            "recommended": choice,
        }))?;
    } else {
        table(&candidates, choice.as_ref(), cx)?;
        let free = free.map_or(String::new(), |free| format!(", {} of memory free", size(free)));
        cx.ui.note(&format!("this machine: {tier} kernels, {}{free}", plural(threads, "thread")));
        if !candidates.iter().any(|one| one.is_in_use) {
            cx.ui.note(&format!(
                "in use is `{}`, which is none of these",
                crate::setup::config::shown("model", &settings.model)
            ));
        }
    }
    match choice {
        Some(_) => Ok(Exit::Success),
        None if json => Ok(Exit::No),
        None => Err(Failure::no("no model of the list is known to suit this machine")
            .hint("`caro bench --model ID` measures one; `--model openai:URL#NAME` asks a server instead")),
    }
}

/// The latest recorded share of tasks that a model does right.
fn eval(card: &Card) -> Option<f64> {
    card.measured
        .iter()
        .filter_map(|one| Some((&one.date, one.eval?)))
        .max_by_key(|(date, _)| *date)
        .map(|(_, eval)| eval)
}

/// Measures the speed of a model that is here.
fn measure(file: &Path, engine: EngineKind, device: Device) -> Result<Speed, ModelError> {
    let report = engine::bench(file, &Options { engine, device, ..Options::default() }, 1, &[])?;
    let prefill = report.prefill.iter().find(|(tokens, _)| *tokens == PROMPT_TOKENS);
    let prefill_rate = prefill.map_or(f64::INFINITY, |(_, rate)| *rate);
    Ok(Speed { answer_s: PROMPT_TOKENS as f64 / prefill_rate + ANSWER_TOKENS / report.decode, is_measured: true })
}

/// Estimates the speed of the models that were not measured from the measured one nearest in size: the time is
/// proportional to the bytes that are read for each token.
fn estimate(candidates: &mut [Candidate]) {
    let known: Vec<(u64, f64)> = candidates
        .iter()
        .filter_map(|one| Some((one.bytes?, one.speed?.answer_s)))
        .filter(|(bytes, _)| *bytes > 0)
        .collect();
    for one in candidates.iter_mut().filter(|one| one.speed.is_none() && one.problem.is_none()) {
        let Some(bytes) = one.bytes else { continue };
        let nearest = known.iter().min_by_key(|(other, _)| other.abs_diff(bytes));
        one.speed = nearest
            .map(|(other, seconds)| Speed { answer_s: seconds * bytes as f64 / *other as f64, is_measured: false });
    }
}

/// Chooses the model that does the most tasks among those that fit and are not slow; if all are slow, the quickest.
/// Only models with a recorded share of tasks are compared; if there are none, the model in use stays.
fn choose(candidates: &[Candidate]) -> Option<Choice> {
    let is_slow = |one: &&Candidate| one.speed.is_some_and(|speed| speed.class() == Class::Slow);
    let usable: Vec<&Candidate> = candidates
        .iter()
        .filter(|one| one.fits != Some(false) && one.problem.is_none() && one.bytes.is_some())
        .collect();
    let recorded = || usable.iter().copied().filter(|one| one.eval.is_some());
    let best = recorded().filter(|one| !is_slow(one)).max_by(|a, b| compare(a.eval, b.eval));
    let quickest = || recorded().min_by(|a, b| compare(a.speed.map(|s| s.answer_s), b.speed.map(|s| s.answer_s)));
    let chosen = best.or_else(quickest).or_else(|| usable.iter().copied().find(|one| one.is_in_use))?;
    let mut reasons = Vec::new();
    match chosen.eval {
        Some(eval) if best.is_some() => {
            reasons.push(format!("does the most tasks of those that fit and are not slow ({})", of_hundred(eval)));
        }
        Some(eval) => reasons.push(format!("is the quickest where all are slow (right in {})", of_hundred(eval))),
        None => reasons.push("is in use, and of no other that fits it is recorded how often it is right".into()),
    }
    reasons.push(match chosen.speed {
        Some(speed @ Speed { is_measured: true, .. }) => format!("an answer takes about {}", seconds(speed)),
        Some(speed) => format!("an answer is estimated to take {}", seconds(speed)),
        None => "its speed is known once it is here".into(),
    });
    let command = match (chosen.is_in_use, chosen.is_here) {
        (true, true) => None,
        (true, false) => Some(format!("caro model pull {}", chosen.id)),
        (false, true) => Some(format!("caro config set model {}", chosen.id)),
        (false, false) => Some(format!("caro model pull {id} && caro config set model {id}", id = chosen.id)),
    };
    Some(Choice { id: chosen.id.clone(), reason: reasons.join("; "), command })
}

/// Compares two figures; an unknown one is the smallest.
fn compare(a: Option<f64>, b: Option<f64>) -> std::cmp::Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

fn of_hundred(eval: f64) -> String {
    format!("{:.0} of 100", eval * 100.0)
}

fn seconds(speed: Speed) -> String {
    format!("{:.1} s", speed.answer_s)
}

/// Prints a line for each model, and below them the recommended one with its reason.
fn table(candidates: &[Candidate], choice: Option<&Choice>, cx: &Cx) -> Result<(), Failure> {
    let ui = &cx.ui;
    let heading = format!("  {:<20} {:>9}  {:<18} {:<18} {}", "model", "size", "memory", "an answer", "right");
    ui.line(&ui.paint(Role::Accent, &heading))?;
    for one in candidates {
        let mark = if one.is_in_use { "*" } else { " " };
        let bytes = one.bytes.map_or("?".into(), size);
        let (role, memory) = match (one.fits, one.wants_memory) {
            (Some(true), Some(wanted)) => (Role::Good, format!("{}: fits", size(wanted))),
            (Some(false), Some(wanted)) => (Role::Caution, format!("{}: too much", size(wanted))),
            (_, wanted) => (Role::Dim, wanted.map_or("?".into(), size)),
        };
        let memory = ui.paint(role, &format!("{memory:<18}"));
        let (role, speed) = match (one.speed, &one.problem) {
            (_, Some(_)) => (Role::Danger, "cannot be read".into()),
            (None, None) => (Role::Dim, "?".into()),
            (Some(speed), None) => {
                let (role, word) = match speed.class() {
                    Class::Quick => (Role::Good, "quick"),
                    Class::Fair => (Role::Plain, "fair"),
                    Class::Slow => (Role::Caution, "slow"),
                };
                let about = if speed.is_measured { "" } else { "about " };
                (role, format!("{about}{}, {word}", seconds(speed)))
            }
        };
        let speed = ui.paint(role, &format!("{speed:<18}"));
        let right = one.eval.map_or("?".into(), of_hundred);
        let id = ui.entry(Role::Plain, &format!("{:<20}", one.id));
        ui.line(&format!("{mark} {id} {bytes:>9}  {memory} {speed} {right}"))?;
        if let Some(problem) = &one.problem {
            ui.warn(&crate::term::ui::in_line(&format!("{}: {problem}", one.id)));
        }
    }
    let Some(choice) = choice else { return Ok(()) };
    ui.line("")?;
    ui.line(&format!("{}: {}", ui.entry(Role::Command, &choice.id), choice.reason))?;
    match &choice.command {
        None => ui.line("it is in use: nothing is to be changed")?,
        Some(command) => ui.line(&format!("take it: {}", ui.entry(Role::Command, command)))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(id: &str, bytes: u64, eval: Option<f64>) -> Candidate {
        Candidate {
            id: id.into(),
            licence: "MIT".into(),
            bytes: Some(bytes),
            is_here: true,
            is_in_use: false,
            wants_memory: Some(2 * bytes),
            fits: Some(true),
            speed: None,
            eval,
            problem: None,
        }
    }

    fn timed(answer_s: f64) -> Option<Speed> {
        Some(Speed { answer_s, is_measured: true })
    }

    #[test]
    fn a_model_is_timed_and_a_file_that_is_no_model_is_an_error() {
        let file = caro_model::engine::testing::tiny_file();
        let speed = measure(file.path(), EngineKind::Auto, Device::Cpu).unwrap();
        assert!(speed.is_measured && speed.answer_s > 0.0 && speed.answer_s.is_finite(), "{speed:?}");
        std::fs::write(file.path(), "GGUF and nothing else").unwrap();
        assert!(measure(file.path(), EngineKind::Auto, Device::Cpu).is_err());
    }

    #[test]
    fn a_model_that_was_not_measured_is_estimated_from_the_nearest_in_size() {
        let mut all = [
            model("small", 100, None),
            Candidate { speed: timed(1.0), ..model("mid", 200, None) },
            Candidate { speed: timed(9.0), ..model("large", 1000, None) },
            model("larger", 2000, None),
            Candidate { bytes: None, ..model("unknown", 0, None) },
            Candidate { problem: Some("no GGUF".into()), ..model("broken", 300, None) },
        ];
        estimate(&mut all);
        let of = |n: usize| all[n].speed.map(|speed| (speed.answer_s, speed.is_measured));
        assert_eq!([of(0), of(1), of(3)], [Some((0.5, false)), Some((1.0, true)), Some((18.0, false))]);
        assert_eq!([of(4), of(5)], [None, None]);
        let mut none = [model("a", 1, None)];
        estimate(&mut none);
        assert_eq!(none[0].speed, None, "nothing to estimate from");
    }

    #[test]
    fn the_best_model_that_fits_and_is_not_slow_is_chosen() {
        let small = Candidate { speed: timed(0.5), ..model("small", 100, Some(0.49)) };
        let mid = Candidate { speed: timed(1.5), ..model("mid", 200, Some(0.80)) };
        let of = |all: &[Candidate]| choose(all).map(|choice| (choice.id, choice.command));
        let set = |id: &str| Some((id.to_owned(), Some(format!("caro config set model {id}"))));
        assert_eq!(of(&[small.clone(), mid.clone()]), set("mid"));
        // too large, too slow, broken
        for unfit in [
            Candidate { fits: Some(false), ..mid.clone() },
            Candidate { speed: timed(MAX_FAIR_S + 1.0), ..mid.clone() },
            Candidate { problem: Some("no GGUF".into()), ..mid.clone() },
        ] {
            assert_eq!(of(&[small.clone(), unfit]), set("small"));
        }
        // a model without a recorded share of tasks is not compared
        assert_eq!(of(&[small.clone(), Candidate { speed: timed(0.1), ..model("new", 50, None) }]), set("small"));
        let slow = |one: &Candidate, answer_s| Candidate { speed: timed(answer_s), ..one.clone() };
        let all_slow = choose(&[slow(&small, 7.0), slow(&mid, 20.0)]).unwrap();
        assert!(all_slow.id == "small" && all_slow.reason.contains("all are slow"), "{all_slow:?}");
    }

    #[test]
    fn the_command_does_what_remains_to_be_done() {
        let mid = model("mid", 200, Some(0.8));
        let of = |is_here, is_in_use| choose(&[Candidate { is_here, is_in_use, ..mid.clone() }]).unwrap().command;
        assert_eq!(of(true, true), None);
        assert_eq!(of(false, true).as_deref(), Some("caro model pull mid"));
        assert_eq!(of(false, false).as_deref(), Some("caro model pull mid && caro config set model mid"));
        assert_eq!(choose(&[model("new", 50, None)]), None, "nothing is known of it, and it is not in use");
        let own = choose(&[Candidate { is_in_use: true, ..model("own", 50, None) }]).unwrap();
        assert!(own.reason.starts_with("is in use, and of no other"), "{own:?}");
    }
}
