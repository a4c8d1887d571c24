//! Regular expressions of data files, compiled on first use, as a run needs few of them.

use regex::Regex;
use std::sync::OnceLock;

/// A regular expression over the resolved text of a word, or of several joined with blanks.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(from = "String")]
pub struct Pattern {
    text: String,
    regex: OnceLock<Option<Regex>>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self { text, regex: OnceLock::new() }
    }
}

impl Pattern {
    /// True if the text matches. An invalid pattern matches nothing; tests make sure that there is none.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|r| r.is_match(text))
    }

    /// Replaces the match by `new`, in which `$1` and `${1}` are groups; `None` without a match.
    pub fn replaced(&self, text: &str, new: &str) -> Option<String> {
        self.regex().filter(|r| r.is_match(text)).map(|r| r.replace(text, new).into_owned())
    }

    /// Returns the text of the first group, if it matches.
    fn group<'t>(&self, text: &'t str) -> Option<&'t str> {
        Some(self.regex()?.captures(text)?.get(1)?.as_str())
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(&self.text).ok()).as_ref()
    }

    /// True if it is a valid regular expression.
    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        Regex::new(&self.text).is_ok()
    }
}

/// A pattern that must match the whole text.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(from = "String")]
pub struct Whole(Pattern);

/// Names of targets and scripts of a project that build, check or show it, alone or with a suffix (`test:unit`).
/// Targets that deploy, publish, clean, migrate or fill a database are excluded: the next build does not undo them.
const TARGETS: &str = "(?:(?:all|build|compile|bundle|pack|transpile|test|tests|check|checks|verify|lint|linter|vet|fmt|format|prettier|eslint|\
typecheck|type-check|types|tsc|typescript|dev|develop|start|serve|server|preview|watch|run|debug|docs?|doc|api-docs|storybook|coverage|cov|unit|\
integration|e2e|smoke|spec|specs|bench|benchmark|help|assemble|classes|analyze|stylelint|mypy|ruff|pytest|jest|vitest|cypress|playwright|\
codegen|generate|proto|ci|validate|dist|distcheck)(?:[:.-](?:all|build|test|tests|check|fix|lint|unit|integration|e2e|ci|dev|\
development|local|prod|production|staging|watch|coverage|only|js|ts|css|scss|types|web|api|app|apps|server|client|frontend|backend|ui|core|lib|\
libs|cjs|esm|docs?|report|headless|open|run|race|short|fast|quick|verbose|debug|release|linux|darwin|macos|mac|windows|win|arm64|amd64|x64|image|\
docker|storybook|main|renderer|go|rust|python|py|node|fmt|format|code|src))*)";

/// A word, but no option, that speaks of deploying, publishing, deleting or refilling something.
const HARMFUL: &str = "(?:[^-].*)?(?i:deploy|publish|release|destroy|drop|delete|purge|wipe|reset|migrat|seed|clean|uninstall|prune|nuke|flush|\
truncat|rollback|revert|remove|push|upload|provision|teardown).*";

impl From<String> for Whole {
    fn from(text: String) -> Self {
        let text = text.replace("<target>", TARGETS).replace("<harmful>", HARMFUL);
        Self(Pattern::from(format!("^(?:{text})$")))
    }
}

impl Whole {
    /// True if it matches the text from end to end.
    pub fn fits(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns the text of the first group, if it matches the text from end to end.
    pub fn group<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.group(text)
    }

    /// True if it is a valid regular expression.
    #[cfg(test)]
    pub fn is_sound(&self) -> bool {
        self.0.is_sound()
    }
}
