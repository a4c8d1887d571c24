//! Checks that a script that passes its tests also works on other inputs: it contains no answers of its tests, and its
//! output changes with its input.
//!
//! A word in both the input and the expected output is taken to be carried over from one to the other: if it is
//! replaced in the input, the output has to have the replacement. If there is no such word, another number in the
//! input has to change the output. One change with the expected effect is enough, as a word may be in both by
//! accident.

use super::examples::{Case, Way};
use super::language::Language;
use super::mask::views;
use super::scan::Finding;

/// Most changes tried for one test.
const MAX_CHANGES: usize = 5;
/// Least characters of a line of an expected output, and of an input, that counts as copied if it is in a script.
const MIN_OUTPUT: usize = 4;
const MIN_INPUT: usize = 8;

/// A test whose input is changed in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The changed test.
    pub case: Case,
    /// True if the output must be [`Case::expected`]; false if it must differ from it.
    pub is_exact: bool,
}

/// Returns changes of a test; none if their effect on the output cannot be predicted.
pub fn changes(case: &Case) -> Vec<Change> {
    let changed = |input: String, expected: String, is_exact: bool| Change {
        case: Case { input, expected, ..case.clone() },
        is_exact,
    };
    let input_words = words(&case.input);
    let mut all: Vec<Change> = Vec::new();
    for (word, own) in carried_words(case) {
        let (other, other_own) = (shift_characters(&word), shift_characters(&own));
        if other == word || input_words.contains(&other_own) || all.len() == MAX_CHANGES {
            continue;
        }
        let input = replace_word(&case.input, &own, &other_own);
        let expected = replace_word(&case.expected, &word, &other);
        all.push(changed(input, expected, true));
    }
    if all.is_empty() {
        let numbers = distinct_runs(&case.input, |c| c.is_ascii_digit()).into_iter().take(MAX_CHANGES);
        all.extend(numbers.map(|number| {
            changed(replace_number(&case.input, &number, &shift_characters(&number)), case.expected.clone(), false)
        }));
    }
    all
}

/// Returns the words that a test carries over from its input to its output, each as written in the output and in the
/// input: their case may differ, as in `My Report` and `my-report`.
pub fn carried_words(case: &Case) -> Vec<(String, String)> {
    let input_words = words(&case.input);
    let own = |word: &str| input_words.iter().find(|own| own.to_lowercase() == word.to_lowercase()).cloned();
    words(&case.expected).into_iter().filter_map(|word| own(&word).map(|own| (word, own))).collect()
}

/// Returns the distinct words of at least two letters or digits.
fn words(text: &str) -> Vec<String> {
    let mut all = distinct_runs(text, char::is_alphanumeric);
    all.retain(|word| word.chars().count() >= 2);
    all
}

/// Returns the distinct longest runs of characters for which `of` is true.
pub fn distinct_runs(text: &str, of: impl Fn(char) -> bool) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for run in text.split(|c| !of(c)).filter(|run| !run.is_empty()) {
        if !all.iter().any(|known| known == run) {
            all.push(run.to_owned());
        }
    }
    all
}

/// Replaces each letter and digit of a word by the next one.
pub fn shift_characters(word: &str) -> String {
    let next = |c: char| match c {
        '9' => '1',
        'z' => 'b',
        'Z' => 'B',
        '0'..='8' | 'a'..='y' | 'A'..='Y' => char::from_u32(c as u32 + 1).unwrap_or(c),
        other => other,
    };
    word.chars().map(next).collect()
}

/// Replaces a word by another one, where it is not a part of a longer word.
pub fn replace_word(text: &str, word: &str, other: &str) -> String {
    replace_run(text, word, other, char::is_alphanumeric)
}

/// Replaces a number by another one, where it is not a part of a longer number.
fn replace_number(text: &str, number: &str, other: &str) -> String {
    replace_run(text, number, other, |c| c.is_ascii_digit())
}

/// Replaces a run of characters where no neighbour satisfies `joins`.
fn replace_run(text: &str, word: &str, other: &str, joins: impl Fn(char) -> bool) -> String {
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

/// Finds answers and inputs of tests in the string literals of a script.
pub fn test_literals(code: &str, language: Language, request: &str, cases: &[Case]) -> Vec<Finding> {
    let literals = views(code, language).literals;
    let mut found: Vec<Finding> = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let outputs = case.expected.lines().map(str::trim).filter(|line| line.chars().count() >= MIN_OUTPUT);
        let inputs = case.input.lines().map(str::trim).filter(|line| line.chars().count() >= MIN_INPUT);
        let whole = (case.way == Way::Text && case.input.chars().any(|c| c.is_ascii_digit() || c == ' '))
            .then(|| case.input.trim());
        // text of the request, and text common to all tests, may be in the script
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
    found.truncate(MAX_CHANGES);
    found
}

/// True if a line is in the outputs, or in the inputs, of all tests, and there are several.
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

/// Returns the finding for a script whose output does not change with its input.
pub fn constant_answer(case: usize, change: &Change) -> Finding {
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
    fn a35_a_carried_word_changes_with_the_input() {
        let sides = |case: &Case| -> Vec<(String, String, bool)> {
            changes(case).into_iter().map(|c| (c.case.input, c.case.expected, c.is_exact)).collect()
        };
        assert_eq!(
            sides(&text("host=db1 port=80", "db1:80")),
            [("host=ec2 port=80".into(), "ec2:80".into(), true), ("host=db1 port=91".into(), "db1:91".into(), true)]
        );
        // a part of a longer word is not replaced
        assert_eq!(sides(&text("ab abc", "ab")), [("bc abc".into(), "bc".into(), true)]);
        assert_eq!(sides(&text("Ab c", "c-ab")), [("Bc c".into(), "c-bc".into(), true)], "in another case");
        assert_eq!(sides(&text("5 km", "5000 m")), [("6 km".into(), "5000 m".into(), false)]);
        assert_eq!(sides(&text("a", "b")), []);
    }

    #[test]
    fn a35_answers_in_the_script_are_found() {
        let cases = [text("5 km", "5000 m"), text("total,7\nx,1", "Sum total 8")];
        let of = |code: &str| test_literals(code, Language::Python, "sum totals", &cases).len();
        assert_eq!(of("if text == '5 km':\n    return x"), 1);
        assert_eq!(of("return {'a': '5000 m'}[x]"), 1);
        assert_eq!(of("return 'Sum total 8'"), 1);
        assert_eq!(of("# 5000 m\nreturn str(n * 1000) + ' m' + ' km'"), 0);
        assert_eq!(of("def f(x):\n    \"\"\"5 km -> 5000 m\"\"\""), 0);
    }
}
