//! The plan of the paths that a command will touch, and how; pure. [`super::foresee`] derives it.

use super::node::name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A way of touching a path, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Only its mode, owner or attributes are changed.
    Surface,
    /// It is created where nothing exists.
    Make,
    /// It is renamed.
    Move,
    /// It is deleted.
    Delete,
    /// It is written to, perhaps in place.
    Write,
}

/// A path that a command will touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The absolute path, without links in its folders.
    #[serde(with = "name")]
    pub path: PathBuf,
    /// The kind of touch.
    pub touch: Touch,
    /// True if this applies to everything below it.
    pub deep: bool,
}

impl Target {
    /// Creates a target; deleting, moving and creating applies to everything below it.
    pub fn new(path: impl Into<PathBuf>, touch: Touch) -> Self {
        Self { path: path.into(), touch, deep: matches!(touch, Touch::Make | Touch::Move | Touch::Delete) }
    }

    /// Merges another target of the same path.
    fn join(&mut self, other: &Self) {
        self.touch = self.touch.max(other.touch);
        self.deep |= other.deep;
    }

    /// True if its content may be affected, and not only its metadata.
    pub fn whole(&self) -> bool {
        self.touch != Touch::Surface
    }
}

/// The extent to which undo covers a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cover {
    /// All of it: its changes follow from its text.
    #[default]
    Whole,
    /// The changes of its rehearsal; its text does not tell more.
    Rehearsed,
    /// Only a part.
    Partly,
}

/// The targets that are saved before a command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The targets, none below another that is deep.
    pub targets: Vec<Target>,
    /// The extent of the coverage.
    pub cover: Cover,
    /// The effects that undo does not cover, as sentences for the user.
    pub gaps: Vec<String>,
}

impl Plan {
    /// Creates the plan of these targets: each path once, with the strongest touch, sorted by path.
    pub fn new(targets: Vec<Target>, cover: Cover, gaps: Vec<String>) -> Self {
        let mut plan = Self { targets: merge(targets), cover, gaps };
        plan.gaps.dedup();
        plan
    }

    /// True if no existing file is written to, so that a hard link preserves a file's content.
    pub fn only_renames(&self) -> bool {
        self.cover == Cover::Whole && !self.targets.iter().any(|target| target.touch == Touch::Write)
    }

    /// True if it touches nothing.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Returns the target that a path belongs to.
    pub fn target_of(&self, path: &Path) -> Option<&Target> {
        self.targets.iter().find(|t| t.path == path || t.deep && path.starts_with(&t.path))
    }
}

/// Merges targets of the same path, and targets below deep ones into these.
fn merge(targets: Vec<Target>) -> Vec<Target> {
    let mut by_path: BTreeMap<PathBuf, Target> = BTreeMap::new();
    for target in targets {
        match by_path.get_mut(&target.path) {
            Some(known) => known.join(&target),
            None => {
                by_path.insert(target.path.clone(), target);
            }
        }
    }
    let deep: BTreeSet<PathBuf> = by_path.values().filter(|t| t.deep).map(|t| t.path.clone()).collect();
    let mut merged: BTreeMap<PathBuf, Target> = BTreeMap::new();
    // sorted, so that a folder comes before the paths below it
    for (path, target) in by_path {
        let holder = path.ancestors().skip(1).filter(|above| deep.contains(*above)).last();
        match holder.and_then(|holder| merged.get_mut(holder)) {
            Some(holder) => holder.touch = holder.touch.max(target.touch),
            None => {
                merged.insert(path, target);
            }
        }
    }
    merged.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(path: &str, touch: Touch) -> Target {
        Target::new(path, touch)
    }

    #[test]
    fn a_target_below_a_deleted_folder_is_merged_into_it() {
        let plan = Plan::new(
            vec![target("/w/a/b", Touch::Delete), target("/w/a", Touch::Delete), target("/w/ab", Touch::Make)],
            Cover::Whole,
            Vec::new(),
        );
        let paths: Vec<&Path> = plan.targets.iter().map(|t| t.path.as_path()).collect();
        assert_eq!(paths, [Path::new("/w/a"), Path::new("/w/ab")]);
        assert!(plan.only_renames());
    }

    #[test]
    fn one_written_file_forbids_links() {
        for touch in [Touch::Write, Touch::Surface] {
            let plan = Plan::new(vec![target("/w/a", Touch::Delete), target("/w/b", touch)], Cover::Whole, Vec::new());
            assert_eq!(plan.only_renames(), touch == Touch::Surface);
        }
        let plan = Plan::new(vec![target("/w/a", Touch::Delete)], Cover::Rehearsed, Vec::new());
        assert!(!plan.only_renames(), "a program that is not known may write");
        // also for a written file below a deleted folder
        let both = vec![target("/w/a", Touch::Delete), target("/w/a/b", Touch::Write)];
        assert!(!Plan::new(both, Cover::Whole, Vec::new()).only_renames());
    }

    fn any_target() -> impl Strategy<Value = Target> {
        let touch = prop_oneof![
            Just(Touch::Surface),
            Just(Touch::Make),
            Just(Touch::Move),
            Just(Touch::Delete),
            Just(Touch::Write)
        ];
        ("(/[ab]){1,4}", touch, any::<bool>()).prop_map(|(path, touch, deep)| Target { path: path.into(), touch, deep })
    }

    proptest! {
        #[test]
        fn every_target_stays_covered_exactly_once(targets in prop::collection::vec(any_target(), 0..12)) {
            let plan = Plan::new(targets.clone(), Cover::Whole, Vec::new());
            for target in &targets {
                let Some(holder) = plan.target_of(&target.path) else {
                    panic!("{target:?} is lost in {plan:?}");
                };
                prop_assert!(holder.touch >= target.touch, "{target:?} {holder:?}");
                prop_assert!(holder.deep || !target.deep, "{target:?} {holder:?}");
            }
            for (at, one) in plan.targets.iter().enumerate() {
                for other in &plan.targets[at + 1..] {
                    prop_assert!(one.path != other.path);
                    prop_assert!(!(one.deep && other.path.starts_with(&one.path)), "{one:?} {other:?}");
                }
            }
        }
    }
}
