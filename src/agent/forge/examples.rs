//! Parses the examples of a request into tests: lines `INPUT -> OUTPUT` in the request, and examples given
//! separately. The model never writes tests, as tests that it invents verify nothing.

/// Least number of examples of which the last one is not shown to the model.
const MIN_TO_HOLD_BACK: usize = 3;
/// Most examples.
pub const MAX_EXAMPLES: usize = 12;

/// The form in which an input is passed to the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// As an argument.
    Text,
    /// As a file.
    File,
}

/// One test: an input and its expected output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The input.
    pub input: String,
    /// The expected output.
    pub expected: String,
    /// The form of the input.
    pub way: Way,
    /// True if it is held back from the model.
    pub is_held_out: bool,
}

impl Case {
    /// Creates a test that is shown to the model.
    pub fn new(input: impl Into<String>, expected: impl Into<String>, way: Way) -> Self {
        Self { input: input.into(), expected: expected.into(), way, is_held_out: false }
    }
}

/// A request, divided into the task and its examples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// The task of the skill.
    pub request: String,
    /// The tests.
    pub cases: Vec<Case>,
}

/// The reason why there are no tests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExampleError {
    /// There are no examples.
    #[error("there is no example to test a skill against")]
    None,
    /// There are too many examples.
    #[error("there are {0} examples, and {MAX_EXAMPLES} are the most")]
    Many(usize),
    /// An example has no arrow, or nothing on one side of it.
    #[error("`{0}` is not an example: it needs an input, an arrow and an output")]
    Form(String),
    /// An input has two different outputs.
    #[error("the input `{0}` has two different outputs")]
    Twice(String),
}

impl ExampleError {
    /// Returns advice to the user.
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

/// Parses one example: `INPUT => OUTPUT` or `INPUT -> OUTPUT`.
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

/// Removes the quotes around a side of an example, and resolves `\n`, `\t` and `\\`.
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

/// Separates a request from its examples, adds the examples given separately, and holds one back if there are enough.
///
/// # Errors
/// If there are no examples, or they cannot be used as tests.
pub fn order(request: &str, given: &[String], samples: Vec<Case>) -> Result<Order, ExampleError> {
    let mut order = Order::default();
    let mut words = Vec::new();
    for line in request.lines() {
        // the request itself may contain an arrow, so an example in it must be one of several lines
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
        count if count > MAX_EXAMPLES => return Err(ExampleError::Many(count)),
        _ => {}
    }
    hold_back(&mut order.cases);
    Ok(order)
}

/// Holds the last test back if there are enough.
pub fn hold_back(cases: &mut [Case]) {
    if cases.len() >= MIN_TO_HOLD_BACK
        && let Some(last) = cases.last_mut()
    {
        last.is_held_out = true;
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
            order.cases.iter().map(|c| (c.input.as_str(), c.expected.as_str(), c.is_held_out)).collect();
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
        assert_eq!((same.cases.len(), same.cases[0].is_held_out), (1, false), "one or two are all shown");
    }
}
