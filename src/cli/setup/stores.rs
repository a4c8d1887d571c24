//! Opens the user's own stores: documents, notes and skills.

use super::{download, project};
use crate::{Cx, Exit, Failure, Settings};
use caro_agent::memory::{Kind, Memory, Place};
use caro_agent::skill::{self, Origin, Shelf, SkillError};
use caro_database::DatabaseError;
use caro_documents::{Librarian, LibraryError};
use caro_exec as exec;
use caro_model::embed::{EMBEDDING_MODEL, Embedder};
use caro_model::engine::SentenceEncoder;
use caro_model::fetch;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of the document library, in the data folder.
pub const DOCUMENTS: &str = "knowledge.db";

/// The file of notes, in the data folder.
pub const NOTES: &str = "memory.db";

/// The folder of a project's skills.
pub const PROJECT_SKILLS: &str = ".agents/skills";

/// The document library of this user; `None` if there is no folder for it. Opens nothing.
pub fn librarian(cx: &Cx) -> Option<Librarian> {
    let data = cx.dirs.data.as_ref()?;
    Some(Librarian::new(data.join(DOCUMENTS), embedder(cx)))
}

/// The document library, searched by words alone; `None` if it does not exist.
pub fn librarian_by_words(cx: &Cx) -> Option<Librarian> {
    let data = cx.dirs.data.as_ref()?;
    Some(Librarian::new(data.join(DOCUMENTS), None)).filter(Librarian::exists)
}

/// The embedder, if its model is on this machine. Loads nothing.
pub fn embedder(cx: &Cx) -> Option<Arc<dyn Embedder>> {
    embedder_of(&download::settings(cx).ok()?)
}

/// The embedder, if its model is in these folders. Loads nothing.
pub fn embedder_of(folders: &fetch::Settings) -> Option<Arc<dyn Embedder>> {
    let card = fetch::find(EMBEDDING_MODEL, folders).ok()??;
    let folder = fetch::locate(&card, folders)?;
    Some(Arc::new(SentenceEncoder::new(&folder, &card.id)))
}

/// The failure of a user without a home folder.
pub fn no_home() -> Failure {
    Failure::usage("this user has no home folder to keep it in").hint("set HOME to a folder that can be written")
}

/// The notes of this user. Opens nothing. Without a place to store them they are in this process, with a warning.
///
/// # Errors
/// If this program was built without the backend, or its URL is not valid.
pub fn notes(cx: &Cx, settings: &Settings) -> Result<Memory, Failure> {
    let file = cx.dirs.data.as_ref().map(|data| data.join(NOTES));
    let (backend, warning) = Place { kind: settings.memory, file, url: settings.memory_url.clone() }.open()?;
    // a missing home folder is reported by the verbs that need one
    if settings.memory != Kind::Sqlite
        && let Some(warning) = warning
    {
        cx.ui.warn(warning);
    }
    Ok(Memory::new(backend, embedder(cx)))
}

/// Returns the folders of skills: the user's own, those of the project, those built into the program.
pub fn skill_places(root: &Path, cx: &Cx) -> Vec<skill::Place> {
    let own = own_skills(cx).map(|folder| skill::Place { folder, origin: Origin::User });
    let projects = project::folders(root).into_iter().map(|folder| folder.join(PROJECT_SKILLS));
    let board = cx.dirs.cache.as_deref().and_then(skill::board::place);
    // missing folders too: they may be created later
    let projects = projects.map(|folder| skill::Place { folder, origin: Origin::Project });
    own.into_iter().chain(projects).chain(board).collect()
}

/// The user's own folder of skills, next to the configuration file.
pub fn own_skills(cx: &Cx) -> Option<PathBuf> {
    cx.dirs.config_file.as_ref().map(|file| file.with_file_name("skills"))
}

/// Returns the shelf of skills, for listing.
pub fn skills(root: &Path, cx: &Cx) -> Shelf {
    let index = cx.dirs.cache.as_ref().map(|cache| cache.join("skill-index.json"));
    Shelf { places: skill_places(root, cx), index, embedder: None, which: Arc::new(|name| exec::find(name)) }
}

/// Returns the shelf of skills, for searching by words and by meaning.
pub fn searched_skills(root: &Path, cx: &Cx) -> Shelf {
    Shelf { embedder: embedder(cx), ..skills(root, cx) }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Self {
        let hint = error.hint();
        match error {
            LibraryError::Cancelled => Self::new(Exit::Interrupted, error).hint(hint),
            LibraryError::Empty(_) | LibraryError::Nothing => Self::no(error).hint(hint),
            LibraryError::Blank(_)
            | LibraryError::Missing(_)
            | LibraryError::Input { .. }
            | LibraryError::Ambiguous { .. }
            | LibraryError::File(DatabaseError::Busy(_))
            | LibraryError::NotBuilt { .. }
            | LibraryError::Remote { .. } => Self::usage(error).hint(hint),
            LibraryError::File(_) => Self::internal(error).hint(hint),
        }
    }
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        let hint = error.hint();
        match error {
            SkillError::Unknown { .. } => Self::usage(error).hint(hint),
            _ => Self::no(error).hint(hint),
        }
    }
}
