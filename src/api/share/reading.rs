//! Reading many partitions for one member, wherever they live, and waiting for there to be something.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use super::super::context::RequestContext;
use crate::base::{Map, Monotonic, ShardId, TopicPartition};
use crate::router::Router;
use crate::runtime::{Runtime, SendSegment};
use crate::shard::{
    QueryRefusal, Read, ShareRead, ShareReadOrder, ShareRefusal, ShareWatchOrder, SharedRead,
};
use crate::share::AcquiredRecords;

/// What one partition gave.
pub struct PartitionRecords<F> {
    pub acquired: Vec<AcquiredRecords>,
    pub records: Vec<SendSegment<F>>,
}

pub type PartitionResult<F> = Result<PartitionRecords<F>, ShareRefusal>;

/// How much a member wants: records, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub records_max: i64,
    pub bytes_max: u64,
}

/// Gives the member what comes next in each partition, until it is about as much as it wants: neighbours in the order that one
/// shard owns are asked together. The results come in the order of `orders`.
pub async fn read_all<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    orders: &[ShareReadOrder],
    wanted: Wanted,
) -> Vec<PartitionResult<R::File>> {
    let mut left = wanted;
    let mut whole_first = true;
    let mut results = Vec::with_capacity(orders.len());
    let owner_of = |order: &ShareReadOrder| context.owner_of(order.key.partition);
    for run in orders.chunk_by(|a, b| owner_of(a) == owner_of(b)) {
        for result in read_on(context, owner_of(&run[0]), run.to_vec(), left, whole_first).await {
            if let Ok(read) = &result {
                let bytes = read.read.as_ref().map_or(0, Read::bytes);
                let records: i64 = read.acquired.iter().map(|run| run.last.0 - run.first.0 + 1).sum();
                context.shard().metrics.fetched_bytes.add(bytes);
                whole_first &= bytes == 0;
                left.bytes_max = left.bytes_max.saturating_sub(bytes);
                left.records_max = left.records_max.saturating_sub(records);
            }
            results.push(result.map(|read| PartitionRecords {
                acquired: read.acquired,
                records: read.read.map(Read::into_segments).unwrap_or_default(),
            }));
        }
    }
    results
}

/// Reads on `owner`; files of another shard come as descriptors of their own.
async fn read_on<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    owner: ShardId,
    orders: Vec<ShareReadOrder>,
    left: Wanted,
    whole_first: bool,
) -> Vec<Result<ShareRead<R::File>, ShareRefusal>> {
    let bounds = (left.records_max, left.bytes_max);
    if owner == context.shard().id {
        return context.router.read_shared_partitions(&orders, bounds, whole_first).await;
    }
    let count = orders.len();
    let work = context.router.at(owner, move |router: Rc<Router<R>>| async move {
        let results = router.read_shared_partitions(&orders, bounds, whole_first).await;
        let share = |read: ShareRead<R::File>| {
            let shared = read.read.map(|read| router.shard.share_read(read)).transpose();
            shared.map(|shared| (read.acquired, shared)).map_err(ShareRefusal::Query)
        };
        results.into_iter().map(|result| result.and_then(share)).collect::<Vec<_>>()
    });
    let stopped = || (0..count).map(|_| Err(ShareRefusal::Query(QueryRefusal::ShardStopped))).collect();
    let runtime = &context.shard().runtime;
    let adopt = |(acquired, shared): (Vec<AcquiredRecords>, Option<SharedRead<R>>)| ShareRead {
        acquired,
        read: shared.map(|shared| shared.adopt(runtime)),
    };
    let results: Vec<Result<_, ShareRefusal>> = work.await.unwrap_or_else(stopped);
    results.into_iter().map(|result| result.map(adopt)).collect()
}

/// Waits until some partition may have something, or for the deadline.
pub async fn wait_for_more<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    orders: &[ShareReadOrder],
    deadline: Monotonic,
) {
    let mut watches: Map<ShardId, Vec<ShareWatchOrder>> = Map::default();
    for order in orders {
        let partition: TopicPartition = order.key.partition;
        let watch = ShareWatchOrder { key: order.key.clone() };
        watches.entry(context.owner_of(partition)).or_default().push(watch);
    }
    let watch = |(owner, orders)| {
        let rung = context.router.wait_on(owner, move |shard| shard.watch_shared(orders));
        Box::pin(async move { rung.await.unwrap_or(()) }) as Pin<Box<dyn Future<Output = ()>>>
    };
    let mut waits: Vec<Pin<Box<dyn Future<Output = ()>>>> = watches.into_iter().map(watch).collect();
    waits.push(Box::pin(context.shard().runtime.sleep_until(deadline)));
    poll_fn(|context| match waits.iter_mut().any(|wait| wait.as_mut().poll(context).is_ready()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await
}
