//! Finds sizes that are sorted in another format than they are printed in.

use super::CheckContext;
use super::edit::{Edits, cluster_with, is_cluster, warning};
use caro_shell::{Finding, Invocation};

/// `du -h | sort -n` puts 1.5G before 20K; `du | sort` puts 100 before 20.
pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let commands = &cx.script.commands;
    let source = commands.iter().find(|c| c.name() == Some("du"))?;
    let sort = cx.script.reader(outermost(commands, source)).filter(|c| c.name() == Some("sort"))?;
    let human = source.args().iter().any(|w| w.text.starts_with("--human") || w.text.starts_with("--si"))
        || cluster_with(source.args(), 'h').is_some();
    let letter = |l: char| {
        sort.args().iter().any(|w| w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(l))
    };
    let other = sort.args().iter().any(|w| w.text.starts_with("--"))
        || sort.args().iter().any(|w| !is_cluster(w) && !is_first_key(w));
    if other
        || letter('h')
        || letter('R')
        || letter('V')
        || letter('g')
        || letter('k') && !sort.args().iter().any(is_first_key)
    {
        return None;
    }
    let edits = Edits::new(cx.script);
    let program = sort.words.first()?;
    if letter('n') {
        if !human {
            return None;
        }
        let flag = cluster_with(sort.args(), 'n')?;
        let fix = edits.replace(flag, &flag.raw.replacen('n', "h", 1)).apply();
        return Some(warning("human-sort", flag, "sizes such as 1.5G and 20K need sort -h, not -n", fix));
    }
    let flag = if human { "-h" } else { "-n" };
    let fix = edits.insert_after(program, &format!(" {flag}")).apply();
    Some(warning("number-sort", program, format!("sizes are numbers: sort {flag}, or 100 comes before 20"), fix))
}

/// True for a key of the first column: `-k1` and its variants.
fn is_first_key(word: &caro_shell::Word) -> bool {
    matches!(word.text.as_str(), "-k1" | "-k1,1" | "1" | "1,1" | "-rk1" | "-nrk1" | "-rnk1" | "-nk1")
}

/// Returns the command that is a stage of the pipeline: `find` for the `du` of `find -exec du {} +`.
fn outermost<'a>(commands: &'a [Invocation], command: &'a Invocation) -> &'a Invocation {
    use caro_shell::parse::How;
    command.inside.filter(|i| i.how == How::Wrapped).and_then(|i| commands.get(i.command)).unwrap_or(command)
}
