//! Sets up what verbs need: settings, stores, and the recipe with its model.
//!
//! - [`config`]: the settings; [`layers`]: loads their values; [`settings`]: the values in their types, with [`names`],
//!   [`fitting`] and [`remembered`] for the possible values; [`change`]: changes their files.
//! - [`project`]: finds the files of a project; [`policy`]: loads the policy files; [`rc`]: edits the startup files of
//!   shells.
//! - [`stores`]: documents, notes and skills of the user; [`repair`]: reports the repair of damaged files.
//! - [`wire`]: builds the recipe; [`adapter`]: chooses an adapter; [`download`]: fetches models; [`unfetched`]:
//!   stands in for a model that is not fetched. [`resident`]: the resident process.

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
