use std::time::Duration;

use crate::base::TimestampMs;
use crate::group::assignor::Assignor;
use crate::group::outbox::{Then, Turn};
use crate::group::{
    AppendId, Cluster, ConsumerMemberMetadata, ConsumerRecord, Coordinator, GroupError, GroupId, MemberId,
    MemberState, Now, Record, TimerKey,
};

use super::downgrade::is_of_group;
use super::group::ConsumerGroup;

/// One consumer group in memory: what the log says of it, and what is on its way to the log. Requests go by that, their
/// answers wait until it is durable.
#[derive(Clone, Debug, Default)]
pub(in crate::group) struct LiveConsumerGroup {
    pub state: ConsumerGroup,
    /// The version of the cluster's topics that the group last looked at; `None`: it has not since the start.
    pub topics_version: Option<i64>,
    /// When all patterns were last looked up, whether they stood for other topics then or not; `None`: not since the start.
    pub expressions_resolved_at: Option<TimestampMs>,
}

/// Changes to one group, each in force as soon as it is written.
pub(super) struct Draft<'a> {
    pub id: &'a GroupId,
    pub group: &'a mut LiveConsumerGroup,
    pub records: Vec<Record>,
    /// For groups whose members ask for none.
    pub default_assignor: Assignor,
}

impl Draft<'_> {
    pub fn write(&mut self, record: ConsumerRecord) {
        self.group.state.replay(&record);
        self.records.push(Record::Consumer { group: self.id.clone(), record });
    }

    /// Takes a member out with all its records.
    pub fn write_removal(&mut self, member: &MemberId) {
        self.write(ConsumerRecord::CurrentAssignment(member.clone(), None));
        self.write(ConsumerRecord::TargetMember(member.clone(), None));
        self.write(ConsumerRecord::Member(member.clone(), None));
    }
}

impl Coordinator {
    /// A consumer group for whoever changes it, made from the log if it was not in memory.
    pub(super) fn enter_consumer(&mut self, id: &GroupId) -> Option<&mut LiveConsumerGroup> {
        if !self.consumer.contains_key(id) {
            if self.classic.contains_key(id) {
                return None;
            }
            let state = self.known(id)?.consumer.as_deref()?.clone();
            self.consumer.insert(id.clone(), LiveConsumerGroup { state, ..LiveConsumerGroup::default() });
        }
        self.consumer.get_mut(id)
    }

    /// The group as whoever writes sees it; `None`: there is none, or it is of another kind.
    pub(in crate::group) fn consumer_group(&self, id: &GroupId) -> Option<&ConsumerGroup> {
        match self.consumer.get(id) {
            Some(live) => Some(&live.state),
            None if self.classic.contains_key(id) => None,
            None => self.known(id)?.consumer.as_deref(),
        }
    }

    /// Sends a draft's records on their way. `None`: it has none.
    pub(super) fn append_draft(&mut self, records: Vec<Record>) -> Option<AppendId> {
        if records.is_empty() { None } else { Some(self.out.append(records, Then::Nothing)) }
    }

    /// After the log is loaded: every member gets a whole session to be heard of, and whoever has to give something back a
    /// whole rebalance timeout.
    pub(in crate::group) fn consumer_group_loaded(&mut self, now: Now, cluster: &dyn Cluster, id: &GroupId) {
        if self.enter_consumer(id).is_some() {
            self.arm_consumer_members(now, cluster, id);
        }
    }

    fn arm_consumer_members(&mut self, now: Now, cluster: &dyn Cluster, id: &GroupId) {
        let Some(live) = self.consumer.get(id) else { return };
        let members: Vec<(MemberId, Duration, Option<Duration>)> = (live.state.members.iter())
            .map(|(member, of)| {
                let revoking = of.current.state == MemberState::UnrevokedPartitions;
                let revoking = revoking && of.metadata.classic.is_none();
                let revoking = revoking.then(|| rebalance_timeout(of.metadata.rebalance_timeout_ms));
                (member.clone(), session_timeout(&of.metadata, cluster, id), revoking)
            })
            .collect();
        let mut turn = self.turn(now);
        for (member, session, revoking) in members {
            turn.arm(session_key(id, &member), session);
            if let Some(timeout) = revoking {
                turn.arm(revocation_key(id, &member), timeout);
            }
        }
    }

    /// Records that did not become durable have changed nothing: the groups are made anew of what is, and of what may still be.
    pub(in crate::group) fn consumer_append_failed(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        failed: &[Record],
        error: GroupError,
    ) {
        let mut groups: Vec<&GroupId> = (failed.iter())
            .filter_map(|record| match record {
                Record::Consumer { group, .. } => Some(group),
                _ => None,
            })
            .collect();
        groups.dedup();
        for id in groups {
            let mut written = self.replayed.alone(id);
            let under_way = self.out.in_flight.iter().flat_map(|append| &append.records);
            under_way
                .filter(|record| is_of_group(record, id))
                .for_each(|record| written.replay(record.clone()));
            match written.group(id).and_then(|written| written.consumer.clone()) {
                Some(state) => {
                    // It may have become a classic group, which now it never was.
                    if let Some(mut classic) = self.classic.remove(id) {
                        classic.dissolve(&mut self.turn(now), error);
                    }
                    let live = LiveConsumerGroup { state: *state, ..LiveConsumerGroup::default() };
                    self.consumer.insert(id.clone(), live);
                    self.arm_consumer_members(now, cluster, id);
                }
                None if self.consumer.remove(id).is_some() => {
                    // It may have been a classic group, which it still is.
                    let has_members = written.group(id).is_some_and(|written| written.has_members());
                    if has_members {
                        self.enter(now, id);
                    }
                }
                None => (),
            }
        }
    }
}

pub(super) fn session_key(group: &GroupId, member: &MemberId) -> TimerKey {
    TimerKey::Session { group: group.clone(), member: member.clone() }
}

pub(super) fn revocation_key(group: &GroupId, member: &MemberId) -> TimerKey {
    TimerKey::Revocation { group: group.clone(), member: member.clone() }
}

pub(super) fn member_join_key(group: &GroupId, member: &MemberId) -> TimerKey {
    TimerKey::MemberJoin { group: group.clone(), member: member.clone() }
}

pub(super) fn member_sync_key(group: &GroupId, member: &MemberId) -> TimerKey {
    TimerKey::MemberSync { group: group.clone(), member: member.clone() }
}

pub(super) fn cancel_timers(turn: &mut Turn<'_>, group: &GroupId, member: &MemberId) {
    turn.cancel(session_key(group, member));
    turn.cancel(revocation_key(group, member));
    turn.cancel(member_join_key(group, member));
    turn.cancel(member_sync_key(group, member));
}

/// How long the member may be silent: what is set for the group, or, in the classic protocol, what it has asked for.
pub(super) fn session_timeout(
    metadata: &ConsumerMemberMetadata,
    cluster: &dyn Cluster,
    group: &GroupId,
) -> Duration {
    match &metadata.classic {
        Some(classic) => rebalance_timeout(classic.session_timeout_ms),
        None => cluster.consumer_timing(group).session_timeout,
    }
}

pub(super) fn rebalance_timeout(milliseconds: i32) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}
