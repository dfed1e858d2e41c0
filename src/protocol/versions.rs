use kafka_protocol::messages::ApiKey;

/// One row of what this broker serves, versions inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedVersions {
    pub key: ApiKey,
    /// Lowest version that ApiVersions names.
    pub advertised_min: i16,
    /// Lowest version that is answered.
    pub min: i16,
    pub max: i16,
}

const fn row(key: ApiKey, min: i16, max: i16) -> ServedVersions {
    ServedVersions { key, advertised_min: min, min, max }
}

/// Every API this broker serves, in the order of their keys.
///
/// Produce is named from version 0 on although 0 to 2 are refused: older librdkafka looks for version 0 when it decides
/// whether it may compress. Source: KIP-896, Kafka's `ApiKeys.PRODUCE`.
const SERVED: &[ServedVersions] = &[
    ServedVersions { key: ApiKey::Produce, advertised_min: 0, min: 3, max: 13 },
    row(ApiKey::Fetch, 4, 18),
    row(ApiKey::ListOffsets, 1, 10),
    row(ApiKey::Metadata, 0, 13),
    row(ApiKey::OffsetCommit, 2, 9),
    row(ApiKey::OffsetFetch, 1, 9),
    row(ApiKey::FindCoordinator, 0, 6),
    row(ApiKey::JoinGroup, 0, 9),
    row(ApiKey::Heartbeat, 0, 4),
    row(ApiKey::LeaveGroup, 0, 5),
    row(ApiKey::SyncGroup, 0, 5),
    row(ApiKey::DescribeGroups, 0, 6),
    row(ApiKey::ListGroups, 0, 5),
    row(ApiKey::SaslHandshake, 0, 1),
    row(ApiKey::ApiVersions, 0, 4),
    row(ApiKey::CreateTopics, 2, 7),
    row(ApiKey::DeleteTopics, 1, 6),
    row(ApiKey::DeleteRecords, 0, 2),
    row(ApiKey::InitProducerId, 0, 5),
    row(ApiKey::OffsetForLeaderEpoch, 2, 4),
    row(ApiKey::AddPartitionsToTxn, 0, 5),
    row(ApiKey::AddOffsetsToTxn, 0, 4),
    row(ApiKey::EndTxn, 0, 5),
    row(ApiKey::WriteTxnMarkers, 1, 1),
    row(ApiKey::TxnOffsetCommit, 0, 5),
    row(ApiKey::DescribeConfigs, 1, 4),
    row(ApiKey::AlterConfigs, 0, 2),
    row(ApiKey::DescribeLogDirs, 1, 4),
    row(ApiKey::SaslAuthenticate, 0, 2),
    row(ApiKey::CreatePartitions, 0, 3),
    row(ApiKey::DeleteGroups, 0, 2),
    row(ApiKey::IncrementalAlterConfigs, 0, 1),
    row(ApiKey::OffsetDelete, 0, 0),
    row(ApiKey::DescribeCluster, 0, 2),
    row(ApiKey::DescribeProducers, 0, 0),
    row(ApiKey::DescribeTransactions, 0, 0),
    row(ApiKey::ListTransactions, 0, 2),
    row(ApiKey::ConsumerGroupHeartbeat, 0, 1),
    row(ApiKey::ConsumerGroupDescribe, 0, 1),
    row(ApiKey::ListConfigResources, 0, 1),
    row(ApiKey::DescribeTopicPartitions, 0, 0),
    row(ApiKey::ShareGroupHeartbeat, 1, 1),
    row(ApiKey::ShareGroupDescribe, 1, 1),
    row(ApiKey::ShareFetch, 1, 1),
    row(ApiKey::ShareAcknowledge, 1, 1),
    row(ApiKey::InitializeShareGroupState, 0, 0),
    row(ApiKey::ReadShareGroupState, 0, 0),
    row(ApiKey::WriteShareGroupState, 0, 0),
    row(ApiKey::DeleteShareGroupState, 0, 0),
    row(ApiKey::ReadShareGroupStateSummary, 0, 0),
    row(ApiKey::DescribeShareGroupOffsets, 0, 0),
    row(ApiKey::AlterShareGroupOffsets, 0, 0),
    row(ApiKey::DeleteShareGroupOffsets, 0, 0),
];

/// Every API this broker serves, in the order of their keys.
pub fn served_versions() -> &'static [ServedVersions] {
    SERVED
}

/// The row of one API; `None` when it is not served.
pub fn served_versions_of(key: ApiKey) -> Option<&'static ServedVersions> {
    SERVED.iter().find(|served| served.key == key)
}

/// Whether a request of this key and version is answered.
pub fn is_served(key: ApiKey, version: i16) -> bool {
    served_versions_of(key).is_some_and(|served| (served.min..=served.max).contains(&version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_served_version_is_one_the_message_crate_knows() {
        for served in SERVED {
            let known = served.key.valid_versions();
            assert!(known.min <= served.min && served.max <= known.max, "{served:?} against {known:?}");
        }
        assert!(SERVED.is_sorted_by_key(|served| served.key as i16), "rows stand in the order of their keys");
    }
}
