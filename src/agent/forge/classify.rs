//! Why a test fails, by class, and what the model is told about each class.

use caro_exec::Status;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// It runs, and what it prints is not what was expected.
    Assertion,
    /// It asks for a module or program that is not there.
    Import,
    /// It cannot be read as a program.
    Syntax,
    /// It uses a name that does not exist.
    Attribute,
    /// It uses a value as what it is not.
    Type,
    /// It does not end.
    Timeout,
    /// Something else.
    Unknown,
}

/// Marks of the classes in the words of an interpreter; the first that is found counts.
const MARKS: &[(Class, &[&str])] = &[
    (
        Class::Syntax,
        &[
            "SyntaxError",
            "IndentationError",
            "TabError",
            "syntax error",
            "Syntax error",
            "unexpected EOF",
            "unterminated",
        ],
    ),
    (Class::Import, &["ModuleNotFoundError", "ImportError", "command not found", ": not found", "Cannot find module"]),
    (
        Class::Attribute,
        &[
            "AttributeError",
            "NameError",
            "UnboundLocalError",
            "ReferenceError",
            "unbound variable",
            "parameter not set",
        ],
    ),
    (
        Class::Type,
        &["TypeError", "ValueError", "KeyError", "IndexError", "integer expression expected", "Illegal number"],
    ),
    (Class::Assertion, &["AssertionError"]),
];

impl Class {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Assertion => "assertion",
            Self::Import => "import",
            Self::Syntax => "syntax",
            Self::Attribute => "attribute",
            Self::Type => "type",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
        }
    }

    /// Advice to the model about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Assertion => {
                "The output differs from the expected one. Compare them character by character: which lines are there, in \
                 which order, with which separators, and how numbers are written."
            }
            Self::Import => "A module is not there. Use the standard library alone.",
            Self::Syntax => {
                "It cannot be read as a program. Write the whole code again, complete and rightly indented."
            }
            Self::Attribute => "A name does not exist. Define it, or spell it as it is spelled where it is defined.",
            Self::Type => {
                "A value is not what the code takes it for. Skip empty lines, convert numbers with care, check lengths before \
                 indexing, and return text."
            }
            Self::Timeout => "It does not end. Every loop must come to its end.",
            Self::Unknown => "It fails. Read the error and avoid what causes it.",
        }
    }
}

/// A test that fails.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Failure {
    /// The test, from 0.
    pub case: usize,
    /// The class.
    pub class: Class,
    /// The output.
    pub got: String,
    /// The last line of what was said against it.
    pub error: String,
    /// True if the model has not seen the test.
    pub is_held: bool,
}

/// The class of a run that did not print what was expected, and the line that says why.
pub fn classify(status: Status, said: &str) -> (Class, String) {
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    match status {
        Status::TimedOut | Status::Flooded => (Class::Timeout, status.to_string()),
        Status::Exited(0) => (Class::Assertion, String::new()),
        _ => {
            let marked = MARKS.iter().find(|(_, marks)| marks.iter().any(|mark| said.contains(mark)));
            let error = match (source_line(said), last.is_empty()) {
                (_, true) => status.to_string(),
                (Some(line), false) => format!("{last} (in `{line}`)"),
                (None, false) => last,
            };
            (marked.map_or(Class::Unknown, |(class, _)| *class), error)
        }
    }
}

/// The line of the script that a traceback of Python ends in.
fn source_line(said: &str) -> Option<&str> {
    let mut lines = said.lines().map(str::trim).skip_while(|line| !line.starts_with("Traceback"));
    let mut found = None;
    while let Some(line) = lines.next() {
        if line.starts_with("File \"") {
            found = lines.next().filter(|line| !line.is_empty());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a31_what_interpreters_say_maps_to_classes() {
        for (said, class) in [
            ("Traceback\n  File \"m.py\"\nAssertionError", Class::Assertion),
            ("ModuleNotFoundError: No module named 'yaml'", Class::Import),
            ("main.sh: 3: jq: not found", Class::Import),
            ("  File \"m.py\", line 2\nSyntaxError: invalid syntax", Class::Syntax),
            ("IndentationError: unexpected indent", Class::Syntax),
            ("main.sh: 9: Syntax error: end of file unexpected", Class::Syntax),
            ("awk: program.awk: line 1: syntax error at or near }", Class::Syntax),
            ("AttributeError: 'str' object has no attribute 'x'", Class::Attribute),
            ("NameError: name 'foo' is not defined", Class::Attribute),
            ("TypeError: unsupported operand", Class::Type),
            ("ValueError: invalid literal for int()", Class::Type),
            ("ZeroDivisionError: division by zero", Class::Unknown),
            ("", Class::Unknown),
        ] {
            assert_eq!(classify(Status::Exited(1), said).0, class, "{said}");
        }
        assert_eq!(classify(Status::Exited(0), "a warning"), (Class::Assertion, String::new()));
        assert_eq!(classify(Status::TimedOut, "").0, Class::Timeout);
        assert_eq!(classify(Status::Flooded, "").0, Class::Timeout);
        assert_eq!(classify(Status::Exited(1), "a\nTypeError: x\n\n").1, "TypeError: x");
        let said = "Traceback (most recent call last):\n  File \"m.py\", line 9, in <module>\n    f(x)\n  File \"m.py\", line \
                    2, in f\n    return int(x)\n           ^^^^^^\nValueError: no";
        assert_eq!(classify(Status::Exited(1), said).1, "ValueError: no (in `return int(x)`)");
    }
}
