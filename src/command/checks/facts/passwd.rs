//! `awk -F: '$3 == "/bin/bash"' passwd`: which field of that file is which is the same everywhere (passwd(5)).

use super::CheckContext;
use super::edit::{Edits, warning};
use crate::shell::{Finding, Invocation};

/// The place of the login shell.
const SHELL: char = '7';

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    it.script.commands.iter().filter_map(|c| shell(it, c).or_else(|| any_shell(it, c))).collect()
}

/// `$7 != ""` for "users with a login shell": everybody has something there, and who may not log in has `nologin` or `false`.
fn any_shell(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let request = it.request.to_lowercase();
    let asked = ["login shell", "can log in", "can login", "able to log in"].iter().any(|said| request.contains(said));
    let is_awk = matches!(command.name(), Some("awk" | "gawk" | "mawk"));
    let reads = command.args().iter().any(|w| w.text.ends_with("/passwd"));
    let program = command.args().iter().find(|w| w.text.contains("$7")).filter(|_| asked && is_awk && reads)?;
    let said = ["$7 != \"\"", "$7!=\"\"", "$7 !~ /^$/"].into_iter().find(|said| program.raw.contains(said))?;
    let fix = Edits::new(it.script).replace(program, &program.raw.replacen(said, "$7 !~ /(nologin|false)$/", 1)).done();
    Some(warning("passwd-field", program, "who may not log in has a shell too: nologin, or false", fix))
}

/// A field that is compared with a shell and is another one.
fn shell(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let args = command.args();
    let is_passwd = |text: &str| {
        let name = text.rsplit('/').next().unwrap_or(text);
        name == "passwd" || name.starts_with("passwd.") || name.starts_with("passwd-")
    };
    let reads = args.iter().any(|w| is_passwd(&w.text)) && args.iter().any(|w| matches!(w.text.as_str(), "-F:" | "-F"));
    if !matches!(command.name(), Some("awk" | "gawk" | "mawk")) || !reads {
        return None;
    }
    let program = args.iter().find(|w| w.text.contains('$'))?;
    let at = program.raw.match_indices('$').map(|(at, _)| at).find(|&at| {
        let rest = &program.raw[at + 1..];
        let field = rest.starts_with(|c: char| c.is_ascii_digit() && c != SHELL);
        let value = rest.get(1..).unwrap_or_default().trim_start();
        let value = ["==", "!=", "~", "!~"].iter().find_map(|op| value.strip_prefix(op)).map(str::trim_start);
        let value = value.and_then(|v| v.strip_prefix(['"', '/'])).map(|v| v.trim_start_matches(['\\', '/', '^']));
        field
            && value
                .is_some_and(|v| ["bin/", "usr/bin/", "sbin/", "usr/sbin/", "bin\\/"].iter().any(|p| v.starts_with(p)))
    })?;
    let mut mended = program.raw.clone();
    mended.replace_range(at + 1..at + 2, &SHELL.to_string());
    let fix = Edits::new(it.script).replace(program, &mended).done();
    Some(warning("passwd-field", program, "the login shell is the seventh field of a passwd file", fix))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn the_shell_is_the_seventh() {
        let fix = |command| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        for (wrong, right) in [
            (
                "awk -F: '$3 == \"/bin/bash\" {print $1 \":\" $6}' etc/passwd.bak",
                "awk -F: '$7 == \"/bin/bash\" {print $1 \":\" $6}' etc/passwd.bak",
            ),
            (
                "awk -F: '$6 ~ /\\/bin\\/sh/ {print $1}' /etc/passwd",
                "awk -F: '$7 ~ /\\/bin\\/sh/ {print $1}' /etc/passwd",
            ),
        ] {
            assert_eq!(fix(wrong).as_deref(), Some(right));
            assert_eq!(fix(right), None);
        }
        for right in [
            "awk -F: '$6 == \"/home/ada\" {print $1}' /etc/passwd",
            "awk -F: '$3 >= 1000 {print $1}' /etc/passwd",
            "awk -F: '$3 == \"/bin/bash\"' users.txt",
        ] {
            assert_eq!(fix(right), None, "{right}");
        }
    }
}
