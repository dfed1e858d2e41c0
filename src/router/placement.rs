use crate::base::{ShardId, TopicPartition};

/// The shard that owns a partition: neighbours of one topic lie on neighbouring shards, topics begin at places that
/// their ids scatter. Nothing of it is kept on disk, so a start with another number of shards just places anew.
pub fn shard_of(partition: TopicPartition, count: u16) -> ShardId {
    let id = partition.topic_id.0.as_u64_pair();
    let start = (id.0 ^ id.1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let index = u64::from(partition.partition.0.unsigned_abs());
    ShardId(((start + index) % u64::from(count.max(1))) as u16)
}

/// The partition of `__consumer_offsets` (or `__transaction_state`) that coordinates `key`: Java's string hash over
/// UTF-16, made non-negative, modulo the count. Source: Kafka's `GroupCoordinator.partitionFor`, `Utils.abs`.
pub fn coordinator_partition(key: &str, partition_count: i32) -> i32 {
    let hash =
        key.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash & i32::MAX) % partition_count.max(1)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::base::{PartitionIndex, TopicId};

    #[test]
    fn partitions_of_a_topic_spread_evenly_over_the_shards() {
        for count in [1u16, 2, 3, 8] {
            let mut owned = vec![0; usize::from(count)];
            for partition in 0..48 {
                let topic_id = TopicId(Uuid::from_u128(0x1234_5678_9abc));
                let at = shard_of(TopicPartition { topic_id, partition: PartitionIndex(partition) }, count);
                owned[usize::from(at.0)] += 1;
            }
            assert!(owned.iter().all(|partitions| *partitions == 48 / usize::from(count)), "{owned:?}");
        }
    }

    #[test]
    fn a_key_hashes_as_in_java() {
        assert_eq!(coordinator_partition("console-consumer-1", i32::MAX), 35_782_224);
        assert_eq!(coordinator_partition("", 50), 0);
        assert_eq!(coordinator_partition("ab", 1 << 30), 97 * 31 + 98);
    }
}
