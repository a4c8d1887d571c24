//! Decodes the bytes of a terminal into keys. A paste is recognized by the marks of bracketed paste or, without
//! marks, by arriving all at once: no part of it is ever taken for a key.

use super::machine::{Event, Key};
use caro_base::iter::only;

const ESC: u8 = 0x1b;

/// The marks around a paste, if the terminal was asked for them.
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Decodes events from bytes as they arrive.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Inside the marks: the last bytes, in which the end mark may begin.
    paste: Option<Vec<u8>>,
    /// True after more bytes than one key arrived at once: what follows without a pause belongs to them.
    burst: bool,
    /// True after a lone escape byte: the rest of a sequence may follow.
    escape: bool,
}

impl Decoder {
    /// Returns the event of the bytes of one read, if there is one. No bytes mean a pause.
    pub fn read(&mut self, bytes: &[u8]) -> Option<Event> {
        let escape = std::mem::take(&mut self.escape);
        if bytes.is_empty() {
            self.burst = false;
            return if escape { Some(Event::Key(Key::Esc)) } else { None };
        }
        if escape {
            return self.bytes(&[&[ESC], bytes].concat());
        }
        if bytes == [ESC] && self.paste.is_none() && !self.burst {
            self.escape = true;
            return None;
        }
        self.bytes(bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<Event> {
        if self.paste.is_some() {
            return self.skip_paste(bytes);
        }
        if let Some(at) = find(bytes, PASTE_START) {
            self.paste = Some(Vec::new());
            return self.skip_paste(&bytes[at + PASTE_START.len()..]);
        }
        // Ctrl-C counts even amid other bytes
        if bytes.contains(&0x03) {
            return Some(Event::Key(Key::Interrupt));
        }
        if self.burst {
            return None;
        }
        let key = match bytes {
            [ESC, ..] => Key::Other,
            [0x04] => Key::End,
            [0x1a] => Key::Suspend,
            [b'\r' | b'\n'] | [b'\r', b'\n'] => Key::Enter,
            [byte] if byte.is_ascii_control() => Key::Other,
            _ => match std::str::from_utf8(bytes).ok().and_then(|text| only(text.chars())) {
                Some(c) => Key::Char(c),
                None => {
                    self.burst = true;
                    return Some(Event::Pasted);
                }
            },
        };
        Some(Event::Key(key))
    }

    /// Skips a paste up to its end mark.
    fn skip_paste(&mut self, bytes: &[u8]) -> Option<Event> {
        let tail = self.paste.as_mut()?;
        tail.extend_from_slice(bytes);
        if find(tail, PASTE_END).is_none() {
            let kept = tail.len().min(PASTE_END.len() - 1);
            tail.drain(..tail.len() - kept);
            return None;
        }
        self.paste = None;
        // bytes that follow without a pause are not keys either
        self.burst = true;
        Some(Event::Pasted)
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(reads: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::default();
        reads.iter().filter_map(|bytes| decoder.read(bytes)).collect()
    }

    #[test]
    fn single_keys_are_keys() {
        for (bytes, key) in [
            (&b"r"[..], Key::Char('r')),
            ("é".as_bytes(), Key::Char('é')),
            (b"\x1b[A", Key::Other),
            (b"\x1bOP", Key::Other),
            (b"\r", Key::Enter),
            (b"\n", Key::Enter),
            (b"\x03", Key::Interrupt),
            (b"\x04", Key::End),
            (b"\x1a", Key::Suspend),
            (b"\t", Key::Other),
        ] {
            assert_eq!(read(&[bytes]), [Event::Key(key)], "{bytes:?}");
        }
        assert_eq!(read(&[b"\x1b"]), []);
        assert_eq!(read(&[b"\x1b", b""]), [Event::Key(Key::Esc)]);
        // a sequence that arrives in two pieces is not an escape
        assert_eq!(read(&[b"\x1b", b"[A", b""]), [Event::Key(Key::Other)]);
        assert_eq!(read(&[b"\x1b", b"\x1b", b""]), [Event::Key(Key::Other)]);
        assert_eq!(read(&[b"r", b"", b"q"]), [Event::Key(Key::Char('r')), Event::Key(Key::Char('q'))]);
    }

    #[test]
    fn no_part_of_a_paste_is_a_key() {
        for reads in [
            &[&b"\x1b[200~rm -rf x\nr\x1b[201~"[..]][..],
            &[b"\x1b[200~", b"r", b"\n", b"\x1b[20", b"1~"],
            &[b"\x1b[200~r", b"\x1b[201~r"],
            &[b"\x1b", b"[200~r", b"\x1b", b"[201~", b""],
            &[b"\x1b[200~\x03\x04\x1b[201~"],
            &[b"rm -rf x\n", b"r"],
            &["日本".as_bytes(), b"r", b"r"],
            &[b"\xff\xfe"],
        ] {
            assert_eq!(read(reads), [Event::Pasted], "{reads:?}");
        }
        // after a pause a key is one again, and Ctrl-C always
        assert_eq!(read(&[b"abc", b"", b"r"]), [Event::Pasted, Event::Key(Key::Char('r'))]);
        assert_eq!(read(&[b"abc", b"d\x03"]), [Event::Pasted, Event::Key(Key::Interrupt)]);
    }
}
