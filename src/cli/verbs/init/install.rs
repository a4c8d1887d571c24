//! `caro init --install` and `--uninstall`: write the line that loads the script into the shell's startup file, or
//! remove it, after asking. A line that was written by hand is left to the user.

use super::Args;
use crate::setup::rc::{BEGIN, END, Shell, by_hand, edited, file, nu_script, read};
use crate::term::typed::agreed;
use crate::term::ui::in_line;
use crate::{Cx, Exit, Failure, Outcome};
use caro_base::files::{self, Access};
use std::io::ErrorKind;
use std::path::Path;

/// Shows the change and makes it, after asking unless `--yes`.
///
/// # Errors
/// If there is no home folder, the user cannot be asked, the file cannot be read or written, or a line that was written
/// by hand would have to go.
pub(super) fn edit(args: &Args, cx: &Cx) -> Outcome {
    let path = file(args.shell).ok_or_else(|| {
        Failure::usage("this user has no home folder").hint("without --install the script is printed")
    })?;
    let before = match read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Failure::no(format!("{}: {e}", path.display())).hint(how_by_hand(args))),
    };
    let line = args.load();
    let after = edited(&before, args.install.then_some(line.as_str())).ok_or_else(|| {
        Failure::no(format!("in {} `{BEGIN}` and `{END}` do not stand in pairs", path.display()))
            .hint("remove what is left of them, and call this again")
    })?;
    let has_block = edited(&before, None).is_some_and(|without| without != before);
    if args.install
        && !has_block
        && let Some((number, written)) = by_hand(&before)
    {
        let place = format!("{}:{number}", path.display());
        cx.ui.note(&format!("{place} has a line already, written by hand: `{}`", in_line(written)));
        if written != line {
            cx.ui.note(&format!("nothing was changed; with these flags it is: `{line}`"));
        }
        return Ok(Exit::Success);
    }
    // nushell loads the copy that the line has written even after the line is gone
    let copy = if args.uninstall && args.shell == Shell::Nu { nu_script() } else { None };
    if after == before && copy.is_none() {
        if args.uninstall {
            check_by_hand(&after, &path)?;
        }
        let state = if args.install { "has the line already" } else { "has no line of caro's" };
        cx.ui.note(&format!("{} {state}", path.display()));
        return Ok(Exit::Success);
    }
    if !args.yes && !cx.ui.can_ask() {
        return Err(Failure::no("here is nobody to ask").hint("--yes writes without asking"));
    }
    if after != before {
        cx.ui.note(&format!("{}:", path.display()));
        cx.ui.verbatim(&changes(&before, &after));
    }
    if let Some(copy) = &copy {
        cx.ui.note(&format!("{}, which nushell loads, is removed", copy.display()));
    }
    if !args.yes && !agreed("write it? [y/N]", cx)? {
        return Ok(Exit::No);
    }
    if after != before {
        let access = path.metadata().map_or(Access::Umask, |meta| Access::Like(meta.permissions()));
        files::replace(&path, after.as_bytes(), access)
            .map_err(|e| Failure::no(format!("{}: {e}", path.display())).hint(how_by_hand(args)))?;
    }
    if let Some(copy) = copy {
        std::fs::remove_file(&copy)
            .map_err(|e| Failure::no(format!("{}: {e}", copy.display())).hint("remove that file by hand"))?;
    }
    if args.uninstall {
        check_by_hand(&after, &path)?;
    }
    cx.ui.note(match args.install {
        true => "it holds in every new shell",
        false => "it is gone from every new shell",
    });
    Ok(Exit::Success)
}

/// Refuses to say that the line is gone if one that was written by hand still loads the script.
fn check_by_hand(text: &str, path: &Path) -> Result<(), Failure> {
    let Some((number, written)) = by_hand(text) else { return Ok(()) };
    let place = format!("{}:{number}", path.display());
    Err(Failure::no(format!("a line written by hand loads it, at {place}: `{}`", in_line(written)))
        .hint("it is yours, so it stays: remove it in an editor"))
}

fn how_by_hand(args: &Args) -> String {
    match args.install {
        true => format!("the line can be written by hand: `{}`", args.load()),
        false => format!("what stands between `{BEGIN}` and `{END}` can be removed by hand"),
    }
}

/// The lines that are removed, marked with `-`, and those that are added, marked with `+`.
fn changes(before: &str, after: &str) -> String {
    let ours = |text: &str, sign: &str| -> Vec<String> {
        let mut inside = false;
        let lines = text.lines().filter(|line| {
            let was_inside = inside;
            inside = line.trim() == BEGIN || inside && line.trim() != END;
            inside || was_inside
        });
        lines.map(|line| format!("{sign} {line}")).collect()
    };
    [ours(before, "-"), ours(after, "+")].concat().join("\n")
}
