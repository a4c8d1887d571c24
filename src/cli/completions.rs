//! `caro completions SHELL`: the completion script, made from the definition of the arguments.

use super::args::Cli;
use super::{Cx, Exit, Outcome};
use clap::CommandFactory;
use clap_complete::Shell;

/// Arguments of `caro completions`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    pub shell: Shell,
}

/// Prints the script.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(args: &Args, cx: &Cx) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "caro", &mut script);
    let script = String::from_utf8_lossy(&script);
    match args.shell {
        Shell::Bash => cx.ui.data(for_bash(&script).trim_end())?,
        _ => cx.ui.data(script.trim_end())?,
    }
    Ok(Exit::Success)
}

/// How the generator for bash completes what it knows nothing of: by files, whose names fall apart at their blanks.
const FILES: &str = "COMPREPLY=($(compgen -f \"${cur}\"))";

/// The verbs of `caro model` that take the id of a model.
const BY_ID: [&str; 4] = ["path", "pull", "rm", "verify"];

/// What completes files and models in bash: the script's own functions, in front of it.
const HELPERS: &str = r#"_caro_files() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -f -- "${cur}"))
    compopt -o filenames 2>/dev/null || true
}

_caro_models() {
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$(caro model list 2>/dev/null | sed -e 's/^[* ] //' -e 's/ .*//')" -- "${cur}"))
}

_caro_models_or_files() {
    local IFS=$'\n' models
    _caro_models
    models=("${COMPREPLY[@]}")
    _caro_files
    COMPREPLY=("${models[@]}" "${COMPREPLY[@]}")
}

"#;

/// The script for bash, with names of files that stay whole and the ids of models where one is asked for.
fn for_bash(script: &str) -> String {
    let mut lines = vec![HELPERS.trim_end().to_owned(), String::new()];
    let mut option = "";
    for line in script.lines() {
        let word = line.trim();
        if word.starts_with("--") && word.ends_with(')') {
            option = word;
        }
        lines.push(match (word == FILES, option) {
            (true, "--model)") => line.replace(FILES, "_caro_models_or_files"),
            (true, _) => line.replace(FILES, "_caro_files"),
            (false, _) => line.to_owned(),
        });
        if BY_ID.iter().any(|verb| word == format!("caro__subcmd__model__subcmd__{verb})")) {
            let then =
                ["if [[ ${cur} != -* && ${COMP_CWORD} -eq 3 ]] ; then", "    _caro_models", "    return 0", "fi"];
            lines.extend(then.map(|line| format!("            {line}")));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's form is held here: what it writes otherwise one day is seen.
    #[test]
    fn the_generators_own_way_with_files_is_replaced_everywhere() {
        let mut script = Vec::new();
        clap_complete::generate(Shell::Bash, &mut Cli::command(), "caro", &mut script);
        let before = String::from_utf8(script).unwrap();
        let after = for_bash(&before);
        assert!(before.contains(FILES) && !after.contains(FILES));
        assert!(after.matches("    _caro_models_or_files").count() > 1);
        let by_id = after
            .matches("            if [[ ${cur} != -* && ${COMP_CWORD} -eq 3 ]] ; then\n                _caro_models\n");
        assert_eq!(by_id.count(), BY_ID.len());
    }
}
