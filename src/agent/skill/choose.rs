//! Which skills a task needs: those it names, then those whose description fits it, by words and by meaning.
//!
//! Two rankings are fused by rank (reciprocal rank fusion, Cormack et al. 2009), words a little heavier than meaning; where
//! hardly any word is shared, meaning decides.

use super::{Index, Origin, Skill, SkillError, Skills};
use crate::retrieve::bm25;
use caro_intent::tokens::{tells, words};
use caro_model::embed::Embedder;
use std::sync::Arc;

/// Hits of a search, at most.
pub const LIMIT: usize = 10;
/// Skills whose text goes into a prompt, at most; and with those on board that fit beside a named one.
const ACTIVE: usize = 2;
const TEXTS: usize = 3;
/// Skills that are named to the model beside those, at most.
const LISTED: usize = 3;
/// Skills that are named whenever they are there.
const CORE: [&str; 3] = ["git", "memory", "knowledge"];

/// The constant of the fusion: how fast a lower rank counts less.
const K: f64 = 10.0;
/// Weights of meaning and of words.
const WEIGHTS: (f64, f64) = (1.0, 1.5);
/// The same where fewer than [`FEW`] descriptions share a word with the question.
const WEIGHTS_FEW: (f64, f64) = (2.0, 0.1);
const FEW: usize = 2;
/// What the nearness itself adds then.
const NEARNESS_FEW: f64 = 0.3;
/// What a word of the name in the question adds, and the whole name as it is read.
const NAME_WORD: f64 = 0.3;
const NAME_PHRASE: f64 = 0.5;
/// What a skill about finding files gets where the question asks for files.
const FILES: f64 = 0.25;
/// So near a description must be in meaning to count without a shared word.
const NEAR: f64 = 0.45;
/// So many words it must share to count without nearness.
const SHARED: usize = 2;

/// Why a skill was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// The person asked for it (`--skill`).
    Asked,
    /// The task names it.
    Name,
    /// Its description fits, so much.
    Search(f64),
    /// It was active shortly before in the same conversation.
    Recent,
    /// It is one of those that are always named.
    Core,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Asked => f.write_str("asked for"),
            Self::Name => f.write_str("name"),
            Self::Search(score) => write!(f, "search {score:.2}"),
            Self::Recent => f.write_str("recent"),
            Self::Core => f.write_str("core"),
        }
    }
}

/// The skills of a run.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// Their text goes into the prompt.
    pub active: Vec<(Arc<Skill>, Reason)>,
    /// Only their name and description do.
    pub listed: Vec<(Arc<Skill>, Reason)>,
}

impl Chosen {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &(Arc<Skill>, Reason)> {
        self.active.iter().chain(&self.listed)
    }
}

/// A hit of a search.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The skill.
    pub skill: Arc<Skill>,
    /// How well it fits; only comparable within one search.
    pub score: f64,
    /// BM25 of its name and description.
    pub words: f64,
    /// Nearness in meaning, 0 to 1; 0 without an embedder.
    pub nearness: f64,
    /// True if it fits well enough to be used unasked.
    pub fits: bool,
}

/// The skills of a task: `asked` ones, named ones, then what a search finds, and those that were `recent` in the
/// conversation: `the same with the other file` names no skill.
///
/// # Errors
/// If one that was asked for is not there.
pub fn choose(
    task: &str,
    asked: &[String],
    recent: &[String],
    skills: &Skills,
    index: &mut Index,
    embedder: Option<&dyn Embedder>,
) -> Result<Chosen, SkillError> {
    let mut chosen = Chosen::default();
    for name in asked {
        let skill = skills.get(name)?;
        if chosen.active.iter().all(|(s, _)| s != skill) {
            chosen.active.push((skill.clone(), Reason::Asked));
        }
    }
    let fresh = |chosen: &Chosen, skill: &Arc<Skill>| chosen.all().all(|(s, _)| s != skill);
    for skill in skills.all.iter().filter(|s| names(task, &s.front.name)) {
        if chosen.active.len() < ACTIVE.max(asked.len()) && fresh(&chosen, skill) {
            chosen.active.push((skill.clone(), Reason::Name));
        }
    }
    let is_named = !chosen.active.is_empty();
    for hit in search(task, skills, index, embedder).into_iter().filter(|hit| hit.fits) {
        if !fresh(&chosen, &hit.skill) {
            continue;
        }
        let reason = Reason::Search(hit.score);
        // one on board is there for who works by a skill: it changes no other task
        if hit.skill.origin == Origin::Board {
            if is_named && chosen.active.len() < TEXTS.max(asked.len()) {
                chosen.active.push((hit.skill, reason));
            }
        } else if chosen.active.is_empty() {
            chosen.active.push((hit.skill, reason));
        } else if chosen.listed.len() < LISTED {
            chosen.listed.push((hit.skill, reason));
        }
    }
    for skill in recent.iter().filter_map(|name| skills.get(name).ok()) {
        if chosen.active.len() < ACTIVE && fresh(&chosen, skill) {
            chosen.active.push((skill.clone(), Reason::Recent));
        }
    }
    for skill in skills.all.iter().filter(|s| CORE.contains(&s.front.name.as_str())) {
        if fresh(&chosen, skill) && skill.origin != Origin::Board {
            chosen.listed.push((skill.clone(), Reason::Core));
        }
    }
    Ok(chosen)
}

/// True if the task has the name as a word of its own.
fn names(task: &str, name: &str) -> bool {
    let (task, edge) =
        (task.to_lowercase(), |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-'));
    task.match_indices(name)
        .any(|(at, found)| edge(task[..at].chars().next_back()) && edge(task[at + found.len()..].chars().next()))
}

/// The skills by how well they fit a question, the best first, at most [`LIMIT`].
pub fn search(question: &str, skills: &Skills, index: &mut Index, embedder: Option<&dyn Embedder>) -> Vec<Hit> {
    let text = |s: &Arc<Skill>| format!("{} {}", s.front.name.replace('-', " "), s.front.description);
    let texts: Vec<String> = skills.all.iter().map(text).collect();
    if texts.is_empty() {
        return Vec::new();
    }
    let by_words = bm25(question, &texts);
    let nearness = embedder.and_then(|e| index.nearness(question, &texts, e));
    let by_meaning = nearness.clone().unwrap_or_else(|| vec![0.0; texts.len()]);
    let few = by_words.iter().filter(|score| **score > 0.0).count() < FEW;
    let (meaning, wording) = if few && nearness.is_some() { WEIGHTS_FEW } else { WEIGHTS };
    let rank = |scores: &[f64], of: usize| {
        let own = scores[of];
        (own > 0.0).then(|| scores.iter().filter(|s| **s > own).count() as f64)
    };
    let asked = words(question);
    let files = ["file", "folder", "directory"].iter().any(|w| asked.iter().any(|a| a == w));
    let one = |at: usize, skill: &Arc<Skill>| {
        let fused = |scores: &[f64], weight: f64| rank(scores, at).map_or(0.0, |r| weight / (K + r + 1.0));
        let name = words(&skill.front.name.replace('-', " "));
        let shared_name = name.iter().filter(|w| asked.contains(w)).count() as f64;
        let mut score = fused(&by_words, wording) + fused(&by_meaning, meaning) + NAME_WORD * shared_name;
        if names(question, &skill.front.name.replace('-', " ")) {
            score += NAME_PHRASE;
        }
        let known = words(&texts[at]);
        if files && by_words[at] > 0.0 && known.iter().any(|w| w == "find" || w == "search") {
            score += FILES;
        }
        if few {
            score += NEARNESS_FEW * by_meaning[at];
        }
        let shared = asked.iter().filter(|w| tells(w) && known.contains(w)).count();
        let fits = by_meaning[at] >= NEAR || by_words[at] > 0.0 && shared >= SHARED;
        Hit { skill: skill.clone(), score, words: by_words[at], nearness: by_meaning[at], fits }
    };
    let mut hits: Vec<Hit> = skills.all.iter().enumerate().map(|(at, skill)| one(at, skill)).collect();
    hits.retain(|hit| hit.words > 0.0 || hit.nearness > 0.0);
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.skill.front.name.cmp(&b.skill.front.name)));
    hits.truncate(LIMIT);
    hits
}
