//! "Folders that contain a file called X", and folders called X are looked for.

use super::edit::{Edits, warning};
use super::words::Words;
use super::{CheckContext, find, only};
use crate::shell::{Finding, Userland};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    of_script(it).into_iter().collect()
}

fn of_script(it: &CheckContext) -> Option<Finding> {
    const HOLD: [&str; 16] = [
        "contain a file called",
        "contain a file named",
        "contains a file called",
        "contains a file named",
        "containing a file called",
        "containing a file named",
        "have a file called",
        "have a file named",
        "having a file called",
        "having a file named",
        "with a file called",
        "with a file named",
        "hold a file called",
        "hold a file named",
        "holding a file called",
        "holding a file named",
    ];
    let words = Words::of(it.request);
    let folders = words.say(&["folders", "directories", "folder", "directory", "dirs"]);
    // "that do not contain", "no file called": those are other folders ("not the files" says which kind is meant)
    let list = words.list();
    let at = HOLD.iter().find_map(|phrase| words.at(phrase)).filter(|_| folders)?;
    let denied = list[..at].iter().rev().take(2).any(|w| w == "not" || w == "never" || w.ends_with("n't"));
    let [_] = it.script.commands.as_slice() else { return None };
    let search = find(it.script).filter(|_| !denied)?;
    let value_of = |test: &str| search.args().windows(2).find(|pair| pair[0].text == test).map(|pair| &pair[1]);
    let kind = value_of("-type").filter(|w| w.text == "d")?;
    let pattern = only(search.args().windows(2).filter(|pair| matches!(pair[0].text.as_str(), "-name" | "-iname")))?;
    let name = pattern[1].text.trim_matches('*');
    // the name stands right behind those words; a quoted one is a dot among them
    let said = list.get(at + HOLD[0].split(' ').count());
    let quoted = |q: char| it.request.contains(&format!("{q}{name}{q}"));
    let named =
        said.is_some_and(|w| *w == name.to_lowercase() || w == "\u{b7}" && ['\'', '"', '`'].into_iter().any(quoted));
    // no other test or action: what it says of folders would be said of files
    if !named || search.args().iter().filter(|w| w.text.starts_with('-')).count() != 2 {
        return None;
    }
    let last = search.words.last()?;
    let folder = match it.target.userland {
        Userland::Gnu => " -printf '%h\\n' | sort -u",
        _ => " -exec dirname {} \\; | sort -u",
    };
    let edits = Edits::new(it.script).replace(kind, "f");
    let exact = format!("'{name}'");
    let fix = if std::ptr::eq(last, &pattern[1]) {
        edits.replace(last, &format!("{exact}{folder}"))
    } else {
        edits.replace(&pattern[1], &exact).after(last, folder)
    };
    Some(warning(
        "folder-of-file",
        kind,
        format!("this looks for folders called {name}, not for those it is in"),
        fix.done(),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn a_folder_is_not_called_as_the_file_in_it() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let request = "list the directories, not the files, that contain a file called Makefile";
        let right = "find . -type f -name 'Makefile' -printf '%h\\n' | sort -u";
        assert_eq!(fix(request, "find . -type d -name '*Makefile*'").as_deref(), Some(right));
        assert_eq!(
            fix(request, "find . -name Makefile -type d").as_deref(),
            Some("find . -name 'Makefile' -type f -printf '%h\\n' | sort -u")
        );
        assert_eq!(fix(request, right), None);
        for (request, right) in [
            ("folders that do not contain a file called Makefile", "find . -type d -name Makefile"),
            ("folders called Makefile", "find . -type d -name Makefile"),
            ("folders with a file called x in a folder called src", "find . -type d -name src"),
        ] {
            assert_eq!(fix(request, right), None, "{request}");
        }
    }
}
