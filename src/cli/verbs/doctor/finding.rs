//! A line of the report: the check, its state, the fact that was found, and what to do about it.

use crate::term::ui::Role;

/// The states of a check, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All is well.
    Ok,
    /// It works, though not as well as it could.
    Warn,
    /// Something does not work.
    Fail,
}

impl State {
    /// The word that is printed for the state, and its style.
    pub fn word(self) -> (&'static str, Role) {
        match self {
            Self::Ok => ("ok", Role::Good),
            Self::Warn => ("warn", Role::Caution),
            Self::Fail => ("fail", Role::Danger),
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// Its state.
    pub state: State,
    /// The fact that was found.
    pub fact: String,
    /// A command or a sentence that says what to do; if all is well, an optional improvement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding that all is well.
    pub fn ok(check: &'static str, fact: impl Into<String>) -> Self {
        Self { check, state: State::Ok, fact: fact.into(), remedy: None }
    }

    /// A finding that something works, though not as well as it could.
    pub fn warn(check: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Warn, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    /// A finding that something does not work.
    pub fn fail(check: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Fail, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// The worst state of the findings; `Ok` if there are none.
pub fn worst(findings: &[Finding]) -> State {
    findings.iter().map(|finding| finding.state).max().unwrap_or(State::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_counts() {
        let (ok, warn, fail) = (Finding::ok("a", "x"), Finding::warn("a", "x", "y"), Finding::fail("a", "x", "y"));
        assert_eq!(worst(&[]), State::Ok);
        assert_eq!(worst(&[warn.clone(), ok.clone()]), State::Warn);
        assert_eq!(worst(&[warn, fail, ok]), State::Fail);
    }

    #[test]
    fn a_finding_is_serialized_with_its_remedy_if_there_is_one() {
        let document = serde_json::to_value(Finding::fail("path", "none", "do it")).unwrap();
        let wanted = serde_json::json!({"check": "path", "state": "fail", "fact": "none", "remedy": "do it"});
        assert_eq!(document, wanted);
        assert!(serde_json::to_value(Finding::ok("path", "here")).unwrap().get("remedy").is_none());
    }
}
