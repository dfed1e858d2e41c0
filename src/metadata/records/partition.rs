use super::add_list;
use super::broker::{read_directory, write_directory};
use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed, TaggedFields};
use crate::base::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId};

/// Whether a leader was elected from outside the ISR and has not proved itself since (KIP-704).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LeaderRecovery {
    #[default]
    Recovered,
    Recovering,
}

impl LeaderRecovery {
    fn read(reader: &mut FlexibleReader<'_>) -> Result<Option<LeaderRecovery>, Malformed> {
        match reader.i8()? {
            -1 => Ok(None),
            0 => Ok(Some(LeaderRecovery::Recovered)),
            1 => Ok(Some(LeaderRecovery::Recovering)),
            _ => reader.malformed("unknown leader recovery state"),
        }
    }
    fn number(self) -> i8 {
        match self {
            LeaderRecovery::Recovered => 0,
            LeaderRecovery::Recovering => 1,
        }
    }
}

/// A partition comes into being.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionRecord {
    pub partition: PartitionIndex,
    pub topic_id: TopicId,
    /// In order of preference.
    pub replicas: Vec<NodeId>,
    pub isr: Vec<NodeId>,
    pub removing_replicas: Vec<NodeId>,
    pub adding_replicas: Vec<NodeId>,
    /// `None`: no leader.
    pub leader: Option<NodeId>,
    pub leader_recovery: LeaderRecovery,
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    /// The log folder of each replica, in the order of `replicas`; empty: not known (KIP-858).
    pub directories: Vec<DirectoryId>,
    /// KIP-966.
    pub eligible_leader_replicas: Vec<NodeId>,
    pub last_known_elr: Vec<NodeId>,
}

impl PartitionRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>, version: u32) -> Result<PartitionRecord, Malformed> {
        let mut record = PartitionRecord {
            partition: PartitionIndex(reader.i32()?),
            topic_id: TopicId(reader.uuid()?),
            replicas: reader.array(read_node)?,
            isr: reader.array(read_node)?,
            removing_replicas: reader.array(read_node)?,
            adding_replicas: reader.array(read_node)?,
            leader: Some(read_node(reader)?).filter(|leader| *leader != NO_LEADER),
            leader_recovery: LeaderRecovery::Recovered,
            leader_epoch: LeaderEpoch(reader.i32()?),
            partition_epoch: PartitionEpoch(reader.i32()?),
            directories: if version >= 1 { reader.array(read_directory)? } else { Vec::new() },
            eligible_leader_replicas: Vec::new(),
            last_known_elr: Vec::new(),
        };
        reader.tagged_fields(|tag, field| {
            match tag {
                0 => record.leader_recovery = LeaderRecovery::read(field)?.unwrap_or_default(),
                1 => record.eligible_leader_replicas = field.nullable_array(read_node)?.unwrap_or_default(),
                2 => record.last_known_elr = field.nullable_array(read_node)?.unwrap_or_default(),
                _ => {}
            }
            Ok(())
        })?;
        Ok(record)
    }
    /// Version 2.
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.i32(self.partition.0);
        writer.uuid(self.topic_id.0);
        writer.array(&self.replicas, write_node);
        writer.array(&self.isr, write_node);
        writer.array(&self.removing_replicas, write_node);
        writer.array(&self.adding_replicas, write_node);
        write_node(writer, &self.leader.unwrap_or(NO_LEADER));
        writer.i32(self.leader_epoch.0);
        writer.i32(self.partition_epoch.0);
        writer.array(&self.directories, write_directory);
        let mut tags = TaggedFields::new();
        if self.leader_recovery != LeaderRecovery::Recovered {
            tags.add(0, |writer| writer.i8(self.leader_recovery.number()));
        }
        let filled = |list: &'_ Vec<NodeId>| !list.is_empty();
        add_list(&mut tags, 1, Some(&self.eligible_leader_replicas).filter(|list| filled(list)), write_node);
        add_list(&mut tags, 2, Some(&self.last_known_elr).filter(|list| filled(list)), write_node);
        writer.tagged_fields(tags);
    }
}

/// What a change does to a partition's leadership. Anything but `Unchanged` raises the leader epoch by one, the same leader included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LeaderChange {
    #[default]
    Unchanged,
    NoLeader,
    Leader(NodeId),
}

/// Parts of a partition's state change; `None`: unchanged. The partition epoch rises by one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionChangeRecord {
    pub partition: PartitionIndex,
    pub topic_id: TopicId,
    pub isr: Option<Vec<NodeId>>,
    pub leader: LeaderChange,
    pub replicas: Option<Vec<NodeId>>,
    pub removing_replicas: Option<Vec<NodeId>>,
    pub adding_replicas: Option<Vec<NodeId>>,
    pub leader_recovery: Option<LeaderRecovery>,
    pub eligible_leader_replicas: Option<Vec<NodeId>>,
    pub last_known_elr: Option<Vec<NodeId>>,
    pub directories: Option<Vec<DirectoryId>>,
}

impl PartitionChangeRecord {
    /// A change of nothing, to be filled in.
    pub fn of(topic_id: TopicId, partition: PartitionIndex) -> PartitionChangeRecord {
        PartitionChangeRecord {
            partition,
            topic_id,
            isr: None,
            leader: LeaderChange::Unchanged,
            replicas: None,
            removing_replicas: None,
            adding_replicas: None,
            leader_recovery: None,
            eligible_leader_replicas: None,
            last_known_elr: None,
            directories: None,
        }
    }
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<PartitionChangeRecord, Malformed> {
        let partition = PartitionIndex(reader.i32()?);
        let mut record = PartitionChangeRecord::of(TopicId(reader.uuid()?), partition);
        reader.tagged_fields(|tag, field| {
            match tag {
                0 => record.isr = field.nullable_array(read_node)?,
                1 => {
                    record.leader = match read_node(field)? {
                        NO_LEADER_CHANGE => LeaderChange::Unchanged,
                        NO_LEADER => LeaderChange::NoLeader,
                        leader => LeaderChange::Leader(leader),
                    }
                }
                2 => record.replicas = field.nullable_array(read_node)?,
                3 => record.removing_replicas = field.nullable_array(read_node)?,
                4 => record.adding_replicas = field.nullable_array(read_node)?,
                5 => record.leader_recovery = LeaderRecovery::read(field)?,
                6 => record.eligible_leader_replicas = field.nullable_array(read_node)?,
                7 => record.last_known_elr = field.nullable_array(read_node)?,
                8 => record.directories = field.nullable_array(read_directory)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(record)
    }
    /// Version 2.
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.i32(self.partition.0);
        writer.uuid(self.topic_id.0);
        let mut tags = TaggedFields::new();
        add_list(&mut tags, 0, self.isr.as_ref(), write_node);
        match self.leader {
            LeaderChange::Unchanged => {}
            LeaderChange::NoLeader => tags.add(1, |writer| write_node(writer, &NO_LEADER)),
            LeaderChange::Leader(leader) => tags.add(1, |writer| write_node(writer, &leader)),
        }
        add_list(&mut tags, 2, self.replicas.as_ref(), write_node);
        add_list(&mut tags, 3, self.removing_replicas.as_ref(), write_node);
        add_list(&mut tags, 4, self.adding_replicas.as_ref(), write_node);
        if let Some(leader_recovery) = self.leader_recovery {
            tags.add(5, |writer| writer.i8(leader_recovery.number()));
        }
        add_list(&mut tags, 6, self.eligible_leader_replicas.as_ref(), write_node);
        add_list(&mut tags, 7, self.last_known_elr.as_ref(), write_node);
        add_list(&mut tags, 8, self.directories.as_ref(), write_directory);
        writer.tagged_fields(tags);
    }
}

const NO_LEADER: NodeId = NodeId(-1);
const NO_LEADER_CHANGE: NodeId = NodeId(-2);

fn read_node(reader: &mut FlexibleReader<'_>) -> Result<NodeId, Malformed> {
    reader.i32().map(NodeId)
}
fn write_node(writer: &mut FlexibleWriter, node: &NodeId) {
    writer.i32(node.0);
}
