use super::refusal::refusal;
use super::{Controller, Decision};
use crate::base::{BrokerEpoch, ProducerId};
use crate::metadata::records::{ProducerIdsRecord, Record};

/// How many ids are given at a time. Source: Kafka's `ProducerIdsBlock`.
pub const PRODUCER_ID_BLOCK_COUNT: i64 = 1000;

/// Producer ids for one shard to give away: `[first, first + 1000)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerIdBlock {
    pub first: ProducerId,
}

impl ProducerIdBlock {
    /// The first id after the block.
    pub fn end(self) -> ProducerId {
        ProducerId(self.first.0 + PRODUCER_ID_BLOCK_COUNT)
    }
}

refusal! {
    /// Why no producer ids are given.
    ProducerIdsError {
        /// All of them are.
        UnknownServerError = -1,
    }
}

impl Controller<'_> {
    /// Decides on the next block of producer ids. It may be used once its record is durable and not before: what a crash
    /// takes back would be given again.
    pub fn allocate_producer_ids(&self) -> Result<Decision<ProducerIdBlock>, ProducerIdsError> {
        let first = self.image.next_producer_id();
        if first.0 > i64::MAX - PRODUCER_ID_BLOCK_COUNT {
            return Err(ProducerIdsError::UnknownServerError("all producer ids are given away".to_owned()));
        }
        let block = ProducerIdBlock { first };
        let broker_id = self.config.node_id;
        let record = Record::ProducerIds(ProducerIdsRecord {
            broker_id,
            broker_epoch: self.image.broker(broker_id).map_or(BrokerEpoch(-1), |broker| broker.broker_epoch),
            next_producer_id: block.end(),
        });
        Ok(Decision { records: vec![record], answer: block })
    }
}
