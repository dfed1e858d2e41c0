use crate::group::{
    AppendId, Coordinator, GroupError, GroupId, Now, Record, ReplyToken, Response,
    outbox::{Then, Waiting},
};

impl Coordinator {
    /// Forgets groups without members, with their offsets. Errors, each for its group: `GroupIdNotFound`, `NonEmptyGroup`.
    pub(in crate::group) fn delete_groups(&mut self, now: Now, token: ReplyToken, groups: Vec<GroupId>) {
        let mut records = Vec::new();
        let mut deleted = Vec::new();
        let mut results = Vec::new();
        for id in groups {
            let result = self.check_delete(&id, &deleted);
            if result.is_ok() {
                self.tombstones_of(&id, &mut records);
                deleted.push(id.clone());
            }
            results.push((id, result));
        }
        let response = Response::DeleteGroups(results);
        if deleted.is_empty() {
            return self.out.reply(token, response);
        }
        let append = self.delete(now, records, deleted);
        self.out.wait(append, Waiting::Answer { token, response });
    }

    fn check_delete(&self, id: &GroupId, deleted: &[GroupId]) -> Result<(), GroupError> {
        if deleted.contains(id) {
            return Err(GroupError::GroupIdNotFound);
        }
        if let Some(group) = self.consumer_group(id) {
            return if group.members.is_empty() { Ok(()) } else { Err(GroupError::NonEmptyGroup) };
        }
        if let Some(group) = self.share_group(id) {
            return if group.members.is_empty() { Ok(()) } else { Err(GroupError::NonEmptyGroup) };
        }
        match self.classic.get(id) {
            Some(group) if group.is_empty() => Ok(()),
            Some(_) => Err(GroupError::NonEmptyGroup),
            None if self.known(id).is_some() || self.commits_under_way(id).next().is_some() => Ok(()),
            None => Err(GroupError::GroupIdNotFound),
        }
    }

    /// What makes the log forget a group: each of its offsets, those under way included, then the group itself.
    pub(in crate::group) fn tombstones_of(&self, id: &GroupId, records: &mut Vec<Record>) {
        records.extend(self.offset_keys(id).into_iter().map(|key| Record::Offset { key, value: None }));
        match (self.consumer_group(id), self.share_group(id)) {
            (Some(group), _) => group.tombstones(id, records),
            (None, Some(group)) => group.tombstones(id, records),
            (None, None) => records.push(Record::Group { group: id.clone(), value: None }),
        }
    }

    /// Takes groups out of service and writes their tombstones.
    pub(in crate::group) fn delete(
        &mut self,
        now: Now,
        records: Vec<Record>,
        groups: Vec<GroupId>,
    ) -> AppendId {
        for id in &groups {
            self.consumer.remove(id);
            self.share.remove(id);
            if let Some(mut group) = self.classic.remove(id) {
                group.dissolve(&mut self.turn(now), GroupError::UnknownMemberId);
            }
        }
        let append = self.out.append_tombstones(records, Then::GroupsDeleted(groups.clone()));
        for id in groups {
            self.deleting.insert(id, append);
        }
        append
    }
}
