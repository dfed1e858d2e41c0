use crate::group::assignor::Partitions;
use crate::group::{
    Cluster, ConsumerGroupHeartbeat, ConsumerRecord, Coordinator, CurrentAssignment, GroupError, GroupId,
    MemberEpoch, MemberId, Now, Record,
};

use super::group::{ConsumerGroup, ConsumerMember};
use super::live::{Draft, LiveConsumerGroup};
use super::pattern::compile;
use super::upgrade::Upgrade;

/// Where a member stands in its group when it reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// It is in it, or comes as a new one.
    ItsOwn,
    /// It takes over from the member that stood for its instance.
    InsteadOf(MemberId),
}

impl Coordinator {
    /// Decides whether the member may report, and as whom, and whether a classic group becomes a consumer group by it;
    /// changes nothing.
    pub(super) fn place_of(
        &mut self,
        cluster: &dyn Cluster,
        heartbeat: &ConsumerGroupHeartbeat,
    ) -> Result<(Place, Option<Upgrade>), GroupError> {
        let joins = heartbeat.member_epoch == MemberEpoch::JOIN;
        let nobody = ConsumerGroup::default();
        let max_size = self.settings.consumer_max_size;
        if self.share_group(&heartbeat.group).is_some() {
            return Err(GroupError::GroupIdNotFound);
        }
        self.enter_consumer(&heartbeat.group);
        let upgrade = if joins { self.upgrade_of(cluster, &heartbeat.group)? } else { None };
        let state = match (&upgrade, self.consumer_group(&heartbeat.group)) {
            (Some(upgrade), _) => &upgrade.state,
            (None, Some(state)) => state,
            (None, None) if !joins => return Err(GroupError::GroupIdNotFound),
            (None, None) => &nobody,
        };
        let member = state.members.get(&heartbeat.member);
        if member.is_none() && state.members.len() >= max_size {
            return Err(GroupError::GroupMaxSizeReached);
        }
        let place = match &heartbeat.instance {
            None => match member {
                Some(member) => member.check_epoch(heartbeat).map(|()| Place::ItsOwn),
                None if joins => Ok(Place::ItsOwn),
                None => Err(GroupError::UnknownMemberId),
            },
            Some(instance) => match state.instance(instance) {
                Some(former) if joins && *former == heartbeat.member => Ok(Place::ItsOwn),
                Some(former) if joins => {
                    // One that speaks the classic protocol does not say that it goes only for a while.
                    let has_left = state.members[former].current.epoch == MemberEpoch::LEAVE_STATIC
                        || state.is_classic(former);
                    let instead = || Place::InsteadOf(former.clone());
                    has_left.then(instead).ok_or(GroupError::UnreleasedInstanceId)
                }
                None if joins => Ok(Place::ItsOwn),
                None => Err(GroupError::UnknownMemberId),
                Some(current) if *current != heartbeat.member => Err(GroupError::FencedInstanceId),
                Some(current) => state.members[current].check_epoch(heartbeat).map(|()| Place::ItsOwn),
            },
        }?;
        if let Some(expression) = heartbeat.subscribed_regex.as_deref()
            && !expression.is_empty()
            && !state.expressions.contains_key(expression)
        {
            compile(expression)?;
        }
        Ok((place, upgrade))
    }

    /// Puts the group of a first member into memory. A classic group without members gives way to it, one with members
    /// becomes it; its offsets stay.
    pub(super) fn make_consumer_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        id: &GroupId,
        upgrade: Option<Upgrade>,
        records: &mut Vec<Record>,
    ) {
        if self.consumer.contains_key(id) {
            return;
        }
        if let Some(upgrade) = upgrade {
            return self.become_consumer_group(now, cluster, id, upgrade, records);
        }
        let was_classic =
            self.classic.contains_key(id) || self.known(id).is_some_and(|known| known.metadata.is_some());
        if was_classic {
            records.push(Record::Group { group: id.clone(), value: None });
        }
        if let Some(mut group) = self.classic.remove(id) {
            group.dissolve(&mut self.turn(now), GroupError::UnknownMemberId);
        }
        self.consumer.insert(id.clone(), LiveConsumerGroup::default());
    }
}

impl ConsumerMember {
    /// A member is heard in its epoch; and in the one before, as it may not know better, if it has nothing it should not.
    fn check_epoch(&self, heartbeat: &ConsumerGroupHeartbeat) -> Result<(), GroupError> {
        let (said, current) = (heartbeat.member_epoch, &self.current);
        let missed_the_last = || {
            let within = |owned: &Partitions| {
                owned.iter().all(|(topic, partitions)| {
                    let assigned = current.assigned.get(topic);
                    assigned.is_some_and(|assigned| {
                        partitions.iter().all(|partition| assigned.contains_key(partition))
                    })
                })
            };
            said == current.previous_epoch && heartbeat.owned.as_ref().is_some_and(within)
        };
        let heard =
            said == MemberEpoch::JOIN || said == current.epoch || said < current.epoch && missed_the_last();
        if heard { Ok(()) } else { Err(GroupError::FencedMemberEpoch) }
    }
}

impl Draft<'_> {
    /// Lets `new` take over all that `former` had.
    pub fn replace_static_member(&mut self, former: &MemberId, new: &MemberId) {
        let member = self.group.state.members[former].clone();
        let target = self.group.state.targets.get(former).cloned().unwrap_or_default();
        let current = CurrentAssignment {
            epoch: MemberEpoch::JOIN,
            previous_epoch: MemberEpoch::JOIN,
            ..member.current
        };
        self.write_removal(former);
        self.write(ConsumerRecord::Member(new.clone(), Some(member.metadata)));
        self.write(ConsumerRecord::TargetMember(new.clone(), Some(target)));
        self.write(ConsumerRecord::CurrentAssignment(new.clone(), Some(current)));
    }
}
