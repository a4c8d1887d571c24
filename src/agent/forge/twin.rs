//! What all examples leave open. Two scripts that pass every test are run on inputs near those of the tests; where they
//! differ one of them is wrong, and no example says which. That input is what a person is asked about.

use super::examples::{Case, Way};
use super::general::{another, carried, replaced, runs};
use super::trial::is_same;
use serde::Serialize;

/// Inputs that two scripts are compared on at most.
const MOST: usize = 16;
/// Words, and numbers, of one test that are changed.
const EACH: usize = 3;

/// An input that no example shows, and what two scripts make of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Open {
    /// The input.
    pub input: String,
    /// The output of the script that would be put on the shelf; empty where it fails.
    pub one: String,
    /// The output of the other one.
    pub other: String,
    /// The way in which the input is given.
    #[serde(skip)]
    pub way: Way,
}

/// Inputs near those of the tests, of each test in turn.
pub fn near(cases: &[Case]) -> Vec<Case> {
    let of: Vec<Vec<String>> = cases.iter().map(near_one).collect();
    let longest = of.iter().map(Vec::len).max().unwrap_or_default();
    let in_turn =
        (0..longest).flat_map(|n| of.iter().zip(cases).filter_map(move |(all, case)| Some((all.get(n)?, case.way))));
    let mut all: Vec<Case> = Vec::new();
    for (input, way) in in_turn {
        let is_known = cases.iter().chain(&all).any(|case| case.input == *input);
        if !is_known && all.len() < MOST {
            all.push(Case::new(input, "", way));
        }
    }
    all
}

/// The same text in other shapes: a carried word with a hyphen or in other letters, another and a shorter number, a line more, a
/// line less, two lines the other way round.
fn near_one(case: &Case) -> Vec<String> {
    let input = case.input.trim_end_matches('\n');
    let mut all = Vec::new();
    for (_, own) in carried(case).into_iter().take(EACH) {
        let mut letters = own.chars();
        let (Some(first), rest) = (letters.next(), letters.as_str()) else { continue };
        let turned =
            if first.is_lowercase() { first.to_uppercase().to_string() } else { first.to_lowercase().to_string() };
        if first.is_alphabetic() {
            all.push(replaced(input, &own, &format!("{first}-{rest}")));
            all.push(replaced(input, &own, &format!("{turned}{rest}")));
        }
    }
    for number in runs(input, |c| c.is_ascii_digit()).into_iter().take(EACH) {
        all.push(replaced(input, &number, &another(&number)));
        if number.len() > 1 {
            all.push(replaced(input, &number, &number[..1]));
        }
    }
    let lines: Vec<&str> = input.lines().collect();
    if let [before @ .., one, last] = lines.as_slice() {
        let put = |tail: &[&str]| [before, tail].concat().join("\n");
        all.extend([put(&[one, last, last]), put(&[one]), put(&[last, one])]);
    }
    all
}

/// The first input on which two scripts differ, by the outputs of both. What the first one fails on and the other does not
/// counts; the other way round it may be the other one that is bad.
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
    /// The examples that would say which output is right, as they are typed.
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
        near(&[Case::new(input, expected, Way::Text)]).into_iter().map(|case| case.input).collect()
    }

    #[test]
    fn a35_near_inputs_have_other_shapes_of_what_is_carried_over() {
        assert_eq!(
            inputs("ERROR [db] lost", "db lost"),
            ["ERROR [d-b] lost", "ERROR [Db] lost", "ERROR [db] l-ost", "ERROR [db] Lost"]
        );
        assert_eq!(inputs("1500 m", "1.5 km"), ["2611 m", "1 m"]);
        assert_eq!(inputs("a\nb\nc\n", "x"), ["a\nb\nc\nc", "a\nb", "a\nc\nb"]);
        assert_eq!(inputs("?", "!"), [""; 0]);
    }

    #[test]
    fn a35_a_difference_is_told_as_the_examples_that_decide_it() {
        let inputs = ["a", "b", "c"].map(|input| Case::new(input, "", Way::Text));
        let said = |all: [&str; 3]| all.map(|text| (!text.is_empty()).then(|| format!("{text}\n")));
        assert_eq!(
            difference(&inputs, &said(["1", "2", "3"]), &said(["1", "", "3"])),
            None,
            "where the other one fails"
        );
        let open = difference(&inputs, &said(["1", "2", "3"]), &said(["1", "2", "4"])).unwrap();
        assert_eq!(open.examples(), ["--example 'c => 3'", "--example 'c => 4'"]);
        let open = difference(&inputs, &said(["", "2", "3"]), &said(["1\n2", "2", "3"])).unwrap();
        assert_eq!(open.examples(), ["--example 'a => 1\\n2'"], "where it fails itself");
    }

    #[test]
    fn a35_each_test_has_its_turn_and_there_are_so_many() {
        let cases: Vec<Case> =
            (10..40).map(|n| Case::new(format!("word{n} {n}"), format!("word{n}"), Way::Text)).collect();
        let all = near(&cases);
        assert_eq!(all.len(), MOST);
        assert!(all.iter().enumerate().all(|(at, case)| case.input.contains(&format!("ord{}", at + 10))), "{all:?}");
    }
}
