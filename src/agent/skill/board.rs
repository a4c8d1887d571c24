//! The built-in skills. They are written to the cache folder so that they are folders like any other. They are used
//! beside a skill that the task names, or when asked for: they never change the prompt of a task that names no skill.

use super::{Origin, Place};
use caro_base::files;
use include_dir::{Dir, include_dir};
use std::path::Path;

static BOARD: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/skill/board");

/// The folder they are written to, below the cache folder.
const FOLDER: &str = "skills-on-board";

/// Writes the built-in skills below the cache folder and returns their place; `None` if they cannot be written.
pub fn place(cache: &Path) -> Option<Place> {
    let folder = cache.join(FOLDER);
    write(&BOARD, &folder).ok()?;
    Some(Place { folder, origin: Origin::Board })
}

/// Writes every file of an embedded folder that is absent or differs.
fn write(dir: &Dir<'_>, folder: &Path) -> std::io::Result<()> {
    for file in dir.files() {
        let path = folder.join(file.path());
        let most = file.contents().len() as u64;
        if files::read(&path, most).is_ok_and(|on_disk| on_disk == file.contents()) {
            continue;
        }
        files::replace(&path, file.contents(), files::Access::Private)?;
    }
    dir.dirs().try_for_each(|dir| write(dir, folder))
}

#[cfg(test)]
mod tests {
    use super::super::{Index, Skills, check};
    use super::*;

    #[test]
    fn a37_the_built_in_skills_are_valid_and_restored_if_changed() {
        let dir = tempfile::tempdir().unwrap();
        let place = place(dir.path()).unwrap();
        let found = Skills::find(std::slice::from_ref(&place), &mut Index::default());
        let names: Vec<&str> = found.all.iter().map(|skill| skill.front.name.as_str()).collect();
        assert_eq!(names, ["filesystem", "git", "researcher", "writer"]);
        for skill in &found.all {
            assert_eq!(check::check(&skill.folder, &place), [], "{}", skill.front.name);
            assert!(skill.front.description.len() < 130, "{}", skill.front.name);
        }
        let file = place.folder.join("git/SKILL.md");
        let whole = std::fs::read(&file).unwrap();
        std::fs::write(&file, "changed").unwrap();
        super::place(dir.path()).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), whole);
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(super::place(&dir.path().join("file")).is_none(), "where nothing can be written there are none");
    }
}
