//! Skills: folders with a `SKILL.md` that says how to do a kind of task, found when a task needs them.
//!
//! ```text
//! folders -> front matter (index) -> choose for the task: by name, by words and meaning -> read, render -> layer of the prompt
//! ```
//!
//! - [`board`]: the built-in skills. [`front`]: the front matter of a `SKILL.md` and its errors. [`index`]: the cache
//!   of front matters and vectors.
//! - [`Shelf`]: the places of skills. [`choose`]: the skills that fit a task. [`render`]: text and references, with
//!   templates filled in. [`layer`]: the layers of the prompt.
//! - [`tools`]: tools that read a skill's other files and run its scripts. [`declared`]: scripts that are tools of
//!   their own. [`check`]: errors for the skill's author to fix. [`role`]: personas.
//!
//! A skill is text and scripts. It never grants permissions: guards check calls, whatever skill they come from. A
//! project's skills are untrusted: they are placed among the data, not the instructions, are screened like any
//! document, and their scripts need approval.

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
/// Most bytes of a `SKILL.md` or reference; a larger one is not read.
pub const LARGEST: u64 = 256 << 10;
/// Most skills used of one place.
const MAX_SKILLS: usize = 500;

/// The origin of a skill, which decides how far it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The user put it into their own skills folder.
    User,
    /// It came with the project.
    Project,
    /// It is built in.
    Board,
}

/// A place of skills: each folder in it that holds a [`FILE`] is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder.
    pub folder: PathBuf,
    /// The origin of its skills.
    pub origin: Origin,
}

/// A skill whose front matter is valid. Its text is read when it is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// Its front matter.
    pub front: Front,
    /// Its folder, links resolved.
    pub folder: PathBuf,
    /// Its origin.
    pub origin: Origin,
}

/// The reason a skill cannot be used.
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
    /// Its front matter or its place is invalid.
    #[error("{path}: {reason}")]
    Front {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A place has more skills than are used.
    #[error("{path} has {count} skills, and the first {MAX_SKILLS} by name are used")]
    Many {
        /// The place.
        path: String,
        /// The number of skills in it.
        count: usize,
    },
    /// An earlier skill has the same name.
    #[error("{path}: another skill has the name `{name}` and comes first")]
    Twice {
        /// The file.
        path: String,
        /// The name.
        name: String,
    },
    /// Its text is no valid template.
    #[error("the text of the skill `{skill}` cannot be filled in: {reason}")]
    Template {
        /// The skill.
        skill: String,
        /// Why.
        reason: String,
    },
    /// Its text tries to override the model's instructions.
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
        /// A hint at a skill with a similar name, or nothing.
        near: String,
    },
}

impl SkillError {
    /// Returns the next step for the user.
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

/// The skills found in some places, and the reasons others were left out.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    /// The usable skills, by name.
    pub all: Vec<Arc<Skill>>,
    /// The reasons skills were left out.
    pub wrong: Vec<SkillError>,
}

impl Skills {
    /// Finds the skills of places in order of precedence: of two skills with the same name the first counts.
    pub fn find(places: &[Place], index: &mut Index) -> Self {
        let mut found = Self::default();
        for place in places {
            let mut folders = folders(&place.folder);
            if folders.len() > MAX_SKILLS {
                let path = place.folder.display().to_string();
                found.wrong.push(SkillError::Many { path, count: folders.len() });
                folders.truncate(MAX_SKILLS);
            }
            for folder in folders {
                match index.skill(&folder, place) {
                    // a skill of the user or the project overrides a built-in one without a warning
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

    /// Returns the skill of that name.
    ///
    /// # Errors
    /// [`SkillError::Unknown`], with a similar name if there is one.
    pub fn get(&self, name: &str) -> Result<&Arc<Skill>, SkillError> {
        self.all.iter().find(|s| s.front.name == name).ok_or_else(|| {
            let start: String = name.chars().take(3).collect();
            let near = self.all.iter().find(|s| s.front.name.contains(name) || s.front.name.starts_with(&start));
            let near = near.map(|s| format!("; there is `{}`", s.front.name)).unwrap_or_default();
            SkillError::Unknown { name: name.into(), near }
        })
    }
}

/// Returns the folders of a place that hold a [`FILE`], by name.
fn folders(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.join(FILE).is_file()).collect();
    all.sort();
    all
}

impl Skill {
    /// Resolves a path in the skill's folder, links included; `None` if it leads out of the folder.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        let file = normal(&self.folder, path);
        (file.starts_with(&self.folder) && file != self.folder).then_some(file)
    }

    /// Reads one of its references.
    ///
    /// # Errors
    /// The reason it is left out, as a sentence.
    fn reference(&self, name: &str) -> Result<String, String> {
        let file = self.file(name).filter(|file| file.exists());
        let file = file.ok_or("there is no such file in its folder")?;
        read(&file).map_err(|error| match error {
            SkillError::Read { reason, .. } => reason,
            other => other.to_string(),
        })
    }

    /// Returns the required references that cannot be read, each with the reason.
    pub fn missing_refs(&self) -> Vec<(&str, String)> {
        let names = self.front.required_refs.iter().map(String::as_str);
        names.filter_map(|name| Some((name, self.reference(name).err()?))).collect()
    }

    /// Returns at most `most` files other than the [`FILE`], relative to the folder.
    pub fn files(&self, most: usize) -> Vec<String> {
        Self::below(&self.folder, 4).filter(|below| below != FILE).take(most).collect()
    }

    /// Returns at most `most` files of its subfolder of that name, relative to the subfolder.
    pub fn files_of(&self, name: &str, most: usize) -> Vec<String> {
        let folder = self.folder.join(name);
        // a link is not followed
        let is_own = folder.canonicalize().is_ok_and(|real| real == folder);
        let all = is_own.then(|| Self::below(&folder, 3)).into_iter().flatten();
        all.take(most).collect()
    }

    /// Returns the files below a folder, sorted by name. Files that a project excludes from its repository are
    /// included.
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

/// Reads a text file of at most [`LARGEST`] bytes.
fn read(path: &Path) -> Result<String, SkillError> {
    let failed = |reason: String| SkillError::Read { path: path.display().to_string(), reason };
    let meta = std::fs::metadata(path).map_err(|e| failed(e.to_string()))?;
    // opening a pipe would wait for the other end
    if !meta.is_file() {
        return Err(failed("it is not a file".into()));
    }
    let size = meta.len();
    if size > LARGEST {
        return Err(failed(format!("it has {size} bytes, and {LARGEST} are the most")));
    }
    caro_base::files::read_text(path, LARGEST).map_err(|e| failed(e.to_string()))
}

#[cfg(test)]
mod tests;
