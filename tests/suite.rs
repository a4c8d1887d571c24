//! The one test binary: end to end, contracts, properties, architecture. One line a topic.

mod cli;
mod exec;
mod fetch;
#[cfg(unix)]
mod host;
mod http_server;
mod machine;
#[cfg(unix)]
mod pty;
mod remote;
