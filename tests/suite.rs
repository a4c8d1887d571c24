//! The only test binary: end to end, contracts, properties, architecture. Each module tests one topic.
// a test that fails panics, in its helpers too
#![allow(clippy::unwrap_used, clippy::expect_used)]
// a skipped test prints the reason
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod adapter;
mod agent;
#[cfg(unix)]
mod agent_pty;
#[cfg(unix)]
mod agent_real;
mod architecture;
mod artifacts;
mod bench;
mod candidates;
mod chat;
mod check;
mod circles;
mod cli;
mod configure;
#[cfg(target_os = "linux")]
mod demos;
mod doctor;
mod edges;
#[cfg(target_os = "linux")]
mod eval;
mod examples;
mod exec;
mod fetch;
mod field;
#[cfg(target_os = "linux")]
mod fix;
#[cfg(target_os = "linux")]
mod forge;
#[cfg(target_os = "linux")]
mod from_last;
mod fuzz;
mod harness;
mod help;
#[cfg(unix)]
mod host;
mod http_server;
#[cfg(unix)]
mod init;
#[cfg(target_os = "linux")]
mod input;
#[cfg(target_os = "linux")]
mod keys_pty;
mod knowledge;
mod language;
mod library;
#[cfg(target_os = "linux")]
mod locality;
mod machine;
mod manual;
mod mcp;
mod memory;
#[cfg(unix)]
mod packaging;
mod perpetual;
#[cfg(unix)]
mod perpetual_real;
mod privacy;
#[cfg(unix)]
mod pty;
mod readme;
mod real;
mod refine;
mod refusals;
#[cfg(target_os = "linux")]
mod rehearse;
mod remote;
mod reply;
mod request_log;
mod requests;
#[cfg(target_os = "linux")]
mod resident;
mod rules;
mod safety;
#[cfg(unix)]
mod serve;
mod shards;
mod shell;
mod skills;
mod subagents;
mod support;
mod targets;
mod task;
mod trace;
mod training;
#[cfg(target_os = "linux")]
mod undo;
#[cfg(target_os = "linux")]
mod undo_pty;
mod uninstall;
