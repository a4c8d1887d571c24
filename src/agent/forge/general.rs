//! Whether a script that passes its tests does more than pass them: it has no answer of theirs written into it, and where
//! the input changes, the answer changes with it.
//!
//! The invariant: a word that the input and the expected output share is carried over from one to the other. Where it is
//! another word in the input, it has to be that in the output. Where they share none, another number in the input has to
//! give another output. One such change that comes out is enough: a word may be shared by accident.

use super::examples::{Case, Way};
use super::language::Language;
use super::mask::views;
use super::scan::Finding;

/// Changes tried of one test.
const CHANGES: usize = 5;
/// The shortest line of an expected output, and the shortest input, that is no accident in a script, characters.
const LONG_OUTPUT: usize = 4;
const LONG_INPUT: usize = 8;

/// An input that is changed in one place, and what its output is then known to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The changed test; its expected output is what must come out, or what must not.
    pub case: Case,
    /// True if [`Case::expected`] is what must come out; false if it must be another.
    pub is_exact: bool,
}

/// The changes of a test; none where nothing is known of what they would do.
pub fn changes(case: &Case) -> Vec<Change> {
    let changed = |input: String, expected: String, is_exact: bool| Change {
        case: Case { input, expected, ..case.clone() },
        is_exact,
    };
    let there = words(&case.input);
    let mut all: Vec<Change> = Vec::new();
    for (word, own) in carried(case) {
        let (other, other_own) = (another(&word), another(&own));
        if other == word || there.contains(&other_own) || all.len() == CHANGES {
            continue;
        }
        let (input, expected) = (replaced(&case.input, &own, &other_own), replaced(&case.expected, &word, &other));
        all.push(changed(input, expected, true));
    }
    if all.is_empty() {
        let numbers = runs(&case.input, |c| c.is_ascii_digit()).into_iter().take(CHANGES);
        all.extend(numbers.map(|number| {
            changed(replaced_run(&case.input, &number, &another(&number)), case.expected.clone(), false)
        }));
    }
    all
}

/// The words that a test carries over from its input to its output, as they stand in the output and in the input: it may be in
/// other letters, as `My Report` becomes `my-report`.
pub fn carried(case: &Case) -> Vec<(String, String)> {
    let there = words(&case.input);
    let own = |word: &str| there.iter().find(|own| own.to_lowercase() == word.to_lowercase()).cloned();
    words(&case.expected).into_iter().filter_map(|word| own(&word).map(|own| (word, own))).collect()
}

/// Words of at least two letters or digits, each once.
fn words(text: &str) -> Vec<String> {
    let mut all = runs(text, char::is_alphanumeric);
    all.retain(|word| word.chars().count() >= 2);
    all
}

/// The longest pieces of such characters, each once.
pub fn runs(text: &str, of: impl Fn(char) -> bool) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for run in text.split(|c| !of(c)).filter(|run| !run.is_empty()) {
        if !all.iter().any(|known| known == run) {
            all.push(run.to_owned());
        }
    }
    all
}

/// Another word of the same form: letters and digits one further.
pub fn another(word: &str) -> String {
    let next = |c: char| match c {
        '9' => '1',
        'z' => 'b',
        'Z' => 'B',
        '0'..='8' | 'a'..='y' | 'A'..='Y' => char::from_u32(c as u32 + 1).unwrap_or(c),
        other => other,
    };
    word.chars().map(next).collect()
}

/// The text with another word in the place of one, where it stands as a word.
pub fn replaced(text: &str, word: &str, other: &str) -> String {
    replaced_where(text, word, other, char::is_alphanumeric)
}

fn replaced_run(text: &str, run: &str, other: &str) -> String {
    replaced_where(text, run, other, |c| c.is_ascii_digit())
}

fn replaced_where(text: &str, word: &str, other: &str, joins: impl Fn(char) -> bool) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (found, _) in text.match_indices(word) {
        let alone = !text[..found].chars().next_back().is_some_and(&joins)
            && !text[found + word.len()..].chars().next().is_some_and(&joins);
        if alone && found >= at {
            out.push_str(&text[at..found]);
            out.push_str(other);
            at = found + word.len();
        }
    }
    out.push_str(&text[at..]);
    out
}

/// The answers, and whole inputs, of tests that are written into the script.
pub fn literals(code: &str, language: Language, request: &str, cases: &[Case]) -> Vec<Finding> {
    let literals = views(code, language).literals;
    let mut found: Vec<Finding> = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let outputs = case.expected.lines().map(str::trim).filter(|line| line.chars().count() >= LONG_OUTPUT);
        let inputs = case.input.lines().map(str::trim).filter(|line| line.chars().count() >= LONG_INPUT);
        let whole = (case.way == Way::Text && case.input.chars().any(|c| c.is_ascii_digit() || c == ' '))
            .then(|| case.input.trim());
        // a word that the request names may be in the script, and so may one that every answer has
        let is_common = |line: &&str| request.contains(*line) || is_in_all(line, cases);
        for line in outputs.filter(|l| !is_common(l)).chain(inputs.filter(|l| !is_common(l))) {
            if literals.iter().any(|literal| literal.contains(line)) {
                found.push(finding(at, line));
            }
        }
        if let Some(whole) = whole.filter(|whole| literals.iter().any(|literal| literal.trim() == *whole)) {
            found.push(finding(at, whole));
        }
    }
    found.truncate(CHANGES);
    found
}

/// True if this stands in the output, or the input, of each of several tests.
fn is_in_all(line: &str, cases: &[Case]) -> bool {
    let all = |of: fn(&Case) -> &str| cases.iter().all(|case| of(case).contains(line));
    cases.len() > 1 && (all(|c| &c.expected) || all(|c| &c.input))
}

fn finding(case: usize, line: &str) -> Finding {
    Finding {
        rule: "test-literal".into(),
        effect: None,
        line: 0,
        what: line.to_owned(),
        why: format!("text of test {} is written into the script: it would know only that one", case + 1),
    }
}

/// The finding of a script whose answers do not change with their inputs.
pub fn constant(case: usize, change: &Change) -> Finding {
    Finding {
        rule: "constant-answer".into(),
        effect: None,
        line: 0,
        what: change.case.input.clone(),
        why: format!(
            "of test {} another input does not give the answer that belongs to it: it knows the tests and nothing else",
            case + 1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(input: &str, expected: &str) -> Case {
        Case::new(input, expected, Way::Text)
    }

    #[test]
    fn a35_what_is_carried_over_changes_with_the_input() {
        let sides = |case: &Case| -> Vec<(String, String, bool)> {
            changes(case).into_iter().map(|c| (c.case.input, c.case.expected, c.is_exact)).collect()
        };
        assert_eq!(
            sides(&text("host=db1 port=80", "db1:80")),
            [("host=ec2 port=80".into(), "ec2:80".into(), true), ("host=db1 port=91".into(), "db1:91".into(), true)]
        );
        // a part of a word is none of its own
        assert_eq!(sides(&text("ab abc", "ab")), [("bc abc".into(), "bc".into(), true)]);
        assert_eq!(sides(&text("Ab c", "c-ab")), [("Bc c".into(), "c-bc".into(), true)], "in other letters");
        assert_eq!(sides(&text("5 km", "5000 m")), [("6 km".into(), "5000 m".into(), false)]);
        assert_eq!(sides(&text("a", "b")), []);
    }

    #[test]
    fn a35_answers_that_are_written_in_are_found() {
        let cases = [text("5 km", "5000 m"), text("total,7\nx,1", "Sum total 8")];
        let of = |code: &str| literals(code, Language::Python, "sum totals", &cases).len();
        assert_eq!(of("if text == '5 km':\n    return x"), 1);
        assert_eq!(of("return {'a': '5000 m'}[x]"), 1);
        assert_eq!(of("return 'Sum total 8'"), 1);
        assert_eq!(of("# 5000 m\nreturn str(n * 1000) + ' m' + ' km'"), 0);
        assert_eq!(of("def f(x):\n    \"\"\"5 km -> 5000 m\"\"\""), 0);
    }
}
