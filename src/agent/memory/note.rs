//! What a note is, and its limits.

use caro_documents::LibraryError;
use serde::{Deserialize, Serialize};

/// The most characters of a title.
pub const TITLE: usize = 80;

/// The most characters of a note.
pub const CONTENT: usize = 4000;

/// The most characters of a tag or a file's name.
const ITEM: usize = 200;

/// The most tags, and the most files, that are given at once.
const ITEMS: usize = 20;

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
    /// What of it is over a limit and would be cut, if anything is; the beginning of the words as a title is no cut.
    pub fn over(&self) -> Option<String> {
        let longer = |text: &str, limit: usize| text.trim().chars().count() > limit;
        if longer(&self.content, CONTENT) {
            return Some(format!(
                "a note has at most {CONTENT} characters, and this has {}",
                self.content.chars().count()
            ));
        }
        if longer(&self.title, TITLE) || self.title.trim().lines().count() > 1 {
            return Some(format!("a title is one line of at most {TITLE} characters"));
        }
        [("tags", &self.tags), ("files", &self.related_files)].into_iter().find_map(|(what, list)| {
            let over = list.len() > ITEMS || list.iter().any(|item| longer(item, ITEM));
            over.then(|| {
                format!("a note has at most {ITEMS} {what} of {ITEM} characters each, and this has {}", list.len())
            })
        })
    }

    /// The same within its limits.
    ///
    /// # Errors
    /// If it is empty.
    pub(super) fn tidy(mut self) -> Result<Self, LibraryError> {
        let cut = |text: &str, limit: usize| text.trim().chars().take(limit).collect::<String>();
        self.content = cut(&self.content, CONTENT);
        if self.content.is_empty() {
            return Err(LibraryError::Blank("there is nothing to remember"));
        }
        let first = self.content.lines().next().unwrap_or_default();
        let title = self.title.trim().lines().next().unwrap_or(first);
        self.title = cut(title, TITLE);
        for list in [&mut self.tags, &mut self.related_files] {
            for item in list.iter_mut() {
                *item = cut(&item.replace(['\n', '\r'], " "), ITEM);
            }
            list.retain(|item| !item.is_empty());
            list.truncate(ITEMS);
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

impl Note {
    /// Has the same be said once more: it is as late as that, with the tags and files of both, and of the kind that was
    /// said last. The kind that a note has by default says nothing.
    pub(super) fn again(&mut self, later: &Self) {
        self.updated = later.updated;
        let (known, new) = (&mut self.draft, &later.draft);
        if new.category != Category::default() {
            known.category = new.category;
        }
        for (list, more) in [(&mut known.tags, &new.tags), (&mut known.related_files, &new.related_files)] {
            for item in more {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
        }
    }
}

/// A note that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recalled {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// How well it fits, 0 to 1, as in [`Hit::score`](caro_documents::Hit::score).
    pub score: f64,
}
