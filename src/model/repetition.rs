//! Recognizes a text that repeats itself: a small model that fails to end its answer says the same passage over and
//! over.

/// True if the text ends in repetitions of a passage of at most `longest` bytes. They must fill the last `span(length)`
/// bytes for a passage of `length` bytes.
pub fn ends_in_repetition(text: &str, longest: usize, span: impl Fn(usize) -> usize) -> bool {
    let bytes = text.as_bytes();
    let repeats = |period: usize| {
        let tail = bytes.len().checked_sub(span(period)).map(|from| &bytes[from..]);
        // each byte equals the one a period before it
        tail.is_some_and(|tail| tail.iter().zip(&tail[period..]).all(|(a, b)| a == b))
    };
    (1..=longest).any(repeats)
}
