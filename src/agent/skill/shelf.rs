//! Finds the skills in their places and chooses those of a task.

use super::script::Which;
use super::{Chosen, Index, Place, SkillError, Skills, choose};
use caro_model::embed::Embedder;
use std::path::PathBuf;
use std::sync::Arc;

/// The places of skills. They are searched anew each time, since a skill may be added or changed at any moment.
#[derive(Clone)]
pub struct Shelf {
    /// The places in order of precedence: of two skills with the same name the first counts.
    pub places: Vec<Place>,
    /// The file of the [`Index`]; without one every skill is read anew.
    pub index: Option<PathBuf>,
    /// The embedder that finds skills by meaning; without one only words count.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Finds the programs that run scripts.
    pub which: Which,
}

impl Shelf {
    /// Returns all skills and their index.
    pub fn find(&self) -> (Skills, Index) {
        let mut index = Index::open(self.index.clone());
        let skills = Skills::find(&self.places, &mut index);
        index.save();
        (skills, index)
    }

    /// Chooses the skills of a task, see [`choose::choose`]; reports skills that are left out to `warn`.
    ///
    /// # Errors
    /// If a skill that was asked for does not exist.
    pub fn choose(
        &self,
        task: &str,
        asked: &[String],
        recent: &[String],
        warn: &mut dyn FnMut(&str),
    ) -> Result<Chosen, SkillError> {
        let (skills, mut index) = self.find();
        skills.wrong.iter().for_each(|wrong| warn(&format!("a skill is left out: {wrong}")));
        // without skills no vectors are computed
        let embedder = if skills.all.is_empty() { None } else { self.embedder.as_deref() };
        let chosen = choose::choose(task, asked, recent, &skills, &mut index, embedder)?;
        index.save();
        for (skill, _) in &chosen.active {
            for (missing, why) in skill.missing_refs() {
                warn(&format!("the skill `{}` goes without {missing}: {why}", skill.front.name));
            }
        }
        Ok(chosen)
    }
}
