//! Settings as the admin APIs name them. Source: Kafka's `DescribeConfigsResponse`.

use std::borrow::Cow;

use kafka_protocol::protocol::StrBytes;

use crate::config::{Kind, Source};

/// The wire's text, without a copy of what is known when the broker is built.
pub fn text(text: Cow<'static, str>) -> StrBytes {
    match text {
        Cow::Borrowed(text) => StrBytes::from_static_str(text),
        Cow::Owned(text) => StrBytes::from_string(text),
    }
}

/// Number of a place where a value comes from.
pub fn source_number(source: Source) -> i8 {
    match source {
        Source::Topic => 1,
        Source::DynamicBroker => 2,
        Source::DynamicDefaultBroker => 3,
        Source::StaticBroker => 4,
        Source::Default => 5,
        Source::ClientMetrics => 7,
        Source::Group => 8,
    }
}

/// Number of a setting's type; 0 where nobody knows it.
pub fn kind_number(kind: Option<Kind>) -> i8 {
    let Some(kind) = kind else { return 0 };
    match kind {
        Kind::Boolean => 1,
        Kind::String => 2,
        Kind::Int => 3,
        Kind::Short => 4,
        Kind::Long => 5,
        Kind::Double => 6,
        Kind::List => 7,
        Kind::Class => 8,
        Kind::Password => 9,
    }
}
