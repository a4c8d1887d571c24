//! Builds the prompt of the forge: the request, the examples that the model may see, and the complaint about the
//! previous script. Examples for Python are assertions, which models of code understand better than two blocks of
//! text (`benches/records/2026-11-28-forge.md`).

use super::examples::Case;
use super::language::Language;
use super::machine::{Complaint, ScriptRequest};
use caro_model::{Prompt, Role};

/// Most characters of each side of an example.
const MAX_SIDE: usize = 1200;
/// Most examples in the prompt, and most failures.
const MAX_SHOWN: usize = 6;
const MAX_FAILURES: usize = 2;

/// The persona.
const PERSONA: &str = "You write one small, correct program from examples. You find the general rule behind the examples: \
     the program is run on other inputs of the same kind, and one of the tests is hidden from you. Never copy values of the \
     examples into the program. A field may hold spaces and separators of its own: match structured lines with re.match and \
     groups, or split with a limit. Keep white space and letters as they are unless the task changes them. Answer with the \
     complete code in one fenced block and nothing else.";

/// The persona if the examples are assertions.
const PYTHON: &str = "You are an expert Python programmer. You write one small, correct, general function. The examples are \
     only a few of many inputs it must work on: never copy values of the examples into the code. Answer with the complete \
     code in one fenced block and nothing else.";

/// Builds the prompt for a script.
pub fn prompt(task: &str, cases: &[Case], language: Language, contract: &str, request: &ScriptRequest) -> Prompt {
    let visible = || cases.iter().filter(|case| !case.is_held_out);
    let asserts = language == Language::Python && visible().all(is_short);
    let shown = visible().take(MAX_SHOWN);
    let mut prompt = Prompt::system(if asserts { PYTHON } else { PERSONA });
    let text = if asserts {
        let all = shown.map(|case| format!("assert {}\n", equation(&case.input, &case.expected)));
        format!("{task}\n\n{contract}\n\nThese have to hold:\n\n```python\n{}```", all.collect::<String>())
    } else {
        let all = shown.enumerate().map(|(at, case)| {
            let (input, output) = (block(&case.input), block(&case.expected));
            format!("Example {}\nInput:\n{input}\nOutput:\n{output}\n\n", at + 1)
        });
        format!("Task: {task}\n\n{}{contract}", all.collect::<String>())
    };
    prompt.push(Role::User, text);
    if let Some((code, complaint)) = &request.before {
        prompt.push(Role::Assistant, format!("```{}\n{}\n```", language.name(), code.trim()));
        prompt.push(Role::User, describe(complaint, cases, asserts));
    }
    prompt
}

/// True if a test can be shown in full.
fn is_short(case: &Case) -> bool {
    [&case.input, &case.expected].iter().all(|text| text.chars().count() <= MAX_SIDE)
}

/// Returns the Python expression `transform("input") == "output"`. JSON strings are valid Python strings.
fn equation(input: &str, output: &str) -> String {
    format!("transform({}) == {}", string(input), string(output))
}

/// Quotes a text as a JSON string.
fn string(text: &str) -> String {
    serde_json::Value::from(text.trim_end_matches('\n').chars().take(MAX_SIDE).collect::<String>()).to_string()
}

/// Marks a text as a block.
fn block(text: &str) -> String {
    let mut start: String = text.trim_end().chars().take(MAX_SIDE).collect();
    if start.len() < text.trim_end().len() {
        start.push_str("\n[...]");
    }
    format!("<<<\n{start}\n>>>")
}

/// Describes a complaint. Of a hidden test only the fact that it fails is given.
fn describe(complaint: &Complaint, cases: &[Case], asserts: bool) -> String {
    let mut lines = Vec::new();
    match complaint {
        Complaint::Findings(findings) => {
            lines.push("This program is not run, because:".to_owned());
            for finding in findings.iter().take(MAX_SHOWN) {
                lines.push(format!("- `{}`: {}", finding.what, finding.why));
            }
            lines.push("Write the whole code again without it.".into());
        }
        Complaint::Failures(failures) => {
            let visible: Vec<_> = failures.iter().filter(|f| !f.is_held_out).collect();
            for failure in visible.iter().take(MAX_FAILURES) {
                let Some(case) = cases.get(failure.case) else { continue };
                let class = failure.class.name();
                if asserts {
                    lines.push(format!("`{}` does not hold ({class} failure).", equation(&case.input, &case.expected)));
                    lines.push(format!("It gives: {}", string(&failure.got)));
                } else {
                    lines.push(format!("It fails ({class} failure).\nInput:\n{}", block(&case.input)));
                    lines.push(format!("Expected:\n{}\nGot:\n{}", block(&case.expected), block(&failure.got)));
                }
                if !failure.error.is_empty() {
                    lines.push(format!("Error: {}", failure.error));
                }
            }
            match visible.first() {
                Some(first) => lines.push(first.class.advice().to_owned()),
                None => lines.push(
                    "Every example that you see passes, and the hidden one fails: the program is too special. Find the general \
                     rule."
                        .into(),
                ),
            }
            lines.push("Say in one comment line in the code what was wrong, and write the whole code again.".into());
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::classify::{Class, Failure};
    use crate::forge::examples::Way;

    #[test]
    fn a_short_example_in_python_is_an_assertion() {
        let request = ScriptRequest { iteration: 1, before: None };
        let of = |input: &str, language| {
            let cases = [Case::new(input, "a\nb", Way::Text)];
            prompt("do", &cases, language, "c", &request).messages.iter().map(|t| t.text.as_str()).collect::<String>()
        };
        assert!(of("x \"y\"", Language::Python).contains(r#"assert transform("x \"y\"") == "a\nb""#));
        assert!(
            of(&"x".repeat(MAX_SIDE + 1), Language::Python).contains("Input:\n<<<"),
            "what is cut is not an assertion"
        );
        assert!(of("x", Language::Awk).contains("Input:\n<<<\nx\n>>>"));
    }

    #[test]
    fn a35_the_hidden_test_is_never_shown() {
        let mut cases = vec![Case::new("in-1", "out-1", Way::Text), Case::new("in-hidden", "out-hidden", Way::Text)];
        cases[1].is_held_out = true;
        let failure = |case: usize, is_held_out| Failure {
            case,
            class: Class::Assertion,
            got: "got-hidden".into(),
            error: String::new(),
            is_held_out,
        };
        for failures in [vec![failure(1, true)], vec![failure(0, false), failure(1, true)]] {
            let only_hidden = failures.len() == 1;
            let request = ScriptRequest { iteration: 2, before: Some(("code".into(), Complaint::Failures(failures))) };
            let prompt = prompt("do", &cases, Language::Python, "c", &request);
            let whole: String = prompt.messages.iter().map(|t| t.text.as_str()).collect();
            assert!(whole.contains("in-1") && !whole.contains("in-hidden") && !whole.contains("out-hidden"), "{whole}");
            assert_eq!(whole.contains("hidden one fails"), only_hidden, "{whole}");
        }
    }
}
