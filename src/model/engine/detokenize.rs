//! Turns the bytes of tokens into text: handles stop strings, and characters that span tokens.

/// The text of a completion as it grows.
pub(super) struct Emitter<'a> {
    stops: Vec<&'a [u8]>,
    /// Bytes that are not text yet, because a character or a stop string may be incomplete.
    pending: Vec<u8>,
    text: String,
}

impl<'a> Emitter<'a> {
    /// Returns an emitter whose text ends before the first of `stops`. Empty stop strings are ignored.
    pub fn new(stops: &'a [String]) -> Self {
        let stops = stops.iter().filter(|s| !s.is_empty()).map(|s| s.as_bytes()).collect();
        Self { stops, pending: Vec::new(), text: String::new() }
    }

    /// Adds a token's bytes. Returns the text that is final now, and whether a stop string has ended it.
    pub fn push(&mut self, bytes: &[u8]) -> (&str, bool) {
        let from = self.text.len();
        self.pending.extend_from_slice(bytes);
        let stop =
            (0..self.pending.len()).find(|&at| self.stops.iter().any(|stop| self.pending[at..].starts_with(stop)));
        if let Some(at) = stop {
            self.pending.truncate(at);
            self.release(at, true);
            self.pending.clear();
            return (&self.text[from..], true);
        }
        // the possible beginning of a stop string waits
        let wait = (0..self.pending.len())
            .find(|&at| self.stops.iter().any(|stop| stop.starts_with(&self.pending[at..])))
            .unwrap_or(self.pending.len());
        self.release(wait, false);
        (&self.text[from..], false)
    }

    /// Ends the text, and returns the bytes that still waited as text.
    pub fn finish(&mut self) -> &str {
        let from = self.text.len();
        self.release(self.pending.len(), true);
        &self.text[from..]
    }

    /// Returns the whole text.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Moves the first `count` pending bytes to the text; invalid UTF-8 becomes U+FFFD. An incomplete character at
    /// their end waits unless `end`.
    fn release(&mut self, count: usize, end: bool) {
        let mut used = 0;
        while used < count {
            match std::str::from_utf8(&self.pending[used..count]) {
                Ok(text) => {
                    self.text.push_str(text);
                    used = count;
                }
                Err(error) => {
                    let valid = used + error.valid_up_to();
                    self.text.push_str(&String::from_utf8_lossy(&self.pending[used..valid]));
                    match error.error_len() {
                        None if !end => {
                            used = valid;
                            break;
                        }
                        length => {
                            self.text.push('\u{fffd}');
                            used = length.map_or(count, |length| valid + length);
                        }
                    }
                }
            }
        }
        self.pending.drain(..used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds pieces; returns the streamed texts, whether a stop string ended them, and the whole text.
    fn stream(stops: &[&str], pieces: &[&[u8]]) -> (Vec<String>, bool, String) {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let mut emitter = Emitter::new(&stops);
        let mut out = Vec::new();
        for piece in pieces {
            let (text, stopped) = emitter.push(piece);
            out.push(text.to_owned());
            if stopped {
                return (out, true, emitter.into_text());
            }
        }
        out.push(emitter.finish().to_owned());
        (out, false, emitter.into_text())
    }

    #[test]
    fn a_stop_string_across_tokens_is_never_shown() {
        let (streamed, stopped, text) = stream(&["\n\n", "END"], &[b"ls", b" -E", b"N", b"D more"]);
        assert!(stopped);
        assert_eq!(streamed.concat(), "ls -");
        assert_eq!(text, "ls -");
        let (streamed, stopped, text) = stream(&["END"], &[b"EN", b"EN", b"d", b" E"]);
        assert!(!stopped);
        assert_eq!(streamed[1], "EN", "no longer a beginning");
        assert_eq!(text, "ENENd E");
    }

    #[test]
    fn the_first_stop_in_the_text_wins() {
        assert_eq!(stream(&["c", "bc", ""], &[b"abcd"]).2, "a");
        assert_eq!(stream(&[""], &[b"abcd"]).2, "abcd");
    }

    #[test]
    fn characters_are_emitted_complete() {
        let euro = "€".as_bytes();
        let (streamed, _, text) = stream(&[], &[b"a", &euro[..1], &euro[1..2], &euro[2..], b"b"]);
        assert_eq!(streamed, ["a", "", "", "€", "b", ""]);
        assert_eq!(text, "a€b");
    }

    #[test]
    fn invalid_bytes_become_replacement_characters() {
        assert_eq!(stream(&[], &[b"a\xffb"]).2, "a\u{fffd}b");
        assert_eq!(stream(&[], &[b"a\xe2\x82"]).2, "a\u{fffd}");
        assert_eq!(stream(&["b"], &[b"a\xe2\x82", b"b"]).2, "a\u{fffd}");
    }

    proptest::proptest! {
        #[test]
        fn any_cut_gives_the_same_text(text in "[abE€ND\n]{0,40}", cuts in proptest::collection::vec(0usize..8, 0..20)) {
            let whole = stream(&["END", "\n\n"], &[text.as_bytes()]).2;
            let (mut rest, mut pieces) = (text.as_bytes(), Vec::new());
            for cut in cuts {
                let (piece, tail) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            pieces.push(rest);
            let (streamed, _, cut) = stream(&["END", "\n\n"], &pieces);
            assert_eq!(cut, whole);
            assert_eq!(streamed.concat(), whole);
        }
    }
}
