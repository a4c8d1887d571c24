//! Parses a command's words as its program does: into options, their values, and operands.

use super::row::{Program, Style};
use crate::parse::{Invocation, Word};

/// The parsed words of a command.
#[derive(Debug, Default)]
pub(super) struct ParsedArgs<'c> {
    /// Options by name, with the word that contains them. A cluster (`-rf`) is in it as a whole, and each of its letters
    /// on its own.
    pub options: Vec<(String, &'c Word)>,
    /// The values of options.
    pub values: Vec<Value<'c>>,
    /// The words that are neither options nor values.
    pub operands: Vec<Operand<'c>>,
    /// All words after the program in one line, which the patterns of rules are matched with: joined with blanks, blanks
    /// inside of a word as `_`, an empty word as `''`; in lower case for PowerShell.
    pub line: String,
}

/// The value of an option.
#[derive(Debug)]
pub(super) struct Value<'c> {
    /// The option.
    pub of: String,
    /// The word that the value is in.
    pub word: &'c Word,
    /// The value, if it is only a part of that word (`-ofile`, `--output=file`).
    pub part: Option<&'c str>,
}

impl<'c> Value<'c> {
    pub fn text(&self) -> &'c str {
        self.part.unwrap_or(&self.word.text)
    }
}

/// A word that is no option, or the part of one that counts as an operand (`-Path:C:\x`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand<'c> {
    pub word: &'c Word,
    pub part: Option<&'c str>,
}

impl<'c> Operand<'c> {
    pub fn text(&self) -> &'c str {
        self.part.unwrap_or(&self.word.text)
    }
}

impl<'c> ParsedArgs<'c> {
    /// Parses the arguments of a command as `program` does.
    pub fn parse(command: &'c Invocation, program: &Program) -> Self {
        let mut parsed = Self::default();
        let args = command.args();
        let join = |w: &Word| match w.text.as_str() {
            "" => "''".to_owned(),
            text => text.replace(char::is_whitespace, "_"),
        };
        parsed.line = args.iter().map(join).collect::<Vec<_>>().join(" ");
        if program.style == Style::Powershell {
            // cmdlets and Windows programs ignore case
            parsed.line = parsed.line.to_lowercase();
        }
        let mut at = 0;
        if program.bundle
            && let Some(word) = args.first().filter(|w| !w.text.starts_with('-'))
        {
            at = parsed.bundle(&word.text, word, args, program);
        }
        while let Some(word) = args.get(at) {
            at += 1;
            let text = word.text.as_str();
            let dashed = text.len() > 1 && text.starts_with('-');
            let ends = text == "--" && matches!(program.style, Style::Unix | Style::Word);
            if ends {
                parsed.operands.extend(args[at..].iter().map(|word| Operand { word, part: None }));
                break;
            }
            let next = args.get(at);
            at += usize::from(match program.style {
                Style::Assign => parsed.assign(word),
                Style::Powershell => parsed.parameter(word, next, program),
                Style::Word if dashed => parsed.word_option(word, next, program),
                Style::Unix if text.starts_with("--") => parsed.long(word, next, program),
                Style::Unix if dashed => parsed.cluster(word, next, program),
                Style::Unix | Style::Word => parsed.operand(word),
            });
        }
        parsed
    }

    fn operand(&mut self, word: &'c Word) -> bool {
        self.operands.push(Operand { word, part: None });
        false
    }

    /// True if the option takes a value here. In `git -C DIR log -C` the option after the subcommand belongs to that.
    fn takes_value(&self, name: &str, program: &Program) -> bool {
        let late = !self.operands.is_empty() && program.leading.iter().any(|l| l == name);
        let subcommand = self.operands.first().map_or("", |o| o.text());
        !late && program.takes_value(name) || program.takes_value_after(name, subcommand)
    }

    fn value(&mut self, of: &str, word: &'c Word, part: Option<&'c str>) {
        self.values.push(Value { of: of.to_owned(), word, part });
    }

    /// Parses `name=value`.
    fn assign(&mut self, word: &'c Word) -> bool {
        let Some((name, value)) = word.text.split_once('=') else { return self.operand(word) };
        self.options.push((format!("{name}="), word));
        self.value(&format!("{name}="), word, Some(value));
        false
    }

    /// Parses `-Name value`, `-Name:value`, `/s`. Returns true if the next word is its value.
    fn parameter(&mut self, word: &'c Word, next: Option<&'c Word>, program: &Program) -> bool {
        let text = word.text.as_str();
        let Some(name) = text.strip_prefix('-').filter(|t| !t.is_empty()) else {
            // switches of Windows programs (`/s`, `/mt`); a longer word is a path more often than a switch
            if text.starts_with('/') && matches!(text.len(), 2 | 3) {
                self.options.push((text.to_ascii_lowercase(), word));
                return false;
            }
            return self.operand(word);
        };
        let (name, part) = name.split_once(':').map_or((name, None), |(name, part)| (name, Some(part)));
        let name = format!("-{}", name.to_ascii_lowercase());
        let takes = program.takes_value(&name);
        let takes_next = match (part, next) {
            (Some(part), _) if takes => {
                self.value(&name, word, Some(part));
                false
            }
            // `-Recurse:$true` is a switch that is on; any other value may be a path
            (Some(part), _) if part.eq_ignore_ascii_case("$false") => return false,
            (Some(part), _) if !part.eq_ignore_ascii_case("$true") => {
                self.operands.push(Operand { word, part: Some(part) });
                false
            }
            (None, Some(next)) if takes => {
                self.value(&name, next, None);
                true
            }
            _ => false,
        };
        self.options.push((name, word));
        takes_next
    }

    /// Parses `-name value`: the whole word is the option.
    fn word_option(&mut self, word: &'c Word, next: Option<&'c Word>, program: &Program) -> bool {
        let (name, part) = split_value(word);
        self.named(name, part, word, next, program)
    }

    /// Parses `--name value`, `--name=value`, `--nam=value`.
    fn long(&mut self, word: &'c Word, next: Option<&'c Word>, program: &Program) -> bool {
        let (name, part) = split_value(word);
        self.named(&program.expand_abbreviation(name), part, word, next, program)
    }

    /// Adds an option that is a word of its own, with its value after `=` or in the next word. Returns true if the
    /// next word is its value.
    fn named(
        &mut self,
        name: &str,
        part: Option<&'c str>,
        word: &'c Word,
        next: Option<&'c Word>,
        program: &Program,
    ) -> bool {
        self.options.push((name.to_owned(), word));
        match (part, next) {
            (Some(part), _) => self.value(name, word, Some(part)),
            (None, Some(next)) if self.takes_value(name, program) => {
                self.value(name, next, None);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Parses `-abc`, `-ovalue`, `-o value`. Returns true if the next word is a value.
    fn cluster(&mut self, word: &'c Word, next: Option<&'c Word>, program: &Program) -> bool {
        let letters = &word.text[1..];
        self.options.push((word.text.clone(), word));
        for (i, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            self.options.push((name.clone(), word));
            if program.attached.contains(letter) {
                // the rest is its optional value, which has no effect
                break;
            }
            if self.takes_value(&name, program) {
                let rest = &letters[i + letter.len_utf8()..];
                match next {
                    _ if !rest.is_empty() => self.value(&name, word, Some(rest)),
                    Some(next) => {
                        self.value(&name, next, None);
                        return true;
                    }
                    None => {}
                }
                break;
            }
        }
        false
    }

    /// Parses `tar xzfC a.tgz dir`: the letters of the first word, whose values follow in their order. Returns the
    /// index of the next word.
    fn bundle(&mut self, letters: &str, word: &'c Word, args: &'c [Word], program: &Program) -> usize {
        let mut at = 1;
        for letter in letters.chars() {
            let name = format!("-{letter}");
            if program.takes_value(&name)
                && let Some(value) = args.get(at)
            {
                self.value(&name, value, None);
                at += 1;
            }
            self.options.push((name, word));
        }
        at
    }

    /// True if the option is given. Rules that hold without an option name it `always`.
    pub fn has(&self, option: &str) -> bool {
        option == "always" || self.options.iter().any(|(name, _)| name == option)
    }

    /// True if one of the options is given.
    pub fn has_any(&self, options: &[String]) -> bool {
        options.iter().any(|o| self.has(o))
    }

    /// Returns the word that contains the option.
    pub fn word(&self, option: &str) -> Option<&'c Word> {
        self.options.iter().find(|(name, _)| name == option).map(|(_, word)| *word)
    }
}

/// Splits a word into the option's name and the value after `=`.
fn split_value(word: &Word) -> (&str, Option<&str>) {
    word.text.split_once('=').map_or((word.text.as_str(), None), |(name, part)| (name, Some(part)))
}
