//! `caro config edit`: opens the user's editor on a copy of a settings file, which replaces the file once it is
//! valid.

use crate::setup::change::{Target, faults};
use crate::setup::config::{KEYS, Project};
use crate::term::interrupt::Phase;
use crate::term::typed::typed;
use crate::{Cx, Exit, Failure, Outcome, env};
use caro_base::files;
use caro_exec as exec;
use std::path::Path;
use tempfile::TempDir;

/// The editors that are searched for if the user names none.
const EDITORS: [&str; 4] = ["editor", "nano", "vi", "vim"];

/// Most bytes read back from an editor.
const MAX_FILE: u64 = 64 * 1024;

/// Opens the editor on a copy until that is a valid settings file or the user gives up.
///
/// # Errors
/// If there is no terminal or no editor, or the file cannot be written.
pub fn edit(is_project: bool, cx: &Cx) -> Outcome {
    if !cx.ui.can_ask() {
        return Err(Failure::no("an editor needs a terminal").hint("`caro config set KEY VALUE` needs none"));
    }
    let target = Target::open(is_project, cx)?;
    let editor = editor(cx)?;
    let failed = |e: std::io::Error| {
        Failure::internal(format!("no copy to edit: {e}")).hint("make room in the temporary folder")
    };
    let folder = tempfile::Builder::new().prefix("caro-").tempdir().map_err(failed)?;
    // editors recognize the format by the extension
    let copy = folder.path().join("config.toml");
    let before = if target.text.is_empty() { template(is_project) } else { target.text.clone() };
    files::replace(&copy, before.as_bytes(), files::Access::Private).map_err(failed)?;
    loop {
        run_editor(&editor, &copy, cx)?;
        let text = files::read_text(&copy, MAX_FILE)
            .map_err(|e| Failure::no(format!("what the editor left cannot be read: {e}; nothing was changed")))?;
        if text == before {
            cx.ui.note("nothing was changed");
            return Ok(Exit::Success);
        }
        let faults = faults(&text, &target.path, is_project);
        if faults.is_empty() {
            if !target.write_edited(&text, cx)? {
                return Err(changed_meanwhile(&target.path, folder, &copy));
            }
            cx.ui.note(&format!("{} is written", target.path.display()));
            return Ok(Exit::Success);
        }
        faults.iter().for_each(|failure| cx.ui.failure(failure));
        cx.ui.ask("\nedit it again? [Y/n]");
        let reply = typed(cx)?;
        if reply.is_none_or(|reply| ["n", "no"].contains(&reply.to_lowercase().as_str())) {
            return Err(Failure::no("it was not written, and the file is as it was"));
        }
    }
}

/// The failure of an edited text whose file was changed while the editor was open. Its copy stays: neither change is
/// lost.
fn changed_meanwhile(file: &Path, folder: TempDir, copy: &Path) -> Failure {
    // the copy is removed with its folder, which is private
    let _ = folder.keep();
    Failure::no(format!("{} was changed while the editor was open, and is left as it is now", file.display()))
        .hint(format!("your text is in {}; `caro config edit` opens the present one", copy.display()))
}

/// The command line of the editor.
fn editor(cx: &Cx) -> Result<String, Failure> {
    for name in [env::VISUAL, env::EDITOR] {
        if let Some(named) = cx.env.get(name) {
            return named
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| Failure::usage(format!("{name} is not valid UTF-8")));
        }
    }
    let found = EDITORS.into_iter().find(|name| exec::find(name).is_some());
    found.map(str::to_owned).ok_or_else(|| {
        Failure::no("no editor is known here")
            .hint("set EDITOR to one, or change a setting with `caro config set KEY VALUE`")
    })
}

/// Runs the editor in the terminal until it ends.
fn run_editor(editor: &str, file: &Path, cx: &Cx) -> Result<(), Failure> {
    let shell = exec::find("sh").ok_or_else(|| {
        Failure::no("there is no sh here to start an editor with").hint("edit the file itself: `caro config path`")
    })?;
    let name = file.to_str().and_then(|name| shlex::try_quote(name).ok());
    let name =
        name.ok_or_else(|| Failure::internal("the temporary folder's name is not text").hint("set TMPDIR to another"))?;
    let runtime = cx.runtime()?;
    let ended = {
        let _phase = cx.interrupt().during(Phase::Child);
        runtime.block_on(exec::foreground(&shell, &format!("{editor} {name}"), None))
    };
    match ended {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::no(format!("the editor `{editor}` ended with {code}; nothing was changed"))
            .hint("set EDITOR to another one, or change a setting with `caro config set KEY VALUE`")),
        Err(e) => {
            let hint = e.hint();
            Err(Failure::internal(e).hint(hint))
        }
    }
}

/// The text of a new file: each setting that may be in it, as a comment.
fn template(is_project: bool) -> String {
    let mut text = String::from(match is_project {
        true => "# What holds for caro in this project, for all who work on it. A line without `#` in front holds.\n",
        false => "# Your settings of caro. A line without `#` in front holds; `caro help settings` says more.\n",
    });
    let mut table = None;
    for key in KEYS.iter().filter(|key| !is_project || Project::Never != key.project) {
        let name = match key.name.split_once('.') {
            Some((of, name)) => {
                if table != Some(of) {
                    text.push_str(&format!("\n# [{of}]\n"));
                    table = Some(of);
                }
                name
            }
            None => key.name,
        };
        let default = key.default;
        let value = if default.parse::<i64>().is_ok() { default.to_owned() } else { format!("\"{default}\"") };
        text.push_str(&format!("# {name} = {value}   # {}\n", key.what));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user may remove any of the comment marks.
    #[test]
    fn the_template_is_valid_without_its_comment_marks() {
        for is_project in [false, true] {
            let text = template(is_project);
            assert!(faults(&text, Path::new("c.toml"), is_project).is_empty());
            let (head, lines) = text.split_once('\n').unwrap();
            assert!(head.starts_with("# "));
            let uncommented: String =
                lines.lines().map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect();
            let wrong = faults(&uncommented, Path::new("c.toml"), is_project);
            assert!(wrong.is_empty(), "{wrong:?}\n{uncommented}");
            assert_eq!(uncommented.contains("serve"), !is_project);
        }
    }
}
