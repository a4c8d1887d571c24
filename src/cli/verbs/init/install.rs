//! `caro init --install` and `--uninstall`: write the line that loads the script into the shell's startup file, or
//! remove it, after asking.

use super::Args;
use crate::setup::rc::{BEGIN, END, edited, file, read};
use crate::term::typed;
use crate::{Cx, Exit, Failure, Outcome};
use caro_base::files::{self, Access};
use std::io::ErrorKind;

/// Shows the change and makes it, after asking unless `--yes`.
///
/// # Errors
/// If there is no home folder, the user cannot be asked, or the file cannot be read or written.
pub(super) fn edit(args: &Args, cx: &Cx) -> Outcome {
    let path = file(args.shell).ok_or_else(|| {
        Failure::usage("this user has no home folder").hint("without --install the script is printed")
    })?;
    let before = match read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Failure::no(format!("{}: {e}", path.display())).hint(by_hand(args))),
    };
    let line = args.load();
    let after = edited(&before, args.install.then_some(line.as_str())).ok_or_else(|| {
        Failure::no(format!("in {} `{BEGIN}` and `{END}` do not stand in pairs", path.display()))
            .hint("remove what is left of them, and call this again")
    })?;
    if after == before {
        let state = if args.install { "has the line already" } else { "has no line of caro's" };
        cx.ui.note(&format!("{} {state}", path.display()));
        return Ok(Exit::Success);
    }
    if !args.yes && !cx.ui.can_ask() {
        return Err(Failure::no("here is nobody to ask").hint("--yes writes without asking"));
    }
    cx.ui.note(&format!("{}:\n{}", path.display(), changes(&before, &after)));
    if !args.yes {
        cx.ui.ask("write it? [y/N]");
        let reply = typed::typed(cx)?.unwrap_or_default();
        if !["y", "yes"].contains(&reply.to_lowercase().as_str()) {
            return Ok(Exit::No);
        }
    }
    let access = path.metadata().map_or(Access::Umask, |meta| Access::Like(meta.permissions()));
    files::replace(&path, after.as_bytes(), access)
        .map_err(|e| Failure::no(format!("{}: {e}", path.display())).hint(by_hand(args)))?;
    cx.ui.note(match args.install {
        true => "it holds in every new shell",
        false => "it is gone from every new shell",
    });
    Ok(Exit::Success)
}

fn by_hand(args: &Args) -> String {
    match args.install {
        true => format!("the line can be written by hand: {}", args.load()),
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
