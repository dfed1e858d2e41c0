//! Producers that write exactly once: what they ask of the coordinator of their transactional id, and what tools ask about it.

pub mod add_offsets_to_txn;
pub mod add_partitions_to_txn;
pub mod describe_transactions;
pub mod end_txn;
pub mod init_producer_id;
pub mod list_transactions;
pub mod write_txn_markers;

mod wire;
