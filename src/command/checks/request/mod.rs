//! The request, held against the command: names, numbers, places, ages, order, what was to be kept, and what nobody asked
//! for. English words, read in general terms; a request in another language accuses nobody.

mod age;
mod borrowed;
mod counts;
mod depth;
mod elsewhere;
mod ends;
pub(crate) mod in_place;
mod kept_changes;
mod kept_header;
mod kept_order;
mod letter_case;
mod literals;
mod numbers;
mod order;
mod overwritten;
mod place;
mod placeholder;
pub(crate) mod saved;
mod unasked;

pub(crate) use counts::asks_for_number;

#[cfg(test)]
use super::tests;
use super::{Check, CheckContext, edit, facts, find, made, only, starting_points, words};

/// The checks of a command of any shell.
pub(super) const ANY: &[Check] = &[literals::check, placeholder::check];

/// The checks of a Unix command, most serious first.
pub(super) const UNIX: &[Check] = &[
    kept_changes::check,
    borrowed::check,
    unasked::check,
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
