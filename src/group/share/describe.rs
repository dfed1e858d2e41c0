use crate::group::{
    Cluster, Coordinator, DescribedShareGroup, DescribedShareMember, GroupError, GroupId, ReplyToken,
    Response, described_topics,
};

use super::ASSIGNOR;
use super::group::ShareGroup;

impl Coordinator {
    /// Says how share groups are doing, as far as it is durable. Error, for each: `GroupIdNotFound`.
    pub(in crate::group) fn describe_share_groups(
        &mut self,
        cluster: &dyn Cluster,
        token: ReplyToken,
        groups: Vec<GroupId>,
    ) {
        let described = groups.into_iter().map(|id| {
            let group = self.replayed.group(&id).and_then(|known| known.share.as_deref());
            let group = group.map(|group| group.describe(cluster));
            (id, group.ok_or(GroupError::GroupIdNotFound))
        });
        let described = described.collect();
        self.out.reply(token, Response::ShareGroupDescribe(described));
    }
}

impl ShareGroup {
    fn describe(&self, cluster: &dyn Cluster) -> DescribedShareGroup {
        let members = self.members.iter().map(|(id, member)| DescribedShareMember {
            member: id.clone(),
            metadata: member.metadata.clone(),
            member_epoch: member.current.epoch,
            assignment: described_topics(cluster, &member.current.assigned),
        });
        DescribedShareGroup {
            state: self.state_name(),
            group_epoch: self.epoch,
            assignment_epoch: self.target_epoch,
            assignor: ASSIGNOR,
            members: members.collect(),
        }
    }
}
