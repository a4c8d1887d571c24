//! `tar -czf notes.tar`: the name promises another compression than the flags give.

use super::Inspected;
use crate::shell::{Finding, Invocation, Severity};

/// What a name promises: its endings, and the flag that keeps the promise (none: no compression).
const ENDINGS: [(&[&str], Option<char>); 4] = [
    (&[".tar.gz", ".tgz"], Some('z')),
    (&[".tar.bz2", ".tbz", ".tbz2"], Some('j')),
    (&[".tar.xz", ".txz"], Some('J')),
    (&[".tar"], None),
];

pub(super) fn check(it: &Inspected) -> Vec<Finding> {
    it.script.commands.iter().filter(|c| c.name() == Some("tar")).filter_map(|c| of_command(it, c)).collect()
}

fn of_command(it: &Inspected, command: &Invocation) -> Option<Finding> {
    let [bundle, archive, ..] = command.args() else { return None };
    let letters = bundle.value.as_deref()?.trim_start_matches('-');
    // only the plain form, `-czf ARCHIVE` or `czf ARCHIVE`: what is written otherwise is not guessed at
    let plain = letters.starts_with('c') && letters.ends_with('f') && letters.chars().all(|c| c.is_ascii_alphabetic());
    if !plain || letters.contains('a') || letters.contains('Z') {
        return None;
    }
    let (_, promised) = ENDINGS.iter().find(|(endings, _)| endings.iter().any(|e| archive.text.ends_with(e)))?;
    let given = letters.chars().find(|c| "zjJ".contains(*c));
    if given == *promised {
        return None;
    }
    let kept: String = letters.chars().filter(|c| !"zjJ".contains(*c)).collect();
    let (first, rest) = kept.split_at(1);
    let mended = format!("{first}{}{rest}", promised.map(String::from).unwrap_or_default());
    let mended = if bundle.raw.starts_with('-') { format!("-{mended}") } else { mended };
    let (before, after) = (it.script.text.get(..bundle.span.start)?, it.script.text.get(bundle.span.end..)?);
    Some(Finding {
        id: "archive-compression".into(),
        severity: Severity::Warning,
        token: bundle.raw.clone(),
        why: match promised {
            Some(flag) => format!("an archive of this name is compressed with -{flag}"),
            None => "an archive called .tar is not compressed".into(),
        },
        evidence: Vec::new(),
        fix: Some(format!("{before}{mended}{after}")),
        span: Some(bundle.span.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    fn fixed(command: &str) -> Option<String> {
        findings(check, "", command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn the_name_decides() {
        assert_eq!(fixed("tar -czf a.tar b").as_deref(), Some("tar -cf a.tar b"));
        assert_eq!(fixed("tar cvf /x/a.tgz b").as_deref(), Some("tar czvf /x/a.tgz b"));
        assert_eq!(fixed("tar -czf a.tar.xz b && ls").as_deref(), Some("tar -cJf a.tar.xz b && ls"));
        for right in ["tar -czf a.tar.gz b", "tar -cf a.tar b", "tar -caf a.tar.xz b", "tar -xzf a.tar", "tar -czf - b"]
        {
            assert_eq!(fixed(right), None, "{right}");
        }
    }
}
