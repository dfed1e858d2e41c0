use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use crate::base::{Map, Set, TimestampMs, TopicName};
use crate::group::{
    Generation, GroupError, GroupId, GroupMetadata, InstanceId, JoinGroupResponse, JoinedMember, MemberId,
    ProtocolName, Record, ReplyToken, Response, TimerKey,
    outbox::{Outbox, Turn},
    replay::ReplayedGroup,
};

use super::ClassicState;
use super::member::Member;
use super::rebalance::InitialDelay;
use crate::group::consumer_protocol::Subscription;

/// The protocol type of consumers: only theirs can be asked what topics they want.
pub(super) const CONSUMER: &str = "consumer";

/// One classic group in memory: its last stored generation and the rebalance under way.
/// Source: Kafka's `ClassicGroup`.
#[derive(Clone, Debug)]
pub(in crate::group) struct ClassicGroup {
    pub id: GroupId,
    pub(super) state: ClassicState,
    /// When it came into that state; `NONE`: stored by a Kafka too old to say.
    pub(super) state_timestamp: TimestampMs,
    pub(super) generation: Generation,
    /// `None`: it has had no members yet.
    pub(super) protocol_type: Option<ProtocolName>,
    /// What all members support and most like best; chosen anew in each generation.
    pub(super) protocol: Option<ProtocolName>,
    pub(super) leader: Option<MemberId>,
    pub(super) members: BTreeMap<MemberId, Member>,
    /// Which member stands for each static instance now.
    pub(super) instances: Map<InstanceId, MemberId>,
    /// Ids given out (KIP-394) whose members have not joined yet.
    pub(super) pending_join: Set<MemberId>,
    /// Members that have not asked for the assignment of this generation.
    pub(super) pending_sync: BTreeSet<MemberId>,
    /// What the members want to consume; `None`: unknown, or not consumers.
    pub(super) subscribed: Option<BTreeSet<TopicName>>,
    /// While an empty group gathers its first members.
    pub(super) initial_delay: Option<InitialDelay>,
    /// How many members wait for the join phase to end.
    joining: usize,
    /// How many members support each protocol.
    supporters: Map<ProtocolName, usize>,
}

impl ClassicGroup {
    pub fn new(id: &GroupId, now: TimestampMs) -> ClassicGroup {
        ClassicGroup {
            id: id.clone(),
            state: ClassicState::Empty,
            state_timestamp: now,
            generation: Generation(0),
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            instances: Map::default(),
            pending_join: Set::default(),
            pending_sync: BTreeSet::new(),
            subscribed: None,
            initial_delay: None,
            joining: 0,
            supporters: Map::default(),
        }
    }

    /// A group as the log has it. One that only committed offsets is an empty one without protocol type.
    pub fn from_replayed(id: &GroupId, replayed: &ReplayedGroup) -> ClassicGroup {
        let mut group = ClassicGroup::new(id, TimestampMs::NONE);
        let Some(metadata) = &replayed.metadata else { return group };
        group.state_timestamp = metadata.state_timestamp;
        group.generation = metadata.generation;
        group.protocol_type = Some(metadata.protocol_type.clone()).filter(|name| !name.is_empty());
        group.protocol = metadata.protocol.clone();
        if !metadata.members.is_empty() {
            group.state = ClassicState::Stable;
            let protocol = group.protocol.get_or_insert_with(|| ProtocolName::new("")).clone();
            for member in &metadata.members {
                let stands = member.instance.as_ref().is_some_and(|name| group.instances.contains_key(name));
                // No broker writes a member twice; if a log has it nevertheless, the first one counts.
                if !stands && !group.members.contains_key(&member.member) {
                    group.add(Member::from_metadata(member, &protocol));
                }
            }
            group.leader = (metadata.leader.clone())
                .filter(|leader| group.members.contains_key(leader))
                .or_else(|| group.members.keys().next().cloned());
        }
        group.subscribed = group.subscribed_now();
        group
    }

    /// After start: every member gets a whole session to be heard of.
    pub fn loaded(&mut self, turn: &mut Turn<'_>) {
        for member in self.members.values() {
            turn.arm(self.session_key(&member.id), member.session_timeout());
        }
        if self.members.len() > turn.settings.max_size {
            self.prepare_rebalance(turn, "the group was loaded with more than group.max.size members");
        }
    }

    pub fn is_empty(&self) -> bool {
        self.state == ClassicState::Empty
    }

    /// Whether ids were given out whose members may still come.
    pub fn has_pending_members(&self) -> bool {
        !self.pending_join.is_empty()
    }

    pub(super) fn is_leader(&self, member: &MemberId) -> bool {
        self.leader.as_ref() == Some(member)
    }

    pub(super) fn session_key(&self, member: &MemberId) -> TimerKey {
        TimerKey::Session { group: self.id.clone(), member: member.clone() }
    }
    pub(super) fn join_key(&self) -> TimerKey {
        TimerKey::Join { group: self.id.clone() }
    }
    pub(super) fn sync_key(&self) -> TimerKey {
        TimerKey::Sync { group: self.id.clone() }
    }

    /// Gives `member` another whole session.
    pub(super) fn renew_session(&self, turn: &mut Turn<'_>, member: &MemberId) {
        if let Some(member) = self.members.get(member) {
            turn.arm(self.session_key(&member.id), member.session_timeout());
        }
    }

    pub(super) fn become_state(&mut self, next: ClassicState, now: TimestampMs) {
        assert!(
            self.state.may_become(next),
            "group {:?}: {:?} does not lead to {next:?}",
            self.id,
            self.state
        );
        self.state = next;
        self.state_timestamp = now;
        if next != ClassicState::PreparingRebalance {
            self.initial_delay = None;
        }
    }

    /// Whether `member` speaks for itself. Errors: `UnknownMemberId`; `FencedInstanceId` (its instance id has been
    /// taken over by a newer member).
    pub(super) fn check_member(
        &self,
        member: &MemberId,
        instance: Option<&InstanceId>,
    ) -> Result<(), GroupError> {
        if let Some(instance) = instance {
            match self.instances.get(instance) {
                None => return Err(GroupError::UnknownMemberId),
                Some(current) if current != member => return Err(GroupError::FencedInstanceId),
                Some(_) => (),
            }
        }
        if self.members.contains_key(member) { Ok(()) } else { Err(GroupError::UnknownMemberId) }
    }

    /// Whether somebody with these protocols finds one in common with everybody else.
    pub(super) fn supports(&self, protocol_type: &ProtocolName, protocols: &[(ProtocolName, Bytes)]) -> bool {
        if self.state == ClassicState::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_ref() == Some(protocol_type)
            && protocols.iter().any(|(name, _)| self.supported_by_all(name))
    }

    fn supported_by_all(&self, protocol: &ProtocolName) -> bool {
        self.supporters.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    pub(super) fn add(&mut self, member: Member) {
        if let Some(instance) = &member.instance {
            let former = self.instances.insert(instance.clone(), member.id.clone());
            assert_eq!(former, None, "group {:?}: two members stand for {instance:?}", self.id);
        }
        self.leader.get_or_insert_with(|| member.id.clone());
        self.joining += usize::from(member.joining.is_some());
        self.count_protocols(&member.protocols);
        self.pending_join.remove(&member.id);
        let former = self.members.insert(member.id.clone(), member);
        assert!(former.is_none(), "group {:?}: {former:?} joined twice", self.id);
    }

    /// Takes out a member, or an id that was given out, with its timer. What it still waits for is answered with
    /// UNKNOWN_MEMBER_ID, so that it begins anew if it lives.
    pub(super) fn remove(&mut self, turn: &mut Turn<'_>, id: &MemberId) {
        turn.cancel(self.session_key(id));
        self.pending_join.remove(id);
        self.pending_sync.remove(id);
        if let Some(mut member) = self.members.remove(id) {
            self.discount_protocols(&member.protocols);
            if let Some(instance) = &member.instance {
                self.instances.remove(instance);
            }
            self.joining -= usize::from(member.joining.is_some());
            refuse(turn.out, &mut member, MemberId::none(), GroupError::UnknownMemberId);
        }
        if self.is_leader(id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// Lets a member that is here already join anew with what it says now.
    pub(super) fn rejoin(
        &mut self,
        turn: &mut Turn<'_>,
        id: &MemberId,
        protocols: Vec<(ProtocolName, Bytes)>,
        timeouts_ms: (i32, i32),
        token: Option<ReplyToken>,
    ) {
        let member = self.members.get_mut(id).expect("the caller has looked the member up");
        let former = std::mem::replace(&mut member.protocols, protocols);
        (member.rebalance_timeout_ms, member.session_timeout_ms) = timeouts_ms;
        let superseded = std::mem::replace(&mut member.joining, token);
        let now = member.protocols.clone();
        self.joining += usize::from(token.is_some());
        self.joining -= usize::from(superseded.is_some());
        if let Some(superseded) = superseded {
            let response = JoinGroupResponse::refused(id.clone(), GroupError::RebalanceInProgress);
            turn.reply(superseded, Response::JoinGroup(response));
        }
        self.discount_protocols(&former);
        self.count_protocols(&now);
    }

    /// Answers what a member's JoinGroup waits for.
    pub(super) fn answer_join(&mut self, turn: &mut Turn<'_>, id: &MemberId, response: JoinGroupResponse) {
        let Some(member) = self.members.get_mut(id) else { return };
        if let Some(token) = member.joining.take() {
            self.joining -= 1;
            turn.reply(token, Response::JoinGroup(response));
        }
    }

    /// What a member is told about the generation it is in.
    pub(super) fn joined(&self, member: &MemberId) -> JoinGroupResponse {
        JoinGroupResponse {
            error: None,
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_else(MemberId::none),
            skip_assignment: false,
            member: member.clone(),
            members: if self.is_leader(member) { self.joined_members() } else { Vec::new() },
        }
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_ref().expect("a generation with members has a protocol");
        self.members.values().map(|member| member.as_joined(protocol)).collect()
    }

    pub(super) fn all_joined(&self) -> bool {
        self.joining == self.members.len() && self.pending_join.is_empty()
    }

    /// How many members wait for the join phase to end.
    pub(super) fn joining(&self) -> usize {
        self.joining
    }

    /// Longest that any member needs to join.
    pub(super) fn rebalance_timeout(&self) -> Duration {
        self.members.values().map(Member::rebalance_timeout).max().unwrap_or_default()
    }

    /// The protocol most members like best among those that all support; of equals, the first by name.
    pub(super) fn choose_protocol(&self) -> ProtocolName {
        self.common_protocol()
            .expect("only a group with members chooses; those without a common one are refused")
    }

    /// The same; `None`: there are no members, or nothing that all support.
    pub(super) fn common_protocol(&self) -> Option<ProtocolName> {
        let mut votes: BTreeMap<&ProtocolName, usize> = BTreeMap::new();
        for member in self.members.values() {
            let vote = member.protocols.iter().map(|(name, _)| name).find(|name| self.supported_by_all(name));
            *votes.entry(vote?).or_default() += 1;
        }
        let most = votes.values().copied().max()?;
        let winner = votes.into_iter().find(|(_, count)| *count == most);
        winner.map(|(name, _)| name.clone())
    }

    /// What the members of this generation want to consume.
    pub(super) fn subscribed_now(&self) -> Option<BTreeSet<TopicName>> {
        if !self.is_of_consumers() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_ref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            topics.append(&mut Subscription::decode_topics(&member.metadata(protocol))?);
        }
        Some(topics)
    }

    pub fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_ref().is_some_and(|name| name.as_str() == CONSUMER)
    }

    /// Whether the members consume `topic`; of consumers that cannot be read, whether they might.
    pub fn is_subscribed_to(&self, topic: &TopicName) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.is_of_consumers(),
        }
    }

    /// What is stored of this generation. `assignment` says what each member got.
    pub(super) fn to_record(&self, assignment: impl Fn(&Member) -> Bytes) -> Record {
        let members = match &self.protocol {
            Some(protocol) => (self.members.values())
                .map(|member| member.to_metadata(protocol, assignment(member)))
                .collect(),
            None => Vec::new(),
        };
        let metadata = GroupMetadata {
            protocol_type: self.protocol_type.clone().unwrap_or_else(|| ProtocolName::new("")),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            state_timestamp: self.state_timestamp,
            members,
        };
        Record::Group { group: self.id.clone(), value: Some(metadata) }
    }

    /// The group is gone: everybody who waits is told, and nothing of it comes up again.
    pub fn dissolve(&mut self, turn: &mut Turn<'_>, error: GroupError) {
        self.answer_all(turn.out, error);
        let ids: Vec<MemberId> = self.members.keys().chain(&self.pending_join).cloned().collect();
        for id in ids {
            turn.cancel(self.session_key(&id));
        }
        turn.cancel(self.join_key());
        turn.cancel(self.sync_key());
    }

    /// Refuses whatever waits in this group.
    pub fn answer_all(&mut self, out: &mut Outbox, error: GroupError) {
        for member in self.members.values_mut() {
            let id = member.id.clone();
            refuse(out, member, id, error);
        }
        self.joining = 0;
    }

    fn count_protocols(&mut self, protocols: &[(ProtocolName, Bytes)]) {
        for (name, _) in protocols {
            *self.supporters.entry(name.clone()).or_default() += 1;
        }
    }

    fn discount_protocols(&mut self, protocols: &[(ProtocolName, Bytes)]) {
        for (name, _) in protocols {
            let count = self.supporters.get_mut(name).expect("what a member supports was counted");
            *count -= 1;
            if *count == 0 {
                self.supporters.remove(name);
            }
        }
    }
}

/// Answers both requests that may wait for `member`; its JoinGroup hears `told_id` as its id.
pub(super) fn refuse(out: &mut Outbox, member: &mut Member, told_id: MemberId, error: GroupError) {
    if let Some(token) = member.joining.take() {
        out.reply(token, Response::JoinGroup(JoinGroupResponse::refused(told_id, error)));
    }
    if let Some(token) = member.syncing.take() {
        out.reply(token, Response::SyncGroup(Err(error)));
    }
}

#[cfg(test)]
impl ClassicGroup {
    /// What must hold after every event.
    pub fn assert_consistent(&self, timers: &crate::group::timers::Timers) {
        let joining = self.members.values().filter(|member| member.joining.is_some()).count();
        assert_eq!(self.joining, joining, "{self:?}");
        let mut supporters: Map<ProtocolName, usize> = Map::default();
        for (name, _) in self.members.values().flat_map(|member| &member.protocols) {
            *supporters.entry(name.clone()).or_default() += 1;
        }
        assert_eq!(self.supporters, supporters, "{self:?}");
        assert_eq!(self.leader.is_some(), !self.members.is_empty(), "{self:?}");
        assert!(self.leader.as_ref().is_none_or(|leader| self.members.contains_key(leader)), "{self:?}");
        assert!(self.state != ClassicState::Empty || self.members.is_empty(), "{self:?}");
        assert!(self.instances.values().all(|member| self.members.contains_key(member)), "{self:?}");
        assert!(self.pending_sync.iter().all(|member| self.members.contains_key(member)), "{self:?}");
        for member in self.members.values() {
            let heard_of = timers.is_armed(&self.session_key(&member.id)) || member.is_waited_for();
            assert!(heard_of, "nobody would miss {member:?}");
            let may_sync = self.state == ClassicState::CompletingRebalance;
            assert!(member.syncing.is_none() || may_sync, "{self:?}");
        }
        for member in &self.pending_join {
            assert!(timers.is_armed(&self.session_key(member)), "nobody would miss {member}");
        }
        let join_timer = timers.is_armed(&self.join_key());
        assert_eq!(join_timer, self.state == ClassicState::PreparingRebalance, "{self:?}");
        let awaits_sync = !self.pending_sync.is_empty();
        assert_eq!(timers.is_armed(&self.sync_key()), awaits_sync, "{self:?}");
    }

    /// Compares what is stored of a group at rest with what another made of the log.
    pub fn assert_same_when_stored(&self, other: &ClassicGroup) {
        assert_eq!((self.state, self.generation), (other.state, other.generation));
        assert_eq!(self.protocol_type, other.protocol_type);
        assert_eq!(self.leader, other.leader);
        assert_eq!(self.instances, other.instances);
        let stored = |group: &ClassicGroup| match group.to_record(|member| member.assignment.clone()) {
            Record::Group { value: Some(value), .. } => value.members,
            other => panic!("{other:?}"),
        };
        assert_eq!(stored(self), stored(other));
    }
}
