//! What a note is, and its limits.

use crate::agent::librarian::file::LibraryError;
use serde::{Deserialize, Serialize};

/// The most characters of a title.
pub const TITLE: usize = 80;

/// The most characters of a note.
pub const CONTENT: usize = 4000;

/// What kind of thing a note tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Something that is so.
    #[default]
    Insight,
    /// Something that one knew too late.
    Hindsight,
    /// What was wrong, and what mended it.
    BugFix,
    /// How something is built.
    Architecture,
    /// Text to be used again.
    Snippet,
}

impl Category {
    /// Every category by its name.
    pub const ALL: [(&'static str, Self); 5] = [
        ("insight", Self::Insight),
        ("hindsight", Self::Hindsight),
        ("bug_fix", Self::BugFix),
        ("architecture", Self::Architecture),
        ("snippet", Self::Snippet),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    pub(super) fn of(name: &str) -> Self {
        Self::ALL.iter().find(|(n, _)| *n == name).map_or(Self::default(), |(_, category)| *category)
    }
}

/// A note that is not kept yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// At most [`TITLE`] characters; made of the content if it is empty.
    pub title: String,
    /// What kind of thing it tells.
    pub category: Category,
    /// What it tells, at most [`CONTENT`] characters.
    pub content: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Files it is about.
    pub related_files: Vec<String>,
    /// The run it comes from, if it comes from one.
    pub run: String,
}

impl Draft {
    /// The same within its limits.
    ///
    /// # Errors
    /// If it is empty.
    pub(super) fn tidy(mut self) -> Result<Self, LibraryError> {
        let cut = |text: &str, limit: usize| text.trim().chars().take(limit).collect::<String>();
        self.content = cut(&self.content, CONTENT);
        if self.content.is_empty() {
            return Err(LibraryError::Empty("there is nothing to remember"));
        }
        let first = self.content.lines().next().unwrap_or_default();
        let title = self.title.trim().lines().next().unwrap_or(first);
        self.title = cut(title, TITLE);
        for list in [&mut self.tags, &mut self.related_files] {
            for item in list.iter_mut() {
                *item = cut(&item.replace(['\n', '\r'], " "), 200);
            }
            list.retain(|item| !item.is_empty());
            list.truncate(20);
        }
        Ok(self)
    }
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its id, `note_...`.
    pub id: String,
    /// What it says.
    #[serde(flatten)]
    pub draft: Draft,
    /// Milliseconds since 1970, UTC.
    pub created: u64,
    /// When it was said last, likewise.
    pub updated: u64,
}

/// A note that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recalled {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// How well it fits, 0 to 1, as in [`Hit::score`](crate::agent::librarian::Hit::score).
    pub score: f64,
}
