//! Buffers a stream of a child within a limit: all of it if it fits, else its head, or its head and its tail.

use super::Cut;
use std::collections::VecDeque;

/// The child wrote too much.
pub(super) struct Flood;

/// The part of a long stream to keep, and the size of a flood.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// The head: a program that is asked about itself prints what matters first.
    Head,
    /// The head and the tail, as both ends of a command's output matter.
    Ends {
        /// A stream of more bytes than this is a flood.
        flood: usize,
    },
}

/// A stream as far as it was read.
pub(super) struct StreamBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Most bytes of the head and of the tail.
    room: (usize, usize),
    flood: usize,
    /// Bytes that were read, and line ends among them.
    seen: (usize, usize),
    /// The last byte that was read.
    last: u8,
}

impl StreamBuffer {
    /// Creates an empty buffer that keeps `room` bytes.
    pub(super) fn new(room: usize, part: Part) -> Self {
        /// A flood is output of more than this many times the room.
        const FLOOD_FACTOR: usize = 8;
        let (flood, room) = match part {
            Part::Head => (room.saturating_mul(FLOOD_FACTOR).max(1 << 20), (room, 0)),
            Part::Ends { flood } => (flood, (room - room / 2, room / 2)),
        };
        Self { head: Vec::new(), tail: VecDeque::new(), room, flood, seen: (0, 0), last: b'\n' }
    }

    /// Adds the bytes that were read next.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), Flood> {
        self.seen.0 = self.seen.0.saturating_add(bytes.len());
        self.seen.1 = self.seen.1.saturating_add(line_ends(bytes));
        self.last = bytes.last().copied().unwrap_or(self.last);
        let (first, rest) = bytes.split_at((self.room.0 - self.head.len()).min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.room.1)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.room.1);
        self.tail.drain(..over);
        self.tail.extend(rest);
        if self.seen.0 > self.flood { Err(Flood) } else { Ok(()) }
    }

    /// Returns the kept bytes, and what is missing.
    pub(super) fn finish(self) -> (Vec<u8>, Option<Cut>) {
        let (mut head, tail) = (self.head, Vec::from(self.tail));
        let mut tail = tail.as_slice();
        if self.seen.0 > head.len() + tail.len() && self.room.1 > 0 {
            head.truncate(head_end(&head));
            tail = &tail[tail_start(tail)..];
        }
        let (at, kept) = (head.len(), (head.len() + tail.len(), line_ends(&head) + line_ends(tail)));
        head.extend_from_slice(tail);
        let cut = (self.seen.0 > kept.0).then(|| Cut {
            at,
            bytes: self.seen.0 - kept.0,
            lines: self.seen.1 - kept.1,
            of_bytes: self.seen.0,
            of_lines: self.seen.1 + usize::from(self.last != b'\n'),
        });
        (head, cut)
    }
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// True for the first byte of a UTF-8 character.
fn is_char_start(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Returns the end of the head: after its last line, or before its last character if that may be incomplete.
fn head_end(head: &[u8]) -> usize {
    let line = head.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1).filter(|at| at * 2 > head.len());
    let character = || (head.len().saturating_sub(4)..head.len()).rev().find(|at| is_char_start(head[*at]));
    line.or_else(character).unwrap_or(head.len())
}

/// Returns the start of the tail: its first whole line, or its first whole character.
fn tail_start(tail: &[u8]) -> usize {
    let line = tail.iter().position(|byte| *byte == b'\n').map(|at| at + 1).filter(|at| at * 2 < tail.len());
    line.or_else(|| (0..tail.len().min(4)).find(|at| is_char_start(tail[*at]))).unwrap_or(tail.len().min(4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(room: usize, part: Part, text: &[u8], step: usize) -> (Vec<u8>, Option<Cut>) {
        let mut kept = StreamBuffer::new(room, part);
        text.chunks(step.max(1)).for_each(|bytes| drop(kept.add(bytes)));
        kept.finish()
    }

    const ENDS: Part = Part::Ends { flood: usize::MAX };

    #[test]
    fn both_ends_are_kept_in_whole_lines() {
        let text: String = (1..=100).map(|n| format!("{n}\n")).collect();
        let (left, cut) = kept(20, ENDS, text.as_bytes(), 7);
        assert_eq!(String::from_utf8(left).unwrap(), "1\n2\n3\n4\n5\n99\n100\n");
        assert_eq!(cut, Some(Cut { at: 10, bytes: 275, lines: 93, of_bytes: 292, of_lines: 100 }));
        assert_eq!(kept(292, ENDS, text.as_bytes(), 7), (text.into_bytes(), None), "there is room for all of it");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let (left, cut) = kept(20, ENDS, "äöü".repeat(99).as_bytes(), 5);
        assert_eq!(String::from_utf8(left).unwrap(), "äöüäöüäöü");
        assert_eq!(cut, Some(Cut { at: 8, bytes: 576, lines: 0, of_bytes: 594, of_lines: 1 }));
    }

    #[test]
    fn only_the_head_is_kept() {
        let (left, cut) = kept(5, Part::Head, b"one\ntwo\nthree", 4);
        assert_eq!(left, b"one\nt");
        assert_eq!(cut, Some(Cut { at: 5, bytes: 8, lines: 1, of_bytes: 13, of_lines: 3 }));
    }

    #[test]
    fn the_size_of_a_flood_depends_on_the_part() {
        let floods = |part, bytes: usize| StreamBuffer::new(10, part).add(&vec![b'x'; bytes]).is_err();
        assert!(!floods(Part::Head, 1 << 20) && floods(Part::Head, (1 << 20) + 1));
        assert!(
            !floods(Part::Ends { flood: 2 << 20 }, 2 << 20) && floods(Part::Ends { flood: 2 << 20 }, (2 << 20) + 1)
        );
    }

    proptest! {
        /// Property: for any input in any pieces, the result is the two ends, and the rest is counted.
        #[test]
        fn kept_and_missing_bytes_add_up(
            text in "([a-zä]{0,9}\n?){0,40}", room in 2usize..80, step in 1usize..50, head in any::<bool>()
        ) {
            let part = if head { Part::Head } else { ENDS };
            let (left, cut) = kept(room, part, text.as_bytes(), step);
            prop_assert!(left.len() <= room);
            let Some(cut) = cut else {
                prop_assert_eq!(left, text.into_bytes());
                return Ok(());
            };
            let (before, after) = left.split_at(cut.at);
            prop_assert!(text.as_bytes().starts_with(before) && text.as_bytes().ends_with(after));
            let between = &text.as_bytes()[before.len()..text.len() - after.len()];
            prop_assert_eq!((cut.bytes, cut.lines), (between.len(), line_ends(between)));
            prop_assert_eq!((cut.of_bytes, cut.of_lines), (text.len(), text.lines().count()));
            prop_assert!(head || std::str::from_utf8(&left).is_ok());
        }
    }
}
