//! A line of the report: a check, how it came out, the fact, and what to do about it.

use crate::term::ui::Role;

/// The ways in which a check comes out, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// It works, though not as well as it could.
    Warn,
    /// Something does not work.
    Fail,
}

impl State {
    /// Its word, and how that looks.
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
    /// A command or a sentence to act on; where all is well, what could be done besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn ok(check: &'static str, fact: impl Into<String>) -> Self {
        Self { check, state: State::Ok, fact: fact.into(), remedy: None }
    }

    /// It works, though not as well as it could.
    pub fn warn(check: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Warn, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    /// Something does not work.
    pub fn fail(check: &'static str, fact: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, state: State::Fail, fact: fact.into(), remedy: Some(remedy.into()) }
    }

    /// The same with what could be done besides.
    #[must_use]
    pub fn with(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// The worst state of all; nothing found is well.
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
    fn what_is_not_well_always_has_a_remedy() {
        let document = serde_json::to_value(Finding::fail("path", "none", "do it")).unwrap();
        let wanted = serde_json::json!({"check": "path", "state": "fail", "fact": "none", "remedy": "do it"});
        assert_eq!(document, wanted);
        assert!(serde_json::to_value(Finding::ok("path", "here")).unwrap().get("remedy").is_none());
    }
}
