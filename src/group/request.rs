use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use crate::base::{LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TopicId, TopicName};

use super::assignor::Partitions;
use super::error::GroupError;
use super::event::BatchProducer;
use super::names::{Generation, GroupId, InstanceId, MemberEpoch, MemberId, ProtocolName};
use super::records::{ConsumerMemberMetadata, NamedPartitions, ShareMemberMetadata};

/// One request for groups of this coordinator. What depends on the version on the wire is a field with a name of its own.
#[derive(Clone, Debug)]
pub enum Request {
    JoinGroup(JoinGroup),
    SyncGroup(SyncGroup),
    Heartbeat(Heartbeat),
    LeaveGroup(LeaveGroup),
    OffsetCommit(OffsetCommit),
    TxnOffsetCommit(TxnOffsetCommit),
    EndTransaction(EndTransaction),
    OffsetFetch(OffsetFetch),
    OffsetDelete(OffsetDelete),
    DeleteGroups(Vec<GroupId>),
    DescribeGroups(Vec<GroupId>),
    ListGroups(ListGroups),
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeat),
    ConsumerGroupDescribe(Vec<GroupId>),
    ShareGroupHeartbeat(ShareGroupHeartbeat),
    ShareGroupDescribe(Vec<GroupId>),
    ShareState { group: GroupId, step: ShareStateStep },
}

/// The answer to the request of the same name.
#[derive(Clone, PartialEq, Debug)]
pub enum Response {
    JoinGroup(JoinGroupResponse),
    SyncGroup(Result<Assignment, GroupError>),
    Heartbeat(Result<(), GroupError>),
    LeaveGroup(Result<Vec<LeftMember>, GroupError>),
    /// For each partition in the order asked for; `Err`: the same for all.
    OffsetCommit(Result<Vec<TopicOutcomes>, GroupError>),
    TxnOffsetCommit(Result<Vec<TopicOutcomes>, GroupError>),
    EndTransaction(Result<(), GroupError>),
    OffsetFetch(Result<Vec<FetchedTopic>, GroupError>),
    OffsetDelete(Result<Vec<TopicOutcomes>, GroupError>),
    DeleteGroups(Vec<(GroupId, Result<(), GroupError>)>),
    DescribeGroups(Vec<(GroupId, Result<DescribedGroup, GroupError>)>),
    ListGroups(Result<Vec<ListedGroup>, GroupError>),
    ConsumerGroupHeartbeat(Result<ConsumerGroupHeartbeatResponse, GroupError>),
    ConsumerGroupDescribe(Vec<(GroupId, Result<DescribedConsumerGroup, GroupError>)>),
    ShareGroupHeartbeat(Result<ShareGroupHeartbeatResponse, GroupError>),
    ShareGroupDescribe(Vec<(GroupId, Result<DescribedShareGroup, GroupError>)>),
    ShareState(Result<ShareStateBeginning, GroupError>),
}

/// Whether something worked, partition by partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicOutcomes {
    pub topic: TopicName,
    pub partitions: Vec<(PartitionIndex, Result<(), GroupError>)>,
}

/// A member wants to take part in the next generation.
#[derive(Clone, Debug)]
pub struct JoinGroup {
    pub group: GroupId,
    /// Empty: the member has none yet.
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Box<str>,
    /// The peer's address as Java prints it: `/127.0.0.1`.
    pub client_host: Box<str>,
    pub session_timeout_ms: i32,
    /// In version 0, which has no such field, the session timeout.
    pub rebalance_timeout_ms: i32,
    pub protocol_type: ProtocolName,
    /// What the member can do, best first, with what it wants to tell the leader about each; no name twice.
    pub protocols: Vec<(ProtocolName, Bytes)>,
    /// Why it joins (KIP-800), for the log.
    pub reason: Option<String>,
    /// From version 4 on: a member without an id is told one and joins with its next request (KIP-394).
    pub id_required: bool,
    /// From version 9 on: a leader that comes back to a running generation may be told to skip the assignment (KIP-814).
    pub can_skip_assignment: bool,
    /// Drawn by the caller, in case a member id must be made.
    pub random: Uuid,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinGroupResponse {
    pub error: Option<GroupError>,
    pub generation: Generation,
    pub protocol_type: Option<ProtocolName>,
    pub protocol: Option<ProtocolName>,
    /// Empty: unknown.
    pub leader: MemberId,
    pub skip_assignment: bool,
    pub member: MemberId,
    /// All members, for the leader; nothing for the others.
    pub members: Vec<JoinedMember>,
}

impl JoinGroupResponse {
    pub fn refused(member: MemberId, error: GroupError) -> JoinGroupResponse {
        JoinGroupResponse {
            error: Some(error),
            generation: Generation::NONE,
            protocol_type: None,
            protocol: None,
            leader: MemberId::none(),
            skip_assignment: false,
            member,
            members: Vec::new(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinedMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// What the member sent for the protocol that was chosen.
    pub metadata: Bytes,
}

/// A member asks for its assignment; the leader brings everybody's.
#[derive(Clone, Debug)]
pub struct SyncGroup {
    pub group: GroupId,
    pub generation: Generation,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// From version 5 on: what the member believes the group runs.
    pub protocol_type: Option<ProtocolName>,
    pub protocol: Option<ProtocolName>,
    pub assignments: Vec<(MemberId, Bytes)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    pub protocol_type: Option<ProtocolName>,
    pub protocol: Option<ProtocolName>,
    /// As the leader made it; empty: it gave none.
    pub assignment: Bytes,
}

#[derive(Clone, Debug)]
pub struct Heartbeat {
    pub group: GroupId,
    pub generation: Generation,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
}

#[derive(Clone, Debug)]
pub struct LeaveGroup {
    pub group: GroupId,
    /// One before version 3.
    pub members: Vec<LeavingMember>,
}

#[derive(Clone, Debug)]
pub struct LeavingMember {
    /// Empty: whoever has the instance id.
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// Why (KIP-800), for the log.
    pub reason: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub result: Result<(), GroupError>,
}

/// Offsets to remember. Topics and partitions that do not exist were taken out before.
#[derive(Clone, Debug)]
pub struct OffsetCommit {
    pub group: GroupId,
    /// `NONE`: not from a member of the group.
    pub generation: Generation,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// Versions 2–4: how long to keep the offsets, instead of the broker's retention.
    pub retention_ms: Option<i64>,
    /// From version 9 on: the client may be a member of a consumer group, and knows GROUP_ID_NOT_FOUND; before, it is told
    /// ILLEGAL_GENERATION.
    pub knows_member_epochs: bool,
    pub topics: Vec<CommitTopic>,
}

/// Offsets to remember once the transaction of `producer` commits (KIP-98, KIP-447). `commit` says who brings them, if anybody;
/// its `retention_ms` and `knows_member_epochs` do not matter here.
#[derive(Clone, Debug)]
pub struct TxnOffsetCommit {
    pub producer: BatchProducer,
    pub commit: OffsetCommit,
}

/// A producer's transaction has ended: a marker is to be written, and its offsets hold or are dropped with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndTransaction {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// Leader epoch of the transaction coordinator's partition.
    pub coordinator_epoch: i32,
    pub commits: bool,
    /// 0 and 1: the older protocol; 2: KIP-890.
    pub transaction_version: i16,
}

#[derive(Clone, Debug)]
pub struct CommitTopic {
    pub topic: TopicName,
    pub topic_id: TopicId,
    pub partitions: Vec<CommitPartition>,
}

#[derive(Clone, Debug)]
pub struct CommitPartition {
    pub partition: PartitionIndex,
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Box<str>,
}

/// What one group has committed.
#[derive(Clone, Debug)]
pub struct OffsetFetch {
    pub group: GroupId,
    /// `None`: all there is.
    pub topics: Option<Vec<FetchTopic>>,
    /// Wait until every commit that was under way is known to hold, and do not tell what an open transaction may change (KIP-447).
    pub require_stable: bool,
    /// From version 9 on: which member of a consumer group asks; `None`: nobody in particular.
    pub member: Option<MemberId>,
    /// Its epoch; below 0: none.
    pub member_epoch: MemberEpoch,
}

#[derive(Clone, Debug)]
pub struct FetchTopic {
    pub topic: TopicName,
    /// Zero: whichever topic of that name.
    pub topic_id: TopicId,
    pub partitions: Vec<PartitionIndex>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchedTopic {
    pub topic: TopicName,
    pub topic_id: TopicId,
    pub partitions: Vec<FetchedOffset>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchedOffset {
    pub partition: PartitionIndex,
    /// `Offset::NONE`: nothing committed.
    pub offset: Offset,
    pub leader_epoch: LeaderEpoch,
    pub metadata: Box<str>,
    /// A transaction that has not ended has committed here, and the reader wants to know: nothing is told (KIP-447).
    pub is_unstable: bool,
}

impl FetchedOffset {
    pub fn none(partition: PartitionIndex) -> FetchedOffset {
        FetchedOffset {
            partition,
            offset: Offset::NONE,
            leader_epoch: LeaderEpoch::NONE,
            metadata: Box::default(),
            is_unstable: false,
        }
    }
}

/// A member of a consumer group reports, joins or leaves; what is `None` is as it said before.
#[derive(Clone, Debug)]
pub struct ConsumerGroupHeartbeat {
    pub group: GroupId,
    /// Chosen by the member; before version 1 a joining member may have none yet, and gets one that the caller has drawn.
    pub member: MemberId,
    /// Version 0: the coordinator makes the ids of members that have none.
    pub makes_member_id: bool,
    pub member_epoch: MemberEpoch,
    pub instance: Option<InstanceId>,
    pub rack: Option<Box<str>>,
    pub client_id: Box<str>,
    /// The peer's address as Java prints it: `/127.0.0.1`.
    pub client_host: Box<str>,
    pub rebalance_timeout_ms: Option<i32>,
    pub subscribed_topics: Option<BTreeSet<TopicName>>,
    pub subscribed_regex: Option<Box<str>>,
    pub server_assignor: Option<Box<str>>,
    /// What the member has.
    pub owned: Option<Partitions>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConsumerGroupHeartbeatResponse {
    pub member: MemberId,
    pub member_epoch: MemberEpoch,
    pub heartbeat_interval: Duration,
    /// `None`: as it was.
    pub assignment: Option<Partitions>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedConsumerGroup {
    pub state: &'static str,
    pub group_epoch: MemberEpoch,
    pub assignment_epoch: MemberEpoch,
    pub assignor: &'static str,
    pub members: Vec<DescribedConsumerMember>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedConsumerMember {
    pub member: MemberId,
    pub metadata: ConsumerMemberMetadata,
    pub member_epoch: MemberEpoch,
    pub assignment: Vec<DescribedTopic>,
    pub target_assignment: Vec<DescribedTopic>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedTopic {
    pub topic_id: TopicId,
    pub topic: TopicName,
    pub partitions: Vec<PartitionIndex>,
}

/// A member of a share group reports, joins or leaves; what is `None` is as it said before.
#[derive(Clone, Debug)]
pub struct ShareGroupHeartbeat {
    pub group: GroupId,
    /// Chosen by the member.
    pub member: MemberId,
    pub member_epoch: MemberEpoch,
    pub rack: Option<Box<str>>,
    pub client_id: Box<str>,
    /// The peer's address as Java prints it: `/127.0.0.1`.
    pub client_host: Box<str>,
    pub subscribed_topics: Option<BTreeSet<TopicName>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareGroupHeartbeatResponse {
    pub member: MemberId,
    pub member_epoch: MemberEpoch,
    pub heartbeat_interval: Duration,
    /// `None`: as it was.
    pub assignment: Option<Partitions>,
    /// What the share coordinator is to be asked to begin with.
    pub initialize: Option<ShareStateBeginning>,
}

/// Partitions of which the share coordinator is to begin, or to cease, to remember how far the group has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareStateBeginning {
    /// What was remembered in an older epoch is void.
    pub state_epoch: MemberEpoch,
    pub topics: BTreeMap<TopicId, NamedPartitions>,
}

/// One step of asking the share coordinator, as far as the group has to know.
#[derive(Clone, Debug)]
pub enum ShareStateStep {
    /// Which partitions it remembers.
    Look,
    /// It is to be asked to begin anew elsewhere.
    BeginAlter(BTreeMap<TopicId, NamedPartitions>),
    /// It has begun, or could not.
    Begun { initialized: BTreeMap<TopicId, NamedPartitions>, failed: BTreeMap<TopicId, NamedPartitions> },
    /// It is to be asked to forget these topics; `None`: all.
    BeginDelete(Option<BTreeSet<TopicId>>),
    /// It has forgotten them.
    Deleted(BTreeSet<TopicId>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedShareGroup {
    pub state: &'static str,
    pub group_epoch: MemberEpoch,
    pub assignment_epoch: MemberEpoch,
    pub assignor: &'static str,
    pub members: Vec<DescribedShareMember>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedShareMember {
    pub member: MemberId,
    pub metadata: ShareMemberMetadata,
    pub member_epoch: MemberEpoch,
    pub assignment: Vec<DescribedTopic>,
}

#[derive(Clone, Debug)]
pub struct OffsetDelete {
    pub group: GroupId,
    pub topics: Vec<(TopicName, Vec<PartitionIndex>)>,
}

/// Which groups to list; an empty filter lets all pass. Compared without regard to case.
#[derive(Clone, Debug, Default)]
pub struct ListGroups {
    pub states: Vec<String>,
    pub types: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedGroup {
    pub group: GroupId,
    /// Empty: the group has never had members.
    pub protocol_type: ProtocolName,
    pub state: &'static str,
    pub group_type: &'static str,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedGroup {
    pub state: &'static str,
    pub protocol_type: ProtocolName,
    /// Empty unless the group is stable.
    pub protocol: ProtocolName,
    pub members: Vec<DescribedMember>,
}

impl DescribedGroup {
    /// How DescribeGroups before version 6 tells that a group does not exist.
    pub fn dead() -> DescribedGroup {
        DescribedGroup {
            state: "Dead",
            protocol_type: ProtocolName::new(""),
            protocol: ProtocolName::new(""),
            members: Vec::new(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Box<str>,
    pub client_host: Box<str>,
    /// Empty unless the group is stable.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

impl Request {
    /// The answer that refuses all of this request.
    pub fn refused(&self, error: GroupError) -> Response {
        match self {
            Request::JoinGroup(join) => {
                Response::JoinGroup(JoinGroupResponse::refused(join.member.clone(), error))
            }
            Request::SyncGroup(_) => Response::SyncGroup(Err(error)),
            // A member must not lose its session while its group is being loaded.
            Request::Heartbeat(_) if error == GroupError::CoordinatorLoadInProgress => {
                Response::Heartbeat(Ok(()))
            }
            Request::Heartbeat(_) => Response::Heartbeat(Err(error)),
            Request::LeaveGroup(_) => Response::LeaveGroup(Err(error)),
            Request::OffsetCommit(_) => Response::OffsetCommit(Err(error)),
            Request::TxnOffsetCommit(_) => Response::TxnOffsetCommit(Err(error)),
            Request::EndTransaction(_) => Response::EndTransaction(Err(error)),
            Request::OffsetFetch(_) => Response::OffsetFetch(Err(error)),
            Request::OffsetDelete(_) => Response::OffsetDelete(Err(error)),
            Request::DeleteGroups(groups) => {
                Response::DeleteGroups(groups.iter().map(|group| (group.clone(), Err(error))).collect())
            }
            Request::DescribeGroups(groups) => {
                Response::DescribeGroups(groups.iter().map(|group| (group.clone(), Err(error))).collect())
            }
            Request::ListGroups(_) => Response::ListGroups(Err(error)),
            Request::ConsumerGroupHeartbeat(_) => Response::ConsumerGroupHeartbeat(Err(error)),
            Request::ConsumerGroupDescribe(groups) => Response::ConsumerGroupDescribe(
                groups.iter().map(|group| (group.clone(), Err(error))).collect(),
            ),
            Request::ShareGroupHeartbeat(_) => Response::ShareGroupHeartbeat(Err(error)),
            Request::ShareGroupDescribe(groups) => {
                Response::ShareGroupDescribe(groups.iter().map(|group| (group.clone(), Err(error))).collect())
            }
            Request::ShareState { .. } => Response::ShareState(Err(error)),
        }
    }
}
