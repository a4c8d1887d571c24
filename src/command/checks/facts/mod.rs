//! Checks that hold a command against itself, the machine, its manuals and the files that it names. The words of the
//! request may suppress a finding. A few checks also read there that there is an error (`archive`, `csv`, `excluded`,
//! `header`, `here`, `merged`, `prose`, `quoting` and `sed`).

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

use super::Check::{All, Each, One};
#[cfg(test)]
use super::tests;
use super::{
    Check, CheckContext, edit, is_written_before, names_in, only, read_prefix, read_text, single_find, span_of_call,
    starting_points, words,
};
use caro_shell::rules;

/// The checks for any shell.
pub(super) const ANY: &[Check] = &[
    All(programs::check),
    One(prose::check),
    All(flags::check),
    Each(verbs::check),
    All(|cx| rules::check(cx.script, cx.target)),
    All(archive::check),
    One(header::check),
];

/// The checks for Unix shells, the most serious first.
pub(super) const UNIX: &[Check] = &[
    One(executable::check),
    All(quoting::check),
    All(input::check),
    Each(emptied::check),
    Each(operands::check),
    Each(compressed::check),
    One(precedence::check),
    One(silent::check),
    One(totals::check),
    All(csv::check),
    Each(values::check),
    One(merged::check),
    Each(awk::check),
    One(addresses::check),
    Each(apart::check),
    All(excluded::check),
    One(stamped::check),
    One(sums::check),
    One(sizes::check),
    All(grep::check),
    One(duplicates::check),
    One(differences::check),
    Each(sed::check),
    One(endless::check),
    Each(folders::check),
    All(here::check),
    All(found_names::check),
    All(fields::check),
    Each(passed_on::check),
    One(sequence::check),
    One(starts::check),
    One(processes::check),
];
