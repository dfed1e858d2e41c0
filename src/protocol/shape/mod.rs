//! What the bytes of each request have to look like, and the check of a body against it.
//!
//! The message crate takes memory for as many items as a count says, before it looks for them, and refuses some bodies
//! that Kafka takes. So [`sound_body`] walks over every body first.
//! Source of the shapes: the request definitions of Kafka 4.3.1 (`clients/src/main/resources/common/message`).

#[rustfmt::skip]
mod admin;
#[rustfmt::skip]
mod auth;
#[rustfmt::skip]
mod cluster;
#[rustfmt::skip]
mod data;
#[rustfmt::skip]
mod group;
#[rustfmt::skip]
mod share;
#[rustfmt::skip]
mod txn;
mod walk;

use kafka_protocol::messages::ApiKey;

pub use walk::sound_body;

/// The body of one request in all its versions. Whether a field may be null is not told: the message crate sees to it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// First version with compact lengths and tagged fields (KIP-482).
    pub flexible_from: i16,
    pub fields: &'static [Field],
}

impl Shape {
    const fn flexible_from(version: i16, fields: &'static [Field]) -> Shape {
        Shape { flexible_from: version, fields }
    }
    const fn never_flexible(fields: &'static [Field]) -> Shape {
        Shape { flexible_from: i16::MAX, fields }
    }
}

/// One field, in the versions `since` to `until`, both inclusive.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub kind: Kind,
    pub since: i16,
    pub until: i16,
    /// Its tag, when it stands among the tagged fields.
    pub tag: Option<u32>,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// So many bytes: a number, a bool, a UUID.
    Fixed(usize),
    Text,
    Bytes,
    /// A count, then as many values.
    Values(&'static Field),
    /// A count, then as many structures.
    Structures(&'static [Field]),
    Structure(&'static [Field]),
    /// A byte, below 0 for null, then the structure.
    NullableStructure(&'static [Field]),
}

impl Field {
    const fn of(kind: Kind) -> Field {
        Field { kind, since: 0, until: i16::MAX, tag: None }
    }
    const fn since(self, version: i16) -> Field {
        Field { since: version, ..self }
    }
    const fn until(self, version: i16) -> Field {
        Field { until: version, ..self }
    }
    const fn tag(self, tag: u32) -> Field {
        Field { tag: Some(tag), ..self }
    }
    /// Whether a body of this version has the field.
    pub fn is_in(&self, version: i16) -> bool {
        (self.since..=self.until).contains(&version)
    }
}

/// A bool is one, too.
const INT8: Field = Field::of(Kind::Fixed(1));
const INT16: Field = Field::of(Kind::Fixed(2));
const INT32: Field = Field::of(Kind::Fixed(4));
const INT64: Field = Field::of(Kind::Fixed(8));
const UUID: Field = Field::of(Kind::Fixed(16));
const TEXT: Field = Field::of(Kind::Text);
/// Record batches are bytes like others.
const BYTES: Field = Field::of(Kind::Bytes);

const fn list_of(value: &'static Field) -> Field {
    Field::of(Kind::Values(value))
}
const fn list(structure: &'static [Field]) -> Field {
    Field::of(Kind::Structures(structure))
}
const fn group(structure: &'static [Field]) -> Field {
    Field::of(Kind::Structure(structure))
}
const fn optional(structure: &'static [Field]) -> Field {
    Field::of(Kind::NullableStructure(structure))
}

/// The shape of the requests of this key; `None` for those that no broker of ours takes from a client.
pub fn shape_of(key: ApiKey) -> Option<Shape> {
    Some(match key {
        ApiKey::Produce => data::PRODUCE,
        ApiKey::Fetch => data::FETCH,
        ApiKey::ListOffsets => data::LIST_OFFSETS,
        ApiKey::Metadata => cluster::METADATA,
        ApiKey::OffsetCommit => group::OFFSET_COMMIT,
        ApiKey::OffsetFetch => group::OFFSET_FETCH,
        ApiKey::FindCoordinator => group::FIND_COORDINATOR,
        ApiKey::JoinGroup => group::JOIN_GROUP,
        ApiKey::Heartbeat => group::HEARTBEAT,
        ApiKey::LeaveGroup => group::LEAVE_GROUP,
        ApiKey::SyncGroup => group::SYNC_GROUP,
        ApiKey::DescribeGroups => group::DESCRIBE_GROUPS,
        ApiKey::ListGroups => group::LIST_GROUPS,
        ApiKey::SaslHandshake => auth::SASL_HANDSHAKE,
        ApiKey::ApiVersions => cluster::API_VERSIONS,
        ApiKey::CreateTopics => admin::CREATE_TOPICS,
        ApiKey::DeleteTopics => admin::DELETE_TOPICS,
        ApiKey::DeleteRecords => data::DELETE_RECORDS,
        ApiKey::InitProducerId => txn::INIT_PRODUCER_ID,
        ApiKey::OffsetForLeaderEpoch => data::OFFSET_FOR_LEADER_EPOCH,
        ApiKey::AddPartitionsToTxn => txn::ADD_PARTITIONS_TO_TXN,
        ApiKey::AddOffsetsToTxn => txn::ADD_OFFSETS_TO_TXN,
        ApiKey::EndTxn => txn::END_TXN,
        ApiKey::WriteTxnMarkers => txn::WRITE_TXN_MARKERS,
        ApiKey::TxnOffsetCommit => txn::TXN_OFFSET_COMMIT,
        ApiKey::DescribeAcls => auth::DESCRIBE_ACLS,
        ApiKey::CreateAcls => auth::CREATE_ACLS,
        ApiKey::DeleteAcls => auth::DELETE_ACLS,
        ApiKey::DescribeConfigs => admin::DESCRIBE_CONFIGS,
        ApiKey::AlterConfigs => admin::ALTER_CONFIGS,
        ApiKey::AlterReplicaLogDirs => admin::ALTER_REPLICA_LOG_DIRS,
        ApiKey::DescribeLogDirs => admin::DESCRIBE_LOG_DIRS,
        ApiKey::SaslAuthenticate => auth::SASL_AUTHENTICATE,
        ApiKey::CreatePartitions => admin::CREATE_PARTITIONS,
        ApiKey::CreateDelegationToken => auth::CREATE_DELEGATION_TOKEN,
        ApiKey::RenewDelegationToken => auth::RENEW_DELEGATION_TOKEN,
        ApiKey::ExpireDelegationToken => auth::EXPIRE_DELEGATION_TOKEN,
        ApiKey::DescribeDelegationToken => auth::DESCRIBE_DELEGATION_TOKEN,
        ApiKey::DeleteGroups => group::DELETE_GROUPS,
        ApiKey::ElectLeaders => admin::ELECT_LEADERS,
        ApiKey::IncrementalAlterConfigs => admin::INCREMENTAL_ALTER_CONFIGS,
        ApiKey::AlterPartitionReassignments => admin::ALTER_PARTITION_REASSIGNMENTS,
        ApiKey::ListPartitionReassignments => admin::LIST_PARTITION_REASSIGNMENTS,
        ApiKey::OffsetDelete => group::OFFSET_DELETE,
        ApiKey::DescribeClientQuotas => admin::DESCRIBE_CLIENT_QUOTAS,
        ApiKey::AlterClientQuotas => admin::ALTER_CLIENT_QUOTAS,
        ApiKey::DescribeUserScramCredentials => auth::DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey::AlterUserScramCredentials => auth::ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey::DescribeQuorum => cluster::DESCRIBE_QUORUM,
        ApiKey::UpdateFeatures => cluster::UPDATE_FEATURES,
        ApiKey::DescribeCluster => cluster::DESCRIBE_CLUSTER,
        ApiKey::DescribeProducers => data::DESCRIBE_PRODUCERS,
        ApiKey::UnregisterBroker => cluster::UNREGISTER_BROKER,
        ApiKey::DescribeTransactions => txn::DESCRIBE_TRANSACTIONS,
        ApiKey::ListTransactions => txn::LIST_TRANSACTIONS,
        ApiKey::ConsumerGroupHeartbeat => group::CONSUMER_GROUP_HEARTBEAT,
        ApiKey::ConsumerGroupDescribe => group::CONSUMER_GROUP_DESCRIBE,
        ApiKey::GetTelemetrySubscriptions => cluster::GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey::PushTelemetry => cluster::PUSH_TELEMETRY,
        ApiKey::ListConfigResources => admin::LIST_CONFIG_RESOURCES,
        ApiKey::DescribeTopicPartitions => cluster::DESCRIBE_TOPIC_PARTITIONS,
        ApiKey::ShareGroupHeartbeat => share::SHARE_GROUP_HEARTBEAT,
        ApiKey::ShareGroupDescribe => share::SHARE_GROUP_DESCRIBE,
        ApiKey::ShareFetch => share::SHARE_FETCH,
        ApiKey::ShareAcknowledge => share::SHARE_ACKNOWLEDGE,
        ApiKey::AddRaftVoter => cluster::ADD_RAFT_VOTER,
        ApiKey::RemoveRaftVoter => cluster::REMOVE_RAFT_VOTER,
        ApiKey::InitializeShareGroupState => share::INITIALIZE_SHARE_GROUP_STATE,
        ApiKey::ReadShareGroupState => share::READ_SHARE_GROUP_STATE,
        ApiKey::WriteShareGroupState => share::WRITE_SHARE_GROUP_STATE,
        ApiKey::DeleteShareGroupState => share::DELETE_SHARE_GROUP_STATE,
        ApiKey::ReadShareGroupStateSummary => share::READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey::DescribeShareGroupOffsets => share::DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey::AlterShareGroupOffsets => share::ALTER_SHARE_GROUP_OFFSETS,
        ApiKey::DeleteShareGroupOffsets => share::DELETE_SHARE_GROUP_OFFSETS,
        _ => return None,
    })
}
