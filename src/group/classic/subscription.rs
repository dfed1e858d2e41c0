use std::collections::BTreeSet;

use crate::base::TopicName;

/// The topics in a consumer's subscription: version, then an array of names; later versions only add behind them.
/// `None`: the bytes are something else. Source: Kafka's `ConsumerProtocolSubscription`, version 0.
pub(super) fn subscribed_topics(metadata: &[u8]) -> Option<BTreeSet<TopicName>> {
    let (_version, rest) = metadata.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut topics = BTreeSet::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let (name, behind) = behind.split_at_checked(length)?;
        topics.insert(TopicName::new(std::str::from_utf8(name).ok()?));
        rest = behind;
    }
    Some(topics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_in_a_subscription_of_any_version() {
        let version_0 = b"\x00\x03\x00\x00\x00\x02\x00\x01a\x00\x02bc";
        let later = [&version_0[..], b"what later versions add"].concat();
        let topics = subscribed_topics(&later).unwrap();
        assert_eq!(topics.iter().map(TopicName::as_str).collect::<Vec<_>>(), ["a", "bc"]);
        assert_eq!(subscribed_topics(b"\x00\x00\xff\xff\xff\xff"), Some(BTreeSet::new()));
        for cut in 0..version_0.len() {
            assert_eq!(subscribed_topics(&version_0[..cut]), None, "cut {cut}");
        }
    }
}
