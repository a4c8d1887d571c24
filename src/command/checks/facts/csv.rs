//! Files of separated values: which column is which, and that the first line may be no value but the columns' names.

use super::edit::{Edits, warning};
use super::input::files;
use super::separator::{self, names, separated_by};
use super::words::Words;
use super::{CheckContext, column_name, only};
use caro_shell::{Finding, Invocation, Word};
use std::path::Path;

/// Bytes of a file that are looked at.
const LOOK: u64 = 4096;

pub(super) fn check(it: &CheckContext) -> Vec<Finding> {
    let commands = &it.script.commands;
    let mut found = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        let own = || command.operands().find(|w| is_csv(w));
        // what is handed on line by line still has its separators
        let whole = |c: &Invocation| c.name().is_some_and(|n| WHOLE.contains(&n)) || only_chooses(c);
        let source = commands.iter().find(|c| c.feeds.contains(&at) && whole(c));
        let handed = || {
            // `grep -o` and `grep -c` hand on something else
            let source = source.filter(|c| {
                !c.has_option(Some('o'), "only-matching") && !c.has_option(Some('c'), "count")
                    || c.name() == Some("head")
            })?;
            files(source)?.into_iter().chain(source.redirects.iter().map(|r| &r.target)).find(|w| is_csv(w))
        };
        let Some(file) = own().or_else(handed) else { continue };
        let lines = it.cwd.map(|cwd| begin(&cwd.join(&file.text))).unwrap_or_default();
        found.extend(separator::check(it, command, &lines));
        found.extend(column(it, command, &lines));
        found.extend(column_name::check(it, command, file, &lines));
        // behind a filter the first line is not the file's, and who counts lines has thought of it
        let first = source.is_none_or(|c| matches!(c.name(), Some("cat" | "head")));
        // here or further on
        const COUNTS: [&str; 6] = ["NR>", "NR >", "NR!=", "NR !=", "NR==", "1d"];
        let counts = commands.iter().flat_map(|c| c.args()).any(|w| COUNTS.iter().any(|n| w.text.contains(n)));
        if first && !counts && commands.iter().all(|c| c.name() != Some("tail")) {
            found.extend(header(it, command, file, &lines));
        }
    }
    found
}

/// Programs that hand lines on as they are.
const WHOLE: [&str; 6] = ["cat", "egrep", "fgrep", "grep", "head", "tail"];

/// True for an awk that only says which lines: `awk -F, '$3 > 5'`.
fn only_chooses(command: &Invocation) -> bool {
    let mut programs = command.args().iter().filter(|w| w.raw.starts_with('\''));
    command.name() == Some("awk") && programs.next().is_some_and(|w| !w.text.contains('{')) && programs.next().is_none()
}

pub(in crate::checks) fn is_csv(word: &Word) -> bool {
    word.text.to_lowercase().ends_with(".csv")
}

/// The first lines of a file; none if it cannot be read.
pub(crate) fn begin(file: &Path) -> Vec<String> {
    let bytes = super::beginning(file, LOOK).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
}

/// `$3` for the ages, where the file's first line has them second.
fn column(it: &CheckContext, command: &Invocation, lines: &[String]) -> Option<Finding> {
    let by = separated_by(lines).filter(|_| lines.len() > 1)?;
    let words = Words::of(it.request);
    // who counts columns means their places: `the third column`, and not `the amount column`
    let is_column = |w: &String| matches!(w.as_str(), "column" | "columns" | "field" | "fields");
    let named = |w: &String| names(&lines[0], by).any(|name| name == *w);
    let list = words.list();
    if list.iter().enumerate().any(|(at, w)| is_column(w) && !at.checked_sub(1).is_some_and(|at| named(&list[at]))) {
        return None;
    }
    let said = names(&lines[0], by).enumerate().filter(|(_, name)| says(&words, name)).map(|(at, _)| at + 1);
    let asked = only(said)?;
    if names(&lines[0], by).nth(asked - 1).is_some_and(|name| is_left_out(list, &name)) {
        return None;
    }
    // `unit price` and `email_address` are never one word of a request, and their parts are
    let in_part = |name: String| name.split(|c: char| !c.is_alphanumeric()).any(|part| says(&words, part));
    // one column in all of the script: of two, one may be what is shown and the other what it is chosen by
    let mut all = it.script.commands.iter().map(taken).collect::<Option<Vec<_>>>()?.into_iter().flatten();
    let (_, have) = all.next()?;
    if all.any(|(_, other)| other != have) || have == asked {
        return None;
    }
    if have.checked_sub(1).and_then(|at| names(&lines[0], by).nth(at)).is_some_and(in_part) {
        return None;
    }
    let (word, _) = taken(command)?.into_iter().next()?;
    // `$2 == "Rome"` chooses lines, and shows them whole
    if is_compared(&word.text, have) {
        return None;
    }
    // "the most expensive item" is found by its price
    let counts = |at: usize| lines[1..].iter().filter_map(|row| row.split(by).nth(at - 1)).any(is_number);
    if wants_numbers(command) && counts(have) && !counts(asked) {
        return None;
    }
    let mark = match command.name()? {
        "cut" if word.text.starts_with("-f") => "-f",
        "sort" if word.text.starts_with("-k") => "-k",
        "cut" | "sort" => "",
        _ => "$",
    };
    let (old, new) = (format!("{mark}{have}"), format!("{mark}{asked}"));
    let mended = match mark {
        "$" => word.raw.replace(&old, &new),
        _ => word.raw.replacen(&old, &new, 1).replace(&format!(",{have}"), &format!(",{asked}")),
    };
    let fix = Edits::new(it.script).replace(word, &mended).done();
    let why = format!("by the first line of the file that is column {asked}, and this takes column {have}");
    Some(warning("which-column", word, why, fix))
}

/// The columns that a command takes, each with the word that says so; `None` if they are several in one, or not to be
/// told.
fn taken(command: &Invocation) -> Option<Vec<(&Word, usize)>> {
    let option = match command.name() {
        Some("awk" | "gawk" | "mawk") => {
            let all = command.args().iter().flat_map(|w| places(&w.text, "$").into_iter().map(move |place| (w, place)));
            return Some(all.collect());
        }
        Some("cut") => "-f",
        Some("sort") => "-k",
        _ => return Some(Vec::new()),
    };
    let mut all = Vec::new();
    let mut args = command.args().iter();
    while let Some(word) = args.next() {
        let Some(value) = word.text.strip_prefix(option) else { continue };
        let (word, value) = if value.is_empty() { args.next().map(|w| (w, w.text.as_str()))? } else { (word, value) };
        all.push((word, column_of(value, option == "-k")?));
    }
    Some(all)
}

/// True where a column of an awk program is held against something.
fn is_compared(program: &str, column: usize) -> bool {
    let column = format!("${column}");
    program.match_indices(&column).any(|(at, _)| {
        let behind = program[at + column.len()..].trim_start();
        ["==", "!=", "~", "!~", "<", ">"].iter().any(|sign| behind.starts_with(sign))
    })
}

/// The one column of `2`, or as a key for sorting of `2nr` and `2,2nr`.
fn column_of(value: &str, key: bool) -> Option<usize> {
    let number = |text: &str| -> Option<usize> {
        let letters = |c: char| key && c.is_ascii_alphabetic();
        text.trim_end_matches(letters).parse().ok()
    };
    let (first, last) = value.split_once(',').filter(|_| key).unwrap_or((value, value));
    number(first).filter(|at| number(last) == Some(*at))
}

/// True for what adds up, or puts in the order of numbers.
fn wants_numbers(command: &Invocation) -> bool {
    match command.name() {
        Some("sort") => {
            ['n', 'g', 'h']
                .iter()
                .any(|letter| command.args().iter().any(|w| w.text.starts_with('-') && w.text.contains(*letter)))
                || command
                    .args()
                    .iter()
                    .any(|w| w.text.starts_with(|c: char| c.is_ascii_digit()) && w.text.contains('n'))
        }
        Some("awk" | "gawk" | "mawk") => {
            command.args().iter().any(|w| w.text.contains(['<', '>']) || w.text.contains("+="))
        }
        _ => false,
    }
}

fn is_number(cell: &str) -> bool {
    cell.trim().trim_matches('"').parse::<f64>().is_ok()
}

/// The numbers behind a mark, each once, 0 left out: 1 and 3 of `$1 + $3 - $1`; none where anything else stands there.
fn places(text: &str, mark: &str) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for (at, _) in text.match_indices(mark) {
        let digits: String = text[at + mark.len()..].chars().take_while(char::is_ascii_digit).collect();
        match digits.parse() {
            Ok(0) => {}
            Ok(place) if !all.contains(&place) => all.push(place),
            Ok(_) => {}
            Err(_) => return Vec::new(),
        }
    }
    all
}

/// True if the request says the name of a column, or more of them.
fn says(words: &Words, name: &str) -> bool {
    words.list().iter().any(|word| is_name(word, name))
}

/// True for the name of a column, or for several of what it names.
fn is_name(word: &str, name: &str) -> bool {
    let many = name.strip_suffix('y').map(|stem| format!("{stem}ies"));
    word == name || !name.is_empty() && word.strip_suffix('s') == Some(name) || many.as_deref() == Some(word)
}

/// True where the column is said to be left out: `without the id`, `remove the age column`; that is not what is taken then.
fn is_left_out(list: &[String], name: &str) -> bool {
    const OUT: [&str; 14] = [
        "but",
        "delete",
        "drop",
        "except",
        "exclude",
        "excluding",
        "hide",
        "not",
        "omit",
        "remove",
        "skip",
        "strip",
        "without",
        "no",
    ];
    let said = list.iter().enumerate().filter(|(_, word)| is_name(word, name));
    said.into_iter().any(|(at, _)| list[at.saturating_sub(3)..at].iter().any(|word| OUT.contains(&word.as_str())))
}

/// True for an awk program in which the line of names counts as a value: it divides by a number of lines, holds a column
/// against the largest so far, as a text where one is a word, or tells at the end of each value what there was of it.
fn takes_names(program: &str) -> bool {
    let plain: String = program.chars().filter(|c| !c.is_whitespace()).collect();
    let (lines, end) = plain.split_once("END").unwrap_or((&plain, ""));
    let divides = plain.contains("/NR") || end.contains('/') && lines.contains("++");
    let extreme = ["max", "min", "highest", "lowest", "largest", "smallest"]
        .iter()
        .any(|name| lines.contains(&format!(">{name}")) || lines.contains(&format!("<{name}")));
    let grouped = lines.contains("[$") && (lines.contains("+=") || lines.contains("++")) && end.contains("for(");
    divides || extreme || grouped
}

/// Values are counted, and the name of their column, which the request says, with them.
fn header(it: &CheckContext, command: &Invocation, file: &Word, lines: &[String]) -> Option<Finding> {
    let distinct =
        |c: &Invocation| c.name() == Some("uniq") || c.name() == Some("sort") && c.has_option(Some('u'), "unique");
    let program = command.args().iter().find(|w| w.text.starts_with('{') && w.raw.starts_with('\''));
    let counts = program.is_some_and(|p| takes_names(&p.text));
    let by = separated_by(lines).filter(|_| (counts || it.script.commands.iter().any(distinct)) && lines.len() > 1)?;
    let words = Words::of(it.request);
    let named = names(&lines[0], by).any(|name| says(&words, &name));
    // "the third column" is numbers, but for its name
    let below = |at: usize| lines[1..].iter().filter_map(|row| row.split(by).nth(at - 1)).all(is_number);
    let counted = program.filter(|_| counts).map(|p| places(&p.text, "$")).unwrap_or_default();
    let named = named || !counted.is_empty() && counted.into_iter().all(below);
    // names are words, each another
    let are_names = names(&lines[0], by)
        .all(|name| !name.is_empty() && name.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '-' | ' ')));
    // a name that comes back below is a value
    let cell = |row: &String, at| names(row, by).nth(at);
    let mut first = names(&lines[0], by).enumerate();
    let is_row = first.any(|(at, name)| lines[1..].iter().any(|row| cell(row, at).as_ref() == Some(&name)));
    if !named || !are_names || is_row {
        return None;
    }
    let skipped = match command.name()? {
        "awk" | "gawk" | "mawk" => {
            let program = program?;
            // lines of several files are counted through, and their first ones with them
            let several = command.operands().filter(|w| is_csv(w) || w.glob).count() > 1;
            if several && program.text.contains("NR") {
                return None;
            }
            // a pattern would only guard the first of several rules
            let one_rule = program.text.split("END").next().is_some_and(|rules| rules.matches('{').count() == 1);
            let guard = if one_rule && !several { "NR>1 " } else { "FNR==1 {next} " };
            let raw = program.raw.replace("/NR", "/(NR-1)").replace("/ NR", "/ (NR-1)");
            Edits::new(it.script).replace(program, &raw.replacen('\'', &format!("'{guard}"), 1)).done()
        }
        "cut" => {
            let [alone] = command.operands().filter(|w| is_csv(w)).collect::<Vec<_>>()[..] else { return None };
            let before = command.words.first()?;
            Edits::new(it.script).before(before, &format!("tail -n +2 {} | ", alone.raw)).replace(alone, "").done()
        }
        _ => return None,
    };
    let why = format!("the first line of {} has the columns' names, which are no values", file.text);
    skipped.map(|fix| warning("csv-header", file, why, Some(fix)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings_in;
    use super::*;

    fn here(request: &str, command: &str, file: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.csv"), file).unwrap();
        findings_in(Some(dir.path()), check, request, command).into_iter().next().and_then(|f| f.fix)
    }

    #[test]
    fn a_column_is_found_by_its_name() {
        const FILE: &str = "name,age,city\nada,36,Rome\nbob,41,Oslo\n";
        for (request, wrong, right) in [
            (
                "average age in a.csv",
                "awk -F, 'NR>1 {s += $3; n++} END {print s/n}' a.csv",
                "awk -F, 'NR>1 {s += $2; n++} END {print s/n}' a.csv",
            ),
            ("the cities in a.csv", "cut -d, -f2 a.csv", "cut -d, -f3 a.csv"),
            ("sort a.csv by age", "sort -t, -k3,3n a.csv", "sort -t, -k2,2n a.csv"),
            ("sort a.csv by age", "sort -t , -k 3,3n a.csv", "sort -t , -k 2,2n a.csv"),
            ("the cities in a.csv", "cut -d , -f 2 a.csv", "cut -d , -f 3 a.csv"),
            (
                "each city of a.csv once, leave out the heading",
                "tail -n +2 a.csv | cut -d, -f2",
                "tail -n +2 a.csv | cut -d, -f3",
            ),
            (
                "add up the age column of a.csv",
                "awk -F, '{s += $4} END {print s}' a.csv",
                "awk -F, '{s += $2} END {print s}' a.csv",
            ),
        ] {
            assert_eq!(here(request, wrong, FILE).as_deref(), Some(right));
        }
        for (request, right) in [
            ("the third column of a.csv", "cut -d, -f3 a.csv"),
            ("names and ages in a.csv", "cut -d, -f3 a.csv"),
            ("ages above 40 with their names in a.csv", "awk -F, '$2 > 40 {print $1, $2}' a.csv"),
            ("whole lines by age in a.csv", "awk -F, '{print $0}' a.csv"),
            ("remove the age column from a.csv", "cut -d, -f1,3 a.csv"),
            ("remove the name column from a.csv", "cut -d, -f2- a.csv"),
            ("drop the age column of a.csv", "cut -d, -f1,3 a.csv"),
            ("print a.csv without the name", "cut -d, -f2- a.csv"),
            ("the name of the oldest in a.csv", "sort -t, -k2,2nr a.csv | head -n 1 | cut -d, -f1"),
            ("the name of the oldest in a.csv", "sort -t, -k2,2nr a.csv | head -n 1"),
            ("cities of those older than 40 in a.csv", "awk -F, '$2 > 40' a.csv | cut -d, -f3"),
            ("cities of those older than 40 in a.csv", "awk -F, '$2 > 40' a.csv | cut -d , -f 3"),
            ("the names from Oslo in a.csv", "awk -F, '$3==\"Oslo\"' a.csv"),
            ("the names that are not from Oslo in a.csv", "awk -F, '$3 !~ /Oslo/' a.csv"),
            ("the names above forty in a.csv", "awk -F, '$2 > 40' a.csv"),
            ("how old are all names together in a.csv", "awk -F, 'NR>1 {s += $2} END {print s}' a.csv"),
        ] {
            assert_eq!(here(request, right, FILE), None, "{right}");
        }
    }

    #[test]
    fn the_name_of_a_column_is_not_averaged() {
        const FILE: &str = "item,price\nnail,2\nsaw,30\n";
        let skip = |program: &str| here("average price in a.csv", &format!("awk -F, '{program}' a.csv"), FILE);
        for wrong in ["{s += $2; n++} END {print s / n}", "{if ($2 > max) max = $2} END {print max}"] {
            assert_eq!(skip(wrong).as_deref(), Some(format!("awk -F, 'NR>1 {wrong}' a.csv").as_str()));
            assert_eq!(skip(&format!("NR>1 {wrong}")), None);
        }
        assert_eq!(skip("{s += $2} END {print s}"), None, "a word adds nothing");
        let share = "{n++} $2>10 {f++} END {print f/n}";
        assert_eq!(skip(share).as_deref(), Some(format!("awk -F, 'FNR==1 {{next}} {share}' a.csv").as_str()));
    }

    #[test]
    fn the_names_of_columns_are_no_values() {
        const FILE: &str = "time,user\n10:01,ada\n10:02,bob\n";
        let users = "how many different users are in a.csv";
        let count = "awk -F, '{print $2}' a.csv | sort | uniq | wc -l";
        let mended = "awk -F, 'NR>1 {print $2}' a.csv | sort | uniq | wc -l";
        assert_eq!(here(users, count, FILE).as_deref(), Some(mended));
        assert_eq!(here(users, mended, FILE), None);
        for right in ["grep a a.csv | awk -F, '{print $2}' | sort -u", "awk -F, 'NR > 1 {print $2}' a.csv | sort -u"] {
            assert_eq!(here(users, right, FILE), None, "{right}");
        }
        let average = "average of the temperature column in a.csv";
        assert_eq!(
            here(average, "awk -F, '{s += $2} END {print s/NR}' a.csv", "day,temperature\nmon,3\n").as_deref(),
            Some("awk -F, 'NR>1 {s += $2} END {print s/(NR-1)}' a.csv")
        );
        let cut = "tail -n +2 a.csv | cut -d, -f2 | sort -u | wc -l";
        assert_eq!(here(users, "cut -d, -f2 a.csv | sort -u | wc -l", FILE).as_deref(), Some(cut));
        assert_eq!(here(users, cut, FILE), None);
        let again = "ada,rome\nbob,oslo\nada,bari\n";
        assert_eq!(here("how often is ada in a.csv", "cut -d, -f1 a.csv | sort | uniq -c", again), None);
        assert_eq!(here("how many different words", count, FILE), None, "nothing says that these are names");
        assert_eq!(here(users, count, "10:01,ada\n10:02,user\n"), None);
    }
}
