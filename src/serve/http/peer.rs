//! Where a request comes from.

use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Tcp(SocketAddr),
    /// A process of this machine, if the system says which.
    Local(Option<i32>),
}

impl Peer {
    /// The client that it counts for.
    pub fn client(&self) -> String {
        match self {
            Self::Tcp(address) => address.ip().to_string(),
            Self::Local(process) => process.map_or_else(String::new, |pid| format!("process {pid}")),
        }
    }
}
