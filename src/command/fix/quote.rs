//! Quotes words that need it: names with blanks, characters with a meaning to the shell, patterns that are meant for
//! the program.

use super::complaint::Kind;
use super::{Case, Class, Repair, repair};
use crate::checks::torn::existing_name;
use caro_shell::find::PATTERNS;

/// `cat my report.txt`, if the file `my report.txt` exists.
pub(super) fn names_with_blanks(case: &Case) -> Option<Repair> {
    if !case.is_silent && case.first(Kind::NoFile).is_none() && case.first(Kind::ManyWords).is_none() {
        return None;
    }
    case.commands().find_map(|command| {
        let (words, name) = existing_name(&case.script, command, |name| case.facts.exists(name))?;
        let why = format!("`{name}` is one name with blanks");
        repair(Class::Quoting, case.edits().replace_span(words, &case.quoted(&name)), why)
    })
}

/// `grep (x) f`: quotes words with brackets.
pub(super) fn special_letters(case: &Case) -> Option<Repair> {
    case.first(Kind::SpecialLetter)?;
    let text = case.text();
    let special = |word: &str| word.contains(['(', ')']) && !word.contains(['\'', '"', '\\', '$', '`', '|', ';']);
    let mut command = String::with_capacity(text.len() + 4);
    for (at, piece) in text.split(' ').enumerate() {
        if at > 0 {
            command.push(' ');
        }
        match at > 0 && special(piece) {
            true => command.push_str(&case.quoted(piece)),
            false => command.push_str(piece),
        }
    }
    let why = "a bracket means something to the shell unless it is quoted".to_owned();
    (command != text).then_some(Repair { command, why, class: Class::Quoting })
}

/// `find . -name *.txt`: quotes a pattern that the shell would expand, or, in some shells, reject because it matches
/// nothing.
pub(super) fn patterns(case: &Case) -> Option<Repair> {
    if case.first(Kind::OpenGlob).is_some() {
        let finds = case.commands().filter(|command| command.name() == Some("find"));
        let open = finds.flat_map(|command| command.args().windows(2));
        let open = open.filter(|pair| PATTERNS.contains(&pair[0].text.as_str()) && pair[1].glob && !pair[1].quoted);
        let edits = open.fold(case.edits(), |edits, pair| edits.replace(&pair[1], &case.quoted(&pair[1].raw)));
        return repair(Class::Quoting, edits, "the shell expands a pattern that is not quoted");
    }
    let complaint = case.first(Kind::NoMatch)?;
    let word = case.word(&complaint.name)?;
    let edits = case.edits().replace(word, &case.quoted(&word.raw));
    repair(Class::Quoting, edits, format!("the shell takes `{}` for a pattern", word.raw))
}
