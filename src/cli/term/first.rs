//! The first call on a machine: what every prompt begins with is computed then, and kept. That takes as long as thirty other
//! calls, and whoever does not know why takes it for a fault.

use crate::Ui;
use caro_model::engine;
use caro_serve::resident::Weights;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What is told before.
const NOTE: &str = "the first call with this model reads what it has to know and keeps that: up to half a minute, once";

/// How often it is told where nobody sees a moving line.
const BEAT: Duration = Duration::from_secs(5);

/// True if nothing has been computed and kept for these weights by this program.
pub fn is_first(weights: &Weights) -> bool {
    let Weights::Gguf { file, state_dir: Some(folder), .. } = weights else { return false };
    std::env::current_exe().is_ok_and(|program| !engine::is_kept(folder, &program, file))
}

/// Does the work while the person sees that it goes on; where it is the `first`, why it takes so long.
pub fn while_told<T>(ui: &Ui, first: bool, work: impl FnOnce() -> T) -> T {
    if !first {
        let _status = ui.status("thinking");
        return work();
    }
    ui.note(NOTE);
    if ui.moves() {
        let _status = ui.status("reading what it has to know");
        return work();
    }
    let begun = Instant::now();
    let (over, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                ui.note(&format!("at it for {} s", begun.elapsed().as_secs()));
            }
        });
        let done = work();
        drop(over);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::engine::Device;
    use std::fs;

    #[test]
    fn the_first_call_is_the_one_before_anything_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("prefix"), dir.path().join("m.gguf"));
        fs::write(&file, "GGUF").unwrap();
        let weights = |state_dir| Weights::Gguf {
            file: file.clone(),
            id: "m".into(),
            device: Device::Cpu,
            threads: 1,
            context: 1,
            state_dir,
            adapter: None,
        };
        let of_folder = || is_first(&weights(Some(folder.clone())));
        assert!(of_folder());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("1.partial"), "").unwrap();
        assert!(of_folder(), "one that is half written is none");
        let state = folder.join("1.state");
        fs::write(&state, "").unwrap();
        assert!(!of_folder());
        // the program or the model was replaced since
        fs::File::open(&state).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(of_folder());
        assert!(!is_first(&weights(None)) && !is_first(&Weights::Script(file.clone())));
    }
}
