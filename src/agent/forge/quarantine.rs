//! The folder of a skill while it is made, beside the skills but not searched for skills. A finished skill is moved
//! onto the shelf in one step; a failed one stays here with a report.

use super::examples::{Case, Way, hold_back};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The name of the quarantine below the folder of skills. It is not a valid name of a skill.
const FOLDER: &str = ".quarantine";
/// The file with the report on a skill that stays in quarantine.
pub const REPORT: &str = "REPORT.md";
/// The folder of its tests.
const TESTS: &str = "tests";
/// The file with the other script, if two scripts pass and differ: the user's next examples may show that it is the
/// right one.
pub const OTHER_SCRIPT: &str = "OTHER";
/// The folder of its scripts.
pub const SCRIPTS: &str = "scripts";

/// The quarantine of one skill.
#[derive(Debug)]
pub struct Quarantine {
    place: PathBuf,
    name: String,
    folder: PathBuf,
    other: Option<String>,
}

impl Quarantine {
    /// Creates the folder for a skill, and deletes what was left of an earlier attempt except [`OTHER_SCRIPT`], which
    /// is read.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn open(place: &Path, name: &str) -> io::Result<Self> {
        let folder = place.join(FOLDER).join(name);
        let other = caro_base::files::read_text(&folder.join(OTHER_SCRIPT), super::super::skill::LARGEST).ok();
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir_all(folder.join(SCRIPTS))?;
        std::fs::create_dir_all(folder.join(TESTS))?;
        Ok(Self { place: place.to_owned(), name: name.to_owned(), folder, other })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the other script of an earlier forging, see [`OTHER_SCRIPT`].
    pub fn other(&self) -> Option<&str> {
        self.other.as_deref()
    }

    /// Writes a file in the folder, and replaces an existing one.
    ///
    /// # Errors
    /// If it cannot be written, or its name leads out of the folder.
    pub fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let parts = Path::new(name).components();
        if parts.into_iter().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            return Err(io::Error::new(ErrorKind::PermissionDenied, format!("`{name}` leads out of the quarantine")));
        }
        let file = self.folder.join(name);
        if let Some(above) = file.parent() {
            std::fs::create_dir_all(above)?;
        }
        std::fs::write(&file, text)?;
        Ok(file)
    }

    /// Writes the tests: `1.text` or `1.file` is the first input, `1.expected` its output.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_tests(&self, cases: &[Case]) -> io::Result<()> {
        for (at, case) in cases.iter().enumerate() {
            let way = if case.way == Way::Text { "text" } else { "file" };
            self.write(&format!("{TESTS}/{}.{way}", at + 1), &case.input)?;
            self.write(&format!("{TESTS}/{}.expected", at + 1), &case.expected)?;
        }
        Ok(())
    }

    /// Copies files of the old version of the skill.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn copy(&self, from: &Path, files: &[String]) -> io::Result<()> {
        for name in files {
            let to = self.folder.join(name);
            if let Some(above) = to.parent() {
                std::fs::create_dir_all(above)?;
            }
            std::fs::copy(from.join(name), to)?;
        }
        Ok(())
    }

    /// Moves the skill onto the shelf, where the next run finds it.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if there is a skill of that name, or the error of the system.
    pub fn promote(&self) -> io::Result<PathBuf> {
        let to = self.place.join(&self.name);
        if to.exists() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(&self.folder, &to)?;
        Ok(to)
    }

    /// Moves the skill into the place of its old version at `old`, which is moved into the quarantine.
    ///
    /// # Errors
    /// The error of the system; the old version is then still in its place.
    pub fn replace(&self, old: &Path) -> io::Result<PathBuf> {
        let previous = self.place.join(FOLDER).join(format!("{}.previous", self.name));
        match std::fs::remove_dir_all(&previous) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(old, &previous)?;
        if let Err(error) = std::fs::rename(&self.folder, old) {
            std::fs::rename(&previous, old)?;
            return Err(error);
        }
        Ok(old.to_owned())
    }
}

/// Reads the tests of a skill as [`Quarantine::write_tests`] wrote them.
pub fn tests(skill: &Path) -> Vec<Case> {
    let folder = skill.join(TESTS);
    let read = |name: String| caro_base::files::read_text(&folder.join(name), super::super::skill::LARGEST).ok();
    let mut cases = Vec::new();
    for at in 1..=super::examples::MAX_EXAMPLES {
        let Some(expected) = read(format!("{at}.expected")) else { continue };
        let input = read(format!("{at}.text")).map(|text| (text, Way::Text));
        let Some((input, way)) = input.or_else(|| Some((read(format!("{at}.file"))?, Way::File))) else { continue };
        cases.push(Case::new(input, expected, way));
    }
    hold_back(&mut cases);
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A34: the forge writes only inside the quarantine until a skill is promoted.
    #[test]
    fn a34_nothing_is_written_outside_the_quarantine() {
        let place = tempfile::tempdir().unwrap();
        let quarantine = Quarantine::open(place.path(), "x").unwrap();
        for outside in ["../y/SKILL.md", "/etc/x", "scripts/../../y", ".."] {
            let denied = quarantine.write(outside, "evil").unwrap_err();
            assert_eq!(denied.kind(), ErrorKind::PermissionDenied, "{outside}");
        }
        quarantine.write("SKILL.md", "---").unwrap();
        let cases = vec![Case::new("a\n", "b", Way::Text), Case::new("c", "d", Way::File)];
        quarantine.write_tests(&cases).unwrap();
        let there: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(there, [FOLDER], "it is on no shelf yet");
        let promoted = quarantine.promote().unwrap();
        assert_eq!((promoted.clone(), tests(&promoted)), (place.path().join("x"), cases));
        // a second skill of the same name does not replace the first
        let second = Quarantine::open(place.path(), "x").unwrap();
        assert_eq!(second.promote().unwrap_err().kind(), ErrorKind::AlreadyExists);
        second.write("SKILL.md", "new").unwrap();
        second.replace(&promoted).unwrap();
        let text = |path: &str| std::fs::read_to_string(place.path().join(path)).unwrap();
        assert_eq!((text("x/SKILL.md").as_str(), text(".quarantine/x.previous/SKILL.md").as_str()), ("new", "---"));
    }
}
