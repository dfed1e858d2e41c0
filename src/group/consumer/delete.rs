use crate::group::outbox::Then;
use crate::group::{ConsumerRecord, Coordinator, GroupId, Record};

use super::group::ConsumerGroup;

impl ConsumerGroup {
    /// What makes the log forget the group, its own tombstone last. As Kafka 4.3.1 does, it takes away what only Kafka 4.0 has
    /// written, whether it is there or not.
    pub fn tombstones(&self, id: &GroupId, records: &mut Vec<Record>) {
        let members = self.members.keys();
        let currents = members.clone().map(|member| ConsumerRecord::CurrentAssignment(member.clone(), None));
        let targets = members.clone().map(|member| ConsumerRecord::TargetMember(member.clone(), None));
        let metadata = members.map(|member| ConsumerRecord::Member(member.clone(), None));
        let expressions = self.expressions.keys();
        let expressions =
            expressions.map(|expression| ConsumerRecord::RegularExpression(expression.clone(), None));
        let all = (currents.chain(targets).chain([ConsumerRecord::Target(None)]).chain(metadata))
            .chain(expressions)
            .chain([ConsumerRecord::PartitionMetadata(None), ConsumerRecord::Group(None)]);
        records.extend(all.map(|record| Record::Consumer { group: id.clone(), record }));
    }
}

impl Coordinator {
    /// A consumer group without members gives way to a classic one of the same name; its offsets stay. `false`: it has
    /// members and stays.
    pub(in crate::group) fn make_room_for_classic(&mut self, id: &GroupId) -> bool {
        let Some(group) = self.consumer_group(id) else { return true };
        if !group.members.is_empty() {
            return false;
        }
        let mut records = Vec::new();
        group.tombstones(id, &mut records);
        self.consumer.remove(id);
        self.out.append(records, Then::Nothing);
        true
    }
}
