//! TxnOffsetCommit (key 28), versions 0 to 5: leader epochs KIP-320 (2), who commits KIP-447 (3), TRANSACTION_ABORTABLE KIP-890 (4),
//! the partition of `__consumer_offsets` joins the transaction by itself (5).

use std::rc::Rc;

use kafka_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequestPartition;
use kafka_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use kafka_protocol::messages::{TopicName as WireTopicName, TxnOffsetCommitRequest, TxnOffsetCommitResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::coordinator_of;
use super::wire::{generation, instance, wire_topic};
use crate::base::{
    LeaderEpoch, Offset, PartitionIndex, ProducerEpoch, ProducerId, TopicName, TopicPartition,
};
use crate::group::{
    BatchProducer, CommitPartition, CommitTopic, GroupId, MemberId, OffsetCommit, Request, Response,
    TopicOutcomes, TxnOffsetCommit,
};
use crate::metadata::{Image, OFFSETS_TOPIC};
use crate::partition::Verification;
use crate::protocol::{ErrorCode, RequestHeader, query_code};
use crate::runtime::Runtime;
use crate::shard::Shard;
use crate::txn::{NamedPartition, TransactionError, TransactionalId, TransactionalProducer};

/// First version whose clients know that a coordinator may be loading.
const FIRST_LOADING_VERSION: i16 = 2;
/// First version whose clients know TRANSACTION_ABORTABLE.
const FIRST_ABORTABLE_VERSION: i16 = 4;
/// First version that adds the group's partition to the transaction by itself.
const FIRST_ADDING_VERSION: i16 = 5;

type Answers = Vec<TxnOffsetCommitResponseTopic>;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: TxnOffsetCommitRequest,
) -> Outcome<R::File> {
    let (mut answers, commit) = split(&context.shard().image.borrow(), &request);
    // As in Kafka, a request that names nothing that exists is not even looked at by the coordinator.
    if !commit.topics.is_empty() {
        let asked: Vec<(TopicName, Vec<PartitionIndex>)> = (commit.topics.iter())
            .map(|topic| {
                (topic.topic.clone(), topic.partitions.iter().map(|asked| asked.partition).collect())
            })
            .collect();
        match stored(&context, &header, &request, commit).await {
            Ok(outcomes) => merge(&mut answers, outcomes),
            Err(code) => {
                for (topic, partitions) in asked {
                    let refused = partitions.into_iter().map(|partition| answer(partition.0, code)).collect();
                    add(&mut answers, wire_topic(&topic), refused);
                }
            }
        }
    }
    Outcome::answer(&header, &TxnOffsetCommitResponse::default().with_topics(answers))
}

/// What is refused for naming no partition that exists, and what the coordinator is to remember.
fn split(image: &Image, request: &TxnOffsetCommitRequest) -> (Answers, OffsetCommit) {
    let mut refused = Answers::new();
    let mut topics: Vec<CommitTopic> = Vec::new();
    for topic in &request.topics {
        let known = image.topic_named(&topic.name);
        let exists = |partition: &&TxnOffsetCommitRequestPartition| {
            known.is_some_and(|known| known.partition(PartitionIndex(partition.partition_index)).is_some())
        };
        let (there, missing): (Vec<_>, Vec<_>) = topic.partitions.iter().partition(exists);
        if !missing.is_empty() {
            let code = ErrorCode::UnknownTopicOrPartition.code();
            let partitions = missing.into_iter().map(|partition| answer(partition.partition_index, code));
            add(&mut refused, topic.name.clone(), partitions.collect());
        }
        if let Some(known) = known.filter(|_| !there.is_empty()) {
            topics.push(CommitTopic {
                topic: TopicName::new(&topic.name),
                topic_id: known.id,
                partitions: there.into_iter().map(commit_partition).collect(),
            });
        }
    }
    let commit = OffsetCommit {
        group: GroupId::new(&request.group_id),
        generation: generation(request.generation_id),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        retention_ms: None,
        knows_member_epochs: true,
        topics,
    };
    (refused, commit)
}

fn commit_partition(partition: &TxnOffsetCommitRequestPartition) -> CommitPartition {
    let metadata = partition.committed_metadata.as_ref();
    CommitPartition {
        partition: PartitionIndex(partition.partition_index),
        offset: Offset(partition.committed_offset),
        leader_epoch: LeaderEpoch(partition.committed_leader_epoch),
        metadata: metadata.map(|metadata| Box::from(metadata.as_str())).unwrap_or_default(),
    }
}

/// Has the group's coordinator store `commit` in the producer's transaction. Error: what stands at each partition.
async fn stored<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    header: &RequestHeader,
    request: &TxnOffsetCommitRequest,
    commit: OffsetCommit,
) -> Result<Vec<TopicOutcomes>, i16> {
    if commit.group.is_empty() {
        return Err(ErrorCode::InvalidGroupId.code());
    }
    let coordinator =
        coordinator_of(context, commit.group.as_str()).ok_or(ErrorCode::NotCoordinator.code())?;
    let producer = TransactionalProducer {
        transactional_id: TransactionalId::new(&request.transactional_id),
        producer_id: ProducerId(request.producer_id.0),
        producer_epoch: ProducerEpoch(request.producer_epoch),
    };
    let of = BatchProducer { producer_id: producer.producer_id, producer_epoch: producer.producer_epoch };
    let verification = verified(context, header.version, coordinator, producer).await?;
    let work = move |shard: Rc<Shard<R>>| {
        let request = Request::TxnOffsetCommit(TxnOffsetCommit { producer: of, commit });
        shard.ask_group_coordinator_verified(coordinator, request, verification)
    };
    let result = match context.router.on(context.owner_of(coordinator), work).await.flatten() {
        Some(Response::TxnOffsetCommit(result)) => result.map_err(|error| error.code()),
        _ => Err(ErrorCode::NotCoordinator.code()),
    };
    result.map_err(|code| match code {
        14 if header.version < FIRST_LOADING_VERSION => ErrorCode::CoordinatorNotAvailable.code(),
        code => code,
    })
}

/// Has the transaction coordinator say that the partition of `__consumer_offsets` is part of the transaction, or make it so,
/// where no transaction of this producer is open there.
async fn verified<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    version: i16,
    coordinator: TopicPartition,
    producer: TransactionalProducer,
) -> Result<Verification, i16> {
    let adds = version >= FIRST_ADDING_VERSION;
    if !adds && !context.shard().config().transaction_partition_verification_enable {
        return Ok(Verification::Waived);
    }
    let (producer_id, epoch) = (producer.producer_id, producer.producer_epoch);
    let guarded = context.router.on(context.owner_of(coordinator), move |shard| async move {
        shard.guard_for(coordinator, producer_id, epoch).await
    });
    let guard = match guarded.await {
        Some(Ok(Some(guard))) => guard,
        Some(Ok(None)) => return Ok(Verification::Unasked),
        Some(Err(refusal)) => return Err(query_code(&refusal)),
        None => return Err(ErrorCode::NotCoordinator.code()),
    };
    let named = NamedPartition { topic: TopicName::new(OFFSETS_TOPIC), partition: coordinator.partition };
    let asked = context.router.add_partitions_to_transaction(producer, vec![named], !adds);
    match asked.await.pop().unwrap_or(Err(TransactionError::CoordinatorNotAvailable)) {
        Ok(()) => Ok(Verification::Asked(guard)),
        Err(error) => Err(told(error, version).code()),
    }
}

/// What a client of this version is told of a refusal by the transaction coordinator.
fn told(error: TransactionError, version: i16) -> TransactionError {
    match error {
        TransactionError::ProducerFenced => TransactionError::InvalidProducerEpoch,
        TransactionError::TransactionAbortable if version < FIRST_ABORTABLE_VERSION => {
            TransactionError::InvalidTxnState
        }
        TransactionError::CoordinatorLoadInProgress if version < FIRST_LOADING_VERSION => {
            TransactionError::CoordinatorNotAvailable
        }
        error => error,
    }
}

fn merge(answers: &mut Answers, outcomes: Vec<TopicOutcomes>) {
    for outcome in outcomes {
        let told = |(partition, result): &(PartitionIndex, Result<(), crate::group::GroupError>)| {
            answer(partition.0, result.as_ref().err().map_or(0, |error| error.code()))
        };
        let partitions = outcome.partitions.iter().map(told).collect();
        add(answers, wire_topic(&outcome.topic), partitions);
    }
}

fn answer(partition: i32, error_code: i16) -> TxnOffsetCommitResponsePartition {
    TxnOffsetCommitResponsePartition::default().with_partition_index(partition).with_error_code(error_code)
}

fn add(answers: &mut Answers, name: WireTopicName, partitions: Vec<TxnOffsetCommitResponsePartition>) {
    match answers.iter_mut().find(|answer| answer.name == name) {
        Some(answer) => answer.partitions.extend(partitions),
        None => {
            answers.push(TxnOffsetCommitResponseTopic::default().with_name(name).with_partitions(partitions))
        }
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;
    use crate::group::GroupError;

    #[test]
    fn outcomes_are_told_in_every_version() {
        let mut answers = Answers::new();
        let outcome = |result| TopicOutcomes {
            topic: TopicName::new("t"),
            partitions: vec![(PartitionIndex(1), result)],
        };
        merge(&mut answers, vec![outcome(Ok(())), outcome(Err(GroupError::IllegalGeneration))]);
        let codes: Vec<i16> = answers[0].partitions.iter().map(|told| told.error_code).collect();
        assert_eq!((answers.len(), codes), (1, vec![0, 22]));
        encodes_in_every_version(ApiKey::TxnOffsetCommit, |_| {
            TxnOffsetCommitResponse::default().with_topics(answers.clone())
        });
    }

    #[test]
    fn a_refusal_is_told_in_words_that_the_version_knows() {
        let abortable = [3, 4].map(|version| told(TransactionError::TransactionAbortable, version));
        assert_eq!(abortable, [TransactionError::InvalidTxnState, TransactionError::TransactionAbortable]);
        let loading = [1, 2].map(|version| told(TransactionError::CoordinatorLoadInProgress, version));
        let expected =
            [TransactionError::CoordinatorNotAvailable, TransactionError::CoordinatorLoadInProgress];
        assert_eq!(loading, expected);
        assert_eq!(told(TransactionError::ProducerFenced, 5), TransactionError::InvalidProducerEpoch);
    }
}
