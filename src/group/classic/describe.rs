use crate::group::{Coordinator, DescribedGroup, GroupError, GroupId, ProtocolName, ReplyToken, Response};

use super::ClassicState;
use super::group::ClassicGroup;

impl Coordinator {
    /// Says how groups are doing; one that is not durably there is not there. Missing ones are `GroupIdNotFound`, which
    /// versions before 6 tell as a group in state `Dead`.
    pub(in crate::group) fn describe_groups(&mut self, token: ReplyToken, groups: Vec<GroupId>) {
        let described = groups.into_iter().map(|id| {
            let result = self.describe(&id).ok_or(GroupError::GroupIdNotFound);
            (id, result)
        });
        let described = described.collect();
        self.out.reply(token, Response::DescribeGroups(described));
    }

    fn describe(&self, id: &GroupId) -> Option<DescribedGroup> {
        let replayed =
            self.replayed.group(id).filter(|known| known.consumer.is_none() && known.share.is_none())?;
        match self.classic.get(id) {
            Some(group) => Some(group.describe()),
            None => Some(ClassicGroup::from_replayed(id, replayed).describe()),
        }
    }
}

impl ClassicGroup {
    fn describe(&self) -> DescribedGroup {
        let stable = self.state == ClassicState::Stable;
        let protocol = self.protocol.as_ref().filter(|_| stable);
        DescribedGroup {
            state: self.state.name(),
            protocol_type: self.protocol_type.clone().unwrap_or_else(|| ProtocolName::new("")),
            protocol: protocol.cloned().unwrap_or_else(|| ProtocolName::new("")),
            members: self.members.values().map(|member| member.as_described(protocol)).collect(),
        }
    }
}
