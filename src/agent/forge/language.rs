//! The languages a script is written in, and what the forge adds to what the model writes: where input comes from is never
//! the model's to decide.

use std::path::PathBuf;

/// A language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python 3: the model writes `transform(text)`.
    Python,
    /// POSIX sh, from standard input to standard output.
    Sh,
    /// awk, likewise.
    Awk,
    /// JavaScript: only ever mended, never begun.
    #[serde(rename = "javascript")]
    JavaScript,
}

/// Follows a `transform`. From here on the text is the forge's own, and no part of the model's code.
const PYTHON: &str = r#"
# --- the forge's own part
if __name__ == "__main__":
    import sys

    def _input(args):
        if args[:1] == ["--text"] and len(args) > 1:
            return args[1]
        if args[:1] == ["--file"] and len(args) > 1:
            with open(args[1], encoding="utf-8") as file:
                return file.read()
        if not args:
            return sys.stdin.read()
        try:
            with open(args[0], encoding="utf-8") as file:
                return file.read()
        except OSError:
            return args[0]

    _output = transform(_input(sys.argv[1:]).rstrip("\n"))
    if isinstance(_output, (int, float)):
        _output = str(_output)
    if not isinstance(_output, str):
        raise TypeError("transform must return a str, not " + type(_output).__name__)
    print(_output.rstrip("\n"))
"#;

/// Precedes a body of sh.
const SH: &str = r#"#!/bin/sh
if [ "$1" = --text ]; then exec <<__TEXT
$2
__TEXT
elif [ "$1" = --file ]; then exec < "$2" || exit 2
elif [ -n "$1" ] && [ -f "$1" ]; then exec < "$1"
elif [ -n "$1" ]; then exec <<__TEXT
$1
__TEXT
fi
# --- the forge's own part ends
"#;

/// The line that divides the model's code from the forge's own in Python, and that in sh.
const MARKS: [&str; 2] = ["\n# --- the forge's own part\n", "# --- the forge's own part ends\n"];

/// The file that is run, of Python and of the others.
pub const MAIN_PY: &str = "main.py";
/// See [`MAIN_PY`].
pub const MAIN_SH: &str = "main.sh";
/// The program of awk, beside its [`MAIN_SH`].
const PROGRAM_AWK: &str = "program.awk";

/// Finds a program on PATH.
pub type Find<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

impl Language {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Sh => "sh",
            Self::Awk => "awk",
            Self::JavaScript => "javascript",
        }
    }

    /// The first of Python, awk and sh that is here.
    pub fn here(find: Find<'_>) -> Option<Self> {
        [Self::Python, Self::Awk, Self::Sh].into_iter().find(|language| language.is_here(find))
    }

    /// True if its programs are on PATH.
    pub fn is_here(self, find: Find<'_>) -> bool {
        let needs: &[&[&str]] = match self {
            Self::Python => &[&["python3", "python"]],
            Self::Sh => &[&["sh", "bash"]],
            Self::Awk => &[&["awk"], &["sh", "bash"]],
            Self::JavaScript => &[&["node"]],
        };
        needs.iter().all(|any| any.iter().any(|name| find(name).is_some()))
    }

    /// The language of a script, by the end of its name.
    pub fn of_file(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "py" => Some(Self::Python),
            "sh" => Some(Self::Sh),
            "awk" => Some(Self::Awk),
            "js" => Some(Self::JavaScript),
            _ => None,
        }
    }

    /// The model's part of a script.
    pub fn contract(self) -> &'static str {
        match self {
            Self::Python => {
                "Write it as one Python function `transform(text: str) -> str`: `text` is the whole input, the return value \
                 the whole output. Only these modules: re, csv, io, json, math, datetime, string, textwrap, collections, \
                 itertools, decimal, statistics, configparser. No files, no network, no input(), no print()."
            }
            Self::Sh => {
                "Write the body of a POSIX sh script that reads the whole input from standard input and writes the whole \
                 output to standard output. Only standard text tools (sed, awk, cut, tr, sort, grep, paste). No other files."
            }
            Self::Awk => {
                "Write one POSIX awk program that reads the input line by line and prints the output. No getline, no system(), \
                 no redirection."
            }
            Self::JavaScript => "Write the whole script.",
        }
    }

    /// The files of a script around the code that the model wrote, the one that is run first.
    pub fn files(self, code: &str) -> Vec<(String, String)> {
        let code = code.trim_end();
        match self {
            Self::Python => vec![(MAIN_PY.into(), format!("{code}\n\n{PYTHON}"))],
            Self::Sh => vec![(MAIN_SH.into(), format!("{SH}{code}\n"))],
            Self::Awk => {
                let run = format!("{SH}exec awk -f \"${{0%/*}}/{PROGRAM_AWK}\"\n");
                vec![(MAIN_SH.into(), run), (PROGRAM_AWK.into(), format!("{code}\n"))]
            }
            Self::JavaScript => vec![("main.js".into(), format!("{code}\n"))],
        }
    }

    /// The code that does nothing yet: what the tests are seen to fail against.
    pub fn stub(self) -> &'static str {
        match self {
            Self::Python => "def transform(text: str) -> str:\n    raise NotImplementedError",
            Self::Sh => "exit 1",
            Self::Awk => "BEGIN { exit 1 }",
            Self::JavaScript => "process.exit(1)",
        }
    }

    /// The code that gives the input back: a test that it passes shows nothing.
    pub fn echo(self) -> &'static str {
        match self {
            Self::Python => "def transform(text: str) -> str:\n    return text",
            Self::Sh => "cat",
            Self::Awk => "{ print }",
            Self::JavaScript => "process.stdin.pipe(process.stdout)",
        }
    }
}

/// The model's part of a script that the forge made; nothing where it did not make it.
pub fn own_part(text: &str) -> Option<&str> {
    let [python, sh] = MARKS;
    text.split_once(python).map(|(code, _)| code).or_else(|| text.split_once(sh).map(|(_, code)| code)).map(str::trim)
}

/// The code in a reply: the longest fenced block, else all of it where it is no prose.
pub fn code_of(reply: &str) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in reply.lines() {
        if line.trim_start().starts_with("```") {
            match open.take() {
                Some(lines) => blocks.push(lines.join("\n")),
                None => open = Some(Vec::new()),
            }
        } else if let Some(lines) = &mut open {
            lines.push(line);
        }
    }
    // a block that was cut off is one all the same
    blocks.extend(open.map(|lines| lines.join("\n")));
    let longest = blocks.into_iter().max_by_key(String::len);
    longest.unwrap_or_else(|| reply.to_owned()).trim().to_owned()
}

/// A `transform` without what a model writes behind it to show how it is used: that would be run, and printed.
pub fn without_usage(code: &str) -> String {
    let belongs = |line: &str| {
        let starts = ["def ", "async def ", "class ", "import ", "from ", "@", "#", ")", "]", "}"];
        line.is_empty() || line.starts_with(char::is_whitespace) || starts.iter().any(|start| line.starts_with(start))
    };
    let is_constant = |line: &str| line.split_once('=').is_some_and(|(name, _)| is_constant_name(name.trim()));
    let mut is_defined = false;
    let mut lines = Vec::new();
    for line in code.lines() {
        is_defined |= line.starts_with("def transform");
        if is_defined && !belongs(line) && !is_constant(line) {
            break;
        }
        lines.push(line);
    }
    lines.join("\n").trim_end().to_owned()
}

/// True for the name of a constant, as it is usually written.
fn is_constant_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_reply_is_its_longest_block() {
        assert_eq!(code_of("Sure:\n```python\nx = 1\ny = 2\n```\nand\n```\nz\n```\n"), "x = 1\ny = 2");
        assert_eq!(code_of("```python\nx = 1\n"), "x = 1");
        assert_eq!(code_of("x = 1\n"), "x = 1");
    }

    #[test]
    fn what_shows_how_it_is_used_is_left_out() {
        let code = "import re\nA = 1\n\ndef transform(text):\n    return help(text)\n\nB = 2\ndef help(text):\n    return text";
        assert_eq!(without_usage(code), code);
        for usage in [
            "\n# Example\nx = \"\"\"\na b\n\"\"\"\nprint(transform(x))",
            "\nif __name__ == '__main__':\n    main()",
            "\nprint(1)",
        ] {
            let cut = without_usage(&format!("{code}\n{usage}"));
            assert!(cut.starts_with(code) && !cut.contains("print") && !cut.contains("main"), "{cut}");
        }
        assert_eq!(without_usage("print(1)"), "print(1)", "what has no transform is left as it is");
    }

    #[test]
    fn what_the_forge_adds_is_taken_off_again() {
        for language in [Language::Python, Language::Sh] {
            let (_, text) = language.files("the code").remove(0);
            assert!(text.contains("--text"), "{text}");
            assert_eq!(own_part(&text), Some("the code"), "{text}");
        }
        assert_eq!(own_part("print(1)"), None);
        assert_eq!(Language::Awk.files("{ print }")[1], ("program.awk".to_owned(), "{ print }\n".to_owned()));
    }

    #[test]
    fn the_first_language_that_is_here_is_taken() {
        let of = |there: &[&str]| Language::here(&|name| there.contains(&name).then(|| PathBuf::from(name)));
        assert_eq!(of(&["python3", "awk", "sh"]), Some(Language::Python));
        assert_eq!(of(&["awk", "bash"]), Some(Language::Awk));
        assert_eq!(of(&["awk"]), None);
        assert_eq!(of(&["sh"]), Some(Language::Sh));
    }
}
