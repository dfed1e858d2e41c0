//! Producers that write exactly once.

pub mod init_producer_id;
