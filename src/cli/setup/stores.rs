//! The person's own stores, as verbs open them: documents, notes, skills.

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

/// The library, in the data folder.
pub const DOCUMENTS: &str = "knowledge.db";

/// The file of notes, in the data folder.
pub const NOTES: &str = "memory.db";

/// Where a project keeps its skills.
pub const PROJECT_SKILLS: &str = ".agents/skills";

/// The library of this person; nothing where there is no place for it. Opens nothing.
pub fn librarian(cx: &Cx) -> Option<Librarian> {
    let data = cx.dirs.data.as_ref()?;
    Some(Librarian::new(data.join(DOCUMENTS), embedder(cx)))
}

/// The same, searched by words alone; nothing where nothing was ever read in.
pub fn by_words(cx: &Cx) -> Option<Librarian> {
    let data = cx.dirs.data.as_ref()?;
    Some(Librarian::new(data.join(DOCUMENTS), None)).filter(Librarian::exists)
}

/// The maker of vectors, if its model is on this machine. Loads nothing.
pub fn embedder(cx: &Cx) -> Option<Arc<dyn Embedder>> {
    embedder_of(&download::settings(cx).ok()?)
}

/// The same by where models are.
pub fn embedder_of(folders: &fetch::Settings) -> Option<Arc<dyn Embedder>> {
    let card = fetch::find(EMBEDDING_MODEL, folders).ok()??;
    let folder = fetch::locate(&card, folders)?;
    Some(Arc::new(SentenceEncoder::new(&folder, &card.id)))
}

/// The failure of a person without a home.
pub fn no_home() -> Failure {
    Failure::usage("this user has no home folder to keep it in").hint("set HOME to a folder that can be written")
}

/// The notes of this person. Opens nothing; a place that is not named is this process, and the person is told.
///
/// # Errors
/// If this program was built without the backend, or its URL is none.
pub fn notes(cx: &Cx, settings: &Settings) -> Result<Memory, Failure> {
    let file = cx.dirs.data.as_ref().map(|data| data.join(NOTES));
    let (backend, warning) = Place { kind: settings.memory, file, url: settings.memory_url.clone() }.open()?;
    // who has no home is told so by whoever needs one
    if settings.memory != Kind::Sqlite
        && let Some(warning) = warning
    {
        cx.ui.warn(warning);
    }
    Ok(Memory::new(backend, embedder(cx)))
}

/// The folders of skills, the person's own first and those on board last.
pub fn skill_places(root: &Path, cx: &Cx) -> Vec<skill::Place> {
    let own = own_skills(cx).map(|folder| skill::Place { folder, origin: Origin::User });
    let projects = project::folders(root).into_iter().map(|folder| folder.join(PROJECT_SKILLS));
    let board = cx.dirs.cache.as_deref().and_then(skill::board::place);
    // one that is not there may come
    let projects = projects.map(|folder| skill::Place { folder, origin: Origin::Project });
    own.into_iter().chain(projects).chain(board).collect()
}

/// The person's own folder, beside the configuration file.
pub fn own_skills(cx: &Cx) -> Option<PathBuf> {
    cx.dirs.config_file.as_ref().map(|file| file.with_file_name("skills"))
}

/// Where skills are found, for who looks at them.
pub fn skills(root: &Path, cx: &Cx) -> Shelf {
    let index = cx.dirs.cache.as_ref().map(|cache| cache.join("skill-index.json"));
    Shelf { places: skill_places(root, cx), index, embedder: None, which: Arc::new(|name| exec::find(name)) }
}

/// The same for who searches them, by their meaning too.
pub fn searched_skills(root: &Path, cx: &Cx) -> Shelf {
    Shelf { embedder: embedder(cx), ..skills(root, cx) }
}

impl From<LibraryError> for Failure {
    fn from(error: LibraryError) -> Self {
        let hint = error.hint();
        match error {
            LibraryError::Cancelled => Self::new(Exit::Interrupted, error).hint(hint),
            LibraryError::Empty(_) | LibraryError::Nothing | LibraryError::Missing(_) => Self::no(error).hint(hint),
            LibraryError::Blank(_)
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
