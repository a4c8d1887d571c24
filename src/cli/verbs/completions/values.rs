//! Words that are completed by what is on this machine. The generators know fixed words alone: here such an argument has a mark
//! for its only word, in whose place the script asks `caro completions --values`.

use crate::Cx;
use crate::harness::wire;
use crate::papers::topics::TOPICS;
use crate::setup::download;
use caro_model::adapter::AdapterSource;
use caro_model::fetch;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};

/// The things that a word can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Models by their ids.
    Models,
    /// Adapters by their names.
    Adapters,
    /// Sessions by their names.
    Sessions,
}

impl Kind {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Models, Self::Adapters, Self::Sessions];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Models => "models",
            Self::Adapters => "adapters",
            Self::Sessions => "sessions",
        }
    }

    /// The mark in a generated script where its values belong.
    pub fn mark(self, with_files: bool) -> &'static str {
        match (self, with_files) {
            (Self::Models, false) => "__caro_models__",
            (Self::Models, true) => "__caro_models_or_files__",
            (Self::Adapters, false) => "__caro_adapters__",
            (Self::Adapters, true) => "__caro_adapters_or_files__",
            (Self::Sessions, false) => "__caro_sessions__",
            (Self::Sessions, true) => "__caro_sessions_or_files__",
        }
    }
}

/// The most sessions that are offered.
const MOST: usize = 100;

/// The words of a kind. What cannot be read has none: nobody wants an error in the middle of a line. Nor is one offered that a
/// shell would not take for a plain word: bash expands what it is given to choose from.
pub fn of(kind: Kind, cx: &Cx) -> Vec<String> {
    let mut words = all(kind, cx);
    words.retain(|word| is_plain(word));
    words
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "._-+@:/".contains(c))
}

fn all(kind: Kind, cx: &Cx) -> Vec<String> {
    match kind {
        Kind::Models => match download::settings(cx) {
            Ok(folders) => fetch::list(&folders).into_iter().flatten().map(|model| model.card.id).collect(),
            Err(_) => Vec::new(),
        },
        Kind::Adapters => match download::settings(cx) {
            Ok(folders) => fetch::adapter_sources(&folders).iter().map(AdapterSource::name).collect(),
            Err(_) => Vec::new(),
        },
        Kind::Sessions => {
            let sessions = wire::kept(cx).ok().and_then(|store| store.sessions(MOST).ok()).unwrap_or_default();
            sessions.into_iter().map(|session| session.id).collect()
        }
    }
}

/// The arguments with the marks, and with the words of help.
pub fn marked(command: Command) -> Command {
    // clap wants names that live as long as the process; a script is made once in one
    let verbs = command.get_subcommands().map(|verb| &*verb.get_name().to_owned().leak());
    let words: Vec<&'static str> = TOPICS.iter().map(|topic| topic.name).chain(verbs).collect();
    let command = command
        .mut_subcommand("help", |help| help.mut_arg("word", |arg| arg.value_parser(PossibleValuesParser::new(words))));
    below(command, &[])
}

fn below(command: Command, path: &[String]) -> Command {
    let command = command.mut_args(|arg| match kind_of(&arg, path) {
        Some((kind, with_files)) => arg.value_parser(PossibleValuesParser::new([kind.mark(with_files)])),
        None => arg,
    });
    command.mut_subcommands(|verb| {
        let path = [path, &[verb.get_name().to_owned()]].concat();
        below(verb, &path)
    })
}

/// The kind of an argument's words, and true if a file may stand there as well.
fn kind_of(arg: &Arg, path: &[String]) -> Option<(Kind, bool)> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (arg.get_long(), &path[..], arg.get_id().as_str()) {
        (Some("model"), ..) => Some((Kind::Models, true)),
        (Some("adapter"), ..) => Some((Kind::Adapters, true)),
        (Some("session"), ..) => Some((Kind::Sessions, false)),
        (None, ["model", "path" | "pull" | "rm" | "verify"], "id") => Some((Kind::Models, false)),
        (None, ["model", "adapter", "rm"], "name") => Some((Kind::Adapters, false)),
        (None, ["model", "adapter", "verify"], "file") => Some((Kind::Adapters, true)),
        (None, ["session", "show" | "rm"], "id") => Some((Kind::Sessions, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_expand_is_not_offered() {
        for word in ["qwen2.5-coder-1.5b", "größe", "team/a_b", "k@h:1"] {
            assert!(is_plain(word), "{word}");
        }
        for word in ["", "$(id)", "`id`", "a b", "a\\b", "*", "a'b", "a\nb", "x;y"] {
            assert!(!is_plain(word), "{word}");
        }
    }
}
