//! Settings, stores and the recipe of this machine and this person.
//!
//! - [`config`]: the settings that there are; [`layers`]: where their values come from; [`settings`]: those in their types,
//!   [`names`], [`fitting`], [`remembered`]: what they choose from; [`change`]: changes to their files.
//! - [`project`]: where a project keeps what is for agents; [`policy`]: the files of rules beside the
//!   built-in verdict; [`rc`]: the line in a shell's own file.
//! - [`stores`]: documents, notes and skills of the person; [`repair`]: what was saved of a damaged file.
//! - [`wire`]: the recipe out of model, machine and manual; [`adapter`], [`download`]: what fetching a model needs from this
//!   process; [`unfetched`]: a model that is not here, and only measures. [`resident`]: this program as the resident process.

pub mod adapter;
pub mod change;
pub mod config;
pub mod download;
pub mod fitting;
pub mod layers;
pub mod names;
pub mod policy;
pub mod project;
pub mod rc;
pub mod remembered;
pub mod repair;
pub mod resident;
pub mod settings;
pub mod stores;
pub mod unfetched;
pub mod wire;
