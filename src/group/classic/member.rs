use std::time::Duration;

use bytes::Bytes;

use crate::group::{
    DescribedMember, InstanceId, JoinGroup, JoinedMember, MemberId, MemberMetadata, ProtocolName, ReplyToken,
};

/// One member of a classic group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub id: MemberId,
    /// `None`: a dynamic member, forgotten when its session ends.
    pub instance: Option<InstanceId>,
    pub client_id: Box<str>,
    pub client_host: Box<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// Best first, with what the member says about each.
    pub protocols: Vec<(ProtocolName, Bytes)>,
    pub assignment: Bytes,
    /// Its JoinGroup, waiting for the others.
    pub joining: Option<ReplyToken>,
    /// Its SyncGroup, waiting for the leader.
    pub syncing: Option<ReplyToken>,
    /// It has not been told its id yet, so it cannot send heartbeats.
    pub is_new: bool,
}

/// What a static member was before it came back, so that a failed append can put it back.
#[derive(Debug)]
pub(in crate::group) struct ReplacedMember {
    pub(super) id: MemberId,
    pub(super) protocols: Vec<(ProtocolName, Bytes)>,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
}

impl Member {
    pub fn joining(id: MemberId, join: JoinGroup, token: ReplyToken) -> Member {
        Member {
            id,
            instance: join.instance,
            client_id: join.client_id,
            client_host: join.client_host,
            rebalance_timeout_ms: join.rebalance_timeout_ms,
            session_timeout_ms: join.session_timeout_ms,
            protocols: join.protocols,
            assignment: Bytes::new(),
            joining: Some(token),
            syncing: None,
            is_new: true,
        }
    }

    /// A member as the log has it; of what it could do, only the group's protocol is known.
    pub fn from_metadata(metadata: &MemberMetadata, protocol: &ProtocolName) -> Member {
        Member {
            id: metadata.member.clone(),
            instance: metadata.instance.clone(),
            client_id: metadata.client_id.clone(),
            client_host: metadata.client_host.clone(),
            rebalance_timeout_ms: metadata.rebalance_timeout_ms,
            session_timeout_ms: metadata.session_timeout_ms,
            protocols: vec![(protocol.clone(), metadata.subscription.clone())],
            assignment: metadata.assignment.clone(),
            joining: None,
            syncing: None,
            is_new: false,
        }
    }

    pub fn to_metadata(&self, protocol: &ProtocolName, assignment: Bytes) -> MemberMetadata {
        MemberMetadata {
            member: self.id.clone(),
            instance: self.instance.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            session_timeout_ms: self.session_timeout_ms,
            subscription: self.metadata(protocol),
            assignment,
        }
    }

    /// What it said about `protocol`, which all members of the group support.
    pub fn metadata(&self, protocol: &ProtocolName) -> Bytes {
        let said = self.protocols.iter().find(|(name, _)| name == protocol);
        said.expect("every member supports the protocol its group has chosen").1.clone()
    }

    pub fn session_timeout(&self) -> Duration {
        duration_ms(self.session_timeout_ms)
    }
    pub fn rebalance_timeout(&self) -> Duration {
        duration_ms(self.rebalance_timeout_ms)
    }

    /// Whether it need not be heard of: its own request waits here. Not so while new: its client may be gone for good.
    pub fn is_waited_for(&self) -> bool {
        !self.is_new && (self.joining.is_some() || self.syncing.is_some())
    }

    pub fn as_joined(&self, protocol: &ProtocolName) -> JoinedMember {
        JoinedMember {
            member: self.id.clone(),
            instance: self.instance.clone(),
            metadata: self.metadata(protocol),
        }
    }

    pub fn as_described(&self, protocol: Option<&ProtocolName>) -> DescribedMember {
        DescribedMember {
            member: self.id.clone(),
            instance: self.instance.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            metadata: protocol.map(|protocol| self.metadata(protocol)).unwrap_or_default(),
            assignment: self.assignment.clone(),
        }
    }
}

/// A time-out as it stands on the wire; negative ones are over at once.
pub(super) fn duration_ms(milliseconds: i32) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
