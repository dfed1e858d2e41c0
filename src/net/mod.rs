//! Connections: accepting them, reading frames, answering in order, moving them to the shard that owns their data.

mod connection;
mod listener;
mod read_buffer;

pub use connection::serve_connection;
pub use listener::{accept_connections, serve_arrivals};
