//! Explains the first call on a machine: it computes and saves the common prefix of all prompts, which takes as long
//! as thirty other calls.

use crate::Ui;
use caro_model::engine;
use caro_serve::resident::Weights;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The note before the first call.
const NOTE: &str = "the first call with this model reads what it has to know and keeps that: up to half a minute, once";

/// Time between progress notes if no moving line is shown.
const NOTE_INTERVAL: Duration = Duration::from_secs(5);

/// True if this program has no saved prompt prefix for these weights.
pub fn is_first(weights: &Weights) -> bool {
    let Weights::Gguf { file, state_dir: Some(folder), .. } = weights else { return false };
    std::env::current_exe().is_ok_and(|program| !engine::is_kept(folder, &program, file))
}

/// Does the work while showing progress; for the `first` call, also the reason it takes long.
pub fn with_progress<T>(ui: &Ui, first: bool, work: impl FnOnce() -> T) -> T {
    if !first {
        let _status = ui.status("thinking");
        return work();
    }
    ui.note(NOTE);
    if ui.moves() {
        let _status = ui.status("reading what it has to know");
        return work();
    }
    let start = Instant::now();
    let (stop, stopped) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while stopped.recv_timeout(NOTE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                ui.note(&format!("at it for {} s", start.elapsed().as_secs()));
            }
        });
        let result = work();
        drop(stop);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_model::engine::{Device, EngineKind};
    use std::fs;

    #[test]
    fn a_call_is_first_until_a_prefix_is_saved() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("prefix"), dir.path().join("m.gguf"));
        fs::write(&file, "GGUF").unwrap();
        let weights = |state_dir| Weights::Gguf {
            file: file.clone(),
            id: "m".into(),
            engine: EngineKind::Auto,
            device: Device::Cpu,
            threads: 1,
            context: 1,
            state_dir,
            adapter: None,
        };
        let is_first_in_folder = || is_first(&weights(Some(folder.clone())));
        assert!(is_first_in_folder());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("1.partial"), "").unwrap();
        assert!(is_first_in_folder(), "one that is half written is none");
        let state = folder.join("1.state");
        fs::write(&state, "").unwrap();
        assert!(!is_first_in_folder());
        // the program or the model was replaced since
        fs::File::open(&state).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(is_first_in_folder());
        assert!(!is_first(&weights(None)) && !is_first(&Weights::Script(file.clone())));
    }
}
