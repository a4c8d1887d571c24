//! Bytes of tokens in, whole characters out: stop strings, and characters that span tokens.

/// The text of a completion as it grows.
pub(super) struct Emitter<'a> {
    stops: Vec<&'a [u8]>,
    /// Bytes that are not text yet: a character or a stop string may be only half there.
    pending: Vec<u8>,
    text: String,
}

impl<'a> Emitter<'a> {
    /// Text that ends before the first of `stops`. Empty ones count for nothing.
    pub fn new(stops: &'a [String]) -> Self {
        let stops = stops.iter().filter(|s| !s.is_empty()).map(|s| s.as_bytes()).collect();
        Self { stops, pending: Vec::new(), text: String::new() }
    }

    /// Adds a token's bytes. Returns the text that is certain now, and whether a stop string has ended it.
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
        // What may be the beginning of a stop string waits.
        let wait = (0..self.pending.len())
            .find(|&at| self.stops.iter().any(|stop| stop.starts_with(&self.pending[at..])))
            .unwrap_or(self.pending.len());
        self.release(wait, false);
        (&self.text[from..], false)
    }

    /// Releases what still waits: nothing more will come.
    pub fn finish(&mut self) -> &str {
        let from = self.text.len();
        self.release(self.pending.len(), true);
        &self.text[from..]
    }

    /// All text released.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Moves the first `upto` pending bytes into the text; bytes that are no UTF-8 become U+FFFD. An incomplete
    /// character at their end waits unless `end`.
    fn release(&mut self, upto: usize, end: bool) {
        let mut used = 0;
        while used < upto {
            match std::str::from_utf8(&self.pending[used..upto]) {
                Ok(text) => {
                    self.text.push_str(text);
                    used = upto;
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
                            used = length.map_or(upto, |length| valid + length);
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

    /// Feeds pieces, returns what was streamed and whether a stop was met.
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
    fn characters_come_whole() {
        let euro = "€".as_bytes();
        let (streamed, _, text) = stream(&[], &[b"a", &euro[..1], &euro[1..2], &euro[2..], b"b"]);
        assert_eq!(streamed, ["a", "", "", "€", "b", ""]);
        assert_eq!(text, "a€b");
    }

    #[test]
    fn bytes_that_are_no_text_become_a_mark() {
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
