//! Which paths a command will touch, and how: pure. Where that is read from is [`super::foresee`]'s matter.

use super::node::name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An act on a path, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Its mode, owner or attributes are changed.
    Surface,
    /// It is made where nothing is.
    Make,
    /// It goes to another name.
    Move,
    /// It is deleted.
    Delete,
    /// It is written to, perhaps into the very file that is there.
    Write,
}

/// A path that a command will touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The absolute path, without links in its folders.
    #[serde(with = "name")]
    pub path: PathBuf,
    /// The act.
    pub touch: Touch,
    /// True if that goes for all below it.
    pub deep: bool,
}

impl Target {
    /// A path that is touched so; what is deleted, moved or made goes with all that is in it.
    pub fn new(path: impl Into<PathBuf>, touch: Touch) -> Self {
        Self { path: path.into(), touch, deep: matches!(touch, Touch::Make | Touch::Move | Touch::Delete) }
    }

    /// Takes in what else is done to the same path.
    fn join(&mut self, other: &Self) {
        self.touch = self.touch.max(other.touch);
        self.deep |= other.deep;
    }

    /// True if its content may come to harm, and not its surface only.
    pub fn whole(&self) -> bool {
        self.touch != Touch::Surface
    }
}

/// How much of a command undo covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cover {
    /// All of it: what it changes follows from its text.
    #[default]
    Whole,
    /// The changes of its rehearsal; more cannot be told from its text.
    Rehearsed,
    /// Not all of it.
    Partly,
}

/// The targets that are kept before a command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The paths, none below another that is deep.
    pub targets: Vec<Target>,
    /// How much that is.
    pub cover: Cover,
    /// Effects that undo does not cover, in words for a person.
    pub gaps: Vec<String>,
}

impl Plan {
    /// The plan of these targets: each path once with the strongest of what is done to it, in order of their names.
    pub fn new(targets: Vec<Target>, cover: Cover, gaps: Vec<String>) -> Self {
        let mut plan = Self { targets: merged(targets), cover, gaps };
        plan.gaps.dedup();
        plan
    }

    /// True if nothing is written into a file that is there: then another name of a file keeps its content.
    pub fn only_renames(&self) -> bool {
        self.cover == Cover::Whole && !self.targets.iter().any(|target| target.touch == Touch::Write)
    }

    /// True if it touches nothing.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The target that a path belongs to.
    pub fn target_of(&self, path: &Path) -> Option<&Target> {
        self.targets.iter().find(|t| t.path == path || t.deep && path.starts_with(&t.path))
    }
}

fn merged(targets: Vec<Target>) -> Vec<Target> {
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
    // a folder comes before what is below it
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
    fn what_lies_below_a_deleted_folder_is_kept_with_it() {
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
    fn one_file_that_is_written_forbids_links() {
        for touch in [Touch::Write, Touch::Surface] {
            let plan = Plan::new(vec![target("/w/a", Touch::Delete), target("/w/b", touch)], Cover::Whole, Vec::new());
            assert_eq!(plan.only_renames(), touch == Touch::Surface);
        }
        let plan = Plan::new(vec![target("/w/a", Touch::Delete)], Cover::Rehearsed, Vec::new());
        assert!(!plan.only_renames(), "a program that is not known may write");
        // a file below a folder that is deleted, too
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
        fn every_target_stays_covered_and_none_twice(targets in prop::collection::vec(any_target(), 0..12)) {
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
