//! The report of an evaluation, which `--json` prints and `--against` reads again.

use super::compare::Verdict;
use super::stats::{Calibration, calibration, percentile, sign_test, wilson};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    /// The id of the task.
    pub id: String,
    /// The request.
    pub request: String,
    /// The machine it was asked for.
    pub target: String,
    /// The verdict on the answer.
    pub verdict: Verdict,
    /// The answer; empty if there was none.
    pub cmd: String,
    /// The reason if there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub error: Option<String>,
    /// The model's first command and the verdict on it, if iteration 2 ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first: Option<(String, Verdict)>,
    /// The reported probability that it is right.
    pub confidence: f64,
    /// Iterations run.
    pub iterations: u32,
    /// Ids of the findings that remained against it.
    pub findings: Vec<String>,
    /// Ids of all findings against it or any earlier command.
    #[serde(default)]
    pub seen: Vec<String>,
    /// Milliseconds to the answer.
    pub ms: f64,
}

impl TaskReport {
    /// True if it did what was asked.
    pub fn passed(&self) -> bool {
        self.verdict == Verdict::Passed
    }
}

/// The effect of the second iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Tasks it ran on.
    pub touched: usize,
    /// Their share of all tasks.
    pub rate: f64,
    /// The number of those that the first command would have passed.
    pub passed_before: usize,
    /// The number of those that pass now.
    pub passed_after: usize,
    /// Tasks it made worse.
    pub regressions: Vec<String>,
    /// Relative gain on those tasks; `None` if all first commands failed.
    pub lift: Option<f64>,
}

/// The comparison of two evaluations of the same tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// Tasks in both.
    pub tasks: usize,
    /// Tasks that only this one passes.
    pub wins: Vec<String>,
    /// Tasks that only the other one passes.
    pub losses: Vec<String>,
    /// The probability of a split at least this uneven if neither is better (two-sided sign test).
    pub p: f64,
}

/// The report of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of caro.
    pub version: String,
    /// Seconds since 1970.
    pub time: u64,
    /// The model's id.
    pub model: String,
    /// The settings in force.
    pub settings: BTreeMap<String, String>,
    /// Number of tasks.
    pub asked: usize,
    /// Number of tasks passed.
    pub passed: usize,
    /// Share of the tasks passed.
    pub score: f64,
    /// Wilson's 95 % interval of the score.
    pub interval: (f64, f64),
    /// The number of tasks with each verdict.
    pub verdicts: BTreeMap<String, usize>,
    /// Median of the milliseconds to an answer; the first answer, which includes loading, is not counted.
    pub ms_p50: f64,
    /// The 95th percentile of the same times.
    pub ms_p95: f64,
    /// The effect of the second iteration.
    pub second: Second,
    /// The calibration of the confidence, over the answers that had a command.
    pub calibration: Option<Calibration>,
    /// The comparison with another evaluation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub against: Option<Paired>,
    /// The results of the tasks.
    pub tasks: Vec<TaskReport>,
}

impl Report {
    /// Sums up the results of tasks.
    pub fn of(model: String, settings: BTreeMap<String, String>, time: u64, tasks: Vec<TaskReport>) -> Self {
        let (asked, passed) = (tasks.len(), tasks.iter().filter(|t| t.passed()).count());
        let mut verdicts = BTreeMap::new();
        for task in &tasks {
            *verdicts.entry(name(task.verdict)).or_default() += 1;
        }
        let times: Vec<f64> = tasks.iter().skip(usize::from(asked > 1)).map(|t| t.ms).collect();
        let answers: Vec<(f64, bool)> =
            tasks.iter().filter(|t| t.verdict != Verdict::NoCommand).map(|t| (t.confidence, t.passed())).collect();
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            time,
            model,
            settings,
            asked,
            passed,
            score: share(passed, asked),
            interval: wilson(passed, asked),
            verdicts,
            ms_p50: percentile(&times, 0.5),
            ms_p95: percentile(&times, 0.95),
            second: second(&tasks),
            calibration: calibration(&answers),
            against: None,
            tasks,
        }
    }

    /// Compares this evaluation with another one, task by task.
    pub fn against(&self, other: &Self) -> Paired {
        let others: BTreeMap<&str, bool> = other.tasks.iter().map(|t| (t.id.as_str(), t.passed())).collect();
        let both: Vec<(&TaskReport, bool)> =
            self.tasks.iter().filter_map(|t| Some((t, *others.get(t.id.as_str())?))).collect();
        let only = |mine: bool| -> Vec<String> {
            both.iter().filter(|(t, theirs)| t.passed() == mine && *theirs != mine).map(|(t, _)| t.id.clone()).collect()
        };
        let (wins, losses) = (only(true), only(false));
        Paired { tasks: both.len(), p: sign_test(wins.len(), losses.len()), wins, losses }
    }
}

fn second(tasks: &[TaskReport]) -> Second {
    let touched: Vec<(&TaskReport, bool)> =
        tasks.iter().filter_map(|t| t.first.as_ref().map(|(_, verdict)| (t, *verdict == Verdict::Passed))).collect();
    let before = touched.iter().filter(|(_, first)| *first).count();
    let after = touched.iter().filter(|(t, _)| t.passed()).count();
    Second {
        touched: touched.len(),
        rate: share(touched.len(), tasks.len()),
        passed_before: before,
        passed_after: after,
        regressions: touched.iter().filter(|(t, first)| *first && !t.passed()).map(|(t, _)| t.id.clone()).collect(),
        lift: (before > 0).then(|| after as f64 / before as f64 - 1.0),
    }
}

/// The name of a verdict in the document.
pub fn name(verdict: Verdict) -> String {
    serde_json::to_value(verdict).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, verdict: Verdict, first: Option<Verdict>, confidence: f64, ms: f64) -> TaskReport {
        TaskReport {
            id: id.into(),
            request: "r".into(),
            target: "linux-gnu".into(),
            verdict,
            cmd: "c".into(),
            error: None,
            first: first.map(|v| ("f".into(), v)),
            confidence,
            iterations: 1 + u32::from(first.is_some()),
            findings: vec![],
            seen: vec![],
            ms,
        }
    }

    fn report(tasks: Vec<TaskReport>) -> Report {
        Report::of("m".into(), BTreeMap::new(), 7, tasks)
    }

    #[test]
    fn a_report_sums_up() {
        use Verdict::{NoCommand, Passed, WrongOutput};
        let whole = report(vec![
            task("a", Passed, None, 0.9, 9000.0),
            task("b", Passed, Some(WrongOutput), 0.8, 100.0),
            task("c", WrongOutput, Some(Passed), 0.4, 300.0),
            task("d", NoCommand, None, 0.0, 200.0),
        ]);
        assert_eq!((whole.asked, whole.passed, whole.score), (4, 2, 0.5));
        assert_eq!((whole.ms_p50, whole.ms_p95), (200.0, 300.0), "the first has the loading in it");
        assert_eq!(whole.second.regressions, ["c"]);
        assert_eq!((whole.second.touched, whole.second.rate, whole.second.lift), (2, 0.5, Some(0.0)));
        assert_eq!(whole.calibration.unwrap().auroc, Some(1.0), "an answer that is none has no confidence");
        assert_eq!(whole.verdicts["wrong-output"], 1);
        let again: Report = serde_json::from_str(&serde_json::to_string(&whole).unwrap()).unwrap();
        assert_eq!(again, whole);
    }

    #[test]
    fn pairs_are_the_tasks_of_both() {
        use Verdict::{Passed, WrongFiles};
        let one = report(vec![
            task("a", Passed, None, 1.0, 1.0),
            task("b", WrongFiles, None, 1.0, 1.0),
            task("c", Passed, None, 1.0, 1.0),
        ]);
        let two = report(vec![
            task("b", Passed, None, 1.0, 1.0),
            task("c", WrongFiles, None, 1.0, 1.0),
            task("d", Passed, None, 1.0, 1.0),
        ]);
        let paired = one.against(&two);
        assert_eq!((paired.tasks, paired.wins, paired.losses), (2, vec!["c".into()], vec!["b".into()]));
        assert_eq!(paired.p, 1.0);
    }
}
