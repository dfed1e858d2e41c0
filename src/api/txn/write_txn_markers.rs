//! WriteTxnMarkers (key 27), version 1: a transaction is ended by hand where its coordinator never will (KIP-664), or by another
//! broker's coordinator (KIP-98).

use std::rc::Rc;

use kafka_protocol::messages::write_txn_markers_request::WritableTxnMarker;
use kafka_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use kafka_protocol::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use crate::base::{PartitionIndex, ProducerEpoch, ProducerId, TopicName};
use crate::protocol::{RequestHeader, append_code};
use crate::runtime::Runtime;
use crate::txn::{NamedPartition, TransactionEnd};

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: WriteTxnMarkersRequest,
) -> Outcome<R::File> {
    let mut response = WriteTxnMarkersResponse::default();
    for marker in &request.markers {
        let named = |topic: &str, partition: &i32| NamedPartition {
            topic: TopicName::new(topic),
            partition: PartitionIndex(*partition),
        };
        let partitions: Vec<NamedPartition> = (marker.topics.iter())
            .flat_map(|topic| topic.partition_indexes.iter().map(|partition| named(&topic.name, partition)))
            .collect();
        let written = context.router.write_transaction_markers(end_of(marker), partitions).await;
        let mut codes = written.iter().map(|result| result.as_ref().err().map_or(0, append_code));
        let mut result = WritableTxnMarkerResult::default().with_producer_id(marker.producer_id);
        for topic in &marker.topics {
            let partitions = topic.partition_indexes.iter().zip(codes.by_ref());
            let told = partitions.map(|(partition, code)| {
                WritableTxnMarkerPartitionResult::default()
                    .with_partition_index(*partition)
                    .with_error_code(code)
            });
            let told = told.collect();
            result.topics.push(
                WritableTxnMarkerTopicResult::default().with_name(topic.name.clone()).with_partitions(told),
            );
        }
        response.markers.push(result);
    }
    Outcome::answer(&header, &response)
}

fn end_of(marker: &WritableTxnMarker) -> TransactionEnd {
    TransactionEnd {
        producer_id: ProducerId(marker.producer_id.0),
        producer_epoch: ProducerEpoch(marker.producer_epoch),
        coordinator_epoch: marker.coordinator_epoch,
        commits: marker.transaction_result,
        transaction_version: 0,
    }
}
