//! Recognizes sentences of a task that are no orders: statements, limits and wishes. A statement that is taken for an
//! order is carried out, and a limit that is dropped lets too much be done.

use super::verbs::changes;
use regex::Regex;
use std::sync::LazyLock;

/// True if the sentence states something and asks for nothing: `some links in tools are dead`, `it's in costs.csv`,
/// `orders.csv has no names`.
pub fn is_statement(part: &str) -> bool {
    static SUBJECT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:i|we|you|he|she|it|its|it's|they|they're|there|there's|this|that|that's|everybody|everyone|everything|nobody|someone|somebody|look it up)\b",
        )
        .ok()
    });
    // a thing and a verb about it
    static THING: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:(?:the|a|an|some|all|every|each|most|many|several|my|our|your|their|his|her|these|those|one|two|three)\s|[\w./~-]*\w\.\w{1,8}\s)[^?]*?\b(?:is|isn't|are|aren't|was|were|has|have|had|can|can't|cannot|could|should|must|might|will|would|needs?|do|does|don't|doesn't|lists?|contains?|belongs?|goes?|points?|splits?|wants?)\b",
        )
        .ok()
    });
    // `I want all logs in one folder`, `everything in tmp should also be deleted`
    static WISH: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:i|we|you)(?:'d| would)?(?: (?:also|just|really|now))? (?:want|need|like|have to|should|must|can|could)\b|\b(?:should|must|shall|has to|have to|needs? to|ought to)(?: all| both| also| now)? (?:be|get) (?:\w+ed|put|made|set|sent|split|written|cut|shown|thrown|given)\b",
        )
        .ok()
    });
    let part = part.trim();
    let is = |form: &LazyLock<Option<Regex>>| form.as_ref().is_some_and(|form| form.is_match(part));
    !part.ends_with('?') && (is_limit(part) || (is(&SUBJECT) || is(&THING)) && !is(&WISH))
}

/// True if the sentence forbids something or exempts something: `Don't touch a.log`, `error.log must stay`.
fn is_limit(part: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)^(?:please )?(?:do not|don't|never|only|except|but not|nothing|no other|nobody|without)\b|\b(?:must|should|shall|may|can|has to|have to|needs? to|is to|are to)(?: all)? (?:not|stay|remain|be kept|be left)\b|\b(?:mustn't|shouldn't|cannot|can't) be\b",
        )
        .ok()
    });
    FORM.as_ref().is_some_and(|form| form.is_match(part))
}

/// True if the sentence says what is to become of the results: `They should be in a folder called old`.
fn is_wish(part: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b(?:(?:should|must|shall|has to|have to|needs? to|ought to|can)(?: all| both| also)? (?:be|go)|goes|belongs?) (?:there|(?:in|into|to) (?:a |the )?(?:new )?(?:file|folder|directory|[\w./-]+\.\w{1,8})\b)|\bshould be a (?:file|folder)\b|^i(?:'ll| will) (?:also )?need\b",
        )
        .ok()
    });
    FORM.as_ref().is_some_and(|form| form.is_match(part))
}

/// Attaches statements, in brackets, to the part that they are about. A limit belongs to the part before it; any
/// other statement to the next part, or to the last.
pub fn with_statements(parts: Vec<String>) -> Vec<String> {
    if parts.iter().all(|part| is_statement(part)) {
        return parts;
    }
    let mut orders: Vec<(String, Vec<String>)> = Vec::new();
    let mut statements: Vec<String> = Vec::new();
    for part in parts {
        let limits =
            |(before, _): &&mut (String, Vec<String>)| is_limit(&part) || spares_some(&part) && changes(before);
        if let Some((_, about)) = orders.last_mut().filter(limits) {
            about.push(part);
        } else if is_statement(&part) {
            statements.push(part);
        } else {
            orders.push((part, std::mem::take(&mut statements)));
        }
    }
    for part in statements {
        match orders.last_mut() {
            Some((_, about)) if !is_wish(&part) => about.push(part),
            _ => orders.push((part, Vec::new())),
        }
    }
    let join = |(part, about): (String, Vec<String>)| match about.as_slice() {
        [] => part,
        about => format!("{part} ({})", about.join("; ")),
    };
    orders.into_iter().map(join).collect()
}

/// True for `Keep error.log`, which limits an order before it that changes something.
fn spares_some(part: &str) -> bool {
    let mut words = part.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    matches!(first.as_str(), "keep" | "leave" | "spare")
        && words.next().is_some_and(|what| what.contains('.') || what.eq_ignore_ascii_case("the"))
}

/// Returns a part without the statements that [`with_statements`] attached to it.
pub fn order(part: &str) -> &str {
    part.split_once(" (").map_or(part, |(order, _)| order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_no_orders() {
        for said in [
            "everybody on this computer can read app/secrets.env",
            "some links in the folder tools point to files that are gone",
            "it's in timesheet.csv",
            "our dates are in trip.txt",
            "orders.csv has only the customer numbers",
            "I broke config.yml",
            "every python file in app should start with a copyright line",
            "manifest.txt lists the files that should be in the folder delivery",
            "the files in scans don't sort right",
        ] {
            assert!(is_statement(said), "{said}");
        }
        for asked in [
            "the five largest files in media",
            "all python files below src",
            "I want all logs in one folder",
            "everything in tmp should be deleted",
            "the notes need to be sorted by date",
            "how many hours did each person work in total",
            "tidy up the folder desktop",
            "notes.txt",
            "is there a file with errors?",
            "what is in notes.txt",
        ] {
            assert!(!is_statement(asked), "{asked}");
        }
        let parts = |list: &[&str]| with_statements(list.iter().map(|part| part.to_string()).collect());
        assert_eq!(parts(&["some links are dead", "delete them"]), ["delete them (some links are dead)"]);
        assert_eq!(parts(&["how many are there", "it's in a.csv"]), ["how many are there (it's in a.csv)"]);
        assert_eq!(parts(&["it is late"]), ["it is late"]);
        let limit = ["delete the logs", "error.log must stay", "list the rest"];
        assert_eq!(parts(&limit), ["delete the logs (error.log must stay)", "list the rest"]);
        assert_eq!(parts(&["Only look", "list the logs"]), ["list the logs (Only look)"]);
        assert_eq!(order("delete them (some links are dead)"), "delete them");
    }
}
