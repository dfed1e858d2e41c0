//! ApiVersions (key 18), versions 0 to 4: KIP-511 fall-back and client software (3), KIP-584 features (3), KIP-1022 (4).
//!
//! Differs from Kafka: a feature is named only when the requests that it promises are served.

use std::rc::Rc;

use bytes::Bytes;
use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use crate::metadata::{FEATURES, Feature};
use crate::protocol::{
    ErrorCode, RequestHeader, ServedVersions, encode_response_in, is_served, served_versions,
};
use crate::runtime::{Runtime, SendQueue, SendSegment};

/// First version that tells the client's software, and the first with features.
const FIRST_SOFTWARE_VERSION: i16 = 3;
/// First version that may name features whose lowest level is 0 (KIP-1022).
const FIRST_ZERO_FEATURE_VERSION: i16 = 4;
/// First version of TxnOffsetCommit that makes its group part of the transaction, which `transaction.version` 2 stands for, too.
const FIRST_IMPLICIT_OFFSETS_VERSION: i16 = 5;
/// First version of EndTxn that gives the next producer epoch, which `transaction.version` 2 stands for (KIP-890).
const FIRST_EPOCH_BUMP_VERSION: i16 = 5;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ApiVersionsRequest,
) -> Outcome<R::File> {
    if header.version >= FIRST_SOFTWARE_VERSION {
        let (name, version) = (&request.client_software_name, &request.client_software_version);
        if !is_software_text(name) || !is_software_text(version) {
            let refusal = ApiVersionsResponse::default().with_error_code(ErrorCode::InvalidRequest.code());
            return Outcome::answer(&header, &refusal);
        }
        context.facts.borrow_mut().client_software = Some((name.to_string(), version.to_string()));
    }
    let mut response =
        ApiVersionsResponse::default().with_api_keys(served_versions().iter().map(api_version).collect());
    let image = context.shard().image.borrow();
    let shown = |feature: &&Feature| feature.min_level > 0 || header.version >= FIRST_ZERO_FEATURE_VERSION;
    let kept = FEATURES.iter().filter(|feature| is_kept(feature.name));
    response.supported_features = kept.filter(shown).map(supported).collect();
    response.finalized_features_epoch = image.next_offset().0 - 1;
    let finalized = image.features().filter(|(name, level)| *level > 0 && is_kept(name));
    response.finalized_features = finalized.map(|(name, level)| finalized_at(name, level)).collect();
    Outcome::answer(&header, &response)
}

/// The answer to a version that is not known: error 35 in the layout of version 0, with the versions of this API alone,
/// so that the client can ask again.
pub fn unsupported_version<F>(header: &RequestHeader) -> Outcome<F> {
    let own = served_versions().iter().filter(|served| served.key == ApiKey::ApiVersions);
    let response = ApiVersionsResponse::default()
        .with_error_code(ErrorCode::UnsupportedVersion.code())
        .with_api_keys(own.map(api_version).collect());
    let bytes: Option<Bytes> = encode_response_in(header, 0, &response);
    let mut queue = SendQueue::new();
    match bytes {
        Some(bytes) => queue.push(SendSegment::Memory(bytes)),
        None => return Outcome::Close("an ApiVersions answer has no encoding".into()),
    }
    Outcome::Answer(queue)
}

fn api_version(served: &ServedVersions) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(served.key as i16)
        .with_min_version(served.advertised_min)
        .with_max_version(served.max)
}

fn supported(feature: &Feature) -> SupportedFeatureKey {
    SupportedFeatureKey::default()
        .with_name(StrBytes::from_static_str(feature.name))
        .with_min_version(feature.min_level)
        .with_max_version(feature.max_level)
}

fn finalized_at(name: &str, level: i16) -> FinalizedFeatureKey {
    FinalizedFeatureKey::default()
        .with_name(StrBytes::from_string(name.to_owned()))
        .with_min_version_level(level)
        .with_max_version_level(level)
}

/// Whether this broker does what a client may conclude from the feature. Java's producer and franz-go take `transaction.version` 2
/// for leave to send no AddPartitionsToTxn; librdkafka looks at none of them; all of them look at the versions served, too.
fn is_kept(feature: &str) -> bool {
    match feature {
        "group.version" => is_served(ApiKey::ConsumerGroupHeartbeat, 0),
        "transaction.version" => {
            is_served(ApiKey::EndTxn, FIRST_EPOCH_BUMP_VERSION)
                && is_served(ApiKey::TxnOffsetCommit, FIRST_IMPLICIT_OFFSETS_VERSION)
        }
        "share.version" => is_served(ApiKey::ShareFetch, 1),
        // The message crate does not know StreamsGroupHeartbeat.
        "streams.version" => false,
        _ => true,
    }
}

/// Letters, digits, `.` and `-`, beginning and ending with a letter or digit. Source: Kafka's `ApiVersionsRequest`.
fn is_software_text(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}
