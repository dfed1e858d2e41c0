use super::refusal::refusal;
use super::{Controller, Decision, PARTITIONS_PER_REQUEST_MAX};
use crate::base::{Map, NodeId, PartitionIndex, Set};
use crate::metadata::image::TopicImage;
use crate::metadata::records::Record;

/// A topic that a client wants to have more partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MorePartitions {
    pub name: String,
    /// How many partitions the topic is to have in all.
    pub count: i32,
    /// The replicas of each new partition; `None`: the broker places them itself.
    pub assignments: Option<Vec<Vec<NodeId>>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatePartitionsResult {
    pub name: String,
    pub result: Result<(), CreatePartitionsError>,
}

refusal! {
    /// Why a topic gets no more partitions.
    CreatePartitionsError {
        UnknownTopicOrPartition = 3,
        /// The new count is not above the present one.
        InvalidPartitions = 37,
        InvalidReplicaAssignment = 39,
        InvalidRequest = 42,
        /// More partitions than one request may make.
        PolicyViolation = 44,
    }
}

impl Controller<'_> {
    /// Decides which of `topics` grow, each by itself. A name that stands twice in the request is refused, and answered once,
    /// before the others. Source: Kafka's `ControllerApis.createPartitions`, `ReplicationControlManager.createPartitions`.
    pub fn create_partitions(
        &self,
        topics: &[MorePartitions],
        validate_only: bool,
    ) -> Decision<Vec<CreatePartitionsResult>> {
        let mut seen: Map<&str, usize> = Map::default();
        for topic in topics {
            *seen.entry(&topic.name).or_default() += 1;
        }
        let (single, doubled): (Vec<&MorePartitions>, Vec<&MorePartitions>) =
            topics.iter().partition(|topic| seen[topic.name.as_str()] == 1);

        let mut answer = Vec::with_capacity(topics.len());
        let mut answered: Set<&str> = Set::default();
        for topic in doubled {
            if answered.insert(&topic.name) {
                let message = format!("topic '{}' stands in the request more than once", topic.name);
                let result = Err(CreatePartitionsError::InvalidRequest(message));
                answer.push(CreatePartitionsResult { name: topic.name.clone(), result });
            }
        }
        let mut records = Vec::new();
        for topic in single {
            let result = self.grow(topic, &mut records);
            answer.push(CreatePartitionsResult { name: topic.name.clone(), result });
        }
        if validate_only {
            records.clear();
        }
        Decision { records, answer }
    }

    fn grow(&self, more: &MorePartitions, records: &mut Vec<Record>) -> Result<(), CreatePartitionsError> {
        use CreatePartitionsError::{InvalidReplicaAssignment, PolicyViolation, UnknownTopicOrPartition};
        let topic = self
            .image
            .topic_named(&more.name)
            .ok_or_else(|| UnknownTopicOrPartition(format!("there is no topic '{}'", more.name)))?;
        let (present, additional) = added(topic, more)?;
        if let Some(assignments) = &more.assignments {
            if assignments.len() != additional {
                return Err(InvalidReplicaAssignment(format!(
                    "{additional} partitions are to be added and {} assignments are given",
                    assignments.len()
                )));
            }
            for replicas in assignments {
                self.check_replicas(replicas).map_err(InvalidReplicaAssignment)?;
            }
        }
        if records.len().saturating_add(additional) > PARTITIONS_PER_REQUEST_MAX {
            return Err(PolicyViolation(format!(
                "one request may make {PARTITIONS_PER_REQUEST_MAX} partitions at most"
            )));
        }
        let partitions = (present..more.count).map(PartitionIndex);
        records.extend(partitions.map(|partition| self.new_partition(topic.id, partition)));
        Ok(())
    }
}

/// How many partitions the topic has, and how many would be added.
fn added(topic: &TopicImage, more: &MorePartitions) -> Result<(i32, usize), CreatePartitionsError> {
    let present = i32::try_from(topic.partition_count()).expect("partitions are numbered by an i32");
    match usize::try_from(i64::from(more.count) - i64::from(present)) {
        Ok(additional) if additional > 0 => Ok((present, additional)),
        _ => Err(CreatePartitionsError::InvalidPartitions(format!(
            "topic '{}' has {present} partitions; {} would not be more",
            topic.name, more.count
        ))),
    }
}
