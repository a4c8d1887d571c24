//! Reads lines of limited length from a pipe.

use crate::Failure;
use std::io::{self, BufRead};

/// A line, or the reason it is refused.
pub type Read = Result<Vec<u8>, Failure>;

/// Reads the next line, without its end; `None` at the end of the input. A line of more than `most` bytes is skipped
/// as a whole.
///
/// # Errors
/// If the input cannot be read.
pub fn next_line(input: &mut impl BufRead, most: usize) -> io::Result<Option<Read>> {
    let (mut line, mut length) = (Vec::new(), 0usize);
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let end = chunk.iter().position(|b| *b == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        length += part.len();
        if length <= most {
            line.extend_from_slice(part);
        }
        let (at_end, used) = (chunk.is_empty(), end.map_or(chunk.len(), |e| e + 1));
        input.consume(used);
        if end.is_some() || at_end {
            if at_end && length == 0 {
                return Ok(None);
            }
            if length > most {
                let message = format!("the line has {length} bytes, and {most} are the most");
                return Ok(Some(Err(
                    Failure::usage(message).hint("nothing of it was taken; a file can be named instead")
                )));
            }
            return Ok(Some(Ok(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], most: usize) -> Vec<Result<Vec<u8>, String>> {
        let mut input = io::BufReader::with_capacity(7, input);
        std::iter::from_fn(|| next_line(&mut input, most).unwrap()).map(|l| l.map_err(|f| f.message)).collect()
    }

    #[test]
    fn lines_end_at_newline_or_at_the_end() {
        assert_eq!(lines(b"", 100), []);
        assert_eq!(
            lines(b"a long first line\n\nlast", 100),
            [Ok(b"a long first line".to_vec()), Ok(vec![]), Ok(b"last".to_vec())]
        );
    }

    #[test]
    fn a_line_too_long_is_refused_and_skipped_to_its_end() {
        let mut input = vec![b'x'; 1001];
        input.extend(b" delete everything\nnext\n");
        let read = lines(&input, 1000);
        assert!(read[0].as_ref().unwrap_err().contains("1019 bytes, and 1000 are the most"));
        assert_eq!(read[1..], [Ok(b"next".to_vec())]);
    }
}
