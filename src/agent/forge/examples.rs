//! The examples of a request, which are its tests: `INPUT -> OUTPUT` in its lines, and what was named beside it. No test is
//! the model's own: what a model makes up verifies nothing.

/// From so many examples on, the last one is not shown to the model.
const HOLD_FROM: usize = 3;
/// The most examples.
pub const MOST: usize = 12;

/// How an input reaches the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// As text.
    Text,
    /// As a file.
    File,
}

/// One test: what goes in, and what must come out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The input.
    pub input: String,
    /// The expected output.
    pub expected: String,
    /// How it goes in.
    pub way: Way,
    /// True if the model is not shown it.
    pub is_held: bool,
}

impl Case {
    /// A test that the model is shown.
    pub fn new(input: impl Into<String>, expected: impl Into<String>, way: Way) -> Self {
        Self { input: input.into(), expected: expected.into(), way, is_held: false }
    }
}

/// A request without its examples, and its examples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// The task of the skill.
    pub request: String,
    /// The tests.
    pub cases: Vec<Case>,
}

/// Why there are no tests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExampleError {
    /// There are none at all.
    #[error("there is no example to test a skill against")]
    None,
    /// There are more than are run.
    #[error("there are {0} examples, and {MOST} are the most")]
    Many(usize),
    /// It has no arrow, or nothing on one side of it.
    #[error("`{0}` is no example: it needs an input, an arrow and an output")]
    Form(String),
    /// One input has two outputs.
    #[error("the input `{0}` has two different outputs")]
    Twice(String),
}

impl ExampleError {
    /// The next step for a person.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::None => {
                "give some (three or more, so that one can be held back): --example 'INPUT => OUTPUT', lines INPUT -> OUTPUT in \
                 the request, or --sample FILE --expect FILE. The model does not make up its own: that would verify nothing"
            }
            Self::Many(_) => "keep those that differ most",
            Self::Form(_) => "for example: --example '5 km => 5000 m'; \\n stands for the end of a line",
            Self::Twice(_) => "keep the one that is right",
        }
    }
}

/// Reads one example: `INPUT => OUTPUT` or `INPUT -> OUTPUT`.
///
/// # Errors
/// If there is no arrow, or nothing on one side of it.
pub fn example(text: &str) -> Result<Case, ExampleError> {
    let form = || ExampleError::Form(text.trim().to_owned());
    let (input, output) = text.split_once(" => ").or_else(|| text.split_once(" -> ")).ok_or_else(form)?;
    let (input, output) = (plain(input), plain(output));
    if input.is_empty() || output.is_empty() {
        return Err(form());
    }
    Ok(Case::new(input, output, Way::Text))
}

/// A side of an example without quotes around it, with what `\n`, `\t` and `\\` stand for.
fn plain(side: &str) -> String {
    let side = side.trim();
    let quoted = ['"', '\'', '`'].iter().find_map(|q| side.strip_prefix(*q)?.strip_suffix(*q));
    let mut text = String::new();
    let mut chars = quoted.unwrap_or(side).chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some(escaped @ ('n' | 't' | '\\'))) => {
                chars.next();
                text.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                });
            }
            _ => text.push(c),
        }
    }
    text
}

/// Takes the examples out of a request, adds those that were named beside it, and holds one back where there are enough.
///
/// # Errors
/// If there is none, or they cannot be tests.
pub fn order(request: &str, given: &[String], samples: Vec<Case>) -> Result<Order, ExampleError> {
    let mut order = Order::default();
    let mut words = Vec::new();
    for line in request.lines() {
        // the request itself may have an arrow in it: an example is a line of its own
        match example(line) {
            Ok(case) if request.lines().count() > 1 => order.cases.push(case),
            _ => words.push(line.trim()),
        }
    }
    order.request = words.join(" ").trim().trim_end_matches(':').to_owned();
    for text in given {
        order.cases.push(example(text)?);
    }
    order.cases.extend(samples);
    for (at, case) in order.cases.iter().enumerate() {
        if order.cases[..at].iter().any(|c| c.input == case.input && c.expected != case.expected) {
            return Err(ExampleError::Twice(case.input.clone()));
        }
    }
    let mut seen: Vec<String> = Vec::new();
    order.cases.retain(|case| {
        let is_new = !seen.contains(&case.input);
        seen.push(case.input.clone());
        is_new
    });
    match order.cases.len() {
        0 => return Err(ExampleError::None),
        count if count > MOST => return Err(ExampleError::Many(count)),
        _ => {}
    }
    hold_back(&mut order.cases);
    Ok(order)
}

/// Holds the last one back where there are enough.
pub fn hold_back(cases: &mut [Case]) {
    if cases.len() >= HOLD_FROM
        && let Some(last) = cases.last_mut()
    {
        last.is_held = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a29_the_examples_of_a_request_are_its_tests() {
        let order = order(
            "Create a unit converter skill:\n5 km -> 5000 m\n'3 kg' => \"3000 g\"",
            &["a\\nb => 2".into()],
            vec![Case::new("x\n", "y\n", Way::File)],
        )
        .unwrap();
        assert_eq!(order.request, "Create a unit converter skill");
        let sides: Vec<(&str, &str, bool)> =
            order.cases.iter().map(|c| (c.input.as_str(), c.expected.as_str(), c.is_held)).collect();
        assert_eq!(
            sides,
            [("5 km", "5000 m", false), ("3 kg", "3000 g", false), ("a\nb", "2", false), ("x\n", "y\n", true)]
        );
        assert_eq!(order.cases[3].way, Way::File);
    }

    #[test]
    fn without_an_example_there_is_no_test_and_the_hint_says_how_to_give_one() {
        let none = order("Create a skill that turns a -> b", &[], Vec::new()).unwrap_err();
        assert_eq!(none, ExampleError::None);
        assert!(none.hint().contains("--example 'INPUT => OUTPUT'") && none.hint().contains("--sample FILE"));
        let one = |text: &str| order("do", &[text.into()], Vec::new()).unwrap_err();
        assert!(matches!(one("no arrow"), ExampleError::Form(_)));
        assert!(matches!(one(" => x"), ExampleError::Form(_)));
        let twice = order("do", &["a => 1".into(), "a => 2".into()], Vec::new()).unwrap_err();
        assert_eq!(twice, ExampleError::Twice("a".into()));
        let many: Vec<String> = (0..13).map(|n| format!("{n} => {n}{n}")).collect();
        assert_eq!(order("do", &many, Vec::new()).unwrap_err(), ExampleError::Many(13));
        let same = order("do", &["a => 1".into(), "a => 1".into()], Vec::new()).unwrap();
        assert_eq!((same.cases.len(), same.cases[0].is_held), (1, false), "one or two are all shown");
    }
}
