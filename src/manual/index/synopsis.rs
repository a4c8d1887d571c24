//! Parses the synopsis or usage line: operands and subcommands.

use crate::OptionEntry;
use std::collections::BTreeSet;

/// The content of a synopsis besides the options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The synopsis as one line.
    pub(crate) line: String,
    /// True if an operand may be something with flags of its own: a subcommand, another program, a script.
    pub(crate) delegates: bool,
    /// The options that it spells in two ways, which may be defined nowhere else: `[--tcp|-t]`.
    pub(crate) options: Vec<OptionEntry>,
    /// Subcommands listed in the text.
    pub(crate) subcommands: Vec<String>,
}

/// Placeholders of a synopsis for something with flags of its own.
const DELEGATES: &[&str] = &[
    "command",
    "commands",
    "subcommand",
    "program",
    "utility",
    "script",
    "object",
    "action",
    "verb",
    "cmd",
    "module",
    "operation",
    "args",
    "arg",
    "arguments",
    "argument",
    "tool",
    "task",
    "executable",
    "programfile",
    "program-file",
];

/// Programs whose synopsis has one of these words, although all flags are their own at any position.
const NEVER_DELEGATE: &[&str] = &["bsdtar", "dpkg", "dpkg-query", "mount", "script", "shuf", "tar"];

/// Parses the synopsis of the program `name` in a man page or help text.
pub(crate) fn usage(name: &str, text: &str) -> Usage {
    let line = synopsis_of(text);
    let delegates = !NEVER_DELEGATE.contains(&name) && delegates(&line);
    let subcommands = subcommands(name, text);
    Usage { delegates: delegates || subcommands.len() > 1, options: spelled_twice(&line), line, subcommands }
}

/// Returns the options of a synopsis that have a letter and a long name with that letter, in brackets of their own:
/// `[--tcp|-t]`, `{--route|-r}`. Others are alternatives that exclude each other (`[-q|--loud]`).
fn spelled_twice(line: &str) -> Vec<OptionEntry> {
    let is_name = |name: &str| {
        let body = name.trim_start_matches('-');
        body.len() < name.len() && !body.is_empty() && body.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let option = |group: &str| {
        let (one, other) = group.split_once('|')?;
        let (one, other) = (one.trim(), other.trim());
        let (short, long) = if one.starts_with("--") { (other, one) } else { (one, other) };
        let letter = short.strip_prefix('-')?;
        let fits = letter.len() == 1
            && long.starts_with("--")
            && is_name(short)
            && is_name(long)
            && long.to_ascii_lowercase().contains(&letter.to_ascii_lowercase());
        fits.then(|| OptionEntry { short: Some(short.into()), long: Some(long.into()), ..OptionEntry::default() })
    };
    let mut found: Vec<OptionEntry> = Vec::new();
    for (at, _) in line.match_indices(['[', '{']) {
        let rest = &line[at + 1..];
        let Some(end) = rest.find(['[', ']', '{', '}']) else { continue };
        if rest[end..].starts_with([']', '}'])
            && let Some(option) = option(&rest[..end])
            && !found.contains(&option)
        {
            found.push(option);
        }
    }
    found
}

/// True if an operand of the synopsis may be something with flags of its own. The word after an option is its
/// argument (`-e script`), not an operand.
fn delegates(line: &str) -> bool {
    const OPEN: [char; 4] = ['[', '(', '{', '|'];
    let mut before = "";
    line.split_whitespace().any(|token| {
        let option = before.trim_start_matches(OPEN);
        let valued =
            option.len() > 1 && option.starts_with('-') && option != "--" && !before.ends_with([']', '}', ')', '|']);
        before = token;
        let mut words = token.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '=' | '_')));
        (!valued || token.starts_with(OPEN)) && words.any(|w| DELEGATES.contains(&w.to_ascii_lowercase().as_str()))
    })
}

/// True if the line is a sentence about the program, which some texts have right after the usage.
fn is_prose(line: &str) -> bool {
    let ends = line.ends_with(['.', ',', ':', ';']) && !line.ends_with("...");
    ends && line.split(' ').filter(|w| !w.is_empty() && w.chars().all(|c| c.is_ascii_lowercase())).count() >= 4
}

/// Returns the SYNOPSIS section of a man page, or the usage lines of a help text; about 2000 bytes at most.
fn synopsis_of(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().skip_while(|line| {
        let lower = line.trim_start().to_ascii_lowercase();
        !(line.starts_with("SYNOPSIS") || lower.starts_with("usage"))
    });
    let Some(first) = lines.next() else { return out };
    let man = first.starts_with("SYNOPSIS");
    if !man {
        out.push_str(first.trim_start().split_once(':').map_or("", |(_, rest)| rest).trim());
    }
    for line in lines {
        let ends =
            if man { !line.is_empty() && !line.starts_with(' ') } else { line.trim().is_empty() && !out.is_empty() };
        let line = line.trim();
        let option = line.starts_with("--") || line.starts_with('-') && (line.contains("  ") || line.contains('\t'));
        if ends || out.len() > 2000 || !man && option {
            break;
        }
        if is_prose(line) {
            continue;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(line);
    }
    out
}

/// Returns the names under a heading about commands, and the pages of subcommands (`git-log(1)`).
fn subcommands(name: &str, text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut listing = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(after) = trimmed.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'))
            && let Some((sub, section)) = after.split_once('(')
            && section.starts_with(['1', '8'])
            && is_word(sub)
        {
            found.insert(sub.to_string());
        }
        if trimmed.is_empty() {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        if indent < 2 {
            listing = is_command_heading(trimmed);
            continue;
        }
        if listing && indent <= 8 {
            let first = trimmed.split([' ', '\t', ',', ':']).next().unwrap_or_default();
            let alone = trimmed[first.len()..].is_empty()
                || trimmed[first.len()..].starts_with("  ")
                || trimmed[first.len()..].starts_with(['\t', ',', ':'])
                || trimmed[first.len()..].starts_with("* ");
            if alone && is_word(first.trim_end_matches('*')) {
                found.insert(first.trim_end_matches('*').to_string());
            }
        }
    }
    found.into_iter().collect()
}

/// True for a heading about commands: `Unit Commands:`, `COMMANDS`.
pub(super) fn is_command_heading(line: &str) -> bool {
    let heading = line.strip_suffix(':').unwrap_or(line).to_ascii_lowercase();
    (heading.ends_with("commands") || heading.contains("commands ") || heading.contains("subcommand"))
        && heading.len() < 60
        && (line.ends_with(':') || line == line.to_uppercase())
}

/// True for `log`, `cherry-pick`.
pub(super) fn is_word(s: &str) -> bool {
    s.len() > 1
        && s.starts_with(|c: char| c.is_ascii_lowercase())
        && s.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_line_is_parsed() {
        let usage = usage("ls", "Usage: ls [-1Aa] [-w WIDTH] [FILE]...\n\nList\n\n\t-1\tOne\n");
        assert!(!usage.delegates);
        assert_eq!(usage.line, "ls [-1Aa] [-w WIDTH] [FILE]...");
    }

    #[test]
    fn subcommands_of_a_help_and_a_page_are_found() {
        let help = "usage: tool [options] <command>\n\nCommands:\n  build, b    Compile\n  check       Check\n    -x  no\n\nOptions:\n  -v  verbose\n";
        let u = usage("tool", help);
        assert_eq!((u.delegates, u.subcommands), (true, vec!["build".to_string(), "check".into()]));
        let page = "NAME\n       git - x\n\nGIT COMMANDS\n       git-add(1)\n           Add.\n       git-cherry-pick(1)\n           Pick.\n";
        assert_eq!(usage("git", page).subcommands, ["add", "cherry-pick"]);
    }

    #[test]
    fn an_options_argument_and_a_sentence_are_no_operands() {
        let of = |name, text: &str| usage(name, text).delegates;
        assert!(!of("sed", "Usage: sed [-n] [-e script] [-f script-file] [file...]\n"));
        assert!(!of("scp", "usage: scp [-46] [-S program] [-X sftp_option] source ... target\n"));
        assert!(!of(
            "curl",
            "Usage: curl [options...] <url>\n -d, --data <data>  Send\n -h, --help  Get help for commands\n"
        ));
        assert!(!of(
            "jq",
            "SYNOPSIS\n       jq [options...] filter [files...]\n\n       Running the command jq with a filter is what it does.\n\nX\n"
        ));
        assert!(!of("tar", "SYNOPSIS\n       tar {A|c|d} [ARG...]\n\nX\n"));
        for (name, synopsis) in [
            ("flock", "flock [options] file|directory -c command flock [options] file command [arguments]"),
            ("sudo", "sudo [-u user] [-s] [command [arg ...]]"),
            ("env", "env [OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]"),
            ("watch", "watch [options] command"),
            ("python", "python [ -c command | script | - ] [ arguments ]"),
            ("java", "java [options] -jar jarfile [args...]"),
        ] {
            assert!(of(name, &format!("SYNOPSIS\n       {synopsis}\n\nX\n")), "{synopsis}");
        }
    }

    #[test]
    fn another_program_as_operand_is_recognized() {
        assert!(
            usage("xargs", "SYNOPSIS\n       xargs [options] [command [initial-arguments]]\n\nDESCRIPTION\n").delegates
        );
        assert!(!usage("find", "SYNOPSIS\n       find [-H] [-L] [path...] [expression]\n\nDESCRIPTION\n").delegates);
    }
}
