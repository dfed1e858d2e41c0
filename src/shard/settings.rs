//! The broker's and topics' settings as the layers below want them.

use std::time::Duration;

use crate::base::{ShardId, TimestampMs};
use crate::config::{BrokerConfig, CompressionType, MessageTimestampType, TopicConfig};
use crate::partition::ProducerLimits;
use crate::partition::fetch_session::FetchSessionLimits;
use crate::record::{Codec, ProduceRules, TargetCompression, TimestampType};
use crate::storage::LogSettings;

/// Producer ids that one partition remembers: some 20 MB at the very most, and far more than produce at a time.
const PRODUCER_IDS_PER_PARTITION_MAX: usize = 100_000;
/// Partitions in all fetch sessions of one shard, some 250 bytes each.
const FETCH_SESSION_PARTITIONS_MAX: usize = 100_000;
/// As in Kafka, where it is no setting either.
const FETCH_SESSION_EVICTION_MS: i64 = 120_000;
/// "Never", for deadlines.
pub const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What a batch of a Produce request has to keep to. `now`: wall clock.
pub fn produce_rules(topic: &TopicConfig, now: TimestampMs, produce_version: i16) -> ProduceRules {
    let codec = match topic.compression_type {
        CompressionType::Producer => None,
        CompressionType::Uncompressed => Some(Codec::None),
        CompressionType::Gzip => Some(Codec::Gzip { level: topic.compression_gzip_level }),
        CompressionType::Snappy => Some(Codec::Snappy),
        CompressionType::Lz4 => Some(Codec::Lz4),
        CompressionType::Zstd => Some(Codec::Zstd { level: topic.compression_zstd_level }),
    };
    ProduceRules {
        now,
        compacted: topic.cleanup_policy.compact,
        timestamp_type: match topic.message_timestamp_type {
            MessageTimestampType::CreateTime => TimestampType::CreateTime,
            MessageTimestampType::LogAppendTime => TimestampType::LogAppendTime,
        },
        before_max_ms: topic.message_timestamp_before_max_ms,
        after_max_ms: topic.message_timestamp_after_max_ms,
        compression_type: codec.map_or(TargetCompression::Producer, TargetCompression::Fixed),
        max_message_bytes: u32::try_from(topic.max_message_bytes).unwrap_or(u32::MAX),
        segment_bytes: u32::try_from(topic.segment_bytes).unwrap_or(u32::MAX),
        from_client: true,
        produce_version,
    }
}

pub(super) fn log_settings(topic: &TopicConfig) -> LogSettings {
    LogSettings {
        segment_bytes: topic.segment_bytes,
        segment_ms: topic.segment_age_max_ms(),
        segment_jitter_ms: topic.segment_jitter_ms,
        segment_index_bytes: topic.segment_index_bytes,
        index_interval_bytes: topic.index_interval_bytes,
        file_delete_delay_ms: u64::try_from(topic.file_delete_delay_ms).unwrap_or(0),
        gaps_allowed: topic.cleanup_policy.compact,
    }
}

pub(super) fn producer_limits(broker: &BrokerConfig) -> ProducerLimits {
    ProducerLimits {
        expiration_ms: broker.producer_id_expiration_ms,
        count_max: PRODUCER_IDS_PER_PARTITION_MAX,
    }
}

pub(super) fn fetch_session_limits(
    broker: &BrokerConfig,
    shard: ShardId,
    count: usize,
) -> FetchSessionLimits {
    FetchSessionLimits {
        slots: FetchSessionLimits::slots_of(broker.max_incremental_fetch_session_cache_slots, shard, count),
        partitions_max: FETCH_SESSION_PARTITIONS_MAX,
        eviction_ms: FETCH_SESSION_EVICTION_MS,
    }
}

/// The part of `group.share.max.share.sessions` that falls to `shard`.
pub(super) fn share_session_slots(broker: &BrokerConfig, shard: ShardId, count: usize) -> usize {
    FetchSessionLimits::slots_of(broker.group_share_max_share_sessions, shard, count).max(1)
}

/// How long a connection may be idle before it is closed.
pub fn connection_idle_max(broker: &BrokerConfig) -> Duration {
    broker
        .connections_max_idle_ms
        .and_then(|ms| u64::try_from(ms).ok())
        .map_or(FOR_EVER, Duration::from_millis)
}
