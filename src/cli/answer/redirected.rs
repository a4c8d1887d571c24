//! Tells in words where the input and output of a command are redirected.

use caro_shell::parse::Redirect;
use serde::Serialize;

/// The file that swallows everything and is empty.
const NULL: &str = "/dev/null";

/// The explanation of a redirection.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Redirection {
    /// As it is written: `2>&1`.
    pub written: String,
    /// Its effect.
    pub text: String,
}

/// Explains redirections; an operator that is not known is left out.
pub fn redirections(all: &[Redirect]) -> Vec<Redirection> {
    all.iter().filter_map(redirection).collect()
}

fn redirection(redirect: &Redirect) -> Option<Redirection> {
    let operator = redirect.operator.as_str();
    let raw = redirect.target.raw.as_str();
    let text = effect(operator, &redirect.target.text, raw)?;
    let blank = if redirect.duplicates() { "" } else { " " };
    Some(Redirection { written: format!("{operator}{blank}{raw}").trim_end().to_owned(), text })
}

fn effect(operator: &str, target: &str, raw: &str) -> Option<String> {
    let kind = operator.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &operator[..operator.len() - kind.len()];
    let (number, kind) = match kind.strip_prefix(['&', '*']).filter(|rest| rest.starts_with('>')) {
        Some(rest) => ("&", rest),
        None => (number, kind),
    };
    let is_number = !target.is_empty() && target.chars().all(|c| c.is_ascii_digit());
    let out = stream(if number.is_empty() { "1" } else { number });
    let input = stream(if number.is_empty() { "0" } else { number });
    Some(match kind {
        ">" | ">|" | ">>" | ">&" | ">>&" if target == NULL => format!("{out} is thrown away"),
        ">&" if is_number => format!("{out} goes where {} goes", stream(target)),
        "<&" if is_number => format!("{input} comes from where {} comes", stream(target)),
        ">&" | ">&-" if target == "-" || kind.ends_with('-') => format!("{out} is closed"),
        "<&" | "<&-" if target == "-" || kind.ends_with('-') => format!("{input} is closed"),
        ">&" => format!("{} goes into {raw}, in place of all it holds", stream("&")),
        ">" | ">|" => format!("{out} goes into {raw}, in place of all it holds"),
        ">>" => format!("{out} is added to the end of {raw}"),
        "<" if target == NULL => format!("{input} is empty"),
        "<" => format!("{input} comes from {raw}"),
        "<>" => format!("{raw} is opened to be read and written as {input}"),
        "<<" | "<<-" => format!("the lines before {raw} are {input}"),
        "<<<" => format!("{raw} is {input}"),
        _ => return None,
    })
}

/// The name of a descriptor.
fn stream(number: &str) -> String {
    match number {
        "0" => "standard input".into(),
        "1" => "standard output".into(),
        "2" => "standard error".into(),
        "&" => "standard output, with standard error,".into(),
        number => format!("descriptor {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caro_shell::{Dialect, parse};

    #[test]
    fn every_redirection_is_told_in_words() {
        for (command, written, text) in [
            ("ls > f", "> f", "standard output goes into f, in place of all it holds"),
            ("ls >> 'a b'", ">> 'a b'", "standard output is added to the end of 'a b'"),
            ("ls 2> f", "2> f", "standard error goes into f, in place of all it holds"),
            ("ls 2>/dev/null", "2> /dev/null", "standard error is thrown away"),
            ("ls 2>&1", "2>&1", "standard error goes where standard output goes"),
            ("ls >&2", ">&2", "standard output goes where standard error goes"),
            ("ls &> f", "&> f", "standard output, with standard error, goes into f, in place of all it holds"),
            ("wc < f", "< f", "standard input comes from f"),
            ("wc </dev/null", "< /dev/null", "standard input is empty"),
            ("wc <<< x", "<<< x", "x is standard input"),
            ("wc <<EOF\na\nEOF", "<< EOF", "the lines before EOF are standard input"),
        ] {
            let script = parse(command, Dialect::Bash);
            let redirects = script.commands.iter().flat_map(|c| &c.redirects).chain(&script.redirects);
            let told = redirections(&redirects.cloned().collect::<Vec<_>>());
            assert_eq!(told, [Redirection { written: written.into(), text: text.into() }], "{command}");
        }
        let alone = parse("2>&1", Dialect::Bash);
        assert_eq!(redirections(&alone.redirects).len(), 1);
    }
}
