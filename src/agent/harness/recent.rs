//! Keeps the skills of a session active for some runs: a task such as `the same with the other file` names none.

use crate::skill::{Chosen, Reason};
use std::collections::BTreeMap;

/// The number of runs of a session for which a skill stays active after a task has called for it.
const RUNS: u8 = 3;

/// The recent skills by session, with the number of runs for which they still stay active.
#[derive(Debug, Default)]
pub(super) struct Recent(BTreeMap<String, BTreeMap<String, u8>>);

impl Recent {
    /// Returns the names of the recent skills of a session.
    pub(super) fn names(&self, session: &str) -> Vec<String> {
        self.0.get(session).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Records one more run of a session, and its skills.
    pub(super) fn count(&mut self, session: &str, chosen: &Chosen) {
        let mut skills = self.0.remove(session).unwrap_or_default();
        skills.retain(|_, runs| {
            *runs -= 1;
            *runs > 0
        });
        for (skill, _) in chosen.active.iter().filter(|(_, why)| *why != Reason::Recent) {
            skills.insert(skill.front.name.clone(), RUNS);
        }
        // a session without recent skills needs no entry
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
        assert_eq!(recent.names("s"), ["git"], "it stays for two more runs");
        recent.count("s", &chosen(Reason::Recent));
        assert!(recent.names("s").is_empty() && recent.0.is_empty(), "being used as a recent one renews nothing");
    }
}
