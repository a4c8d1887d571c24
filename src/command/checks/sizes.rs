//! Sizes in bytes or for people, and sorting by them.

use super::edit::{Edits, cluster_with, is_cluster, warning, without};
use super::words::Words;
use super::{CheckContext, only};
use crate::shell::{Finding, Invocation, Userland, Word};

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    unit(it).into_iter().chain(sorted(it)).chain(blocks(it)).collect()
}

/// `find -size +1024` for "more than 1 KiB": without a letter behind it, a size is in blocks of 512 bytes.
fn blocks(it: &CheckContext) -> Option<Finding> {
    let said = said(it.request);
    let tests = it.script.commands.iter().filter(|c| c.name() == Some("find")).flat_map(|c| c.args().windows(2));
    let sizes = tests.filter(|pair| pair[0].text == "-size").map(|pair| &pair[1]);
    let meant = |word: &Word| {
        let sign = word.text.get(..1).filter(|s| matches!(*s, "+" | "-")).unwrap_or("");
        let number: u64 = word.text[sign.len()..].parse().ok()?;
        let (_, exact) = said.iter().find(|(loose, exact)| number == *loose || number == *exact)?;
        Some(format!("{sign}{exact}c"))
    };
    let found: Vec<(&Word, String)> = sizes.filter_map(|word| Some((word, meant(word)?))).collect();
    let (first, _) = found.first()?;
    let fix = found.iter().fold(Edits::new(it.script), |edits, (word, text)| edits.replace(word, text)).done();
    Some(warning(
        "size-in-blocks",
        first,
        "without a letter behind it, a size is in blocks of 512 bytes: c is bytes",
        fix,
    ))
}

/// Sizes that a request names with their unit, in bytes: by thousands, as some count, and exactly.
fn said(request: &str) -> Vec<(u64, u64)> {
    let words: Vec<String> = request
        .split([' ', '\t', '(', ')', ','])
        .map(|w| w.trim_end_matches(['.', '?', ';']).to_lowercase())
        .filter(|w| !w.is_empty())
        .collect();
    let power = |unit: &str| match unit {
        "b" | "byte" | "bytes" => Some(0),
        "k" | "kb" | "kib" | "kilobyte" | "kilobytes" => Some(1),
        "m" | "mb" | "mib" | "megabyte" | "megabytes" => Some(2),
        "g" | "gb" | "gib" | "gigabyte" | "gigabytes" => Some(3),
        _ => None,
    };
    let size = |(i, word): (usize, &String)| {
        let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        let number: u64 = word[..digits].parse().ok()?;
        let unit = if digits == word.len() { words.get(i + 1)?.as_str() } else { &word[digits..] };
        let power = power(unit)?;
        Some((number.checked_mul(1000u64.pow(power))?, number.checked_mul(1024u64.pow(power))?))
    };
    words.iter().enumerate().filter_map(size).collect()
}

/// Bytes where sizes for people are asked for, or the other way round.
fn unit(it: &CheckContext) -> Option<Finding> {
    let words = Words::of(it.request);
    // dates are made readable too
    if words.negate() || words.say(&["date", "dates", "time", "times", "timestamp", "timestamps"]) {
        return None;
    }
    let printing = it.script.commands.iter().filter(|c| matches!(c.name(), Some("ls" | "du" | "df" | "free")));
    let command = only(printing)?;
    let (name, program) = (command.name()?, command.words.first()?);
    let human = cluster_with(command.args(), 'h');
    if words.say(&["in bytes"]) && !words.say(&["human readable"]) {
        let flag = human?;
        let left = without(&flag.raw, 'h');
        let fixed = match name {
            "ls" => left,
            "du" if it.target.userland == Userland::Gnu => format!("{}b", if left.is_empty() { "-" } else { &left }),
            _ => return None,
        };
        let fix = Edits::new(it.script).replace(flag, &fixed).done();
        return Some(warning("size-unit", flag, "bytes are asked for, and -h rounds to K, M and G", fix));
    }
    const SAID: [&str; 3] = ["human readable", "human friendly", "humanly readable"];
    let unitless = |w: &crate::shell::Word| {
        let t = w.text.as_str();
        t.starts_with("--")
            && ["--hum", "--si", "--block", "--bytes", "--out", "--app", "--mega", "--giga"]
                .iter()
                .any(|o| t.starts_with(o))
            || is_cluster(w) && w.raw.contains(['h', 'H', 'b', 'm', 'g'])
    };
    if !words.say(&SAID) || command.args().iter().any(unitless) || command.stdout_pipe || !command.via.is_empty() {
        return None;
    }
    let sizes = match name {
        "ls" => cluster_with(command.args(), 'l').is_some() || cluster_with(command.args(), 's').is_some(),
        "free" => it.target.userland == Userland::Gnu,
        "du" | "df" => true,
        _ => false,
    };
    let fix = Edits::new(it.script).after(program, " -h").done();
    sizes.then(|| warning("size-unit", program, format!("sizes for people are asked for: {name} -h prints them"), fix))
}

/// `du -h | sort -n` puts 1.5G before 20K; `du | sort` puts 100 before 20.
fn sorted(it: &CheckContext) -> Option<Finding> {
    let commands = &it.script.commands;
    let source = commands.iter().find(|c| c.name() == Some("du"))?;
    let sort = it.script.reader(outermost(commands, source)).filter(|c| c.name() == Some("sort"))?;
    let human = source.args().iter().any(|w| w.text.starts_with("--human") || w.text.starts_with("--si"))
        || cluster_with(source.args(), 'h').is_some();
    let letter = |l: char| {
        sort.args().iter().any(|w| w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains(l))
    };
    let other = sort.args().iter().any(|w| w.text.starts_with("--"))
        || sort.args().iter().any(|w| !is_cluster(w) && !is_first_key(w));
    if other
        || letter('h')
        || letter('R')
        || letter('V')
        || letter('g')
        || letter('k') && !sort.args().iter().any(is_first_key)
    {
        return None;
    }
    let edits = Edits::new(it.script);
    let program = sort.words.first()?;
    if letter('n') {
        let flag = cluster_with(sort.args(), 'n').filter(|_| human)?;
        let fix = edits.replace(flag, &flag.raw.replacen('n', "h", 1)).done();
        return Some(warning("human-sort", flag, "sizes such as 1.5G and 20K need sort -h, not -n", fix));
    }
    let flag = if human { "-h" } else { "-n" };
    let fix = edits.after(program, &format!(" {flag}")).done();
    Some(warning("number-sort", program, format!("sizes are numbers: sort {flag}, or 100 comes before 20"), fix))
}

/// `-k1` and its kin.
fn is_first_key(word: &crate::shell::Word) -> bool {
    matches!(word.text.as_str(), "-k1" | "-k1,1" | "1" | "1,1" | "-rk1" | "-nrk1" | "-rnk1" | "-nk1")
}

/// The command that stands in the pipeline: `find` for the `du` of `find -exec du {} +`.
fn outermost<'a>(commands: &'a [Invocation], command: &'a Invocation) -> &'a Invocation {
    use crate::shell::parse::How;
    command.inside.filter(|i| i.how == How::Wrapped).and_then(|i| commands.get(i.command)).unwrap_or(command)
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;
    use super::*;

    #[test]
    fn sizes_are_sorted_as_they_are_printed() {
        let fix = |command: &str| findings(check, "", command).into_iter().next().and_then(|f| f.fix);
        assert_eq!(fix("du -ah . | sort -rn | head").as_deref(), Some("du -ah . | sort -rh | head"));
        assert_eq!(fix("du -sk * | sort -r").as_deref(), Some("du -sk * | sort -n -r"));
        for right in
            ["du -k . | sort -rn", "du -sh * | sort -h", "du -a | sort -k2", "du -b | sort -nrk1", "du | sort --key=2"]
        {
            assert_eq!(fix(right), None, "{right}");
        }
    }

    #[test]
    fn a_size_has_its_unit() {
        let fix = |request, command| findings(check, request, command).into_iter().next().and_then(|f| f.fix);
        let request = "files below raw larger than 1 KiB (1024 bytes) but smaller than 100 KiB?";
        let right = "find raw -type f -size +1024c -size -102400c";
        assert_eq!(fix(request, "find raw -type f -size +1024 -size -100000").as_deref(), Some(right));
        assert_eq!(fix("over 5000 bytes", "find . -size +5000").as_deref(), Some("find . -size +5000c"));
        assert_eq!(fix("over 2MB", "find . -size +2097152").as_deref(), Some("find . -size +2097152c"));
        for (request, right) in [
            (request, right),
            ("over 5000 blocks", "find . -size +5000"),
            ("over 5 KB", "find . -size +10"),
            ("empty files", "find . -size 0"),
            ("over 5 MB", "find . -size +5M"),
        ] {
            assert_eq!(fix(request, right), None, "{request}: {right}");
        }
    }
}
