//! Where a skill is while it is made: a folder beside the skills, in which none is looked for. It moves onto the shelf in
//! one step, or stays where it is with a report.

use super::examples::{Case, Way, hold_back};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The folder below the place of skills. No skill may be called so.
const FOLDER: &str = ".quarantine";
/// The report in the folder of a skill that stays here.
pub const REPORT: &str = "REPORT.md";
/// Where its tests are.
const TESTS: &str = "tests";
/// The other script that passes, where two do and differ: what the person says next may show that it is the right one.
pub const OTHER: &str = "OTHER";
/// Where its scripts are.
pub const SCRIPTS: &str = "scripts";

/// A skill in the making.
#[derive(Debug)]
pub struct Quarantine {
    place: PathBuf,
    name: String,
    folder: PathBuf,
    other: Option<String>,
}

impl Quarantine {
    /// A fresh folder for the skill of that name, in the place of what was left of an earlier one.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(place: &Path, name: &str) -> io::Result<Self> {
        let folder = place.join(FOLDER).join(name);
        let other = caro_base::files::read_text(&folder.join(OTHER), super::super::skill::LARGEST).ok();
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir_all(folder.join(SCRIPTS))?;
        std::fs::create_dir_all(folder.join(TESTS))?;
        Ok(Self { place: place.to_owned(), name: name.to_owned(), folder, other })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The other script of an earlier forging, see [`OTHER`].
    pub fn other(&self) -> Option<&str> {
        self.other.as_deref()
    }

    /// A file of it, in the place of one that was there.
    ///
    /// # Errors
    /// If it cannot be written, or its name leads out of the folder: nothing is written anywhere else.
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

    /// Its tests: `1.text` or `1.file` goes in, `1.expected` comes out.
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

    /// Copies what another version of the skill has.
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
    /// [`ErrorKind::AlreadyExists`] where there is one of its name, or the system's.
    pub fn promote(&self) -> io::Result<PathBuf> {
        let to = self.place.join(&self.name);
        if to.exists() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(&self.folder, &to)?;
        Ok(to)
    }

    /// Puts the skill into the place of its old version at `old`, which stays in the quarantine.
    ///
    /// # Errors
    /// The system's; the old version is where it was then.
    pub fn replace(&self, old: &Path) -> io::Result<PathBuf> {
        let kept = self.place.join(FOLDER).join(format!("{}.previous", self.name));
        match std::fs::remove_dir_all(&kept) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::rename(old, &kept)?;
        if let Err(error) = std::fs::rename(&self.folder, old) {
            std::fs::rename(&kept, old)?;
            return Err(error);
        }
        Ok(old.to_owned())
    }
}

/// The tests that a skill has, as [`Quarantine::write_tests`] left them.
pub fn tests(skill: &Path) -> Vec<Case> {
    let folder = skill.join(TESTS);
    let read = |name: String| caro_base::files::read_text(&folder.join(name), super::super::skill::LARGEST).ok();
    let mut cases = Vec::new();
    for at in 1..=super::examples::MOST {
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

    /// A34: the forge writes inside the quarantine alone, until a skill is promoted.
    #[test]
    fn a34_nothing_is_written_outside_of_the_quarantine() {
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
        // a second one of the name is not put over the first
        let second = Quarantine::open(place.path(), "x").unwrap();
        assert_eq!(second.promote().unwrap_err().kind(), ErrorKind::AlreadyExists);
        second.write("SKILL.md", "new").unwrap();
        second.replace(&promoted).unwrap();
        let text = |path: &str| std::fs::read_to_string(place.path().join(path)).unwrap();
        assert_eq!((text("x/SKILL.md").as_str(), text(".quarantine/x.previous/SKILL.md").as_str()), ("new", "---"));
    }
}
