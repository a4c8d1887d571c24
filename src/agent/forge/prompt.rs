//! The prompt of the forge: the request, the examples that the model may see, and what was wrong with the script before.

use super::examples::Case;
use super::language::Language;
use super::machine::{Ask, Complaint};
use crate::model::{Prompt, Role};

/// Characters of an example that are shown, on each side.
const SIDE: usize = 1200;
/// Examples that are shown, and failures that are told.
const SHOWN: usize = 6;
const TOLD: usize = 2;

/// The persona.
const PERSONA: &str = "You write one small, correct program from examples. You find the general rule behind the examples: \
     the program is run on other inputs of the same kind, and one of the tests is hidden from you. Never copy values of the \
     examples into the program. A field may hold spaces and separators of its own: match structured lines with re.match and \
     groups, or split with a limit. Keep white space and letters as they are unless the task changes them. Answer with the \
     complete code in one fenced block and nothing else.";

/// The prompt for a script.
pub fn prompt(request: &str, cases: &[Case], language: Language, contract: &str, ask: &Ask) -> Prompt {
    let mut prompt = Prompt::system(PERSONA);
    let mut text = format!("Task: {request}\n\n");
    for (at, case) in cases.iter().filter(|case| !case.is_held).take(SHOWN).enumerate() {
        text.push_str(&format!(
            "Example {}\nInput:\n{}\nOutput:\n{}\n\n",
            at + 1,
            block(&case.input),
            block(&case.expected)
        ));
    }
    text.push_str(contract);
    prompt.push(Role::User, text);
    if let Some((code, complaint)) = &ask.before {
        prompt.push(Role::Assistant, format!("```{}\n{}\n```", language.name(), code.trim()));
        prompt.push(Role::User, told(complaint, cases));
    }
    prompt
}

fn block(text: &str) -> String {
    let mut start: String = text.trim_end().chars().take(SIDE).collect();
    if start.len() < text.trim_end().len() {
        start.push_str("\n[...]");
    }
    format!("<<<\n{start}\n>>>")
}

/// The complaint. Of a hidden test only that it fails.
fn told(complaint: &Complaint, cases: &[Case]) -> String {
    let mut lines = Vec::new();
    match complaint {
        Complaint::Findings(findings) => {
            lines.push("This program is not run, because:".to_owned());
            for finding in findings.iter().take(SHOWN) {
                lines.push(format!("- `{}`: {}", finding.what, finding.why));
            }
            lines.push("Write the whole code again without it.".into());
        }
        Complaint::Failures(failures) => {
            let seen: Vec<_> = failures.iter().filter(|f| !f.is_held).collect();
            for failure in seen.iter().take(TOLD) {
                let Some(case) = cases.get(failure.case) else { continue };
                lines.push(format!("It fails ({} failure).\nInput:\n{}", failure.class.name(), block(&case.input)));
                lines.push(format!("Expected:\n{}\nGot:\n{}", block(&case.expected), block(&failure.got)));
                if !failure.error.is_empty() {
                    lines.push(format!("Error: {}", failure.error));
                }
            }
            match seen.first() {
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
    use crate::agent::forge::classify::{Class, Failure};
    use crate::agent::forge::examples::Way;

    #[test]
    fn a35_the_hidden_test_is_never_shown() {
        let mut cases = vec![Case::new("in-1", "out-1", Way::Text), Case::new("in-hidden", "out-hidden", Way::Text)];
        cases[1].is_held = true;
        let failure = |case: usize, is_held| Failure {
            case,
            class: Class::Assertion,
            got: "got-hidden".into(),
            error: String::new(),
            is_held,
        };
        for failures in [vec![failure(1, true)], vec![failure(0, false), failure(1, true)]] {
            let only_hidden = failures.len() == 1;
            let ask = Ask { iteration: 2, before: Some(("code".into(), Complaint::Failures(failures))) };
            let prompt = prompt("do", &cases, Language::Python, "c", &ask);
            let whole: String = prompt.turns.iter().map(|t| t.text.as_str()).collect();
            assert!(whole.contains("in-1") && !whole.contains("in-hidden") && !whole.contains("out-hidden"), "{whole}");
            assert_eq!(whole.contains("hidden one fails"), only_hidden, "{whole}");
        }
    }
}
