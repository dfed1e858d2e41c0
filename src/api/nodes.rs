//! The brokers that clients of one listener see, and which of them leads what.

use kafka_protocol::messages::BrokerId;
use kafka_protocol::protocol::StrBytes;

use super::context::RequestContext;
use crate::base::{NodeId, ShardId, TopicPartition};
use crate::config::Advertise;
use crate::metadata::{BrokerImage, PartitionImage};
use crate::runtime::Runtime;

/// One broker and where clients of the request's listener reach it.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub id: BrokerId,
    pub host: StrBytes,
    pub port: i32,
    pub rack: Option<StrBytes>,
}

/// All brokers that are up, in the order of their ids. With `onrush.advertise=cores` each shard is one.
pub fn nodes<R: Runtime>(context: &RequestContext<R>) -> Vec<Node> {
    let image = context.shard().image.borrow();
    let active = image.brokers().filter(|broker| broker.is_active());
    active.flat_map(|broker| nodes_of(context, broker)).collect()
}

fn nodes_of<R: Runtime>(context: &RequestContext<R>, broker: &BrokerImage) -> Vec<Node> {
    let config = context.shard().config();
    let listener = &config.listeners[context.facts.borrow().listener];
    let Some(endpoint) = broker.endpoint(&listener.name) else { return Vec::new() };
    let node = |id: NodeId, port: u16| Node {
        id: BrokerId(id.0),
        host: StrBytes::from_string(endpoint.host.clone()),
        port: i32::from(port),
        rack: broker.rack.clone().map(StrBytes::from_string),
    };
    match &config.advertise {
        Advertise::Cores { ports } if broker.id == config.node_id => {
            let shards = (0..).map(ShardId);
            ports
                .iter()
                .zip(shards)
                .map(|(port, shard)| node(node_of_shard(broker.id, shard), *port))
                .collect()
        }
        _ => vec![node(broker.id, endpoint.port)],
    }
}

/// The broker that clients are sent to for what `shard` owns.
pub fn serving_node<R: Runtime>(context: &RequestContext<R>, shard: ShardId) -> BrokerId {
    let config = context.shard().config();
    match config.advertise {
        Advertise::Node => BrokerId(config.node_id.0),
        Advertise::Cores { .. } => BrokerId(node_of_shard(config.node_id, shard).0),
    }
}

fn node_of_shard(node_id: NodeId, shard: ShardId) -> NodeId {
    NodeId(node_id.0 + i32::from(shard.0))
}

/// The broker that a client means by `id`: whatever shard it names, that is this broker.
pub fn meant_node<R: Runtime>(context: &RequestContext<R>, id: i32) -> NodeId {
    let own = context.shard().config().node_id;
    let shards = (0..context.router.owner_count()).map(ShardId);
    let is_own = shards.map(|shard| serving_node(context, shard)).any(|node| node.0 == id);
    if is_own { own } else { NodeId(id) }
}

/// A partition's replicas as clients are to see them.
pub struct Placement {
    /// `None`: nobody leads it, or its leader is down.
    pub leader: Option<BrokerId>,
    pub replicas: Vec<BrokerId>,
    pub isr: Vec<BrokerId>,
    pub offline: Vec<BrokerId>,
    pub eligible_leader_replicas: Vec<BrokerId>,
    pub last_known_elr: Vec<BrokerId>,
}

/// Where `partition` is. This broker's part of it is named by the shard that owns it.
pub fn placement<R: Runtime>(
    context: &RequestContext<R>,
    partition: TopicPartition,
    image: &PartitionImage,
    nodes: &[Node],
) -> Placement {
    let own = context.shard().config().node_id;
    let seen = |node_id: &NodeId| {
        if *node_id == own { serving_node(context, context.owner_of(partition)) } else { BrokerId(node_id.0) }
    };
    let is_up = |id: &BrokerId| nodes.iter().any(|node| node.id == *id);
    let all = |node_ids: &[NodeId]| node_ids.iter().map(seen).collect::<Vec<BrokerId>>();
    let replicas = all(&image.replicas);
    Placement {
        leader: image.leader.as_ref().map(seen).filter(is_up),
        offline: replicas.iter().filter(|id| !is_up(id)).copied().collect(),
        replicas,
        isr: all(&image.isr),
        eligible_leader_replicas: all(&image.eligible_leader_replicas),
        last_known_elr: all(&image.last_known_elr),
    }
}
