//! `sha256sum -c data/SHA256SUMS` looks for the files where it stands; a list of sums mostly lies beside its files, and names
//! them as they are called there.

use super::CheckContext;
use super::csv::begin;
use super::edit::{Edits, warning};
use caro_shell::{Finding, quote};
use std::path::Path;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    check_script(it).into_iter().collect()
}

fn check_script(it: &CheckContext) -> Option<Finding> {
    const SUMS: [&str; 7] = ["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"];
    let [command] = it.script.commands.as_slice() else { return None };
    let checks = command.name().is_some_and(|n| SUMS.contains(&n)) && command.has_option(Some('c'), "check");
    let [list] = command.operands().collect::<Vec<_>>()[..] else { return None };
    let (cwd, path) = (it.cwd.filter(|_| checks)?, Path::new(list.value.as_deref()?));
    let (folder, name) = (path.parent().filter(|p| !p.as_os_str().is_empty())?, path.file_name()?.to_str()?);
    let named: Vec<String> = begin(&cwd.join(path)).iter().filter_map(|line| file_of(line)).collect();
    let all = |place: &Path| named.iter().all(|file| place.join(file).exists());
    if named.is_empty() || !all(&cwd.join(folder)) || named.iter().any(|file| cwd.join(file).exists()) {
        return None;
    }
    let there = quote(folder.to_str()?, it.dialect);
    let edits = Edits::new(it.script).replace(list, &quote(name, it.dialect));
    let fix = edits.done().map(|line| format!("cd {there} && {line}"));
    // what it is redirected to would lie there, too
    let fix = fix.filter(|_| command.redirects.is_empty());
    Some(warning(
        "sums-from-here",
        list,
        format!("the files of this list are in {}, and not here", folder.display()),
        fix,
    ))
}

/// The file of a line of sums: `SUM  NAME`, `SUM *NAME`. The last line that was read may be torn.
fn file_of(line: &str) -> Option<String> {
    let (sum, rest) = line.split_once(' ')?;
    let name = rest.strip_prefix([' ', '*'])?;
    (sum.len() >= 32 && sum.bytes().all(|b| b.is_ascii_hexdigit()) && !name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    #[test]
    fn sums_are_checked_where_their_files_are() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("data")).unwrap();
        let sum = "d41d8cd98f00b204e9800998ecf8427e";
        for (name, text) in [
            ("data/a.csv", String::new()),
            ("data/SUMS", format!("{sum}  a.csv\n")),
            ("data/HERE", format!("{sum}  data/a.csv\n")),
            ("data/GONE", format!("{sum}  b.csv\n")),
        ] {
            std::fs::write(at(name), text).unwrap();
        }
        let fix = |command| findings_in(Some(dir.path()), check, "", command).into_iter().next().and_then(|f| f.fix);
        assert_eq!(fix("md5sum -c data/SUMS").as_deref(), Some("cd data && md5sum -c SUMS"));
        for right in ["cd data && md5sum -c SUMS", "md5sum -c data/HERE", "md5sum -c data/GONE", "md5sum data/SUMS"] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
