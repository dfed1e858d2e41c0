use std::collections::{BTreeMap, BTreeSet};

use crate::base::{PartitionIndex, TopicId};
use crate::group::MemberId;

use super::{Partitions, Subscriber, is_homogeneous};

type Place = (TopicId, PartitionIndex);

/// Share groups: every partition that anybody wants is with somebody, and with several where there are more members than
/// partitions; every member has something. Evenly, and moving as few as possible. `assignable`: partitions by topic.
/// Source: Kafka's `SimpleAssignor`; which member gets which is not always the same.
pub fn assign(assignable: &Partitions, members: &[Subscriber<'_>]) -> BTreeMap<MemberId, Partitions> {
    let mut given: BTreeMap<MemberId, Partitions> =
        members.iter().map(|member| (member.member.clone(), Partitions::new())).collect();
    let everybody: Vec<&Subscriber<'_>> = members.iter().collect();
    if is_homogeneous(members) {
        let wanted = members.first().map(|member| member.topics.clone()).unwrap_or_default();
        let wanted = assignable.iter().filter(|(topic, _)| wanted.contains(topic));
        let places: Vec<Place> = wanted.flat_map(places_of).collect();
        share_out(&places, &everybody, &mut given);
        return given;
    }
    for (topic, partitions) in assignable {
        let subscribers: Vec<&Subscriber<'_>> =
            members.iter().filter(|member| member.topics.contains(topic)).collect();
        let places: Vec<Place> = places_of((topic, partitions)).collect();
        share_out(&places, &subscribers, &mut given);
    }
    given
}

fn places_of<'a>(
    (topic, partitions): (&'a TopicId, &'a BTreeSet<PartitionIndex>),
) -> impl Iterator<Item = Place> + use<'a> {
    partitions.iter().map(|partition| (*topic, *partition))
}

/// Gives each of `places` to one of `members`, or where these are more, each member one place.
fn share_out(places: &[Place], members: &[&Subscriber<'_>], given: &mut BTreeMap<MemberId, Partitions>) {
    if places.is_empty() || members.is_empty() {
        return;
    }
    // How many members a place has, and how many places a member has: one more for some.
    let share = places.len() / members.len();
    let (sharers_each, mut one_more) = match members.len() >= places.len() {
        true => (members.len() / places.len(), members.len() % places.len()),
        false => (1, 0),
    };
    let mut extra = if share == 0 { 0 } else { places.len() % members.len() };
    let mut sharers: BTreeMap<Place, usize> = places.iter().map(|place| (*place, 0)).collect();
    let mut short: Vec<(&MemberId, usize)> = Vec::new();
    for member in members {
        let most = share.max(1) + usize::from(extra > 0);
        let mut kept = 0;
        let had = member.current.iter().flat_map(places_of);
        for place in had {
            let Some(count) = sharers.get_mut(&place) else { continue };
            let is_one_more = *count == sharers_each && one_more > 0;
            if kept < most && (*count < sharers_each || is_one_more) {
                one_more -= usize::from(is_one_more);
                *count += 1;
                kept += 1;
                give(given, member.member, place);
            }
        }
        if kept > share.max(1) {
            extra -= 1;
        }
        short.push((member.member, kept));
    }
    let mut by_need: BTreeSet<(usize, Place)> =
        sharers.iter().map(|(place, count)| (*count, *place)).collect();
    for (member, mut has) in short {
        let most = share.max(1) + usize::from(extra > 0);
        let is_extra = has < most && most > share.max(1);
        while has < most {
            let Some((count, place)) = by_need.pop_first() else { break };
            if share > 0 && count > 0 {
                by_need.insert((count, place));
                break;
            }
            by_need.insert((count + 1, place));
            has += 1;
            give(given, member, place);
        }
        if is_extra && has == most {
            extra -= 1;
        }
    }
}

fn give(given: &mut BTreeMap<MemberId, Partitions>, member: &MemberId, (topic, partition): Place) {
    given.entry(member.clone()).or_default().entry(topic).or_default().insert(partition);
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use uuid::Uuid;

    use super::*;
    use crate::base::seeded::for_each_seed;

    #[test]
    fn every_partition_and_every_member_has_its_share_and_nothing_moves_without_need() {
        for_each_seed(200, |mut random| {
            let topics: BTreeSet<TopicId> = [TopicId(Uuid::from_u128(1)), TopicId(Uuid::from_u128(2))].into();
            let topics = Rc::new(topics);
            let mut current: BTreeMap<MemberId, Partitions> = BTreeMap::new();
            let mut assignable = Partitions::new();
            for _ in 0..12 {
                for topic in topics.iter() {
                    let count = random.below(5) as i32;
                    assignable.insert(*topic, (0..count).map(PartitionIndex).collect());
                }
                let id = MemberId::new(&format!("m{}", random.below(9)));
                if current.remove(&id).is_none() {
                    current.insert(id, Partitions::new());
                }
                let subscribers =
                    |current: &BTreeMap<MemberId, Partitions>| -> BTreeMap<MemberId, Partitions> {
                        let members: Vec<Subscriber<'_>> = (current.iter())
                            .map(|(member, current)| Subscriber {
                                member,
                                instance: None,
                                topics: topics.clone(),
                                current,
                            })
                            .collect();
                        assign(&assignable, &members)
                    };
                let given = subscribers(&current);
                let places: usize = assignable.values().map(BTreeSet::len).sum();
                let count = |partitions: &Partitions| partitions.values().map(BTreeSet::len).sum::<usize>();
                let counts: Vec<usize> = given.values().map(count).collect();
                if places > 0 && !given.is_empty() {
                    let even = places.div_ceil(given.len());
                    assert!(
                        counts.iter().all(|count| (1.max(places / given.len())..=even).contains(count)),
                        "{counts:?}"
                    );
                    let mut sharers: BTreeMap<Place, usize> = BTreeMap::new();
                    for place in given.values().flat_map(|given| given.iter().flat_map(places_of)) {
                        *sharers.entry(place).or_default() += 1;
                    }
                    assert_eq!(sharers.len(), places, "all of them are with somebody: {given:?}");
                    let most = given.len().div_ceil(places);
                    assert!(sharers.values().all(|count| *count <= most), "{sharers:?}");
                }
                assert_eq!(subscribers(&given), given, "at rest");
                current = given;
            }
        });
    }
}
