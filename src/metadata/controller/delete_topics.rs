use std::collections::BTreeMap;

use super::refusal::refusal;
use super::{Controller, Decision};
use crate::base::{Map, Set, TopicId};
use crate::metadata::records::{Record, RemoveTopicRecord};

/// A topic that a client wants gone, by name or by id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TopicToDelete {
    pub name: Option<String>,
    /// Zero: the topic is given by name.
    pub topic_id: TopicId,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeleteTopicResult {
    /// As in the request; of a topic that exists, its name however it was given.
    pub name: Option<String>,
    /// As in the request; of a topic that exists, its id however it was given.
    pub topic_id: TopicId,
    pub result: Result<(), DeleteTopicError>,
}

refusal! {
    /// Why a topic is not deleted.
    DeleteTopicError {
        UnknownTopicOrPartition = 3,
        InvalidRequest = 42,
        /// `delete.topic.enable` is false. Told as 42 before version 3 of the API.
        TopicDeletionDisabled = 73,
        UnknownTopicId = 100,
    }
}

impl Controller<'_> {
    /// Decides which of `topics` end, each by itself. A name or an id that stands twice in the request is refused, and answered
    /// once; so is a topic given both by name and by id, under both. The broker's own topics may be deleted as any other.
    /// Source: Kafka's `ControllerApis.deleteTopics`.
    pub fn delete_topics(&self, topics: &[TopicToDelete]) -> Decision<Vec<DeleteTopicResult>> {
        let mut answer = Vec::with_capacity(topics.len());
        let refused = |topic: &TopicToDelete, error| DeleteTopicResult {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            result: Err(error),
        };
        if !self.config.delete_topic_enable {
            let error = DeleteTopicError::TopicDeletionDisabled("delete.topic.enable is false".to_owned());
            answer.extend(topics.iter().map(|topic| refused(topic, error.clone())));
            return Decision { records: Vec::new(), answer };
        }

        let mut given: Map<&TopicToDelete, usize> = Map::default();
        for topic in topics {
            *given.entry(topic).or_default() += 1;
        }
        let mut known: BTreeMap<TopicId, Vec<&TopicToDelete>> = BTreeMap::new();
        let mut answered: Set<&TopicToDelete> = Set::default();
        for topic in topics {
            if topic.name.is_some() != topic.topic_id.is_zero() {
                let message = "a topic must be given either by name or by id".to_owned();
                answer.push(refused(topic, DeleteTopicError::InvalidRequest(message)));
            } else if given[topic] > 1 {
                if answered.insert(topic) {
                    answer.push(refused(topic, given_twice()));
                }
            } else {
                match self.target(topic) {
                    Some(topic_id) => known.entry(topic_id).or_default().push(topic),
                    None => answer.push(refused(topic, unknown(topic))),
                }
            }
        }

        let mut records = Vec::new();
        for (topic_id, ways) in known {
            let by_id = TopicToDelete { name: None, topic_id };
            let is_by_name = |topic: &&TopicToDelete| topic.name.is_some();
            let is_twice = ways.len() > 1 || ways.iter().any(is_by_name) && given.contains_key(&by_id);
            let result = if is_twice { Err(given_twice()) } else { Ok(()) };
            if result.is_ok() {
                records.push(Record::RemoveTopic(RemoveTopicRecord { topic_id }));
            }
            let name = self.image.topic(topic_id).map(|topic| topic.name.to_string());
            answer.push(DeleteTopicResult { name, topic_id, result });
        }
        Decision { records, answer }
    }

    fn target(&self, topic: &TopicToDelete) -> Option<TopicId> {
        match &topic.name {
            Some(name) => self.image.topic_id(name),
            None => self.image.topic(topic.topic_id).map(|topic| topic.id),
        }
    }
}

fn given_twice() -> DeleteTopicError {
    DeleteTopicError::InvalidRequest("the topic stands in the request more than once".to_owned())
}

fn unknown(topic: &TopicToDelete) -> DeleteTopicError {
    match &topic.name {
        Some(name) => DeleteTopicError::UnknownTopicOrPartition(format!("there is no topic '{name}'")),
        None => DeleteTopicError::UnknownTopicId(format!("there is no topic with id {}", topic.topic_id)),
    }
}
