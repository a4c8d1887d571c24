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
    /// Control and user-defined tokens.
    reserved: Vec<u32>,
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
        let mut vocab =
            Self { bytes: Vec::new(), ends: Vec::new(), kinds: Vec::new(), index: Vec::new(), reserved: Vec::new() };
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
            if matches!(kind, Kind::Control | Kind::UserDefined) {
                vocab.reserved.push(vocab.ends.len() as u32);
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
                let mut slot = hash(vocab.bytes(id).iter()) as usize & mask;
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
        self.normal_joined(bytes, &[])
    }

    /// The normal token that `left` and `right` spell together.
    pub fn normal_joined(&self, left: &[u8], right: &[u8]) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut slot = hash(left.iter().chain(right)) as usize & mask;
        loop {
            let id = self.index[slot].checked_sub(1)?;
            let bytes = self.bytes(id);
            if bytes.len() == left.len() + right.len() && bytes.starts_with(left) && bytes.ends_with(right) {
                return Some(id);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The control or user-defined token with this spelling.
    pub fn reserved(&self, text: &str) -> Option<u32> {
        (0..self.len() as u32)
            .rev()
            .find(|&id| matches!(self.kind(id), Kind::Control | Kind::UserDefined) && self.bytes(id) == text.as_bytes())
    }
}

/// FNV-1a with a final mix: tokens are short, and the keys are no one's secret.
fn hash<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    let h = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, &byte| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (h ^ (h >> 29)) as u32 ^ (h >> 47) as u32
}

/// Appends the bytes that a token's spelling stands for. Byte-level BPE writes each byte as one printable character:
/// itself where it is printable in Latin-1, else the next of the characters from U+0100 on.
///
/// Returns false if a character is not of that alphabet.
pub(super) fn push_decoded(token: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = token;
    while !rest.is_empty() {
        // Nearly all of every vocabulary stands for itself.
        let plain = rest.iter().take_while(|b| matches!(b, 0x21..=0x7e)).count();
        out.extend_from_slice(&rest[..plain]);
        match &rest[plain..] {
            [] => return true,
            // All others of the alphabet are two bytes of UTF-8.
            [first @ 0xc2..=0xdf, second @ 0x80..=0xbf, tail @ ..] => {
                let Some(byte) = byte_of(u32::from(first & 0x1f) << 6 | u32::from(second & 0x3f)) else { return false };
                out.push(byte);
                rest = tail;
            }
            _ => return false,
        }
    }
    true
}

/// The byte that a character of the byte alphabet stands for.
fn byte_of(code: u32) -> Option<u8> {
    match code {
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
        assert!((0..=255).all(|b| byte_of(char_of(b) as u32) == Some(b)));
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
