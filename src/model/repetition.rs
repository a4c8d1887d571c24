//! A small model that has lost the thread finds no end: it says the same over and over.

/// True if the text ends in a passage of at most `longest` bytes over and over, in as many bytes as `span` says for its length.
pub fn goes_round(text: &str, longest: usize, span: impl Fn(usize) -> usize) -> bool {
    let bytes = text.as_bytes();
    let repeats = |period: usize| {
        let tail = bytes.len().checked_sub(span(period)).map(|from| &bytes[from..]);
        // each byte is the one a period before it
        tail.is_some_and(|tail| tail.iter().zip(&tail[period..]).all(|(a, b)| a == b))
    };
    (1..=longest).any(repeats)
}
