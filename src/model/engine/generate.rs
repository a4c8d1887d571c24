//! The generation loop: prompt in, tokens chosen one by one under the shape, completion out.

use super::backend::{Backend, LaneToken};
use super::detokenize::Emitter;
use super::grammar::{Grammar, Guide};
use super::prefix::Store;
use super::sample::{Peak, Ranked, Sampler};
use super::speculate::{DraftStats, Drafter, Known, Phrases};
use super::template::{Encoded, Template};
use super::tokenizer::{Kind, Tokenizer};
use crate::{Completion, Finish, Flow, ModelError, Prompt, Request, Sampling, Shape, Token, Usage};
use std::time::{Duration, Instant};

/// What generation needs to know of a model besides its forward pass.
pub(super) struct Language<'a> {
    pub tokenizer: &'a Tokenizer,
    pub template: &'a Template,
    /// Tokens that end the turn.
    pub ends: &'a [u32],
    /// What guesses are made from besides the conversation.
    pub phrases: &'a Phrases,
    /// What grammars share.
    pub grammar: &'a Grammar,
}

impl Language<'_> {
    /// The prompt in tokens, of which there must be fewer than `limit`.
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

/// One sequence: a forward pass and the tokens whose state it holds.
///
/// How a batch is rounded depends on its length. So that an answer does not depend on what was asked before, a stable
/// beginning is always a batch of its own, whether it is computed now, was so for another request, or comes from disk, and
/// what is behind it is reused as a whole or not at all.
pub(super) struct Sequence {
    backend: Box<dyn Backend>,
    tokens: Vec<u32>,
    /// How many of the tokens held are a stable beginning, computed by itself.
    prefix_len: usize,
    /// True if what is held is a part of a stable beginning whose caller ran out of time.
    partial_prefix: bool,
    /// Where stable beginnings are kept.
    store: Option<Store>,
    /// True if the stable beginning is new to the store.
    is_new: bool,
    /// The last prompt with a stable beginning: how many tokens it has, and the logits after it.
    prompt: Option<(usize, Vec<f32>)>,
    /// True while nothing is computed behind that prompt: its logits are those to go on from.
    is_repeated: bool,
    /// How many of the tokens held are certain; the others are guesses.
    verified: usize,
    /// Where the last burst began.
    draft_from: usize,
    /// None where nothing is guessed.
    guesser: Option<Drafter>,
    /// True if what is held is computed with the adapter.
    is_adapted: bool,
}

impl Sequence {
    /// An empty sequence.
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
            guesser: speculate.then(Drafter::default),
            is_adapted: false,
        }
    }

    /// The forward pass.
    pub fn backend(&mut self) -> &mut dyn Backend {
        self.cut(0);
        &mut *self.backend
    }

    /// The most tokens it takes.
    pub fn context(&self) -> usize {
        self.backend.context()
    }

    /// What computes.
    pub fn describe(&self) -> String {
        self.backend.describe()
    }

    /// True if the last prompt was computed with an adapter.
    pub(super) fn is_adapted(&self) -> bool {
        self.is_adapted
    }

    /// Has all that comes computed with the adapter, if there is one, or without it. What is held of the other is forgotten.
    pub(super) fn adapt(&mut self, on: bool) {
        let on = on && self.backend.adapter().is_some();
        if on != self.is_adapted {
            self.cut(0);
            self.backend.adapt(on);
            self.is_adapted = on;
        }
    }

    /// Tells the adapter in use apart from others; empty without one.
    fn adapter_identity(&self) -> String {
        let adapter = if self.is_adapted { self.backend.adapter() } else { None };
        adapter.map(|adapter| adapter.identity().to_owned()).unwrap_or_default()
    }

    /// Keeps, or restores, what it can of the prompt's state; returns how many tokens that are. All of them only if the logits
    /// after the last one are known, too: further completions of one prompt read nothing.
    pub(super) fn reuse(&mut self, prompt: &Encoded) -> usize {
        let Encoded { ids, stable, adapted } = prompt;
        self.adapt(*adapted);
        let begun = std::mem::take(&mut self.partial_prefix);
        self.is_repeated = false;
        let common = self.tokens.iter().zip(ids).take_while(|(a, b)| a == b).count();
        if *stable == 0 || !self.backend.is_resumable() {
            return self.cut(common.min(ids.len().saturating_sub(1)));
        }
        if self.prefix_len == *stable && common >= *stable {
            self.is_repeated = common == ids.len() && self.prompt.as_ref().is_some_and(|(len, _)| *len == common);
            return self.cut(if self.is_repeated { ids.len() } else { *stable });
        }
        let stable = &ids[..*stable];
        if begun && stable.starts_with(&self.tokens) {
            // Whole batches of it are held, and `complete` goes on behind them: on a slow machine each call would otherwise
            // run out of time where the one before did.
            self.partial_prefix = true;
            return self.tokens.len();
        }
        self.cut(0);
        let adapter = self.adapter_identity();
        if self.store.as_ref().is_some_and(|store| store.load(stable, &adapter, &mut *self.backend)) {
            self.tokens.extend_from_slice(stable);
            self.prefix_len = stable.len();
        }
        self.prefix_len
    }

    /// The most continuations computed together; see [`Backend::lanes`].
    pub(super) fn lanes(&self) -> usize {
        self.backend.lanes()
    }

    /// Computes one token each of several continuations of what is held; see [`Backend::feed_lanes`].
    pub(super) fn feed_lanes(
        &mut self,
        tokens: &[LaneToken],
        room: usize,
        request: &Request,
    ) -> Result<bool, ModelError> {
        self.backend.feed_lanes(tokens, room, &request.cancel)
    }

    /// Lets a continuation begin as another does; see [`Backend::copy_lane`].
    pub(super) fn copy_lane(&mut self, from: usize, to: usize, steps: usize, room: usize) {
        self.backend.copy_lane(from, to, steps, room);
    }

    /// The logits after the `row`th token of the last [`Self::feed_lanes`].
    pub(super) fn logits_of_lane(&mut self, row: usize) -> &[f32] {
        self.backend.logits_at(row)
    }

    /// Makes room for sequences beside this one; see [`Backend::open_slots`].
    pub(super) fn open_slots(&mut self, count: usize, len: usize) -> bool {
        self.backend.open_slots(count, len)
    }

    /// Computes tokens of the sequences beside this one; see [`Backend::feed_slots`].
    pub(super) fn feed_slots(&mut self, tokens: &[LaneToken], scored: usize) -> Result<(), ModelError> {
        self.backend.feed_slots(tokens, scored)
    }

    /// Lets a sequence beside this one begin as another does; see [`Backend::copy_slot`].
    pub(super) fn copy_slot(&mut self, from: usize, to: usize, len: usize) {
        self.backend.copy_slot(from, to, len);
    }

    /// The logits after the `row`th of the scored tokens of the last [`Self::feed_slots`].
    pub(super) fn logits_of_slot(&mut self, row: usize) -> &[f32] {
        self.backend.logits_at(row)
    }

    /// Forgets what comes after the first `len` tokens, and more where the forward pass cannot stop there; returns what is
    /// left.
    fn cut(&mut self, len: usize) -> usize {
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

    /// Computes what `reuse` has left of the prompt; false if cancelled.
    pub(super) fn complete(&mut self, prompt: &Encoded, request: &Request) -> Result<bool, ModelError> {
        let Encoded { ids, stable, .. } = prompt;
        if (self.tokens.is_empty() || self.partial_prefix) && *stable > 0 && self.backend.is_resumable() {
            let whole = self.feed(&ids[self.tokens.len()..*stable], request)?;
            self.partial_prefix = !whole && !self.tokens.is_empty();
            if !whole {
                return Ok(false);
            }
            (self.prefix_len, self.is_new) = (*stable, true);
        }
        if self.is_repeated {
            return Ok(true);
        }
        let whole = self.feed(&ids[self.tokens.len()..], request)?;
        if whole && *stable > 0 && self.backend.is_resumable() {
            self.prompt = Some((ids.len(), self.logits().to_vec()));
        }
        Ok(whole)
    }

    /// Stores a stable beginning that is new.
    fn keep(&mut self) {
        if std::mem::take(&mut self.is_new)
            && let Some(store) = &self.store
        {
            store.save(&self.tokens[..self.prefix_len], &self.adapter_identity(), &*self.backend);
        }
    }

    /// Appends tokens; false if cancelled.
    fn feed(&mut self, ids: &[u32], request: &Request) -> Result<bool, ModelError> {
        let before = self.tokens.len();
        self.is_repeated = false;
        let result = self.backend.feed(ids, &request.cancel);
        // After a failure or a cancelled call part of them may be held.
        let got = self.backend.len().saturating_sub(before).min(ids.len());
        self.tokens.extend_from_slice(&ids[..got]);
        (self.verified, self.draft_from) = (self.tokens.len(), self.tokens.len().saturating_sub(1));
        result
    }

    /// The logits after the last certain token.
    pub(super) fn logits(&mut self) -> &[f32] {
        if let Some((_, logits)) = self.prompt.as_ref().filter(|_| self.is_repeated) {
            return logits;
        }
        self.backend.logits_at(self.verified - 1 - self.draft_from)
    }

    /// Makes `ids` the next certain tokens and computes what follows them, along with guesses at what may follow further,
    /// at most `room` of them; false if cancelled. What has been guessed right is there already.
    fn advance(
        &mut self,
        ids: &[u32],
        room: usize,
        language: &Language<'_>,
        request: &Request,
    ) -> Result<bool, ModelError> {
        let most = self.backend.draft_window();
        self.is_repeated = false;
        let Some(guesser) = self.guesser.as_mut().filter(|_| ids.len() <= most) else {
            self.cut(self.verified);
            return self.feed(ids, request);
        };
        let guessed = &self.tokens[self.verified..];
        let right = guessed.iter().zip(ids).take_while(|(a, b)| a == b).count();
        guesser.learn(right, right < ids.len().min(guessed.len()));
        self.verified += right;
        let ids = &ids[right..];
        if ids.is_empty() {
            return Ok(true);
        }
        let mut text = self.tokens[..self.verified].to_vec();
        text.extend_from_slice(ids);
        let free = (most - ids.len()).min(room).min(self.backend.context() - text.len());
        let Language { tokenizer, phrases, ends, .. } = *language;
        let known = Known { text: &text, stable: self.prefix_len, phrases, tokenizer, ends };
        let guess = guesser.guess(&known, free);
        text.extend(guess);
        self.cut(self.verified);
        self.draft_from = self.verified;
        self.verified += ids.len();
        let fed = self.backend.feed_drafts(&text[self.draft_from..], &request.cancel);
        text.truncate(self.backend.len());
        self.verified = self.verified.min(text.len());
        self.tokens = text;
        fed
    }

    /// Forgets the guesses that nobody has confirmed.
    fn settle(&mut self) -> DraftStats {
        self.cut(self.verified);
        self.guesser.as_mut().map(Drafter::count).unwrap_or_default()
    }
}

/// Continues the prompt to the end of the shape, the turn, the budget or the caller's patience.
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
    let guesses = sequence.settle();
    if let Ok(completion) = &mut completion {
        completion.usage.drafted_tokens = guesses.drafted;
        completion.usage.accepted_tokens = guesses.accepted;
    }
    // Last, so that no word waits for it; the end of the answer does, once for each new beginning.
    sequence.keep();
    completion
}

/// Computes an answer that is known already, as generating it would without a grammar, with guesses or one token at a
/// time: what guesses are worth on it.
///
/// # Errors
/// As [`generate`].
pub(super) fn replay(
    sequence: &mut Sequence,
    language: &Language<'_>,
    prompt: &Prompt,
    answer: &str,
    guessing: bool,
) -> Result<Usage, ModelError> {
    let began = Instant::now();
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
    let prefill = began.elapsed();
    let resting = if guessing { None } else { sequence.guesser.take() };
    let decoding = Instant::now();
    let mut result = Ok(true);
    for (at, &id) in ids.iter().enumerate() {
        // What choosing costs is part of it. The end of the turn is chosen after the last token, and not computed.
        std::hint::black_box(Peak::of(sequence.logits()));
        result = sequence.advance(&[id], ids.len() - at, language, &request);
        if result.is_err() {
            break;
        }
    }
    let decode = decoding.elapsed();
    let DraftStats { drafted, accepted } = sequence.settle();
    sequence.guesser = resting.or(sequence.guesser.take());
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
    let began = Instant::now();
    let limit = sequence.context();
    let prompt = language.encode(&request.prompt, limit)?;
    let len = prompt.ids.len();
    let mut run = Run::new(language, request, on, request.max_tokens.min(limit - len));
    let cached = sequence.reuse(&prompt);
    let adapted = sequence.is_adapted();
    let usage = Usage { prompt_tokens: len, cached_tokens: cached, adapted, ..Usage::default() };
    let mut ended = if run.room == 0 { Some(Finish::Length) } else { None };
    // What the grammar forces at the very beginning does not ride along: the prompt's state does not depend on the shape.
    if ended.is_none() && !sequence.complete(&prompt, request)? {
        ended = Some(Finish::Cancelled);
    }
    if run.is_shaped() && ended.is_none() {
        ended = run.start_shape()?;
        if ended.is_none() && !run.pending.is_empty() && !sequence.feed(&run.pending, request)? {
            ended = Some(Finish::Cancelled);
        }
    }
    let prefill = began.elapsed();
    let decoding = Instant::now();
    let finish = loop {
        if let Some(finish) = ended {
            break finish;
        }
        ended = run.step(sequence)?;
    };
    Ok(run.finish(finish, Usage { prefill, decode: decoding.elapsed(), ..usage }))
}

/// A completion under way.
pub(super) struct Run<'a> {
    language: &'a Language<'a>,
    request: &'a Request,
    on: &'a mut dyn FnMut(&str) -> Flow,
    emitter: Emitter<'a>,
    sampler: Sampler,
    guide: Option<Guide>,
    tokens: Vec<Token>,
    /// What the model found of ending where it ended ([`Completion::end`]).
    end: Option<f32>,
    /// How many tokens may still come.
    room: usize,
    /// Tokens that are not computed yet.
    pub(super) pending: Vec<u32>,
    /// What the guide has taken so far ([`Usage::shaping`]).
    shaping: Duration,
}

impl<'a> Run<'a> {
    /// One that has nothing yet, and room for so many tokens.
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

    /// The completion.
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

    /// Sets up the guide and takes what it forces first.
    pub(super) fn start_shape(&mut self) -> Result<Option<Finish>, ModelError> {
        self.guide = self.language.grammar.guide(&self.request.shape)?;
        self.take_forced()
    }

    /// Chooses the next token, and computes on.
    fn step(&mut self, sequence: &mut Sequence) -> Result<Option<Finish>, ModelError> {
        if self.request.cancel.is_cancelled() {
            return Ok(Some(Finish::Cancelled));
        }
        if let Some(finish) = self.decide(sequence.logits())? {
            return Ok(Some(finish));
        }
        // The last token that there is room for need not be computed.
        if !sequence.advance(&self.pending, self.room.saturating_sub(1), self.language, self.request)? {
            return Ok(Some(Finish::Cancelled));
        }
        Ok(None)
    }

    /// Chooses the next token out of these logits, and takes what the grammar forces behind it: they are pending then.
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

    /// Takes the tokens that the grammar forces.
    fn take_forced(&mut self) -> Result<Option<Finish>, ModelError> {
        let (guide, shaping) = (&mut self.guide, &mut self.shaping);
        let forced = guide.as_mut().map(|guide| timed(shaping, || guide.forced())).transpose()?.unwrap_or_default();
        for id in forced {
            let token = self.token(id, None, None);
            if let Some(finish) = self.take(id, token)? {
                return Ok(Some(finish));
            }
        }
        // Complete without any choice left to make.
        let complete = self.guide.as_ref().is_some_and(Guide::is_complete);
        Ok(complete.then_some(Finish::Stop))
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
        let complete = self.guide.as_ref().is_some_and(Guide::is_complete);
        // The last forced token completes the grammar before it is taken: only the last one taken may say so.
        Ok((self.room == 0 && !complete).then_some(Finish::Length))
    }

    /// The next token, as the model scored it.
    fn choose(&mut self, logits: &[f32]) -> Result<(u32, Token), ModelError> {
        let peak = Peak::of(logits);
        if !peak.is_sound() {
            return Err(ModelError::Engine("the model's output is not a number".into()));
        }
        let vocab = self.language.tokenizer.vocab();
        let ends = self.language.ends;
        let speaks = |id: u32| matches!(vocab.kind(id), Kind::Normal | Kind::UserDefined) || ends.contains(&id);
        let (guide, shaping) = (&mut self.guide, &mut self.shaping);
        let mut allows = |id: u32| guide.as_mut().map_or(Ok(speaks(id)), |guide| timed(shaping, || guide.allows(id)));
        let id = if self.sampler.is_greedy() && allows(peak.best)? {
            // Nearly always.
            Some(peak.best)
        } else {
            let beginnings = guide.as_mut().map(|guide| timed(shaping, || guide.beginnings())).transpose()?;
            let may = |id: u32| beginnings.as_ref().map_or_else(|| speaks(id), |begin| begin.admit(id, vocab));
            let mut allows =
                |id: u32| guide.as_mut().map_or(Ok(speaks(id)), |guide| timed(shaping, || guide.allows(id)));
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

/// Does `work`, and adds the time that it takes.
fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    *sum += began.elapsed();
    result
}
