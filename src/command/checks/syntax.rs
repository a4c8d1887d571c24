//! Does it parse?

use super::Inspected;
use crate::shell::{Dialect, Finding, Severity};

/// Id of the finding.
pub const ID: &str = "syntax";

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    it.script
        .errors
        .iter()
        .take(1) // later errors mostly follow from the first
        .map(|span| Finding {
            id: ID.into(),
            // of these two languages the parser does not know every corner
            severity: match it.dialect {
                Dialect::Fish | Dialect::PowerShell => Severity::Warning,
                Dialect::Bash | Dialect::Zsh | Dialect::Sh => Severity::Error,
            },
            token: it.script.text.get(span.clone()).unwrap_or_default().chars().take(40).collect(),
            span: Some(span.clone()),
            why: format!("{} cannot parse this; look for an unclosed quote or bracket", it.dialect.name()),
            evidence: Vec::new(),
            fix: None,
        })
        .collect()
}
