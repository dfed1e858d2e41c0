//! WriteShareGroupState (key 85), version 0: KIP-932.

use std::rc::Rc;

use kafka_protocol::messages::write_share_group_state_request::PartitionData;
use kafka_protocol::messages::write_share_group_state_response::{PartitionResult, WriteStateResult};
use kafka_protocol::messages::{WriteShareGroupStateRequest, WriteShareGroupStateResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::state_wire::ask_all;
use crate::base::{LeaderEpoch, Offset};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;
use crate::share::{DeliveryState, StateBatch, StateQuestion, WrittenState};

/// This version does not tell how many offsets are done with.
const NOT_TOLD: i32 = -1;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: WriteShareGroupStateRequest,
) -> Outcome<R::File> {
    let topics: Vec<_> =
        request.topics.iter().map(|topic| (topic.topic_id, topic.partitions.as_slice())).collect();
    let question = |asked: &PartitionData| (asked.partition, written(asked).map(StateQuestion::Write));
    let answers = ask_all(&context, &request.group_id, &topics, question).await;
    let results = answers.into_iter().map(|(topic_id, rows)| {
        let rows = rows.into_iter().map(|(partition, answer)| {
            let row = PartitionResult::default().with_partition(partition);
            match answer {
                Ok(_) => row,
                Err((code, message)) => row.with_error_code(code).with_error_message(message),
            }
        });
        WriteStateResult::default().with_topic_id(topic_id).with_partitions(rows.collect())
    });
    Outcome::answer(&header, &WriteShareGroupStateResponse::default().with_results(results.collect()))
}

/// `None`: states that do not exist, or batches that end before they begin.
fn written(asked: &PartitionData) -> Option<WrittenState> {
    let mut batches = Vec::with_capacity(asked.state_batches.len());
    for batch in &asked.state_batches {
        let (first, last) = (Offset(batch.first_offset), Offset(batch.last_offset));
        let is_sound = first.0 >= 0 && first <= last && last < Offset::MAX;
        let state = DeliveryState::of_code(batch.delivery_state).filter(|_| is_sound)?;
        batches.push(StateBatch { first, last, state, delivery_count: batch.delivery_count });
    }
    (asked.start_offset >= -1).then_some(WrittenState {
        state_epoch: asked.state_epoch,
        leader_epoch: LeaderEpoch(asked.leader_epoch),
        start_offset: Offset(asked.start_offset),
        delivery_complete_count: NOT_TOLD,
        batches,
    })
}
