//! Platform rules: which way of saying it does not work on which system. The rules are data in `platform-rules/`.

use super::{Finding, Script, Target};

/// Everything the rules have against the script on that target.
pub fn check(script: &Script, target: Target) -> Vec<Finding> {
    let _ = (script, target);
    todo!()
}
