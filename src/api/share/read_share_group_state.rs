//! ReadShareGroupState (key 84), version 0: KIP-932.

use std::rc::Rc;

use kafka_protocol::messages::read_share_group_state_request::PartitionData;
use kafka_protocol::messages::read_share_group_state_response::{
    PartitionResult, ReadStateResult, StateBatch as WireBatch,
};
use kafka_protocol::messages::{ReadShareGroupStateRequest, ReadShareGroupStateResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::state_wire::ask_all;
use crate::base::LeaderEpoch;
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;
use crate::share::{StateBatch, StateQuestion};

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ReadShareGroupStateRequest,
) -> Outcome<R::File> {
    let topics: Vec<_> =
        request.topics.iter().map(|topic| (topic.topic_id, topic.partitions.as_slice())).collect();
    let question = |asked: &PartitionData| {
        (asked.partition, Some(StateQuestion::Read { leader_epoch: LeaderEpoch(asked.leader_epoch) }))
    };
    let answers = ask_all(&context, &request.group_id, &topics, question).await;
    let results = answers.into_iter().map(|(topic_id, rows)| {
        let rows = rows.into_iter().map(|(partition, answer)| {
            let row = PartitionResult::default().with_partition(partition);
            match answer {
                Ok(kept) => row
                    .with_state_epoch(kept.state_epoch)
                    .with_start_offset(kept.start_offset.0)
                    .with_state_batches(kept.batches.iter().map(wire_batch).collect()),
                Err((code, message)) => row.with_error_code(code).with_error_message(message),
            }
        });
        ReadStateResult::default().with_topic_id(topic_id).with_partitions(rows.collect())
    });
    Outcome::answer(&header, &ReadShareGroupStateResponse::default().with_results(results.collect()))
}

fn wire_batch(batch: &StateBatch) -> WireBatch {
    WireBatch::default()
        .with_first_offset(batch.first.0)
        .with_last_offset(batch.last.0)
        .with_delivery_state(batch.state.code())
        .with_delivery_count(batch.delivery_count)
}
