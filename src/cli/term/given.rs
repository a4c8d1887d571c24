//! Reads the text that a verb is to examine. A command is an argument, or comes on standard input, which may be
//! longer than the system allows an argument to be.

use crate::Failure;
use std::io::{self, Read};

/// The argument that stands for standard input.
pub const STDIN: &str = "-";

/// Most bytes of a command line: the checks compare each of its commands with every other.
const MAX_COMMAND: usize = 16 << 10;

/// Returns the command of an argument, or that of standard input if the argument is [`STDIN`]. `verb` and `example`
/// are for the hints.
///
/// # Errors
/// If it is empty, too long or no text, or standard input cannot be read.
pub fn command(argument: &str, verb: &str, example: &str) -> Result<String, Failure> {
    let command = match argument.trim() == STDIN {
        true => read(&mut io::stdin().lock())?,
        false => argument.to_owned(),
    };
    let from = if argument.trim() == STDIN { format!(" to {verb} on standard input") } else { format!(" to {verb}") };
    check_command(&command, &from).map_err(|why| match why.hint {
        None => why.hint(format!("try: `caro {verb} '{example}'`")),
        Some(_) => why,
    })?;
    Ok(command)
}

/// Checks that a command can be examined. `from` follows "there is no command" in the message for an empty one.
///
/// # Errors
/// If it is empty or too long.
pub fn check_command(command: &str, from: &str) -> Result<(), Failure> {
    if command.trim().is_empty() {
        return Err(Failure::usage(format!("there is no command{from}")));
    }
    if command.len() > MAX_COMMAND {
        return Err(too_long(&command.len().to_string()));
    }
    Ok(())
}

/// Reads the whole input, without its final line end.
fn read(input: &mut impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    input.take(MAX_COMMAND as u64 + 2).read_to_end(&mut bytes).map_err(|e| {
        Failure::usage(format!("standard input cannot be read: {e}")).hint("give the command in quotes")
    })?;
    let text = String::from_utf8(bytes).or_else(|e| match e.utf8_error().error_len() {
        // cut in the middle of a character: too long, which is reported below
        None => Ok(String::from_utf8_lossy(e.as_bytes()).into_owned()),
        Some(_) => Err(Failure::usage("the command on standard input is not valid UTF-8").hint("save it as UTF-8")),
    })?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    // the rest was not read: its length is unknown
    if text.len() > MAX_COMMAND {
        return Err(too_long(&format!("more than {MAX_COMMAND}")));
    }
    Ok(text.to_owned())
}

fn too_long(bytes: &str) -> Failure {
    Failure::usage(format!("the command has {bytes} bytes, and {MAX_COMMAND} are the most"))
        .hint("what is longer is a script: look at its commands one by one")
}

/// True if a count is zero; documents leave such a count out.
pub fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Truncates a text to `most` characters, and marks that with `...`.
pub fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Joins the words of a question.
///
/// # Errors
/// If there are none.
pub fn question(words: &[String]) -> Result<String, Failure> {
    let text = words.join(" ");
    if text.trim().is_empty() {
        return Err(Failure::usage("there is nothing to look for").hint("ask in plain words"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_read_to_its_end_or_to_the_limit() {
        let of = |input: &[u8]| read(&mut &input[..]).map_err(|failure| failure.message);
        assert_eq!(of(b"ls -l\n").unwrap(), "ls -l");
        assert_eq!(of(b"ls\r\n").unwrap(), "ls");
        assert_eq!(of("echo \u{e9}\necho x".as_bytes()).unwrap(), "echo \u{e9}\necho x");
        assert!(of(b"ls \xff x").unwrap_err().contains("UTF-8"));
        let long = "\u{e9}".repeat(MAX_COMMAND / 2);
        assert_eq!(of(format!("{long}\n").as_bytes()).unwrap(), long);
        for over in [format!("{long}x"), format!("x{long}\u{e9}"), "x".repeat(1 << 20)] {
            assert!(of(over.as_bytes()).unwrap_err().contains("more than 16384 bytes"), "{}", over.len());
        }
        assert!(read(&mut io::repeat(b'x')).is_err());
    }

    #[test]
    fn a_text_is_truncated_between_characters() {
        assert_eq!((clipped("\u{e9}\u{e9}\u{e9}", 2), clipped("ab", 2)), ("\u{e9}\u{e9}...".into(), "ab".into()));
    }
}
