//! The tokens of a vocabulary as bytes, by id and by spelling.

/// What a token is for (`tokenizer.ggml.token_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model::engine) enum Kind {
    /// A piece of text.
    Normal,
    /// Structure: ends of turns, roles, padding. Never text.
    Control,
    /// A tag that a model was taught (`<tool_call>`): text to read, but never the spelling of user text.
    UserDefined,
    /// No token at all: fills the table up to a round size.
    Unused,
}

/// Flat table of all tokens, with an index by spelling.
pub(in crate::model::engine) struct Vocab {
    /// All tokens' bytes, in id order.
    bytes: Vec<u8>,
    /// Where each token ends in `bytes`.
    ends: Vec<u32>,
    kinds: Vec<Kind>,
    /// Open addressing over the bytes of normal tokens: id + 1, 0 for an empty slot.
    index: Vec<u32>,
}

impl Vocab {
    /// Builds the table from the file's spellings and types.
    ///
    /// # Errors
    /// A sentence, if there is no vocabulary or it is larger than any known one.
    pub fn build(
        tokens: &mut dyn Iterator<Item = &[u8]>,
        kinds: &mut dyn Iterator<Item = i32>,
    ) -> Result<Self, String> {
        /// toktrie keeps 24 bits for an id.
        const MOST: usize = (1 << 24) - 1;
        let mut vocab = Self { bytes: Vec::new(), ends: Vec::new(), kinds: Vec::new(), index: Vec::new() };
        for token in tokens {
            if vocab.ends.len() == MOST || vocab.bytes.len() + token.len() > u32::MAX as usize {
                return Err("its vocabulary is too large".into());
            }
            let mut kind = match kinds.next() {
                None | Some(1 | 6) => Kind::Normal,
                Some(4) => Kind::UserDefined,
                Some(5) => Kind::Unused,
                Some(_) => Kind::Control,
            };
            let start = vocab.bytes.len();
            if kind == Kind::Normal && !push_decoded(token, &mut vocab.bytes) {
                // Not spelled in the byte alphabet, so no merge can make it: an added token after all.
                vocab.bytes.truncate(start);
                kind = Kind::UserDefined;
            }
            if kind != Kind::Normal {
                vocab.bytes.extend_from_slice(token);
            }
            vocab.ends.push(vocab.bytes.len() as u32);
            vocab.kinds.push(kind);
        }
        if vocab.ends.is_empty() {
            return Err("it has no vocabulary".into());
        }
        vocab.index = vec![0; (vocab.ends.len() * 3 / 2).next_power_of_two().max(16)];
        let mask = vocab.index.len() - 1;
        for id in 0..vocab.ends.len() as u32 {
            if vocab.kind(id) == Kind::Normal {
                let mut slot = hash(vocab.bytes(id)) as usize & mask;
                while vocab.index[slot] != 0 {
                    slot = (slot + 1) & mask;
                }
                vocab.index[slot] = id + 1;
            }
        }
        Ok(vocab)
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of a token; the spelling of a reserved one; nothing for an id beyond the table.
    pub fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..end as usize]
    }

    /// What a token is for.
    pub fn kind(&self, id: u32) -> Kind {
        self.kinds.get(id as usize).copied().unwrap_or(Kind::Unused)
    }

    /// The normal token with exactly these bytes.
    pub fn normal(&self, bytes: &[u8]) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut slot = hash(bytes) as usize & mask;
        loop {
            match self.index[slot] {
                0 => return None,
                id if self.bytes(id - 1) == bytes => return Some(id - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// The control or user-defined token with this spelling.
    pub fn reserved(&self, text: &str) -> Option<u32> {
        (0..self.len() as u32)
            .rev()
            .find(|&id| matches!(self.kind(id), Kind::Control | Kind::UserDefined) && self.bytes(id) == text.as_bytes())
    }
}

/// Multiplies and folds eight bytes at a time: quick and good enough for a table whose keys are no one's secret.
fn hash(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut h = bytes.len() as u64 ^ K;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        h = fold(h ^ u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
    }
    let mut tail = [0u8; 8];
    tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    fold(h ^ u64::from_le_bytes(tail))
}

fn fold(x: u64) -> u64 {
    let wide = u128::from(x) * 0xd6e8_feb8_6659_fd93;
    (wide as u64) ^ ((wide >> 64) as u64)
}

/// Appends the bytes that a token's spelling stands for. Byte-level BPE writes each byte as one printable character:
/// itself where it is printable in Latin-1, else the next of the characters from U+0100 on.
///
/// Returns false if a character is not of that alphabet.
pub(super) fn push_decoded(token: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(token) = std::str::from_utf8(token) else { return false };
    for c in token.chars() {
        match byte_of(c) {
            Some(byte) => out.push(byte),
            None => return false,
        }
    }
    true
}

/// The byte that a character of the byte alphabet stands for.
fn byte_of(c: char) -> Option<u8> {
    match c as u32 {
        n @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(n as u8),
        // The 68 others in ascending order: 0x00..=0x20, 0x7f..=0xa0, 0xad.
        n @ 0x100..=0x120 => Some((n - 0x100) as u8),
        n @ 0x121..=0x142 => Some((n - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The character that stands for a byte: the inverse of [`byte_of`].
#[cfg(test)]
pub(in crate::model::engine) fn char_of(byte: u8) -> char {
    let n = match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u32::from(byte),
        0..=0x20 => 0x100 + u32::from(byte),
        0x7f..=0xa0 => 0x121 + u32::from(byte - 0x7f),
        0xad => 0x143,
    };
    char::from_u32(n).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_a_bijection() {
        let alphabet: std::collections::BTreeSet<char> = (0..=255).map(char_of).collect();
        assert_eq!(alphabet.len(), 256);
        assert!((0..=255).all(|b| byte_of(char_of(b)) == Some(b)));
        // The `tokenizers` crate is the oracle for the alphabet itself.
        let oracle: std::collections::BTreeSet<char> =
            tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet().into_iter().collect();
        assert_eq!(alphabet, oracle);
        assert_eq!(char_of(b' '), 'Ġ');
        assert_eq!(char_of(b'\n'), 'Ċ');
    }

    #[test]
    fn tokens_are_found_by_id_and_by_spelling() {
        let tokens: [&[u8]; 6] = ["a".as_bytes(), "Ġa".as_bytes(), b"<|end|>", b"[PAD]", "日".as_bytes(), b"a"];
        let kinds = [1, 1, 3, 5, 1];
        let vocab = Vocab::build(&mut tokens.into_iter(), &mut kinds.into_iter()).unwrap();
        assert_eq!(vocab.len(), 6);
        assert_eq!(vocab.bytes(1), b" a");
        assert_eq!(vocab.normal(b" a"), Some(1));
        assert_eq!(vocab.normal(b"a"), Some(0), "the first of two equal spellings");
        assert_eq!(vocab.normal(b"<|end|>"), None, "a control token has no spelling as text");
        assert_eq!(vocab.reserved("<|end|>"), Some(2));
        assert_eq!(vocab.reserved("[PAD]"), None);
        assert_eq!(vocab.kind(4), Kind::UserDefined, "outside the byte alphabet");
        assert_eq!(vocab.bytes(99), b"");
        assert_eq!(vocab.kind(99), Kind::Unused);
    }

    #[test]
    fn an_empty_vocabulary_is_an_error() {
        assert!(Vocab::build(&mut std::iter::empty(), &mut std::iter::empty()).is_err());
    }
}
