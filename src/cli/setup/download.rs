//! Provides what fetching a model needs from this process: folders, variables, pip, and a progress bar.

use crate::{Cx, Failure, Ui, env};
use caro_exec::{self as exec, EnvProfile, Job, Limits, Sandbox};
use caro_model::Cancel;
use caro_model::fetch::{FetchError, Fetcher, Progress, Settings, Size, Spawn, SpawnEnd, SpawnJob};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Returns the folders and sources of models for this process.
///
/// # Errors
/// If there is no folder for models.
pub fn settings(cx: &Cx) -> Result<Settings, Failure> {
    Ok(Settings::new(cx.dirs.models.clone(), cx.dirs.cache.clone(), env::everything())?)
}

/// Calls `work` with a fetcher. Blocks: not for an async worker.
///
/// # Errors
/// The error of `work`.
pub fn with_fetcher<T>(
    settings: &Settings,
    cx: &Cx,
    work: impl FnOnce(&Fetcher<'_>) -> Result<T, FetchError>,
) -> Result<T, Failure> {
    let bar = Bar::new(&cx.ui);
    Ok(work(&Fetcher { settings, spawn: &Pip, progress: &bar, cancel: cx.interrupt().cancel() })?)
}

/// Runs pip through [`exec`].
#[derive(Debug, Clone, Copy)]
pub struct Pip;

impl Spawn for Pip {
    fn find(&self, program: &Path) -> Option<PathBuf> {
        exec::find(program)
    }

    fn run(&self, job: &SpawnJob, stop: &Cancel) -> Result<SpawnEnd, String> {
        let job = Job {
            program: job.program.clone(),
            args: job.args.clone(),
            cwd: Some(job.cwd.clone()),
            env: job.env.clone(),
            stdin: Vec::new(),
            // long, for slow connections: the caller stops it if nothing arrives
            limits: Limits { wall: Duration::from_secs(6 * 3600), output: 1 << 20 },
            sandbox: Sandbox::None,
            profile: EnvProfile::Approved,
            spawns_nothing: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        runtime.block_on(async {
            let mut child = std::pin::pin!(exec::capture(&job));
            loop {
                match tokio::time::timeout(Duration::from_millis(50), &mut child).await {
                    Ok(Ok(output)) => {
                        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                        let text = text(&output.stdout) + "\n" + &text(&output.stderr);
                        return Ok(SpawnEnd { success: output.status.success(), text });
                    }
                    Ok(Err(error)) => return Err(error.to_string()),
                    // dropping the future kills the child and its process group
                    Err(_) if stop.is_cancelled() => return Ok(SpawnEnd { success: false, text: String::new() }),
                    Err(_) => {}
                }
            }
        })
    }
}

/// A progress bar on a terminal; elsewhere a line now and then, for a log.
struct Bar<'a> {
    ui: &'a Ui,
    state: Mutex<Stage>,
}

struct Stage {
    bar: ProgressBar,
    what: String,
    total: Option<u64>,
    /// The time the stage began.
    start: Instant,
    /// The time of the last line, and the tenths of the total that it reported.
    last_line: Instant,
    tenths: u64,
    /// The bytes that were present at the first call of `advance`.
    first: Option<u64>,
}

/// Least time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(3);

impl<'a> Bar<'a> {
    fn new(ui: &'a Ui) -> Self {
        let now = Instant::now();
        let stage = Stage {
            bar: ProgressBar::hidden(),
            what: String::new(),
            total: None,
            start: now,
            last_line: now,
            tenths: 0,
            first: None,
        };
        Self { ui, state: Mutex::new(stage) }
    }
}

impl Progress for Bar<'_> {
    fn start(&self, what: &str, total: Option<u64>) {
        let mut stage = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let bar = self.ui.bar(what.to_string(), total.unwrap_or(0));
        *stage = Stage { bar, what: what.to_string(), total, start: now, last_line: now, tenths: 0, first: None };
    }

    fn advance(&self, at: u64) {
        let mut stage = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.first.is_none() {
            // bytes of an earlier download do not count for the rate
            stage.first = Some(at);
            stage.bar.reset_eta();
        }
        if stage.bar.is_finished() {
            // other output has removed the bar from the terminal
            stage.bar = self.ui.bar(stage.what.clone(), stage.total.unwrap_or(0));
            stage.bar.set_position(at);
            stage.bar.reset_eta();
        }
        stage.bar.set_position(at);
        if !stage.bar.is_hidden() || stage.last_line.elapsed() < LINE_INTERVAL {
            return;
        }
        let tenths = stage.total.map_or(0, |total| at.saturating_mul(10) / total.max(1));
        let is_due = match stage.total {
            Some(_) => tenths > stage.tenths,
            None => stage.last_line.elapsed() > 5 * LINE_INTERVAL,
        };
        if is_due {
            let of = stage.total.map_or(String::new(), |total| format!(" of {} ({}0 %)", Size(total), tenths));
            let received = at.saturating_sub(stage.first.unwrap_or(at)) as f64;
            let rate = (received / stage.start.elapsed().as_secs_f64()) as u64;
            // the first line after a resumption has no rate yet
            let rate = if rate > 0 { format!(", {}/s", Size(rate)) } else { String::new() };
            self.ui.note(&format!("{}: {}{of}{rate}", stage.what, Size(at)));
            stage.last_line = Instant::now();
            stage.tenths = tenths;
        }
    }

    fn finish(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bar.finish_and_clear();
    }

    fn note(&self, text: &str) {
        self.ui.note(text);
    }
}
