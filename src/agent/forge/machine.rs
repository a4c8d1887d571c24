//! The forge as a pure state machine without clock, files, processes or model.
//!
//! ```text
//! Red -> Write -> Check -> Run -> Probe -> Compare -> Done(Green)
//!          ^        |       |       |          |
//!          +--------+-------+-------+          +----> Done(Open): another script that passes differs
//!            fixed, at most `most` scripts; the same complaint twice ends it
//! ```

use super::classify::Failure;
use super::scan::Finding;
use super::twin::Open;

/// The next step of a forging.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A test run without a script, or with the old one, which has to fail.
    Red,
    /// A script from the model.
    Write(Box<ScriptRequest>),
    /// The static scan of this script.
    Check(String),
    /// A test run of this script.
    Run(String),
    /// A check that this script, which passes its tests, also works on other inputs and changes nothing.
    Probe(String),
    /// A comparison with other scripts that pass: one may give another output where no example says which is right.
    Compare(String),
    /// Nothing: the machine has ended.
    Done(Box<End>),
}

/// A request to the model for a script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptRequest {
    /// The number of the script, from 1.
    pub iteration: u32,
    /// The script before and the complaint about it, if there was one.
    pub before: Option<(String, Complaint)>,
}

/// A complaint about a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Complaint {
    /// Tests fail.
    Failures(Vec<Failure>),
    /// It has forbidden effects, or works only on the inputs of its tests.
    Findings(Vec<Finding>),
}

impl Complaint {
    /// Returns the signature, equal for equal complaints: the failing tests with their outputs and errors, or the
    /// broken rules. A script that fails the same tests in another way has another signature.
    fn signature(&self) -> String {
        let mut lines: Vec<String> = match self {
            Self::Failures(all) => {
                all.iter().map(|f| format!("{} {} {} {}", f.case, f.class.name(), f.got, f.error)).collect()
            }
            Self::Findings(all) => all.iter().map(|f| f.rule.clone()).collect(),
        };
        lines.sort_unstable();
        lines.join("\n")
    }
}

/// The end of a forging.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// Every test passes, and there are no findings.
    Green {
        /// The script.
        code: String,
    },
    /// The tests pass without the script, so they prove nothing.
    NotRed,
    /// The last script has forbidden effects, or works only on the inputs of its tests.
    Rejected {
        /// The script.
        code: String,
        /// The findings against it.
        findings: Vec<Finding>,
    },
    /// A script failed the same tests in the same way as an earlier one.
    Stagnant {
        /// The script.
        code: String,
        /// The tests that fail.
        failures: Vec<Failure>,
    },
    /// The script passes, but another one that passes gives another output where no example says which is right.
    Open {
        /// The script.
        code: String,
        /// The input, and both outputs.
        open: Open,
    },
    /// The limit of scripts is reached.
    Exhausted {
        /// The last script.
        code: String,
        /// The tests that fail.
        failures: Vec<Failure>,
    },
}

/// The state of one forging.
#[derive(Debug)]
pub struct Forging {
    most: u32,
    iteration: u32,
    seen: Vec<String>,
    step: Step,
}

impl Forging {
    /// Creates a forging of at most `most` scripts.
    pub fn new(most: u32) -> Self {
        Self { most, iteration: 0, seen: Vec::new(), step: Step::Red }
    }

    /// Returns the next step, which stays the same until its result is recorded.
    pub fn next(&self) -> &Step {
        &self.step
    }

    /// Returns the number of scripts written so far.
    pub fn iterations(&self) -> u32 {
        self.iteration
    }

    /// True if there was no equal complaint before.
    pub fn is_new(&self, complaint: &Complaint) -> bool {
        !self.seen.contains(&complaint.signature())
    }

    /// Records the test run without a script: `red` if at least one test failed.
    pub fn record_red(&mut self, red: bool) {
        if red { self.request_script(None) } else { self.end(End::NotRed) }
    }

    /// Records the script that the model wrote.
    pub fn record_script(&mut self, code: String) {
        self.step = Step::Check(code);
    }

    /// Records the findings of the static scan.
    pub fn record_scan(&mut self, code: String, findings: Vec<Finding>) {
        if findings.is_empty() {
            self.step = Step::Run(code)
        } else {
            self.record_complaint(code, Complaint::Findings(findings))
        }
    }

    /// Records the failures of a test run.
    pub fn record_tests(&mut self, code: String, failures: Vec<Failure>) {
        if failures.is_empty() {
            self.step = Step::Probe(code)
        } else {
            self.record_complaint(code, Complaint::Failures(failures))
        }
    }

    /// Records the findings of the probe.
    pub fn record_probe(&mut self, code: String, findings: Vec<Finding>) {
        if findings.is_empty() {
            self.step = Step::Compare(code)
        } else {
            self.record_complaint(code, Complaint::Findings(findings))
        }
    }

    /// Records the comparison: the input on which another script that passes differs, if there is one.
    pub fn record_comparison(&mut self, code: String, open: Option<Open>) {
        self.end(match open {
            None => End::Green { code },
            Some(open) => End::Open { code, open },
        });
    }

    fn record_complaint(&mut self, code: String, complaint: Complaint) {
        let signature = complaint.signature();
        let is_repeated = self.seen.contains(&signature);
        if !is_repeated && self.iteration < self.most {
            self.seen.push(signature);
            return self.request_script(Some((code, complaint)));
        }
        self.end(match complaint {
            Complaint::Findings(findings) => End::Rejected { code, findings },
            Complaint::Failures(failures) if is_repeated => End::Stagnant { code, failures },
            Complaint::Failures(failures) => End::Exhausted { code, failures },
        });
    }

    fn request_script(&mut self, before: Option<(String, Complaint)>) {
        self.iteration += 1;
        self.step = Step::Write(Box::new(ScriptRequest { iteration: self.iteration, before }));
    }

    fn end(&mut self, end: End) {
        self.step = Step::Done(Box::new(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::classify::Class;
    use crate::forge::examples::Way;

    fn failure(case: usize, got: &str) -> Failure {
        Failure { case, class: Class::Assertion, got: got.into(), error: String::new(), is_held_out: false }
    }

    fn finding(rule: &str) -> Finding {
        Finding { rule: rule.into(), effect: None, line: 1, what: "x".into(), why: "y".into() }
    }

    /// Drives a machine whose n-th script fails with `scripts[n - 1]`.
    fn drive(scripts: &[Vec<Failure>]) -> (End, u32) {
        let mut forging = Forging::new(5);
        forging.record_red(true);
        loop {
            match forging.next().clone() {
                Step::Write(request) => forging.record_script(format!("{}", request.iteration)),
                Step::Check(code) => forging.record_scan(code, Vec::new()),
                Step::Run(code) => {
                    let at = usize::try_from(forging.iterations()).unwrap() - 1;
                    forging.record_tests(code, scripts.get(at).cloned().unwrap_or_default());
                }
                Step::Probe(code) => forging.record_probe(code, Vec::new()),
                Step::Compare(code) => forging.record_comparison(code, None),
                Step::Done(end) => return (*end, forging.iterations()),
                Step::Red => panic!("twice"),
            }
        }
    }

    #[test]
    fn a29_nothing_is_written_before_the_tests_have_failed() {
        let mut forging = Forging::new(5);
        assert_eq!(*forging.next(), Step::Red);
        forging.record_red(false);
        assert_eq!(*forging.next(), Step::Done(Box::new(End::NotRed)));
        assert_eq!(forging.iterations(), 0);
    }

    #[test]
    fn a29_a_forging_ends_at_green_and_after_five_scripts() {
        assert_eq!(drive(&[vec![failure(0, "a")], Vec::new()]), (End::Green { code: "2".into() }, 2));
        let all: Vec<Vec<Failure>> = (0..9).map(|n| vec![failure(0, &n.to_string())]).collect();
        let (end, iterations) = drive(&all);
        assert!(matches!(end, End::Exhausted { code, .. } if code == "5") && iterations == 5);
    }

    /// A32: the same failure twice is stagnation, also with another script in between.
    #[test]
    fn a32_the_same_failures_twice_are_stagnation() {
        let (end, iterations) = drive(&[vec![failure(0, "a")], vec![failure(1, "b")], vec![failure(0, "a")]]);
        assert!(matches!(end, End::Stagnant { .. }) && iterations == 3, "{end:?}");
        let (end, _) = drive(&[vec![failure(0, "a")], vec![failure(0, "b")], Vec::new()]);
        assert!(matches!(end, End::Green { .. }), "the same test failed in another way: {end:?}");
    }

    #[test]
    fn a35_a_forbidden_script_is_never_run_and_finally_rejected() {
        let mut forging = Forging::new(5);
        forging.record_red(true);
        for _ in 0..2 {
            forging.record_script("bad".into());
            forging.record_scan("bad".into(), vec![finding("py-import")]);
            assert!(!matches!(forging.next(), Step::Run(_)));
        }
        let Step::Done(end) = forging.next() else { panic!("{:?}", forging.next()) };
        assert!(matches!(&**end, End::Rejected { findings, .. } if findings[0].rule == "py-import"), "{end:?}");
        // a script that passes its tests and fails the probe is rejected too
        let mut forging = Forging::new(1);
        forging.record_red(true);
        forging.record_script("bad".into());
        forging.record_scan("bad".into(), Vec::new());
        forging.record_tests("bad".into(), Vec::new());
        forging.record_probe("bad".into(), vec![finding("constant-answer")]);
        assert!(matches!(forging.next(), Step::Done(end) if matches!(**end, End::Rejected { .. })));
    }

    #[test]
    fn a35_nothing_is_promoted_if_another_passing_script_differs() {
        let mut forging = Forging::new(5);
        forging.record_red(true);
        forging.record_script("one".into());
        forging.record_scan("one".into(), Vec::new());
        forging.record_tests("one".into(), Vec::new());
        forging.record_probe("one".into(), Vec::new());
        let open = Open { input: "[d-b]".into(), one: String::new(), other: "d-b".into(), way: Way::Text };
        forging.record_comparison("one".into(), Some(open));
        assert!(matches!(forging.next(), Step::Done(end) if matches!(**end, End::Open { .. })), "{:?}", forging.next());
    }
}
