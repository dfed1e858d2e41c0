//! ReadShareGroupStateSummary (key 87), version 0: KIP-932.

use std::rc::Rc;

use kafka_protocol::messages::read_share_group_state_summary_request::PartitionData;
use kafka_protocol::messages::read_share_group_state_summary_response::{
    PartitionResult, ReadStateSummaryResult,
};
use kafka_protocol::messages::{ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::state_wire::ask_all;
use crate::base::LeaderEpoch;
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;
use crate::share::StateQuestion;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ReadShareGroupStateSummaryRequest,
) -> Outcome<R::File> {
    let topics: Vec<_> =
        request.topics.iter().map(|topic| (topic.topic_id, topic.partitions.as_slice())).collect();
    let question = |asked: &PartitionData| {
        let leader_epoch = LeaderEpoch(asked.leader_epoch);
        (asked.partition, Some(StateQuestion::ReadSummary { leader_epoch }))
    };
    let answers = ask_all(&context, &request.group_id, &topics, question).await;
    let results = answers.into_iter().map(|(topic_id, rows)| {
        let rows = rows.into_iter().map(|(partition, answer)| {
            let row = PartitionResult::default().with_partition(partition);
            match answer {
                Ok(kept) => row
                    .with_state_epoch(kept.state_epoch)
                    .with_leader_epoch(kept.leader_epoch.0)
                    .with_start_offset(kept.start_offset.0),
                Err((code, message)) => row.with_error_code(code).with_error_message(message),
            }
        });
        ReadStateSummaryResult::default().with_topic_id(topic_id).with_partitions(rows.collect())
    });
    let response = ReadShareGroupStateSummaryResponse::default();
    Outcome::answer(&header, &response.with_results(results.collect()))
}
