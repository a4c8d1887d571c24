//! `caro memory`: stores, finds, lists and forgets notes that outlive a run. The agent is reminded of those that fit
//! its task.

use crate::setup::repair;
use crate::setup::stores::{NOTES, no_home, notes};
use crate::term::given::question;
use crate::term::ui::Role;
use crate::{Cx, Exit, Failure, Outcome, Settings};
use caro_agent::clock::day;
use caro_agent::memory::{self, Category, Draft, Kind, Note};
use caro_base::id;
use std::time::{Duration, UNIX_EPOCH};

/// Keep, find and forget notes
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Keep a note
    Remember {
        /// What to remember, in plain words
        #[arg(value_name = "WORDS", required = true)]
        words: Vec<String>,
        /// Its title; its first words if not given
        #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
        title: String,
        /// What kind of thing it tells
        #[arg(long, value_name = "KIND", default_value = "insight",
              value_parser = ["insight", "hindsight", "bug_fix", "architecture", "snippet"])]
        category: String,
        /// A word to find it by; may be given several times
        #[arg(long = "tag", value_name = "WORD")]
        tags: Vec<String>,
        /// A file it is about; may be given several times
        #[arg(long = "file", value_name = "PATH")]
        files: Vec<String>,
    },
    /// Show the notes that fit best
    Query {
        /// What they are to be about
        #[arg(value_name = "WORDS", required = true)]
        words: Vec<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        /// The most notes
        #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
    },
    /// Forget a note
    Forget {
        /// Its id, or the beginning of it
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Save what can be read of a damaged file; that one is kept beside the new one
    Repair {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// List notes, the latest first
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        /// The most notes
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
}

/// Runs the chosen subcommand.
///
/// # Errors
/// See [`LibraryError`](caro_documents::LibraryError).
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let settings = cx.settings(&[])?;
    if settings.memory == Kind::Sqlite && cx.dirs.data.is_none() {
        return Err(no_home());
    }
    if let What::Repair { json } = args.what {
        return repair_files(cx, &settings, json);
    }
    let memory = notes(cx, &settings)?;
    if settings.memory == Kind::InMemory {
        cx.ui.warn("memory = in_memory: what is remembered is forgotten when this command ends");
    }
    match &args.what {
        What::Remember { words, title, category, tags, files } => {
            let category =
                Category::ALL.iter().find(|(name, _)| name == category).map_or_else(Default::default, |c| c.1);
            let draft = Draft {
                title: title.clone(),
                category,
                content: words.join(" "),
                tags: tags.clone(),
                related_files: files.clone(),
                run: String::new(),
            };
            // cutting it silently would lose what the user relies on
            if let Some(why) = draft.over() {
                let words_alone = Draft { content: draft.content, ..Draft::default() };
                let hint = match words_alone.over() {
                    Some(_) => "make several notes of it; `caro knowledge ingest FILE` reads in a whole file",
                    None => "give less of that, or leave it out: a note is found by its own words, too",
                };
                return Err(Failure::usage(why).hint(hint));
            }
            cx.ui.data(&memory.remember(draft)?.id)?;
        }
        What::Query { words, json, limit } => {
            let found = memory.query(&question(words)?, usize::from(*limit))?;
            if *json {
                cx.ui.document(&found)?;
            } else {
                for recalled in &found {
                    show(&recalled.note, &format!("{:.2}  {}", recalled.score, day(recalled.note.updated)), cx)?;
                }
            }
            if found.is_empty() {
                cx.ui.note("nothing fits");
                return Ok(Exit::No);
            }
        }
        // handled above, before anything is opened
        What::Repair { .. } => {}
        What::Forget { id } => {
            let note = memory.forget(id)?;
            cx.ui.note(&format!("forgot {}: {}", note.id, note.draft.title));
        }
        What::List { json, limit } => {
            let notes = memory.list(*limit as usize)?;
            cx.ui.list(*json, &notes, "no note has been taken yet", |note| {
                show(note, &id::stamp(UNIX_EPOCH + Duration::from_millis(note.updated)), cx)
            })?;
        }
    }
    Ok(Exit::Success)
}

/// Saves what can be read of notes and conversations.
fn repair_files(cx: &Cx, settings: &Settings, json: bool) -> Outcome {
    let data = cx.dirs.data.as_ref().ok_or_else(no_home)?;
    if settings.memory != Kind::Sqlite {
        return Err(Failure::usage("notes are kept in no file here").hint("only memory = sqlite has files to repair"));
    }
    let files = memory::repair(&data.join(NOTES))?;
    repair::tell(cx, json, &[("notes", "note"), ("exchanges", "exchange")], &files)
}

fn show(note: &Note, beside: &str, cx: &Cx) -> std::io::Result<()> {
    let draft = &note.draft;
    let head = cx.ui.entry(Role::Accent, &note.id);
    let rest = [beside, draft.category.name(), &draft.tags.join(" ")].join("  ");
    cx.ui.line(&format!("{head}  {}", cx.ui.entry(Role::Dim, rest.trim_end())))?;
    // a title that was made from the content would be a repetition
    if !draft.content.starts_with(&draft.title) {
        cx.ui.line(&format!("    {}", cx.ui.entry(Role::Command, &draft.title)))?;
    }
    for line in draft.content.lines() {
        cx.ui.line(&format!("    {}", cx.ui.paint(Role::Plain, line)))?;
    }
    Ok(())
}
