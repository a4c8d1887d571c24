//! The languages of scripts, and the code that the forge adds to the model's: the model never decides where the input
//! comes from.

use std::path::PathBuf;

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python 3: the model writes `transform(text)`.
    Python,
    /// POSIX sh, from standard input to standard output.
    Sh,
    /// awk, from standard input to standard output.
    Awk,
    /// JavaScript: only for fixing existing scripts, not for new ones.
    #[serde(rename = "javascript")]
    JavaScript,
}

/// The code that follows the model's `transform` in Python.
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

/// The code that precedes the model's code in sh.
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

/// The lines that separate the model's code from that of the forge, in Python and in sh.
const MARKS: [&str; 2] = ["\n# --- the forge's own part\n", "# --- the forge's own part ends\n"];

/// The main file of a Python script.
pub const MAIN_PY: &str = "main.py";
/// The main file of an sh or awk script.
pub const MAIN_SH: &str = "main.sh";
/// The awk program, which [`MAIN_SH`] runs.
const PROGRAM_AWK: &str = "program.awk";

/// Finds a program on PATH.
pub type Find<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

impl Language {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Sh => "sh",
            Self::Awk => "awk",
            Self::JavaScript => "javascript",
        }
    }

    /// Returns the first of Python, awk and sh whose programs are on PATH.
    pub fn first_available(find: Find<'_>) -> Option<Self> {
        [Self::Python, Self::Awk, Self::Sh].into_iter().find(|language| language.is_available(find))
    }

    /// True if its programs are on PATH.
    pub fn is_available(self, find: Find<'_>) -> bool {
        let needs: &[&[&str]] = match self {
            Self::Python => &[&["python3", "python"]],
            Self::Sh => &[&["sh", "bash"]],
            Self::Awk => &[&["awk"], &["sh", "bash"]],
            Self::JavaScript => &[&["node"]],
        };
        needs.iter().all(|any| any.iter().any(|name| find(name).is_some()))
    }

    /// Returns the language of a script, by its extension.
    pub fn of_file(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "py" => Some(Self::Python),
            "sh" => Some(Self::Sh),
            "awk" => Some(Self::Awk),
            "js" => Some(Self::JavaScript),
            _ => None,
        }
    }

    /// Returns the instructions to the model about its part of a script.
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

    /// Returns the files of a script around the model's code, the main file first.
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

    /// Returns code that always fails: a test must fail with it.
    pub fn stub(self) -> &'static str {
        match self {
            Self::Python => "def transform(text: str) -> str:\n    raise NotImplementedError",
            Self::Sh => "exit 1",
            Self::Awk => "BEGIN { exit 1 }",
            Self::JavaScript => "process.exit(1)",
        }
    }

    /// Returns code that prints its input: a test must fail with it.
    pub fn echo(self) -> &'static str {
        match self {
            Self::Python => "def transform(text: str) -> str:\n    return text",
            Self::Sh => "cat",
            Self::Awk => "{ print }",
            Self::JavaScript => "process.stdin.pipe(process.stdout)",
        }
    }
}

/// Returns the model's part of a script that the forge made; `None` for any other script.
pub fn model_part(text: &str) -> Option<&str> {
    let [python, sh] = MARKS;
    text.split_once(python).map(|(code, _)| code).or_else(|| text.split_once(sh).map(|(_, code)| code)).map(str::trim)
}

/// Returns the code in a reply: the longest fenced block, or the whole reply if there is none.
pub fn extract_code(reply: &str) -> String {
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
    // a block that was cut off counts too
    blocks.extend(open.map(|lines| lines.join("\n")));
    let longest = blocks.into_iter().max_by_key(String::len);
    longest.unwrap_or_else(|| reply.to_owned()).trim().to_owned()
}

/// Removes the example calls that a model may write after `transform`: they would be run, and their output printed.
pub fn without_usage(code: &str) -> String {
    let is_definition = |line: &str| {
        let starts = ["def ", "async def ", "class ", "import ", "from ", "@", "#", ")", "]", "}"];
        line.is_empty() || line.starts_with(char::is_whitespace) || starts.iter().any(|start| line.starts_with(start))
    };
    let is_constant = |line: &str| line.split_once('=').is_some_and(|(name, _)| is_constant_name(name.trim()));
    let mut is_defined = false;
    let mut lines = Vec::new();
    for line in code.lines() {
        is_defined |= line.starts_with("def transform");
        if is_defined && !is_definition(line) && !is_constant(line) {
            break;
        }
        lines.push(line);
    }
    lines.join("\n").trim_end().to_owned()
}

/// True for a name in upper case, as used for constants.
fn is_constant_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_reply_is_its_longest_block() {
        assert_eq!(extract_code("Sure:\n```python\nx = 1\ny = 2\n```\nand\n```\nz\n```\n"), "x = 1\ny = 2");
        assert_eq!(extract_code("```python\nx = 1\n"), "x = 1");
        assert_eq!(extract_code("x = 1\n"), "x = 1");
    }

    #[test]
    fn example_calls_are_removed() {
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
        assert_eq!(without_usage("print(1)"), "print(1)", "code without transform is not changed");
    }

    #[test]
    fn the_model_part_is_extracted_again() {
        for language in [Language::Python, Language::Sh] {
            let (_, text) = language.files("the code").remove(0);
            assert!(text.contains("--text"), "{text}");
            assert_eq!(model_part(&text), Some("the code"), "{text}");
        }
        assert_eq!(model_part("print(1)"), None);
        assert_eq!(Language::Awk.files("{ print }")[1], ("program.awk".to_owned(), "{ print }\n".to_owned()));
    }

    #[test]
    fn the_first_available_language_is_chosen() {
        let of = |installed: &[&str]| {
            Language::first_available(&|name| installed.contains(&name).then(|| PathBuf::from(name)))
        };
        assert_eq!(of(&["python3", "awk", "sh"]), Some(Language::Python));
        assert_eq!(of(&["awk", "bash"]), Some(Language::Awk));
        assert_eq!(of(&["awk"]), None);
        assert_eq!(of(&["sh"]), Some(Language::Sh));
    }
}
