use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::{TimestampMs, TopicId};
use crate::group::assignor::{Partitions, Subscriber};
use crate::group::{Cluster, ConsumerGroupMetadata, ConsumerRecord, Now, TargetAssignmentMetadata};

use super::live::Draft;
use super::subscription::metadata_hash;

impl Draft<'_> {
    /// Looks whether the topics are still as they were when the group epoch was last raised, and raises it if not, or if
    /// `changed` says that the members want others.
    pub fn raise_epoch_if_changed(&mut self, cluster: &dyn Cluster, changed: bool) {
        let version = Some(cluster.topics_version());
        if !changed && self.group.topics_version == version {
            return;
        }
        self.group.topics_version = version;
        let state = &self.group.state;
        let metadata_hash = metadata_hash(cluster, &state.subscribed_topics(cluster));
        if changed || metadata_hash != state.metadata_hash {
            self.raise_epoch(metadata_hash);
        }
    }

    pub fn raise_epoch(&mut self, metadata_hash: i64) {
        let epoch = self.group.state.epoch.next();
        if self.group.state.has_partition_metadata {
            self.write(ConsumerRecord::PartitionMetadata(None));
        }
        self.write(ConsumerRecord::Group(Some(ConsumerGroupMetadata { epoch, metadata_hash })));
    }

    /// Makes a target assignment for the group epoch if there is none yet, and the last one is old enough. Of members only
    /// changes are written.
    pub fn assign(&mut self, now: Now, cluster: &dyn Cluster) {
        let state = &self.group.state;
        let interval = cluster.consumer_timing(self.id).assignment_interval;
        if state.epoch <= state.target_epoch || !may_assign(state.target_timestamp, interval, now.wall) {
            return;
        }
        let by_name = state.subscribed_topics(cluster);
        let subscriptions = state.subscriptions(&by_name);
        let topics: BTreeMap<TopicId, i32> =
            by_name.values().map(|topic| (topic.id, topic.partition_count)).collect();
        let nothing = Partitions::new();
        let members: Vec<Subscriber<'_>> = (state.members.iter())
            .map(|(id, member)| Subscriber {
                member: id,
                instance: member.metadata.instance.as_ref(),
                topics: subscriptions[id].clone(),
                current: state.targets.get(id).unwrap_or(&nothing),
            })
            .collect();
        let assignor = state.preferred_assignor().unwrap_or(self.default_assignor);
        let assignment = assignor.assign(&topics, &members);
        let changed: Vec<_> =
            assignment.into_iter().filter(|(id, target)| state.targets.get(id) != Some(target)).collect();
        let epoch = state.epoch;
        for (member, target) in changed {
            self.write(ConsumerRecord::TargetMember(member, Some(target)));
        }
        let made = TargetAssignmentMetadata { epoch, timestamp: now.wall };
        self.write(ConsumerRecord::Target(Some(made)));
    }
}

/// So that many members that come at once are assigned together.
pub(in crate::group) fn may_assign(last: TimestampMs, interval: Duration, now: TimestampMs) -> bool {
    let interval_ms = i64::try_from(interval.as_millis()).unwrap_or(i64::MAX);
    last == TimestampMs(0) || now.0 >= last.0.saturating_add(interval_ms)
}
