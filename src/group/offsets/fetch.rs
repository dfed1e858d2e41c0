use crate::base::{PartitionIndex, TopicId};
use crate::group::{
    CommittedOffset, Coordinator, FetchTopic, FetchedOffset, FetchedTopic, GroupError, GroupId, OffsetFetch,
    ReplyToken, Response, outbox::Waiting, replay::ReplayedGroup,
};

impl Coordinator {
    /// Says what a group has committed durably; of a group that does not exist, nothing. Errors, where a member of a consumer
    /// group asks: `GroupIdNotFound`, `UnknownMemberId`, `StaleMemberEpoch`.
    pub(in crate::group) fn fetch_offsets(&mut self, token: ReplyToken, fetch: OffsetFetch) {
        if let Err(error) = self.check_fetch(&fetch) {
            return self.out.reply(token, Response::OffsetFetch(Err(error)));
        }
        if fetch.require_stable {
            self.fetch_stable(token, fetch);
        } else {
            self.fetch_committed(token, &fetch);
        }
    }

    fn check_fetch(&self, fetch: &OffsetFetch) -> Result<(), GroupError> {
        let known = self.replayed.group(&fetch.group);
        if known.is_some_and(|known| known.share.is_some()) {
            return Err(GroupError::GroupIdNotFound);
        }
        match known.and_then(|known| known.consumer.as_deref()) {
            Some(group) => group.check_fetch(fetch),
            None => Ok(()),
        }
    }

    /// The same, once every commit under way is decided (KIP-447).
    pub(in crate::group) fn fetch_stable(&mut self, token: ReplyToken, fetch: OffsetFetch) {
        match self.out.newest() {
            Some(append) => self.out.wait(append, Waiting::Fetch { token, request: fetch }),
            None => self.fetch_committed(token, &fetch),
        }
    }

    pub(in crate::group) fn fetch_committed(&mut self, token: ReplyToken, fetch: &OffsetFetch) {
        let topics = match &fetch.topics {
            Some(topics) => {
                topics.iter().map(|topic| self.fetched(&fetch.group, topic, fetch.require_stable)).collect()
            }
            None => {
                let group = self.replayed.group(&fetch.group);
                group.map(|group| all_offsets(group, fetch.require_stable)).unwrap_or_default()
            }
        };
        self.out.reply(token, Response::OffsetFetch(Ok(topics)));
    }

    fn fetched(&self, group: &GroupId, asked: &FetchTopic, require_stable: bool) -> FetchedTopic {
        let group = self.replayed.group(group);
        let partitions = asked.partitions.iter().map(|partition| {
            if require_stable && group.is_some_and(|group| group.pending.holds(&asked.topic, *partition)) {
                return FetchedOffset { is_unstable: true, ..FetchedOffset::none(*partition) };
            }
            let committed = group.and_then(|group| group.offset(&asked.topic, *partition));
            match committed.filter(|committed| is_of_topic(committed, asked.topic_id)) {
                Some(committed) => fetched_offset(*partition, committed),
                None => FetchedOffset::none(*partition),
            }
        });
        FetchedTopic {
            topic: asked.topic.clone(),
            topic_id: asked.topic_id,
            partitions: partitions.collect(),
        }
    }
}

/// Whether an offset was committed for this very topic, as far as both sides know which one they mean.
fn is_of_topic(committed: &CommittedOffset, topic_id: TopicId) -> bool {
    committed.topic_id.is_zero() || topic_id.is_zero() || committed.topic_id == topic_id
}

fn all_offsets(group: &ReplayedGroup, require_stable: bool) -> Vec<FetchedTopic> {
    (group.topics())
        .map(|(topic, partitions)| FetchedTopic {
            topic: topic.clone(),
            topic_id: partitions.values().next_back().map_or(TopicId::ZERO, |committed| committed.topic_id),
            partitions: partitions
                .iter()
                .map(|(partition, committed)| {
                    match require_stable && group.pending.holds(topic, *partition) {
                        true => FetchedOffset { is_unstable: true, ..FetchedOffset::none(*partition) },
                        false => fetched_offset(*partition, committed),
                    }
                })
                .collect(),
        })
        .collect()
}

fn fetched_offset(partition: PartitionIndex, committed: &CommittedOffset) -> FetchedOffset {
    FetchedOffset {
        partition,
        offset: committed.offset,
        leader_epoch: committed.leader_epoch,
        metadata: committed.metadata.clone(),
        is_unstable: false,
    }
}
