//! Asking the share coordinator for a group: to begin, to forget, to say how far it has come; many partitions together.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;

use super::super::context::RequestContext;
use super::super::creation::create_missing;
use super::super::group::ask::ask;
use crate::base::{GroupId, Offset, PartitionIndex, TopicId, TopicPartition};
use crate::group::{
    GroupError, MemberEpoch, NamedPartitions, Request, Response, ShareStateBeginning, ShareStateStep,
};
use crate::metadata::SHARE_TOPIC;
use crate::runtime::Runtime;
use crate::shard::{Shard, ShareRefusal};
use crate::share::{SharePartitionKey, StateAnswer, StateQuestion};

/// Questions on their way at a time.
const ASKED_AT_A_TIME: usize = 64;

pub type Topics = BTreeMap<TopicId, NamedPartitions>;
pub type Results<T> = Vec<(TopicPartition, Result<T, ShareRefusal>)>;

/// Takes the group one step further in asking the share coordinator.
pub fn step<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    step: ShareStateStep,
) -> impl Future<Output = Result<ShareStateBeginning, GroupError>> {
    let pick = |response| match response {
        Response::ShareState(result) => Some(result),
        _ => None,
    };
    let request = Request::ShareState { group: group.clone(), step };
    let asked = ask(context, group.as_str(), request, pick);
    async move { asked.await.flatten() }
}

/// Asks the share coordinator the same of each partition; the answers come in the order of `partitions`.
pub async fn ask_each<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    partitions: impl IntoIterator<Item = (TopicPartition, StateQuestion)>,
) -> Results<StateAnswer> {
    let mut results = Vec::new();
    let mut asked = Vec::new();
    for (partition, question) in partitions {
        let key = SharePartitionKey { group: group.clone(), partition };
        let router = context.router.clone();
        // Begun here, so that they are on their way together; dropped half-way they go on.
        let asking = async move { router.ask_share_coordinator(&key, question).await };
        asked.push((partition, context.router.to_the_end(asking)));
        if asked.len() == ASKED_AT_A_TIME {
            take_answers(&mut asked, &mut results).await;
        }
    }
    take_answers(&mut asked, &mut results).await;
    results
}

async fn take_answers<F>(asked: &mut Vec<(TopicPartition, F)>, results: &mut Results<StateAnswer>)
where
    F: Future<Output = Option<Result<StateAnswer, ShareRefusal>>>,
{
    for (partition, answer) in asked.drain(..) {
        results.push((partition, answer.await.unwrap_or(Err(ShareRefusal::NoStateCoordinator))));
    }
}

/// Has the share coordinator begin with `partitions` and the group know what came of it. What shards have loaded of them is
/// void from then on.
pub async fn begin<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    state_epoch: MemberEpoch,
    topics: &Topics,
    partitions: Vec<(TopicPartition, Offset)>,
) -> Results<StateAnswer> {
    create_missing(context, &[SHARE_TOPIC]).await;
    let question = |(partition, start_offset)| {
        (partition, StateQuestion::Initialize { state_epoch: state_epoch.0, start_offset })
    };
    let results = ask_each(context, group, partitions.into_iter().map(question)).await;
    forget_loaded(context, group, results.iter().map(|(partition, _)| *partition)).await;
    let (mut initialized, mut failed) = (Topics::new(), Topics::new());
    for (partition, result) in &results {
        let Some(named) = topics.get(&partition.topic_id) else { continue };
        let into = if result.is_ok() { &mut initialized } else { &mut failed };
        let empty = || NamedPartitions { topic: named.topic.clone(), partitions: BTreeSet::new() };
        into.entry(partition.topic_id).or_insert_with(empty).partitions.insert(partition.partition);
    }
    if let Err(error) = step(context, group, ShareStateStep::Begun { initialized, failed }).await {
        tracing::debug!(%error, "a share group does not know which state is kept of it");
    }
    results
}

/// The same, for partitions whose start is not known yet, while the asker goes on: it hears of them at a later heartbeat.
pub fn begin_in_background<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: GroupId,
    beginning: ShareStateBeginning,
) {
    let asking = context.clone();
    let began = async move {
        let partitions = each(&beginning.topics).map(|partition| (partition, Offset::NONE)).collect();
        for (partition, result) in
            begin(&asking, &group, beginning.state_epoch, &beginning.topics, partitions).await
        {
            if let Err(refusal) = result {
                tracing::debug!(%partition, ?refusal, "the state of a share group is not begun; it is tried again");
            }
        }
    };
    drop(context.router.to_the_end(began));
}

/// Has the share coordinator forget `topics` (all of a topic of which no partition is named), and the group know it. Gives the topics
/// where that failed.
pub async fn forget<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    topics: &Topics,
) -> BTreeMap<TopicId, ShareRefusal> {
    let mut all = topics.clone();
    for (topic_id, named) in all.iter_mut().filter(|(_, named)| named.partitions.is_empty()) {
        let image = context.shard().image.borrow();
        let count = image.topic(*topic_id).map_or(0, |topic| topic.partition_count());
        named.partitions = (0..i32::try_from(count).unwrap_or(i32::MAX)).map(PartitionIndex).collect();
    }
    let questions = each(&all).map(|partition| (partition, StateQuestion::Delete));
    let results = ask_each(context, group, questions.collect::<Vec<_>>()).await;
    forget_loaded(context, group, results.iter().map(|(partition, _)| *partition)).await;
    let failed: BTreeMap<TopicId, ShareRefusal> = (results.into_iter())
        .filter_map(|(partition, result)| Some((partition.topic_id, result.err()?)))
        .collect();
    let deleted: BTreeSet<TopicId> =
        topics.keys().copied().filter(|topic_id| !failed.contains_key(topic_id)).collect();
    if !deleted.is_empty()
        && let Err(error) = step(context, group, ShareStateStep::Deleted(deleted)).await
    {
        tracing::debug!(%error, "a share group does not know which state is gone");
    }
    failed
}

/// Before groups are deleted: has the share coordinator forget those of them that are share groups without members. Gives those where
/// that failed; what else speaks against the deletion the group says.
pub async fn forget_share_groups<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    groups: &[&str],
) -> BTreeMap<String, ShareRefusal> {
    let mut failed = BTreeMap::new();
    for name in groups {
        let group = GroupId::new(name);
        let Ok(beginning) = step(context, &group, ShareStateStep::BeginDelete(None)).await else { continue };
        let refused = forget(context, &group, &beginning.topics).await;
        if let Some(refusal) = refused.into_values().next() {
            failed.insert((*name).to_owned(), refusal);
        }
    }
    failed
}

/// What shards have loaded of these partitions is void.
async fn forget_loaded<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    partitions: impl Iterator<Item = TopicPartition>,
) {
    let forgotten: Vec<_> = partitions
        .map(|partition| {
            let key = SharePartitionKey { group: group.clone(), partition };
            context.router.on(context.owner_of(partition), move |shard: Rc<Shard<R>>| {
                shard.forget_shared(&key);
                async {}
            })
        })
        .collect();
    for forgotten in forgotten {
        forgotten.await;
    }
}

pub fn each(topics: &Topics) -> impl Iterator<Item = TopicPartition> {
    topics.iter().flat_map(|(topic_id, named)| {
        let of = |partition: &PartitionIndex| TopicPartition { topic_id: *topic_id, partition: *partition };
        named.partitions.iter().map(of)
    })
}
