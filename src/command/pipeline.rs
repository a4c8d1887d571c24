//! Finds the first stage of a command that is one pipeline.

use caro_shell::{Invocation, Script};

/// Returns the text of the first stage, if the whole script is one pipeline of several stages; `None` for single
/// commands, lists, groups and loops.
pub(super) fn first_stage(script: &Script) -> Option<&str> {
    let stages: Vec<&Invocation> = script.commands.iter().filter(|c| c.inside.is_none()).collect();
    let pipeline = stages.first()?.pipe?.pipeline;
    let is_in_order = stages.iter().enumerate().all(|(at, stage)| {
        stage.pipe.is_some_and(|own| own.pipeline == pipeline && own.index == at && own.length == stages.len())
    });
    let starts = stages.first()?.words.first()?.span.start == 0;
    if !is_in_order || !starts || !script.functions.is_empty() {
        return None;
    }
    let second = stages.get(1)?.words.first()?;
    let before = script.text.get(..second.span.start)?.trim_end();
    let text = before.strip_suffix("|&").or_else(|| before.strip_suffix('|'))?.trim_end();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, parse};

    #[test]
    fn only_a_single_pipeline_has_a_first_stage() {
        let of = |line: &str| first_stage(&parse(line, Dialect::Bash)).map(str::to_owned);
        assert_eq!(of("cat *.log | wc -l").as_deref(), Some("cat *.log"));
        assert_eq!(of("cat 'a|b' 2>&1 |& sort | head").as_deref(), Some("cat 'a|b' 2>&1"));
        for other in ["cat a", "cat a | wc -l; ls", "a | b && c", "(a; b) | c", "a | while read x; do b; done"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
