//! Skills: folders with a `SKILL.md` that says how a kind of task is gone about, found when a task needs them.
//!
//! ```text
//! folders -> front matter (index) -> choose for the task: by name, by words and meaning -> read, render -> layer of the prompt
//! ```
//!
//! - [`board`]: those that come with the program. [`front`]: the head of a `SKILL.md`, and what is wrong with it. [`index`]: heads and vectors, read once.
//! - [`Shelf`]: where skills are. [`choose`]: which of many fit a task. [`render`]: text and references, filled in. [`layer`]: into the prompt.
//! - [`tools`]: reading a skill's other files, running its scripts. [`declared`]: scripts that are tools of their own. [`check`]: what its author should mend. [`role`]: personas.
//!
//! A skill is text and scripts. It never changes what may be done: guards see calls, not skills, and nothing in a front
//! matter gives a right. A project's skills are somebody else's words: they stand with the data and not with the
//! instructions, are screened like any document, and their scripts are asked for.

pub mod board;
pub mod check;
pub mod choose;
pub mod declared;
pub mod front;
pub mod index;
pub mod layer;
pub mod render;
pub mod role;
pub mod script;
mod shelf;
pub mod tools;

pub use choose::{Chosen, Reason};
pub use front::Front;
pub use index::Index;
pub use shelf::Shelf;

use super::tool::normal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a folder a skill.
pub const FILE: &str = "SKILL.md";
/// The largest `SKILL.md` and reference that is read, bytes.
pub const LARGEST: u64 = 256 << 10;
/// Folders looked into below one place.
const MOST: usize = 500;

/// Whose a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The person put it into a folder of their own.
    User,
    /// It came with the project.
    Project,
    /// It came with the program.
    Board,
}

/// A place where skills lie: each folder in it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// Whose.
    pub origin: Origin,
}

/// A skill whose head is sound. Its text is read when it is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// What its head says.
    pub front: Front,
    /// Its folder, links resolved.
    pub folder: PathBuf,
    /// Whose it is.
    pub origin: Origin,
}

/// Why a skill cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    /// It cannot be read.
    #[error("could not read {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// Its head is wrong.
    #[error("{path}: {reason}")]
    Front {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A place has more skills than are looked into.
    #[error("{path} has {count} skills, and the first {MOST} by name are used")]
    Many {
        /// The place.
        path: String,
        /// How many there are.
        count: usize,
    },
    /// Another one has its name.
    #[error("{path}: another skill has the name `{name}` and comes first")]
    Twice {
        /// The file.
        path: String,
        /// The name.
        name: String,
    },
    /// Its text cannot be filled in.
    #[error("the text of the skill `{skill}` cannot be filled in: {reason}")]
    Template {
        /// The skill.
        skill: String,
        /// Why.
        reason: String,
    },
    /// Its text gives orders that are not its to give.
    #[error("the skill `{skill}` of the project was kept from the model: it holds text that overrides instructions")]
    Withheld {
        /// The skill.
        skill: String,
    },
    /// There is no such skill.
    #[error("there is no skill `{name}`{near}")]
    Unknown {
        /// The name.
        name: String,
        /// One that is like it.
        near: String,
    },
}

impl SkillError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check that it may be read and is not too large",
            Self::Front { .. } => {
                "`caro skills check` shows all that is wrong; `caro skills new` makes one that is right"
            }
            Self::Many { .. } => "take those out that are not needed",
            Self::Twice { .. } => "rename one of them: folder and `name`",
            Self::Template { .. } => "write {% raw %} ... {% endraw %} around braces that are not for filling in",
            Self::Withheld { .. } => {
                "read it with `caro skills show`; copy it to your own skills folder if you stand by it"
            }
            Self::Unknown { .. } => "`caro skills list` shows what there is",
        }
    }
}

/// The skills of a person in a folder, and what is wrong with others.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    /// By name.
    pub all: Vec<Arc<Skill>>,
    /// What was left out, and why.
    pub wrong: Vec<SkillError>,
}

impl Skills {
    /// Looks into places, the first one first: of two skills with one name it has the say.
    pub fn find(places: &[Place], index: &mut Index) -> Self {
        let mut found = Self::default();
        for place in places {
            let mut folders = folders(&place.folder);
            if folders.len() > MOST {
                let path = place.folder.display().to_string();
                found.wrong.push(SkillError::Many { path, count: folders.len() });
                folders.truncate(MOST);
            }
            for folder in folders {
                match index.skill(&folder, place) {
                    // one of the person's own takes the place of one on board
                    Ok(skill) if found.has(&skill.front.name) && skill.origin == Origin::Board => {}
                    Ok(skill) if found.has(&skill.front.name) => {
                        let path = folder.join(FILE).display().to_string();
                        found.wrong.push(SkillError::Twice { path, name: skill.front.name });
                    }
                    Ok(skill) => found.all.push(Arc::new(skill)),
                    Err(error) => found.wrong.push(error),
                }
            }
        }
        found.all.sort_by(|a, b| a.front.name.cmp(&b.front.name));
        found
    }

    fn has(&self, name: &str) -> bool {
        self.all.iter().any(|skill| skill.front.name == name)
    }

    /// The skill of that name.
    ///
    /// # Errors
    /// [`SkillError::Unknown`], with one that is like it.
    pub fn get(&self, name: &str) -> Result<&Arc<Skill>, SkillError> {
        self.all.iter().find(|s| s.front.name == name).ok_or_else(|| {
            let start: String = name.chars().take(3).collect();
            let near = self.all.iter().find(|s| s.front.name.contains(name) || s.front.name.starts_with(&start));
            let near = near.map(|s| format!("; there is `{}`", s.front.name)).unwrap_or_default();
            SkillError::Unknown { name: name.into(), near }
        })
    }
}

/// The folders of a place that hold a [`FILE`], by name.
fn folders(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.join(FILE).is_file()).collect();
    all.sort();
    all
}

impl Skill {
    /// One of its files, as the system follows it; nothing that leads out of its folder.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        let file = normal(&self.folder, path);
        (file.starts_with(&self.folder) && file != self.folder).then_some(file)
    }

    /// The text of one of its references, or in words why it goes without.
    fn reference(&self, name: &str) -> Result<String, String> {
        let file = self.file(name).filter(|file| file.exists());
        let file = file.ok_or("there is no such file in its folder")?;
        read(&file).map_err(|error| match error {
            SkillError::Read { reason, .. } => reason,
            other => other.to_string(),
        })
    }

    /// The references that it needs and goes without, and why.
    pub fn missing_refs(&self) -> Vec<(&str, String)> {
        let names = self.front.required_refs.iter().map(String::as_str);
        names.filter_map(|name| Some((name, self.reference(name).err()?))).collect()
    }

    /// Every file but the [`FILE`] itself, relative to the folder, at most `most`.
    pub fn files(&self, most: usize) -> Vec<String> {
        Self::below(&self.folder, 4).filter(|below| below != FILE).take(most).collect()
    }

    /// Every file of its folder of that name, relative to that, at most `most`.
    pub fn files_of(&self, name: &str, most: usize) -> Vec<String> {
        let folder = self.folder.join(name);
        // a link is not followed
        let is_own = folder.canonicalize().is_ok_and(|real| real == folder);
        let all = is_own.then(|| Self::below(&folder, 3)).into_iter().flatten();
        all.take(most).collect()
    }

    /// The files below a folder, folder by folder in the order of their names. What a project keeps out of its repository
    /// is there all the same.
    fn below(folder: &Path, depth: usize) -> impl Iterator<Item = String> {
        let walk = ignore::WalkBuilder::new(folder)
            .standard_filters(false)
            .hidden(true)
            .max_depth(Some(depth))
            .sort_by_file_name(|a, b| a.cmp(b))
            .build();
        let folder = folder.to_owned();
        let files = walk.flatten().filter(|e| e.file_type().is_some_and(|t| t.is_file()));
        files.filter_map(move |e| Some(e.path().strip_prefix(&folder).ok()?.to_string_lossy().replace('\\', "/")))
    }
}

/// The text of a file, if it is not too large.
fn read(path: &Path) -> Result<String, SkillError> {
    let failed = |reason: String| SkillError::Read { path: path.display().to_string(), reason };
    let meta = std::fs::metadata(path).map_err(|e| failed(e.to_string()))?;
    // whoever opens a pipe waits for the other end
    if !meta.is_file() {
        return Err(failed("it is no file".into()));
    }
    let size = meta.len();
    if size > LARGEST {
        return Err(failed(format!("it has {size} bytes, and {LARGEST} are the most")));
    }
    caro_base::files::read_text(path, LARGEST).map_err(|e| failed(e.to_string()))
}

#[cfg(test)]
mod tests;
