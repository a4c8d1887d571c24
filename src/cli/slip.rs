//! A word that is nearly the name of a verb.

use caro_command::fix::near::is_swapped;
use std::cmp::Reverse;

/// How many letters may be wrong for a word to be taken for a slip.
pub fn most_edits(word: &str) -> usize {
    if word.len() < 6 { 1 } else { 2 }
}

/// The verb that a request of one word is a slip away from (`statu`): more likely that was meant.
pub fn slip(program: &clap::Command, request: &str) -> Option<String> {
    let most = most_edits(request);
    let near = program.get_subcommands().map(clap::Command::get_name);
    // of two that are as near, the one of the same letters, then the one that begins more alike
    let alike = |verb: &str| request.bytes().zip(verb.bytes()).take_while(|(a, b)| a == b).count();
    near.map(|verb| (strsim::osa_distance(request, verb), !is_swapped(request, verb), Reverse(alike(verb)), verb))
        .min()
        .filter(|(edits, ..)| (1..=most).contains(edits))
        .map(|(.., verb)| verb.to_owned())
}
