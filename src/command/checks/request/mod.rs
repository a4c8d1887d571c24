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

use super::Check::{All, One};
#[cfg(test)]
use super::tests;
use super::{Check, CheckContext, edit, facts, is_written_before, only, single_find, starting_points, words};

/// The checks for any shell.
pub(super) const ANY: &[Check] = &[All(literals::check), All(placeholder::check)];

/// The checks for Unix shells, the most serious first.
pub(super) const UNIX: &[Check] = &[
    One(borrowed::check),
    One(unasked::check),
    One(overwritten::check),
    One(age::check),
    All(elsewhere::check),
    One(depth::check),
    One(letter_case::check),
    One(order::check),
    One(ends::check),
    One(kept_order::check),
    One(kept_header::check),
    One(cut_short::check),
    All(place::check),
];
