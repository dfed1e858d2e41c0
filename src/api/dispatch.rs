use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use kafka_protocol::messages::{ApiKey, RequestKind};

use super::admin;
use super::auth;
use super::cluster;
use super::context::RequestContext;
use super::data;
use super::group;
use super::outcome::Outcome;
use super::share;
use super::txn;
use crate::protocol::{RequestHeader, is_served};
use crate::runtime::Runtime;

type Answer<R> = Pin<Box<dyn Future<Output = Outcome<<R as Runtime>::File>>>>;

/// Whether the body of this request is in a layout that is known. Only ApiVersions is answered when it is not.
pub fn body_can_be_read(header: &RequestHeader) -> bool {
    is_served(header.key, header.version)
}

/// Begins a request and gives the future of its answer. What has to take effect in the order of arrival does so before
/// this returns; the future may be dropped when the peer has gone.
pub fn begin<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    header: RequestHeader,
    request: Option<RequestKind>,
) -> Answer<R> {
    let context = context.clone();
    let Some(request) = request else {
        debug_assert_eq!(header.key, ApiKey::ApiVersions);
        return Box::pin(std::future::ready(cluster::api_versions::unsupported_version(&header)));
    };
    match request {
        RequestKind::Produce(request) => Box::pin(data::produce::begin(context, header, request)),
        RequestKind::Fetch(request) => Box::pin(data::fetch::handle(context, header, request)),
        RequestKind::ListOffsets(request) => Box::pin(data::list_offsets::handle(context, header, request)),
        RequestKind::OffsetForLeaderEpoch(request) => {
            Box::pin(data::offset_for_leader_epoch::handle(context, header, request))
        }
        RequestKind::DeleteRecords(request) => {
            Box::pin(data::delete_records::handle(context, header, request))
        }
        RequestKind::InitProducerId(request) => {
            Box::pin(txn::init_producer_id::handle(context, header, request))
        }
        RequestKind::AddPartitionsToTxn(request) => {
            Box::pin(txn::add_partitions_to_txn::handle(context, header, request))
        }
        RequestKind::AddOffsetsToTxn(request) => {
            Box::pin(txn::add_offsets_to_txn::handle(context, header, request))
        }
        RequestKind::EndTxn(request) => Box::pin(txn::end_txn::handle(context, header, request)),
        RequestKind::DescribeTransactions(request) => {
            Box::pin(txn::describe_transactions::handle(context, header, request))
        }
        RequestKind::ListTransactions(request) => {
            Box::pin(txn::list_transactions::handle(context, header, request))
        }
        RequestKind::ApiVersions(request) => {
            Box::pin(cluster::api_versions::handle(context, header, request))
        }
        RequestKind::Metadata(request) => Box::pin(cluster::metadata::handle(context, header, request)),
        RequestKind::DescribeCluster(request) => {
            Box::pin(cluster::describe_cluster::handle(context, header, request))
        }
        RequestKind::DescribeTopicPartitions(request) => {
            Box::pin(cluster::describe_topic_partitions::handle(context, header, request))
        }
        RequestKind::FindCoordinator(request) => {
            Box::pin(cluster::find_coordinator::handle(context, header, request))
        }
        RequestKind::CreateTopics(request) => {
            Box::pin(admin::create_topics::handle(context, header, request))
        }
        RequestKind::DeleteTopics(request) => {
            Box::pin(admin::delete_topics::handle(context, header, request))
        }
        RequestKind::CreatePartitions(request) => {
            Box::pin(admin::create_partitions::handle(context, header, request))
        }
        RequestKind::DescribeConfigs(request) => {
            Box::pin(admin::describe_configs::handle(context, header, request))
        }
        RequestKind::AlterConfigs(request) => {
            Box::pin(admin::alter_configs::handle(context, header, request))
        }
        RequestKind::IncrementalAlterConfigs(request) => {
            Box::pin(admin::incremental_alter_configs::handle(context, header, request))
        }
        RequestKind::ListConfigResources(request) => {
            Box::pin(admin::list_config_resources::handle(context, header, request))
        }
        RequestKind::DescribeLogDirs(request) => {
            Box::pin(admin::describe_log_dirs::handle(context, header, request))
        }
        RequestKind::OffsetCommit(request) => {
            Box::pin(group::offset_commit::handle(context, header, request))
        }
        RequestKind::TxnOffsetCommit(request) => {
            Box::pin(group::txn_offset_commit::handle(context, header, request))
        }
        RequestKind::WriteTxnMarkers(request) => {
            Box::pin(txn::write_txn_markers::handle(context, header, request))
        }
        RequestKind::DescribeProducers(request) => {
            Box::pin(data::describe_producers::handle(context, header, request))
        }
        RequestKind::OffsetFetch(request) => Box::pin(group::offset_fetch::handle(context, header, request)),
        RequestKind::JoinGroup(request) => Box::pin(group::join_group::handle(context, header, request)),
        RequestKind::Heartbeat(request) => Box::pin(group::heartbeat::handle(context, header, request)),
        RequestKind::LeaveGroup(request) => Box::pin(group::leave_group::handle(context, header, request)),
        RequestKind::SyncGroup(request) => Box::pin(group::sync_group::handle(context, header, request)),
        RequestKind::DescribeGroups(request) => {
            Box::pin(group::describe_groups::handle(context, header, request))
        }
        RequestKind::ListGroups(request) => Box::pin(group::list_groups::handle(context, header, request)),
        RequestKind::ConsumerGroupHeartbeat(request) => {
            Box::pin(group::consumer_group_heartbeat::handle(context, header, request))
        }
        RequestKind::ConsumerGroupDescribe(request) => {
            Box::pin(group::consumer_group_describe::handle(context, header, request))
        }
        RequestKind::ShareGroupHeartbeat(request) => {
            Box::pin(share::share_group_heartbeat::handle(context, header, request))
        }
        RequestKind::ShareGroupDescribe(request) => {
            Box::pin(share::share_group_describe::handle(context, header, request))
        }
        RequestKind::ShareFetch(request) => Box::pin(share::share_fetch::handle(context, header, request)),
        RequestKind::ShareAcknowledge(request) => {
            Box::pin(share::share_acknowledge::handle(context, header, request))
        }
        RequestKind::InitializeShareGroupState(request) => {
            Box::pin(share::initialize_share_group_state::handle(context, header, request))
        }
        RequestKind::ReadShareGroupState(request) => {
            Box::pin(share::read_share_group_state::handle(context, header, request))
        }
        RequestKind::WriteShareGroupState(request) => {
            Box::pin(share::write_share_group_state::handle(context, header, request))
        }
        RequestKind::DeleteShareGroupState(request) => {
            Box::pin(share::delete_share_group_state::handle(context, header, request))
        }
        RequestKind::ReadShareGroupStateSummary(request) => {
            Box::pin(share::read_share_group_state_summary::handle(context, header, request))
        }
        RequestKind::DescribeShareGroupOffsets(request) => {
            Box::pin(share::describe_share_group_offsets::handle(context, header, request))
        }
        RequestKind::AlterShareGroupOffsets(request) => {
            Box::pin(share::alter_share_group_offsets::handle(context, header, request))
        }
        RequestKind::DeleteShareGroupOffsets(request) => {
            Box::pin(share::delete_share_group_offsets::handle(context, header, request))
        }
        RequestKind::DeleteGroups(request) => {
            Box::pin(group::delete_groups::handle(context, header, request))
        }
        RequestKind::OffsetDelete(request) => {
            Box::pin(group::offset_delete::handle(context, header, request))
        }
        RequestKind::SaslHandshake(_) => Box::pin(std::future::ready(auth::sasl_handshake::handle(&header))),
        RequestKind::SaslAuthenticate(_) => {
            Box::pin(std::future::ready(auth::sasl_authenticate::handle(&header)))
        }
        _ => Box::pin(std::future::ready(Outcome::Close(format!("{:?} has no handler", header.key)))),
    }
}
