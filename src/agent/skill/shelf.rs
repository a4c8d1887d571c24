//! Where skills are found, and which of them a task needs.

use super::script::Which;
use super::{Chosen, Index, Place, SkillError, Skills, choose};
use caro_model::embed::Embedder;
use std::path::PathBuf;
use std::sync::Arc;

/// The skills of some places. They are looked for anew each time: a skill may come or change at any moment.
#[derive(Clone)]
pub struct Shelf {
    /// The places, the first one first: of two skills with one name it has the say.
    pub places: Vec<Place>,
    /// The file of the index; without one every skill is read anew.
    pub index: Option<PathBuf>,
    /// What finds skills by their meaning, not by words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Finds the programs that run scripts.
    pub which: Which,
}

impl Shelf {
    /// The skills there are, and their index.
    pub fn find(&self) -> (Skills, Index) {
        let mut index = Index::open(self.index.clone());
        let skills = Skills::find(&self.places, &mut index);
        index.save();
        (skills, index)
    }

    /// The skills of a task, see [`choose::choose`]; `warn` is told what is wrong with others. Vectors are only made where
    /// there is something to compare.
    ///
    /// # Errors
    /// If one that was asked for is not there.
    pub fn choose(
        &self,
        task: &str,
        asked: &[String],
        recent: &[String],
        warn: &mut dyn FnMut(&str),
    ) -> Result<Chosen, SkillError> {
        let (skills, mut index) = self.find();
        skills.wrong.iter().for_each(|wrong| warn(&format!("a skill is left out: {wrong}")));
        let embedder = self.embedder.as_deref().filter(|_| !skills.all.is_empty());
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
