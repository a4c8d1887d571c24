//! Classifies the failures of tests, and gives the model advice on each class.

use caro_exec::Status;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The script runs, and its output is not the expected one.
    Assertion,
    /// It needs a module or program that does not exist.
    Import,
    /// It does not parse.
    Syntax,
    /// It uses a name that does not exist.
    Attribute,
    /// It uses a value of the wrong type or form.
    Type,
    /// It does not end, or prints without end.
    Timeout,
    /// Any other failure.
    Unknown,
}

/// Texts in the messages of interpreters by which classes are recognised; the first class with a match counts.
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
    /// Returns the name.
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

    /// Returns advice to the model.
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

/// A failed test.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Failure {
    /// The index of the test, from 0.
    pub case: usize,
    /// The class.
    pub class: Class,
    /// The output.
    pub got: String,
    /// The last line of the error output.
    pub error: String,
    /// True if the model has not seen the test.
    #[serde(rename = "is_held")]
    pub is_held_out: bool,
}

/// Returns the class of a run whose output was not the expected one, and the line of the error output that gives the
/// reason.
pub fn classify(status: Status, stderr: &str) -> (Class, String) {
    let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    match status {
        Status::TimedOut | Status::Flooded => (Class::Timeout, status.to_string()),
        Status::Exited(0) => (Class::Assertion, String::new()),
        _ => {
            let marked = MARKS.iter().find(|(_, marks)| marks.iter().any(|mark| stderr.contains(mark)));
            let error = match (source_line(stderr), last.is_empty()) {
                (_, true) => status.to_string(),
                (Some(line), false) => format!("{last} (in `{line}`)"),
                (None, false) => last,
            };
            (marked.map_or(Class::Unknown, |(class, _)| *class), error)
        }
    }
}

/// Returns the line of the script at which a traceback of Python ends.
fn source_line(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim).skip_while(|line| !line.starts_with("Traceback"));
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
    fn a31_messages_of_interpreters_map_to_classes() {
        for (stderr, class) in [
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
            assert_eq!(classify(Status::Exited(1), stderr).0, class, "{stderr}");
        }
        assert_eq!(classify(Status::Exited(0), "a warning"), (Class::Assertion, String::new()));
        assert_eq!(classify(Status::TimedOut, "").0, Class::Timeout);
        assert_eq!(classify(Status::Flooded, "").0, Class::Timeout);
        assert_eq!(classify(Status::Exited(1), "a\nTypeError: x\n\n").1, "TypeError: x");
        let stderr = "Traceback (most recent call last):\n  File \"m.py\", line 9, in <module>\n    f(x)\n  File \"m.py\", line \
                    2, in f\n    return int(x)\n           ^^^^^^\nValueError: no";
        assert_eq!(classify(Status::Exited(1), stderr).1, "ValueError: no (in `return int(x)`)");
    }
}
