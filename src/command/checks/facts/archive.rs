//! Finds `tar` commands whose archive name and compression differ (`tar -czf notes.tar`), whose `--exclude` comes too
//! late (`tar -cf a.tar src --exclude=x`), or that extract to files although their output is read.

use super::CheckContext;
use super::edit::{Edits, warning};
use super::words::Words;
use caro_shell::{Finding, Invocation, Userland};

/// The endings of archive names with the flag of their compression; `None` means no compression.
const ENDINGS: [(&[&str], Option<char>); 4] = [
    (&[".tar.gz", ".tgz"], Some('z')),
    (&[".tar.bz2", ".tbz", ".tbz2"], Some('j')),
    (&[".tar.xz", ".txz"], Some('J')),
    (&[".tar"], None),
];

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    cx.script
        .commands
        .iter()
        .filter(|c| c.name() == Some("tar"))
        .flat_map(|c| of_command(cx, c).into_iter().chain(too_late(cx, c)).chain(into_files(cx, c)))
        .collect()
}

/// `tar -xzf a.tgz | grep x` writes files, and the reader of the pipe gets nothing, or with `-v` their names.
fn into_files(cx: &CheckContext, tar: &Invocation) -> Option<Finding> {
    const READERS: [&str; 11] = ["awk", "cat", "cut", "grep", "head", "less", "sed", "sort", "tail", "uniq", "wc"];
    let reads = cx.script.reader(tar)?.name().is_some_and(|name| READERS.contains(&name));
    let bundle = tar.args().first()?;
    let letters = bundle.value.as_deref()?.trim_start_matches('-');
    let extracts =
        letters.starts_with('x') && letters.ends_with('f') && letters.chars().all(|c| c.is_ascii_alphabetic());
    let has_options = letters.contains('O') || tar.args().iter().any(|w| w.text.starts_with("--") || w.text == "-O");
    let prints_names = letters.contains('v');
    let asks_for_stdout = Words::of(cx.request).contains_phrase("stdout|standard output");
    if !reads || !extracts || has_options || prints_names && !asks_for_stdout {
        return None;
    }
    let plain: String = bundle.raw.chars().filter(|c| *c != 'v').collect();
    let edits = Edits::new(cx.script).replace(bundle, &format!("{}Of", plain.strip_suffix('f')?));
    const WHY: &str = "tar -x writes files, and prints nothing of what is in them: -O prints it";
    Some(warning("extracted", bundle, WHY, if asks_for_stdout { edits.apply() } else { None }))
}

/// `--exclude` after the files to pack: GNU tar warns that it has no effect, and fails.
fn too_late(cx: &CheckContext, tar: &Invocation) -> Option<Finding> {
    let [program, args @ ..] = &tar.words[..] else { return None };
    let creates = args.first().is_some_and(|bundle| bundle.text.trim_start_matches('-').starts_with('c'));
    // the first word that is no option is the archive (or an option's value), the second the first file to pack
    let packed = args.iter().skip(1).enumerate().filter(|(_, word)| !word.text.starts_with('-')).nth(1)?.0 + 1;
    let late: Vec<_> = args[packed..].iter().filter(|word| word.text.starts_with("--exclude=")).collect();
    if !creates || cx.target.userland != Userland::Gnu || args[..packed].iter().any(|w| w.text == "-C") {
        return None;
    }
    let token = *late.first()?;
    let moved: String = late.iter().map(|word| format!(" {}", word.raw)).collect();
    let edits = late.iter().fold(Edits::new(cx.script), |edits, word| edits.replace(word, ""));
    let bundle = if args[0].text.starts_with('-') { program } else { &args[1] };
    let why = "tar heeds --exclude only before what it packs";
    Some(warning("exclude-too-late", token, why, edits.insert_after(bundle, &moved).apply()))
}

/// Prefixes of the long options that set the compression.
const COMPRESSION_OPTIONS: [&str; 10] =
    ["auto-compress", "bzip2", "compress", "gzip", "lz", "use-compress", "xz", "zst", "no-auto-compress", "options"];

/// Letters of the short options that set the compression.
const COMPRESSION_LETTERS: [char; 6] = ['I', 'J', 'Z', 'a', 'j', 'z'];

fn of_command(cx: &CheckContext, command: &Invocation) -> Option<Finding> {
    let [bundle, archive, ..] = command.args() else { return None };
    let letters = bundle.value.as_deref()?.trim_start_matches('-');
    // only the plain form, `-czf ARCHIVE` or `czf ARCHIVE`, is checked
    let is_plain =
        letters.starts_with('c') && letters.ends_with('f') && letters.chars().all(|c| c.is_ascii_alphabetic());
    if !is_plain || letters.contains('a') || letters.contains('Z') {
        return None;
    }
    let (_, expected) = ENDINGS.iter().find(|(endings, _)| endings.iter().any(|e| archive.text.ends_with(e)))?;
    // the compression is set by another option
    let has_other_option = command.args().iter().skip(1).any(|w| match w.text.strip_prefix("--") {
        Some(long) => COMPRESSION_OPTIONS.iter().any(|option| long.starts_with(option)),
        None => w.text.starts_with('-') && w.text.contains(COMPRESSION_LETTERS),
    });
    if has_other_option {
        return None;
    }
    let given = letters.chars().find(|c| "zjJ".contains(*c));
    if given == *expected {
        return None;
    }
    let others: String = letters.chars().filter(|c| !"zjJ".contains(*c)).collect();
    let (first, rest) = others.split_at(1);
    let fixed = format!("{first}{}{rest}", expected.map(String::from).unwrap_or_default());
    let fixed = if bundle.raw.starts_with('-') { format!("-{fixed}") } else { fixed };
    let why = match expected {
        Some(flag) => format!("an archive of this name is compressed with -{flag}"),
        None => "an archive called .tar is not compressed".into(),
    };
    Some(warning("archive-compression", bundle, why, Edits::new(cx.script).replace(bundle, &fixed).apply()))
}
