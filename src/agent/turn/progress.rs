//! Steps through the plan: chooses how the next part is done, and judges the result of each step. A small model
//! decides well where there is little to decide, so the harness leaves it as little as it can:
//!
//! - for a part that one command can do, the suggester is asked;
//! - results are saved and counted as they are, without a model;
//! - the model writes texts about results, but can do nothing else than write that file;
//! - a text that a skill has rules for is written with these rules and nothing else;
//! - a part that names a server of tools, or workers, gets only these tools; the model chooses the call;
//! - the model decides freely about everything else, and about whatever failed.

use super::{AgentRun, Phase};
use crate::action::{self, ActionSet};
use crate::evidence::{self, Changes, Claim, Entry};
use crate::guard::Guards;
use crate::suggest::{Done, SuggestRequest, Suggestion};
use crate::tool::{Args, Call, Effects, Outcome, ToolResult, is_exit_note};
use caro_intent::{
    Kind, asks_what_changed, changes, files_to_write, kind, locate, order, promised_files, refer, refers, script,
    stand_in, tallies, tries,
};
use caro_policy::compress;
use caro_shell::{Dialect, parse, quote};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;

/// Most commands tried for one part before the model decides.
pub(super) const MAX_TRIES: u32 = 3;
/// Most attempts of the model to write a text before it is composed of the results without the model.
const MAX_DRAFTS: u32 = 2;
/// Most earlier commands in a request to the suggester.
const MAX_RECENT: usize = 4;
/// Most characters of the output of each of them.
const MAX_PRINTED: usize = 700;
/// The result of a part that searched in several ways and found nothing.
const NOTHING: &str = "nothing found";
/// The result of a part that was skipped for that reason.
const NOT_DONE: &str = "not done";
/// Most changed files remembered of one step.
const MAX_MADE: usize = 200;

/// The name of the shell tool.
const SHELL: &str = "shell";

/// The progress of a run through its plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PlanProgress {
    /// True if there is a suggester.
    pub led: bool,
    /// The index of the current part.
    pub part: usize,
    /// The number of failed attempts at this part.
    pub(super) tries: u32,
    /// True if the harness chose the current call.
    own: bool,
    /// The commands that ran, oldest first; results of servers and workers have an empty command.
    done: Vec<Done>,
    /// The results of the parts; `None` for a part without one.
    results: Vec<Option<String>>,
    /// The referents of `them` and `each`: the files that the latest result names.
    names: Vec<String>,
    /// The reason the current part does not count as done, after its latest attempt.
    #[serde(default)]
    finding: Option<String>,
    /// The parts that were left although they do not count as done, with the reason.
    #[serde(default)]
    doubts: Vec<(usize, String)>,
    /// Files that were created or changed and still exist, relative to the working folder.
    #[serde(default)]
    made: BTreeSet<String>,
    /// True if a server or workers did the latest part: their result is shown as it is.
    #[serde(default)]
    theirs: bool,
    /// Files that the task says must exist in the end, and existed at some time.
    #[serde(default)]
    known: BTreeSet<String>,
    /// Parts whose commands may be wrong, with the reason.
    #[serde(default)]
    unsure: Vec<(usize, String)>,
    /// The suggester's confidence in the current call, if it is in doubt.
    #[serde(default)]
    sure: Option<f64>,
    /// The part that changed something last, and the changes of all its attempts.
    #[serde(default)]
    changes: Option<(usize, Changes)>,
}

/// The driver's observations beside the results.
#[derive(Debug, Clone, Default)]
pub struct StepObservation {
    /// The files that the results name.
    pub names: Vec<String>,
    /// The changes below the working folder; `None` if the calls were not to change anything, or it is unknown.
    pub changes: Option<Changes>,
    /// The files that the task says must exist ([`evidence::promised`]) and that exist now.
    pub there: Vec<String>,
    /// The query of a part that asks for files, and the files below the working folder; `None` if they were not
    /// searched or are too many.
    pub files: Option<(evidence::Query, Vec<evidence::Measured>)>,
}

impl PlanProgress {
    /// The successful commands that only read, latest last.
    fn seen(&self) -> impl DoubleEndedIterator<Item = &Done> {
        self.done.iter().filter(|d| d.worked && d.looked)
    }

    /// Moves on to the next part with the result of the current one.
    fn advance(&mut self, result: Option<String>) {
        self.results.resize(self.part, None);
        self.results.push(result);
        self.part += 1;
        self.tries = 0;
        self.finding = None;
    }

    /// Marks all parts as done by one answer.
    pub(super) fn complete(&mut self, parts: usize, answer: &str) {
        self.results = vec![None; parts.saturating_sub(1)];
        self.results.push(Some(answer.to_owned()));
        self.part = parts;
    }

    /// True if the latest search found nothing, not counting parts skipped because of it.
    fn has_found_nothing(&self) -> bool {
        let mut results = self.results.iter().rev().map(Option::as_deref);
        results.find(|result| *result != Some(NOT_DONE)) == Some(Some(NOTHING))
    }

    /// Returns the changes of the previous part.
    fn change_before(&self) -> Option<&Changes> {
        self.changes.as_ref().filter(|(at, _)| at + 1 == self.part).map(|(_, changes)| changes)
    }

    /// Returns an answer about the changes of the previous part, if this part asks about them.
    fn answer_from_change(&self, part: &str) -> Option<String> {
        let part = order(part);
        let changes = self.change_before()?;
        if asks_what_changed(part) { evidence::answer(part, changes) } else { None }
    }

    /// Takes note of changes: the files that exist now, and the referents of `it`.
    fn note_changes(&mut self, changes: &Changes, is_saved: bool) {
        for path in &changes.removed {
            self.made.remove(path);
        }
        let paths = |entries: &[Entry]| entries.iter().map(|e| e.path.clone()).take(MAX_MADE).collect::<Vec<_>>();
        self.made.extend(changes.made().filter(|e| !e.folder).map(|e| e.path.clone()).take(MAX_MADE));
        // saving a list does not change what `them` refers to
        if is_saved {
            return;
        }
        let files: Vec<Entry> = changes.created.iter().filter(|e| !e.folder).cloned().collect();
        let names = match (files.as_slice(), changes.changed.as_slice(), changes.created.as_slice()) {
            ([], [], []) => return,
            ([], [], folders) => paths(folders),
            ([], changed, _) => paths(changed),
            (files, _, _) => paths(files),
        };
        self.names = names;
    }
}

impl AgentRun {
    /// Says if there is a suggester to ask for parts that a command can do. Called before [`AgentRun::assembled`].
    pub fn lead(&mut self, led: bool) {
        self.progress.led = led;
    }

    /// Takes the suggestion for the current part; without one the model decides.
    pub fn advised(&mut self, suggestion: Option<Suggestion>, guards: &Guards) {
        if self.phase != Phase::Advise {
            return;
        }
        let Some(suggestion) = suggestion else {
            self.progress.tries = MAX_TRIES;
            return self.choose_phase(guards);
        };
        self.progress.sure = suggestion.doubt.then_some(suggestion.confidence);
        let thought = self.part().unwrap_or_default().to_owned();
        let command = suggestion.args.get("command").and_then(serde_json::Value::as_str);
        match (script(&thought), command) {
            (Some((file, _)), Some(command)) => {
                let args = json!({"path": file, "content": format!("#!/usr/bin/env bash\n{command}\n")});
                self.own_call(&thought, self.write_tool().into(), object(args));
            }
            _ => self.own_call(&thought, suggestion.tool, suggestion.args),
        }
    }

    /// Returns the text of the current part.
    pub fn part(&self) -> Option<&str> {
        self.task.plan.parts.get(self.progress.part).map(String::as_str)
    }

    /// Chooses the phase of the next step.
    pub(super) fn choose_phase(&mut self, guards: &Guards) {
        if self.needs_reply() {
            self.phase = Phase::Reply;
            return;
        }
        let mut actions = self.admitted(guards);
        while self.progress.led
            && !actions.tools.is_empty()
            && let Some(part) = self.part().map(str::to_owned)
        {
            if let Some(limited) = self.actions_for_target(&part, &actions) {
                actions = limited;
                break;
            }
            let has = |tool: &str| actions.tools.iter().any(|t| t == tool);
            let writer = self.write_tool();
            if has(writer)
                && let Some(file) = self.file_to_draft(&part)
            {
                self.phase = Phase::Draft(file);
                return;
            }
            match self.kind_of(self.progress.part) {
                _ if self.has_written_output() => self.progress.advance(Some("done".into())),
                // the changes were observed on the disk, so no command is needed
                Kind::Command | Kind::Tell if self.progress.answer_from_change(&part).is_some() => {
                    let answer = self.progress.answer_from_change(&part);
                    self.progress.advance(answer);
                }
                // after a search without results nothing else must be changed in its place
                Kind::Command if changes(&part) && refers(order(&part)) && self.progress.has_found_nothing() => {
                    self.progress
                        .doubts
                        .push((self.progress.part, "Nothing was found that it could be done to.".into()));
                    self.progress.advance(Some(NOT_DONE.into()));
                }
                // properties of new files are measured by a command
                Kind::Tell if has(SHELL) && self.progress.tries < MAX_TRIES && self.needs_measuring(&part) => {
                    self.phase = Phase::Advise;
                    return;
                }
                Kind::Free if has(writer) && self.progress.tries < MAX_TRIES && script(&part).is_some() => {
                    self.phase = Phase::Advise;
                    return;
                }
                Kind::Command
                    if has(SHELL) && self.progress.tries == 0 && tallies(&part) && self.count_lines(&part) =>
                {
                    return;
                }
                Kind::Command if has(SHELL) && self.progress.tries < MAX_TRIES => {
                    self.phase = Phase::Advise;
                    return;
                }
                // a command selects some of the lines seen
                Kind::Save(_) if has(SHELL) && self.progress.tries < MAX_TRIES && self.picks_lines(&part) => {
                    self.phase = Phase::Advise;
                    return;
                }
                Kind::Save(file) if self.progress.tries == 0 && self.save_results(&part, &file) => return,
                Kind::Save(file) | Kind::Compose(file) if self.progress.tries < MAX_DRAFTS && self.has_tool(writer) => {
                    actions = ActionSet {
                        tools: vec![writer.into()],
                        answer: false,
                        cannot: true,
                        batch: 1,
                        path: Some(file),
                    };
                    break;
                }
                Kind::Save(file) | Kind::Compose(file)
                    if self.progress.tries == MAX_DRAFTS && self.has_tool(writer) =>
                {
                    let args = json!({"path": file, "content": self.compose_from_results()});
                    return self.own_call(&part, writer.into(), object(args));
                }
                // the answer comes after all other parts
                Kind::Tell => self.progress.advance(None),
                _ => break,
            }
        }
        // all parts are done; only the answer is left
        if self.progress.led && self.part().is_none() && actions.answer && !self.is_last() {
            if !self.needs_worded_answer()
                && let Some(text) = self.joined_results(self.task.plan.parts.len())
            {
                return self.finish_with_answer(text, guards);
            }
            actions.tools.clear();
            actions.cannot = false;
        }
        let reminder = self.reminder(&actions);
        self.phase = Phase::Decide(actions);
        self.remind(&reminder);
    }

    /// Returns the request to the suggester.
    pub(super) fn suggest_request(&self) -> SuggestRequest {
        let words = self.part().unwrap_or(&self.task.text);
        let script = script(words).map(|(_, work)| work);
        let words = script.as_deref().unwrap_or(words);
        let before = self.progress.part.checked_sub(1).and_then(|at| self.task.plan.parts.get(at));
        let mut part = match before {
            Some(before) if self.progress.names.is_empty() => stand_in(words, before),
            // only the order itself has its references resolved, not the text beside it
            _ => format!("{}{}", refer(order(words), &self.progress.names), &words[order(words).len()..]),
        };
        if part == words {
            part = locate(words);
        }
        let place = self.layers.iter().filter(|l| !l.trusted && l.name == PLACE).map(|l| l.text.clone()).collect();
        let commands: Vec<&Done> = self.progress.done.iter().filter(|d| !d.command.is_empty()).collect();
        let short = |d: &&Done| Done { printed: compress(&d.printed, MAX_PRINTED), ..(*d).clone() };
        SuggestRequest {
            part,
            place,
            done: commands.iter().skip(commands.len().saturating_sub(MAX_RECENT)).map(short).collect(),
        }
    }

    /// Evaluates the results of a step. Returns the reason the part does not count as done, if any, with the index of
    /// the call it is about.
    pub(super) fn evaluate(&mut self, batch: &[ToolResult], seen: &StepObservation) -> Option<(usize, String)> {
        let part = self.part().unwrap_or_default().to_owned();
        let own = std::mem::take(&mut self.progress.own);
        let sure = self.progress.sure.take();
        let done_by: Vec<bool> = batch.iter().map(|one| self.counts_as_done(&part, one)).collect();
        let at = done_by.iter().position(|done| *done).unwrap_or(0);
        let one = batch.get(at)?;
        let files_check = self.check_files(one, seen);
        let is_confirmed = files_check == Some(Ok(()));
        // the disk is more reliable than the form of the output
        let finding = if is_confirmed {
            None
        } else {
            self.check_part(&part, one, seen).or_else(|| files_check.as_ref()?.as_ref().err().cloned())
        };
        let sure = if is_confirmed { None } else { sure };
        // the effect of a cancelled call is unknown
        for (i, one) in batch.iter().enumerate().filter(|(_, one)| one.outcome != Outcome::Cancelled) {
            let command = one.call.args.get("command").and_then(serde_json::Value::as_str);
            let is_external = self.is_external_tool(&one.call.tool);
            let command = if one.call.tool == SHELL { command } else { None };
            if let Some(command) = command.or(is_external.then_some("")) {
                let looked = is_external || one.call.effects.is_read_only();
                let against = if i == at { finding.as_deref() } else { None };
                self.progress.done.push(Done {
                    goal: refer(&part, &[]),
                    command: command.to_owned(),
                    printed: match against {
                        Some(why) => format!("{}\n{why}", without_exit_note(&one.text)),
                        None => one.text.clone(),
                    },
                    whole: one.is_whole(),
                    looked,
                    worked: done_by[i] && against.is_none() && !(looked && found_nothing(one)),
                });
            }
        }
        let silent = one.call.effects.is_read_only() && found_nothing(one) && !is_confirmed;
        let done = done_by[at];
        // the model may look first where that alone cannot do the part
        let looks = !own && one.call.effects.is_read_only() && !self.is_external_tool(&one.call.tool);
        let is_preparation = looks && (changes(&part) || self.progress.led && self.target_provider(&part).is_some());
        self.progress.known.extend(seen.there.iter().cloned());
        if let Some(changes) = &seen.changes {
            for name in evidence::promised(&self.task.plan.parts) {
                let end = format!("/{name}");
                let is = |path: &str| path == name || path.ends_with(&end);
                if changes.before.iter().any(|path| is(path)) || changes.made().any(|entry| is(&entry.path)) {
                    self.progress.known.insert(name);
                }
            }
            if !changes.is_empty() {
                let before = self.progress.changes.take().filter(|(at, _)| *at == self.progress.part);
                let all = before.map_or_else(Changes::default, |(_, before)| before).then(changes);
                self.progress.changes = Some((self.progress.part, all));
            }
            self.progress
                .note_changes(changes, matches!(self.kind_of(self.progress.part), Kind::Save(_) | Kind::Compose(_)));
        }
        if !seen.names.is_empty() && finding.is_none() {
            self.progress.names.clone_from(&seen.names);
        }
        self.progress.finding = match one.outcome {
            _ if finding.is_some() => finding.clone(),
            _ if done && silent => Some("Nothing was found.".into()),
            _ if done => None,
            Outcome::Denied => Some("It was not allowed.".into()),
            _ => Some("The last call for it failed.".into()),
        };
        match one.outcome {
            // a denied part is not tried again
            Outcome::Denied => self.progress.tries = MAX_TRIES + MAX_DRAFTS,
            Outcome::Cancelled => {}
            _ if finding.is_some() => self.progress.tries += 1,
            _ if done && is_preparation => {}
            _ if done && !silent => {
                let changed = || seen.changes.as_ref().and_then(evidence::describe);
                let said = match without_exit_note(&one.text) {
                    _ if one.outcome.is_error() => one.text.trim().to_owned(),
                    "" => changed().unwrap_or_else(|| "done".into()),
                    text => text.to_owned(),
                };
                if one.outcome.is_error() {
                    self.state.errors_in_a_row = 0;
                    // if the next part reports the result, the error is reported there
                    if !self.is_told_next() {
                        self.progress.unsure.push((self.progress.part, "It ended with an error.".into()));
                    }
                }
                // the changes come from the disk, so the answer may mention them
                self.state.learn(&said);
                if let Some(sure) = sure {
                    let why = format!("The command may be a wrong one ({:.0} % sure): look at it.", sure * 100.0);
                    self.progress.unsure.push((self.progress.part, why));
                }
                self.progress.theirs = self.is_external_tool(&one.call.tool);
                self.progress.advance(Some(said));
            }
            // several searches in a row without results: there is nothing to find
            _ if done && self.progress.tries + 1 >= MAX_TRIES => {
                if self.is_used_later() {
                    self.progress.doubts.push((self.progress.part, "Nothing was found.".into()));
                }
                // the names of an earlier part are not what this part was to find
                self.progress.names.clear();
                self.progress.advance(Some(NOTHING.into()));
            }
            _ => self.progress.tries += 1,
        }
        finding.map(|why| (at, why))
    }

    /// True if a call has done the part, or if its outcome is the answer even if it is an error: tests that fail were
    /// run. An error does not count if the next part changes something, which must only follow success.
    fn counts_as_done(&self, part: &str, one: &ToolResult) -> bool {
        let next = self.task.plan.parts.get(self.progress.part + 1);
        let goes_on = next.is_some_and(|part| changes(order(part))) && !self.is_told_next();
        let ran = match one.outcome {
            Outcome::FailedLate => true,
            // one line with the error
            Outcome::Failed => split_exit_note(&one.text).1 == Some("(exit code 1)"),
            _ => false,
        };
        one.outcome == Outcome::Succeeded || ran && tries(order(part)) && !goes_on
    }

    /// True if the next part reports the result of this one or writes it to a file.
    fn is_told_next(&self) -> bool {
        matches!(self.kind_of(self.progress.part + 1), Kind::Tell | Kind::Save(_) | Kind::Compose(_))
    }

    /// Compares the files that a part asks for with the disk: `Ok`, or the error in the result; `None` if it cannot be
    /// checked.
    fn check_files(&self, one: &ToolResult, seen: &StepObservation) -> Option<Result<(), String>> {
        let looked = self.progress.led && one.outcome == Outcome::Succeeded && one.call.effects.is_read_only();
        if !looked || !one.is_whole() || self.is_external_tool(&one.call.tool) {
            return None;
        }
        let (query, files) = seen.files.as_ref()?;
        let right = query.judge(files, without_exit_note(&one.text), &seen.names)?;
        Some(if right { Ok(()) } else { Err(query.explain(files, &seen.names)) })
    }

    /// Checks if a successful call has really done the part; returns the reason against it, if any.
    fn check_part(&self, part: &str, one: &ToolResult, seen: &StepObservation) -> Option<String> {
        if !self.progress.led || part.is_empty() || one.outcome != Outcome::Succeeded {
            return None;
        }
        let kind = self.kind_of(self.progress.part);
        match kind {
            Kind::Save(_) | Kind::Compose(_) if one.call.tool == self.write_tool() => {
                let content = one.call.args.get("content").and_then(serde_json::Value::as_str).unwrap_or_default();
                if let Kind::Save(_) = kind {
                    return None;
                }
                return evidence::omissions(part, content, self.part_results());
            }
            Kind::Tell => return None,
            // the effects of a server's tools are unknown
            _ if self.is_external_tool(&one.call.tool) => return None,
            // the model may look first
            Kind::Free if !changes(part) || one.call.effects.is_read_only() => return None,
            _ => {}
        }
        let effects = &one.call.effects;
        if effects.is_read_only() && found_nothing(one) {
            return None;
        }
        // of a script only its existence can be checked, and text beside an order cannot be checked
        let written = script(part).map(|(file, _)| format!("create a script {file}"));
        let limited = order(part) != part;
        let part = written.as_deref().unwrap_or_else(|| order(part));
        let names = if refers(part) { self.progress.names.as_slice() } else { &[] };
        let earlier: Vec<String> = self.progress.results.iter().flatten().cloned().collect();
        evidence::finding(&Claim {
            part,
            limited,
            names,
            command: one.call.args.get("command").and_then(serde_json::Value::as_str),
            effects,
            printed: without_exit_note(&one.text),
            whole: one.is_whole(),
            found: Some(seen.names.len()),
            earlier: &earlier,
            goes_on: self.is_used_later(),
            changes: seen.changes.as_ref(),
        })
    }

    /// True for a part that asks for something to be looked up: a number of what the previous part created, a property
    /// of what it found, or the ones that the next part is about.
    fn needs_measuring(&self, part: &str) -> bool {
        let next = self.task.plan.parts.get(self.progress.part + 1);
        let selects =
            part.split_whitespace().any(|word| word.eq_ignore_ascii_case("who") || word.eq_ignore_ascii_case("which"));
        if selects && next.is_some_and(|next| refers(order(next))) {
            return true;
        }
        self.progress.change_before().is_some() && evidence::counts(part) || refers(part) && evidence::measures(part)
    }

    /// True for a part that saves only some of the lines seen: `write the three most frequent words to top.txt`.
    fn picks_lines(&self, part: &str) -> bool {
        let seen = self.progress.seen().next_back().filter(|seen| !seen.command.is_empty() && seen.whole);
        // a listing of differences contains names, but is not a list of names
        let names = part.to_lowercase();
        let names = names.contains("names of the files") || names.contains("file names");
        seen.is_some_and(|seen| {
            let lines = without_exit_note(&seen.printed).lines().filter(|line| !line.trim().is_empty()).count();
            evidence::wanted_count(part).is_some_and(|n| lines > n) || names && self.progress.names.len() != lines
        })
    }

    /// True if a later part uses the result of this one.
    fn is_used_later(&self) -> bool {
        let writes = |at| matches!(self.kind_of(at), Kind::Save(_) | Kind::Compose(_));
        let mut later = self.task.plan.parts.iter().enumerate().skip(self.progress.part + 1);
        later.any(|(at, part)| refers(part) || writes(at))
    }

    /// The earlier parts that have results, with these.
    pub(super) fn part_results(&self) -> impl Iterator<Item = (&str, &str)> {
        self.task
            .plan
            .parts
            .iter()
            .zip(&self.progress.results)
            .filter_map(|(part, result)| Some((part.as_str(), result.as_deref()?)))
    }

    /// Parts that were done and may be wrong: reported in the end, since the model cannot improve them.
    pub(super) fn doubtful_parts(&self) -> impl Iterator<Item = String> + '_ {
        let of = |(at, why): &(usize, String)| Some(format!("{}: {why}", self.task.plan.parts.get(*at)?));
        self.progress.unsure.iter().filter_map(of)
    }

    /// Returns what is known to be missing for the task to be done, as sentences for the user.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.progress.led {
            missing.extend(
                self.progress
                    .doubts
                    .iter()
                    .filter_map(|(at, why)| Some(format!("{}: {why}", self.task.plan.parts.get(*at)?))),
            );
            for (at, part) in self.task.plan.parts.iter().enumerate().skip(self.progress.part) {
                let why = if at == self.progress.part { self.progress.finding.as_deref() } else { None };
                let by_words = match self.kind_of(at) {
                    Kind::Tell => true,
                    Kind::Free => !changes(part),
                    // without tools only an answer can be expected
                    _ => self.tools.is_empty() && !changes(part),
                };
                if !by_words || why.is_some() {
                    missing.push(format!("{part}: {}", why.unwrap_or("Nothing was done for it.")));
                }
            }
        } else if self.state.changes == 0
            && let Some(part) = self.task.plan.parts.iter().find(|part| requires_change(part))
        {
            missing.push(format!("{part}: Nothing was changed."));
        }
        let foreseen = |file: &str| self.state.modified.iter().any(|path| Path::new(path).ends_with(file));
        let named = if self.progress.led { files_to_write(&self.task.text) } else { promised_files(&self.task.text) };
        for file in named.into_iter().filter(|f| !f.starts_with(['~', '/'])) {
            let name = file.trim_start_matches("./");
            if !self.progress.made.contains(name) && !foreseen(name) {
                missing.push(format!("{name} was not written."));
            }
        }
        for name in evidence::promised(&self.task.plan.parts) {
            let told = missing.iter().any(|why| why.contains(&name));
            if self.progress.led && !told && !self.progress.known.contains(&name) && !foreseen(&name) {
                missing.push(format!("{name} is not there."));
            }
        }
        missing
    }

    /// True if the run has this tool, regardless of what the guards admit in this step.
    fn has_tool(&self, tool: &str) -> bool {
        self.tools.iter().any(|t| t.name == tool)
    }

    /// Saves the latest result as it is; false if there is none, or no tool for it.
    fn save_results(&mut self, part: &str, file: &str) -> bool {
        let Some(last) = self.progress.seen().next_back().cloned() else { return false };
        let all_whole = self.progress.seen().all(|seen| seen.whole);
        let all = if all_whole { self.joined_results(self.progress.part) } else { None };
        if self.is_output_part()
            && self.progress.part > 1
            && let Some(content) = all
        {
            let args = json!({"path": file, "content": content});
            self.own_call(part, self.write_tool().into(), object(args));
        } else if last.whole && !has_exit_note(&last.printed) && self.has_tool(self.write_tool()) {
            let mut content = without_exit_note(&last.printed).to_owned();
            // `write both to word.txt` means the result before the latest, too
            let both = part.split_whitespace().any(|word| word.eq_ignore_ascii_case("both"));
            if let Some(before) = self.progress.seen().rev().nth(1).filter(|before| both && before.whole) {
                content = format!("{}\n{content}", without_exit_note(&before.printed));
            }
            let args = json!({"path": file, "content": sort_if_asked(part, content)});
            self.own_call(part, self.write_tool().into(), object(args));
        } else if !self.is_output_part() && self.has_tool(SHELL) && !last.command.is_empty() {
            // the command runs before the file is opened, so that a listing does not contain the file it goes into
            let command = format!("printf '%s\\n' \"$({})\" > {}", last.command, quote(file, Dialect::Sh));
            self.own_call(part, SHELL.into(), object(json!({ "command": command })));
        } else {
            return false;
        }
        true
    }

    /// Counts the lines of the latest result with its command; false if it is not a list.
    fn count_lines(&mut self, part: &str) -> bool {
        if self.progress.has_found_nothing() {
            return false;
        }
        let Some(last) = self.progress.seen().next_back() else { return false };
        let lines = without_exit_note(&last.printed).lines().count();
        let names = self.progress.names.len();
        // lines that are not items, such as a heading, would be counted
        if !last.whole || last.command.is_empty() || lines == 0 || (names > 0 && names != lines) {
            return false;
        }
        let command = format!("{{ {}; }} | wc -l", last.command);
        self.own_call(part, SHELL.into(), object(json!({ "command": command })));
        true
    }

    /// True if the user expects an answer in words and not just the output of commands.
    fn needs_worded_answer(&self) -> bool {
        let parts = &self.task.plan.parts;
        // a looked-up answer is in the results
        let is_known = |at: usize| self.progress.results.get(at).is_some_and(Option::is_some);
        // the answer of a run that writes its result to a file is not read
        self.leaves.is_none()
            && (parts.len() < 2 && !self.progress.theirs && self.progress.changes.is_none()
                || parts.iter().enumerate().any(|(at, part)| {
                    kind(part, true) == Kind::Tell && !is_known(at) || self.progress.theirs && is_question(part)
                }))
    }

    /// Joins the results of the first `parts`, unchanged; `None` if one of them has none.
    fn joined_results(&self, parts: usize) -> Option<String> {
        let said = |(part, result): (&String, &Option<String>)| {
            let result = result.as_deref()?;
            if parts == 1 {
                return Some(result.to_owned());
            }
            Some(if result.contains('\n') { format!("{part}:\n{result}") } else { format!("{part}: {result}") })
        };
        let all: Option<Vec<String>> =
            self.task.plan.parts.iter().zip(&self.progress.results).take(parts).map(said).collect();
        all.filter(|all| all.len() == parts).map(|all| all.join("\n"))
    }

    /// Checks an answer of the model: if the latest result is a single number that the answer lacks, returns the
    /// results instead.
    pub(super) fn with_known_number(&self, text: String) -> String {
        let latest = self.progress.results.iter().flatten().next_back().map(|result| result.trim());
        let number = latest.filter(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_digit()));
        let says = |number: &str| text.split(|c: char| !c.is_ascii_digit()).any(|word| word == number);
        match number {
            Some(number) if self.progress.led && !says(number) => {
                let of = |(part, result): (&String, &Option<String>)| Some(format!("{part}: {}", result.as_deref()?));
                let all = self.task.plan.parts.iter().zip(&self.progress.results).filter_map(of);
                all.collect::<Vec<_>>().join("\n")
            }
            _ => text,
        }
    }

    /// Composes a text of the outputs seen, without a model.
    fn compose_from_results(&self) -> String {
        let mut text = format!("# {}\n", self.task.text);
        for seen in self.progress.seen() {
            text.push_str(&format!("\n## {}\n\n{}\n", seen.goal, without_exit_note(&seen.printed)));
        }
        text
    }

    /// Makes a call that the harness chose, in the form of the model's decisions.
    pub(super) fn own_call(&mut self, thought: &str, tool: String, args: Args) {
        let shown = action::one_line(&serde_json::Value::Object(args.clone()));
        let text = format!("Thought: {thought}\nAction: {tool} {shown}");
        self.entries.push(super::Entry::Decision { text });
        self.progress.own = true;
        self.thought = thought.to_owned();
        let id = format!("s{}c1", self.step);
        self.phase = Phase::Act(vec![Call { id, tool, args, effects: Effects::default() }]);
    }
}

/// Sorts the lines of a text if the part asks for it; unchanged if it names another order.
fn sort_if_asked(part: &str, text: String) -> String {
    let words: Vec<String> = part.split_whitespace().map(str::to_lowercase).collect();
    let says = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    if !says(&["sorted", "alphabetically", "alphabetical"]) || says(&["by", "reverse", "descending", "numerically"]) {
        return text;
    }
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// True for a part that is a question.
fn is_question(part: &str) -> bool {
    const ASKS: [&str; 14] =
        ["are", "can", "did", "do", "does", "has", "how", "is", "what", "when", "where", "which", "who", "why"];
    let first = part.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    part.trim_end().ends_with('?') || ASKS.contains(&first.as_str())
}

/// True for a part that cannot be done without a change.
fn requires_change(part: &str) -> bool {
    let words: Vec<String> = part.split_whitespace().map(str::to_lowercase).collect();
    let Some((verb, rest)) = words.split_first() else { return false };
    let is = |list: &[&str]| list.contains(&verb.as_str());
    let things = ["directory", "file", "files", "folder", "folders", "link", "symlink"];
    is(&["append", "chmod", "copy", "delete", "mkdir", "move", "remove", "rename", "touch"])
        || is(&["create", "make"]) && rest.iter().take(4).any(|word| things.contains(&word.as_str()))
}

/// The name of the layer with the beginnings of the files that the task names.
pub const PLACE: &str = "files";
/// The text after a file's name in that layer if the file is longer than what is shown.
pub const BEGINS_WITH: &str = " begins with";
/// The end of that layer's line about files that it does not have.
pub const NOT_SHOWN: &str = "are not shown here";

/// Returns the arguments in a JSON object.
pub(super) fn object(value: serde_json::Value) -> Args {
    match value {
        serde_json::Value::Object(args) => args,
        _ => Args::new(),
    }
}

/// True if a reading call printed nothing, or a search exited with 1 (a count of 0 in every file).
fn found_nothing(one: &ToolResult) -> bool {
    let command = one.call.args.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
    let is_search = || {
        let script = parse(command, Dialect::Bash);
        script.commands.last().and_then(|c| c.name()).is_some_and(|name| SEARCHES.contains(&name))
    };
    without_exit_note(&one.text).is_empty() || one.text.trim_end().ends_with("\n(exit code 1)") && is_search()
}

/// Programs whose exit code 1 means that nothing was found.
const SEARCHES: &[&str] = &["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"];

/// Splits the output of a command from the shell tool's note on its exit status, if there is one.
fn split_exit_note(printed: &str) -> (&str, Option<&str>) {
    let text = printed.trim_end();
    let (before, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let is_note = last == "(no output)" || is_exit_note(last);
    if is_note { (before.trim_end(), Some(last)) } else { (text, None) }
}

/// True if a command failed: its output contains error messages, which do not belong into a file.
fn has_exit_note(printed: &str) -> bool {
    split_exit_note(printed).1.is_some_and(is_exit_note)
}

/// Returns the output of a command without that note.
fn without_exit_note(printed: &str) -> &str {
    split_exit_note(printed).0
}
