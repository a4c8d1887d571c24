//! `caro manual`: shows, reads, searches and clears the manuals of installed programs.

use crate::setup::wire;
use crate::setup::wire::program;
use crate::term::given;
use crate::term::ui::{Role, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_host::ExecutionContext;
use caro_manual::{Entry, Manual, ManualError, Program, common};
use std::sync::Arc;
use std::time::Instant;

/// Arguments of `caro manual`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show what a program's manual says: version, summary, options
    Show {
        /// The program, and its subcommand where that has a manual of its own (`git log`)
        #[arg(required = true, num_args = 1..=2, value_name = "PROGRAM")]
        name: Vec<String>,
        /// Print everything as one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Read the manuals of programs ahead of time
    Warm {
        /// The programs; the commonest of this machine if none is given
        names: Vec<String>,
        /// How many to ask at once
        #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=32))]
        jobs: u8,
    },
    /// Find option lines in all manuals read so far
    Search {
        /// What to look for
        #[arg(required = true)]
        words: Vec<String>,
        /// How many lines to show
        #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
    /// Forget every manual
    Clear,
}

/// Runs the chosen subcommand.
///
/// # Errors
/// If there is no such program, the cache cannot be used, or stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let manual = wire::manual(cx);
    match &args.what {
        What::Show { name, json } => show(name, *json, &manual, cx),
        What::Warm { names, jobs } => warm(names, usize::from(*jobs), &manual, cx),
        What::Search { words, limit, json } => {
            search(&given::question(words)?, usize::from(*limit), *json, &manual, cx)
        }
        What::Clear => {
            let count = manual.clear()?;
            cx.ui.note(&format!("{} forgotten", plural(count, "manual")));
            Ok(Exit::Success)
        }
    }
}

fn show(name: &[String], json: bool, manual: &Manual, cx: &Cx) -> Outcome {
    let context = ExecutionContext::detect(cx.dirs.cache.as_deref());
    let program = program(&name[0], &context)?;
    let entry = cx.block_on(async {
        match name.get(1) {
            Some(sub) => manual.get_or_fetch_sub(&program, sub).await,
            None => manual.get_or_fetch(&program).await,
        }
    })??;
    if json {
        cx.ui.document(&*entry)?;
    } else {
        print(&entry, cx)?;
    }
    Ok(if entry.problem.is_some() { Exit::No } else { Exit::Success })
}

/// Prints an entry: head, summary, options by section.
fn print(entry: &Entry, cx: &Cx) -> std::io::Result<()> {
    let ui = &cx.ui;
    let title = if entry.title.is_empty() { String::new() } else { format!("  {}", entry.title) };
    ui.line(&format!("{}{}", ui.paint(Role::Command, &entry.command), ui.paint(Role::Plain, &title)))?;
    let place = entry.path.display().to_string();
    let version = if entry.version.is_empty() { place } else { format!("{place}, {}", entry.version) };
    ui.line(&ui.paint(Role::Dim, &version))?;
    if let Some(problem) = &entry.problem {
        return ui.line(&ui.paint(Role::Caution, &format!("no manual: it {problem}")));
    }
    if let Some(summary) = entry.man_summary.as_ref().filter(|summary| **summary != entry.title) {
        ui.line("")?;
        ui.line(&ui.paint(Role::Plain, summary))?;
    }
    let mut section = None;
    for option in &entry.options {
        if option.section != section {
            section.clone_from(&option.section);
            ui.line("")?;
            ui.line(&ui.paint(Role::Accent, section.as_deref().unwrap_or("Options")))?;
        }
        let usage = option.usage();
        ui.line(&format!(
            "  {}  {}",
            ui.paint(Role::Command, &format!("{usage:<28}")),
            ui.paint(Role::Plain, &option.text)
        ))?;
    }
    if !entry.complete {
        ui.line("")?;
        ui.line(&ui.paint(Role::Dim, "There may be options that this text does not list."))?;
    }
    Ok(())
}

fn warm(names: &[String], jobs: usize, manual: &Arc<Manual>, cx: &Cx) -> Outcome {
    let context = ExecutionContext::detect(cx.dirs.cache.as_deref());
    let programs: Vec<Program> = if names.is_empty() {
        common().filter_map(|name| program(name, &context).ok()).collect()
    } else {
        names.iter().map(|name| program(name, &context)).collect::<Result<_, _>>()?
    };
    let started = Instant::now();
    let status = cx.ui.status("reading manuals");
    let (mut read, mut problems) = (0usize, Vec::new());
    cx.block_on(manual.warm(programs, jobs, |program, entry| {
        read += 1;
        if let Some(problem) = &entry.problem {
            problems.push(format!("{} {problem}", program.name()));
        }
    }))?;
    drop(status);
    for line in &problems {
        cx.ui.note(line);
    }
    let place = manual.location().map_or_else(|| "in memory only".into(), |path| path.display().to_string());
    let seconds = started.elapsed().as_secs_f64();
    cx.ui.note(&format!("{} read in {seconds:.1} s ({place})", plural(read, "manual")));
    Ok(Exit::Success)
}

fn search(words: &str, limit: usize, json: bool, manual: &Manual, cx: &Cx) -> Outcome {
    let hits = manual.search(words, limit)?;
    if json {
        cx.ui.document(&hits)?;
        return Ok(Exit::Success);
    }
    for hit in &hits {
        let what = format!("{} {}", hit.command, hit.option);
        cx.ui.line(&format!("{}  {}", cx.ui.paint(Role::Command, what.trim()), cx.ui.paint(Role::Plain, &hit.text)))?;
    }
    if hits.is_empty() {
        let hint =
            if manual.count()? == 0 { "no manual was read yet: run `caro manual warm`" } else { "try other words" };
        return Err(Failure::no("nothing was found").hint(hint));
    }
    Ok(Exit::Success)
}

/// The failure of a manual that cannot be read.
impl From<ManualError> for Failure {
    fn from(e: ManualError) -> Self {
        let hint = e.hint();
        match e {
            ManualError::Name(_) => Self::usage(e),
            ManualError::Store(_) => Self::internal(e),
        }
        .hint(hint)
    }
}
