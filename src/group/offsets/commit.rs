use crate::base::TimestampMs;
use crate::group::{
    CommitPartition, CommittedOffset, Coordinator, Generation, GroupError, Now, OffsetCommit, OffsetKey,
    Record, ReplyToken, Response, TopicOutcomes,
    names::NAME_BYTES_MAX,
    outbox::{Then, Waiting},
};

impl Coordinator {
    /// Remembers offsets; answered when they are durable. Without a generation anybody may commit for a group that has no
    /// members, and thereby makes one that did not exist.
    /// Errors for all: `IllegalGeneration`, `GroupIdNotFound`, `UnknownMemberId`, `FencedInstanceId`, `RebalanceInProgress`
    /// (the members of the generation are not told their assignments yet). For one: `OffsetMetadataTooLarge`.
    pub(in crate::group) fn commit_offsets(&mut self, now: Now, token: ReplyToken, commit: OffsetCommit) {
        if let Err(error) = self.check_commit(now, &commit) {
            return self.out.reply(token, Response::OffsetCommit(Err(error)));
        }
        let (records, outcomes) = self.records_of(now, commit);
        let response = Response::OffsetCommit(Ok(outcomes));
        if records.is_empty() {
            return self.out.reply(token, response);
        }
        let append = self.out.append(records, Then::Nothing);
        self.out.wait(append, Waiting::Answer { token, response });
    }

    /// What is to be written for `commit`, and what is told of each of its offsets once it is.
    pub(super) fn records_of(&self, now: Now, commit: OffsetCommit) -> (Vec<Record>, Vec<TopicOutcomes>) {
        let expire_timestamp = commit
            .retention_ms
            .map_or(TimestampMs::NONE, |kept_ms| TimestampMs(now.wall.0.saturating_add(kept_ms)));
        let mut records = Vec::new();
        let mut outcomes = Vec::new();
        for topic in commit.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for CommitPartition { partition, offset, leader_epoch, metadata } in topic.partitions {
                if self.is_too_long(&metadata) {
                    partitions.push((partition, Err(GroupError::OffsetMetadataTooLarge)));
                    continue;
                }
                partitions.push((partition, Ok(())));
                let key = OffsetKey { group: commit.group.clone(), topic: topic.topic.clone(), partition };
                let value = CommittedOffset {
                    offset,
                    leader_epoch,
                    metadata,
                    commit_timestamp: now.wall,
                    expire_timestamp,
                    topic_id: topic.topic_id,
                };
                records.push(Record::Offset { key, value: Some(value) });
            }
            outcomes.push(TopicOutcomes { topic: topic.topic, partitions });
        }
        (records, outcomes)
    }

    fn check_commit(&mut self, now: Now, commit: &OffsetCommit) -> Result<(), GroupError> {
        if commit.group.as_str().len() > NAME_BYTES_MAX {
            return Err(GroupError::InvalidGroupId);
        }
        if self.share_group(&commit.group).is_some() {
            return Err(GroupError::GroupIdNotFound);
        }
        if let Some(group) = self.consumer_group(&commit.group) {
            return group.check_commit(commit);
        }
        if let Some((group, mut turn)) = self.enter_live(now, &commit.group) {
            return group.commit(&mut turn, commit);
        }
        if commit.generation < Generation(0) {
            return Ok(());
        }
        if self.known(&commit.group).is_some() {
            return Err(GroupError::UnknownMemberId);
        }
        if commit.knows_member_epochs {
            Err(GroupError::GroupIdNotFound)
        } else {
            Err(GroupError::IllegalGeneration)
        }
    }

    /// Kafka counts UTF-16 units; of those there are never more than bytes.
    fn is_too_long(&self, metadata: &str) -> bool {
        let longest = self.settings.offset_metadata_max_bytes;
        metadata.len() > longest && metadata.encode_utf16().count() > longest
    }
}
