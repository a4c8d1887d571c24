//! Checks that compare the command with the request: names, places, depth, ages, order, letter case, what is to be
//! kept, and what was not asked for. They read English words in general terms; a request in another language causes no
//! findings.

mod age;
mod borrowed;
mod cut_short;
mod depth;
mod elsewhere;
mod ends;
mod kept_header;
mod kept_order;
mod letter_case;
mod literals;
mod order;
mod overwritten;
mod place;
mod placeholder;
mod unasked;

#[cfg(test)]
use super::tests;
use super::{Check, CheckContext, edit, facts, is_written_before, only, single_find, starting_points, words};

/// The checks for any shell.
pub(super) const ANY: &[Check] = &[literals::check, placeholder::check];

/// The checks for Unix shells, the most serious first.
pub(super) const UNIX: &[Check] = &[
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
    cut_short::check,
    place::check,
];
