//! Enforces the shapes of completions as grammars over bytes, with llguidance.
//!
//! llguidance works on a trie of all tokens, which takes a third of a second to build for 151 936 of them. Here it
//! gets a vocabulary of the 256 bytes instead, which is ready at once: a token is allowed if its bytes are, one after
//! the other. Forced text is spelled here with our own tokenizer, to the same result; tests compare both with
//! llguidance's own way. A grammar that counts tokens (`max_tokens`) counts bytes, and reserved tokens cannot be part
//! of a grammar.

use super::tokenizer::{Kind, Tokenizer, Vocab};
use crate::tools::{CALL, CALL_END};
use crate::{ModelError, Shape};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use std::sync::Arc;
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// The parts that all grammars of a model share.
pub(super) struct Grammar {
    factory: ParserFactory,
    tokenizer: Arc<Tokenizer>,
    ends: Vec<u32>,
}

/// A vocabulary of the 256 bytes, each the token with its own number, and an end token.
struct Bytes(TokTrie);

impl Bytes {
    const END: TokenId = 256;

    fn new() -> Self {
        let mut words: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        words.push([&[TokTrie::SPECIAL_TOKEN_MARKER], b"<|end|>".as_slice()].concat());
        Self(TokTrie::from(&TokRxInfo::new(words.len() as u32, Self::END), &words))
    }

    fn ids(bytes: &[u8]) -> Vec<TokenId> {
        bytes.iter().copied().map(TokenId::from).collect()
    }
}

impl TokenizerEnv for Bytes {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        Self::ids(bytes)
    }
}

impl Grammar {
    /// Sets up llguidance, which is fast with this vocabulary.
    ///
    /// # Errors
    /// [`ModelError::Engine`] if llguidance refuses.
    pub fn new(tokenizer: Arc<Tokenizer>, ends: &[u32]) -> Result<Self, ModelError> {
        let env: TokEnv = Arc::new(Bytes::new());
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &[]).map_err(engine_error)?;
        factory.quiet();
        Ok(Self { factory, tokenizer, ends: ends.to_vec() })
    }

    /// Returns a guide for one completion; `None` for free text.
    ///
    /// # Errors
    /// [`ModelError::BadShape`] with llguidance's words.
    pub fn guide(&self, shape: &Shape) -> Result<Option<Guide>, ModelError> {
        let Some(grammar) = grammar_of(shape)? else { return Ok(None) };
        let parser = self.factory.create_parser(grammar).map_err(|error| ModelError::BadShape(error.to_string()))?;
        let mut matcher = Matcher::new(Ok(parser));
        if let Some(error) = matcher.get_error() {
            return Err(ModelError::BadShape(error));
        }
        // a grammar that matches nothing is detected only here
        matcher.compute_mask_or_eos().map_err(|error| ModelError::BadShape(error.to_string()))?;
        let (tokenizer, ends) = (self.tokenizer.clone(), self.ends.clone());
        Ok(Some(Guide { matcher, marks: self.marks(shape), tokenizer, ends, last: None }))
    }
}

impl Grammar {
    /// Returns the tokens of the call marks that occur in this shape, so that the model may write a mark with the
    /// token it was trained with. Otherwise reserved tokens are in no grammar.
    fn marks(&self, shape: &Shape) -> Vec<u32> {
        let Shape::Lark(grammar) = shape else { return Vec::new() };
        let marks = [CALL, CALL_END].into_iter().filter(|mark| grammar.contains(mark));
        marks.filter_map(|mark| self.tokenizer.reserved(mark)).collect()
    }
}

/// Converts the shape to llguidance's grammar; `None` for free text.
fn grammar_of(shape: &Shape) -> Result<Option<TopLevelGrammar>, ModelError> {
    Ok(match shape {
        Shape::Text { .. } => None,
        Shape::Choice(choices) => {
            if choices.is_empty() {
                return Err(ModelError::BadShape("a choice among nothing".into()));
            }
            let choices: Vec<String> =
                choices.iter().map(|choice| serde_json::Value::from(choice.as_str()).to_string()).collect();
            Some(TopLevelGrammar::from_lark(format!("start: {}", choices.join(" | "))))
        }
        Shape::Json(schema) => Some(TopLevelGrammar::from_json_schema(Shape::compact(schema)?)),
        Shape::Lark(lark) => Some(TopLevelGrammar::from_lark(lark.clone())),
    })
}

/// The state of one completion inside its grammar.
pub(super) struct Guide {
    matcher: Matcher,
    /// Reserved tokens that this grammar allows; see [`Grammar::marks`].
    marks: Vec<u32>,
    tokenizer: Arc<Tokenizer>,
    ends: Vec<u32>,
    /// The last accepted token.
    last: Option<u32>,
}

impl Guide {
    /// True if `token` may come next.
    pub fn allows(&mut self, token: u32) -> Result<bool, ModelError> {
        if self.ends.contains(&token) {
            return self.matcher.is_accepting().map_err(engine_error);
        }
        let vocab = self.tokenizer.vocab();
        if vocab.kind(token) != Kind::Normal && !self.marks.contains(&token) {
            return Ok(false);
        }
        accepts(&mut self.matcher, &vocab.bytes(token))
    }

    /// Returns a fast filter by first bytes, which admits all tokens that [`Self::allows`] does, and more.
    pub fn first_bytes(&mut self) -> Result<FirstBytes, ModelError> {
        let mask = self.matcher.compute_mask_or_eos().map_err(engine_error)?;
        let bytes = std::array::from_fn(|byte| mask.is_allowed(byte as u32));
        Ok(FirstBytes { bytes, others: [&self.ends[..], &self.marks].concat() })
    }

    /// Adds a chosen token.
    pub fn accept(&mut self, token: u32) -> Result<(), ModelError> {
        self.last = Some(token);
        self.matcher.consume_tokens(&Bytes::ids(&self.tokenizer.vocab().bytes(token))).map_err(engine_error)
    }

    /// Adds and returns the tokens that the grammar forces next: the forced text as the tokenizer spells it, without
    /// the last tokens that could merge with the text that may follow.
    pub fn forced(&mut self) -> Result<Vec<u32>, ModelError> {
        let forced = if self.is_complete() { Vec::new() } else { self.matcher.compute_ff_tokens() };
        // a matcher that has failed reports the same as a complete one: that it has stopped, and forces nothing
        if let Some(error) = self.matcher.get_error() {
            return Err(engine_error(anyhow::Error::msg(error)));
        }
        if forced.is_empty() {
            return Ok(Vec::new());
        }
        let bytes: Vec<u8> = forced.iter().map(|&byte| byte as u8).collect();
        let mut ids = self.spell(&bytes);
        let undecided = self.undecided(&bytes, &ids)?;
        ids.truncate(ids.len() - undecided);
        for &id in &ids {
            self.accept(id)?;
        }
        Ok(ids)
    }

    /// Tokenizes a text that follows the last token.
    fn spell(&self, bytes: &[u8]) -> Vec<u32> {
        // the split into pieces may depend on the token before
        if let Some(last) = self.last {
            let before = self.tokenizer.vocab().bytes(last);
            let mut ids = self.spell_with_marks(&[&*before, bytes].concat());
            if ids.first() == Some(&last) {
                ids.remove(0);
                return ids;
            }
        }
        self.spell_with_marks(bytes)
    }

    /// Tokenizes a text, with marks as their reserved tokens.
    fn spell_with_marks(&self, bytes: &[u8]) -> Vec<u32> {
        let vocab = self.tokenizer.vocab();
        let place = |&id: &u32| {
            let mark = vocab.bytes(id);
            bytes.windows(mark.len().max(1)).position(|part| part == &*mark).map(|at| (at, id, mark.len()))
        };
        let Some((at, id, len)) = self.marks.iter().filter_map(place).min() else {
            return self.tokenizer.encode_bytes(bytes);
        };
        let mut ids = self.tokenizer.encode_bytes(&bytes[..at]);
        ids.push(id);
        ids.extend(self.spell_with_marks(&bytes[at + len..]));
        ids
    }

    /// Counts the last tokens of `ids`, which spell `forced`, that could be spelled otherwise together with the text
    /// that may follow: a longer token begins with their text, and the grammar accepts the rest of it.
    fn undecided(&mut self, forced: &[u8], ids: &[u32]) -> Result<usize, ModelError> {
        /// Most tokens examined, as in llguidance.
        const LOOKBACK: usize = 4;
        let vocab = self.tokenizer.vocab();
        let tail = ids[ids.len().saturating_sub(LOOKBACK)..].iter().map(|&id| vocab.bytes(id));
        let tail = tail.collect::<Vec<_>>().concat();
        // for each byte whether it may follow, once computed
        let mut may_follow = [None; 256];
        let mut longest = 0;
        for id in 0..vocab.len() as u32 {
            let Some(begin) = vocab.first_byte(id) else { continue };
            // only matches longer than the longest so far matter
            for at in (0..tail.len() - longest).filter(|&at| begin == tail[at]) {
                let word = vocab.bytes(id);
                let Some([first, more @ ..]) = word.strip_prefix(&tail[at..]) else { continue };
                let may = &mut may_follow[usize::from(*first)];
                let begins = match *may {
                    Some(known) => known,
                    None => *may.insert(accepts(&mut self.matcher, &[forced, &[*first]].concat())?),
                };
                if begins && (more.is_empty() || accepts(&mut self.matcher, &[forced, &[*first], more].concat())?) {
                    longest = tail.len() - at;
                    break;
                }
            }
        }
        let mut left = longest;
        Ok(ids
            .iter()
            .rev()
            .take_while(|&&id| {
                let is_open = left > 0;
                left = left.saturating_sub(vocab.bytes(id).len());
                is_open
            })
            .count())
    }

    /// True once no text can follow.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }
}

/// A filter by the first bytes of the tokens that may come next.
pub(super) struct FirstBytes {
    bytes: [bool; 256],
    /// Reserved tokens that may come next.
    others: Vec<u32>,
}

impl FirstBytes {
    /// False if the token cannot come next.
    pub fn admit(&self, token: u32, vocab: &Vocab) -> bool {
        vocab.first_byte(token).is_some_and(|byte| self.bytes[usize::from(byte)]) || self.others.contains(&token)
    }
}

/// True if `bytes`, at least one, may come next.
fn accepts(matcher: &mut Matcher, bytes: &[u8]) -> Result<bool, ModelError> {
    Ok(!bytes.is_empty() && matcher.validate_tokens(&Bytes::ids(bytes)).map_err(engine_error)? == bytes.len())
}

fn engine_error(error: anyhow::Error) -> ModelError {
    ModelError::Engine(format!("the grammar failed: {error}"))
}

#[cfg(test)]
#[path = "grammar_tests.rs"]
mod tests;
