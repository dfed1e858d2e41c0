//! The transaction coordinator of one `__transaction_state` partition: which producer a transactional id stands for, what its
//! transaction covers, and how that ends.
//!
//! `TransactionCoordinator` takes events and gives effects (`event`); requests and answers are plain data (`request`).
//! `records` holds the bytes in the log, `replay` the state they give, `transition` what each step makes of it, `outbox` what
//! is on its way out. One file for each request; `markers` completes what was decided, `periodic` aborts and forgets.

mod add_partitions;
mod coordinator;
mod describe;
mod end_transaction;
mod error;
mod event;
mod init_producer_id;
mod markers;
mod names;
mod outbox;
mod periodic;
mod records;
mod replay;
mod request;
mod settings;
mod state;
mod transition;

pub use coordinator::TransactionCoordinator;
pub use error::TransactionError;
pub use event::{AppendId, Effect, Event, MarkerOutcome, MarkerRound, Note, Now, ReplyToken, TimerKey};
pub use names::{
    NamedPartition, ProducerIdentity, TransactionEnd, TransactionVersion, TransactionalId,
    TransactionalProducer,
};
pub use records::{EncodedRecord, MalformedRecord, Record, TransactionMetadata};
pub use request::*;
pub use settings::TransactionSettings;
pub use state::TransactionState;

#[cfg(test)]
mod tests;
