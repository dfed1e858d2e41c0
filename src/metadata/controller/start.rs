use uuid::Uuid;

use super::Controller;
use crate::base::{BrokerEpoch, DirectoryId, NodeId, Offset};
use crate::metadata::image::{PartitionImage, ResourceType};
use crate::metadata::records::{
    BrokerEndpoint, ConfigRecord, FeatureLevelRecord, FeatureRange, LeaderChange, LeaderRecovery,
    PartitionChangeRecord, Record, RegisterBrokerRecord,
};

/// A feature with the levels this version can serve, and the one a fresh cluster begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feature {
    pub name: &'static str,
    pub min_level: i16,
    pub max_level: i16,
    pub first_level: i16,
}

/// Features of Apache Kafka 4.3.1, so that the folder can be given to it. `kraft.version` is kept in the metadata log's own control
/// records, not by a feature record, hence its first level of 0.
pub const FEATURES: [Feature; 7] = [
    Feature { name: "metadata.version", min_level: 7, max_level: 30, first_level: 30 },
    Feature { name: "eligible.leader.replicas.version", min_level: 0, max_level: 1, first_level: 1 },
    Feature { name: "group.version", min_level: 0, max_level: 1, first_level: 1 },
    Feature { name: "kraft.version", min_level: 0, max_level: 1, first_level: 0 },
    Feature { name: "share.version", min_level: 0, max_level: 1, first_level: 1 },
    Feature { name: "streams.version", min_level: 0, max_level: 1, first_level: 1 },
    Feature { name: "transaction.version", min_level: 0, max_level: 2, first_level: 2 },
];

/// What a cluster begins with, before its first broker registers: the levels of its features, and the `min.insync.replicas` of
/// all brokers, which Kafka sets along with eligible leader replicas (KIP-966) to what its first broker was started with.
pub fn bootstrap_records(min_insync_replicas: i32) -> Vec<Record> {
    let levels = FEATURES.iter().filter(|feature| feature.first_level > 0).map(|feature| {
        Record::FeatureLevel(FeatureLevelRecord {
            name: feature.name.to_owned(),
            feature_level: feature.first_level,
        })
    });
    let min_isr = Record::Config(ConfigRecord {
        resource_type: ResourceType::Broker.number(),
        resource_name: String::new(),
        name: "min.insync.replicas".to_owned(),
        value: Some(min_insync_replicas.to_string()),
    });
    levels.chain([min_isr]).collect()
}

/// A broker that has just started, as it makes itself known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokerStart {
    /// Random, anew for each start.
    pub incarnation_id: Uuid,
    pub endpoints: Vec<BrokerEndpoint>,
    pub rack: Option<String>,
    pub log_dirs: Vec<DirectoryId>,
    /// The last stop was in order: the logs end where they ended.
    pub was_clean: bool,
}

impl Controller<'_> {
    /// Decides how this broker enters the cluster: it registers, unfenced, since it is its own controller, and leads each
    /// partition that it holds and nobody leads. After a stop that was not clean the leader epochs of those that it led rise:
    /// under `onrush.durability=os` the logs may have lost their ends, and clients find out by the epoch (KIP-320).
    /// `next_offset`: where in the metadata log the first of the records will stand; it becomes the broker's epoch.
    pub fn start_broker(&self, start: BrokerStart, next_offset: Offset) -> Vec<Record> {
        let node_id = self.config.node_id;
        let registration = Record::RegisterBroker(RegisterBrokerRecord {
            broker_id: node_id,
            is_migrating_zk_broker: false,
            incarnation_id: start.incarnation_id,
            broker_epoch: BrokerEpoch(next_offset.0),
            endpoints: start.endpoints,
            features: FEATURES.iter().map(Feature::range).collect(),
            rack: start.rack,
            fenced: false,
            in_controlled_shutdown: false,
            log_dirs: start.log_dirs,
            cordoned_log_dirs: None,
        });
        let mut records = vec![registration];
        for topic in self.image.topics() {
            for (index, partition) in topic.partitions() {
                let takes_up = match partition.leader {
                    None => may_lead(node_id, partition),
                    Some(leader) => leader == node_id && !start.was_clean,
                };
                if takes_up {
                    let change = PartitionChangeRecord::of(topic.id, index);
                    records.push(Record::PartitionChange(lead(node_id, partition, change)));
                }
            }
        }
        records
    }
}

impl Feature {
    fn range(&self) -> FeatureRange {
        FeatureRange {
            name: self.name.to_owned(),
            min_supported_version: self.min_level,
            max_supported_version: self.max_level,
        }
    }
}

/// Whether `node_id` loses nothing that was committed by leading: it is in the ISR, or eligible while the ISR is empty, or there is no
/// other replica at all.
fn may_lead(node_id: NodeId, partition: &PartitionImage) -> bool {
    partition.isr.contains(&node_id)
        || partition.isr.is_empty() && partition.eligible_leader_replicas.contains(&node_id)
        || *partition.replicas == [node_id]
}

fn lead(node_id: NodeId, partition: &PartitionImage, change: PartitionChangeRecord) -> PartitionChangeRecord {
    let emptied = |nodes: &[NodeId]| (!nodes.is_empty()).then(Vec::new);
    PartitionChangeRecord {
        leader: LeaderChange::Leader(node_id),
        isr: (!partition.isr.contains(&node_id)).then(|| vec![node_id]),
        eligible_leader_replicas: emptied(&partition.eligible_leader_replicas),
        last_known_elr: emptied(&partition.last_known_elr),
        leader_recovery: (partition.leader_recovery == LeaderRecovery::Recovering)
            .then_some(LeaderRecovery::Recovered),
        ..change
    }
}
