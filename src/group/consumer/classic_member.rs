use bytes::Bytes;
use uuid::Uuid;

use crate::group::consumer_protocol::{Subscription, encode_assignment};
use crate::group::{
    Assignment, ClassicMemberMetadata, Cluster, ConsumerGroupHeartbeat, Coordinator, Generation, GroupError,
    GroupId, Heartbeat, InstanceId, JoinGroup, JoinGroupResponse, LeaveGroup, LeavingMember, LeftMember,
    MemberEpoch, MemberId, MemberState, Now, ProtocolName, ReplyToken, Response, SyncGroup,
};

use super::CONSUMER_TYPE;
use super::downgrade::Successor;
use super::group::{ConsumerGroup, ConsumerMember};
use super::join::Place;
use super::live::{Draft, member_join_key, member_sync_key, rebalance_timeout, session_key, session_timeout};
use super::upgrade::{known_partitions, named_partitions, supporters};

impl Coordinator {
    /// Lets a consumer of the classic protocol into a consumer group, or takes in what it says anew. Nobody leads: it gets
    /// its share by SyncGroup. Source: Kafka's `GroupMetadataManager.classicGroupJoinToConsumerGroup`.
    /// Errors: `InconsistentGroupProtocol` (its protocols; or the policy lets nobody in), `GroupMaxSizeReached`,
    /// `MemberIdRequired`, `UnknownMemberId`, `FencedInstanceId`, `UnknownServerError` (its subscription is no such thing).
    pub(in crate::group) fn join_consumer_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        join: JoinGroup,
    ) {
        let named = join.member.clone();
        let is_new = named.is_empty();
        let member = if is_new { new_member_id(join.random) } else { named.clone() };
        let refused = match self.classic_place_of(&join, &member) {
            Ok((place, subscription)) => {
                self.join_at(now, cluster, token, join, member, place, subscription);
                return;
            }
            Err(GroupError::MemberIdRequired) => {
                JoinGroupResponse::refused(member, GroupError::MemberIdRequired)
            }
            Err(error) => JoinGroupResponse::refused(named, error),
        };
        self.out.reply(token, Response::JoinGroup(refused));
    }

    fn classic_place_of(
        &mut self,
        join: &JoinGroup,
        member: &MemberId,
    ) -> Result<(Place, Subscription), GroupError> {
        if self.settings.migration_policy == crate::group::MigrationPolicy::Disabled {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        let max_size = self.settings.consumer_max_size;
        let state = &self.enter_consumer(&join.group).ok_or(GroupError::UnknownMemberId)?.state;
        if state.members.len() >= max_size && !state.members.contains_key(member) {
            return Err(GroupError::GroupMaxSizeReached);
        }
        if !state.supports(&join.protocol_type, &join.protocols) {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        let is_new = join.member.is_empty();
        if is_new && join.instance.is_none() && join.id_required {
            return Err(GroupError::MemberIdRequired);
        }
        let stands = join.instance.as_ref().map(|instance| state.instance(instance));
        let place = match stands {
            None => Place::ItsOwn,
            Some(None) if is_new => Place::ItsOwn,
            Some(None) => return Err(GroupError::UnknownMemberId),
            Some(Some(former)) if is_new => Place::InsteadOf(former.clone()),
            Some(Some(current)) if current != member => return Err(GroupError::FencedInstanceId),
            Some(Some(_)) => Place::ItsOwn,
        };
        let subscription = join.protocols.first().and_then(|(_, bytes)| Subscription::decode(bytes));
        Ok((place, subscription.ok_or(GroupError::UnknownServerError)?))
    }

    #[expect(clippy::too_many_arguments, reason = "what a request has been taken apart into")]
    fn join_at(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        join: JoinGroup,
        member: MemberId,
        place: Place,
        subscription: Subscription,
    ) {
        let id = join.group.clone();
        let timeouts_ms = (join.rebalance_timeout_ms, join.session_timeout_ms);
        let protocol = join.protocols.first().map(|(name, _)| name.clone());
        let classic =
            ClassicMemberMetadata { session_timeout_ms: join.session_timeout_ms, protocols: join.protocols };
        let report = ConsumerGroupHeartbeat {
            group: id.clone(),
            member: member.clone(),
            makes_member_id: false,
            member_epoch: MemberEpoch::JOIN,
            instance: join.instance,
            rack: subscription.rack,
            client_id: join.client_id,
            client_host: join.client_host,
            rebalance_timeout_ms: Some(join.rebalance_timeout_ms).filter(|timeout| *timeout >= 0),
            subscribed_topics: Some(subscription.topics),
            subscribed_regex: Some("".into()),
            server_assignor: None,
            owned: Some(known_partitions(cluster, &subscription.owned)),
        };
        if let Place::InsteadOf(former) = &place
            && !self.consumer[&id].state.is_classic(former)
            && self.succeed_in_classic_group(now, cluster, token, former, &report, &classic, timeouts_ms)
        {
            return;
        }
        self.follow(now, cluster, report, place, Some(classic), Vec::new());
        let current = &self.consumer[&id].state.members[&member].current;
        let response = JoinGroupResponse {
            error: None,
            generation: Generation(current.epoch.0),
            protocol_type: Some(ProtocolName::new(CONSUMER_TYPE)),
            protocol,
            leader: MemberId::none(),
            skip_assignment: false,
            member: member.clone(),
            members: Vec::new(),
        };
        let rebalance_timeout = rebalance_timeout(timeouts_ms.0);
        let mut turn = self.turn(now);
        turn.cancel(member_join_key(&id, &member));
        turn.arm(member_sync_key(&id, &member), rebalance_timeout);
        let newest = self.out.newest();
        self.out.answer_after(newest, token, Response::JoinGroup(response));
    }

    /// A static member that was the last to speak the consumer protocol comes back with the classic one: the group is a
    /// classic one from then on. Says whether it was so.
    #[expect(clippy::too_many_arguments, reason = "what a request has been taken apart into")]
    fn succeed_in_classic_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        former: &MemberId,
        report: &ConsumerGroupHeartbeat,
        classic: &ClassicMemberMetadata,
        timeouts_ms: (i32, i32),
    ) -> bool {
        let id = &report.group;
        let state = &self.consumer[id].state;
        let before = &state.members[former];
        let metadata = before.metadata.updated(report, Some(classic.clone()));
        // What it was given does not fit what it wants now, is about to be given anew, or is another's still.
        let mut others = state.members.iter().filter(|(member, _)| *member != former);
        let is_stale = others.any(|(_, other)| !other.is_reconciled_to(state.target_epoch))
            || before.metadata.subscribed_topics != metadata.subscribed_topics
            || before.expression().is_some()
            || state.epoch > state.target_epoch;
        let successor = Successor { former, member: &report.member, metadata: &metadata };
        let leaving = std::slice::from_ref(former);
        let Some(group) = self.downgrade_of(now, cluster, id, leaving, Some(&successor)) else {
            return false;
        };
        let answer = group.joined_as_follower(&report.member);
        self.become_classic_group(now, id, group, None, is_stale);
        if !is_stale {
            let newest = self.out.newest();
            self.out.answer_after(newest, token, Response::JoinGroup(answer));
        } else if let Some((group, mut turn)) = self.enter_live(now, id) {
            group.rejoin_moved(&mut turn, &report.member, timeouts_ms, token);
            group.rebalance(
                &mut turn,
                "the last member of the consumer protocol came back with the classic one",
            );
        }
        true
    }

    /// SyncGroup at a consumer group: gives the member what it has now.
    /// Errors: `UnknownMemberId`, `FencedInstanceId`, `IllegalGeneration`, `InconsistentGroupProtocol`,
    /// `RebalanceInProgress` (there is a newer target: it is to join anew).
    pub(in crate::group) fn sync_consumer_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        sync: SyncGroup,
    ) {
        match self.classic_member_sync(now, cluster, sync) {
            Err(error) => self.out.reply(token, Response::SyncGroup(Err(error))),
            Ok(assignment) => {
                let newest = self.out.newest();
                self.out.answer_after(newest, token, Response::SyncGroup(Ok(assignment)));
            }
        }
    }

    fn classic_member_sync(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        sync: SyncGroup,
    ) -> Result<Assignment, GroupError> {
        let id = &sync.group;
        let state = &self.consumer[id].state;
        let (member, classic) = state.classic_member(&sync.member, sync.instance.as_ref())?;
        if sync.generation.0 != member.current.epoch.0 {
            return Err(GroupError::IllegalGeneration);
        }
        let (protocol, subscription) = classic.protocols.first().ok_or(GroupError::UnknownServerError)?;
        if sync.protocol_type.as_ref().is_some_and(|name| name.as_str() != CONSUMER_TYPE)
            || sync.protocol.as_ref().is_some_and(|name| name != protocol)
        {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        let timeout = rebalance_timeout(member.metadata.rebalance_timeout_ms);
        if state.target_epoch > member.current.epoch
            && member.current.state != MemberState::UnrevokedPartitions
        {
            self.expect_join(now, id, &sync.member, timeout);
            return Err(GroupError::RebalanceInProgress);
        }
        let version = Subscription::decode(subscription).ok_or(GroupError::UnknownServerError)?.version;
        let assigned = named_partitions(cluster, &member.current.partitions());
        let session = session_timeout(&member.metadata, cluster, id);
        let mut turn = self.turn(now);
        turn.cancel(member_sync_key(id, &sync.member));
        turn.arm(session_key(id, &sync.member), session);
        Ok(Assignment {
            protocol_type: sync.protocol_type,
            protocol: sync.protocol,
            assignment: encode_assignment(version, &assigned),
        })
    }

    /// Heartbeat at a consumer group: keeps the member's session, and tells it when to join anew.
    /// Errors: `UnknownMemberId`, `FencedInstanceId`, `IllegalGeneration`, `RebalanceInProgress`.
    pub(in crate::group) fn classic_member_heartbeat(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        heartbeat: &Heartbeat,
    ) {
        let result = self.hear_classic_member(now, cluster, heartbeat);
        let newest = self.out.newest().filter(|_| result.is_ok());
        self.out.answer_after(newest, token, Response::Heartbeat(result));
    }

    fn hear_classic_member(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        heartbeat: &Heartbeat,
    ) -> Result<(), GroupError> {
        let id = &heartbeat.group;
        let named = (&heartbeat.member, heartbeat.instance.as_ref());
        let (member, _) = self.consumer[id].state.classic_member(named.0, named.1)?;
        if heartbeat.generation.0 != member.current.epoch.0 {
            return Err(GroupError::IllegalGeneration);
        }
        let session = session_timeout(&member.metadata, cluster, id);
        self.turn(now).arm(session_key(id, named.0), session);
        // There may be nobody else to notice it: when the policy keeps a group of such members a consumer group.
        self.refresh_target(now, cluster, id);
        let state = &self.consumer[id].state;
        let (member, _) = state.classic_member(named.0, named.1)?;
        let is_to_join = member.current.epoch < state.target_epoch
            || match member.current.state {
                MemberState::Stable => false,
                MemberState::UnrevokedPartitions => true,
                MemberState::UnreleasedPartitions => !state.waits_for_others(named.0, member),
            };
        if !is_to_join {
            return Ok(());
        }
        let timeout = rebalance_timeout(member.metadata.rebalance_timeout_ms);
        self.expect_join(now, id, named.0, timeout);
        Err(GroupError::RebalanceInProgress)
    }

    fn refresh_target(&mut self, now: Now, cluster: &dyn Cluster, id: &GroupId) {
        let default_assignor = self.settings.default_assignor();
        let Some(group) = self.consumer.get_mut(id) else { return };
        let mut draft = Draft { id, group, records: Vec::new(), default_assignor };
        draft.raise_epoch_if_changed(cluster, false);
        draft.assign(now, cluster);
        let records = draft.records;
        self.append_draft(records);
    }

    /// The member has its rebalance timeout from when it was first told.
    fn expect_join(&mut self, now: Now, id: &GroupId, member: &MemberId, timeout: std::time::Duration) {
        let key = member_join_key(id, member);
        if !self.out.timers.is_armed(&key) {
            self.turn(now).arm(key, timeout);
        }
    }

    /// LeaveGroup at a consumer group: members of either protocol go by their ids, static ones also by their instance ids
    /// alone, as operators name them.
    pub(in crate::group) fn leave_consumer_group_as_classic(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        leave: LeaveGroup,
    ) -> Vec<LeftMember> {
        let mut leaving: Vec<MemberId> = Vec::new();
        let mut results = Vec::with_capacity(leave.members.len());
        for named in leave.members {
            let found = self.consumer[&leave.group].state.leaving_member(&named);
            let result = found.map(|member| {
                if !leaving.contains(&member) {
                    leaving.push(member);
                }
            });
            results.push(LeftMember { member: named.member, instance: named.instance, result });
        }
        if !leaving.is_empty() {
            self.expel(now, cluster, &leave.group, &leaving, "left");
        }
        results
    }
}

impl ConsumerGroup {
    /// Whether a consumer with these protocols finds one in common with all others of the classic protocol.
    fn supports(&self, protocol_type: &ProtocolName, protocols: &[(ProtocolName, Bytes)]) -> bool {
        let (count, supporters) = supporters(self);
        let by_all = |name: &ProtocolName| supporters.get(name.as_str()).copied().unwrap_or(0) == count;
        protocol_type.as_str() == CONSUMER_TYPE && protocols.iter().any(|(name, _)| by_all(name))
    }

    fn classic_member(
        &self,
        id: &MemberId,
        instance: Option<&InstanceId>,
    ) -> Result<(&ConsumerMember, &ClassicMemberMetadata), GroupError> {
        if let Some(instance) = instance {
            match self.instance(instance) {
                None => return Err(GroupError::UnknownMemberId),
                Some(current) if current != id => return Err(GroupError::FencedInstanceId),
                Some(_) => (),
            }
        }
        let member = self.members.get(id).ok_or(GroupError::UnknownMemberId)?;
        Ok((member, member.metadata.classic.as_ref().ok_or(GroupError::UnknownMemberId)?))
    }

    fn leaving_member(&self, named: &LeavingMember) -> Result<MemberId, GroupError> {
        let member = match &named.instance {
            None => self.members.get_key_value(&named.member).map(|(member, _)| member),
            Some(instance) => self.instance(instance),
        };
        let member = member.ok_or(GroupError::UnknownMemberId)?;
        if !named.member.is_empty() && named.member != *member {
            return Err(GroupError::FencedInstanceId);
        }
        Ok(member.clone())
    }

    /// Whether something that is meant for the member is still another's.
    fn waits_for_others(&self, id: &MemberId, member: &ConsumerMember) -> bool {
        let target = self.targets.get(id).into_iter().flatten();
        let mut places = target
            .flat_map(|(topic, partitions)| partitions.iter().map(move |partition| (*topic, *partition)));
        places.any(|(topic, partition)| {
            let has = member.current.assigned.get(&topic).is_some_and(|has| has.contains_key(&partition));
            !has && self.owner(topic, partition).is_some()
        })
    }
}

/// As Kafka names members of consumer groups that bring no id.
fn new_member_id(random: Uuid) -> MemberId {
    MemberId::new(&random.to_string())
}
