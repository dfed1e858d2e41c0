use super::refusal::refusal;
use super::topic_ids::TopicIds;
use super::{Controller, Decision, PARTITIONS_PER_REQUEST_MAX};
use crate::base::{Map, NodeId, PartitionIndex, Set, TopicId, TopicName};
use crate::metadata::image::{Overrides, ResourceType};
use crate::metadata::records::{ConfigRecord, Record, TopicRecord};
use crate::metadata::topic_name::{METADATA_TOPIC, check_topic_name};

/// A topic that a client wants, as the request has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewTopic {
    pub name: String,
    /// -1: `num.partitions`, or what `assignments` says.
    pub partition_count: i32,
    /// -1: the broker's own, which is 1.
    pub replication_factor: i16,
    /// Empty: the broker places the partitions itself.
    pub assignments: Vec<NewAssignment>,
    pub configs: Vec<(String, Option<String>)>,
}

/// The replicas that a client wants for one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewAssignment {
    pub partition: PartitionIndex,
    pub replicas: Vec<NodeId>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateTopicResult {
    pub name: String,
    pub result: Result<CreatedTopic, CreateTopicError>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreatedTopic {
    pub topic_id: TopicId,
    pub partition_count: i32,
    pub replication_factor: i16,
    /// The settings given with it; all others are the broker's.
    pub overrides: Overrides,
}

refusal! {
    /// Why a topic is not created.
    CreateTopicError {
        /// The name can't be a folder, or collides with another's in metrics.
        InvalidTopicException = 17,
        TopicAlreadyExists = 36,
        InvalidPartitions = 37,
        InvalidReplicationFactor = 38,
        InvalidReplicaAssignment = 39,
        InvalidConfig = 40,
        /// The request contradicts itself, or names a topic that is not for clients.
        InvalidRequest = 42,
        /// More partitions than one request may ask for.
        PolicyViolation = 44,
    }
}

impl Controller<'_> {
    /// Decides which of `topics` come into being, each by itself. A name that stands twice in the request is refused, and
    /// answered once, after the others. `seed` is fresh and random: the new topics' ids come out of it. With
    /// `validate_only` the answer is the same and there are no records.
    /// Source: Kafka's `ControllerApis.createTopics`, `ReplicationControlManager.createTopics`.
    pub fn create_topics(
        &self,
        topics: &[NewTopic],
        validate_only: bool,
        seed: u128,
    ) -> Decision<Vec<CreateTopicResult>> {
        let mut seen: Map<&str, usize> = Map::default();
        for topic in topics {
            *seen.entry(&topic.name).or_default() += 1;
        }
        let (single, doubled): (Vec<&NewTopic>, Vec<&NewTopic>) =
            topics.iter().partition(|topic| seen[topic.name.as_str()] == 1);
        let too_many = self.too_many_partitions(&single);

        let mut topic_ids = TopicIds::new(seed);
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(topics.len());
        for topic in single {
            let result = match &too_many {
                Some(refusal) => Err(refusal.clone()),
                None => self.plan_topic(topic).map(|plan| {
                    let topic_id = topic_ids.next(self.image);
                    self.write_topic(topic, topic_id, &plan, &mut records);
                    CreatedTopic {
                        topic_id,
                        partition_count: plan.partition_count,
                        replication_factor: 1,
                        overrides: plan.overrides,
                    }
                }),
            };
            answer.push(CreateTopicResult { name: topic.name.clone(), result });
        }
        let mut answered: Set<&str> = Set::default();
        for topic in doubled {
            if answered.insert(&topic.name) {
                let message = format!("topic '{}' stands in the request more than once", topic.name);
                let result = Err(CreateTopicError::InvalidRequest(message));
                answer.push(CreateTopicResult { name: topic.name.clone(), result });
            }
        }
        if validate_only {
            records.clear();
        }
        Decision { records, answer }
    }

    /// Looks at the whole request first, whatever else is wrong with its topics, so that no memory is taken for them.
    fn too_many_partitions(&self, topics: &[&NewTopic]) -> Option<CreateTopicError> {
        let wanted = |topic: &&NewTopic| match topic.partition_count {
            _ if !topic.assignments.is_empty() => topic.assignments.len(),
            -1 => usize::try_from(self.config.num_partitions).unwrap_or(0),
            count => usize::try_from(count).unwrap_or(0),
        };
        let total = topics.iter().map(wanted).fold(0, usize::saturating_add);
        (total > PARTITIONS_PER_REQUEST_MAX).then(|| {
            CreateTopicError::PolicyViolation(format!(
                "the request asks for {total} partitions; one request may make {PARTITIONS_PER_REQUEST_MAX} at most"
            ))
        })
    }

    fn plan_topic(&self, topic: &NewTopic) -> Result<Plan, CreateTopicError> {
        self.check_new_name(&topic.name)?;
        let overrides = overrides_of(topic)?;
        self.check_topic_overrides(&overrides).map_err(CreateTopicError::InvalidConfig)?;
        let partition_count = if topic.assignments.is_empty() {
            self.count_partitions(topic)?
        } else {
            self.check_assignments(topic)?
        };
        Ok(Plan { partition_count, overrides })
    }

    fn check_new_name(&self, name: &str) -> Result<(), CreateTopicError> {
        if name == METADATA_TOPIC {
            let message = format!("{METADATA_TOPIC} is the controller's and cannot be created");
            return Err(CreateTopicError::InvalidRequest(message));
        }
        check_topic_name(name).map_err(CreateTopicError::InvalidTopicException)?;
        if self.image.topic_id(name).is_some() {
            return Err(CreateTopicError::TopicAlreadyExists(format!("topic '{name}' already exists")));
        }
        match self.image.colliding_topic(name) {
            Some(other) => Err(CreateTopicError::InvalidTopicException(format!(
                "topic '{name}' collides with the existing topic '{other}': they differ in '.' and '_' only"
            ))),
            None => Ok(()),
        }
    }

    fn count_partitions(&self, topic: &NewTopic) -> Result<i32, CreateTopicError> {
        match topic.replication_factor {
            -1 | 1 => {}
            factor if factor > 1 => {
                return Err(CreateTopicError::InvalidReplicationFactor(format!(
                    "{factor} replicas are wanted of each partition and there is 1 broker to hold them"
                )));
            }
            factor => {
                return Err(CreateTopicError::InvalidReplicationFactor(format!(
                    "the replication factor is {factor}; it may be 1, or -1 for the default"
                )));
            }
        }
        match topic.partition_count {
            -1 => Ok(self.config.num_partitions),
            count if count > 0 => Ok(count),
            count => Err(CreateTopicError::InvalidPartitions(format!(
                "the topic would have {count} partitions; it may have 1 or more, or -1 for the default"
            ))),
        }
    }

    /// Gives the number of partitions that the assignments make.
    fn check_assignments(&self, topic: &NewTopic) -> Result<i32, CreateTopicError> {
        use CreateTopicError::{InvalidReplicaAssignment, InvalidRequest};
        if topic.replication_factor != -1 || topic.partition_count != -1 {
            return Err(InvalidRequest(
                "with assignments given, replication factor and partition count must be -1".to_owned(),
            ));
        }
        let mut partitions: Set<PartitionIndex> = Set::default();
        for assignment in &topic.assignments {
            if !partitions.insert(assignment.partition) {
                let message = format!("partition {} is assigned more than once", assignment.partition);
                return Err(InvalidReplicaAssignment(message));
            }
            self.check_replicas(&assignment.replicas).map_err(InvalidReplicaAssignment)?;
        }
        let count = i32::try_from(partitions.len()).expect("a request has at most 10,000 assignments");
        match (0..count).find(|partition| !partitions.contains(&PartitionIndex(*partition))) {
            Some(missing) => Err(InvalidReplicaAssignment(format!(
                "{count} partitions are assigned and partition {missing} is not among them"
            ))),
            None => Ok(count),
        }
    }

    fn write_topic(&self, topic: &NewTopic, topic_id: TopicId, plan: &Plan, records: &mut Vec<Record>) {
        records.push(Record::Topic(TopicRecord { name: TopicName::new(&topic.name), topic_id }));
        records.extend(plan.overrides.iter().map(|(name, value)| {
            Record::Config(ConfigRecord {
                resource_type: ResourceType::Topic.number(),
                resource_name: topic.name.clone(),
                name: name.clone(),
                value: Some(value.clone()),
            })
        }));
        let partitions = (0..plan.partition_count).map(PartitionIndex);
        records.extend(partitions.map(|partition| self.new_partition(topic_id, partition)));
    }
}

/// A topic that may be created.
struct Plan {
    partition_count: i32,
    overrides: Overrides,
}

/// The settings given with a topic; of one given twice the last counts.
fn overrides_of(topic: &NewTopic) -> Result<Overrides, CreateTopicError> {
    let without_value: Vec<&str> =
        topic.configs.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str()).collect();
    if !without_value.is_empty() {
        let message = format!("no value is given for {}", without_value.join(", "));
        return Err(CreateTopicError::InvalidConfig(message));
    }
    let set = topic.configs.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    Ok(set.collect())
}
