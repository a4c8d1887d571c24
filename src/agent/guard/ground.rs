//! Refuses reports and answers with numbers or file names that no tool has shown, as small models often invent them.

use super::{Finding, Guard, GuardError, Verdict};
use crate::action::{ActionSet, EXAMPLE};
use crate::plan::Plan;
use crate::state::{RunState, facts, without_thousands};
use crate::tool::Call;
use caro_intent::changes;
use regex::Regex;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

/// Extensions of files that hold a report, and not a program or a configuration.
const REPORT_EXTENSIONS: &[&str] = &["md", "txt", "csv", "tsv", "html", "rst", "org", "adoc"];

/// Most invented facts that a finding names.
const MAX_NAMED: usize = 5;

/// True if a text has the number of the prompt's examples ([`EXAMPLE`]), and neither the task nor any result has it.
pub fn is_example(text: &str, task: &str, state: &RunState) -> bool {
    let has = |text: &str| facts(text).chain(facts(&without_thousands(text))).any(|fact| fact == EXAMPLE);
    has(text) && !has(task) && !state.has_shown(EXAMPLE)
}

/// `ground`: for a task that first reads something and then writes about it. Admits no writing until there were as
/// many successful reads as there are parts before the first that writes, and refuses reports with facts that no tool
/// has shown.
#[derive(Debug)]
pub struct GroundGuard {
    /// The number of reads before the first write.
    looks: u64,
    /// True if the task asks for numbers.
    measures: bool,
    task: String,
    known: BTreeSet<String>,
}

impl GroundGuard {
    /// Creates a guard for a task and its plan.
    pub fn new(task: &str, plan: &Plan) -> Self {
        let writes = |part: &String| {
            let first = part.split_whitespace().next().unwrap_or_default().to_lowercase();
            ["write", "save", "put", "store", "create", "make", "record", "append", "edit", "fix", "replace", "update"]
                .contains(&first.as_str())
        };
        let before = plan.parts.iter().position(writes).unwrap_or(0);
        // parts that change something read nothing
        let looks = plan.parts.iter().take(before).filter(|part| !changes(part)).count() as u64;
        Self { looks, measures: measures(task), task: task.to_owned(), known: facts(task).collect() }
    }

    /// Returns the facts of a text that neither the task nor a tool has shown.
    fn invented(&self, text: &str, state: &RunState) -> Vec<String> {
        let unknown = |fact: &String| !self.known.contains(fact) && !state.has_shown(fact);
        // `1,234,567` is one number or three: the reading with fewer unknown facts counts
        let split: Vec<String> = facts(text).filter(unknown).collect();
        let joined: Vec<String> = facts(&without_thousands(text)).filter(unknown).collect();
        let mut found = if joined.len() < split.len() { joined } else { split };
        found.sort();
        found.dedup();
        found
    }
}

impl Guard for GroundGuard {
    fn name(&self) -> &'static str {
        "ground"
    }

    fn admit(&self, set: &mut ActionSet, state: &RunState) {
        let others = set.tools.iter().any(|tool| !writes(tool));
        if state.looks < self.looks && others {
            set.tools.retain(|tool| !writes(tool));
        }
    }

    /// Sends an answer back that has facts that no tool has shown. Without any successful read nothing is checked.
    fn answer(&self, text: &str, state: &RunState) -> Option<Finding> {
        if is_example(text, &self.task, state) {
            return Some(example("accepted"));
        }
        let invented = self.unseen(text, state);
        (!invented.is_empty()).then(|| Finding {
            id: "not-seen".into(),
            text: format!("Not accepted: no tool has shown you {}. Answer with what was shown.", invented.join(", ")),
        })
    }

    fn unseen(&self, text: &str, state: &RunState) -> Vec<String> {
        let mut invented = if state.looks == 0 { Vec::new() } else { self.invented(text, state) };
        invented.truncate(MAX_NAMED);
        invented
    }

    fn check(&self, call: &Call, state: &RunState) -> Result<Verdict, GuardError> {
        if call.args.values().filter_map(serde_json::Value::as_str).any(|text| is_example(text, &self.task, state)) {
            return Ok(Verdict::Deny(example("done")));
        }
        if self.looks == 0 && !self.measures || !writes(&call.tool) {
            return Ok(Verdict::Allow);
        }
        let text = |name: &str| call.args.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
        let extension = Path::new(text("path")).extension().map(|e| e.to_string_lossy().to_lowercase());
        if !extension.is_some_and(|e| REPORT_EXTENSIONS.contains(&e.as_str())) {
            return Ok(Verdict::Allow);
        }
        let mut invented = self.invented(text("content"), state);
        invented.extend(self.invented(text("new"), state));
        let own = facts(text("path")).collect::<BTreeSet<_>>();
        invented.retain(|fact| !own.contains(fact));
        if invented.is_empty() {
            return Ok(Verdict::Allow);
        }
        invented.truncate(MAX_NAMED);
        Ok(Verdict::Deny(Finding {
            id: "not-seen".into(),
            text: format!(
                "Not written: no tool has shown you {}. Find out with a tool first, then write exactly what it showed.",
                invented.join(", ")
            ),
        }))
    }
}

/// The finding that a text was copied from the example.
fn example(what: &str) -> Finding {
    let text = format!("Not {what}: that is the example. Do the user's own task.");
    Finding { id: "example".into(), text }
}

/// True if a task asks for numbers.
fn measures(task: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:count|how (?:many|much|often)|(?:number|count|size|sum) of|average|total|percentage)\b")
            .ok()
    });
    FORM.as_ref().is_some_and(|form| form.is_match(task))
}

/// True if a tool writes files.
fn writes(tool: &str) -> bool {
    matches!(tool, "write" | "edit") || tool.starts_with("workspace_") && tool != "workspace_view"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_be_written_with_commas() {
        let guard = GroundGuard::new("how big is a.bin", &Plan::heuristic("how big is a.bin"));
        let mut state = RunState { looks: 1, ..RunState::default() };
        state.learn("1234567 a.bin");
        assert!(guard.answer("a.bin has 1,234,567 bytes.", &state).is_none());
        assert!(guard.answer("a.bin has 1,234,568 bytes.", &state).is_some());
    }
    use crate::tool::{Args, Effects};
    use serde_json::json;

    const TASK: &str = "find the two largest logs, show how many errors each has, and write a summary to report.md";

    fn check(state: &RunState, content: &str) -> Option<String> {
        let guard = GroundGuard::new(TASK, &Plan::heuristic(TASK));
        let args: Args = serde_json::from_value(json!({"path": "report.md", "content": content})).unwrap();
        let call = Call { id: "s1c1".into(), tool: "write".into(), args, effects: Effects::default() };
        match guard.check(&call, state).unwrap() {
            Verdict::Deny(finding) => Some(finding.text),
            _ => None,
        }
    }

    #[test]
    fn a_size_with_a_unit_must_have_been_shown_in_some_notation() {
        let guard = GroundGuard::new("how big is it", &Plan::heuristic("how big is it"));
        let mut state = RunState { looks: 1, ..RunState::default() };
        state.learn("4.0K\t.\n1288490 a.bin");
        for shown in
            ["It has 4.0K.", "It has 4KB.", "a.bin has 1.2M", "a.bin has 1.29MB", "a.bin has 1258.3 KiB: 1259K"]
        {
            assert_eq!(guard.answer(shown, &state), None, "{shown}");
        }
        for invented in ["It has 8.0K.", "a.bin has 12MB", "a.bin has 1.5M", "It has 4G."] {
            assert!(guard.answer(invented, &state).is_some(), "{invented}");
        }
    }

    #[test]
    fn a_report_with_unknown_facts_is_refused() {
        let mut state = RunState::default();
        state.learn("logs/web.log:17\nlogs/worker.log:5\n");
        assert_eq!(check(&state, "# Report\n\n- web.log: 17 errors\n- logs/worker.log: 5 errors\n"), None);
        let text = check(&state, "web.log 12345, error.log 17").unwrap();
        assert!(text.contains("12345, error.log") && !text.contains("web.log"), "{text}");
    }

    #[test]
    fn a_report_with_unknown_numbers_is_refused_even_as_the_first_part() {
        let write = |task: &str, shown: &str| {
            let guard = GroundGuard::new(task, &Plan::heuristic(task));
            let mut state = RunState::default();
            state.learn(shown);
            let args: Args = serde_json::from_value(json!({"path": "r.md", "content": "120 requests"})).unwrap();
            let call = Call { id: "s1c1".into(), tool: "write".into(), args, effects: Effects::default() };
            guard.check(&call, &state).unwrap() == Verdict::Allow
        };
        let task = "write a report with the number of requests in access.log to r.md";
        assert_eq!((write(task, ""), write(task, "120 access.log")), (false, true));
        assert!(write("write a story about a web server to r.md", ""), "a story may have any");
    }

    #[test]
    fn nothing_counts_as_invented_once_the_memory_for_facts_is_full() {
        let mut state = RunState { looks: 1, ..RunState::default() };
        let guard = GroundGuard::new("count", &Plan::heuristic("count"));
        assert!(guard.answer("77777", &state).is_some());
        for page in 0..300 {
            state.learn(&(0..10).map(|n| format!("{} ", page * 10 + n + 100)).collect::<String>());
        }
        assert_eq!(guard.answer("77777", &state), None);
    }

    #[test]
    fn an_answer_with_unknown_facts_is_sent_back() {
        let guard = GroundGuard::new(TASK, &Plan::heuristic(TASK));
        let mut state = RunState { looks: 1, ..RunState::default() };
        state.learn("12 a.txt");
        assert_eq!(guard.answer("a.txt has 12 lines", &state), None);
        assert!(guard.answer("a.txt has 127 lines", &state).unwrap().text.contains("127"));
        assert_eq!(guard.answer("it is 127", &RunState::default()), None, "nothing was looked at");
    }

    #[test]
    fn a_copy_of_the_example_is_refused() {
        let task = "make app/secrets.env readable for me only";
        let guard = GroundGuard::new(task, &Plan::heuristic(task));
        let mut state = RunState::default();
        assert!(guard.answer("There are 8317 files.", &state).unwrap().text.contains("example"));
        let run = |state: &RunState| {
            let args: Args = serde_json::from_value(json!({"command": "echo 'a.txt has 8317 lines' > x"})).unwrap();
            let call = Call { id: "s1c1".into(), tool: "shell".into(), args, effects: Effects::default() };
            guard.check(&call, state).unwrap() == Verdict::Allow
        };
        assert!(!run(&state));
        state.learn("8317 files");
        assert!(run(&state) && guard.answer("There are 8317 files.", &state).is_none(), "it was shown");
    }

    #[test]
    fn writing_is_admitted_only_after_reading() {
        let guard = GroundGuard::new(TASK, &Plan::heuristic(TASK));
        let all =
            ActionSet { tools: vec!["shell".into(), "write".into()], answer: true, cannot: true, batch: 1, path: None };
        let admitted = |looks| {
            let mut set = all.clone();
            guard.admit(&mut set, &RunState { looks, ..RunState::default() });
            set.tools.len()
        };
        assert_eq!([admitted(0), admitted(1), admitted(2)], [1, 1, 2]);
        let task = "create a file hello.txt with the word hi";
        let free = GroundGuard::new(task, &Plan::heuristic(task));
        let mut set = all.clone();
        free.admit(&mut set, &RunState::default());
        assert_eq!(set, all);
    }
}
