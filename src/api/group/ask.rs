use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use super::super::context::RequestContext;
use crate::base::{PartitionIndex, TopicPartition};
use crate::group::{GroupError, GroupId, Request, Response};
use crate::metadata::OFFSETS_TOPIC;
use crate::router::coordinator_partition;
use crate::runtime::Runtime;
use crate::shard::Shard;

/// The partition of `__consumer_offsets` whose owner coordinates `group`; `None`: there is no such topic yet.
pub fn coordinator_of<R: Runtime>(context: &RequestContext<R>, group: &str) -> Option<TopicPartition> {
    let image = context.shard().image.borrow();
    let topic = image.topic_named(OFFSETS_TOPIC)?;
    let count = i32::try_from(topic.partition_count()).ok().filter(|count| *count > 0)?;
    let partition = PartitionIndex(coordinator_partition(group, count));
    Some(TopicPartition { topic_id: topic.id, partition })
}

/// Hands `request` to the coordinator of `group`; it is on its way when this returns. `pick` takes the answer out of the
/// response of the request's own kind. Error: `NotCoordinator`, nobody coordinates the group.
pub fn ask<R: Runtime, T>(
    context: &Rc<RequestContext<R>>,
    group: &str,
    request: Request,
    pick: impl FnOnce(Response) -> Option<T>,
) -> impl Future<Output = Result<T, GroupError>> {
    ask_at(context, coordinator_of(context, group), request, pick)
}

/// The same, when the coordinator's partition is known.
pub fn ask_at<R: Runtime, T>(
    context: &Rc<RequestContext<R>>,
    coordinator: Option<TopicPartition>,
    request: Request,
    pick: impl FnOnce(Response) -> Option<T>,
) -> impl Future<Output = Result<T, GroupError>> {
    let asked = coordinator.map(|partition| {
        let work = move |shard: Rc<Shard<R>>| shard.ask_group_coordinator(partition, request);
        context.router.on(context.owner_of(partition), work)
    });
    async move {
        let answered = match asked {
            Some(asked) => asked.await.flatten(),
            None => None,
        };
        let response = answered.ok_or(GroupError::NotCoordinator)?;
        Ok(pick(response).expect("a coordinator answers with the response of the request's own kind"))
    }
}

/// Hands the groups to their coordinators, each coordinator its share in one request, and gives the results in the order of
/// `groups`.
pub async fn ask_by_coordinator<R: Runtime, T>(
    context: &Rc<RequestContext<R>>,
    groups: &[&str],
    request: impl Fn(Vec<GroupId>) -> Request,
    pick: impl Fn(Response) -> Option<Vec<(GroupId, Result<T, GroupError>)>>,
) -> Vec<Result<T, GroupError>> {
    let mut shares: BTreeMap<Option<TopicPartition>, Vec<usize>> = BTreeMap::new();
    for (place, group) in groups.iter().enumerate() {
        shares.entry(coordinator_of(context, group)).or_default().push(place);
    }
    let asked: Vec<_> = shares
        .into_iter()
        .map(|(coordinator, places)| {
            let share = places.iter().map(|place| GroupId::new(groups[*place])).collect();
            (places, ask_at(context, coordinator, request(share), &pick))
        })
        .collect();
    let mut results: Vec<Result<T, GroupError>> = Vec::new();
    results.resize_with(groups.len(), || Err(GroupError::NotCoordinator));
    for (places, answer) in asked {
        match answer.await {
            Ok(answers) => {
                places.into_iter().zip(answers).for_each(|(place, (_, result))| results[place] = result);
            }
            Err(error) => places.into_iter().for_each(|place| results[place] = Err(error)),
        }
    }
    results
}

/// Every partition of `__consumer_offsets`.
pub fn coordinators<R: Runtime>(context: &RequestContext<R>) -> Vec<TopicPartition> {
    let image = context.shard().image.borrow();
    let Some(topic) = image.topic_named(OFFSETS_TOPIC) else { return Vec::new() };
    let count = i32::try_from(topic.partition_count()).unwrap_or(i32::MAX);
    let of = |index| TopicPartition { topic_id: topic.id, partition: PartitionIndex(index) };
    (0..count).map(of).collect()
}
