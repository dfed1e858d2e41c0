//! CreateTopics (key 19), versions 2 to 7: defaults with -1 KIP-464 (4), settings in the answer KIP-525 (5), topic ids (7).

use std::rc::Rc;

use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use kafka_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::nodes::meant_node;
use super::super::outcome::Outcome;
use super::metadata_refusal_message;
use super::settings::{source_number, text};
use crate::base::PartitionIndex;
use crate::config::{BrokerConfig, DescribedSetting, describe_topic};
use crate::metadata::{CreateTopicResult, CreatedTopic, NewAssignment, NewTopic, Overrides};
use crate::protocol::{RequestHeader, append_code};
use crate::runtime::Runtime;

/// First version that shows the new topic's settings.
const FIRST_SETTINGS_VERSION: i16 = 5;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: CreateTopicsRequest,
) -> Outcome<R::File> {
    let topics: Vec<NewTopic> = request.topics.iter().map(|topic| new_topic(&context, topic)).collect();
    let validate_only = request.validate_only;
    let decided = context
        .router
        .decide_with_room(move |controller, seed| controller.create_topics(&topics, validate_only, seed));
    let answers = match decided.await {
        Ok(results) => {
            let are_shown = header.version >= FIRST_SETTINGS_VERSION;
            let settings = are_shown.then(|| TopicSettings::new(context.shard().config()));
            results.into_iter().map(|result| answer(settings.as_ref(), result)).collect()
        }
        Err(refusal) => request
            .topics
            .iter()
            .map(|topic| {
                refused(topic.name.clone(), append_code(&refusal), metadata_refusal_message(&refusal))
            })
            .collect(),
    };
    Outcome::answer(&header, &CreateTopicsResponse::default().with_topics(answers))
}

fn new_topic<R: Runtime>(context: &RequestContext<R>, topic: &CreatableTopic) -> NewTopic {
    NewTopic {
        name: topic.name.to_string(),
        partition_count: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: topic.assignments.iter().map(|given| assignment(context, given)).collect(),
        configs: topic
            .configs
            .iter()
            .map(|config| (config.name.to_string(), config.value.as_ref().map(StrBytes::to_string)))
            .collect(),
    }
}

fn assignment<R: Runtime>(context: &RequestContext<R>, given: &CreatableReplicaAssignment) -> NewAssignment {
    NewAssignment {
        partition: PartitionIndex(given.partition_index),
        replicas: given.broker_ids.iter().map(|broker| meant_node(context, broker.0)).collect(),
    }
}

/// `settings`: where they are part of the answer.
fn answer(settings: Option<&TopicSettings>, result: CreateTopicResult) -> CreatableTopicResult {
    let name = TopicName(StrBytes::from_string(result.name));
    match result.result {
        Ok(created) => success(settings, name, &created),
        Err(error) => refused(name, error.code(), error.message()),
    }
}

fn success(
    settings: Option<&TopicSettings>,
    name: TopicName,
    created: &CreatedTopic,
) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(name)
        .with_topic_id(created.topic_id.0)
        .with_error_code(0)
        .with_error_message(None)
        .with_num_partitions(created.partition_count)
        .with_replication_factor(created.replication_factor)
        .with_configs(Some(settings.map_or_else(Vec::new, |settings| settings.of(&created.overrides))))
}

/// The settings of new topics, as answers show them.
struct TopicSettings {
    config: Rc<BrokerConfig>,
    /// Those of a topic that sets none itself, as most do.
    plain: Vec<CreatableTopicConfigs>,
}

impl TopicSettings {
    fn new(config: Rc<BrokerConfig>) -> TopicSettings {
        TopicSettings { plain: shown(&config, &Overrides::new()), config }
    }
    fn of(&self, overrides: &Overrides) -> Vec<CreatableTopicConfigs> {
        if overrides.is_empty() { self.plain.clone() } else { shown(&self.config, overrides) }
    }
}

fn shown(config: &BrokerConfig, overrides: &Overrides) -> Vec<CreatableTopicConfigs> {
    let mut settings = describe_topic(config, overrides);
    settings.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    settings.into_iter().map(|described| setting(described, overrides)).collect()
}

/// A setting of the topic's own comes back as it was given, `1` for a fraction too, where DescribeConfigs shows `1.0`.
fn setting(setting: DescribedSetting, overrides: &Overrides) -> CreatableTopicConfigs {
    let given = overrides.get(&*setting.name).cloned();
    CreatableTopicConfigs::default()
        .with_name(text(setting.name))
        .with_value(given.or(setting.value).map(StrBytes::from_string))
        .with_read_only(setting.is_read_only)
        .with_config_source(source_number(setting.source))
        .with_is_sensitive(setting.is_sensitive)
}

fn refused(name: TopicName, code: i16, message: &str) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(name)
        .with_error_code(code)
        .with_error_message(Some(StrBytes::from_string(message.to_owned())))
}
