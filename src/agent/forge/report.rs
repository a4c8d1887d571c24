//! The report of a forging, for users and programs, and the `SKILL.md` of a promoted skill.

use super::classify::Failure;
use super::examples::{Case, Order, Way};
use super::language::Language;
use super::scan::Finding;
use super::twin::Open;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// The result of a forging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The skill is on the shelf.
    Promoted,
    /// The script has forbidden effects, or works only on the inputs of its tests.
    Rejected,
    /// A script failed the same tests in the same way as an earlier one.
    Stagnation,
    /// The limit of scripts is reached, and the last one fails.
    Exhausted,
    /// The tests pass without the script.
    NotRed,
    /// Another script passes too, and gives another output where no example says which is right.
    Open,
}

impl Verdict {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Promoted => "promoted",
            Self::Rejected => "rejected",
            Self::Stagnation => "stagnation",
            Self::Exhausted => "exhausted",
            Self::NotRed => "not_red",
            Self::Open => "open",
        }
    }
}

/// The report of a forging.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The name of the skill.
    pub name: String,
    /// The result.
    pub verdict: Verdict,
    /// The language of the script.
    pub language: Language,
    /// The number of scripts that were written.
    pub iterations: u32,
    /// The number of tests.
    pub tests: usize,
    /// The number of tests that were held back from the model.
    pub held: usize,
    /// The findings against the script.
    pub findings: Vec<Finding>,
    /// The tests that fail.
    pub failures: Vec<Failure>,
    /// The input that no example decides.
    pub open: Option<Open>,
    /// The folder of the skill, on the shelf or in quarantine.
    pub folder: PathBuf,
    /// Remarks on checks that were not possible.
    pub notes: Vec<String>,
}

/// Most characters of a text in a report.
const MAX_SHOWN: usize = 300;

impl Report {
    /// Returns the report as one sentence.
    pub fn line(&self) -> String {
        let name = &self.name;
        let scripts = counted(self.iterations, "script");
        let tests = counted(u64::try_from(self.tests).unwrap_or_default(), "test");
        let failing = self.failures.len();
        match self.verdict {
            Verdict::Promoted => format!("`{name}` is on the shelf: {tests}, {scripts}"),
            Verdict::Rejected => {
                let mut rules: Vec<&str> = self.findings.iter().map(|f| f.rule.as_str()).collect();
                rules.dedup();
                format!("`{name}` is rejected ({}) after {scripts}", rules.join(", "))
            }
            Verdict::Stagnation => {
                format!("`{name}` is not made: {failing} of {tests} fail in the same way again after {scripts}")
            }
            Verdict::Exhausted => format!("`{name}` is not made: {failing} of {tests} still fail after {scripts}"),
            Verdict::Open => {
                format!(
                    "`{name}` is not made yet: two scripts pass all {tests}, and differ where no example says which is right"
                )
            }
            Verdict::NotRed => {
                format!("`{name}` is not made: its tests pass before a script is written, so they show nothing")
            }
        }
    }

    /// Returns advice to the user.
    pub fn hint(&self) -> String {
        match self.verdict {
            Verdict::Open => {
                let examples: Vec<String> = self.open.iter().flat_map(Open::examples).collect();
                format!("say what is right, with one of these or with another output: {}", examples.join(" or "))
            }
            Verdict::Promoted => format!("`caro skills show {}` shows it; a task that it fits uses it", self.name),
            Verdict::NotRed => "give examples whose output differs from their input".into(),
            Verdict::Rejected => format!(
                "read {} before you allow more (--allow)",
                self.folder.join(super::quarantine::REPORT).display()
            ),
            Verdict::Stagnation | Verdict::Exhausted => format!(
                "say the rule in the request, give simpler examples or a larger model (--model); {} has the last script",
                self.folder.display()
            ),
        }
    }

    /// Returns the full report in Markdown, as it is stored.
    pub fn text(&self, cases: &[Case]) -> String {
        let mut text = format!("# {}: {}\n\n{}.\n", self.name, self.verdict.name(), self.line());
        for finding in &self.findings {
            let line = if finding.line > 0 { format!(" (line {})", finding.line) } else { String::new() };
            text.push_str(&format!(
                "\n- rule `{}`{line}: {}\n\n      {}\n",
                finding.rule,
                finding.why,
                short(&finding.what)
            ));
        }
        for failure in &self.failures {
            let Some(case) = cases.get(failure.case) else { continue };
            let hidden = if failure.is_held_out { ", not shown to the model" } else { "" };
            text.push_str(&format!("\n- test {} ({} failure{hidden})\n", failure.case + 1, failure.class.name()));
            text.push_str(&format!("  - in: {}\n  - expected: {}\n", short(&case.input), short(&case.expected)));
            text.push_str(&format!(
                "  - got: {}\n",
                short(if failure.got.is_empty() { &failure.error } else { &failure.got })
            ));
        }
        if let Some(open) = &self.open {
            text.push_str(&format!("\n- in: {}\n  - one gives: {}\n", short(&open.input), short(&open.one)));
            text.push_str(&format!("  - the other gives: {}\n", short(&open.other)));
        }
        for note in &self.notes {
            text.push_str(&format!("\nNot checked: {note}.\n"));
        }
        text.push_str(&format!("\nNext: {}\n", self.hint()));
        text
    }
}

/// Formats a count with its noun in singular or plural.
fn counted(count: impl Into<u64>, what: &str) -> String {
    let count = count.into();
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Shortens a text to one line.
fn short(text: &str) -> String {
    let line = text.trim_end().replace('\n', "\\n");
    let mut start: String = line.chars().take(MAX_SHOWN).collect();
    if start.len() < line.len() {
        start.push('…');
    }
    start
}

/// Words that are left out of a skill's name.
const STOP_WORDS: &[&str] = &[
    "a", "an", "the", "create", "make", "build", "write", "forge", "skill", "script", "tool", "that", "which", "to",
    "for", "of", "from", "me", "please", "i", "need", "want", "with", "and", "in", "into", "its", "it", "each", "this",
    "these", "new",
];

/// Makes the name of a skill of the first three telling words of its request; empty if there are none.
pub fn name_of(request: &str) -> String {
    let words = request.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_lowercase);
    let telling: Vec<String> =
        words.filter(|word| !word.is_empty() && !STOP_WORDS.contains(&word.as_str())).take(3).collect();
    telling.join("-").chars().take(60).collect::<String>().trim_end_matches('-').to_owned()
}

/// Returns the text of the `SKILL.md` of a promoted skill.
pub fn skill_text(name: &str, order: &Order, main: &str) -> String {
    let quoted = |text: &str| Value::from(text.split_whitespace().collect::<Vec<_>>().join(" ")).to_string();
    let description: String = format!("{}: {}", name.replace('-', " "), order.request).chars().take(1000).collect();
    let takes_files = order.cases.iter().all(|case| case.way == Way::File);
    let file = format!(
        "        - {{name: file, type: string, required: {takes_files}, description: the name of a file that holds the input}}\n"
    );
    let text = "        - {name: text, type: string, description: the input itself}\n";
    let parameters = if takes_files { file } else { format!("{text}{file}") };
    let call = name.replace('-', "_");
    let shown = order.cases.first().map(|case| (short(&case.input), short(&case.expected))).unwrap_or_default();
    let example = format!("{} -> {}", shown.0, shown.1).replace("{%", "{ %").replace("%}", "% }");
    format!(
        "---\nname: {name}\ndescription: {}\nversion: '1'\nmetadata:\n  forged: true\n  scripts:\n    - file: {main}\n      \
         description: {}\n      parameters:\n{parameters}---\n# {name}\n\n1. Call `{call}` once, with {}.\n2. What it prints is the \
         result: give it as the answer, unchanged.\n\n{{% raw %}}For example: {example}{{% endraw %}}\n",
        quoted(&description),
        quoted(&order.request.chars().take(300).collect::<String>()),
        if takes_files {
            "`file`, the name of the file"
        } else {
            "`file`, the name of a file, or `text`, the input itself"
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::front;

    #[test]
    fn a_name_consists_of_telling_words_of_the_request() {
        for (request, name) in [
            ("Create a .pcab parser skill", "pcab-parser"),
            ("make a unit converter", "unit-converter"),
            ("a skill that sums the columns of CSV files", "sums-columns-csv"),
            ("create a skill", ""),
        ] {
            assert_eq!(name_of(request), name, "{request}");
        }
    }

    #[test]
    fn a33_the_front_matter_of_a_promoted_skill_is_valid() {
        for way in [Way::Text, Way::File] {
            let order = Order {
                request: "Reads \"INI\": {{ x }}\nfiles".into(),
                cases: vec![Case::new("{% raw %} a: 1", "b", way)],
            };
            let text = skill_text("ini-reader", &order, "main.py");
            let front = front::parse(&text, "ini-reader").unwrap_or_else(|e| panic!("{e}: {text}"));
            assert!(front.description.contains("INI"), "{text}");
            assert_eq!(front.all["metadata"]["scripts"][0]["file"], "main.py");
        }
    }
}
