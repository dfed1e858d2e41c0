use crate::base::TopicId;
use crate::group::assignor::Partitions;
use crate::group::{
    Assignor, Cluster, Coordinator, DescribedConsumerGroup, DescribedConsumerMember, DescribedTopic,
    GroupError, GroupId, ReplyToken, Response,
};

use super::group::ConsumerGroup;

impl Coordinator {
    /// Says how consumer groups are doing, as far as it is durable. Error, for each: `GroupIdNotFound`.
    pub(in crate::group) fn describe_consumer_groups(
        &mut self,
        cluster: &dyn Cluster,
        token: ReplyToken,
        groups: Vec<GroupId>,
    ) {
        let default_assignor = self.settings.default_assignor();
        let described = groups.into_iter().map(|id| {
            let group = self.replayed.group(&id).and_then(|known| known.consumer.as_deref());
            let group = group.map(|group| group.describe(cluster, default_assignor));
            (id, group.ok_or(GroupError::GroupIdNotFound))
        });
        let described = described.collect();
        self.out.reply(token, Response::ConsumerGroupDescribe(described));
    }
}

impl ConsumerGroup {
    fn describe(&self, cluster: &dyn Cluster, default_assignor: Assignor) -> DescribedConsumerGroup {
        let members = self.members.iter().map(|(id, member)| DescribedConsumerMember {
            member: id.clone(),
            metadata: member.metadata.clone(),
            member_epoch: member.current.epoch,
            assignment: described_topics(cluster, &member.current.all_partitions()),
            target_assignment: match self.targets.get(id) {
                Some(target) => described_topics(cluster, target),
                None => Vec::new(),
            },
        });
        DescribedConsumerGroup {
            state: self.state().name(),
            group_epoch: self.epoch,
            assignment_epoch: self.target_epoch,
            assignor: self.preferred_assignor().unwrap_or(default_assignor).name(),
            members: members.collect(),
        }
    }
}

/// Topics that are gone have no name, and are left out.
pub(in crate::group) fn described_topics(
    cluster: &dyn Cluster,
    partitions: &Partitions,
) -> Vec<DescribedTopic> {
    let describe = |topic_id: TopicId, partitions: &std::collections::BTreeSet<_>| {
        let topic = cluster.topic_name(topic_id)?;
        Some(DescribedTopic { topic_id, topic, partitions: partitions.iter().copied().collect() })
    };
    partitions.iter().filter_map(|(topic_id, partitions)| describe(*topic_id, partitions)).collect()
}
