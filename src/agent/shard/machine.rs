//! The order of it, pure: one shard after the other, then the synthesis.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The answer of one shard, or of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The model's words.
    pub answer: String,
    /// Names of files that bear them out; each of them was shown.
    pub files: Vec<String>,
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Asks about the shard of this number.
    Shard(usize),
    /// Asks for the answer out of what was found.
    Synthesis,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With an answer.
    Answered(Finding),
    /// With the findings side by side, and why they could not be put together.
    Apart(Finding, String),
    /// Without one, and why.
    Failed(String),
}

/// Shards under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sharding {
    shards: usize,
    found: Vec<Result<Finding, String>>,
    end: Option<End>,
}

impl Sharding {
    /// At its beginning, with so many shards.
    pub fn new(shards: usize) -> Self {
        Self { shards, ..Self::default() }
    }

    /// The next step, or the end.
    pub fn next(&self) -> Result<Step, End> {
        match &self.end {
            Some(end) => Err(end.clone()),
            None if self.found.len() < self.shards => Ok(Step::Shard(self.found.len())),
            None => Ok(Step::Synthesis),
        }
    }

    /// Takes what was found in the shard that was due. One that fails costs itself; where all have failed there is nothing
    /// to be put together.
    pub fn found(&mut self, finding: Result<Finding, String>) {
        self.found.push(finding);
        let all = self.found.len() == self.shards;
        if all && self.found.iter().all(Result::is_err) {
            let why = self.found.iter().rev().find_map(|found| found.clone().err()).unwrap_or_default();
            self.end = Some(End::Failed(why));
        }
    }

    /// Takes the answer. Where there is none, what was found stands for it, part by part: no finding is lost.
    pub fn put_together(&mut self, answer: Result<Finding, String>) {
        self.end = Some(match (answer, self.side_by_side()) {
            (Ok(finding), _) => End::Answered(finding),
            (Err(why), found) if found == Finding::default() => End::Failed(why),
            (Err(why), found) => End::Apart(found, why),
        });
    }

    /// The findings that name a file, one after the other; all of them where none does.
    fn side_by_side(&self) -> Finding {
        let all = || self.found.iter().flatten();
        let any = all().any(|finding| !finding.files.is_empty());
        let told: Vec<&Finding> = all().filter(|finding| !any || !finding.files.is_empty()).collect();
        let files = each_once(told.iter().flat_map(|finding| finding.files.clone()));
        let answers: Vec<&str> = told.iter().map(|finding| finding.answer.trim()).filter(|a| !a.is_empty()).collect();
        Finding { answer: answers.join("\n"), files }
    }

    /// Ends it here.
    pub fn stop(&mut self, why: String) {
        self.end = Some(End::Failed(why));
    }

    /// The findings so far, a shard each.
    pub fn findings(&self) -> &[Result<Finding, String>] {
        &self.found
    }
}

/// The names in their order, each where it stands first.
pub(super) fn each_once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c18_each_shard_is_asked_once_and_then_comes_the_synthesis() {
        let mut sharding = Sharding::new(2);
        let finding = Finding { answer: "a".into(), files: Vec::new() };
        assert_eq!(sharding.next(), Ok(Step::Shard(0)));
        sharding.found(Err("cut off".into()));
        assert_eq!(sharding.next(), Ok(Step::Shard(1)));
        sharding.found(Ok(finding.clone()));
        assert_eq!(sharding.next(), Ok(Step::Synthesis));
        sharding.put_together(Ok(finding.clone()));
        assert_eq!(sharding.next(), Err(End::Answered(finding)));
        let mut apart = Sharding::new(3);
        let of = |answer: &str, files: &[&str]| Finding {
            answer: answer.into(),
            files: files.iter().map(|file| (*file).to_owned()).collect(),
        };
        for found in [of("one", &["a", "b"]), of("nothing", &[]), of("two", &["b", "c"])] {
            apart.found(Ok(found));
        }
        apart.put_together(Err("cut off".into()));
        assert_eq!(apart.next(), Err(End::Apart(of("one\ntwo", &["a", "b", "c"]), "cut off".into())));
        let mut nothing = Sharding::new(1);
        nothing.found(Ok(Finding::default()));
        nothing.put_together(Err("cut off".into()));
        assert_eq!(nothing.next(), Err(End::Failed("cut off".into())), "nothing was found that could stand for it");
        let mut failed = Sharding::new(1);
        failed.found(Err("no model".into()));
        assert_eq!(failed.next(), Err(End::Failed("no model".into())));
    }
}
