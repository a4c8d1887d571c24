//! The one test binary: end to end, contracts, properties, architecture. One line a topic.

mod exec;
mod fetch;
mod http_server;
mod remote;
