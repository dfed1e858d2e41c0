use std::rc::Rc;

use super::{Router, shard_of};
use crate::base::{ShardId, TopicPartition};
use crate::runtime::Runtime;
use crate::shard::AppendRefusal;
use crate::txn::{NamedPartition, TransactionEnd};

impl<R: Runtime> Router<R> {
    /// Writes into each partition how the transaction has ended there; one result for each, in their order, when it is durable. In
    /// `__consumer_offsets` the offsets of the transaction hold, or are dropped, with that.
    /// Errors: `UnknownTopicOrPartition` (it is gone), and those of `partition/append.rs`: an older epoch than the producer's, or
    /// an older coordinator than the last, writes nothing. Dropping the future leaves the markers as they are.
    pub async fn write_transaction_markers(
        self: &Rc<Self>,
        end: TransactionEnd,
        partitions: Vec<NamedPartition>,
    ) -> Vec<Result<(), AppendRefusal>> {
        let mut results = vec![Err(AppendRefusal::UnknownTopicOrPartition); partitions.len()];
        let mut shares: Vec<(ShardId, Vec<(usize, TopicPartition)>)> = Vec::new();
        for (place, named) in partitions.iter().enumerate() {
            let Some(topic_id) = self.shard.image.borrow().topic_id(named.topic.as_str()) else { continue };
            let partition = TopicPartition { topic_id, partition: named.partition };
            let owner = shard_of(partition, self.owner_count());
            match shares.iter_mut().find(|(shard, _)| *shard == owner) {
                Some((_, share)) => share.push((place, partition)),
                None => shares.push((owner, vec![(place, partition)])),
            }
        }
        let written: Vec<_> = shares
            .into_iter()
            .map(|(owner, share)| {
                let marked: Vec<TopicPartition> = share.iter().map(|(_, partition)| *partition).collect();
                (share, self.on(owner, move |shard| shard.write_markers(&end, &marked)))
            })
            .collect();
        for (share, written) in written {
            let stopped = || Err(AppendRefusal::ShardStopped);
            let told = written.await.unwrap_or_default().into_iter().chain(std::iter::repeat_with(stopped));
            share.iter().zip(told).for_each(|((place, _), result)| results[*place] = result);
        }
        results
    }
}
