//! What was asked, held against the command: names, numbers, places, ages, order, what was to be kept, and what nobody asked
//! for. English words, read in general terms; a request in another language accuses nobody.

mod age;
mod borrowed;
mod counts;
mod depth;
mod elsewhere;
mod ends;
pub(in crate::command) mod in_place;
mod kept_changes;
mod kept_header;
mod kept_order;
mod letter_case;
mod literals;
mod mine;
mod numbers;
mod order;
mod overwritten;
mod place;
mod placeholder;
pub(in crate::command) mod saved;
mod unasked;

pub(in crate::command) use counts::asks_for_number;

#[cfg(test)]
use super::tests;
use super::{CheckContext, edit, facts, find, made, only, starting_points, words};
use crate::shell::Finding;

/// What a Unix command often does otherwise than it was asked to, most serious first.
const UNIX: [fn(&CheckContext) -> Vec<Finding>; 18] = [
    kept_changes::check,
    borrowed::check,
    unasked::check,
    mine::check,
    overwritten::check,
    age::check,
    elsewhere::check,
    depth::check,
    letter_case::check,
    order::check,
    ends::check,
    kept_order::check,
    kept_header::check,
    counts::check,
    numbers::check,
    in_place::check,
    place::check,
    saved::check,
];

/// What the checks for Unix have against a command.
pub(super) fn of_unix(it: &CheckContext) -> impl Iterator<Item = Finding> {
    UNIX.iter().flat_map(move |check| check(it))
}

/// What the checks for every shell have against a command.
pub(super) fn of_any(it: &CheckContext) -> impl Iterator<Item = Finding> {
    literals::check(it).into_iter().chain(placeholder::check(it))
}
