use std::collections::BTreeMap;

use crate::base::{PartitionIndex, TopicId};
use crate::group::MemberId;

use super::{Partitions, Subscriber};

/// What is left of one topic while its members get their runs.
struct Rest {
    next: i32,
    end: i32,
    /// Every member gets so many, and the first `extra` ones one more.
    quota: i32,
    extra: i32,
}

/// Static members come first, by instance id, so that a restart with other member ids changes nothing.
/// Source: Kafka's `RangeAssignor`.
pub(super) fn assign(
    topics: &BTreeMap<TopicId, i32>,
    members: &[Subscriber<'_>],
) -> BTreeMap<MemberId, Partitions> {
    let mut ordered: Vec<&Subscriber<'_>> = members.iter().collect();
    ordered.sort_by_key(|member| (member.instance.is_none(), member.instance, member.member));
    let mut wanted: BTreeMap<TopicId, i32> = BTreeMap::new();
    for topic in members.iter().flat_map(|member| member.topics.iter()) {
        *wanted.entry(*topic).or_default() += 1;
    }
    let mut rests: BTreeMap<TopicId, Rest> = (wanted.into_iter())
        .map(|(topic, subscribers)| {
            let end = topics.get(&topic).copied().unwrap_or(0);
            (topic, Rest { next: 0, end, quota: end / subscribers, extra: end % subscribers })
        })
        .collect();
    let mut assignment = BTreeMap::new();
    for member in ordered {
        let mut given = Partitions::new();
        for topic in member.topics.iter() {
            let rest = rests.get_mut(topic).expect("every wanted topic was counted");
            let count = rest.quota + i32::from(rest.extra > 0);
            rest.extra -= i32::from(rest.extra > 0);
            let run = rest.next..(rest.next + count).min(rest.end);
            rest.next = run.end;
            if !run.is_empty() {
                given.insert(*topic, run.map(PartitionIndex).collect());
            }
        }
        assignment.insert(member.member.clone(), given);
    }
    assignment
}
