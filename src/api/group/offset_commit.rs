//! OffsetCommit (key 8), versions 2 to 9: throttling (3), the broker's retention alone KIP-211 (5), leader epochs KIP-320 (6), static
//! members KIP-345 (7), consumer groups KIP-848 (9).
//!
//! Differs from Kafka on purpose: a commit of which nothing can be stored does not make a group (Kafka keeps an empty one in
//! memory until it stops).

use std::rc::Rc;

use kafka_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use kafka_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse, TopicName as WireTopicName};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{code, generation, instance, wire_topic};
use crate::base::{LeaderEpoch, Offset, PartitionIndex, TopicName};
use crate::group::{
    self, CommitPartition, CommitTopic, GroupError, GroupId, MemberId, Request, Response, TopicOutcomes,
};
use crate::metadata::Image;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;

/// First version whose clients know error 69.
const FIRST_GROUP_ID_NOT_FOUND_VERSION: i16 = 9;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: OffsetCommitRequest,
) -> Outcome<R::File> {
    let (mut answers, commit) = {
        let image = context.shard().image.borrow();
        split(&image, &header, &request)
    };
    // As in Kafka, a request that names nothing that exists is not even looked at by the coordinator.
    if !commit.topics.is_empty() {
        let asked: Vec<TopicOutcomes> = commit.topics.iter().map(unanswered).collect();
        let pick = |response| match response {
            Response::OffsetCommit(result) => Some(result),
            _ => None,
        };
        let outcomes = ask(&context, &request.group_id, Request::OffsetCommit(commit), pick).await.flatten();
        merge(&mut answers, outcomes.unwrap_or_else(|error| refuse_all(asked, error)));
    }
    Outcome::answer(&header, &OffsetCommitResponse::default().with_topics(answers))
}

/// What is refused for naming no partition that exists, and what the coordinator is to remember.
fn split(
    image: &Image,
    header: &RequestHeader,
    request: &OffsetCommitRequest,
) -> (Vec<OffsetCommitResponseTopic>, group::OffsetCommit) {
    let mut refused: Vec<OffsetCommitResponseTopic> = Vec::new();
    let mut topics: Vec<CommitTopic> = Vec::new();
    for topic in &request.topics {
        let known = image.topic_named(&topic.name);
        let exists = |partition: &&OffsetCommitRequestPartition| {
            known.is_some_and(|known| known.partition(PartitionIndex(partition.partition_index)).is_some())
        };
        let (there, missing): (Vec<_>, Vec<_>) = topic.partitions.iter().partition(exists);
        if !missing.is_empty() {
            let partitions = missing.into_iter().map(|partition| {
                OffsetCommitResponsePartition::default()
                    .with_partition_index(partition.partition_index)
                    .with_error_code(ErrorCode::UnknownTopicOrPartition.code())
            });
            add(&mut refused, &topic.name, partitions.collect());
        }
        if let Some(known) = known.filter(|_| !there.is_empty()) {
            topics.push(CommitTopic {
                topic: TopicName::new(&topic.name),
                topic_id: known.id,
                partitions: there.into_iter().map(commit_partition).collect(),
            });
        }
    }
    let commit = group::OffsetCommit {
        group: GroupId::new(&request.group_id),
        generation: generation(request.generation_id_or_member_epoch),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        retention_ms: Some(request.retention_time_ms).filter(|ms| *ms != -1),
        knows_member_epochs: header.version >= FIRST_GROUP_ID_NOT_FOUND_VERSION,
        topics,
    };
    (refused, commit)
}

fn commit_partition(partition: &OffsetCommitRequestPartition) -> CommitPartition {
    let metadata = partition.committed_metadata.as_ref();
    CommitPartition {
        partition: PartitionIndex(partition.partition_index),
        offset: Offset(partition.committed_offset),
        leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
        metadata: metadata.map(|metadata| Box::from(metadata.as_str())).unwrap_or_default(),
    }
}

fn unanswered(topic: &CommitTopic) -> TopicOutcomes {
    let partitions = topic.partitions.iter().map(|partition| (partition.partition, Ok(())));
    TopicOutcomes { topic: topic.topic.clone(), partitions: partitions.collect() }
}

fn refuse_all(mut topics: Vec<TopicOutcomes>, error: GroupError) -> Vec<TopicOutcomes> {
    for (_, result) in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        *result = Err(error);
    }
    topics
}

/// Adds the coordinator's outcomes behind what was refused before, topic by topic, as Kafka does. If nothing was, a topic
/// that was named twice stands there twice.
fn merge(answers: &mut Vec<OffsetCommitResponseTopic>, outcomes: Vec<TopicOutcomes>) {
    let nothing_refused = answers.is_empty();
    for outcome in outcomes {
        let partitions = outcome.partitions.iter().map(|(partition, result)| {
            OffsetCommitResponsePartition::default()
                .with_partition_index(partition.0)
                .with_error_code(code(result))
        });
        let (name, partitions) = (wire_topic(&outcome.topic), partitions.collect());
        if nothing_refused {
            answers.push(OffsetCommitResponseTopic::default().with_name(name).with_partitions(partitions));
        } else {
            add(answers, &name, partitions);
        }
    }
}

fn add(
    answers: &mut Vec<OffsetCommitResponseTopic>,
    name: &WireTopicName,
    partitions: Vec<OffsetCommitResponsePartition>,
) {
    match answers.iter_mut().find(|answer| answer.name == *name) {
        Some(answer) => answer.partitions.extend(partitions),
        None => answers
            .push(OffsetCommitResponseTopic::default().with_name(name.clone()).with_partitions(partitions)),
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;

    #[test]
    fn outcomes_stand_behind_what_was_refused_of_the_same_topic() {
        let outcome = |topic: &str, partition, result| TopicOutcomes {
            topic: TopicName::new(topic),
            partitions: vec![(PartitionIndex(partition), result)],
        };
        let mut answers = Vec::new();
        merge(&mut answers, refuse_all(vec![outcome("t", 9, Ok(()))], GroupError::IllegalGeneration));
        let named_twice = ["u", "t", "u"].map(|topic| outcome(topic, 1, Ok(())));
        merge(&mut answers, named_twice.to_vec());
        let told: Vec<_> = (answers.iter())
            .flat_map(|topic| topic.partitions.iter().map(|partition| (topic.name.as_str(), partition)))
            .map(|(name, partition)| (name, partition.partition_index, partition.error_code))
            .collect();
        assert_eq!(told, [("t", 9, 22), ("t", 1, 0), ("u", 1, 0), ("u", 1, 0)]);
        assert_eq!(answers.len(), 2);
        let mut alone = Vec::new();
        merge(&mut alone, named_twice.to_vec());
        assert_eq!(alone.len(), 3);
        encodes_in_every_version(ApiKey::OffsetCommit, |_| {
            OffsetCommitResponse::default().with_topics(answers.clone())
        });
    }
}
