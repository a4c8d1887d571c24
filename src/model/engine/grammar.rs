//! Shapes of completions as grammars over the vocabulary, by llguidance.

use super::tokenizer::{Kind, Tokenizer};
use crate::model::{ModelError, Shape};
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use std::sync::Arc;
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

/// The vocabulary prepared for grammars: build it once a model.
pub(super) struct Grammar {
    factory: ParserFactory,
    ends: Vec<u32>,
}

/// Our tokenizer in the terms of llguidance.
struct Env {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let mut ids = Vec::new();
            self.tokenizer.encode_exact(text, &mut ids);
            ids
        })
    }
}

impl Grammar {
    /// Builds the trie of all tokens.
    ///
    /// # Errors
    /// [`ModelError::Engine`] if llguidance refuses the vocabulary.
    pub fn build(tokenizer: Arc<Tokenizer>, ends: &[u32]) -> Result<Self, ModelError> {
        /// The longest token that toktrie takes.
        const LONGEST: usize = 1000;
        let vocab = tokenizer.vocab();
        let words: Vec<Vec<u8>> = (0..vocab.len() as u32)
            .map(|id| {
                let bytes = vocab.bytes(id);
                match vocab.kind(id) {
                    Kind::Normal if bytes.len() <= LONGEST => bytes.to_vec(),
                    // The mark keeps a reserved token from ever matching text.
                    Kind::Control | Kind::UserDefined if bytes.len() < LONGEST => {
                        [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat()
                    }
                    _ => Vec::new(),
                }
            })
            .collect();
        let end = ends.first().copied().ok_or_else(|| ModelError::Engine("the model has no end token".into()))?;
        let trie = TokTrie::from(&TokRxInfo::new(vocab.len() as u32, end), &words);
        let trie = if ends.len() > 1 { trie.with_eos_tokens(ends) } else { trie };
        let env: TokEnv = Arc::new(Env { trie, tokenizer });
        // No slices: they make whole masks quicker, which greedy decoding hardly ever asks for, and cost a third of a
        // second to build.
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &[]).map_err(failed)?;
        factory.quiet();
        Ok(Self { factory, ends: ends.to_vec() })
    }

    /// A guide through one completion; `None` for free text.
    ///
    /// # Errors
    /// [`ModelError::BadShape`] with llguidance's words.
    pub fn guide(&self, shape: &Shape) -> Result<Option<Guide>, ModelError> {
        let grammar = match shape {
            Shape::Text { .. } => return Ok(None),
            Shape::Choice(choices) => {
                if choices.is_empty() {
                    return Err(ModelError::BadShape("a choice among nothing".into()));
                }
                let choices: Vec<String> =
                    choices.iter().map(|choice| serde_json::Value::from(choice.as_str()).to_string()).collect();
                TopLevelGrammar::from_lark(format!("start: {}", choices.join(" | ")))
            }
            Shape::Json(schema) => TopLevelGrammar::from_json_schema(compact(schema)?),
            Shape::Lark(lark) => TopLevelGrammar::from_lark(lark.clone()),
        };
        let parser = self.factory.create_parser(grammar).map_err(|error| ModelError::BadShape(error.to_string()))?;
        let mut matcher = Matcher::new(Ok(parser));
        match matcher.get_error() {
            Some(error) => Err(ModelError::BadShape(error)),
            None => {
                // A grammar that matches nothing shows only now.
                matcher.compute_mask_or_eos().map_err(|error| ModelError::BadShape(error.to_string()))?;
                Ok(Some(Guide { matcher, ends: self.ends.clone() }))
            }
        }
    }
}

/// The schema with the spacing that models write by themselves, `{"a": 1, "b": 2}`, and no other: forced spacing costs no
/// decoding, and a small model cannot lose itself in white space. A schema with its own `x-guidance` keeps it.
fn compact(schema: &serde_json::Value) -> Result<serde_json::Value, ModelError> {
    let mut schema = match schema {
        serde_json::Value::Object(map) => map.clone(),
        serde_json::Value::Bool(true) => serde_json::Map::new(),
        other => return Err(ModelError::BadShape(format!("{other} is no JSON schema"))),
    };
    schema.entry("x-guidance").or_insert_with(
        || serde_json::json!({"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": false}),
    );
    Ok(serde_json::Value::Object(schema))
}

/// The state of one completion inside its grammar.
pub(super) struct Guide {
    matcher: Matcher,
    ends: Vec<u32>,
}

impl Guide {
    /// True if `token` may come next. Much cheaper than a whole mask.
    pub fn allows(&mut self, token: u32) -> Result<bool, ModelError> {
        if self.ends.contains(&token) {
            return self.matcher.is_accepting().map_err(failed);
        }
        Ok(self.matcher.validate_tokens(&[token]).map_err(failed)? == 1)
    }

    /// Every token that may come next.
    pub fn mask(&mut self) -> Result<SimpleVob, ModelError> {
        self.matcher.compute_mask_or_eos().map_err(failed)
    }

    /// Takes a chosen token.
    pub fn accept(&mut self, token: u32) -> Result<(), ModelError> {
        self.matcher.consume_token(token).map_err(failed)
    }

    /// Takes, and returns, the tokens that the grammar forces next.
    pub fn forced(&mut self) -> Vec<u32> {
        if self.is_complete() { Vec::new() } else { self.matcher.consume_ff_tokens() }
    }

    /// True once nothing can follow.
    pub fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }
}

fn failed(error: anyhow::Error) -> ModelError {
    ModelError::Engine(format!("the grammar failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn grammar() -> (Arc<Tokenizer>, Grammar) {
        let tokenizer = Arc::new(testing::tiny_tokenizer("qwen2"));
        let ends = [tokenizer.reserved("<|im_end|>").unwrap(), tokenizer.reserved("<|endoftext|>").unwrap()];
        (tokenizer.clone(), Grammar::build(tokenizer, &ends).unwrap())
    }

    fn spell(tokenizer: &Tokenizer, ids: &[u32]) -> String {
        String::from_utf8(ids.iter().flat_map(|&id| tokenizer.vocab().bytes(id).to_vec()).collect()).unwrap()
    }

    #[test]
    fn free_text_needs_no_guide() {
        assert!(grammar().1.guide(&Shape::Text { stop: vec![] }).unwrap().is_none());
    }

    #[test]
    fn what_every_choice_shares_is_forced() {
        let (tokenizer, grammar) = grammar();
        let choices = ["hello \"1\"\n", "hello \"2\"\n"].map(String::from).to_vec();
        let mut guide = grammar.guide(&Shape::Choice(choices)).unwrap().unwrap();
        let forced = guide.forced();
        assert!("hello \"".starts_with(&spell(&tokenizer, &forced)) && !forced.is_empty());
        let mut text = spell(&tokenizer, &forced);
        while !guide.is_complete() {
            let mask = guide.mask().unwrap();
            let token = (0..tokenizer.vocab().len() as u32).rev().find(|&t| mask.is_allowed(t)).unwrap();
            assert!(guide.allows(token).unwrap(), "mask and check agree");
            guide.accept(token).unwrap();
            text += &spell(&tokenizer, &[token]);
            text += &spell(&tokenizer, &guide.forced());
        }
        assert!(text == "hello \"1\"\n" || text == "hello \"2\"\n", "{text:?}");
    }

    #[test]
    fn reserved_tokens_never_match_text() {
        let (tokenizer, grammar) = grammar();
        let mut guide = grammar.guide(&Shape::Lark("start: /(.|\\n)*/".into())).unwrap().unwrap();
        let mask = guide.mask().unwrap();
        for id in 0..tokenizer.vocab().len() as u32 {
            let is_end = guide.ends.contains(&id);
            if tokenizer.vocab().kind(id) != Kind::Normal {
                assert_eq!(mask.is_allowed(id), is_end, "{id}");
            }
        }
        assert!(guide.allows(guide.ends[1]).unwrap(), "any end will do where the grammar may end");
    }

    #[test]
    fn json_is_spaced_as_models_write_it() {
        let (tokenizer, grammar) = grammar();
        let schema = serde_json::json!({
            "type": "object",
            "properties": {"cmd": {"const": "ls"}, "n": {"const": 1}},
            "required": ["cmd", "n"],
            "additionalProperties": false
        });
        let mut guide = grammar.guide(&Shape::Json(schema)).unwrap().unwrap();
        let mut text = String::new();
        while !guide.is_complete() {
            let forced = guide.forced();
            text += &spell(&tokenizer, &forced);
            if forced.is_empty() {
                let mask = guide.mask().unwrap();
                let token = mask.first_bit_set().unwrap() as u32;
                guide.accept(token).unwrap();
                text += &spell(&tokenizer, &[token]);
            }
        }
        assert_eq!(text, r#"{"cmd": "ls", "n": 1}"#);
    }

    #[test]
    fn shapes_that_make_no_sense_are_refused() {
        let (_, grammar) = grammar();
        for shape in [
            Shape::Choice(vec![]),
            Shape::Lark("start: missing_rule".into()),
            Shape::Lark("start: \"unclosed".into()),
            Shape::Lark(String::new()),
            Shape::Json(serde_json::json!("no schema")),
            Shape::Json(serde_json::json!({"type": "no such type"})),
        ] {
            let error = grammar.guide(&shape).map(|_| ()).unwrap_err();
            assert!(matches!(error, ModelError::BadShape(_)), "{shape:?}: {error}");
        }
    }
}
