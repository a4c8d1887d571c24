//! Words that are completed from what is on this machine.
//!
//! The generators know only fixed words. An argument of this kind therefore gets a mark as its only word, which the
//! script replaces by a call of `caro completions --values`.

use crate::Cx;
use crate::harness::wire;
use crate::papers::topics::TOPICS;
use crate::setup::download;
use caro_model::adapter::AdapterSource;
use caro_model::fetch;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};

/// The kinds of words that are completed from this machine.
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
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Models, Self::Adapters, Self::Sessions];

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Models => "models",
            Self::Adapters => "adapters",
            Self::Sessions => "sessions",
        }
    }

    /// The mark in a generated script that stands for the values of the kind.
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

/// Most sessions that are offered.
const MAX_SESSIONS: usize = 100;

/// The words of a kind. If they cannot be read there are none, since an error would land in the middle of the user's
/// line. Words that are not plain are left out, because bash expands the words that it is given.
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
            let store = wire::existing_store(cx).ok();
            let sessions = store.and_then(|store| store.sessions(MAX_SESSIONS).ok()).unwrap_or_default();
            sessions.into_iter().map(|session| session.id).collect()
        }
    }
}

/// Adds the marks to the arguments, and the topics and verbs as words of `help`.
pub fn marked(command: Command) -> Command {
    // clap needs names that live as long as the process; leaking them is fine, because a process makes one script
    let verbs = command.get_subcommands().map(|verb| &*verb.get_name().to_owned().leak());
    let words: Vec<&'static str> = TOPICS.iter().map(|topic| topic.name).chain(verbs).collect();
    let command = command
        .mut_subcommand("help", |help| help.mut_arg("word", |arg| arg.value_parser(PossibleValuesParser::new(words))));
    mark_arguments(command, &[])
}

fn mark_arguments(command: Command, path: &[String]) -> Command {
    let command = command.mut_args(|arg| match kind_of(&arg, path) {
        Some((kind, with_files)) => arg.value_parser(PossibleValuesParser::new([kind.mark(with_files)])),
        None => arg,
    });
    command.mut_subcommands(|verb| {
        let path = [path, &[verb.get_name().to_owned()]].concat();
        mark_arguments(verb, &path)
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
    fn words_that_a_shell_would_expand_are_not_offered() {
        for word in ["qwen2.5-coder-1.5b", "größe", "team/a_b", "k@h:1"] {
            assert!(is_plain(word), "{word}");
        }
        for word in ["", "$(id)", "`id`", "a b", "a\\b", "*", "a'b", "a\nb", "x;y"] {
            assert!(!is_plain(word), "{word}");
        }
    }
}
