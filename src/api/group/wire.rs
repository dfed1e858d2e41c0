use std::net::IpAddr;

use kafka_protocol::messages::{GroupId as WireGroupId, TopicName as WireTopicName};
use kafka_protocol::protocol::StrBytes;

use crate::base::TopicName;
use crate::group::{Generation, GroupError, GroupId, InstanceId};
use crate::protocol::RequestHeader;

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn wire_group(group: &GroupId) -> WireGroupId {
    WireGroupId(text(group.as_str()))
}

pub fn wire_topic(topic: &TopicName) -> WireTopicName {
    WireTopicName(text(topic.as_str()))
}

pub fn instance(given: Option<&StrBytes>) -> Option<InstanceId> {
    given.map(|instance| InstanceId::new(instance))
}

/// All negative generations mean that none is given.
pub fn generation(number: i32) -> Generation {
    if number < 0 { Generation::NONE } else { Generation(number) }
}

pub fn code<T>(result: &Result<T, GroupError>) -> i16 {
    result.as_ref().err().map_or(0, |error| error.code())
}

/// The client id as far as it is text; none is as good as an empty one.
pub fn client_id(header: &RequestHeader) -> Box<str> {
    header.client_id.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into()
}

/// A peer's address as Java prints it, which is how tools show and `__consumer_offsets` stores it: `/127.0.0.1`,
/// `/0:0:0:0:0:0:0:1`.
pub fn client_host(address: IpAddr) -> Box<str> {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("/{address}").into(),
        IpAddr::V6(address) => {
            let groups: Vec<String> = address.segments().iter().map(|group| format!("{group:x}")).collect();
            format!("/{}", groups.join(":")).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_printed_as_java_prints_them() {
        for (address, printed) in [
            ("127.0.0.1", "/127.0.0.1"),
            ("::1", "/0:0:0:0:0:0:0:1"),
            ("fe80::a00:27ff", "/fe80:0:0:0:0:0:a00:27ff"),
            ("::ffff:10.1.2.3", "/10.1.2.3"),
        ] {
            assert_eq!(&*client_host(address.parse().unwrap()), printed);
        }
    }
}

#[cfg(test)]
pub mod testing {
    use kafka_protocol::messages::ApiKey;
    use kafka_protocol::protocol::Encodable;

    use crate::protocol::{RequestHeader, encode_response, served_versions_of};

    /// Encodes what `answer` gives for each version of `key` that is served.
    pub fn encodes_in_every_version<T: Encodable>(key: ApiKey, answer: impl Fn(&RequestHeader) -> T) {
        let served = served_versions_of(key).unwrap();
        for version in served.min..=served.max {
            let header = RequestHeader { key, version, correlation_id: 1, client_id: None };
            assert!(encode_response(&header, &answer(&header)).is_some(), "{key:?} version {version}");
        }
    }
}
