//! The generation loop: computes the prompt, chooses tokens one by one within the shape, and returns the completion.

use super::backend::{Backend, LaneToken};
use super::detokenize::Emitter;
use super::grammar::{Grammar, Guide};
use super::prefix::Store;
use super::sample::{Peak, Ranked, Sampler};
use super::speculate::{DraftContext, DraftStats, Drafter, Phrases};
use super::template::{Encoded, Template};
use super::tokenizer::{Kind, Tokenizer};
use crate::{Completion, Finish, Flow, ModelError, Prompt, Request, Sampling, Shape, Token, Usage};
use std::time::{Duration, Instant};

/// The parts of a model that generation needs besides its forward pass.
pub(super) struct Language<'a> {
    pub tokenizer: &'a Tokenizer,
    pub template: &'a Template,
    /// Tokens that end the turn.
    pub ends: &'a [u32],
    /// Texts from which tokens are drafted, besides the conversation.
    pub phrases: &'a Phrases,
    pub grammar: &'a Grammar,
}

impl Language<'_> {
    /// Encodes the prompt in tokens, of which there must be fewer than `limit`.
    ///
    /// # Errors
    /// [`ModelError::TooLong`].
    pub(super) fn encode(&self, prompt: &Prompt, limit: usize) -> Result<Encoded, ModelError> {
        let encoded = self.template.encode(prompt, self.tokenizer);
        match encoded.ids.len() {
            tokens if tokens >= limit => Err(ModelError::TooLong { tokens, limit }),
            _ => Ok(encoded),
        }
    }
}

/// One sequence: a forward pass and the tokens whose state it has computed.
///
/// The rounding of a batch depends on its length. So that an answer does not depend on earlier requests, a stable
/// prefix is always computed as a batch of its own, for this request or an earlier one, or read from disk; and the
/// tokens after it are reused all together or not at all.
pub(super) struct Sequence {
    backend: Box<dyn Backend>,
    tokens: Vec<u32>,
    /// The length of the stable prefix among the tokens, computed by itself.
    prefix_len: usize,
    /// True if the tokens are a part of a stable prefix whose computation was cancelled.
    partial_prefix: bool,
    /// The cache of stable prefixes on disk.
    store: Option<Store>,
    /// True if the stable prefix is not in the store yet.
    is_new: bool,
    /// The length of the last prompt with a stable prefix, and the logits after it.
    prompt: Option<(usize, Vec<f32>)>,
    /// True while nothing is computed after that prompt, so that its logits are the current ones.
    is_repeated: bool,
    /// The number of tokens that are verified; the others are drafts.
    verified: usize,
    /// The index of the first token of the last `feed_drafts`.
    draft_from: usize,
    /// `None` if decoding is not speculative.
    drafter: Option<Drafter>,
    /// True if the tokens are computed with the adapter.
    is_adapted: bool,
}

impl Sequence {
    /// Returns an empty sequence.
    pub fn new(backend: Box<dyn Backend>, store: Option<Store>, speculate: bool) -> Self {
        Self {
            backend,
            tokens: Vec::new(),
            prefix_len: 0,
            partial_prefix: false,
            store,
            is_new: false,
            prompt: None,
            is_repeated: false,
            verified: 0,
            draft_from: 0,
            drafter: speculate.then(Drafter::default),
            is_adapted: false,
        }
    }

    /// Returns the forward pass, emptied.
    pub fn backend(&mut self) -> &mut dyn Backend {
        self.truncate(0);
        &mut *self.backend
    }

    /// Returns the most tokens that fit.
    pub fn context(&self) -> usize {
        self.backend.context()
    }

    /// Describes the backend, for people.
    pub fn describe(&self) -> String {
        self.backend.describe()
    }

    /// True if the last prompt was computed with an adapter.
    pub(super) fn is_adapted(&self) -> bool {
        self.is_adapted
    }

    /// Turns the adapter, if there is one, on or off. If that changes it, the sequence is emptied.
    pub(super) fn adapt(&mut self, on: bool) {
        let on = on && self.backend.adapter().is_some();
        if on != self.is_adapted {
            self.truncate(0);
            self.backend.adapt(on);
            self.is_adapted = on;
        }
    }

    /// Returns the identity of the adapter in use; empty without one.
    fn adapter_identity(&self) -> String {
        let adapter = if self.is_adapted { self.backend.adapter() } else { None };
        adapter.map(|adapter| adapter.identity().to_owned()).unwrap_or_default()
    }

    /// Keeps or restores as much of the prompt's state as possible, and returns the number of its tokens. That is all
    /// of them only if the logits after the last one are known too, as for repeated completions of one prompt.
    pub(super) fn reuse(&mut self, prompt: &Encoded) -> usize {
        let Encoded { ids, stable, adapted } = prompt;
        self.adapt(*adapted);
        let was_partial = std::mem::take(&mut self.partial_prefix);
        self.is_repeated = false;
        let common = self.tokens.iter().zip(ids).take_while(|(a, b)| a == b).count();
        if *stable == 0 || !self.backend.is_resumable() {
            return self.truncate(common.min(ids.len().saturating_sub(1)));
        }
        if self.prefix_len == *stable && common >= *stable {
            self.is_repeated = common == ids.len() && self.prompt.as_ref().is_some_and(|(len, _)| *len == common);
            return self.truncate(if self.is_repeated { ids.len() } else { *stable });
        }
        let stable = &ids[..*stable];
        if was_partial && stable.starts_with(&self.tokens) {
            // Whole batches of it are computed, and `complete` continues after them. Otherwise every call on a slow
            // machine would run into its deadline at the same point.
            self.partial_prefix = true;
            return self.tokens.len();
        }
        self.truncate(0);
        let adapter = self.adapter_identity();
        if self.store.as_ref().is_some_and(|store| store.load(stable, &adapter, &mut *self.backend)) {
            self.tokens.extend_from_slice(stable);
            self.prefix_len = stable.len();
        }
        self.prefix_len
    }

    /// Returns the most continuations computed together; see [`Backend::lanes`].
    pub(super) fn lanes(&self) -> usize {
        self.backend.lanes()
    }

    /// Computes one token each of several continuations of the sequence; see [`Backend::feed_lanes`].
    pub(super) fn feed_lanes(
        &mut self,
        tokens: &[LaneToken],
        room: usize,
        request: &Request,
    ) -> Result<bool, ModelError> {
        self.backend.feed_lanes(tokens, room, &request.cancel)
    }

    /// Copies the beginning of a continuation to another; see [`Backend::copy_lane`].
    pub(super) fn copy_lane(&mut self, from: usize, to: usize, steps: usize, room: usize) {
        self.backend.copy_lane(from, to, steps, room);
    }

    /// Returns the logits after the `row`th token of the last [`Self::feed_lanes`].
    pub(super) fn logits_of_lane(&mut self, row: usize) -> &[f32] {
        self.backend.logits_at(row)
    }

    /// Allocates slots for independent sequences; see [`Backend::open_slots`].
    pub(super) fn open_slots(&mut self, count: usize, len: usize) -> bool {
        self.backend.open_slots(count, len)
    }

    /// Computes tokens of the sequences in slots; see [`Backend::feed_slots`].
    pub(super) fn feed_slots(&mut self, tokens: &[LaneToken], scored: usize) -> Result<(), ModelError> {
        self.backend.feed_slots(tokens, scored)
    }

    /// Copies the beginning of a slot's sequence to another slot; see [`Backend::copy_slot`].
    pub(super) fn copy_slot(&mut self, from: usize, to: usize, len: usize) {
        self.backend.copy_slot(from, to, len);
    }

    /// Returns the logits after the `row`th of the scored tokens of the last [`Self::feed_slots`].
    pub(super) fn logits_of_slot(&mut self, row: usize) -> &[f32] {
        self.backend.logits_at(row)
    }

    /// Drops the tokens after the first `len`, and more if the forward pass cannot truncate there; returns the number
    /// of tokens left.
    fn truncate(&mut self, len: usize) -> usize {
        if len < self.backend.len() {
            self.backend.truncate(len);
        }
        let len = self.backend.len().min(len);
        self.partial_prefix &= len == self.tokens.len();
        self.tokens.truncate(len);
        self.verified = self.verified.min(len);
        if len < self.prefix_len {
            (self.prefix_len, self.is_new) = (0, false);
        }
        self.prompt.take_if(|(prompt, _)| len < *prompt);
        len
    }

    /// Computes the part of the prompt that `reuse` left; returns false if cancelled.
    pub(super) fn complete(&mut self, prompt: &Encoded, request: &Request) -> Result<bool, ModelError> {
        let Encoded { ids, stable, .. } = prompt;
        if (self.tokens.is_empty() || self.partial_prefix) && *stable > 0 && self.backend.is_resumable() {
            let is_fed = self.feed(&ids[self.tokens.len()..*stable], request)?;
            self.partial_prefix = !is_fed && !self.tokens.is_empty();
            if !is_fed {
                return Ok(false);
            }
            (self.prefix_len, self.is_new) = (*stable, true);
        }
        if self.is_repeated {
            return Ok(true);
        }
        let is_fed = self.feed(&ids[self.tokens.len()..], request)?;
        if is_fed && *stable > 0 && self.backend.is_resumable() {
            self.prompt = Some((ids.len(), self.logits().to_vec()));
        }
        Ok(is_fed)
    }

    /// Saves the stable prefix to the store if it is new.
    fn save_prefix(&mut self) {
        if std::mem::take(&mut self.is_new)
            && let Some(store) = &self.store
        {
            store.save(&self.tokens[..self.prefix_len], &self.adapter_identity(), &*self.backend);
        }
    }

    /// Appends tokens; returns false if cancelled.
    fn feed(&mut self, ids: &[u32], request: &Request) -> Result<bool, ModelError> {
        let before = self.tokens.len();
        self.is_repeated = false;
        let result = self.backend.feed(ids, &request.cancel);
        // after an error or a cancelled call a part of them may be computed
        let computed = self.backend.len().saturating_sub(before).min(ids.len());
        self.tokens.extend_from_slice(&ids[..computed]);
        (self.verified, self.draft_from) = (self.tokens.len(), self.tokens.len().saturating_sub(1));
        result
    }

    /// Returns the logits after the last verified token.
    pub(super) fn logits(&mut self) -> &[f32] {
        if self.is_repeated
            && let Some((_, logits)) = &self.prompt
        {
            return logits;
        }
        self.backend.logits_at(self.verified - 1 - self.draft_from)
    }

    /// Makes `ids` the next verified tokens and computes those that were not drafted, together with new drafts of at
    /// most `room` further tokens; returns false if cancelled.
    fn advance(
        &mut self,
        ids: &[u32],
        room: usize,
        language: &Language<'_>,
        request: &Request,
    ) -> Result<bool, ModelError> {
        let window = self.backend.draft_window();
        self.is_repeated = false;
        let drafter = if ids.len() <= window { self.drafter.as_mut() } else { None };
        let Some(drafter) = drafter else {
            self.truncate(self.verified);
            return self.feed(ids, request);
        };
        let drafts = &self.tokens[self.verified..];
        let accepted = drafts.iter().zip(ids).take_while(|(a, b)| a == b).count();
        drafter.learn(accepted, accepted < ids.len().min(drafts.len()));
        self.verified += accepted;
        let ids = &ids[accepted..];
        if ids.is_empty() {
            return Ok(true);
        }
        let mut text = self.tokens[..self.verified].to_vec();
        text.extend_from_slice(ids);
        let max_drafts = (window - ids.len()).min(room).min(self.backend.context() - text.len());
        let Language { tokenizer, phrases, ends, .. } = *language;
        let context = DraftContext { text: &text, stable: self.prefix_len, phrases, tokenizer, ends };
        let drafts = drafter.draft(&context, max_drafts);
        text.extend(drafts);
        self.truncate(self.verified);
        self.draft_from = self.verified;
        self.verified += ids.len();
        let result = self.backend.feed_drafts(&text[self.draft_from..], &request.cancel);
        text.truncate(self.backend.len());
        self.verified = self.verified.min(text.len());
        self.tokens = text;
        result
    }

    /// Drops the drafts that are not verified, and returns the counts since the last call.
    fn discard_drafts(&mut self) -> DraftStats {
        self.truncate(self.verified);
        self.drafter.as_mut().map(Drafter::take_stats).unwrap_or_default()
    }
}

/// Continues the prompt until the shape or the model ends it, a limit is reached or the caller cancels.
///
/// # Errors
/// See [`crate::Model::generate`].
pub(super) fn generate(
    sequence: &mut Sequence,
    language: &Language<'_>,
    request: &Request,
    on: &mut dyn FnMut(&str) -> Flow,
) -> Result<Completion, ModelError> {
    let mut completion = complete(sequence, language, request, on);
    let drafts = sequence.discard_drafts();
    if let Ok(completion) = &mut completion {
        completion.usage.drafted_tokens = drafts.drafted;
        completion.usage.accepted_tokens = drafts.accepted;
    }
    // last, so that it does not delay the text
    sequence.save_prefix();
    completion
}

/// Computes a given answer as generating it without a grammar would, with or without drafts, to measure the gain of
/// speculative decoding.
///
/// # Errors
/// As [`generate`].
pub(super) fn replay(
    sequence: &mut Sequence,
    language: &Language<'_>,
    prompt: &Prompt,
    answer: &str,
    speculate: bool,
) -> Result<Usage, ModelError> {
    let start = Instant::now();
    let mut ids = Vec::new();
    language.tokenizer.encode(answer, &mut ids);
    let cancel = crate::Cancel::new();
    let shape = Shape::Text { stop: Vec::new() };
    let request =
        Request { prompt: prompt.clone(), shape, sampling: Sampling::GREEDY, max_tokens: ids.len() + 1, cancel };
    let limit = sequence.context();
    let encoded = language.encode(prompt, limit)?;
    let prompt_tokens = encoded.ids.len();
    if prompt_tokens + ids.len() >= limit {
        return Err(ModelError::TooLong { tokens: prompt_tokens + ids.len(), limit });
    }
    let cached_tokens = sequence.reuse(&encoded);
    sequence.complete(&encoded, &request)?;
    let prefill = start.elapsed();
    let disabled = if speculate { None } else { sequence.drafter.take() };
    let decode_start = Instant::now();
    let mut result = Ok(true);
    for (at, &id) in ids.iter().enumerate() {
        // the cost of choosing a token is included
        std::hint::black_box(Peak::of(sequence.logits()));
        result = sequence.advance(&[id], ids.len() - at, language, &request);
        if result.is_err() {
            break;
        }
    }
    let decode = decode_start.elapsed();
    let DraftStats { drafted, accepted } = sequence.discard_drafts();
    sequence.drafter = disabled.or(sequence.drafter.take());
    result?;
    Ok(Usage {
        prompt_tokens,
        cached_tokens,
        completion_tokens: ids.len(),
        drafted_tokens: drafted,
        accepted_tokens: accepted,
        prefill,
        decode,
        ..Usage::default()
    })
}

fn complete(
    sequence: &mut Sequence,
    language: &Language<'_>,
    request: &Request,
    on: &mut dyn FnMut(&str) -> Flow,
) -> Result<Completion, ModelError> {
    let start = Instant::now();
    let limit = sequence.context();
    let prompt = language.encode(&request.prompt, limit)?;
    let len = prompt.ids.len();
    let mut run = Run::new(language, request, on, request.max_tokens.min(limit - len));
    let cached = sequence.reuse(&prompt);
    let adapted = sequence.is_adapted();
    let usage = Usage { prompt_tokens: len, cached_tokens: cached, adapted, ..Usage::default() };
    let mut ended = if run.room == 0 { Some(Finish::Length) } else { None };
    // tokens that the grammar forces at the beginning are fed apart, so that the prompt's state does not depend on
    // the shape
    if ended.is_none() && !sequence.complete(&prompt, request)? {
        ended = Some(Finish::Cancelled);
    }
    if run.is_shaped() && ended.is_none() {
        ended = run.start_shape()?;
        if ended.is_none() && !run.pending.is_empty() && !sequence.feed(&run.pending, request)? {
            ended = Some(Finish::Cancelled);
        }
    }
    let prefill = start.elapsed();
    let decode_start = Instant::now();
    let finish = loop {
        if let Some(finish) = ended {
            break finish;
        }
        ended = run.step(sequence)?;
    };
    Ok(run.finish(finish, Usage { prefill, decode: decode_start.elapsed(), ..usage }))
}

/// The state of a completion being generated.
pub(super) struct Run<'a> {
    language: &'a Language<'a>,
    request: &'a Request,
    on: &'a mut dyn FnMut(&str) -> Flow,
    emitter: Emitter<'a>,
    sampler: Sampler,
    guide: Option<Guide>,
    tokens: Vec<Token>,
    /// See [`Completion::end`].
    end: Option<f32>,
    /// The number of tokens that may still follow.
    room: usize,
    /// Tokens that are not computed yet.
    pub(super) pending: Vec<u32>,
    /// The time spent in the guide so far ([`Usage::shaping`]).
    shaping: Duration,
}

impl<'a> Run<'a> {
    /// Returns an empty run with room for `room` tokens.
    pub(super) fn new(
        language: &'a Language<'a>,
        request: &'a Request,
        on: &'a mut dyn FnMut(&str) -> Flow,
        room: usize,
    ) -> Self {
        let stops = match &request.shape {
            Shape::Text { stop } => &stop[..],
            _ => &[],
        };
        Self {
            language,
            request,
            on,
            emitter: Emitter::new(stops),
            sampler: Sampler::new(request.sampling),
            guide: None,
            tokens: Vec::new(),
            end: None,
            room,
            pending: Vec::new(),
            shaping: Duration::ZERO,
        }
    }

    fn is_shaped(&self) -> bool {
        !matches!(self.request.shape, Shape::Text { .. })
    }

    /// Ends the run and returns the completion.
    pub(super) fn finish(self, finish: Finish, usage: Usage) -> Completion {
        let completion_tokens = self.tokens.len();
        let Self { mut emitter, tokens, end, on, shaping, .. } = self;
        let rest = emitter.finish();
        if !rest.is_empty() {
            on(rest);
        }
        Completion {
            text: emitter.into_text(),
            tokens,
            end,
            finish,
            usage: Usage { completion_tokens, shaping, ..usage },
        }
    }

    /// Sets up the guide and adds the tokens that it forces first.
    pub(super) fn start_shape(&mut self) -> Result<Option<Finish>, ModelError> {
        self.guide = self.language.grammar.guide(&self.request.shape)?;
        self.take_forced()
    }

    /// Chooses the next token and computes it.
    fn step(&mut self, sequence: &mut Sequence) -> Result<Option<Finish>, ModelError> {
        if self.request.cancel.is_cancelled() {
            return Ok(Some(Finish::Cancelled));
        }
        if let Some(finish) = self.decide(sequence.logits())? {
            return Ok(Some(finish));
        }
        // the last token that fits need not be computed
        if !sequence.advance(&self.pending, self.room.saturating_sub(1), self.language, self.request)? {
            return Ok(Some(Finish::Cancelled));
        }
        Ok(None)
    }

    /// Chooses the next token by these logits, and adds the tokens that the grammar forces after it; all are pending
    /// then.
    pub(super) fn decide(&mut self, logits: &[f32]) -> Result<Option<Finish>, ModelError> {
        let (id, token) = self.choose(logits)?;
        if self.language.ends.contains(&id) {
            self.end = token.logprob;
            return Ok(Some(Finish::Stop));
        }
        self.pending.clear();
        if let Some(guide) = &mut self.guide {
            timed(&mut self.shaping, || guide.accept(id))?;
        }
        match self.take(id, token)? {
            None => self.take_forced(),
            finish => Ok(finish),
        }
    }

    /// Adds the tokens that the grammar forces.
    fn take_forced(&mut self) -> Result<Option<Finish>, ModelError> {
        let (guide, shaping) = (&mut self.guide, &mut self.shaping);
        let forced = guide.as_mut().map(|guide| timed(shaping, || guide.forced())).transpose()?.unwrap_or_default();
        for id in forced {
            let token = self.token(id, None, None);
            if let Some(finish) = self.take(id, token)? {
                return Ok(Some(finish));
            }
        }
        let is_complete = self.guide.as_ref().is_some_and(Guide::is_complete);
        Ok(is_complete.then_some(Finish::Stop))
    }

    /// Adds a token to the completion.
    fn take(&mut self, id: u32, token: Token) -> Result<Option<Finish>, ModelError> {
        if self.room == 0 {
            return Ok(Some(Finish::Length));
        }
        self.room -= 1;
        let (text, stopped) = self.emitter.push(&token.bytes);
        let flow = if text.is_empty() { Flow::Continue } else { (self.on)(text) };
        self.tokens.push(token);
        self.pending.push(id);
        if stopped {
            return Ok(Some(Finish::Stop));
        }
        if flow == Flow::Stop {
            return Ok(Some(Finish::Cancelled));
        }
        let is_complete = self.guide.as_ref().is_some_and(Guide::is_complete);
        // the guide has accepted all forced tokens before the first of them is added, so its end counts only at the
        // last one
        Ok((self.room == 0 && !is_complete).then_some(Finish::Length))
    }

    /// Chooses the next token, with its log-probability.
    fn choose(&mut self, logits: &[f32]) -> Result<(u32, Token), ModelError> {
        let peak = Peak::of(logits);
        if !peak.is_finite() {
            return Err(ModelError::Engine("the model's output is not a number".into()));
        }
        let vocab = self.language.tokenizer.vocab();
        let ends = self.language.ends;
        let is_plain = |id: u32| matches!(vocab.kind(id), Kind::Normal | Kind::UserDefined) || ends.contains(&id);
        let (guide, shaping) = (&mut self.guide, &mut self.shaping);
        let mut allows = |id: u32| guide.as_mut().map_or(Ok(is_plain(id)), |guide| timed(shaping, || guide.allows(id)));
        let id = if self.sampler.is_greedy() && allows(peak.best)? {
            // the usual case: the likeliest token is allowed
            Some(peak.best)
        } else {
            let first_bytes = guide.as_mut().map(|guide| timed(shaping, || guide.first_bytes())).transpose()?;
            let may = |id: u32| first_bytes.as_ref().map_or_else(|| is_plain(id), |bytes| bytes.admit(id, vocab));
            let mut allows =
                |id: u32| guide.as_mut().map_or(Ok(is_plain(id)), |guide| timed(shaping, || guide.allows(id)));
            self.sampler.choose(peak.best_logit, |floor| Ranked::above(floor, logits, may), &mut allows)?
        };
        let id = id.ok_or_else(|| ModelError::Engine("the shape leaves no token to choose".into()))?;
        let token = self.token(id, Some(peak.logprob(logits[id as usize])), Some(peak.runner_up(id)));
        Ok((id, token))
    }

    fn token(&self, id: u32, logprob: Option<f32>, runner_up: Option<f32>) -> Token {
        Token { bytes: self.language.tokenizer.vocab().bytes(id).into_owned(), logprob, runner_up }
    }
}

/// Runs `work`, and adds the time that it takes to `sum`.
fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *sum += start.elapsed();
    result
}
