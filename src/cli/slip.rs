//! Recognizes a word that is nearly the name of a verb.

use caro_command::fix::near::is_swapped;
use std::cmp::Reverse;

/// Most edits between a mistyped word and the name that was meant.
pub fn most_edits(word: &str) -> usize {
    if word.len() < 6 { 1 } else { 2 }
}

/// Returns the verb that a request of one word probably misspells (`statu`).
pub fn slip(program: &clap::Command, request: &str) -> Option<String> {
    let most = most_edits(request);
    let verbs = program.get_subcommands().map(clap::Command::get_name);
    // of two equally near verbs, the one with the same letters, then the one with the longer common prefix
    let common = |verb: &str| request.bytes().zip(verb.bytes()).take_while(|(a, b)| a == b).count();
    verbs
        .map(|verb| (strsim::osa_distance(request, verb), !is_swapped(request, verb), Reverse(common(verb)), verb))
        .min()
        .filter(|(edits, ..)| (1..=most).contains(edits))
        .map(|(.., verb)| verb.to_owned())
}

/// Returns the verb that has a subcommand of this name (`self` for `uninstall`), if no other has one.
pub fn verb_of(program: &clap::Command, subcommand: &str) -> Option<String> {
    let holds = |verb: &&clap::Command| verb.get_subcommands().any(|own| own.get_name() == subcommand);
    caro_base::iter::only(program.get_subcommands().filter(holds)).map(|verb| verb.get_name().to_owned())
}
