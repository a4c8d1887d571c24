//! The tokens of a vocabulary, by id and by spelling.

use std::borrow::Cow;

/// The kind of a token (`tokenizer.ggml.token_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Kind {
    /// A piece of text.
    Normal,
    /// Structure: ends of messages, roles, padding. Never text.
    Control,
    /// A tag that the model was trained with (`<tool_call>`): text for readers, but never used to encode user text.
    UserDefined,
    /// No token: fills the table up to a round size.
    Unused,
}

/// A flat table of all tokens, with an index by spelling.
///
/// Tokens are stored as the file spells them, in the byte alphabet (see [`push_decoded`]), and decoded when they are
/// read: a process that writes one command needs about a hundred of them.
pub(in crate::engine) struct Vocab {
    /// All tokens' spellings, in id order.
    spellings: Vec<u8>,
    /// The end of each token in `spellings`.
    ends: Vec<u32>,
    kinds: Vec<Kind>,
    /// Open addressing over the spellings of normal tokens: id + 1, 0 for an empty slot.
    index: Vec<u32>,
    /// Control and user-defined tokens.
    reserved: Vec<u32>,
}

impl Vocab {
    /// Builds the table from the file's spellings and types.
    ///
    /// # Errors
    /// In words, if there is no vocabulary, it is larger than any known one, or it would be slow.
    pub fn build(
        tokens: &mut dyn Iterator<Item = &[u8]>,
        kinds: &mut dyn Iterator<Item = i32>,
    ) -> Result<Self, String> {
        /// Most tokens; more than any model has.
        const MAX_TOKENS: usize = (1 << 24) - 1;
        /// Most probes for one token; more than any regular table needs, of which at most two thirds are filled.
        const MAX_PROBES: usize = 10_000;
        let mut vocab = Self {
            spellings: Vec::new(),
            ends: Vec::new(),
            kinds: Vec::new(),
            index: Vec::new(),
            reserved: Vec::new(),
        };
        for token in tokens {
            if vocab.ends.len() == MAX_TOKENS || vocab.spellings.len() + token.len() > u32::MAX as usize {
                return Err("its vocabulary is too large".into());
            }
            let kind = match kinds.next() {
                // no merge can make a token outside the byte alphabet, so it is an added token
                None | Some(1 | 6) if is_spelling(token) => Kind::Normal,
                None | Some(1 | 6 | 4) => Kind::UserDefined,
                Some(5) => Kind::Unused,
                Some(_) => Kind::Control,
            };
            if matches!(kind, Kind::Control | Kind::UserDefined) {
                vocab.reserved.push(vocab.ends.len() as u32);
            }
            vocab.spellings.extend_from_slice(token);
            vocab.ends.push(vocab.spellings.len() as u32);
            vocab.kinds.push(kind);
        }
        if vocab.ends.is_empty() {
            return Err("it has no vocabulary".into());
        }
        vocab.index = vec![0; (vocab.ends.len() * 3 / 2).next_power_of_two().max(16)];
        let mask = vocab.index.len() - 1;
        for id in 0..vocab.ends.len() as u32 {
            if vocab.kind(id) == Kind::Normal {
                let mut slot = hash(vocab.spelling(id)) as usize & mask;
                let mut probes = 0;
                // the first of equal spellings is indexed, so that a million equal ones take no longer than others
                while vocab.index[slot] != 0 && vocab.spelling(vocab.index[slot] - 1) != vocab.spelling(id) {
                    slot = (slot + 1) & mask;
                    probes += 1;
                    if probes > MAX_PROBES {
                        return Err("its vocabulary is made to be slow".into());
                    }
                }
                if vocab.index[slot] == 0 {
                    vocab.index[slot] = id + 1;
                }
            }
        }
        Ok(vocab)
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of a token, or the spelling of a reserved one; empty for an id beyond the table.
    pub fn bytes(&self, id: u32) -> Cow<'_, [u8]> {
        let spelling = self.spelling(id);
        if self.kind(id) != Kind::Normal || spelling.iter().all(is_plain) {
            return Cow::Borrowed(spelling);
        }
        let mut bytes = Vec::with_capacity(spelling.len());
        push_decoded(spelling, &mut bytes);
        Cow::Owned(bytes)
    }

    /// Returns the first byte of a normal token.
    pub fn first_byte(&self, id: u32) -> Option<u8> {
        if self.kind(id) != Kind::Normal {
            return None;
        }
        decode(self.spelling(id)).map(|(byte, _)| byte)
    }

    /// Returns a token as the file spells it.
    pub fn spelling(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.spellings[start as usize..end as usize]
    }

    /// Returns the kind of a token.
    pub fn kind(&self, id: u32) -> Kind {
        self.kinds.get(id as usize).copied().unwrap_or(Kind::Unused)
    }

    /// Returns the normal token with exactly these bytes.
    pub fn normal(&self, bytes: &[u8]) -> Option<u32> {
        self.find_spelling(&spell(bytes))
    }

    /// Returns the normal token that two others spell together.
    pub fn joined(&self, left: u32, right: u32) -> Option<u32> {
        /// Most bytes that are joined on the stack; few tokens are longer.
        const STACK_BYTES: usize = 64;
        let (left, right) = (self.spelling(left), self.spelling(right));
        let len = left.len() + right.len();
        if len > STACK_BYTES {
            return self.find_spelling(&[left, right].concat());
        }
        let mut joined = [0; STACK_BYTES];
        joined[..left.len()].copy_from_slice(left);
        joined[left.len()..len].copy_from_slice(right);
        self.find_spelling(&joined[..len])
    }

    /// Returns the normal token with this spelling.
    pub fn find_spelling(&self, spelling: &[u8]) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut slot = hash(spelling) as usize & mask;
        loop {
            let id = self.index[slot].checked_sub(1)?;
            if self.spelling(id) == spelling {
                return Some(id);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Returns the control or user-defined token with this spelling.
    pub fn reserved(&self, text: &str) -> Option<u32> {
        self.reserved.iter().rev().copied().find(|&id| self.spelling(id) == text.as_bytes())
    }
}

/// Hashes eight bytes at a time, by multiplying and folding: fast for short tokens, and not for hostile keys.
fn hash(bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |h: u64, word: u64| {
        let wide = u128::from(h ^ word) * u128::from(FACTOR);
        wide as u64 ^ (wide >> 64) as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let h = words.iter().fold(bytes.len() as u64, |h, word| fold(h, u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    fold(fold(h, rest), FACTOR) as u32
}

/// Appends the bytes that a token's spelling stands for. Byte-level BPE writes each byte as one printable character:
/// itself if it is printable in Latin-1, else the next of the characters from U+0100 on.
///
/// Returns false if a character is not of that alphabet.
fn push_decoded(spelling: &[u8], out: &mut Vec<u8>) -> bool {
    let mut rest = spelling;
    while let Some((byte, tail)) = decode(rest) {
        out.push(byte);
        rest = tail;
    }
    rest.is_empty()
}

/// True if a token is spelled in the byte alphabet.
pub(super) fn is_spelling(token: &[u8]) -> bool {
    // the usual case: nearly all tokens are an ASCII word, with or without a space before it
    let word = token.strip_prefix("\u{120}".as_bytes()).unwrap_or(token);
    let mut rest = word;
    word.iter().all(is_plain) || {
        while let Some((_, tail)) = decode(rest) {
            rest = tail;
        }
        rest.is_empty()
    }
}

/// True for a byte that stands for itself.
fn is_plain(byte: &u8) -> bool {
    matches!(byte, 0x21..=0x7e)
}

/// Decodes the first byte of a spelling, and returns it with the rest of the spelling.
fn decode(spelling: &[u8]) -> Option<(u8, &[u8])> {
    match spelling {
        [first, rest @ ..] if is_plain(first) => Some((*first, rest)),
        // all other characters of the alphabet are two bytes in UTF-8
        [first @ 0xc2..=0xdf, second @ 0x80..=0xbf, rest @ ..] => {
            Some((byte_of(u32::from(first & 0x1f) << 6 | u32::from(second & 0x3f))?, rest))
        }
        _ => None,
    }
}

/// Spells bytes in the byte alphabet.
fn spell(bytes: &[u8]) -> Vec<u8> {
    let mut spelling = Vec::with_capacity(2 * bytes.len());
    for &byte in bytes {
        match char_of(byte) {
            code @ 0..=0x7f => spelling.push(code as u8),
            code => spelling.extend([0xc0 | (code >> 6) as u8, 0x80 | (code & 0x3f) as u8]),
        }
    }
    spelling
}

/// Returns the byte that a character of the byte alphabet stands for.
fn byte_of(code: u32) -> Option<u8> {
    match code {
        n @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(n as u8),
        // the 68 others in ascending order: 0x00..=0x20, 0x7f..=0xa0, 0xad
        n @ 0x100..=0x120 => Some((n - 0x100) as u8),
        n @ 0x121..=0x142 => Some((n - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// Returns the character that stands for a byte; the inverse of [`byte_of`].
pub(in crate::engine) fn char_of(byte: u8) -> u32 {
    match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => u32::from(byte),
        0..=0x20 => 0x100 + u32::from(byte),
        0x7f..=0xa0 => 0x121 + u32::from(byte - 0x7f),
        0xad => 0x143,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_a_bijection() {
        let char_of = |byte| char::from_u32(char_of(byte)).unwrap();
        let alphabet: std::collections::BTreeSet<char> = (0..=255).map(char_of).collect();
        assert_eq!(alphabet.len(), 256);
        assert!((0..=255).all(|b| byte_of(char_of(b) as u32) == Some(b)));
        assert!((0..=255).all(|b| String::from_utf8(spell(&[b])).unwrap() == String::from(char_of(b))));
        // the `tokenizers` crate is the oracle for the alphabet
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
        assert_eq!(&*vocab.bytes(1), b" a");
        assert_eq!(vocab.normal(b" a"), Some(1));
        assert_eq!(vocab.normal(b"a"), Some(0), "the first of two equal spellings");
        assert_eq!(vocab.normal(b"<|end|>"), None, "a control token has no spelling as text");
        assert_eq!(vocab.reserved("<|end|>"), Some(2));
        assert_eq!(vocab.reserved("[PAD]"), None);
        assert_eq!(vocab.kind(4), Kind::UserDefined, "outside the byte alphabet");
        assert_eq!(&*vocab.bytes(99), b"");
        assert_eq!([0, 1, 2, 99].map(|id| vocab.first_byte(id)), [Some(b'a'), Some(b' '), None, None]);
        assert_eq!(&*vocab.bytes(2), b"<|end|>");
        assert_eq!(vocab.kind(99), Kind::Unused);
    }

    #[test]
    fn a_million_equal_spellings_are_read_quickly() {
        let build =
            |token: &'static [u8]| Vocab::build(&mut std::iter::repeat_n(token, 1_000_000), &mut std::iter::empty());
        assert_eq!(build(b"").unwrap().len(), 1_000_000);
        assert_eq!(build(b"a").unwrap().normal(b"a"), Some(0));
    }

    #[test]
    fn an_empty_vocabulary_is_an_error() {
        assert!(Vocab::build(&mut std::iter::empty(), &mut std::iter::empty()).is_err());
    }
}
