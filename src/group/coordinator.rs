use crate::base::{Map, ProducerId, TopicId, TopicName};

use super::classic::ClassicGroup;
use super::cluster::Cluster;
use super::consumer::LiveConsumerGroup;
use super::error::{AppendFailure, GroupError};
use super::event::{AppendId, Effect, Event, Now, ReplyToken, TimerKey};
use super::names::GroupId;
use super::outbox::{InFlight, Outbox, Then, Turn, Waiting};
use super::records::{MalformedRecord, Record};
use super::replay::{ReplayedGroup, ReplayedGroups};
use super::request::{Request, Response};
use super::settings::GroupSettings;
use super::share::LiveShareGroup;

/// The groups whose ids hash to one partition of `__consumer_offsets`.
///
/// It decides and never waits: `handle` takes one event and gives the effects it has. What the log says stands in
/// `replayed`, which only `replay` changes, at start and whenever an append has become durable; rebalances under way live
/// in memory only, and end with a record. So an answer that rests on a record is given when that record is durable, and a
/// reader is never shown one that is not. Every request is answered exactly once.
/// Source: Kafka's `GroupMetadataManager`, `OffsetMetadataManager`, `CoordinatorRuntime`. Runs on the partition's core.
pub struct Coordinator {
    pub(super) settings: GroupSettings,
    pub(super) phase: Phase,
    pub(super) replayed: ReplayedGroups,
    /// Groups that have, have had or are about to have members since the start.
    pub(super) classic: Map<GroupId, ClassicGroup>,
    /// The same of consumer groups; no group is in two of these.
    pub(super) consumer: Map<GroupId, LiveConsumerGroup>,
    /// The same of share groups.
    pub(super) share: Map<GroupId, LiveShareGroup>,
    /// Groups whose tombstone is under way: gone for whoever writes, still there for whoever reads.
    pub(super) deleting: Map<GroupId, AppendId>,
    pub(super) out: Outbox,
    /// Groups that this round of looking for expired offsets has not come to.
    pub(super) to_expire: Vec<GroupId>,
    /// Topics deleted before all of the log was read: what it says of them goes once it is.
    gone_while_loading: Vec<(TopicName, TopicId)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Loading,
    Serving,
    Resigned,
}

impl Coordinator {
    /// A coordinator that knows nothing yet: `replay` every record of the partition, then hand it `Event::Loaded`.
    pub fn new(settings: GroupSettings) -> Coordinator {
        Coordinator {
            settings,
            phase: Phase::Loading,
            replayed: ReplayedGroups::default(),
            classic: Map::default(),
            consumer: Map::default(),
            share: Map::default(),
            deleting: Map::default(),
            out: Outbox::default(),
            to_expire: Vec::new(),
            gone_while_loading: Vec::new(),
        }
    }

    /// Takes in one record of the log while loading. A malformed one changes nothing.
    /// `producer_id`: whose transaction it belongs to.
    pub fn replay(
        &mut self,
        producer_id: Option<ProducerId>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), MalformedRecord> {
        assert_ne!(self.phase, Phase::Serving, "records are read from the log only while loading");
        if self.phase == Phase::Resigned {
            return Ok(());
        }
        match (Record::decode(key, value)?, producer_id) {
            (Some(record), Some(producer_id)) => self.replayed.replay_pending(producer_id, record),
            (Some(record), None) => self.replayed.replay(record),
            (None, _) => {}
        }
        Ok(())
    }

    /// Takes in an end marker of the log while loading.
    pub fn replay_end(&mut self, producer_id: ProducerId, commits: bool) {
        assert_ne!(self.phase, Phase::Serving, "markers are read from the log only while loading");
        if self.phase == Phase::Loading {
            self.replayed.end_transaction(producer_id, commits);
        }
    }

    /// Handles one event; the effects are to be carried out in their order.
    pub fn handle(&mut self, now: Now, cluster: &dyn Cluster, event: Event) -> Vec<Effect> {
        match event {
            Event::Loaded => self.loaded(now, cluster),
            Event::Request { token, request } => self.serve(now, cluster, token, request),
            Event::TimerFired(key) => self.timer_fired(now, cluster, key),
            Event::AppendDone(id) => self.append_done(now, id),
            Event::AppendFailed(id, failure) => self.append_failed(now, cluster, id, failure),
            Event::TopicsDeleted(topics) if self.phase == Phase::Loading => {
                self.gone_while_loading.extend(topics)
            }
            Event::TopicsDeleted(topics) => self.topics_deleted(&topics),
            Event::Resigned => self.resigned(),
        }
        std::mem::take(&mut self.out.effects)
    }

    fn serve(&mut self, now: Now, cluster: &dyn Cluster, token: ReplyToken, request: Request) {
        let refusal = match self.phase {
            Phase::Serving => None,
            Phase::Loading => Some(GroupError::CoordinatorLoadInProgress),
            Phase::Resigned => Some(GroupError::NotCoordinator),
        };
        if let Some(error) = refusal {
            return self.out.reply(token, request.refused(error));
        }
        match request {
            Request::JoinGroup(join) => self.join_group(now, cluster, token, join),
            Request::SyncGroup(sync) => self.sync_group(now, cluster, token, sync),
            Request::Heartbeat(heartbeat) => self.heartbeat(now, cluster, token, &heartbeat),
            Request::LeaveGroup(leave) => self.leave_group(now, cluster, token, leave),
            Request::OffsetCommit(commit) => self.commit_offsets(now, token, commit),
            Request::TxnOffsetCommit(commit) => self.commit_in_transaction(now, token, commit),
            Request::EndTransaction(end) => self.end_transaction(token, end),
            Request::OffsetFetch(fetch) => self.fetch_offsets(token, fetch),
            Request::OffsetDelete(delete) => self.delete_offsets(token, delete),
            Request::DeleteGroups(groups) => self.delete_groups(now, token, groups),
            Request::DescribeGroups(groups) => self.describe_groups(token, groups),
            Request::ListGroups(list) => self.list_groups(token, &list),
            Request::ConsumerGroupHeartbeat(heartbeat) => {
                self.consumer_group_heartbeat(now, cluster, token, heartbeat);
            }
            Request::ConsumerGroupDescribe(groups) => self.describe_consumer_groups(cluster, token, groups),
            Request::ShareGroupHeartbeat(heartbeat) => {
                self.share_group_heartbeat(now, cluster, token, heartbeat);
            }
            Request::ShareGroupDescribe(groups) => self.describe_share_groups(cluster, token, groups),
            Request::ShareState { group, step } => self.change_share_state(token, &group, step),
        }
    }

    fn loaded(&mut self, now: Now, cluster: &dyn Cluster) {
        assert_ne!(self.phase, Phase::Serving, "a log is loaded once");
        if self.phase == Phase::Resigned {
            return;
        }
        self.phase = Phase::Serving;
        let mut with_members: Vec<GroupId> = (self.replayed.groups())
            .filter(|(_, group)| group.has_members())
            .map(|(id, _)| id.clone())
            .collect();
        with_members.sort_unstable();
        for id in with_members {
            if self.consumer_group(&id).is_some() {
                self.consumer_group_loaded(now, cluster, &id);
            } else if self.share_group(&id).is_some() {
                self.share_group_loaded(now, cluster, &id);
            } else {
                self.enter(now, &id).expect("the log knows the group");
            }
        }
        self.arm_expiry(now);
        let gone = std::mem::take(&mut self.gone_while_loading);
        self.topics_deleted(&gone);
    }

    fn timer_fired(&mut self, now: Now, cluster: &dyn Cluster, key: TimerKey) {
        if !self.out.timers.fired(&key, now.monotonic, &mut self.out.effects) {
            return;
        }
        let group = match &key {
            TimerKey::Expiry => return self.expire(now),
            TimerKey::Revocation { group, member } => {
                return self.consumer_time_over(now, cluster, group, member, "did not give partitions back");
            }
            TimerKey::MemberJoin { group, member } => {
                return self.consumer_time_over(now, cluster, group, member, "did not join in time");
            }
            TimerKey::MemberSync { group, member } => {
                return self.consumer_time_over(now, cluster, group, member, "did not sync in time");
            }
            TimerKey::Session { group, member } if self.share.contains_key(group) => {
                return self.expel_share_member(now, cluster, group, member, "was silent");
            }
            TimerKey::Session { group, member } if self.consumer.contains_key(group) => {
                return self.consumer_time_over(now, cluster, group, member, "was silent");
            }
            TimerKey::Session { group, .. } | TimerKey::Join { group } | TimerKey::Sync { group } => group,
        };
        let Some((group, mut turn)) = self.enter_live(now, group) else { return };
        match &key {
            TimerKey::Session { member, .. } => group.session_over(&mut turn, member),
            TimerKey::Join { .. } => group.join_time_over(&mut turn),
            TimerKey::Sync { .. } => group.sync_time_over(&mut turn),
            TimerKey::Expiry
            | TimerKey::Revocation { .. }
            | TimerKey::MemberJoin { .. }
            | TimerKey::MemberSync { .. } => (),
        }
    }

    fn append_done(&mut self, now: Now, id: AppendId) {
        let Some(append) = self.out.in_flight.iter_mut().find(|append| append.id == id) else { return };
        append.done = true;
        self.take_up_done(now);
    }

    /// Takes up what is durable and has nothing undecided before it.
    fn take_up_done(&mut self, now: Now) {
        while self.out.in_flight.front().is_some_and(|append| append.done) {
            let append = self.out.in_flight.pop_front().expect("the front was just seen");
            self.take_up(now, append);
        }
    }

    fn take_up(&mut self, now: Now, append: InFlight) {
        for record in append.records {
            match append.producer {
                Some(producer) => self.replayed.replay_pending(producer.producer_id, record),
                None => self.replayed.replay(record),
            }
        }
        match append.then {
            Then::Nothing | Then::GroupCreated(_) => (),
            Then::AssignmentStored { group: id, generation } => {
                let stored = self.replayed.group(&id).and_then(|group| group.metadata.clone());
                if let (Some((group, mut turn)), Some(stored)) = (self.enter_live(now, &id), stored) {
                    group.assignment_stored(&mut turn, generation, &stored);
                }
            }
            Then::StaticMemberReplaced(replaced) => {
                if let Some((group, mut turn)) = self.enter_live(now, &replaced.group) {
                    group.static_member_stored(&mut turn, &replaced);
                }
            }
            Then::GroupsDeleted(groups) => self.deletion_decided(append.id, &groups),
            Then::TransactionEnded(end) => self.replayed.end_transaction(end.producer_id, end.commits),
        }
        for waiting in append.waiting {
            match waiting {
                Waiting::Answer { token, response } => self.out.reply(token, response),
                Waiting::Fetch { token, request } => self.fetch_committed(token, &request),
            }
        }
    }

    fn append_failed(&mut self, now: Now, cluster: &dyn Cluster, id: AppendId, failure: AppendFailure) {
        let Some(place) = self.out.in_flight.iter().position(|append| append.id == id) else { return };
        let append = self.out.in_flight.remove(place).expect("its place was just found");
        let error = failure.as_refusal();
        self.consumer_append_failed(now, cluster, &append.records, error);
        self.share_append_failed(now, cluster, &append.records);
        match append.then {
            Then::Nothing | Then::TransactionEnded(_) => (),
            Then::GroupCreated(group) => self.creation_failed(now, &group, error),
            Then::AssignmentStored { group: id, generation } => {
                if let Some((group, mut turn)) = self.enter_live(now, &id) {
                    group.assignment_failed(&mut turn, generation, error);
                }
            }
            Then::StaticMemberReplaced(replaced) => {
                let id = replaced.group.clone();
                if let Some((group, mut turn)) = self.enter_live(now, &id) {
                    group.static_member_failed(&mut turn, *replaced, error);
                }
            }
            Then::GroupsDeleted(groups) => self.deletion_decided(append.id, &groups),
        }
        for waiting in append.waiting {
            match waiting {
                Waiting::Answer { token, response } => self.out.reply(token, response.failed(error)),
                // Nothing of that append will ever show, so what is committed is stable as far as it goes.
                Waiting::Fetch { token, request } => self.fetch_stable(token, request),
            }
        }
        // What came later may have waited for this one alone.
        self.take_up_done(now);
    }

    /// A group that could not be stored is gone, and whoever waits in it must begin anew.
    fn creation_failed(&mut self, now: Now, id: &GroupId, error: GroupError) {
        if self.replayed.group(id).is_some() {
            return;
        }
        if let Some(mut group) = self.classic.remove(id) {
            let mut turn = Turn { now, settings: &self.settings, out: &mut self.out };
            group.dissolve(&mut turn, error);
        }
    }

    fn deletion_decided(&mut self, id: AppendId, groups: &[GroupId]) {
        for group in groups {
            if self.deleting.get(group) == Some(&id) {
                self.deleting.remove(group);
            }
        }
    }

    fn resigned(&mut self) {
        self.phase = Phase::Resigned;
        self.out.timers.cancel_all(&mut self.out.effects);
        let error = GroupError::NotCoordinator;
        let mut groups: Vec<ClassicGroup> = self.classic.drain().map(|(_, group)| group).collect();
        groups.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        for group in &mut groups {
            group.answer_all(&mut self.out, error);
        }
        for append in std::mem::take(&mut self.out.in_flight) {
            for waiting in append.waiting {
                match waiting {
                    Waiting::Answer { token, response } => self.out.reply(token, response.failed(error)),
                    Waiting::Fetch { token, .. } => {
                        self.out.reply(token, Response::OffsetFetch(Err(error)));
                    }
                }
            }
        }
        self.consumer.clear();
        self.share.clear();
        self.replayed = ReplayedGroups::default();
        self.deleting.clear();
        self.to_expire.clear();
    }

    /// What the log knows of a group for whoever writes: nothing once its tombstone is under way.
    pub(super) fn known(&self, id: &GroupId) -> Option<&ReplayedGroup> {
        if self.deleting.contains_key(id) { None } else { self.replayed.group(id) }
    }

    /// A group for whoever changes it, made from the log if it was not in memory.
    /// `None`: there is none, or it is a consumer or a share group.
    pub(super) fn enter(&mut self, now: Now, id: &GroupId) -> Option<(&mut ClassicGroup, Turn<'_>)> {
        if self.consumer_group(id).is_some() || self.share_group(id).is_some() {
            return None;
        }
        if !self.classic.contains_key(id) {
            let known = self.known(id)?;
            let mut group = ClassicGroup::from_replayed(id, known);
            group.loaded(&mut self.turn(now));
            self.classic.insert(id.clone(), group);
        }
        self.enter_live(now, id)
    }

    /// The same, only if the group is in memory.
    pub(super) fn enter_live(&mut self, now: Now, id: &GroupId) -> Option<(&mut ClassicGroup, Turn<'_>)> {
        let group = self.classic.get_mut(id)?;
        Some((group, Turn { now, settings: &self.settings, out: &mut self.out }))
    }

    pub(super) fn turn(&mut self, now: Now) -> Turn<'_> {
        Turn { now, settings: &self.settings, out: &mut self.out }
    }
}
