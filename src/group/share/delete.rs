use crate::group::{GroupId, Record, ShareRecord};

use super::group::ShareGroup;

impl ShareGroup {
    /// What makes the log forget the group, its own tombstone last.
    pub fn tombstones(&self, id: &GroupId, records: &mut Vec<Record>) {
        let members = self.members.keys();
        let currents = members.clone().map(|member| ShareRecord::CurrentAssignment(member.clone(), None));
        let targets = self.targets.keys().map(|member| ShareRecord::TargetMember(member.clone(), None));
        let metadata = members.map(|member| ShareRecord::Member(member.clone(), None));
        let all = (currents.chain(targets).chain([ShareRecord::Target(None)]).chain(metadata))
            .chain([ShareRecord::StatePartitions(None), ShareRecord::Group(None)]);
        records.extend(all.map(|record| Record::Share { group: id.clone(), record }));
    }
}
