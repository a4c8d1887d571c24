//! Skills that stay for a while: `the same with the other file` names none.

use crate::skill::{Chosen, Reason};
use std::collections::BTreeMap;

/// For how many runs of a session a skill stays once a task has called for it.
const RUNS: u8 = 3;

/// The skills of the runs before by session, and for how many runs more they stay.
#[derive(Debug, Default)]
pub(super) struct Recent(BTreeMap<String, BTreeMap<String, u8>>);

impl Recent {
    /// Their names.
    pub(super) fn names(&self, session: &str) -> Vec<String> {
        self.0.get(session).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Counts one run more, which has these.
    pub(super) fn count(&mut self, session: &str, chosen: &Chosen) {
        let mut skills = self.0.remove(session).unwrap_or_default();
        skills.retain(|_, runs| {
            *runs -= 1;
            *runs > 0
        });
        for (skill, _) in chosen.active.iter().filter(|(_, why)| *why != Reason::Recent) {
            skills.insert(skill.front.name.clone(), RUNS);
        }
        // a session that has none any more takes no room
        if !skills.is_empty() {
            self.0.insert(session.to_owned(), skills);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::{Front, Origin, Skill};
    use std::sync::Arc;

    #[test]
    fn a_skill_stays_for_three_runs_of_its_session() {
        let front = Front {
            name: "git".into(),
            description: "keeps versions".into(),
            allowed_tools: Vec::new(),
            required_refs: Vec::new(),
            all: serde_json::Map::new(),
        };
        let skill = Arc::new(Skill { front, folder: "/".into(), origin: Origin::User });
        let chosen = |why| Chosen { active: vec![(skill.clone(), why)], listed: Vec::new() };
        let mut recent = Recent::default();
        recent.count("s", &chosen(Reason::Name));
        recent.count("other", &Chosen::default());
        for _ in 0..2 {
            assert_eq!((recent.names("s"), recent.names("other")), (vec!["git".to_owned()], Vec::new()));
            recent.count("s", &chosen(Reason::Recent));
        }
        assert_eq!(recent.names("s"), ["git"], "it was there for two more");
        recent.count("s", &chosen(Reason::Recent));
        assert!(recent.names("s").is_empty() && recent.0.is_empty(), "being used as a recent one renews nothing");
    }
}
