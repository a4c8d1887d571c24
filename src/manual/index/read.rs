//! Parses a whole text: the program's description, its sections and its options.

use super::tag::{Spelling, Tag, tag};
use crate::OptionEntry;
use crate::value::short_meaning;
use std::collections::HashSet;

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A formatted man page: headings in column 0.
    Page,
    /// The output of `--help` or a shell's `help`.
    Help,
}

/// The content of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// A short description of the program.
    pub(crate) title: Option<String>,
    /// The first paragraph of the description of a man page.
    pub(crate) summary: Option<String>,
    /// The options, in order.
    pub(crate) options: Vec<OptionEntry>,
}

/// Sections of a man page that mention flags without defining them.
const NO_OPTIONS: &[&str] = &[
    "NAME",
    "SYNOPSIS",
    "EXAMPLE",
    "EXAMPLES",
    "SEE ALSO",
    "AUTHOR",
    "AUTHORS",
    "BUGS",
    "REPORTING BUGS",
    "COPYRIGHT",
    "HISTORY",
    "FILES",
    "EXIT STATUS",
    "STANDARDS",
    // a shell's tests, and the options of its builtins: `-e` has another meaning there
    "CONDITIONAL EXPRESSIONS",
    "SHELL BUILTIN COMMANDS",
    "CONFORMING TO",
    "DIAGNOSTICS",
];
/// Longest stored text of an option, in bytes.
const MAX_TEXT: usize = 200;
/// Longest stored summary, in bytes.
const MAX_SUMMARY: usize = 600;
/// Most options of a program; with more, a text is not a list of options.
const MAX_OPTIONS: usize = 4000;

/// Parses a text returned by [`clean`](super::clean).
pub(crate) fn read(text: &str, kind: Kind) -> Text {
    let lines: Vec<&str> = text.lines().collect();
    let bare_letters = kind == Kind::Page && text.contains("BSD-style");
    let operands = text.contains("OPERAND");
    let mut out = Text::default();
    let mut seen = HashSet::new();
    let mut section = None;
    let mut subsection = None;
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            continue;
        }
        let indent = indent(line);
        if let Some((heading, level)) = heading(line, indent, kind) {
            if level == 0 {
                section = Some(heading);
                subsection = None;
            } else {
                subsection = Some(heading);
            }
            continue;
        }
        let skipped = kind == Kind::Page && section.as_deref().is_some_and(|s| NO_OPTIONS.contains(&s));
        if skipped || kind == Kind::Page && section.is_none() {
            continue;
        }
        // a sentence that continues with options: `not supported: --null,` and then `--recursive`
        let previous_line = at.checked_sub(1).map_or("", |before| lines[before].trim_end());
        if previous_line.ends_with(',') && indent == 0 && tag(previous_line).is_none() {
            continue;
        }
        // some pages list their options as items; find has `expr1 -o expr2`
        let item = trimmed.trim_start_matches(['·', '•', '*', ' ']);
        if let Some((option, argument)) = signed_form(item, &out.options) {
            let of = Tag { spellings: Vec::new(), text: String::new(), siblings: false };
            let text = one_line(&text_of(&of, &lines, at, indent), MAX_TEXT);
            let option = &mut out.options[option];
            let form = OptionEntry {
                argument: Some(argument),
                text,
                forms: Vec::new(),
                choices: Vec::new(),
                ..option.clone()
            };
            option.forms.push(form);
            continue;
        }
        let item = infix(item).unwrap_or_else(|| item.to_string());
        let found = tag(&item)
            .or_else(|| operators(trimmed, &lines[at + 1..]))
            .or_else(|| if operands { operand(trimmed) } else { None })
            .or_else(|| if bare_letters && indent <= 8 { bare_letter(trimmed) } else { None });
        let Some(found) = found else { continue };
        if kind == Kind::Page && indent == 0 || out.options.len() >= MAX_OPTIONS {
            continue;
        }
        if found.siblings {
            // a text on the line of several options is about all of them
            let text = if found.text.is_empty() { String::new() } else { text_of(&found, &lines, at, indent) };
            let text = one_line(&text, MAX_TEXT);
            for spelling in found.spellings {
                if seen.insert(spelling.name.clone()) {
                    out.options.push(entry(
                        vec![spelling],
                        text.clone(),
                        subsection.clone().or_else(|| section.clone()),
                    ));
                }
            }
            continue;
        }
        let text = one_line(&text_of(&found, &lines, at, indent), MAX_TEXT);
        let (valued, bare): (Vec<_>, Vec<_>) = found.spellings.into_iter().partition(|s| s.argument.is_some());
        for spellings in [valued, bare].into_iter().filter(|spellings| !spellings.is_empty()) {
            let mut entry = entry(spellings, text.clone(), subsection.clone().or_else(|| section.clone()));
            if entry.argument.is_some() && text.ends_with(':') {
                entry.choices = choices(&lines[at + 1..], indent);
            }
            if entry.names().any(|name| !seen.contains(name)) {
                seen.extend(entry.names().map(str::to_string));
                out.options.push(entry);
            }
        }
    }
    // a shell accepts the options of its `set`, which are documented with its builtins
    if let Some(set) = lines.contains(&"SHELL BUILTIN COMMANDS").then(|| entry_about("set", text)).flatten() {
        out.options.extend(read(&set, Kind::Help).options.into_iter().filter(|o| !o.names().any(|n| seen.contains(n))));
    }
    match kind {
        Kind::Page => {
            out.title = paragraph(&lines, "NAME").and_then(|name| {
                let (_, title) = [" - ", " — ", " – ", " -- "].iter().find_map(|dash| name.split_once(dash))?;
                Some(title.to_string())
            });
            out.summary =
                paragraph(&lines, "DESCRIPTION").map(|text| one_line(&text, MAX_SUMMARY)).or(out.title.clone());
        }
        Kind::Help => out.title = help_title(&lines),
    }
    out.title = out.title.map(|title| one_line(&title, MAX_TEXT)).filter(|title| !title.is_empty());
    out
}

/// Returns the columns of white space before the text; a tab extends to the next multiple of eight.
pub(super) fn indent(line: &str) -> usize {
    let mut column = 0;
    for c in line.chars() {
        match c {
            ' ' => column += 1,
            '\t' => column = (column / 8 + 1) * 8,
            _ => break,
        }
    }
    column
}

/// Returns a heading and its level, if the line is one.
fn heading(line: &str, indent: usize, kind: Kind) -> Option<(String, usize)> {
    let trimmed = line.trim();
    if trimmed.starts_with(['-', '+']) {
        return None;
    }
    match kind {
        Kind::Page if indent == 0 => Some((trimmed.to_string(), 0)),
        Kind::Page if indent == 3 && trimmed.len() < 80 && !trimmed.ends_with('.') => Some((trimmed.to_string(), 1)),
        Kind::Help if indent <= 2 && trimmed.len() < 60 && trimmed.ends_with(':') => {
            Some((trimmed.trim_end_matches(':').to_string(), 0))
        }
        _ => None,
    }
}

/// Parses `-perm -mode`, if `-perm mode` is known: the option whose argument may begin with a sign, by its index, and
/// the argument with the sign.
fn signed_form(item: &str, options: &[OptionEntry]) -> Option<(usize, String)> {
    let (name, argument) = item.split_once(' ')?;
    let placeholder = argument.strip_prefix(['-', '+', '/', '=', '@', '!', '^'])?;
    let takes = |option: &OptionEntry| {
        option.argument.as_deref() == Some(placeholder) && option.names().any(|known| known == name)
    };
    Some((options.iter().position(takes)?, argument.to_string()))
}

/// Returns the operator before its text for a line that shows it between its operands: `FILE1 -nt FILE2  True if ...`,
/// `expr1 -o expr2`.
fn infix(item: &str) -> Option<String> {
    let (left, rest) = item.split_once(' ')?;
    let (name, rest) = rest.split_once(' ')?;
    let right = rest.split(' ').next().unwrap_or(rest);
    let is_pair = left.strip_suffix('1').is_some_and(|stem| !stem.is_empty() && right.strip_suffix('2') == Some(stem));
    let text = rest[right.len()..].trim_start();
    (is_pair && name.starts_with('-')).then(|| if text.is_empty() { name.into() } else { format!("{name}  {text}") })
}

/// Parses `arg1 OP arg2   Arithmetic tests.  OP is one of -eq, -ne, -lt, ...` of a shell's `test`: a placeholder
/// between operands, and the operators that it stands for.
fn operators(line: &str, more: &[&str]) -> Option<Tag> {
    let placeholder = line.split(' ').nth(1).filter(|word| word.len() > 1 && *word == word.to_ascii_uppercase())?;
    let rest = infix(&line.replacen(&format!(" {placeholder} "), " -op ", 1))?;
    let text = rest.strip_prefix("-op")?.trim_start();
    let below = more.iter().take_while(|line| !line.trim().is_empty()).map(|line| line.trim());
    let whole = std::iter::once(text).chain(below).collect::<Vec<_>>().join(" ");
    let (_, listed) = whole.split_once(&format!("{placeholder} is one of "))?;
    let names = listed.split('.').next().unwrap_or(listed).split([',', ' ']).filter(|word| word.starts_with('-'));
    let spellings: Vec<_> = names.map(|name| Spelling { name: name.to_string(), argument: None }).collect();
    (!spellings.is_empty()).then(|| Tag { spellings, text: text.to_string(), siblings: true })
}

/// Parses `if=FILE`, as in dd.
fn operand(line: &str) -> Option<Tag> {
    let (name, rest) = line.split_once('=')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let value = &rest[..end];
    let text = rest[end..].trim();
    let gap = text.is_empty() || rest[end..].starts_with("  ") || rest[end..].starts_with('\t');
    let fits = gap
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_lowercase())
        && !value.is_empty()
        && value.chars().all(|c| c.is_ascii_uppercase() || c == ',');
    let spelling = Spelling { name: format!("{name}="), argument: Some(value.to_string()) };
    fits.then(|| Tag { spellings: vec![spelling], text: text.to_string(), siblings: false })
}

/// Parses `a      Lift the restriction`, `o format`, the form of BSD-style options without a dash.
fn bare_letter(line: &str) -> Option<Tag> {
    let mut chars = line.chars();
    let letter = chars.next().filter(char::is_ascii_alphabetic)?;
    let rest = chars.as_str();
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let (argument, text) = if rest.starts_with("  ") || rest.is_empty() {
        (None, rest.trim())
    } else {
        let word = rest.trim();
        if word.contains(' ') {
            return None;
        }
        (Some(word.to_string()), "")
    };
    Some(Tag {
        spellings: vec![Spelling { name: letter.to_string(), argument }],
        text: text.to_string(),
        siblings: false,
    })
}

/// Returns the text of a tag: the rest of its line and the deeper lines after it, up to a blank one. A text that
/// begins with the behaviour without the option is replaced by the sentence about the option.
fn text_of(found: &Tag, lines: &[&str], at: usize, tag_indent: usize) -> String {
    const OTHERWISE: [&str; 4] = ["Usually", "Normally", "Ordinarily", "By default"];
    const ITSELF: [&str; 3] = ["This flag ", "This option ", "With this option"];
    let text = first_paragraph(found, lines, at, tag_indent);
    if !OTHERWISE.iter().any(|word| text.starts_with(word)) {
        return text;
    }
    let deeper = lines[at + 1..].iter().take_while(|line| line.trim().is_empty() || indent(line) > tag_indent);
    let all = deeper.map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let itself = ITSELF.iter().filter_map(|start| all.find(start)).min();
    itself.map_or(text, |start| all[start..].to_string())
}

/// Returns the rest of a tag's line and the deeper lines after it, up to a blank one.
fn first_paragraph(found: &Tag, lines: &[&str], at: usize, tag_indent: usize) -> String {
    let mut text = found.text.clone();
    for (n, line) in lines[at + 1..].iter().enumerate() {
        if text.len() > 2 * MAX_TEXT {
            break;
        }
        let trimmed = line.trim();
        if trimmed.is_empty() {
            if !text.is_empty() || n > 0 {
                break;
            }
            continue;
        }
        let deeper = indent(line) > tag_indent;
        let another = trimmed.starts_with('-') && tag(trimmed).is_some();
        if another && !deeper && text.is_empty() && n < 4 {
            // spellings on separate lines share the text that follows
            continue;
        }
        if !deeper || another {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(trimmed);
    }
    text
}

/// Returns the letters that are listed below the text of an option, each with its meaning.
fn choices(lines: &[&str], tag_indent: usize) -> Vec<(String, String)> {
    let is_inside = |line: &&&str| line.trim().is_empty() || indent(line) > tag_indent;
    let text = lines.iter().take_while(|line| line.trim().is_empty()).count();
    let text = text + lines[text..].iter().take_while(|line| !line.trim().is_empty()).count();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut column = 0;
    for line in lines[text..].iter().take_while(is_inside).filter(|line| !line.trim().is_empty()) {
        match choice(line.trim()) {
            Some(choice) => {
                column = indent(line);
                found.push(choice);
            }
            None if indent(line) > column && !found.is_empty() => {
                if let Some((_, meaning)) = found.last_mut() {
                    meaning.push_str(&format!(" {}", line.trim()));
                }
            }
            None => break,
        }
    }
    found.into_iter().map(|(letter, meaning)| (letter, short_meaning(&one_line(&meaning, MAX_TEXT)))).collect()
}

/// Parses `d      directory` and `` `k'    for kibibytes``.
fn choice(line: &str) -> Option<(String, String)> {
    let (letter, meaning) = line.split_once("  ")?;
    let letter = letter.trim_matches(['`', '\'', '‘', '’', '"']);
    let is_letter = letter.chars().count() == 1 && letter.starts_with(char::is_alphanumeric);
    is_letter.then(|| (letter.to_owned(), meaning.trim().to_owned()))
}

/// Collapses white space, and cuts after a sentence or at `limit` bytes. A first sentence is kept whole up to twice as
/// many.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > limit {
        let mut end = limit;
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        let sentence = line[..end].rfind(". ").filter(|at| *at > 20).map(|at| at + 1);
        let first = || line.find(". ").map(|at| at + 1).filter(|at| (limit..=2 * limit).contains(at));
        let sentence = sentence.or_else(first);
        line.truncate(sentence.or_else(|| line[..end].rfind(' ')).unwrap_or(end));
    }
    line
}

/// Creates an entry from spellings.
fn entry(spellings: Vec<Spelling>, text: String, section: Option<String>) -> OptionEntry {
    let argument = spellings.iter().find_map(|s| s.argument.clone());
    let (mut short, mut long, mut also) = (None, None, Vec::new());
    for Spelling { name, .. } in spellings {
        let slot = if name.starts_with("--") { &mut long } else { &mut short };
        if slot.is_none() {
            *slot = Some(name);
        } else if slot.as_ref() != Some(&name) && !also.contains(&name) {
            also.push(name);
        }
    }
    OptionEntry { short, long, argument, text, section, also, forms: Vec::new(), choices: Vec::new() }
}

/// Returns the first paragraph of a section of a page.
fn paragraph(lines: &[&str], section: &str) -> Option<String> {
    let start = lines.iter().position(|line| line.trim_end() == section)? + 1;
    let body: Vec<&str> = lines[start..]
        .iter()
        .skip_while(|line| line.trim().is_empty() || indent(line) == 3)
        .take_while(|line| !line.trim().is_empty() && line.starts_with(' '))
        .map(|line| line.trim())
        .collect();
    (!body.is_empty()).then(|| body.join(" "))
}

/// Returns the part of a page about one entry of a section, up to the next entry. Shells document all their builtins
/// like this in one page.
pub(crate) fn entry_about(name: &str, text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |line: &str| {
        line.trim_start().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '[']))
    };
    let at = lines.iter().position(|line| (3..=8).contains(&indent(line)) && begins(line))?;
    let level = indent(lines[at]);
    let mut part = format!("usage: {}\n\n", lines[at].trim());
    for line in &lines[at + 1..] {
        if !line.trim().is_empty() && indent(line) <= level && !begins(line) {
            break;
        }
        part.push_str(line);
        part.push('\n');
    }
    Some(part)
}

/// Returns a help text's description of the program: the first line of prose that is not part of the usage.
fn help_title(lines: &[&str]) -> Option<String> {
    let mut usage = false;
    for line in lines.iter().take(20) {
        let trimmed = line.trim();
        // after the first option, the text is about options
        if !usage && trimmed.starts_with('-') {
            return None;
        }
        // `test: test [expr]` of bash, `apt 2.6.1 (amd64)`, and columns of names
        let mut words = trimmed.split(' ');
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let usage_again = first.strip_suffix(':') == Some(second);
        if usage_again || second.starts_with(|c: char| c.is_ascii_digit()) || trimmed.contains("   ") {
            continue;
        }
        let lower = trimmed.to_ascii_lowercase();
        if trimmed.is_empty() {
            usage = false;
            continue;
        }
        if lower.starts_with("usage") || lower.starts_with("or:") {
            usage = true;
            continue;
        }
        let other = usage && line.starts_with(' ') || lower.contains("multi-call binary") || trimmed.ends_with(':');
        if !other
            && !trimmed.starts_with(['-', '[', '+'])
            && (trimmed.split(' ').count() > 2 || trimmed.ends_with('.'))
            && !trimmed.contains("[-")
        {
            return Some(trimmed.to_string());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str, kind: Kind) -> Vec<String> {
        read(text, kind).options.iter().map(|o| o.names().collect::<Vec<_>>().join(",")).collect()
    }

    #[test]
    fn a_page_is_parsed() {
        let page = "X(1)\n\nNAME\n       x - do x\n\nSYNOPSIS\n       x [-a]\n\nDESCRIPTION\n       Does x.\n\n       Well.\n\nOPTIONS\n   Common\n       -a, --all\n              Take all.\n\n              More.\n\n       -f     Force it.\n\n       -s\n       --short\n              Be short.\n\nEXAMPLES\n       -z\n              no\n";
        let text = read(page, Kind::Page);
        assert_eq!(text.title.as_deref(), Some("do x"));
        assert_eq!(text.summary.as_deref(), Some("Does x."));
        let shown: Vec<_> =
            text.options.iter().map(|o| (o.names().collect::<Vec<_>>().join(","), o.text.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("-a,--all".to_string(), "Take all."),
                ("-f".into(), "Force it."),
                ("-s".into(), "Be short."),
                ("--short".into(), "Be short."),
            ]
        );
        assert_eq!(text.options[0].section.as_deref(), Some("Common"));
    }

    #[test]
    fn every_kind_of_help_is_parsed() {
        let gnu = "Usage: x [OPTION]...\nDo some x.\n\nGroup:\n  -a, --all                  take all\n                             of it\n      --block-size=SIZE      scale\n";
        let text = read(gnu, Kind::Help);
        assert_eq!(text.title.as_deref(), Some("Do some x."));
        assert_eq!(text.options[0].text, "take all of it");
        assert_eq!(text.options[0].section.as_deref(), Some("Group"));
        let clap = "Find it.\n\nUsage: x [OPTIONS]\n\nOptions:\n  -H, --hidden\n          Search hidden files\n\n      --color <WHEN>\n          Colour it\n          [possible values: auto, never]\n";
        let text = read(clap, Kind::Help);
        assert_eq!(text.title.as_deref(), Some("Find it."));
        assert_eq!(text.options[1].text, "Colour it [possible values: auto, never]");
        assert_eq!(text.options[1].argument.as_deref(), Some("WHEN"));
        assert_eq!(
            flags("Usage of x:\n  -name string\n    \ta name (default \"x\")\n  -v\tverbose\n", Kind::Help),
            ["-name", "-v"]
        );
        assert_eq!(flags("Usage: ls [-la]\n\nList\n\n\t-l\tLong\n\t-a\tAll\n", Kind::Help), ["-l", "-a"]);
        assert_eq!(
            flags(
                "usage: x [-h] [-o FILE]\n\noptions:\n  -h, --help            show\n  -o FILE, --out FILE   where\n",
                Kind::Help
            ),
            ["-h,--help", "-o,--out"]
        );
    }

    #[test]
    fn the_text_is_about_the_option_itself() {
        let page = "OPTIONS\n       -f\n           Usually, it refuses. Always.\n\n           This flag disables that; take care.\n\n       -u, -U NUM\n           Lines.\n\n       expr1 -o expr2\n           Or.\n\nCONDITIONAL EXPRESSIONS\n       -e file\n              True if it is there.\n\nSHELL BUILTIN COMMANDS\n       hash [-z]\n              -z     Not this.\n\n       set [-e] [-o option-name]\n              -e      Exit at once.\n\n       shift [n]\n              -y      Nor this.\n";
        let text = read(page, Kind::Page);
        let lines: Vec<String> = text.options.iter().map(OptionEntry::line).collect();
        let expected =
            ["-f  This flag disables that; take care.", "-U NUM  Lines.", "-u  Lines.", "-o  Or.", "-e  Exit at once."];
        assert_eq!(lines, expected);
    }

    #[test]
    fn an_argument_with_a_sign_has_a_text_of_its_own() {
        let page = "TESTS\n       -perm mode\n              Exactly these.\n\n       -perm -mode\n              All of these.\n\n       -perm /mode\n              Any of these.\n\n       -depth -maxdepth\n              Both.\n";
        let text = read(page, Kind::Page);
        let perm = &text.options[0];
        for (value, effect) in
            [("664", "Exactly"), ("-4000", "All"), ("/222", "Any"), ("u=w", "Exactly"), ("", "Exactly")]
        {
            assert!(perm.form(value).text.starts_with(effect), "{value}");
        }
        assert_eq!(perm.form("/222").usage(), "-perm /mode");
        assert_eq!(flags(page, Kind::Page), ["-perm", "-depth", "-maxdepth"]);
    }

    #[test]
    fn operators_between_their_operands_are_options() {
        let help = "test: test [expr]\n    Evaluate.\n\n      -a FILE        True if there.\n\n      FILE1 -nt FILE2  True if newer (by\n                       date).\n\n      EXPR1 -a EXPR2  True if both.\n\n      arg1 OP arg2   Arithmetic tests.  OP is one of -eq,\n                     -lt, or -ge.\n\n    EXPR is a name.\n";
        let lines: Vec<String> = read(help, Kind::Help).options.iter().map(OptionEntry::line).collect();
        let arithmetic = "Arithmetic tests. OP is one of -eq, -lt, or -ge.";
        let expected = ["-a FILE  True if there.".to_string(), "-nt  True if newer (by date).".into()];
        let operators = ["-eq", "-lt", "-ge"].map(|name| format!("{name}  {arithmetic}"));
        assert_eq!(lines, expected.into_iter().chain(operators).collect::<Vec<_>>());
    }

    #[test]
    fn a_title_is_a_sentence_about_the_program() {
        for help in [
            "test: test [expr]\n",
            "apt 2.6.1 (amd64)\n",
            "Usage: x [options]\n\nOptions:\n  -x, --maxdays MAX\n                    change to MAX\n",
            "help:\n\nStandard commands\nasn1parse         ca                ciphers           cmp\n",
        ] {
            assert_eq!(read(help, Kind::Help).title, None, "{help}");
        }
        assert_eq!(read("test: test [expr]\n    Evaluate it.\n", Kind::Help).title.as_deref(), Some("Evaluate it."));
    }

    #[test]
    fn options_listed_in_a_sentence_are_not_defined() {
        let help =
            "Usage: x\nLook.\n\nthe following are not supported: --deref (-R),\n--exclude, --null\n\n  -a   all\n";
        assert_eq!(flags(help, Kind::Help), ["-a"]);
    }

    #[test]
    fn operands_and_letters_without_a_dash_are_parsed() {
        let dd = "NAME\n       dd - copy\n\nSYNOPSIS\n       dd [OPERAND]...\n\nDESCRIPTION\n       bs=BYTES\n              so many\n\n       if=FILE\n              from there\n";
        assert_eq!(flags(dd, Kind::Page), ["bs=", "if="]);
        let ps = "NAME\n       ps - report\n\nSELECTION\n       a      Lift the BSD-style restriction.\n\n       o format\n              Fields.\n\n       A sentence of prose.\n";
        assert_eq!(flags(ps, Kind::Page), ["a", "o"]);
    }
}
