//! Arguments, terminal, one file a verb. Nobody imports this module, and no other module prints.
//!
//! - [`args`]: what can be typed; [`flags`]: what several verbs have; [`slip`]: a word that is nearly a verb. [`dispatch`]: from there
//!   to the verb that runs, with its [`cx`].
//! - [`config`]: the settings that there are; [`layers`]: where their values come from; [`settings`]: those in their types, [`names`]: what they choose from; [`configure`]: the
//!   verb, and changes to files. [`mod@env`]: every variable that is read. [`policy`]: the files of rules beside the built-in verdict.
//! - [`request`]: the default verb. [`ask`]: a request in the recipe's form; [`wire`]: the recipe out of model, machine and manual;
//!   [`deliver`]: an answer on its way to the person; [`followup`]: the keys after it; [`asker`], [`revise`]: further answers.
//! - [`execute`]: `-x`; [`run`]: what is run and where; [`undo`]: the verb, and what is kept before.
//! - [`ui`]: the only writer to the terminal, [`color`] or not. [`failure`]: errors and exit codes. [`typed`], [`edit`], [`piped`],
//!   [`history`]: lines that are typed, that come from a pipe, that were typed before. [`interrupt`]: Ctrl-C. [`keys`]: what gives
//!   up while a shell's line editor waits. [`stdin`]: data beside a request.
//! - [`given`]: words that a verb is to look at. [`stores`]: documents, notes and skills of the person. [`request_log`]: what was asked for, where that is kept. [`repair`]: what was
//!   saved of a damaged file. [`project`]: where a project keeps what is for agents.
//! - [`doctor`]: what works here, a file a group of checks. [`download`]: what fetching a model needs from this process;
//!   [`unfetched`]: a model that is not here, and only measures. [`recommend`]: which model suits this machine.
//! - [`resident`]: this program as the resident process. [`first`]: why a first call takes long.
//! - [`help`]: topics out of our papers, and manual pages. [`uninstall`]: everything of ours, taken away.
//! - [`serve`]: the verb of the HTTP server. [`agent`]: the verbs around a run of several steps.
//!
//! **A verb** is a file with `pub struct Args` (clap) and `pub fn run(args: &Args, cx: &Cx) -> Outcome`. It plugs in with
//! its `pub mod`, its variant of [`args::Verb`] and its arm in [`mod@dispatch`]. It prints through `cx.ui`, finds its folders
//! in `cx.dirs`, its settings through `cx.settings(..)`, and an async part runs in `cx.runtime()?.block_on(..)`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod adapter;
pub mod agent;
pub mod args;
pub mod artifacts;
pub mod ask;
pub mod asker;
pub mod batch;
pub mod bench;
pub mod chat;
pub mod check;
pub mod color;
pub mod completions;
pub mod config;
pub mod configure;
pub mod context;
pub mod cx;
pub mod deliver;
pub mod dirs;
pub mod dispatch;
pub mod doctor;
pub mod download;
pub mod edit;
pub mod env;
pub mod eval;
pub mod execute;
pub mod explain;
pub mod failure;
pub mod first;
pub mod fix;
pub mod flags;
pub mod followup;
pub mod forge;
pub mod given;
pub mod help;
pub mod history;
pub mod init;
pub mod interrupt;
pub mod keys;
pub mod knowledge;
pub mod layers;
pub mod manual;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod names;
pub mod perpetual;
pub mod piped;
pub mod policy;
pub mod present;
pub mod project;
pub mod recommend;
pub mod rehearsal;
pub mod repair;
pub mod request;
pub mod request_log;
pub mod resident;
pub mod revise;
pub mod run;
pub mod serve;
pub mod settings;
pub mod skills;
pub mod slip;
pub mod spinner;
pub mod status;
pub mod stdin;
pub mod stop;
pub mod stores;
pub mod task;
pub mod tldr;
pub mod tools;
pub mod typed;
pub mod ui;
#[cfg(unix)]
pub mod undo;
#[cfg(not(unix))]
#[path = "undo/elsewhere.rs"]
pub mod undo;
pub mod unfetched;
pub mod uninstall;
pub mod version;
pub mod wire;
pub mod workspace;

pub use config::Config;
pub use cx::{Cx, wind_up};
pub use dirs::Dirs;
pub use dispatch::main;
pub use env::Env;
pub use failure::{Exit, Failure, Outcome};
pub use interrupt::Interrupt;
pub use settings::Settings;
pub use ui::Ui;
