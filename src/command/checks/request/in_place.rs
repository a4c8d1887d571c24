//! Finds `sed -i` if the result is to be printed, and `sed` without it if the file itself is to change.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, only};
use caro_shell::{Finding, Invocation, Userland};

/// The id of the finding that the file is to change but does not.
pub(crate) const ID: &str = "edits-nothing";

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    check_script(cx).into_iter().collect()
}

fn check_script(cx: &CheckContext) -> Option<Finding> {
    const PRINT: [&str; 5] = ["print", "show", "display", "output", "list"];
    const CHANGE: [&str; 11] = [
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
    let words = Words::of(cx.request);
    let seds = cx.script.commands.iter().filter(|c| c.name() == Some("sed"));
    let sed = only(seds)?;
    let program = sed.words.first()?;
    let asks_to_change = words.contains_phrase(&CHANGE);
    let edits = Edits::new(cx.script);
    match in_place(sed) {
        Some(word) if !asks_to_change && words.list().first().is_some_and(|w| PRINT.contains(&w.as_str())) => {
            let is_plain = matches!(word.raw.as_str(), "-i" | "--in-place") && cx.target.userland != Userland::Bsd;
            let fix = if is_plain { edits.replace(word, "").apply() } else { None };
            Some(warning("edits-file", word, "the result is to be printed, and this changes the file", fix))
        }
        None if words.contains_phrase(&CHANGE[..8]) && !words.has_negation() => {
            // output to another program or file may change the file in another way
            let is_alone =
                !sed.stdout_pipe && !sed.stdin_pipe && sed.redirects.is_empty() && cx.script.redirects.is_empty();
            let may_be_right = sed.has_option(Some('n'), "quiet") || !is_alone || cx.script.text.contains('>');
            let option = if cx.target.userland == Userland::Bsd { " -i ''" } else { " -i" };
            let fix = edits.insert_after(program, option).apply();
            const WHY: &str = "the file itself is to change, and this prints the result";
            (!may_be_right).then(|| warning(ID, program, WHY, fix))
        }
        _ => None,
    }
}

/// Returns the option that makes `sed` write to the file.
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
    fn printing_does_not_change_the_file() {
        let wrong = "sed -i 's/a/b/g' conf.ini";
        assert_eq!(fixed("print conf.ini with a replaced by b", wrong).as_deref(), Some("sed 's/a/b/g' conf.ini"));
        assert_eq!(fixed("print conf.ini with b for a, and save it in place", wrong), None);
        assert_eq!(fixed("replace a with b in conf.ini", wrong), None);
    }

    #[test]
    fn changing_the_file_needs_an_option() {
        let request = "remove all empty lines from poem.txt, editing the file itself";
        assert_eq!(fixed(request, "sed '/^$/d' poem.txt").as_deref(), Some("sed -i '/^$/d' poem.txt"));
        for right in ["sed -i '/^$/d' poem.txt", "sed '/^$/d' poem.txt > p && mv p poem.txt", "sed -n '/a/p' poem.txt"]
        {
            assert_eq!(fixed(request, right), None, "{right}");
        }
        assert_eq!(fixed("remove all empty lines from poem.txt", "sed '/^$/d' poem.txt"), None);
    }
}
