use std::collections::BTreeMap;

use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};

use crate::base::Set;

/// Of a partition that is named more than once the last entry, and each topic once, without those that name no partition:
/// so Kafka understands such requests. What clients send stays as it is.
pub fn each_once(topics: Vec<TopicProduceData>) -> Vec<TopicProduceData> {
    if is_plain(&topics) {
        return topics;
    }
    let mut merged: BTreeMap<_, BTreeMap<i32, PartitionProduceData>> = BTreeMap::new();
    for topic in topics {
        for entry in topic.partition_data {
            let of_topic = merged.entry((topic.name.clone(), topic.topic_id)).or_default();
            of_topic.insert(entry.index, entry);
        }
    }
    let topic = |((name, topic_id), entries): (_, BTreeMap<_, _>)| {
        TopicProduceData::default()
            .with_name(name)
            .with_topic_id(topic_id)
            .with_partition_data(entries.into_values().collect())
    };
    merged.into_iter().map(topic).collect()
}

fn is_plain(topics: &[TopicProduceData]) -> bool {
    let mut seen_topics = Set::default();
    let mut seen = Set::default();
    topics.iter().all(|topic| {
        seen.clear();
        let is_new = topics.len() == 1 || seen_topics.insert((&topic.name, topic.topic_id));
        let entries = &topic.partition_data;
        is_new
            && (entries.len() == 1 || entries.iter().all(|entry| seen.insert(entry.index)))
            && !entries.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::TopicName;
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    fn topic(name: &'static str, entries: &[(i32, &'static [u8])]) -> TopicProduceData {
        let entry = |(index, records): &(i32, &'static [u8])| {
            PartitionProduceData::default().with_index(*index).with_records(Some((*records).into()))
        };
        TopicProduceData::default()
            .with_name(TopicName(StrBytes::from_static_str(name)))
            .with_partition_data(entries.iter().map(entry).collect())
    }

    #[test]
    fn the_last_entry_of_a_partition_counts() {
        let asked = vec![
            topic("b", &[(1, b"v"), (0, b"w"), (1, b"x")]),
            topic("c", &[]),
            topic("a", &[(7, b"y")]),
            topic("b", &[(0, b"z")]),
        ];
        assert_eq!(each_once(asked), [topic("a", &[(7, b"y")]), topic("b", &[(0, b"z"), (1, b"x")])]);
    }

    #[test]
    fn what_names_each_partition_once_keeps_its_order() {
        let asked = vec![topic("b", &[(1, b"v"), (0, b"w")]), topic("a", &[(1, b"x")])];
        assert_eq!(each_once(asked.clone()), asked);
    }
}
