//! `tar -czf notes.tar`: the name promises another compression than the flags give. `tar -cf a.tar src --exclude=x`: what is to
//! be left out stands too late.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Invocation, Severity, Userland};

/// What a name promises: its endings, and the flag that keeps the promise (none: no compression).
const ENDINGS: [(&[&str], Option<char>); 4] = [
    (&[".tar.gz", ".tgz"], Some('z')),
    (&[".tar.bz2", ".tbz", ".tbz2"], Some('j')),
    (&[".tar.xz", ".txz"], Some('J')),
    (&[".tar"], None),
];

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    it.script
        .commands
        .iter()
        .filter(|c| c.name() == Some("tar"))
        .flat_map(|c| of_command(it, c).into_iter().chain(too_late(it, c)).chain(into_files(it, c)))
        .collect()
}

/// `tar -xzf a.tgz | grep x`: files are written, and what reads behind gets nothing, or their names with `-v`.
fn into_files(it: &CheckContext, tar: &Invocation) -> Option<Finding> {
    const READERS: [&str; 11] = ["awk", "cat", "cut", "grep", "head", "less", "sed", "sort", "tail", "uniq", "wc"];
    let reads = it.script.reader(tar)?.name().is_some_and(|name| READERS.contains(&name));
    let bundle = tar.args().first()?;
    let letters = bundle.value.as_deref()?.trim_start_matches('-');
    let extracts =
        letters.starts_with('x') && letters.ends_with('f') && letters.chars().all(|c| c.is_ascii_alphabetic());
    let told = letters.contains('O') || tar.args().iter().any(|w| w.text.starts_with("--") || w.text == "-O");
    let named = letters.contains('v');
    let asked = Words::of(it.request).contains_phrase(&["stdout", "standard output"]);
    if !reads || !extracts || told || named && !asked {
        return None;
    }
    let plain: String = bundle.raw.chars().filter(|c| *c != 'v').collect();
    let fix = Edits::new(it.script).replace(bundle, &format!("{}Of", plain.strip_suffix('f')?)).done();
    const WHY: &str = "tar -x writes files, and prints nothing of what is in them: -O prints it";
    Some(warning("extracted", bundle, WHY, fix.filter(|_| asked)))
}

/// `--exclude` behind what is packed, on GNU: tar warns that it has no effect, and fails.
fn too_late(it: &CheckContext, tar: &Invocation) -> Option<Finding> {
    let [program, args @ ..] = &tar.words[..] else { return None };
    let creates = args.first().is_some_and(|bundle| bundle.text.trim_start_matches('-').starts_with('c'));
    // the archive is the first word that is no option, or the value of one; what is packed comes behind it
    let packed = args.iter().skip(1).enumerate().filter(|(_, word)| !word.text.starts_with('-')).nth(1)?.0 + 1;
    let late: Vec<_> = args[packed..].iter().filter(|word| word.text.starts_with("--exclude=")).collect();
    if !creates || it.target.userland != Userland::Gnu || args[..packed].iter().any(|w| w.text == "-C") {
        return None;
    }
    let token = *late.first()?;
    let moved: String = late.iter().map(|word| format!(" {}", word.raw)).collect();
    let edits = late.iter().fold(Edits::new(it.script), |edits, word| edits.replace(word, ""));
    let bundle = if args[0].text.starts_with('-') { program } else { &args[1] };
    let why = "tar heeds --exclude only before what it packs";
    Some(warning("exclude-too-late", token, why, edits.after(bundle, &moved).done()))
}

/// Long options that say what an archive is compressed with, by their beginnings.
const PACKERS: [&str; 10] =
    ["auto-compress", "bzip2", "compress", "gzip", "lz", "use-compress", "xz", "zst", "no-auto-compress", "options"];

/// Letters of options that say so.
const PACKER_LETTERS: [char; 6] = ['I', 'J', 'Z', 'a', 'j', 'z'];

fn of_command(it: &CheckContext, command: &Invocation) -> Option<Finding> {
    let [bundle, archive, ..] = command.args() else { return None };
    let letters = bundle.value.as_deref()?.trim_start_matches('-');
    // only the plain form, `-czf ARCHIVE` or `czf ARCHIVE`: what is written otherwise is not guessed at
    let plain = letters.starts_with('c') && letters.ends_with('f') && letters.chars().all(|c| c.is_ascii_alphabetic());
    if !plain || letters.contains('a') || letters.contains('Z') {
        return None;
    }
    let (_, promised) = ENDINGS.iter().find(|(endings, _)| endings.iter().any(|e| archive.text.ends_with(e)))?;
    // a program of one's own, or one that is said in another way
    let said = command.args().iter().skip(1).any(|w| {
        let (long, short) = (w.text.starts_with("--"), w.text.starts_with('-'));
        if long { PACKERS.iter().any(|p| w.text[2..].starts_with(p)) } else { short && w.text.contains(PACKER_LETTERS) }
    });
    if said {
        return None;
    }
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
