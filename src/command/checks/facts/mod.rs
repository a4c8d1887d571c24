//! Facts: true of a command whatever was asked, from the command, the machine, its manuals and the files that it names. A
//! word of the request only ever makes a check here stay silent.

mod addresses;
mod apart;
mod archive;
mod awk;
mod column_name;
mod compressed;
mod csv;
mod differences;
mod duplicates;
mod endless;
pub(super) mod excluded;
mod executable;
mod flags;
mod folders;
mod grep;
mod header;
mod here;
pub(super) mod input;
mod merged;
mod passed_on;
mod precedence;
mod processes;
pub(crate) mod programs;
pub(crate) mod prose;
mod quoting;
mod renamed;
mod sed;
mod separator;
pub(super) mod sequence;
mod silent;
mod sizes;
mod stamped;
mod starts;
mod sums;
pub(crate) mod syntax;
mod totals;
mod values;

pub(crate) use csv::begin;
pub(super) use csv::is_csv;
pub(crate) use input::WAITS;
pub(crate) use separator::{cells, separated_by};

#[cfg(test)]
use super::tests;
use super::{Check, CheckContext, beginning, edit, find, made, only, read, starting_points, words};
use caro_shell::rules;

/// The checks of a command of any shell.
pub(super) const ANY: &[Check] = &[
    programs::check,
    prose::check,
    flags::check,
    |it| rules::check(it.script, it.target),
    archive::check,
    header::check,
];

/// The checks of a Unix command, most serious first.
pub(super) const UNIX: &[Check] = &[
    executable::check,
    quoting::check,
    input::check,
    compressed::check,
    precedence::check,
    silent::check,
    totals::check,
    csv::check,
    values::check,
    merged::check,
    awk::check,
    addresses::check,
    apart::check,
    excluded::check,
    stamped::check,
    sums::check,
    sizes::check,
    grep::check,
    duplicates::check,
    differences::check,
    sed::check,
    endless::check,
    folders::check,
    here::check,
    passed_on::check,
    sequence::check,
    starts::check,
    processes::check,
];
