use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use regex::Regex;
use twox_hash::XxHash3_64;

use crate::base::{Map, TimestampMs, TopicId, TopicName};
use crate::group::{Cluster, ClusterTopic, ConsumerRecord, MemberId, Now, ResolvedExpression};

use super::group::{ConsumerGroup, ConsumerMember};
use super::live::{Draft, LiveConsumerGroup};
use super::pattern::compile;

/// Names and pattern of a member.
type Wants<'a> = (&'a BTreeSet<TopicName>, Option<&'a str>);

/// First byte of what a topic's hash is made of: the version of that form.
const TOPIC_HASH_FORM: u8 = 0;

impl Draft<'_> {
    /// Looks up the patterns that are new, and all again when there are other topics than last time, or when
    /// `refresh_all`. Says whether any stands for other topics now.
    pub fn resolve_expressions(&mut self, now: Now, cluster: &dyn Cluster, refresh_all: bool) -> bool {
        if refresh_all {
            self.group.expressions_resolved_at = Some(now.wall);
        }
        let members = self.group.state.members.values();
        let subscribed: BTreeSet<Box<str>> =
            members.filter_map(ConsumerMember::expression).map(Into::into).collect();
        let mut changed = false;
        for expression in subscribed {
            let former = self.group.state.expressions.get(&expression);
            if former.is_some() && !refresh_all {
                continue;
            }
            // Only sound ones are let in; one of a log that Kafka wrote may be none to us, and stands for nothing.
            let topics = compile(&expression).map(|regex| matching(&regex, cluster)).unwrap_or_default();
            if former.is_some_and(|former| former.topics == topics) {
                continue;
            }
            let resolved =
                ResolvedExpression { topics, version: cluster.topics_version(), timestamp: now.wall };
            self.write(ConsumerRecord::RegularExpression(expression, Some(resolved)));
            changed = true;
        }
        changed
    }

    /// Forgets the patterns that no member has any more.
    pub fn drop_unused_expressions(&mut self) {
        let state = &self.group.state;
        let used: BTreeSet<&str> = state.members.values().filter_map(ConsumerMember::expression).collect();
        let unused: Vec<Box<str>> =
            state.expressions.keys().filter(|expression| !used.contains(&***expression)).cloned().collect();
        for expression in unused {
            self.write(ConsumerRecord::RegularExpression(expression, None));
        }
    }
}

fn matching(regex: &Regex, cluster: &dyn Cluster) -> BTreeSet<TopicName> {
    let mut topics = BTreeSet::new();
    cluster.for_each_topic(&mut |name| {
        if regex.is_match(name.as_str()) {
            topics.insert(name.clone());
        }
    });
    topics
}

impl LiveConsumerGroup {
    /// When all patterns were last looked up, as far as the log or this process knows.
    pub(super) fn expressions_resolved_at(&self) -> Option<TimestampMs> {
        let written = self.state.expressions.values().map(|expression| expression.timestamp).max();
        written.max(self.expressions_resolved_at)
    }
}

impl ConsumerGroup {
    /// The topics that any member wants and that exist, by name.
    pub(super) fn subscribed_topics(&self, cluster: &dyn Cluster) -> BTreeMap<TopicName, ClusterTopic> {
        let names = self.members.values().flat_map(|member| &member.metadata.subscribed_topics);
        let matched = self.expressions.values().flat_map(|expression| &expression.topics);
        let names: BTreeSet<&TopicName> = names.chain(matched).collect();
        names.into_iter().filter_map(|name| Some((name.clone(), cluster.topic(name)?))).collect()
    }

    /// The existing topics each member wants, by id.
    pub(super) fn subscriptions(
        &self,
        topics: &BTreeMap<TopicName, ClusterTopic>,
    ) -> BTreeMap<MemberId, Rc<BTreeSet<TopicId>>> {
        let mut known: Map<Wants<'_>, Rc<BTreeSet<TopicId>>> = Map::default();
        let mut of_members = BTreeMap::new();
        for (id, member) in &self.members {
            let key = (&member.metadata.subscribed_topics, member.expression());
            let ids = known.entry(key).or_insert_with(|| {
                let ids = self.wanted_by(member).filter_map(|name| topics.get(name)).map(|topic| topic.id);
                Rc::new(ids.collect())
            });
            of_members.insert(id.clone(), ids.clone());
        }
        of_members
    }

    /// The existing topics that one member wants, by id.
    pub(super) fn subscription(&self, member: &ConsumerMember, cluster: &dyn Cluster) -> BTreeSet<TopicId> {
        self.wanted_by(member).filter_map(|name| cluster.topic(name)).map(|topic| topic.id).collect()
    }

    fn wanted_by<'a>(&'a self, member: &'a ConsumerMember) -> impl Iterator<Item = &'a TopicName> {
        let expression = member.expression().and_then(|expression| self.expressions.get(expression));
        let matched = expression.into_iter().flat_map(|expression| &expression.topics);
        member.metadata.subscribed_topics.iter().chain(matched)
    }
}

/// A hash over topics as they are: another one means that the group must be assigned anew. Of no topics it is 0.
/// Source: Kafka's `Utils.computeGroupHash` and `computeTopicHash`, XXH3 over little-endian numbers.
pub(in crate::group) fn metadata_hash(
    cluster: &dyn Cluster,
    topics: &BTreeMap<TopicName, ClusterTopic>,
) -> i64 {
    if topics.is_empty() {
        return 0;
    }
    let rack = cluster.rack();
    let hash = |(name, topic)| topic_hash(name, topic, rack.as_deref()).to_le_bytes();
    let hashes: Vec<u8> = topics.iter().flat_map(hash).collect();
    XxHash3_64::oneshot(&hashes).cast_signed()
}

fn topic_hash(name: &TopicName, topic: &ClusterTopic, rack: Option<&str>) -> u64 {
    let mut form = vec![TOPIC_HASH_FORM];
    let (most, least) = topic.id.0.as_u64_pair();
    form.extend(most.to_le_bytes());
    form.extend(least.to_le_bytes());
    put_text(&mut form, name.as_str());
    form.extend(topic.partition_count.to_le_bytes());
    for partition in 0..topic.partition_count {
        form.extend(partition.to_le_bytes());
        if let Some(rack) = rack {
            form.extend(utf16_length(rack).to_le_bytes());
            put_text(&mut form, rack);
        }
    }
    XxHash3_64::oneshot(&form)
}

/// Text as the hash takes it: its UTF-16 units, then how many they are.
fn put_text(form: &mut Vec<u8>, text: &str) {
    form.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    form.extend(utf16_length(text).to_le_bytes());
}

fn utf16_length(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).expect("names of topics and racks are short")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::group::tests::TestCluster;

    #[test]
    fn the_hash_is_that_of_apache_kafka() {
        let id = TopicId(Uuid::from_u128(0xbe76_0f17_1f5c_4f0a_b90d_3376_eab0_7db2));
        let topics = BTreeMap::from([(TopicName::new("cga"), ClusterTopic { id, partition_count: 4 })]);
        let cluster = TestCluster::default();
        assert_eq!(metadata_hash(&cluster, &topics), 0xa17d_a288_01d8_f76b_u64.cast_signed());
        assert_eq!(metadata_hash(&cluster, &BTreeMap::new()), 0);
    }
}
