//! Parses a line that names options: `-n, --lines=[-]NUM  print the first NUM lines`.

/// One spelling of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelling {
    /// The name with its dashes: `-n`, `--lines`, `-name`, `+n`.
    pub(super) name: String,
    /// Its argument; in brackets if it is optional.
    pub(super) argument: Option<String>,
}

/// A line that names options.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// The spellings, in order.
    pub(super) spellings: Vec<Spelling>,
    /// The text after them on the same line.
    pub(super) text: String,
    /// True if they are different options, not spellings of one.
    pub(super) siblings: bool,
}

/// The column, counted from the tag, where man pages begin the text of a short tag. A tag that is one column shorter
/// is separated from it by a single space. Source: the default indentation of man(7) `.TP`.
const TEXT_COLUMN: usize = 7;
/// Most words of an argument (`-fprintf file format`); more of them are prose.
const MAX_ARGUMENT_WORDS: usize = 3;

/// Parses a line without its indentation; `None` if it does not begin with an option, or is prose.
pub(super) fn tag(line: &str) -> Option<Tag> {
    // `[-]echo` of stty: a setting, which a dash negates
    let switch = line.strip_prefix("[-]").filter(|s| s.starts_with(|c: char| c.is_ascii_lowercase()));
    if let Some(setting) = switch {
        return tag(&format!("-{setting}"));
    }
    let mut rest = line.trim_end();
    let mut spellings: Vec<Spelling> = Vec::new();
    let mut siblings = false;
    loop {
        let (name, after) = option_name(rest)?;
        let (argument, after) = argument(after, line.len() - after.len());
        for name in expand(&name) {
            spellings.push(Spelling { name, argument: argument.clone() });
        }
        rest = after;
        match separator(rest) {
            Some(next) if option_name(next).is_some() => {
                // `-depth -maxdepth LEVELS -mount`: only a space between two of the same kind
                let bare = rest.len() - next.len() == 1 && rest.starts_with(' ');
                let last = spellings.last().is_some_and(|s| s.name.starts_with("--") == next.starts_with("--"));
                siblings |= bare && last && last_name(&spellings).len() > 2;
                rest = next;
            }
            _ => break,
        }
        if spellings.len() > 32 {
            return None;
        }
    }
    let text = text_after(rest, line.len() - rest.len())?;
    // `-d --decompress --uncompress` is one option after all
    siblings &= !(is_letter(&spellings[0].name) && spellings[1..].iter().all(|s| s.name.starts_with("--")));
    if !siblings {
        share_arguments(&mut spellings);
    }
    Some(Tag { spellings, text, siblings })
}

/// True for `-n`.
fn is_letter(name: &str) -> bool {
    name.len() == 2 && name.starts_with('-')
}

/// Returns the name that was read last.
fn last_name(spellings: &[Spelling]) -> &str {
    spellings.last().map_or("", |s| s.name.as_str())
}

/// True for a character of an option's name after the first.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+')
}

/// Splits `s` after the option's name at its beginning. `[no-]` in the name is left to [`expand`].
fn option_name(s: &str) -> Option<(String, &str)> {
    let dashes = if s.starts_with("--") {
        2
    } else if s.starts_with(['-', '+']) {
        1
    } else {
        return None;
    };
    let body = &s[dashes..];
    let negation = ["[no-]", "[no]", "(no-)", "[no_]"].into_iter().find(|n| body.starts_with(n));
    let start = negation.map_or(0, str::len);
    let mut end = start + body[start..].find(|c| !is_name_char(c)).unwrap_or(body.len() - start);
    // a full stop or plus sign ends a sentence or means repetition: `--verbose...`, `-v.`
    end = start + body[start..end].trim_end_matches(['.', '-', '+']).len();
    if end == start && dashes == 1 && negation.is_none() {
        // a single character as a name: `-?`, `-@`, `-0`; or a placeholder: `-<number>`, `-[NUM]`
        let first = body.chars().next()?;
        let bytes = body.as_bytes();
        if first == '<' {
            end = body.find('>')? + 1;
        } else if first == '[' && bytes.get(3) == Some(&b']') && bytes[1..3].iter().all(u8::is_ascii_alphabetic) {
            // `-[mM]module`: either letter
            end = 4;
        } else if matches!(first, '?' | '@' | '#' | '%' | '!' | '$' | '~' | '*' | '^' | '.' | ',' | ':' | '=') {
            end = first.len_utf8();
        }
    }
    let starts_well = body[start..].starts_with(|c: char| c.is_ascii_alphanumeric()) || dashes == 1;
    if end == start || !starts_well || s.starts_with('+') && !body.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    Some((s[..dashes + end].to_string(), &body[end..]))
}

/// Expands `--[no-]color` to `--color` and `--no-color`, `-[mM]` to `-m` and `-M`.
fn expand(name: &str) -> Vec<String> {
    for (mark, negation) in [("[no-]", "no-"), ("[no]", "no"), ("(no-)", "no-"), ("[no_]", "no_")] {
        if let Some((dashes, body)) = name.split_once(mark) {
            return vec![format!("{dashes}{body}"), format!("{dashes}{negation}{body}")];
        }
    }
    if let Some(letters) = name.strip_prefix("-[").and_then(|rest| rest.strip_suffix(']')) {
        return letters.chars().map(|letter| format!("-{letter}")).collect();
    }
    vec![name.to_string()]
}

/// Returns the end of the bracketed text at the beginning of `s`; `None` if it is not closed.
fn bracket_end(s: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in s.char_indices() {
        match c {
            '[' | '<' | '{' | '(' => depth += 1,
            ']' | '>' | '}' | ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + c.len_utf8());
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns the end of an argument word: a space or a comma outside of brackets.
fn word_end(s: &str) -> usize {
    let mut at = 0;
    while let Some(c) = s[at..].chars().next() {
        if matches!(c, '[' | '<' | '{' | '(')
            && let Some(end) = bracket_end(&s[at..])
        {
            at += end;
            continue;
        }
        if c.is_whitespace() || c == ',' && s[at + 1..].starts_with(' ') || s[at..].starts_with(",-") {
            break;
        }
        at += c.len_utf8();
    }
    at
}

/// Parses the argument after a name that ends at column `column`; also returns the rest.
fn argument(s: &str, column: usize) -> (Option<String>, &str) {
    // attached: `=NUM`, `[=WHEN]`, `<n>`, `[n]`, `:spec`, `...`
    if let Some(value) = s.strip_prefix('=') {
        let end = word_end(value);
        return (
            Some(without_brackets(value[..end].trim_end_matches(':')))
                .filter(|v| !v.is_empty())
                .or(Some("VALUE".into())),
            &value[end..],
        );
    }
    if s.starts_with('[') || s.starts_with('<') || s.starts_with('{') || s.starts_with('(') && !s.contains(' ') {
        let end = word_end(s);
        let value = s[..end].trim_matches(['<', '>']).replacen("[=", "[", 1).replace(['<', '>'], "");
        return (Some(value), &s[end..]);
    }
    if let Some(rest) = s.strip_prefix("...") {
        return (None, rest);
    }
    // separate: one space, then up to three words that are not the text
    let Some(value) = s.strip_prefix(' ').filter(|v| !v.starts_with([' ', '-', '|', '\t', ':', '/', '+'])) else {
        return (None, s);
    };
    if value.starts_with("or ") && option_name(&value[3..]).is_some() {
        return (None, s);
    }
    let line = &value[..value.find("  ").or_else(|| value.find('\t')).unwrap_or(value.len())];
    let line =
        &line[..line.find(", -").or_else(|| line.find(" | -")).or_else(|| line.find(" or -")).unwrap_or(line.len())];
    let words = line.split(' ').count();
    let first = &line[..word_end(line)];
    let gap = line.len() < value.len();
    if is_placeholder(first) {
        // all words that look like placeholders; after a single space, anything else is text
        let mut end = first.len();
        while let Some(next) = line[end..].strip_prefix(' ') {
            let word = &next[..word_end(next)];
            if !is_placeholder(word) {
                break;
            }
            end += 1 + word.len();
        }
        let text_begins =
            column + 1 == TEXT_COLUMN && !gap && words > MAX_ARGUMENT_WORDS && !first.starts_with(['<', '[', '{']);
        if text_begins {
            return (None, s);
        }
        return (Some(without_brackets(&line[..end])), &value[end..]);
    }
    let plain = words <= MAX_ARGUMENT_WORDS
        && !line.ends_with('.')
        && !first.ends_with([':', '.'])
        && first.chars().next().is_some_and(|c| c.is_lowercase() || !c.is_alphabetic());
    if plain && (words == 1 || gap || !first.starts_with(char::is_uppercase)) {
        return (Some(line.to_string()), &value[line.len()..]);
    }
    (None, s)
}

/// Strips the brackets of `<file>`, unless there are several.
fn without_brackets(argument: &str) -> String {
    let inner = argument.strip_prefix('<').and_then(|a| a.strip_suffix('>')).filter(|a| !a.contains(['<', '>']));
    inner.unwrap_or(argument).to_string()
}

/// True for a placeholder: `NUM`, `<file>`, `[=WHEN]`, `{a,b}`, `FILE...`, `key=value`.
fn is_placeholder(word: &str) -> bool {
    let bare = word.trim_end_matches(['.', ',', ']', '[', '…']);
    !bare.is_empty()
        && (word.starts_with(['<', '[', '{'])
            || bare.chars().all(|c| {
                c.is_ascii_uppercase()
                    || c.is_ascii_digit()
                    || matches!(c, '_' | '-' | '=' | '|' | '[' | ']' | ',' | '.' | ':' | '/')
            }) && bare.starts_with(|c: char| c.is_ascii_uppercase())
                && bare != "A"
                && bare != "I")
}

/// Returns the text after a separator of two spellings, if `s` begins with one.
fn separator(s: &str) -> Option<&str> {
    for sign in [", ", ",", " | ", "|", " or ", " / ", "/", "; ", ", or ", " and "] {
        if let Some(next) = s.strip_prefix(sign)
            && next.starts_with(['-', '+'])
        {
            return Some(next);
        }
    }
    // `-b  or  --backup`
    let spelled = s.trim_start().strip_prefix("or ").map(str::trim_start);
    if let Some(next) = spelled.filter(|next| next.starts_with('-')) {
        return Some(next);
    }
    // `-c  --format=FORMAT`: two blanks, but the long name is no text
    let long = s.strip_prefix("  ").filter(|next| next.starts_with("--"));
    if let Some((_, after)) = long.and_then(option_name)
        && (after.is_empty() || after.starts_with(['=', '[']) || after.starts_with("  "))
    {
        return long;
    }
    // `-h --help`, and the aligned `-h,   --help`
    let trimmed = s.trim_start_matches([',', ' ']);
    (s.starts_with(' ') && s.starts_with(" -") || s.starts_with(','))
        .then_some(trimmed)
        .filter(|next| next.starts_with('-'))
}

/// Returns the text of the tag, given the rest of the line at `column`; `None` if the line is prose.
fn text_after(rest: &str, column: usize) -> Option<String> {
    let text = rest.trim_start_matches([' ', '\t']);
    let gap = rest.len() - text.len();
    let tab = rest.starts_with('\t');
    if text.is_empty() {
        return Some(String::new());
    }
    if gap >= 2 || tab || column + gap == TEXT_COLUMN {
        return Some(text.trim_start_matches([':', '-', '–', ' ']).to_string());
    }
    // `-a: do this`, `-a : do this`, `-a - do this`, `-a (this)`, `-h Show this help.`
    for sign in [":", " :", " - ", " – ", " ("] {
        if let Some(text) = rest.strip_prefix(sign) {
            return Some(text.trim().to_string());
        }
    }
    let sentence = gap == 1 && text.starts_with(char::is_uppercase);
    sentence.then(|| text.to_string())
}

/// Completes the arguments of the spellings of one option: in `-n, --lines=NUM` both take NUM; `-bn or --buffers=n`
/// is `-b` with its argument attached; in `-u, -U NUM, --unified[=NUM]` the first letter takes none.
fn share_arguments(spellings: &mut [Spelling]) {
    let letter_has_argument = spellings.iter().any(|s| is_letter(&s.name) && s.argument.is_some());
    let shared = spellings.iter().find_map(|s| s.argument.clone());
    let names: Vec<String> = spellings.iter().map(|s| s.name.clone()).collect();
    for spelling in spellings {
        let is_long = spelling.name.starts_with("--");
        let attached = if is_long { None } else { spelling.name.get(2..).map(str::to_string) };
        if let (Some(tail), None) = (attached.filter(|tail| !tail.is_empty()), &spelling.argument) {
            let letter = &spelling.name[..2];
            let word = letter[1..].starts_with(|c: char| c.is_ascii_uppercase())
                && tail.len() > 2
                && tail.chars().all(|c| c.is_ascii_lowercase())
                && !names.iter().any(|name| name == letter);
            if Some(&tail) == shared.as_ref() || word {
                spelling.name.truncate(2);
                spelling.argument = Some(tail);
                continue;
            }
        }
        if spelling.argument.is_none() && !(letter_has_argument && is_letter(&spelling.name)) {
            spelling.argument.clone_from(&shared);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name=argument` of each spelling, then the text
    fn show(line: &str) -> String {
        tag(line).map_or("-".into(), |tag| {
            let names: Vec<String> = tag
                .spellings
                .iter()
                .map(|s| s.argument.as_ref().map_or(s.name.clone(), |a| format!("{} {a}", s.name)))
                .collect();
            format!("{} => {}", names.join("; "), tag.text)
        })
    }

    #[test]
    fn every_style_of_option_line_is_parsed() {
        for (line, expected) in [
            ("-a, --all", "-a; --all => "),
            ("-a, --all              show all", "-a; --all => show all"),
            ("-n, --lines=[-]NUM", "-n [-]NUM; --lines [-]NUM => "),
            ("--color[=WHEN]  colour it", "--color [WHEN] => colour it"),
            ("-i[SUFFIX], --in-place[=SUFFIX]", "-i [SUFFIX]; --in-place [SUFFIX] => "),
            ("-I replace-str", "-I replace-str => "),
            ("-a file, --arg-file=file", "-a file; --arg-file file => "),
            ("--delimiter=delim, -d delim", "--delimiter delim; -d delim => "),
            ("-mtime n", "-mtime n => "),
            ("-depth Process each directory's contents first.", "-depth => Process each directory's contents first."),
            ("-force Don't terminate on errors in batch mode.", "-force => Don't terminate on errors in batch mode."),
            ("--help display this help and exit", "--help => display this help and exit"),
            ("-fprintf file format", "-fprintf file format => "),
            ("-Olevel", "-O level => "),
            ("-bn or --buffers=n", "-b n; --buffers n => "),
            ("-? or --help", "-?; --help => "),
            ("-B pref  or  --prefix=pref", "-B pref; --prefix pref => "),
            ("--slurp/-s:", "--slurp; -s => "),
            ("-V, -Version", "-V; -Version => "),
            ("-<number>, -n <number>, --max-count=<number>", "-<number> number; -n number; --max-count number => "),
            ("--[no-]mailmap, --[no-]use-mailmap", "--mailmap; --no-mailmap; --use-mailmap; --no-use-mailmap => "),
            ("--color <WHEN>", "--color WHEN => "),
            ("-o FILE, --output FILE  where to", "-o FILE; --output FILE => where to"),
            ("-v, --verbose...  more", "-v; --verbose => more"),
            ("-f, --format string   Format it", "-f string; --format string => Format it"),
            ("-l\tLong format", "-l => Long format"),
            ("-name string", "-name string => "),
            ("-h --help            help", "-h; --help => help"),
            ("-b  :Batch mode", "-b => Batch mode"),
            ("-s, --signal <signal>  which", "-s signal; --signal signal => which"),
            ("+n    start there", "+n => start there"),
            ("-e[eof-str], --eof[=eof-str]", "-e [eof-str]; --eof [eof-str] => "),
            ("-h: show help", "-h => show help"),
            ("-t, --type=", "-t VALUE; --type VALUE => "),
            ("-c  --format=FORMAT", "-c FORMAT; --format FORMAT => "),
            ("-u, -U NUM, --unified[=NUM]", "-u; -U NUM; --unified [NUM] => "),
            ("-[mM][-]module    use it", "-m [-]module; -M [-]module => use it"),
            ("-d --decompress --uncompress", "-d; --decompress; --uncompress => "),
            ("[-]echo", "-echo => "),
        ] {
            assert_eq!(show(line), expected, "{line}");
        }
    }

    #[test]
    fn several_options_in_one_line_are_siblings() {
        let tag = tag("-depth -maxdepth LEVELS -mount -noleaf").unwrap();
        assert!(tag.siblings);
        assert_eq!(tag.spellings[0], Spelling { name: "-depth".into(), argument: None });
        assert_eq!(tag.spellings[1], Spelling { name: "-maxdepth".into(), argument: Some("LEVELS".into()) });
        assert!(!super::tag("-h --help   help").unwrap().siblings);
    }

    #[test]
    fn prose_and_data_are_no_options() {
        for line in [
            "-a and -b are mutually exclusive, so give only one of them.",
            "- an item of a list",
            "-- a dash",
            "",
            "ls -l",
            "-",
            "+ plus",
        ] {
            assert_eq!(tag(line), None, "{line}");
        }
    }
}
