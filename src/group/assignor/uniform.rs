use std::collections::{BTreeMap, BTreeSet};

use crate::base::{PartitionIndex, Set, TopicId};
use crate::group::MemberId;

use super::{Partitions, Subscriber, is_homogeneous};

type Place = (TopicId, PartitionIndex);

/// Balance first, then as little movement as balance allows.
/// Source: Kafka's `UniformAssignor`. Where not all want the same, Kafka's own way is longer, its promise the same.
pub(super) fn assign(
    topics: &BTreeMap<TopicId, i32>,
    members: &[Subscriber<'_>],
) -> BTreeMap<MemberId, Partitions> {
    if members.is_empty() {
        return BTreeMap::new();
    }
    let mut given = kept(topics, members);
    let unassigned = unassigned(topics, members, &given);
    if is_homogeneous(members) {
        level(&mut given, unassigned);
    } else {
        give_out(members, &mut given, unassigned);
        balance(members, &mut given);
    }
    let as_partitions = |places: BTreeSet<Place>| {
        let mut partitions = Partitions::new();
        for (topic, partition) in places {
            partitions.entry(topic).or_default().insert(partition);
        }
        partitions
    };
    members.iter().zip(given).map(|(member, places)| (member.member.clone(), as_partitions(places))).collect()
}

/// What each member has now and may keep: of topics it still wants, partitions that exist and no other has.
fn kept(topics: &BTreeMap<TopicId, i32>, members: &[Subscriber<'_>]) -> Vec<BTreeSet<Place>> {
    let mut taken: Set<Place> = Set::default();
    let keep = |member: &Subscriber<'_>| {
        let places = member.current.iter().filter(|(topic, _)| member.topics.contains(topic));
        let places = places.flat_map(|(topic, partitions)| {
            let count = topics.get(topic).copied().unwrap_or(0);
            let existing = partitions.iter().filter(move |partition| partition.0 < count);
            existing.map(|partition| (*topic, *partition))
        });
        places.filter(|place| taken.insert(*place)).collect()
    };
    members.iter().map(keep).collect()
}

/// Partitions that somebody wants and nobody has, topic by topic.
fn unassigned(
    topics: &BTreeMap<TopicId, i32>,
    members: &[Subscriber<'_>],
    given: &[BTreeSet<Place>],
) -> Vec<Place> {
    let taken: Set<Place> = given.iter().flatten().copied().collect();
    let wanted: BTreeSet<TopicId> = members.iter().flat_map(|member| member.topics.iter().copied()).collect();
    let of_topic = |topic: TopicId| {
        let count = topics.get(&topic).copied().unwrap_or(0);
        (0..count).map(move |index| (topic, PartitionIndex(index)))
    };
    wanted.into_iter().flat_map(of_topic).filter(|place| !taken.contains(place)).collect()
}

/// Everybody wants the same: each gets the same count, or one more. Those who have most keep the one more.
fn level(given: &mut [BTreeSet<Place>], mut unassigned: Vec<Place>) {
    let total = given.iter().map(BTreeSet::len).sum::<usize>() + unassigned.len();
    let (quota, mut extra) = (total / given.len(), total % given.len());
    let mut by_count: Vec<usize> = (0..given.len()).collect();
    by_count.sort_by_key(|index| std::cmp::Reverse(given[*index].len()));
    let mut short = Vec::new();
    for index in by_count {
        let most = quota + usize::from(extra > 0);
        extra -= usize::from(extra > 0);
        while given[index].len() > most {
            unassigned.push(given[index].pop_last().expect("it has more than its share"));
        }
        if given[index].len() < most {
            short.push((index, most));
        }
    }
    let mut rest = unassigned.into_iter();
    for (index, most) in short {
        let missing = most - given[index].len();
        given[index].extend(rest.by_ref().take(missing));
    }
    assert_eq!(rest.next(), None, "the quotas add up to all partitions");
}

/// Gives each partition to whoever has least of those who want it; topics that few want first.
fn give_out(members: &[Subscriber<'_>], given: &mut [BTreeSet<Place>], unassigned: Vec<Place>) {
    let mut subscribers: BTreeMap<TopicId, Vec<usize>> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        for topic in member.topics.iter() {
            subscribers.entry(*topic).or_default().push(index);
        }
    }
    let mut ordered = unassigned;
    ordered.sort_by_key(|(topic, partition)| (subscribers[topic].len(), *topic, *partition));
    for place in ordered {
        let least = subscribers[&place.0].iter().copied().min_by_key(|index| (given[*index].len(), *index));
        given[least.expect("only wanted partitions are given out")].insert(place);
    }
}

/// Moves partitions from those who have more to those who have less, as long as that makes it more even. Each move lowers
/// the sum of the squares of the counts, so it ends.
fn balance(members: &[Subscriber<'_>], given: &mut [BTreeSet<Place>]) {
    loop {
        let mut moved = false;
        let mut by_count: Vec<usize> = (0..given.len()).collect();
        by_count.sort_by_key(|index| given[*index].len());
        for &receiver in &by_count {
            while let Some((giver, place)) = to_move(members, given, &by_count, receiver) {
                given[giver].remove(&place);
                given[receiver].insert(place);
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

fn to_move(
    members: &[Subscriber<'_>],
    given: &[BTreeSet<Place>],
    by_count: &[usize],
    receiver: usize,
) -> Option<(usize, Place)> {
    let wanted = &members[receiver].topics;
    let givers =
        by_count.iter().rev().copied().filter(|giver| given[*giver].len() > given[receiver].len() + 1);
    for giver in givers {
        if let Some(place) = given[giver].iter().rev().find(|(topic, _)| wanted.contains(topic)) {
            return Some((giver, *place));
        }
    }
    None
}
