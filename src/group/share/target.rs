use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use crate::base::TopicId;
use crate::group::assignor::{Partitions, Subscriber, simple};
use crate::group::consumer::{may_assign, metadata_hash};
use crate::group::{
    Cluster, MemberId, NamedPartitions, Now, ShareGroupMetadata, ShareRecord, ShareStateBeginning,
    TargetAssignmentMetadata,
};

use super::group::ShareGroup;
use super::live::Draft;

/// A hash over the topics that the group wants, as they are.
pub(super) fn metadata_hash_of(state: &ShareGroup, cluster: &dyn Cluster) -> i64 {
    metadata_hash(cluster, &state.subscribed_topics(cluster))
}

impl Draft<'_> {
    /// Raises the group epoch when the members want other topics (`changed`), when the topics are not as they were, or when
    /// there are partitions to be given that the target assignment does not have.
    pub fn raise_epoch_if_changed(&mut self, cluster: &dyn Cluster, changed: bool) {
        let version = Some(cluster.topics_version());
        let is_news = self.group.topics_version != version || changed;
        self.group.topics_version = version;
        let state = &self.group.state;
        let topics = state.subscribed_topics(cluster);
        let is_pending = || {
            let mut given = Partitions::new();
            for (topic, partitions) in state.targets.values().flatten() {
                given.entry(*topic).or_default().extend(partitions);
            }
            state.epoch <= state.target_epoch && state.assignable(&topics) != given
        };
        let hash = if is_news { metadata_hash(cluster, &topics) } else { state.metadata_hash };
        if changed || hash != state.metadata_hash || is_pending() {
            self.raise_epoch(hash);
        }
    }

    pub fn raise_epoch(&mut self, metadata_hash: i64) {
        let epoch = self.group.state.epoch.next();
        self.write(ShareRecord::Group(Some(ShareGroupMetadata { epoch, metadata_hash })));
    }

    /// Makes a target assignment for the group epoch if there is none yet, and the last one is old enough. Of members only
    /// changes are written.
    pub fn assign(&mut self, now: Now, cluster: &dyn Cluster) {
        let state = &self.group.state;
        let interval = cluster.share_timing(self.id).assignment_interval;
        if state.epoch <= state.target_epoch || !may_assign(state.target_timestamp, interval, now.wall) {
            return;
        }
        let topics = state.subscribed_topics(cluster);
        let assignable = state.assignable(&topics);
        let nothing = Partitions::new();
        let members: Vec<Subscriber<'_>> = (state.members.iter())
            .map(|(id, member)| {
                let wanted = member.metadata.subscribed_topics.iter().filter_map(|name| topics.get(name));
                let wanted: BTreeSet<TopicId> = wanted.map(|topic| topic.id).collect();
                let current = state.targets.get(id).unwrap_or(&nothing);
                Subscriber { member: id, instance: None, topics: Rc::new(wanted), current }
            })
            .collect();
        let assignment: BTreeMap<MemberId, Partitions> = simple::assign(&assignable, &members);
        let changed: Vec<_> =
            assignment.into_iter().filter(|(id, target)| state.targets.get(id) != Some(target)).collect();
        let epoch = state.epoch;
        for (member, target) in changed {
            self.write(ShareRecord::TargetMember(member, Some(target)));
        }
        let made = TargetAssignmentMetadata { epoch, timestamp: now.wall };
        self.write(ShareRecord::Target(Some(made)));
    }

    /// What the share coordinator is to be asked now. It is not asked again while it is being asked, for as long as it may take.
    pub fn begin_initializing(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        retry_interval: Duration,
    ) -> Option<ShareStateBeginning> {
        let asks_again =
            self.group.asked_at.is_none_or(|asked_at| now.monotonic >= asked_at + retry_interval);
        let state = &self.group.state;
        let mut state_partitions = state.state_partitions.clone();
        if asks_again {
            // Whoever asked has not told what came of it; a crash may be between.
            state_partitions.initializing.clear();
        }
        let is_stale = state_partitions != state.state_partitions;
        let view = ShareGroup { state_partitions, ..state.clone() };
        let missing = view.to_initialize(&state.subscribed_topics(cluster));
        if missing.is_empty() && !is_stale {
            return None;
        }
        let mut next = view.state_partitions;
        add(&mut next.initializing, &missing);
        let state_epoch = state.epoch;
        self.write(ShareRecord::StatePartitions(Some(next)));
        self.group.asked_at = (!missing.is_empty()).then_some(now.monotonic);
        (!missing.is_empty()).then_some(ShareStateBeginning { state_epoch, topics: missing })
    }
}

pub(super) fn add(to: &mut BTreeMap<TopicId, NamedPartitions>, added: &BTreeMap<TopicId, NamedPartitions>) {
    for (topic_id, named) in added {
        match to.get_mut(topic_id) {
            Some(present) => present.partitions.extend(named.partitions.iter().copied()),
            None => drop(to.insert(*topic_id, named.clone())),
        }
    }
}

pub(super) fn remove(
    from: &mut BTreeMap<TopicId, NamedPartitions>,
    removed: &BTreeMap<TopicId, NamedPartitions>,
) {
    for (topic_id, named) in removed {
        if let Some(present) = from.get_mut(topic_id) {
            present.partitions.retain(|partition| !named.partitions.contains(partition));
            if present.partitions.is_empty() {
                from.remove(topic_id);
            }
        }
    }
}
