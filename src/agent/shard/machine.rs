//! The order of the steps as a pure state machine: one shard after the other, then the synthesis.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The answer of one shard, or of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The model's answer.
    pub answer: String,
    /// The names of files that support it; each of them was shown.
    pub files: Vec<String>,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Ask about the shard with this index.
    Shard(usize),
    /// Ask for the answer from the findings.
    Synthesis,
}

/// The end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// There is an answer.
    Answered(Finding),
    /// The synthesis failed: the joined findings, and the reason.
    Apart(Finding, String),
    /// There is no answer, for this reason.
    Failed(String),
}

/// The state of reading in shards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sharding {
    shards: usize,
    found: Vec<Result<Finding, String>>,
    end: Option<End>,
}

impl Sharding {
    /// Starts with this number of shards.
    pub fn new(shards: usize) -> Self {
        Self { shards, ..Self::default() }
    }

    /// Returns the next step.
    ///
    /// # Errors
    /// The end, if there is no further step.
    pub fn next(&self) -> Result<Step, End> {
        match &self.end {
            Some(end) => Err(end.clone()),
            None if self.found.len() < self.shards => Ok(Step::Shard(self.found.len())),
            None => Ok(Step::Synthesis),
        }
    }

    /// Adds the finding of the next shard. If all shards have failed, this is the end.
    pub fn add_finding(&mut self, finding: Result<Finding, String>) {
        self.found.push(finding);
        let all = self.found.len() == self.shards;
        if all && self.found.iter().all(Result::is_err) {
            let why = self.found.iter().rev().find_map(|found| found.clone().err()).unwrap_or_default();
            self.end = Some(End::Failed(why));
        }
    }

    /// Sets the answer. If the synthesis failed, the joined findings take its place.
    pub fn set_answer(&mut self, answer: Result<Finding, String>) {
        self.end = Some(match (answer, self.joined_findings()) {
            (Ok(finding), _) => End::Answered(finding),
            (Err(why), found) if found == Finding::default() => End::Failed(why),
            (Err(why), found) => End::Apart(found, why),
        });
    }

    /// Joins the findings that name a file, or all findings if none does.
    fn joined_findings(&self) -> Finding {
        let all = || self.found.iter().flatten();
        let any = all().any(|finding| !finding.files.is_empty());
        let relevant: Vec<&Finding> = all().filter(|finding| !any || !finding.files.is_empty()).collect();
        let files = unique(relevant.iter().flat_map(|finding| finding.files.clone()));
        let answers = relevant.iter().map(|finding| finding.answer.trim()).filter(|answer| !answer.is_empty());
        let answers: Vec<&str> = answers.collect();
        Finding { answer: answers.join("\n"), files }
    }

    /// Ends with a failure.
    pub fn stop(&mut self, why: String) {
        self.end = Some(End::Failed(why));
    }

    /// Returns the findings so far, one per shard.
    pub fn findings(&self) -> &[Result<Finding, String>] {
        &self.found
    }
}

/// Removes repeated names; keeps the order.
pub(super) fn unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c18_each_shard_is_asked_once_before_the_synthesis() {
        let mut sharding = Sharding::new(2);
        let finding = Finding { answer: "a".into(), files: Vec::new() };
        assert_eq!(sharding.next(), Ok(Step::Shard(0)));
        sharding.add_finding(Err("cut off".into()));
        assert_eq!(sharding.next(), Ok(Step::Shard(1)));
        sharding.add_finding(Ok(finding.clone()));
        assert_eq!(sharding.next(), Ok(Step::Synthesis));
        sharding.set_answer(Ok(finding.clone()));
        assert_eq!(sharding.next(), Err(End::Answered(finding)));
        let mut apart = Sharding::new(3);
        let of = |answer: &str, files: &[&str]| Finding {
            answer: answer.into(),
            files: files.iter().map(|file| (*file).to_owned()).collect(),
        };
        for found in [of("one", &["a", "b"]), of("nothing", &[]), of("two", &["b", "c"])] {
            apart.add_finding(Ok(found));
        }
        apart.set_answer(Err("cut off".into()));
        assert_eq!(apart.next(), Err(End::Apart(of("one\ntwo", &["a", "b", "c"]), "cut off".into())));
        let mut nothing = Sharding::new(1);
        nothing.add_finding(Ok(Finding::default()));
        nothing.set_answer(Err("cut off".into()));
        assert_eq!(nothing.next(), Err(End::Failed("cut off".into())), "nothing was found that could stand for it");
        let mut failed = Sharding::new(1);
        failed.add_finding(Err("no model".into()));
        assert_eq!(failed.next(), Err(End::Failed("no model".into())));
    }
}
