use std::collections::{BTreeMap, BTreeSet};

use crate::base::{Set, TopicId};
use crate::group::{
    Coordinator, GroupError, GroupId, NamedPartitions, ReplyToken, Response, ShareRecord,
    ShareStateBeginning, ShareStateStep, StatePartitions,
};

use super::live::Draft;
use super::target::{add, remove};

impl Coordinator {
    /// Notes for which partitions the share coordinator remembers how far the group has come, one step of asking it at a time.
    /// Errors: `GroupIdNotFound`; for steps that begin something `NonEmptyGroup`, as members would go by what was.
    pub(in crate::group) fn change_share_state(
        &mut self,
        token: ReplyToken,
        id: &GroupId,
        step: ShareStateStep,
    ) {
        match self.decide_share_state(id, step) {
            Err(error) => self.out.reply(token, Response::ShareState(Err(error))),
            Ok(beginning) => {
                let newest = self.out.newest();
                self.out.answer_after(newest, token, Response::ShareState(Ok(beginning)));
            }
        }
    }

    fn decide_share_state(
        &mut self,
        id: &GroupId,
        step: ShareStateStep,
    ) -> Result<ShareStateBeginning, GroupError> {
        if self.is_of_another_kind(id) {
            return Err(GroupError::GroupIdNotFound);
        }
        if matches!(step, ShareStateStep::BeginAlter(_)) && self.enter_share(id).is_none() {
            self.share.insert(id.clone(), Default::default());
        }
        let group = self.enter_share(id).ok_or(GroupError::GroupIdNotFound)?;
        let begins = matches!(step, ShareStateStep::BeginAlter(_) | ShareStateStep::BeginDelete(_));
        if begins && !group.state.members.is_empty() {
            return Err(GroupError::NonEmptyGroup);
        }
        let mut next = group.state.state_partitions.clone();
        let topics = match step {
            ShareStateStep::Look => next.initialized.clone(),
            ShareStateStep::BeginAlter(topics) => {
                add(&mut next.initializing, &topics);
                topics
            }
            ShareStateStep::Begun { initialized, failed } => {
                remove(&mut next.initializing, &initialized);
                remove(&mut next.initializing, &failed);
                add(&mut next.initialized, &initialized);
                initialized
            }
            ShareStateStep::BeginDelete(topics) => begin_delete(&mut next, topics.as_ref()),
            ShareStateStep::Deleted(topics) => {
                next.deleting.retain(|topic_id, _| !topics.contains(topic_id));
                Default::default()
            }
        };
        if next.initializing.is_empty() {
            group.asked_at = None;
        }
        let beginning = ShareStateBeginning { state_epoch: group.state.epoch, topics };
        if next != group.state.state_partitions {
            let mut draft = Draft { id, group, records: Vec::new() };
            draft.write(ShareRecord::StatePartitions(Some(next)));
            let records = draft.records;
            self.append_share(records);
        }
        Ok(beginning)
    }

    /// What was remembered for topics that are gone is no matter of their groups any more; the share coordinator finds out by
    /// itself.
    pub(in crate::group) fn share_topics_deleted(&mut self, topics: &Set<TopicId>) {
        let knows = |state: &StatePartitions| {
            let ids = state.initialized.keys().chain(state.initializing.keys()).chain(state.deleting.keys());
            ids.into_iter().any(|id| topics.contains(id))
        };
        let known = self.replayed.groups().map(|(id, _)| id).chain(self.share.keys());
        let groups: BTreeSet<GroupId> = (known)
            .filter(|id| self.share_group(id).is_some_and(|group| knows(&group.state_partitions)))
            .cloned()
            .collect();
        for id in groups {
            let group = self.enter_share(&id).expect("it was just seen");
            let mut next = group.state.state_partitions.clone();
            next.initialized.retain(|topic_id, _| !topics.contains(topic_id));
            next.initializing.retain(|topic_id, _| !topics.contains(topic_id));
            next.deleting.retain(|topic_id, _| !topics.contains(topic_id));
            let mut draft = Draft { id: &id, group, records: Vec::new() };
            draft.write(ShareRecord::StatePartitions(Some(next)));
            let records = draft.records;
            self.append_share(records);
        }
    }
}

/// Moves `topics` (`None`: all) to those that are being forgotten, and says which partitions these are. Topics that somebody began to
/// forget and never told to be forgotten are among them, without partitions: any may be meant.
fn begin_delete(
    next: &mut StatePartitions,
    topics: Option<&BTreeSet<TopicId>>,
) -> BTreeMap<TopicId, NamedPartitions> {
    let is_meant = |topic_id: &TopicId| topics.is_none_or(|topics| topics.contains(topic_id));
    let mut gone = BTreeMap::new();
    for from in [&mut next.initialized, &mut next.initializing] {
        let meant: BTreeMap<_, _> =
            from.iter().filter(|(id, _)| is_meant(id)).map(|(id, named)| (*id, named.clone())).collect();
        from.retain(|id, _| !is_meant(id));
        add(&mut gone, &meant);
    }
    for (id, named) in &gone {
        next.deleting.insert(*id, named.topic.clone());
    }
    for (id, topic) in next.deleting.iter().filter(|(id, _)| is_meant(id)) {
        let unknown = || NamedPartitions { topic: topic.clone(), partitions: BTreeSet::new() };
        gone.entry(*id).or_insert_with(unknown);
    }
    gone
}
