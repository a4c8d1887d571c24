//! Assesses what a script writes into a file that it runs then: `echo 'rm -rf /' > a.sh; sh a.sh`.

use super::given::printed_text;
use super::{Level, Reason, assess, reason, stdin_texts};
use crate::effects::{Effect, Kind};
use crate::parse::{Invocation, Script, parse};
use crate::unwrap::is_shell;

/// Most texts that are assessed; each is a script of its own.
const MAX_TEXTS: usize = 16;

/// Returns the dangers of texts that the script itself puts into a file and runs. That a file is run is a reason of its
/// own, as there may be more in it.
pub(super) fn reasons(script: &Script, all: &[Effect]) -> Vec<Reason> {
    let writes = |e: &&Effect| matches!(e.kind, Kind::Overwrite | Kind::Append | Kind::Create);
    let written: Vec<(usize, &str)> =
        all.iter().filter(writes).filter_map(|e| Some((e.command?, plain(e.path.as_deref()?)))).collect();
    let mut found = Vec::new();
    let mut assessed = 0;
    for (index, command) in script.commands.iter().enumerate() {
        let Some(file) = run_file(command) else { continue };
        for (writer, _) in written.iter().filter(|(writer, path)| *writer < index && *path == plain(file)) {
            for text in texts(script, *writer) {
                assessed += 1;
                if assessed > MAX_TEXTS {
                    return found;
                }
                let risk = assess(&parse(&text, script.dialect_of(command)));
                let Some(danger) = risk.reasons.into_iter().find(|r| r.level == Level::Danger) else { continue };
                let Some(word) = command.words.first() else { continue };
                let why = format!("it runs what it wrote into {file}: {}", danger.why);
                found.push(reason(Level::Danger, &danger.effect, &word.raw, word.span.clone(), why));
            }
        }
    }
    found
}

/// Returns the file that a command runs as a script.
fn run_file(command: &Invocation) -> Option<&str> {
    let first = command.words.first()?;
    let is_reader = command.name().is_some_and(|name| is_shell(name) || matches!(name, "source" | "."));
    let word = if is_reader { command.operands().next()? } else { first };
    (is_reader || word.text.contains('/')).then_some(word.text.as_str())
}

/// Returns the known texts that a command writes.
fn texts(script: &Script, writer: usize) -> Vec<String> {
    match script.commands[writer].name() {
        Some("echo" | "printf" | "print") => vec![printed_text(&script.commands[writer])],
        _ => stdin_texts(script, writer),
    }
}

fn plain(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::{Level, assess};
    use crate::{Dialect, parse};

    #[test]
    fn a_script_that_is_written_and_run_is_read() {
        let level = |text: &str| assess(&parse(text, Dialect::Bash)).level;
        for text in [
            "echo 'rm -rf /' > a.sh; sh a.sh",
            "printf 'rm -rf ~\n' > ./a.sh && chmod +x a.sh && ./a.sh",
            "echo 'rm -rf /' | tee a.sh; . a.sh",
            "cat > a.sh <<'X'\nrm -rf /\nX\nbash a.sh",
            "sed 's/x/rm -rf ~/e' f",
        ] {
            assert_eq!(level(text), Level::Danger, "{text}");
        }
        for text in ["echo 'rm -rf /' > a.sh; cat a.sh", "echo 'ls' > a.sh; sh a.sh", "sh a.sh; echo 'rm -rf /' > a.sh"]
        {
            assert_eq!(level(text), Level::Caution, "{text}");
        }
    }
}
