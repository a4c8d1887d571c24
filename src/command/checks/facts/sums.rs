//! Finds `sha256sum -c data/SHA256SUMS`, which looks for the files in the working directory, while the names in a
//! list of checksums are mostly relative to the list's own folder.

use super::CheckContext;
use super::csv::first_lines;
use super::edit::{Edits, warning};
use caro_shell::{Finding, quote};
use std::path::Path;

/// Programs that print a checksum before each name, with its hexadecimal digits.
const SUMS: [(&str, u32); 7] = [
    ("md5sum", 32),
    ("sha1sum", 40),
    ("sha224sum", 56),
    ("sha256sum", 64),
    ("sha384sum", 96),
    ("sha512sum", 128),
    ("b2sum", 128),
];

/// Returns the number of digits of the checksums that a program prints.
pub(super) fn digits_of(program: &str) -> Option<u32> {
    SUMS.iter().find(|(name, _)| *name == program).map(|(_, digits)| *digits)
}

pub(super) fn check(cx: &CheckContext) -> Option<Finding> {
    let [command] = cx.script.commands.as_slice() else { return None };
    if command.name().and_then(digits_of).is_none() || !command.has_option(Some('c'), "check") {
        return None;
    }
    let [list] = command.operands().collect::<Vec<_>>()[..] else { return None };
    let (cwd, path) = (cx.cwd?, Path::new(list.value.as_deref()?));
    let (folder, name) = (path.parent().filter(|p| !p.as_os_str().is_empty())?, path.file_name()?.to_str()?);
    let named: Vec<String> = first_lines(&cwd.join(path)).iter().filter_map(|line| file_of(line)).collect();
    let all_exist = |folder: &Path| named.iter().all(|file| folder.join(file).exists());
    if named.is_empty() || !all_exist(&cwd.join(folder)) || named.iter().any(|file| cwd.join(file).exists()) {
        return None;
    }
    let quoted_folder = quote(folder.to_str()?, cx.dialect);
    // with `cd`, a redirection would write to that folder as well
    let fix = if command.redirects.is_empty() {
        let edits = Edits::new(cx.script).replace(list, &quote(name, cx.dialect));
        edits.apply().map(|line| format!("cd {quoted_folder} && {line}"))
    } else {
        None
    };
    Some(warning(
        "sums-from-here",
        list,
        format!("the files of this list are in {}, and not here", folder.display()),
        fix,
    ))
}

/// Returns the file name of a checksum line: `SUM  NAME` or `SUM *NAME`. The last line that was read may be
/// incomplete.
fn file_of(line: &str) -> Option<String> {
    let (sum, rest) = line.split_once(' ')?;
    let name = rest.strip_prefix([' ', '*'])?;
    (sum.len() >= 32 && sum.bytes().all(|b| b.is_ascii_hexdigit()) && !name.is_empty()).then(|| name.to_owned())
}
