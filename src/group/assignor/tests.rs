use uuid::Uuid;

use super::*;
use crate::base::seeded::{Seeded, for_each_seed};

struct Member {
    id: MemberId,
    topics: Rc<BTreeSet<TopicId>>,
    current: Partitions,
}

fn assign(assignor: Assignor, topics: &BTreeMap<TopicId, i32>, members: &mut [Member]) -> usize {
    let subscribers: Vec<Subscriber<'_>> = (members.iter())
        .map(|member| Subscriber {
            member: &member.id,
            instance: None,
            topics: member.topics.clone(),
            current: &member.current,
        })
        .collect();
    let mut given = assignor.assign(topics, &subscribers);
    let mut moved = 0;
    for member in members {
        let now = given.remove(&member.id).unwrap();
        moved += places(&now).filter(|place| !places(&member.current).any(|had| had == *place)).count();
        member.current = now;
    }
    assert!(given.is_empty(), "an assignment for nobody");
    moved
}

fn places(partitions: &Partitions) -> impl Iterator<Item = (TopicId, PartitionIndex)> {
    partitions.iter().flat_map(|(topic, partitions)| partitions.iter().map(|partition| (*topic, *partition)))
}

fn topic(number: u64) -> TopicId {
    TopicId(Uuid::from_u128(1000 + u128::from(number)))
}

fn random_members(random: &mut Seeded, alike: bool) -> Vec<Member> {
    let subscription = |random: &mut Seeded| -> Rc<BTreeSet<TopicId>> {
        Rc::new((0..4).filter(|_| !random.one_in(3)).map(topic).collect())
    };
    let same = subscription(random);
    let member = |index: u64, random: &mut Seeded| Member {
        id: MemberId::new(&format!("m{index}")),
        topics: if alike { same.clone() } else { subscription(random) },
        current: Partitions::new(),
    };
    (0..1 + random.below(6)).map(|index| member(index, random)).collect()
}

/// Every wanted partition has one owner, who wants it.
fn assert_complete(topics: &BTreeMap<TopicId, i32>, members: &[Member]) {
    let mut owned = BTreeSet::new();
    for member in members {
        for place in places(&member.current) {
            assert!(member.topics.contains(&place.0) && place.1.0 < topics[&place.0]);
            assert!(owned.insert(place), "{place:?} is given twice");
        }
    }
    let wanted = |topic: &TopicId| members.iter().any(|member| member.topics.contains(topic));
    let count: i32 = topics.iter().filter(|(topic, _)| wanted(topic)).map(|(_, count)| count).sum();
    assert_eq!(i32::try_from(owned.len()).unwrap(), count);
}

#[test]
fn every_wanted_partition_has_one_owner_who_wants_it() {
    for_each_seed(300, |mut random| {
        let assignor = if random.one_in(2) { Assignor::Uniform } else { Assignor::Range };
        let alike = random.one_in(2);
        let mut topics: BTreeMap<TopicId, i32> =
            (0..4).map(|number| (topic(number), i32::try_from(random.below(9)).unwrap())).collect();
        let mut members = random_members(&mut random, alike);
        for _ in 0..5 {
            assign(assignor, &topics, &mut members);
            assert_complete(&topics, &members);
            assert_eq!(
                assign(assignor, &topics, &mut members),
                0,
                "nothing has changed, and something moved"
            );
            if members.len() > 1 && random.one_in(2) {
                members.remove(usize::try_from(random.below(members.len() as u64)).unwrap());
            }
            *topics.get_mut(&topic(random.below(4))).unwrap() += 1;
        }
    });
}

#[test]
fn uniform_is_even_and_moves_no_more_than_that_takes() {
    for_each_seed(200, |mut random| {
        let topics: BTreeMap<TopicId, i32> = (0..4).map(|number| (topic(number), 6)).collect();
        let mut members = random_members(&mut random, true);
        assign(Assignor::Uniform, &topics, &mut members);
        let leaver = members.remove(usize::try_from(random.below(members.len() as u64)).unwrap());
        let moved = assign(Assignor::Uniform, &topics, &mut members);
        if !members.is_empty() {
            assert_eq!(moved, places(&leaver.current).count(), "only what the leaver had moves");
        }
        let counts: Vec<usize> = members.iter().map(|member| places(&member.current).count()).collect();
        let spread = counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0);
        assert!(spread <= 1, "{counts:?}");
    });
}
