//! DescribeConfigs (key 32), versions 1 to 4: synonyms KIP-226 (1), types and documentation KIP-569 (3).
//!
//! There is one broker logger, `root`; Kafka has one for each of its classes.

use std::rc::Rc;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;
use tracing::level_filters::LevelFilter;

use super::super::context::RequestContext;
use super::super::nodes::meant_node;
use super::super::outcome::Outcome;
use super::resource_type::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use super::settings::{kind_number, source_number, text};
use crate::config::{
    BrokerConfig, DescribedSetting, Synonym, describe_broker, describe_broker_defaults,
    describe_client_metrics, describe_group, describe_topic,
};
use crate::metadata::{ResourceType, check_topic_name};
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;

/// Where a broker logger's level comes from. Source: Kafka's `DescribeConfigsResponse.ConfigSource`.
const DYNAMIC_BROKER_LOGGER: i8 = 6;

/// First version with types and documentation.
const FIRST_TYPES_VERSION: i16 = 3;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeConfigsRequest,
) -> Outcome<R::File> {
    let is_known = |resource: &DescribeConfigsResource| {
        matches!(resource.resource_type, TOPIC | BROKER | BROKER_LOGGER | CLIENT_METRICS | GROUP)
    };
    let config = context.shard().config();
    let all_known = request.resources.iter().all(is_known);
    let describe = |resource: &DescribeConfigsResource| {
        let described = if all_known {
            describe(&context, &config, resource).map(|described| match described {
                Described::Settings(settings) => {
                    settings.into_iter().map(|setting| wire(&header, &request, setting)).collect()
                }
                Described::RootLogger(level) => vec![root_logger(level)],
            })
        } else {
            // As in Kafka one unknown type spoils the request.
            Err(Refusal {
                code: ErrorCode::InvalidRequest,
                message: "the request names a resource of an unknown type".to_owned(),
            })
        };
        answer(resource, described)
    };
    let results = request.resources.iter().map(describe).collect();
    Outcome::answer(&header, &DescribeConfigsResponse::default().with_results(results))
}

/// What there is to tell of a resource.
enum Described {
    Settings(Vec<DescribedSetting>),
    /// The most that is logged of any part of the broker.
    RootLogger(LevelFilter),
}

/// Why a resource is not described.
struct Refusal {
    code: ErrorCode,
    message: String,
}

fn invalid<T>(message: String) -> Result<T, Refusal> {
    Err(Refusal { code: ErrorCode::InvalidRequest, message })
}

fn describe<R: Runtime>(
    context: &RequestContext<R>,
    config: &BrokerConfig,
    resource: &DescribeConfigsResource,
) -> Result<Described, Refusal> {
    let name = resource.resource_name.as_str();
    match resource.resource_type {
        TOPIC => {
            check_topic_name(name)
                .map_err(|message| Refusal { code: ErrorCode::InvalidTopicException, message })?;
            let image = context.shard().image.borrow();
            match image.topic_id(name) {
                Some(_) => Ok(Described::Settings(describe_topic(config, image.topic_overrides(name)))),
                None => Err(Refusal {
                    code: ErrorCode::UnknownTopicOrPartition,
                    message: format!("there is no topic '{name}'"),
                }),
            }
        }
        BROKER if name.is_empty() => Ok(Described::Settings(describe_broker_defaults(config))),
        BROKER => own_broker(context, name).map(|()| Described::Settings(describe_broker(config))),
        BROKER_LOGGER => own_broker(context, name).map(|()| Described::RootLogger(LevelFilter::current())),
        _ if name.is_empty() => invalid("the resource must be named".to_owned()),
        CLIENT_METRICS => {
            let image = context.shard().image.borrow();
            let overrides = image.overrides(ResourceType::ClientMetrics, name);
            Ok(Described::Settings(describe_client_metrics(overrides)))
        }
        _ => {
            let image = context.shard().image.borrow();
            let overrides = image.overrides(ResourceType::Group, name);
            Ok(Described::Settings(describe_group(config, overrides)))
        }
    }
}

fn own_broker<R: Runtime>(context: &RequestContext<R>, name: &str) -> Result<(), Refusal> {
    let own = context.shard().config().node_id;
    match name.parse::<i32>() {
        Ok(id) if meant_node(context, id) == own => Ok(()),
        Ok(id) => {
            invalid(format!("broker {id} was asked for of broker {own}, which can tell of itself only"))
        }
        Err(_) => invalid(format!("'{name}' is no broker's number")),
    }
}

fn answer(
    resource: &DescribeConfigsResource,
    described: Result<Vec<DescribeConfigsResourceResult>, Refusal>,
) -> DescribeConfigsResult {
    let result = DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone());
    let mut entries = match described {
        Ok(entries) => entries,
        Err(refusal) => {
            return result
                .with_error_code(refusal.code.code())
                .with_error_message(Some(StrBytes::from_string(refusal.message)));
        }
    };
    // No list and an empty list both ask for all.
    let wanted = resource.configuration_keys.as_deref().unwrap_or_default();
    entries.retain(|entry| wanted.is_empty() || wanted.contains(&entry.name));
    result.with_configs(entries)
}

/// The one logger, as Kafka words it: without a type and synonyms, and with a documentation that is empty.
fn root_logger(level: LevelFilter) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult::default()
        .with_name(StrBytes::from_static_str("root"))
        .with_value(Some(StrBytes::from_string(level.to_string().to_uppercase())))
        .with_config_source(DYNAMIC_BROKER_LOGGER)
}

fn wire(
    header: &RequestHeader,
    request: &DescribeConfigsRequest,
    setting: DescribedSetting,
) -> DescribeConfigsResourceResult {
    let result = DescribeConfigsResourceResult::default()
        .with_name(text(setting.name))
        .with_value(setting.value.map(StrBytes::from_string))
        .with_read_only(setting.is_read_only)
        .with_config_source(source_number(setting.source))
        .with_is_sensitive(setting.is_sensitive);
    let synonyms = if request.include_synonyms { setting.synonyms } else { Vec::new() };
    let result = result.with_synonyms(synonyms.into_iter().map(synonym).collect());
    if header.version < FIRST_TYPES_VERSION {
        return result;
    }
    let documentation = request.include_documentation.then(|| StrBytes::from_string(setting.documentation));
    result.with_config_type(kind_number(setting.kind)).with_documentation(documentation)
}

fn synonym(synonym: Synonym) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym::default()
        .with_name(text(synonym.name))
        .with_value(synonym.value.map(StrBytes::from_string))
        .with_source(source_number(synonym.source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_logger_is_told_without_what_only_settings_have() {
        let logger = root_logger(LevelFilter::INFO);
        assert_eq!((logger.name.as_str(), logger.value.as_deref()), ("root", Some("INFO")));
        assert_eq!((logger.config_source, logger.config_type, logger.read_only), (6, 0, false));
        assert!(logger.synonyms.is_empty() && logger.documentation.as_deref() == Some(""));
    }

    #[test]
    fn only_the_named_entries_are_answered_and_all_when_none_is_named() {
        let names = |keys: Option<Vec<&'static str>>| {
            let keys = keys.map(|keys| keys.into_iter().map(StrBytes::from_static_str).collect());
            let resource = DescribeConfigsResource::default().with_configuration_keys(keys);
            answer(&resource, Ok(vec![root_logger(LevelFilter::WARN)])).configs.len()
        };
        assert_eq!((names(None), names(Some(vec![]))), (1, 1));
        assert_eq!((names(Some(vec!["root"])), names(Some(vec!["other"]))), (1, 0));
    }
}
