//! Notes and their limits.

use caro_documents::LibraryError;
use serde::{Deserialize, Serialize};

/// Longest title, characters.
pub const MAX_TITLE_CHARS: usize = 80;

/// Longest note, characters.
pub const MAX_CONTENT_CHARS: usize = 4000;

/// Longest tag or file name, characters.
const MAX_ITEM_CHARS: usize = 200;

/// Most tags, and most files, of a draft.
const MAX_ITEMS: usize = 20;

/// The kind of information in a note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A fact.
    #[default]
    Insight,
    /// Something learnt from a mistake.
    Hindsight,
    /// A fault and its fix.
    BugFix,
    /// The structure of something.
    Architecture,
    /// Text for reuse.
    Snippet,
}

impl Category {
    /// All categories with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("insight", Self::Insight),
        ("hindsight", Self::Hindsight),
        ("bug_fix", Self::BugFix),
        ("architecture", Self::Architecture),
        ("snippet", Self::Snippet),
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    pub(super) fn from_name(name: &str) -> Self {
        Self::ALL.iter().find(|(n, _)| *n == name).map_or(Self::default(), |(_, category)| *category)
    }
}

/// A note that is not stored yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// At most [`MAX_TITLE_CHARS`] characters; if empty, the start of the content is used.
    pub title: String,
    /// The kind of information.
    pub category: Category,
    /// The text, at most [`MAX_CONTENT_CHARS`] characters.
    pub content: String,
    /// Additional search words.
    pub tags: Vec<String>,
    /// Files that it is about.
    pub related_files: Vec<String>,
    /// The run that it comes from, or empty.
    pub run: String,
}

impl Draft {
    /// Returns a message if a part exceeds its limit and would be cut. A title made from the content does not count.
    pub fn over(&self) -> Option<String> {
        let longer = |text: &str, limit: usize| text.trim().chars().count() > limit;
        if longer(&self.content, MAX_CONTENT_CHARS) {
            return Some(format!(
                "a note has at most {MAX_CONTENT_CHARS} characters, and this has {}",
                self.content.chars().count()
            ));
        }
        if longer(&self.title, MAX_TITLE_CHARS) || self.title.trim().lines().count() > 1 {
            return Some(format!("a title is one line of at most {MAX_TITLE_CHARS} characters"));
        }
        [("tags", &self.tags), ("files", &self.related_files)].into_iter().find_map(|(what, list)| {
            let over = list.len() > MAX_ITEMS || list.iter().any(|item| longer(item, MAX_ITEM_CHARS));
            over.then(|| {
                let n = list.len();
                format!("a note has at most {MAX_ITEMS} {what} of {MAX_ITEM_CHARS} characters each, and this has {n}")
            })
        })
    }

    /// Trims the draft and cuts it to its limits.
    ///
    /// # Errors
    /// If the content is empty.
    pub(super) fn tidy(mut self) -> Result<Self, LibraryError> {
        let cut = |text: &str, limit: usize| text.trim().chars().take(limit).collect::<String>();
        self.content = cut(&self.content, MAX_CONTENT_CHARS);
        if self.content.is_empty() {
            return Err(LibraryError::Blank("there is nothing to remember"));
        }
        let first = self.content.lines().next().unwrap_or_default();
        let title = self.title.trim().lines().next().unwrap_or(first);
        self.title = cut(title, MAX_TITLE_CHARS);
        for list in [&mut self.tags, &mut self.related_files] {
            for item in list.iter_mut() {
                *item = cut(&item.replace(['\n', '\r'], " "), MAX_ITEM_CHARS);
            }
            list.retain(|item| !item.is_empty());
            list.truncate(MAX_ITEMS);
        }
        Ok(self)
    }
}

/// A stored note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Its id, `note_...`.
    pub id: String,
    /// The contents.
    #[serde(flatten)]
    pub draft: Draft,
    /// The time of creation, milliseconds since 1970, UTC.
    pub created: u64,
    /// The time when it was last stored, in the same unit.
    pub updated: u64,
}

impl Note {
    /// Merges a later note with the same title and content: takes its time, adds its tags and files, and takes its
    /// category unless that is the default one.
    pub(super) fn merge(&mut self, later: &Self) {
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

/// A note found by a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recalled {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// The relevance, 0 to 1, as in [`Hit::score`](caro_documents::Hit::score).
    pub score: f64,
}
