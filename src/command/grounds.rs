//! Caps the confidence outside the conditions that it was fitted for (English requests, bash on Linux), where little
//! is known (`benches/records/2026-11-26-strangers.md`), and decides when an answer is only a draft.

use super::checks::NOT_INSTALLED;
use super::library;
use super::refine_loop::Draft;
use caro_shell::{Dialect, Finding, Severity, Target, Userland, is_builtin};

/// The confidence below which a command with an error is a draft rather than an answer.
const DRAFT_BELOW: f64 = 0.5;

/// The cap for other systems: of 40 unseen requests for macOS, 34 were right by rule.
const OTHER_SYSTEM: f64 = 0.85;
/// The cap for PowerShell and fish: of five answers to outside users none was right. Too few to fit, so this is a
/// judgement.
const OTHER_SHELL: f64 = 0.6;
/// The cap for requests in another language than English, some of which are answered rightly only in English.
const OTHER_LANGUAGE: f64 = 0.7;
/// The cap for a program that no pair of the example library calls.
const UNKNOWN_PROGRAM: f64 = 0.75;

/// Lowers the confidence to the least cap that applies.
pub(super) fn capped(confidence: f64, request: &str, target: Target, dialect: Dialect, programs: &[String]) -> f64 {
    let caps = [
        (matches!(target.userland, Userland::Bsd | Userland::Busybox), OTHER_SYSTEM),
        (matches!(dialect, Dialect::Fish | Dialect::PowerShell), OTHER_SHELL),
        (is_foreign(request), OTHER_LANGUAGE),
        (programs.iter().any(|p| !is_builtin(p, dialect) && !library::calls(p)), UNKNOWN_PROGRAM),
    ];
    caps.iter().filter(|(holds, _)| *holds).fold(confidence, |least, (_, cap)| least.min(*cap))
}

/// True for a command that is shown as a draft: it has an error and a low confidence. A program that is not installed
/// does not count as an error.
pub fn is_draft(draft: &Draft) -> bool {
    let error = |f: &Finding| f.severity == Severity::Error && f.id != NOT_INSTALLED;
    draft.confidence < DRAFT_BELOW && draft.findings.iter().any(error)
}

/// True if fewer than half of the words are in the vocabulary of English requests. Names, numbers and quoted text do
/// not count; a single word is foreign only if it is not ASCII.
fn is_foreign(request: &str) -> bool {
    let plain: String = library::unquoted(request).map(|(_, c)| c).collect();
    let words: Vec<String> = plain
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation()).to_lowercase())
        // single letters are words in many languages
        .filter(|word| word.len() > 1 && word.chars().all(char::is_alphabetic))
        .collect();
    let known = words.iter().filter(|word| library::vocabulary().contains_key(word.as_str())).count();
    match words.len() {
        0 => false,
        1 => !words[0].is_ascii(),
        count => known * 2 < count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str = "linux-gnu";

    fn cap(request: &str, target: &str, dialect: Dialect, program: &str) -> f64 {
        capped(0.99, request, Target::named(target).unwrap(), dialect, &[program.to_owned()])
    }

    #[test]
    fn the_confidence_is_not_capped_where_it_was_fitted() {
        for request in
            ["list all files in this folder", "which port does nginx listen on", "uptime", "kill process 4711"]
        {
            assert_eq!(cap(request, LINUX, Dialect::Bash, "ls"), 0.99, "{request}");
        }
    }

    #[test]
    fn a_draft_has_an_error_and_little_confidence() {
        let is = |confidence: f64, id: &str, severity: Severity| {
            let (token, why, evidence) = (String::new(), String::new(), Vec::new());
            let finding = Finding { id: id.into(), severity, token, span: None, why, evidence, fix: None };
            is_draft(&Draft { confidence, findings: vec![finding], ..Draft::none() })
        };
        assert!(is(0.4, "emptied", Severity::Error));
        assert!(!is(0.6, "emptied", Severity::Error), "more likely right than wrong");
        assert!(!is(0.4, "emptied", Severity::Warning));
        assert!(!is(0.4, NOT_INSTALLED, Severity::Error), "it can be installed");
        assert!(!is_draft(&Draft::none()));
    }

    #[test]
    fn the_confidence_is_capped_elsewhere() {
        let english = "list all files in this folder";
        assert_eq!(cap(english, "macos-bsd", Dialect::Zsh, "ls"), OTHER_SYSTEM);
        assert_eq!(cap(english, LINUX, Dialect::Fish, "ls"), OTHER_SHELL);
        assert_eq!(cap(english, LINUX, Dialect::Bash, "frobnicate"), UNKNOWN_PROGRAM);
        for foreign in [
            "zeige alle Dateien in diesem Ordner",
            "mostra tutti i file",
            "列出所有文件",
            "muestra los archivos grandes",
        ] {
            assert_eq!(cap(foreign, LINUX, Dialect::Bash, "ls"), OTHER_LANGUAGE, "{foreign}");
        }
        // the lowest cap holds, and a lower confidence stays
        assert_eq!(cap("zeige alle Dateien", "macos-bsd", Dialect::Zsh, "ls"), OTHER_LANGUAGE);
        assert_eq!(capped(0.2, english, Target::named("macos-bsd").unwrap(), Dialect::Zsh, &[]), 0.2);
    }
}
