//! What fetching a model needs from this process: folders, variables, pip, and a bar on the terminal.

use crate::{Cx, Failure, Ui, env};
use caro_exec::{self as exec, EnvProfile, Job, Limits, Sandbox};
use caro_model::Cancel;
use caro_model::fetch::{FetchError, Fetcher, Progress, Settings, Size, Spawn, SpawnEnd, SpawnJob};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where models live and come from, for this process.
///
/// # Errors
/// If there is no place for models.
pub fn settings(cx: &Cx) -> Result<Settings, Failure> {
    Ok(Settings::new(cx.dirs.models.clone(), cx.dirs.cache.clone(), env::everything())?)
}

/// Calls `work` with all that fetching needs. Blocks: not for an async worker.
///
/// # Errors
/// Those of `work`.
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
            // A slow line takes its time; whoever waits notices when nothing comes any more, and stops us.
            limits: Limits { wall: Duration::from_secs(6 * 3600), output: 1 << 20 },
            sandbox: Sandbox::None,
            profile: EnvProfile::Agreed,
            closed: false,
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
                    // Dropping the future ends the child with all of its group.
                    Err(_) if stop.is_cancelled() => return Ok(SpawnEnd { success: false, text: String::new() }),
                    Err(_) => {}
                }
            }
        })
    }
}

/// A bar where somebody sees it; elsewhere a line now and then, for the log.
struct Bar<'a> {
    ui: &'a Ui,
    state: Mutex<Stage>,
}

struct Stage {
    bar: ProgressBar,
    what: String,
    total: Option<u64>,
    /// When the stage began, the last line was written, and how many tenths it told.
    begun: Instant,
    told: Instant,
    tenths: u64,
    first: Option<u64>,
}

/// Nothing that is over sooner is worth a line in a log.
const PATIENCE: Duration = Duration::from_secs(3);

impl<'a> Bar<'a> {
    fn new(ui: &'a Ui) -> Self {
        let now = Instant::now();
        let stage = Stage {
            bar: ProgressBar::hidden(),
            what: String::new(),
            total: None,
            begun: now,
            told: now,
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
        *stage = Stage { bar, what: what.to_string(), total, begun: now, told: now, tenths: 0, first: None };
    }

    fn advance(&self, at: u64) {
        let mut stage = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if stage.first.is_none() {
            // What was here before has no part in the rate.
            stage.first = Some(at);
            stage.bar.reset_eta();
        }
        if stage.bar.is_finished() {
            // something else was told, which took the bar off the terminal
            stage.bar = self.ui.bar(stage.what.clone(), stage.total.unwrap_or(0));
            stage.bar.set_position(at);
            stage.bar.reset_eta();
        }
        stage.bar.set_position(at);
        if !stage.bar.is_hidden() || stage.told.elapsed() < PATIENCE {
            return;
        }
        let tenths = stage.total.map_or(0, |total| at.saturating_mul(10) / total.max(1));
        let due = if stage.total.is_some() { tenths > stage.tenths } else { stage.told.elapsed() > 5 * PATIENCE };
        if due {
            let of = stage.total.map_or(String::new(), |total| format!(" of {} ({}0 %)", Size(total), tenths));
            let come = at.saturating_sub(stage.first.unwrap_or(at)) as f64;
            let rate = (come / stage.begun.elapsed().as_secs_f64()) as u64;
            // The first word after a resumption has no rate yet.
            let rate = if rate > 0 { format!(", {}/s", Size(rate)) } else { String::new() };
            self.ui.note(&format!("{}: {}{of}{rate}", stage.what, Size(at)));
            stage.told = Instant::now();
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
