//! `caro knowledge`: reads in and searches the user's own documents, in the same library that the agent searches.

mod tldr;

use crate::setup::repair;
use crate::setup::stores::{DOCUMENTS, embedder, librarian, no_home};
use crate::term::given::question;
use crate::term::ui::{Role, in_line, plural};
use crate::{Cx, Exit, Failure, Outcome};
use caro_agent::tool::normal;
use caro_documents::LibraryError;
use caro_documents::chunk::Kind;
use caro_documents::{Answer, Ingested, Librarian, Options, Progress};
use caro_host::ExecutionContext;
use caro_model::embed::EMBEDDING_MODEL;
use caro_model::fetch::Size;
use caro_shell::{Dialect, quote};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most lines of a passage that are shown.
const MAX_LINES: usize = 8;

/// The time between lines of progress where no progress bar is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

/// Read in and search documents of your own
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Read in what is new or has changed in folders or files, and forget what is gone from there
    #[command(
        visible_alias = "add",
        override_usage = "caro knowledge ingest [OPTIONS] <DIR>...\n       caro knowledge ingest [OPTIONS] --tldr [DIR]..."
    )]
    Ingest {
        /// Folders and files
        #[arg(value_name = "DIR", required_unless_present = "tldr")]
        paths: Vec<PathBuf>,
        /// Also the pages of tldr that a client of it has fetched, as far as they hold on this system
        #[arg(long)]
        tldr: bool,
        /// Forget everything that was read in before, once the new is there
        #[arg(long)]
        clean: bool,
        /// How documents are cut into passages
        #[arg(long, value_name = "HOW", default_value = "auto", value_parser = ["auto", "markdown", "code", "text"])]
        chunking: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the passages that fit a question best
    Query {
        /// The question, in plain words
        #[arg(value_name = "WORDS", required = true)]
        words: Vec<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        /// The most passages
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
    },
    /// Show what has been read in
    Stats {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Save what can be read of a damaged file; that one is kept beside the new one
    Repair {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Forget the documents at or below these paths; the files stay
    #[command(override_usage = "caro knowledge rm [OPTIONS] <PATH>...\n       caro knowledge rm [OPTIONS] --all")]
    Rm {
        /// Folders and files
        #[arg(value_name = "PATH", required_unless_present = "all")]
        paths: Vec<PathBuf>,
        /// Forget everything
        #[arg(long, conflicts_with = "paths")]
        all: bool,
    },
}

/// Runs the chosen subcommand.
///
/// # Errors
/// See [`LibraryError`].
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let librarian = librarian(cx).ok_or_else(no_home)?;
    match &args.what {
        What::Ingest { paths, tldr, clean, chunking, json } => {
            let mut roots = paths.iter().map(|p| existing(p, &librarian, cx)).collect::<Result<Vec<_>, _>>()?;
            if *tldr {
                let pages = tldr::folders(ExecutionContext::detect(cx.dirs.cache.as_deref()).target.os);
                if pages.is_empty() {
                    return Err(Failure::usage("no client of tldr has fetched pages for this user").hint(tldr::HINT));
                }
                roots.extend(pages);
            }
            let kind = Kind::ALL.iter().find(|(name, _)| name == chunking).map(|(_, kind)| *kind);
            ingest(&librarian, &roots, Options { clean: *clean, kind }, *json, cx)
        }
        What::Query { words, json, limit } => query(&librarian, &question(words)?, usize::from(*limit), *json, cx),
        What::Repair { json } => {
            let file = cx.dirs.data.as_ref().map(|data| data.join(DOCUMENTS)).ok_or_else(no_home)?;
            let repaired = librarian.repair()?;
            repair::tell(cx, *json, &[("documents", "document"), ("chunks", "passage")], &[(file, repaired)])
        }
        What::Stats { json } => stats(&librarian, *json, cx),
        What::Rm { paths, all } => {
            let mut removed = if *all { librarian.remove(Path::new(""))? } else { 0 };
            for path in paths {
                let below = librarian.remove(&stored_path(path, cx))?;
                if below == 0 {
                    cx.ui.warn(&in_line(&format!("nothing was read in from {}", path.display())));
                }
                removed += below;
            }
            cx.ui.note(&format!("forgot {}", plural(removed, "document")));
            if removed == 0 && !*all {
                cx.ui.hint("`caro knowledge stats` shows what has been read in");
                return Ok(Exit::No);
            }
            Ok(Exit::Success)
        }
    }
}

/// Resolves a path that is to be read in. If it is gone, the hint says how to forget what was read in from there.
fn existing(path: &Path, librarian: &Librarian, cx: &Cx) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(|e| {
        let given = path.display().to_string();
        let is_gone = e.kind() == std::io::ErrorKind::NotFound;
        let failure = Failure::from(LibraryError::Input { path: given.clone(), reason: e.to_string() });
        match librarian.known_below(&stored_path(path, cx)) {
            Ok(known @ 1..) if is_gone => failure.hint(format!(
                "`caro knowledge rm {}` forgets what was read in from there ({})",
                quote(&given, Dialect::Sh),
                plural(known, "document")
            )),
            _ => failure,
        }
    })
}

/// Resolves a path, which need not exist any more, to the form in which it was read in.
fn stored_path(path: &Path, cx: &Cx) -> PathBuf {
    match path.canonicalize() {
        Ok(path) => path,
        Err(_) => normal(cx.cwd.as_deref().unwrap_or(Path::new("/")), &path.to_string_lossy()),
    }
}

fn ingest(librarian: &Librarian, roots: &[PathBuf], options: Options, json: bool, cx: &Cx) -> Outcome {
    if embedder(cx).is_none() {
        cx.ui.note(&format!(
            "searching by words alone; for search by meaning too: `caro model pull {EMBEDDING_MODEL}`, then this again"
        ));
    }
    let cancel = cx.interrupt().cancel().clone();
    let (mut bar, mut total, mut last_line) = (ProgressBar::hidden(), 0, Instant::now());
    let mut on = |progress: Progress| match progress {
        Progress::Found(files) => {
            total = files;
            bar = cx.ui.counter("reading".into(), files as u64);
        }
        Progress::At { files, chunks } => {
            if bar.is_finished() {
                // a message was printed, which removed the bar from the terminal
                bar = cx.ui.counter("reading".into(), total as u64);
            }
            bar.set_position(files as u64);
            bar.set_message(format!("reading ({})", plural(chunks, "passage")));
            if bar.is_hidden() && last_line.elapsed() > PROGRESS_INTERVAL {
                cx.ui.note(&format!("read {files} of {}, {}", plural(total, "file"), plural(chunks, "passage")));
                last_line = Instant::now();
            }
        }
    };
    let done = librarian.ingest(roots, options, &cancel, &mut on);
    cx.ui.settle();
    let done = done?;
    if json {
        cx.ui.document(&done)?;
    } else {
        print_ingested(&done, cx)?;
    }
    Ok(if done.errors > 0 { Exit::No } else { Exit::Success })
}

fn print_ingested(done: &Ingested, cx: &Cx) -> std::io::Result<()> {
    let mut parts =
        vec![format!("read {} ({})", plural(done.files_processed, "file"), plural(done.chunks_indexed, "passage"))];
    let counts = [
        (done.updated, "updated"),
        (done.removed, "removed"),
        (done.unchanged, "unchanged"),
        (done.skipped, "no documents"),
        (done.errors, "not readable"),
        (done.vectors_added, "older passages now found by meaning"),
    ];
    parts.extend(counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    cx.ui.line(&parts.join(", "))?;
    for skipped in &done.passed_over {
        cx.ui.aside(Role::Dim, &in_line(&format!("left out {}: {}", skipped.path, skipped.reason)));
    }
    let more = done.skipped.saturating_sub(done.passed_over.len());
    if more > 0 {
        cx.ui.aside(Role::Dim, &format!("and {more} more"));
    }
    for failed in &done.failed {
        cx.ui.warn(&in_line(&format!("{}: {}", failed.path, failed.reason)));
    }
    if let Some(why) = &done.without_vectors {
        cx.ui.warn(&format!("without vectors, so found by their words alone: {why}"));
    }
    Ok(())
}

fn query(librarian: &Librarian, question: &str, limit: usize, json: bool, cx: &Cx) -> Outcome {
    let answer = librarian.query(question, limit)?;
    if let Some(why) = &answer.without_vectors {
        cx.ui.warn(&format!("searched by words alone: {why}"));
    }
    if json {
        cx.ui.document(&serde_json::json!({"query": question, "answer": answer}))?;
    } else {
        show(&answer, cx)?;
    }
    Ok(if answer.hits.is_empty() { Exit::No } else { Exit::Success })
}

fn show(answer: &Answer, cx: &Cx) -> std::io::Result<()> {
    for hit in &answer.hits {
        let place = hit.place();
        // some places contain the title already
        let title = if place.contains(&hit.title) { "" } else { &hit.title };
        let about = cx.ui.entry(Role::Dim, &format!("{:.2}  {title}", hit.score));
        let place = cx.ui.entry(Role::Accent, &place);
        cx.ui.line(&format!("{place}  {}", about.trim_end()))?;
        let lines: Vec<&str> = hit.text.lines().filter(|l| !l.trim().is_empty()).collect();
        for line in lines.iter().take(MAX_LINES) {
            cx.ui.line(&format!("    {}", cx.ui.paint(Role::Plain, line)))?;
        }
        if lines.len() > MAX_LINES {
            cx.ui
                .line(&cx.ui.paint(Role::Dim, &format!("    ... {}", plural(lines.len() - MAX_LINES, "more line"))))?;
        }
    }
    if answer.hits.is_empty() {
        cx.ui.note("nothing fits");
    }
    Ok(())
}

fn stats(librarian: &Librarian, json: bool, cx: &Cx) -> Outcome {
    let stats = librarian.stats()?;
    if json {
        cx.ui.document(&stats)?;
        return Ok(Exit::Success);
    }
    let kinds: Vec<String> = stats.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) };
    cx.ui.line(&format!("{} ({}){kinds}", plural(stats.documents, "document"), Size(stats.bytes)))?;
    let by = stats.embedder.as_ref().map_or(String::new(), |id| format!(" ({id})"));
    cx.ui.line(&format!("{}, {} of them found by meaning too{by}", plural(stats.chunks, "passage"), stats.vectors))?;
    cx.ui.line(&format!("{} on disk", Size(stats.file_bytes)))?;
    Ok(Exit::Success)
}
