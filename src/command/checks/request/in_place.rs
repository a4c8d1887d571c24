//! `sed -i` where the result is to be printed, and `sed` without it where the file itself is to change.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation, Userland};

/// The id of the finding that a file is to change and does not.
pub(crate) const ID: &str = "edits-nothing";

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    const PRINT: [&str; 5] = ["print", "show", "display", "output", "list"];
    const KEEP: [&str; 11] = [
        "in place",
        "inplace",
        "the file itself",
        "edit the file",
        "editing the file",
        "change the file",
        "changing the file",
        "modify the file",
        "overwrite",
        "save",
        "update",
    ];
    let words = Words::of(it.request);
    let seds = it.script.commands.iter().filter(|c| c.name() == Some("sed"));
    let sed = only(seds)?;
    let program = sed.words.first()?;
    let asked = words.contains_phrase(&KEEP);
    let edits = Edits::new(it.script);
    match in_place(sed) {
        Some(word) if !asked && words.list().first().is_some_and(|w| PRINT.contains(&w.as_str())) => {
            let plain = matches!(word.raw.as_str(), "-i" | "--in-place") && it.target.userland != Userland::Bsd;
            let fix = plain.then(|| edits.replace(word, "").done()).flatten();
            Some(warning("edits-file", word, "the result is to be printed, and this changes the file", fix))
        }
        None if words.contains_phrase(&KEEP[..8]) && !words.has_negation() => {
            // what goes on to another program or file is changed there
            let alone =
                !sed.stdout_pipe && !sed.stdin_pipe && sed.redirects.is_empty() && it.script.redirects.is_empty();
            let prints = sed.has_option(Some('n'), "quiet") || !alone || it.script.text.contains('>');
            let option = if it.target.userland == Userland::Bsd { " -i ''" } else { " -i" };
            let fix = edits.after(program, option).done();
            (!prints).then(|| warning(ID, program, "the file itself is to change, and this prints the result", fix))
        }
        _ => None,
    }
}

/// The option that makes `sed` write to the file.
fn in_place(sed: &Invocation) -> Option<&caro_shell::Word> {
    sed.args().iter().find(|w| {
        w.text.starts_with("--in-place") || w.text.starts_with("-i") || matches!(w.text.as_str(), "-Ei" | "-ri" | "-ni")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::check;

    fn fixed(request: &str, command: &str) -> Option<String> {
        findings(check, request, command).first().map(|f| f.fix.clone().unwrap_or_default())
    }

    #[test]
    fn printing_changes_no_file() {
        let wrong = "sed -i 's/a/b/g' conf.ini";
        assert_eq!(fixed("print conf.ini with a replaced by b", wrong).as_deref(), Some("sed 's/a/b/g' conf.ini"));
        assert_eq!(fixed("print conf.ini with b for a, and save it in place", wrong), None);
        assert_eq!(fixed("replace a with b in conf.ini", wrong), None);
    }

    #[test]
    fn changing_the_file_changes_it() {
        let request = "remove all empty lines from poem.txt, editing the file itself";
        assert_eq!(fixed(request, "sed '/^$/d' poem.txt").as_deref(), Some("sed -i '/^$/d' poem.txt"));
        for right in ["sed -i '/^$/d' poem.txt", "sed '/^$/d' poem.txt > p && mv p poem.txt", "sed -n '/a/p' poem.txt"]
        {
            assert_eq!(fixed(request, right), None, "{right}");
        }
        assert_eq!(fixed("remove all empty lines from poem.txt", "sed '/^$/d' poem.txt"), None);
    }
}
