use std::collections::BTreeSet;

use crate::base::{Map, TopicId, TopicName};
use crate::group::{
    CommittedOffset, Coordinator, GroupError, OffsetDelete, OffsetKey, Record, ReplyToken, Response,
    TopicOutcomes,
    outbox::{Then, Waiting},
};

impl Coordinator {
    /// Forgets single offsets (KIP-496). Errors for all: `InvalidGroupId`, `GroupIdNotFound`, `NonEmptyGroup` (it has
    /// members that are not consumers, so nobody knows what they use). For one: `GroupSubscribedToTopic`.
    pub(in crate::group) fn delete_offsets(&mut self, token: ReplyToken, delete: OffsetDelete) {
        if let Err(error) = self.check_offset_delete(&delete) {
            return self.out.reply(token, Response::OffsetDelete(Err(error)));
        }
        let held: BTreeSet<OffsetKey> = self.offset_keys(&delete.group).into_iter().collect();
        let mut records = Vec::new();
        let mut outcomes = Vec::new();
        for (topic, partitions) in delete.topics {
            let subscribed =
                self.classic.get(&delete.group).is_some_and(|group| group.is_subscribed_to(&topic))
                    || self.consumer_group(&delete.group).is_some_and(|group| group.is_subscribed_to(&topic));
            let result = if subscribed { Err(GroupError::GroupSubscribedToTopic) } else { Ok(()) };
            for partition in partitions.iter().filter(|_| !subscribed) {
                let key =
                    OffsetKey { group: delete.group.clone(), topic: topic.clone(), partition: *partition };
                if held.contains(&key) {
                    records.push(Record::Offset { key, value: None });
                }
            }
            let partitions = partitions.into_iter().map(|partition| (partition, result)).collect();
            outcomes.push(TopicOutcomes { topic, partitions });
        }
        let response = Response::OffsetDelete(Ok(outcomes));
        if records.is_empty() {
            return self.out.reply(token, response);
        }
        let append = self.out.append(records, Then::Nothing);
        self.out.wait(append, Waiting::Answer { token, response });
    }

    fn check_offset_delete(&self, delete: &OffsetDelete) -> Result<(), GroupError> {
        if delete.group.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        if self.share_group(&delete.group).is_some() {
            return Err(GroupError::GroupIdNotFound);
        }
        match self.classic.get(&delete.group) {
            Some(group) if group.is_empty() || group.is_of_consumers() => Ok(()),
            Some(_) => Err(GroupError::NonEmptyGroup),
            None if self.known(&delete.group).is_some()
                || self.commits_under_way(&delete.group).next().is_some() =>
            {
                Ok(())
            }
            None => Err(GroupError::GroupIdNotFound),
        }
    }

    /// Forgets what was committed for topics that are gone. A newer topic of the same name keeps its offsets.
    pub(in crate::group) fn topics_deleted(&mut self, topics: &[(TopicName, TopicId)]) {
        let gone: Map<&TopicName, TopicId> = topics.iter().map(|(name, id)| (name, *id)).collect();
        let mut keys = BTreeSet::new();
        let under_way = self.out.in_flight.iter().flat_map(|append| &append.records);
        for record in under_way {
            if let Record::Offset { key, value: Some(committed) } = record
                && gone.get(&key.topic).is_some_and(|id| is_for(committed, *id))
            {
                keys.insert(key.clone());
            }
        }
        for (group, replayed) in self.replayed.groups() {
            for (topic, partitions) in replayed.topics() {
                let Some(id) = gone.get(topic) else { continue };
                let partitions = partitions.iter().filter(|(_, committed)| is_for(committed, *id));
                keys.extend(partitions.map(|(partition, _)| OffsetKey {
                    group: group.clone(),
                    topic: topic.clone(),
                    partition: *partition,
                }));
            }
            for ((topic, partition), committed) in replayed.pending.offsets() {
                if gone.get(topic).is_some_and(|id| is_for(committed, *id)) {
                    let (group, topic) = (group.clone(), topic.clone());
                    keys.insert(OffsetKey { group, topic, partition: *partition });
                }
            }
        }
        self.share_topics_deleted(&gone.values().copied().collect());
        if !keys.is_empty() {
            let records = keys.into_iter().map(|key| Record::Offset { key, value: None }).collect();
            self.out.append_tombstones(records, Then::Nothing);
        }
    }
}

/// Whether an offset was committed for the topic with this id, or before ids were stored.
fn is_for(committed: &CommittedOffset, topic_id: TopicId) -> bool {
    committed.topic_id.is_zero() || committed.topic_id == topic_id
}
