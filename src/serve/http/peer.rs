//! The origin of a request: an address or a local process.

use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Tcp(SocketAddr),
    /// A process of this machine by its id, if the system reports it.
    Local(Option<i32>),
}

impl Peer {
    /// The name of the client, for the queue and the rate limit.
    pub fn client(&self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_string(),
            Self::Local(process) => process.map_or_else(String::new, |pid| format!("process {pid}")),
        }
    }
}
