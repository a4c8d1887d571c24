//! Finds what the examples leave undecided. Two scripts that pass every test are run on inputs similar to those of the
//! tests; where they differ one of them is wrong, and no example says which. The user is asked about that input.

use super::examples::{Case, Way};
use super::general::{carried_words, distinct_runs, replace_word, shift_characters};
use super::test_runner::is_same;
use serde::Serialize;

/// Most inputs on which two scripts are compared.
const MAX_INPUTS: usize = 16;
/// Most words, and most numbers, that are changed in the input of one test.
const MAX_CHANGES: usize = 3;

/// An input that no example shows, with the different outputs of two scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Open {
    /// The input.
    pub input: String,
    /// The output of the script that would be promoted; empty if it fails.
    pub one: String,
    /// The output of the other script.
    pub other: String,
    /// The form in which the input is given.
    #[serde(skip)]
    pub way: Way,
}

/// Returns inputs similar to those of the tests, taken from each test in turn.
pub fn similar_inputs(cases: &[Case]) -> Vec<Case> {
    let by_case: Vec<Vec<String>> = cases.iter().map(variants).collect();
    let longest = by_case.iter().map(Vec::len).max().unwrap_or_default();
    let nth = |n: usize| by_case.iter().zip(cases).filter_map(move |(all, case)| Some((all.get(n)?, case.way)));
    let in_turn = (0..longest).flat_map(nth);
    let mut all: Vec<Case> = Vec::new();
    for (input, way) in in_turn {
        let is_known = cases.iter().chain(&all).any(|case| case.input == *input);
        if !is_known && all.len() < MAX_INPUTS {
            all.push(Case::new(input, "", way));
        }
    }
    all
}

/// Returns variants of an input: a carried word with a hyphen or with a changed first letter, another and a shorter
/// number, one line more, one line less, the last two lines swapped.
fn variants(case: &Case) -> Vec<String> {
    let input = case.input.trim_end_matches('\n');
    let mut all = Vec::new();
    for (_, own) in carried_words(case).into_iter().take(MAX_CHANGES) {
        let mut letters = own.chars();
        let (Some(first), rest) = (letters.next(), letters.as_str()) else { continue };
        let case_changed =
            if first.is_lowercase() { first.to_uppercase().to_string() } else { first.to_lowercase().to_string() };
        if first.is_alphabetic() {
            all.push(replace_word(input, &own, &format!("{first}-{rest}")));
            all.push(replace_word(input, &own, &format!("{case_changed}{rest}")));
        }
    }
    for number in distinct_runs(input, |c| c.is_ascii_digit()).into_iter().take(MAX_CHANGES) {
        all.push(replace_word(input, &number, &shift_characters(&number)));
        if number.len() > 1 {
            all.push(replace_word(input, &number, &number[..1]));
        }
    }
    let lines: Vec<&str> = input.lines().collect();
    if let [before @ .., one, last] = lines.as_slice() {
        let with_tail = |tail: &[&str]| [before, tail].concat().join("\n");
        all.extend([with_tail(&[one, last, last]), with_tail(&[one]), with_tail(&[last, one])]);
    }
    all
}

/// Returns the first input on which the outputs of two scripts differ. An input on which only the first script fails
/// counts; one on which only the other script fails does not.
pub fn difference(inputs: &[Case], ones: &[Option<String>], others: &[Option<String>]) -> Option<Open> {
    let text = |output: &str| output.trim_end().to_owned();
    inputs.iter().zip(ones.iter().zip(others)).find_map(|(case, (one, other))| {
        let (one, other) = (one.as_deref().unwrap_or_default(), other.as_deref()?);
        (!is_same(one, other)).then(|| Open {
            input: case.input.clone(),
            one: text(one),
            other: text(other),
            way: case.way,
        })
    })
}

impl Open {
    /// Returns the examples that would decide which output is right, as the user would type them.
    pub fn examples(&self) -> Vec<String> {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n");
        let outputs = [&self.one, &self.other].into_iter().filter(|output| !output.is_empty());
        let example = |output: &String| match self.way {
            Way::Text => format!("--example '{} => {}'", escaped(&self.input), escaped(output)),
            Way::File => format!("a --sample `{}` with the --expect `{}`", escaped(&self.input), escaped(output)),
        };
        outputs.map(example).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(input: &str, expected: &str) -> Vec<String> {
        similar_inputs(&[Case::new(input, expected, Way::Text)]).into_iter().map(|case| case.input).collect()
    }

    #[test]
    fn a35_similar_inputs_vary_words_numbers_and_lines() {
        assert_eq!(
            inputs("ERROR [db] lost", "db lost"),
            ["ERROR [d-b] lost", "ERROR [Db] lost", "ERROR [db] l-ost", "ERROR [db] Lost"]
        );
        assert_eq!(inputs("1500 m", "1.5 km"), ["2611 m", "1 m"]);
        assert_eq!(inputs("a\nb\nc\n", "x"), ["a\nb\nc\nc", "a\nb", "a\nc\nb"]);
        assert_eq!(inputs("?", "!"), [""; 0]);
    }

    #[test]
    fn a35_a_difference_is_reported_as_the_examples_that_decide_it() {
        let inputs = ["a", "b", "c"].map(|input| Case::new(input, "", Way::Text));
        let outputs = |all: [&str; 3]| all.map(|text| (!text.is_empty()).then(|| format!("{text}\n")));
        assert_eq!(
            difference(&inputs, &outputs(["1", "2", "3"]), &outputs(["1", "", "3"])),
            None,
            "where the other one fails"
        );
        let open = difference(&inputs, &outputs(["1", "2", "3"]), &outputs(["1", "2", "4"])).unwrap();
        assert_eq!(open.examples(), ["--example 'c => 3'", "--example 'c => 4'"]);
        let open = difference(&inputs, &outputs(["", "2", "3"]), &outputs(["1\n2", "2", "3"])).unwrap();
        assert_eq!(open.examples(), ["--example 'a => 1\\n2'"], "where it fails itself");
    }

    #[test]
    fn a35_inputs_are_taken_from_each_test_in_turn_up_to_a_limit() {
        let cases: Vec<Case> =
            (10..40).map(|n| Case::new(format!("word{n} {n}"), format!("word{n}"), Way::Text)).collect();
        let all = similar_inputs(&cases);
        assert_eq!(all.len(), MAX_INPUTS);
        assert!(all.iter().enumerate().all(|(at, case)| case.input.contains(&format!("ord{}", at + 10))), "{all:?}");
    }
}
