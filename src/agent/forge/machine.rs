//! The forge as a pure state machine: no clock, no file, no process, no model.
//!
//! ```text
//! Red -> Write -> Check -> Run -> Probe -> Compare -> Done(Green)
//!          ^        |       |       |          |
//!          +--------+-------+-------+          +----> Done(Open): another script that passes differs
//!            mended, at most `most` times; the same complaint twice ends it
//! ```

use super::classify::Failure;
use super::scan::Finding;
use super::twin::Open;

/// The next need.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The tests against no script (or the old one): they have to fail.
    Red,
    /// A script, or a better one.
    Write(Box<Ask>),
    /// The static scan of this script.
    Check(String),
    /// The tests against this script.
    Run(String),
    /// Whether this script, which passes, does more than pass the tests.
    Probe(String),
    /// Whether another script that passes gives another answer where no example says which is right.
    Compare(String),
    /// It has come to its end.
    Done(Box<End>),
}

/// A request to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Which script it is, from 1.
    pub iteration: u32,
    /// The script before, if there was one, and what was wrong with it.
    pub before: Option<(String, Complaint)>,
}

/// A complaint about a script.
#[derive(Debug, Clone, PartialEq)]
pub enum Complaint {
    /// Tests fail.
    Failures(Vec<Failure>),
    /// It does what no script may do, or only what the tests ask for.
    Findings(Vec<Finding>),
}

impl Complaint {
    /// The signature by which two complaints are the same: the tests that fail and what the script did there, or the
    /// rules that are broken. A script that fails the same tests in another way has moved.
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

/// How it ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// Every test passes and nothing was found.
    Green {
        /// The script.
        code: String,
    },
    /// The tests pass without the script: they show nothing.
    NotRed,
    /// The last script does what no script may do.
    Rejected {
        /// The script.
        code: String,
        /// The findings against it.
        findings: Vec<Finding>,
    },
    /// The same tests failed in the same way twice.
    Stagnant {
        /// The script.
        code: String,
        /// The tests that fail.
        failures: Vec<Failure>,
    },
    /// It passes, and another script that passes differs from it where no example says which is right.
    Open {
        /// The script.
        code: String,
        /// The input, and both answers.
        open: Open,
    },
    /// No more scripts are written.
    Exhausted {
        /// The last script.
        code: String,
        /// The tests that fail.
        failures: Vec<Failure>,
    },
}

/// One skill in the making.
#[derive(Debug)]
pub struct Forging {
    most: u32,
    iteration: u32,
    seen: Vec<String>,
    step: Step,
}

impl Forging {
    /// A forging with at most so many scripts.
    pub fn new(most: u32) -> Self {
        Self { most, iteration: 0, seen: Vec::new(), step: Step::Red }
    }

    /// The next need; the same until it was brought.
    pub fn next(&self) -> &Step {
        &self.step
    }

    /// Scripts written so far.
    pub fn iterations(&self) -> u32 {
        self.iteration
    }

    /// True if nothing was ever wrong in just this way.
    pub fn is_new(&self, complaint: &Complaint) -> bool {
        !self.seen.contains(&complaint.signature())
    }

    /// The tests were run without the script: `red` if at least one failed.
    pub fn tested(&mut self, red: bool) {
        if red { self.ask(None) } else { self.end(End::NotRed) }
    }

    /// The model wrote this script.
    pub fn written(&mut self, code: String) {
        self.step = Step::Check(code);
    }

    /// The scan of the script found this.
    pub fn checked(&mut self, code: String, findings: Vec<Finding>) {
        if findings.is_empty() {
            self.step = Step::Run(code)
        } else {
            self.complain(code, Complaint::Findings(findings))
        }
    }

    /// These tests fail.
    pub fn ran(&mut self, code: String, failures: Vec<Failure>) {
        if failures.is_empty() {
            self.step = Step::Probe(code)
        } else {
            self.complain(code, Complaint::Failures(failures))
        }
    }

    /// Watched at work, the script did this.
    pub fn probed(&mut self, code: String, findings: Vec<Finding>) {
        if findings.is_empty() {
            self.step = Step::Compare(code)
        } else {
            self.complain(code, Complaint::Findings(findings))
        }
    }

    /// Compared with other scripts that pass: the input on which one of them differs.
    pub fn compared(&mut self, code: String, open: Option<Open>) {
        self.end(match open {
            None => End::Green { code },
            Some(open) => End::Open { code, open },
        });
    }

    fn complain(&mut self, code: String, complaint: Complaint) {
        let signature = complaint.signature();
        let again = self.seen.contains(&signature);
        if !again && self.iteration < self.most {
            self.seen.push(signature);
            return self.ask(Some((code, complaint)));
        }
        self.end(match complaint {
            Complaint::Findings(findings) => End::Rejected { code, findings },
            Complaint::Failures(failures) if again => End::Stagnant { code, failures },
            Complaint::Failures(failures) => End::Exhausted { code, failures },
        });
    }

    fn ask(&mut self, before: Option<(String, Complaint)>) {
        self.iteration += 1;
        self.step = Step::Write(Box::new(Ask { iteration: self.iteration, before }));
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
        Failure { case, class: Class::Assertion, got: got.into(), error: String::new(), is_held: false }
    }

    fn finding(rule: &str) -> Finding {
        Finding { rule: rule.into(), effect: None, line: 1, what: "x".into(), why: "y".into() }
    }

    /// Drives a machine whose n-th script fails so.
    fn driven(scripts: &[Vec<Failure>]) -> (End, u32) {
        let mut forging = Forging::new(5);
        forging.tested(true);
        loop {
            match forging.next().clone() {
                Step::Write(ask) => forging.written(format!("{}", ask.iteration)),
                Step::Check(code) => forging.checked(code, Vec::new()),
                Step::Run(code) => {
                    let at = usize::try_from(forging.iterations()).unwrap() - 1;
                    forging.ran(code, scripts.get(at).cloned().unwrap_or_default());
                }
                Step::Probe(code) => forging.probed(code, Vec::new()),
                Step::Compare(code) => forging.compared(code, None),
                Step::Done(end) => return (*end, forging.iterations()),
                Step::Red => panic!("twice"),
            }
        }
    }

    #[test]
    fn a29_nothing_is_written_before_the_tests_were_seen_to_fail() {
        let mut forging = Forging::new(5);
        assert_eq!(*forging.next(), Step::Red);
        forging.tested(false);
        assert_eq!(*forging.next(), Step::Done(Box::new(End::NotRed)));
        assert_eq!(forging.iterations(), 0);
    }

    #[test]
    fn a29_it_ends_at_green_and_after_five_scripts() {
        assert_eq!(driven(&[vec![failure(0, "a")], Vec::new()]), (End::Green { code: "2".into() }, 2));
        let all: Vec<Vec<Failure>> = (0..9).map(|n| vec![failure(0, &n.to_string())]).collect();
        let (end, iterations) = driven(&all);
        assert!(matches!(end, End::Exhausted { code, .. } if code == "5") && iterations == 5);
    }

    /// A32: what fails in the same way twice is stagnation, also with another script between.
    #[test]
    fn a32_the_same_failing_set_twice_is_stagnation() {
        let (end, iterations) = driven(&[vec![failure(0, "a")], vec![failure(1, "b")], vec![failure(0, "a")]]);
        assert!(matches!(end, End::Stagnant { .. }) && iterations == 3, "{end:?}");
        let (end, _) = driven(&[vec![failure(0, "a")], vec![failure(0, "b")], Vec::new()]);
        assert!(matches!(end, End::Green { .. }), "the same test in another way has moved: {end:?}");
    }

    #[test]
    fn a35_what_is_forbidden_is_never_run_and_at_last_rejected() {
        let mut forging = Forging::new(5);
        forging.tested(true);
        for _ in 0..2 {
            forging.written("bad".into());
            forging.checked("bad".into(), vec![finding("py-import")]);
            assert!(!matches!(forging.next(), Step::Run(_)));
        }
        let Step::Done(end) = forging.next() else { panic!("{:?}", forging.next()) };
        assert!(matches!(&**end, End::Rejected { findings, .. } if findings[0].rule == "py-import"), "{end:?}");
        // and what passes its tests and is caught at work is no better
        let mut forging = Forging::new(1);
        forging.tested(true);
        forging.written("bad".into());
        forging.checked("bad".into(), Vec::new());
        forging.ran("bad".into(), Vec::new());
        forging.probed("bad".into(), vec![finding("constant-answer")]);
        assert!(matches!(forging.next(), Step::Done(end) if matches!(**end, End::Rejected { .. })));
    }

    #[test]
    fn a35_where_another_script_differs_nothing_is_promoted() {
        let mut forging = Forging::new(5);
        forging.tested(true);
        forging.written("one".into());
        forging.checked("one".into(), Vec::new());
        forging.ran("one".into(), Vec::new());
        forging.probed("one".into(), Vec::new());
        let open = Open { input: "[d-b]".into(), one: String::new(), other: "d-b".into(), way: Way::Text };
        forging.compared("one".into(), Some(open));
        assert!(matches!(forging.next(), Step::Done(end) if matches!(**end, End::Open { .. })), "{:?}", forging.next());
    }
}
