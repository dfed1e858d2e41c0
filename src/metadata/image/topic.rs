use std::collections::BTreeMap;

use crate::base::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId, TopicName};
use crate::metadata::records::{LeaderChange, LeaderRecovery, PartitionChangeRecord, PartitionRecord};
use crate::metadata::topic_name::is_internal_topic;

/// One topic with its partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicImage {
    pub id: TopicId,
    pub name: TopicName,
    pub(super) partitions: BTreeMap<PartitionIndex, PartitionImage>,
}

impl TopicImage {
    pub(super) fn new(id: TopicId, name: TopicName) -> TopicImage {
        TopicImage { id, name, partitions: BTreeMap::new() }
    }
    /// Belongs to the broker itself.
    pub fn is_internal(&self) -> bool {
        is_internal_topic(self.name.as_str())
    }
    pub fn partition(&self, partition: PartitionIndex) -> Option<&PartitionImage> {
        self.partitions.get(&partition)
    }
    /// All partitions in the order of their numbers.
    pub fn partitions(&self) -> impl Iterator<Item = (PartitionIndex, &PartitionImage)> {
        self.partitions.iter().map(|(partition, image)| (*partition, image))
    }
    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }
}

/// Who holds one partition and who leads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionImage {
    /// In order of preference.
    pub replicas: Box<[NodeId]>,
    pub isr: Box<[NodeId]>,
    pub removing_replicas: Box<[NodeId]>,
    pub adding_replicas: Box<[NodeId]>,
    pub eligible_leader_replicas: Box<[NodeId]>,
    pub last_known_elr: Box<[NodeId]>,
    /// The log folder of each replica, in the order of `replicas`; empty: not known.
    pub directories: Box<[DirectoryId]>,
    pub leader: Option<NodeId>,
    pub leader_epoch: LeaderEpoch,
    pub leader_recovery: LeaderRecovery,
    pub partition_epoch: PartitionEpoch,
}

impl PartitionImage {
    pub(super) fn new(record: &PartitionRecord) -> PartitionImage {
        PartitionImage {
            replicas: record.replicas.clone().into(),
            isr: record.isr.clone().into(),
            removing_replicas: record.removing_replicas.clone().into(),
            adding_replicas: record.adding_replicas.clone().into(),
            eligible_leader_replicas: record.eligible_leader_replicas.clone().into(),
            last_known_elr: record.last_known_elr.clone().into(),
            directories: record.directories.clone().into(),
            leader: record.leader,
            leader_epoch: record.leader_epoch,
            leader_recovery: record.leader_recovery,
            partition_epoch: record.partition_epoch,
        }
    }

    /// Takes over what `record` changes. The partition epoch rises with every change, the leader epoch with every one that
    /// names a leader or none. Source: Kafka's `PartitionRegistration.merge`.
    pub(super) fn merge(&mut self, record: &PartitionChangeRecord) {
        let parts = [
            (&mut self.replicas, &record.replicas),
            (&mut self.isr, &record.isr),
            (&mut self.removing_replicas, &record.removing_replicas),
            (&mut self.adding_replicas, &record.adding_replicas),
            (&mut self.eligible_leader_replicas, &record.eligible_leader_replicas),
            (&mut self.last_known_elr, &record.last_known_elr),
        ];
        for (held, change) in parts {
            if let Some(nodes) = change {
                *held = nodes.clone().into();
            }
        }
        if let Some(directories) = &record.directories {
            self.directories = directories.clone().into();
        }
        match record.leader {
            LeaderChange::Unchanged => {}
            LeaderChange::NoLeader => self.change_leader(None),
            LeaderChange::Leader(leader) => self.change_leader(Some(leader)),
        }
        if let Some(leader_recovery) = record.leader_recovery {
            self.leader_recovery = leader_recovery;
        }
        self.partition_epoch = PartitionEpoch(self.partition_epoch.0 + 1);
    }
    fn change_leader(&mut self, leader: Option<NodeId>) {
        self.leader = leader;
        self.leader_epoch = LeaderEpoch(self.leader_epoch.0 + 1);
    }
}
