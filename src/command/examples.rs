//! The worked examples at the beginning of every prompt, from `platform-rules/examples/`.

use caro_shell::{Target, Userland};
use std::sync::OnceLock;

/// A request and the command that answers it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Example {
    /// The request in plain words.
    pub request: String,
    /// The command, or [`super::reply::REFUSAL`].
    pub command: String,
}

#[derive(serde::Deserialize)]
struct File {
    example: Vec<Example>,
}

/// Returns the examples for a target, in the order of the prompt.
pub fn for_target(target: Target) -> &'static [Example] {
    static GNU: OnceLock<Vec<Example>> = OnceLock::new();
    static BUSYBOX: OnceLock<Vec<Example>> = OnceLock::new();
    static BSD: OnceLock<Vec<Example>> = OnceLock::new();
    static POWERSHELL: OnceLock<Vec<Example>> = OnceLock::new();
    match target.userland {
        Userland::Gnu => load(&GNU, include_str!("../../platform-rules/examples/linux-gnu.toml")),
        Userland::Busybox => load(&BUSYBOX, include_str!("../../platform-rules/examples/linux-busybox.toml")),
        Userland::Bsd => load(&BSD, include_str!("../../platform-rules/examples/macos-bsd.toml")),
        Userland::PowerShell => load(&POWERSHELL, include_str!("../../platform-rules/examples/windows.toml")),
    }
}

/// Parses an embedded file once. A file that does not parse gives no examples; a test checks that all parse.
fn load(cell: &'static OnceLock<Vec<Example>>, text: &str) -> &'static [Example] {
    cell.get_or_init(|| toml::from_str::<File>(text).map(|f| f.example).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::REFUSAL;

    #[test]
    fn every_target_has_valid_examples_and_a_refusal() {
        for (name, target) in Target::ALL {
            let examples = for_target(target);
            assert!(examples.len() >= 8, "{name} has {} examples", examples.len());
            assert!(examples.iter().any(|e| e.command == REFUSAL), "{name} shows no refusal");
            for e in examples {
                assert!(!e.request.trim().is_empty() && !e.command.contains('\n'), "{name}: {e:?}");
                assert!(e.command == REFUSAL || !e.command.starts_with('#'), "{name}: {e:?}");
            }
        }
    }
}
