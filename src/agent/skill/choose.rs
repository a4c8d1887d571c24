//! Chooses the skills of a task: those it names, then those whose description fits it by words and by meaning.
//!
//! Two rankings are combined by reciprocal rank fusion (Cormack et al. 2009). Words weigh a little more than meaning;
//! if the question shares hardly any word with the descriptions, meaning decides.

use super::{Index, Origin, Skill, SkillError, Skills};
use crate::retrieve::bm25;
use caro_intent::tokens::{is_significant, words};
use caro_model::embed::Embedder;
use std::sync::Arc;

/// Most hits of a search.
pub const LIMIT: usize = 10;
/// Most skills whose text goes into a prompt.
const MAX_ACTIVE: usize = 2;
/// Most of them including built-in skills, which are added to a task that names a skill.
const MAX_WITH_BUILT_IN: usize = 3;
/// Most further skills found by search that are listed by name and description.
const MAX_LISTED: usize = 3;
/// Skills that are always listed if they exist.
const CORE: [&str; 3] = ["git", "memory", "knowledge"];

/// The constant of the rank fusion; the larger, the less the first ranks stand out.
const RANK_CONSTANT: f64 = 10.0;
/// Weights of the ranking by meaning and of the ranking by words.
const WEIGHTS: (f64, f64) = (1.0, 1.5);
/// The weights used if fewer than [`FEW`] descriptions share a word with the question.
const WEIGHTS_FEW: (f64, f64) = (2.0, 0.1);
const FEW: usize = 2;
/// Factor of the nearness itself, added to the score in that case.
const NEARNESS_FEW: f64 = 0.3;
/// Score for each word of the skill's name in the question.
const NAME_WORD: f64 = 0.3;
/// Score if the question contains the whole name.
const NAME_PHRASE: f64 = 0.5;
/// Score of a skill about finding files if the question is about files.
const FILES: f64 = 0.25;
/// Least nearness of a description that fits without shared words.
const MIN_NEARNESS: f64 = 0.45;
/// Least number of shared words of a description that fits without nearness.
const MIN_SHARED: usize = 2;

/// The reason a skill was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reason {
    /// The user asked for it (`--skill`).
    Asked,
    /// The task names it.
    Name,
    /// Its description fits, with this score.
    Search(f64),
    /// It was active recently in the same conversation.
    Recent,
    /// It is one of those that are always listed.
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
    /// The skills whose text goes into the prompt.
    pub active: Vec<(Arc<Skill>, Reason)>,
    /// The skills of which only name and description do.
    pub listed: Vec<(Arc<Skill>, Reason)>,
}

impl Chosen {
    /// All of them, the active ones first.
    pub fn all(&self) -> impl Iterator<Item = &(Arc<Skill>, Reason)> {
        self.active.iter().chain(&self.listed)
    }
}

/// A hit of a search.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The skill.
    pub skill: Arc<Skill>,
    /// The score; only comparable within one search.
    pub score: f64,
    /// The BM25 score of its name and description.
    pub words: f64,
    /// The nearness in meaning, 0 to 1; 0 without an embedder.
    pub nearness: f64,
    /// True if it fits well enough to be used unasked.
    pub fits: bool,
}

/// Chooses the skills of a task: those `asked` for, those it names, what a search finds, and those that were `recent`
/// in the conversation, since `the same with the other file` names no skill.
///
/// # Errors
/// If a skill that was asked for does not exist.
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
        if chosen.active.len() < MAX_ACTIVE.max(asked.len()) && fresh(&chosen, skill) {
            chosen.active.push((skill.clone(), Reason::Name));
        }
    }
    let is_named = !chosen.active.is_empty();
    for hit in search(task, skills, index, embedder).into_iter().filter(|hit| hit.fits) {
        if !fresh(&chosen, &hit.skill) {
            continue;
        }
        let reason = Reason::Search(hit.score);
        // a built-in skill only supplements a named one: it changes no other task
        if hit.skill.origin == Origin::Board {
            if is_named && chosen.active.len() < MAX_WITH_BUILT_IN.max(asked.len()) {
                chosen.active.push((hit.skill, reason));
            }
        } else if chosen.active.is_empty() {
            chosen.active.push((hit.skill, reason));
        } else if chosen.listed.len() < MAX_LISTED {
            chosen.listed.push((hit.skill, reason));
        }
    }
    for skill in recent.iter().filter_map(|name| skills.get(name).ok()) {
        if chosen.active.len() < MAX_ACTIVE && fresh(&chosen, skill) {
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

/// True if the task contains the name as a whole word.
fn names(task: &str, name: &str) -> bool {
    let (task, edge) =
        (task.to_lowercase(), |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-'));
    task.match_indices(name)
        .any(|(at, found)| edge(task[..at].chars().next_back()) && edge(task[at + found.len()..].chars().next()))
}

/// Returns at most [`LIMIT`] skills that fit a question, best first.
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
    let question_words = words(question);
    let is_about_files = ["file", "folder", "directory"].iter().any(|w| question_words.iter().any(|q| q == w));
    let rate = |at: usize, skill: &Arc<Skill>| {
        let fused = |scores: &[f64], weight: f64| rank(scores, at).map_or(0.0, |r| weight / (RANK_CONSTANT + r + 1.0));
        let name = words(&skill.front.name.replace('-', " "));
        let shared_name = name.iter().filter(|w| question_words.contains(w)).count() as f64;
        let mut score = fused(&by_words, wording) + fused(&by_meaning, meaning) + NAME_WORD * shared_name;
        if names(question, &skill.front.name.replace('-', " ")) {
            score += NAME_PHRASE;
        }
        let text_words = words(&texts[at]);
        if is_about_files && by_words[at] > 0.0 && text_words.iter().any(|w| w == "find" || w == "search") {
            score += FILES;
        }
        if few {
            score += NEARNESS_FEW * by_meaning[at];
        }
        let shared = question_words.iter().filter(|w| is_significant(w) && text_words.contains(w)).count();
        let fits = by_meaning[at] >= MIN_NEARNESS || by_words[at] > 0.0 && shared >= MIN_SHARED;
        Hit { skill: skill.clone(), score, words: by_words[at], nearness: by_meaning[at], fits }
    };
    let mut hits: Vec<Hit> = skills.all.iter().enumerate().map(|(at, skill)| rate(at, skill)).collect();
    hits.retain(|hit| hit.words > 0.0 || hit.nearness > 0.0);
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.skill.front.name.cmp(&b.skill.front.name)));
    hits.truncate(LIMIT);
    hits
}
