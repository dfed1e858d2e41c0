//! The transaction coordinator: what a transactional id stands for, and what belongs to its transaction.

mod error;
mod names;

pub use error::TransactionError;
pub use names::{NamedPartition, TransactionEnd, TransactionalId, TransactionalProducer};
