//! Checks that hold whatever the request is: they use the command, the machine, its manuals and the files that it
//! names. The words of the request can only suppress a finding here.

mod addresses;
mod apart;
mod archive;
mod awk;
mod column_name;
mod compressed;
mod csv;
mod differences;
mod duplicates;
mod emptied;
mod endless;
pub(super) mod excluded;
mod executable;
mod fields;
mod flags;
mod folders;
mod found_names;
mod grep;
mod header;
mod here;
pub(super) mod input;
mod merged;
mod operands;
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
pub(crate) mod verbs;

pub(crate) use csv::first_lines;
pub(super) use csv::is_csv;
pub(crate) use input::WAITS;
pub(crate) use separator::{cells, separator_of};

#[cfg(test)]
use super::tests;
use super::{
    Check, CheckContext, edit, is_written_before, names_in, only, read_prefix, read_text, single_find, starting_points,
    words,
};
use caro_shell::rules;

/// The checks for any shell.
pub(super) const ANY: &[Check] = &[
    programs::check,
    prose::check,
    flags::check,
    verbs::check,
    |cx| rules::check(cx.script, cx.target),
    archive::check,
    header::check,
];

/// The checks for Unix shells, the most serious first.
pub(super) const UNIX: &[Check] = &[
    executable::check,
    quoting::check,
    input::check,
    emptied::check,
    operands::check,
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
    found_names::check,
    fields::check,
    passed_on::check,
    sequence::check,
    starts::check,
    processes::check,
];
