//! Reading many partitions for one Fetch, wherever they live, under one byte budget.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use super::super::super::context::RequestContext;
use crate::base::{Map, Monotonic, ShardId, TopicPartition};
use crate::partition::{IsolationLevel, ReadPlan, ReadRequest};
use crate::protocol::{AbortedTransaction, ErrorCode, query_code};
use crate::runtime::{Runtime, SendSegment};
use crate::shard::{QueryRefusal, Read, ReadOrder, SharedRead, WatchOrder};

/// One partition of a Fetch.
pub struct Asked {
    pub partition: Result<TopicPartition, ErrorCode>,
    pub request: ReadRequest,
    /// `None`: below 0, which is an error once there is something to read, as in Kafka.
    pub bytes_max: Option<u64>,
}

impl Asked {
    fn bytes_max(&self) -> u64 {
        self.bytes_max.unwrap_or(0)
    }

    fn check_limit<F>(&self, read: PartitionRead<F>) -> PartitionResult<F> {
        let has_more = read.plan.diverging.is_none() && read.plan.from < read.plan.upper_bound;
        if self.bytes_max.is_none() && has_more {
            return Err(Refusal::ByLog(ErrorCode::UnknownServerError.code()));
        }
        Ok(read)
    }
}

/// What one partition gave.
pub struct PartitionRead<F> {
    pub plan: ReadPlan,
    pub aborted: Option<Vec<AbortedTransaction>>,
    pub records: Vec<SendSegment<F>>,
    pub bytes: u64,
}

/// Why one partition gives nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The metadata knows no such partition.
    Unknown(ErrorCode),
    /// Its owner refuses, with Kafka's error code.
    ByLog(i16),
}

impl Refusal {
    fn of(refusal: &QueryRefusal) -> Refusal {
        Refusal::ByLog(query_code(refusal))
    }
}

pub type PartitionResult<F> = Result<PartitionRead<F>, Refusal>;

/// What all partitions gave, in the order asked.
pub struct Collected<F> {
    pub results: Vec<PartitionResult<F>>,
    pub bytes: u64,
    /// Some partition was refused, or has parted from the reader's log: the answer does not wait.
    pub has_refusal: bool,
}

/// Reads every partition of `asked`, at most `bytes_max` in all, but the first batch found whole (KIP-74). Who comes first in the
/// request is served first: as if they were read one after the other.
///
/// All owners are asked together, each as if it were the only one. What then is more than those before have left over is asked
/// for again, with what they have left.
pub async fn read_all<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    asked: &[Asked],
    bytes_max: u64,
) -> Collected<R::File> {
    let mut results: Vec<Option<PartitionResult<R::File>>> = asked.iter().map(|_| None).collect();
    let mut share = Share { left_bytes: bytes_max, whole_first: true };
    let mut places: Vec<usize> = (0..asked.len()).filter(|place| asked[*place].partition.is_ok()).collect();
    while !places.is_empty() {
        let read = read_together(context, asked, &places, share).await;
        let mut served = 0;
        for (place, result) in places.iter().zip(read) {
            let asked = &asked[*place];
            let Some(result) = share.take(asked, result) else { break };
            results[*place] = Some(result.and_then(|read| asked.check_limit(read)));
            served += 1;
        }
        places.drain(..served);
    }
    let unresolved = |asked: &Asked| match asked.partition {
        Err(code) => Refusal::Unknown(code),
        Ok(_) => Refusal::of(&QueryRefusal::ShardStopped),
    };
    let filled = results
        .into_iter()
        .zip(asked)
        .map(|(result, asked)| result.unwrap_or_else(|| Err(unresolved(asked))));
    let results: Vec<PartitionResult<R::File>> = filled.collect();
    let has_refusal =
        results.iter().any(|result| result.as_ref().map_or(true, |read| read.plan.diverging.is_some()));
    let bytes = results.iter().flatten().map(|read| read.bytes).sum();
    Collected { results, bytes, has_refusal }
}

/// What those who come first leave to those behind.
#[derive(Clone, Copy)]
struct Share {
    left_bytes: u64,
    /// Nobody has got anything yet: the first batch found is given whole.
    whole_first: bool,
}

impl Share {
    /// What a partition gave that was read with this share or a larger one; `None`: with this one it would have given something else.
    fn take<F>(&mut self, asked: &Asked, result: PartitionResult<F>) -> Option<PartitionResult<F>> {
        let Ok(mut read) = result else { return Some(result) };
        let is_over = self.left_bytes == 0 && !self.whole_first;
        if is_over && read.plan.diverging.is_none() {
            let committed = asked.request.isolation == IsolationLevel::ReadCommitted;
            read.aborted = committed.then(Vec::new);
            read.records.clear();
            read.bytes = 0;
        } else if !self.whole_first && read.bytes > asked.bytes_max().min(self.left_bytes) {
            return None;
        }
        self.left_bytes = self.left_bytes.saturating_sub(read.bytes);
        self.whole_first &= read.bytes == 0;
        Some(Ok(read))
    }
}

/// What is found at these places of `asked`, in their order, with the same share for each owner.
async fn read_together<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    asked: &[Asked],
    places: &[usize],
    share: Share,
) -> Vec<PartitionResult<R::File>> {
    let mut of_owner: Map<ShardId, Vec<ReadOrder>> = Map::default();
    let mut owners = Vec::with_capacity(places.len());
    for order in places.iter().filter_map(|place| order_of(&asked[*place])) {
        let owner = context.owner_of(order.partition);
        of_owner.entry(owner).or_default().push(order);
        owners.push(owner);
    }
    let begin = |(owner, orders)| (owner, read_on(context, owner, orders, share));
    // All begin before the first is waited for.
    let readings: Vec<(ShardId, Reading<R>)> = of_owner.into_iter().map(begin).collect();
    let mut read = Map::default();
    for (owner, reading) in readings {
        read.insert(owner, reading.await.into_iter());
    }
    let next = |owner: ShardId| read.get_mut(&owner).and_then(Iterator::next);
    owners.into_iter().map(next).map(|result| result.expect("each order has a result")).collect()
}

fn order_of(asked: &Asked) -> Option<ReadOrder> {
    let partition = asked.partition.ok()?;
    Some(ReadOrder { partition, request: asked.request, bytes_max: asked.bytes_max() })
}

/// A read on its way, here or on another shard.
type Reading<R> = Pin<Box<dyn Future<Output = Vec<PartitionResult<<R as Runtime>::File>>>>>;

/// Begins the read on `owner`; files of another shard come as descriptors of their own.
fn read_on<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    owner: ShardId,
    orders: Vec<ReadOrder>,
    Share { left_bytes: bytes_max, whole_first }: Share,
) -> Reading<R> {
    let count = orders.len();
    let shard = context.shard().clone();
    if owner == shard.id {
        return Box::pin(async move {
            let results = shard.read(&orders, bytes_max, whole_first).await;
            results.into_iter().map(told).collect()
        });
    }
    let work = context
        .router
        .on(owner, move |shard| async move { shard.read_for_another(&orders, bytes_max, whole_first).await });
    Box::pin(async move {
        let stopped = || (0..count).map(|_| Err(QueryRefusal::ShardStopped)).collect();
        let results: Vec<Result<SharedRead<R>, QueryRefusal>> = work.await.unwrap_or_else(stopped);
        let adopt = |result: Result<SharedRead<R>, _>| result.map(|read| read.adopt(&shard.runtime));
        results.into_iter().map(|result| told(adopt(result))).collect()
    })
}

fn told<F>(result: Result<Read<F>, QueryRefusal>) -> PartitionResult<F> {
    let read = result.map_err(|refusal| Refusal::of(&refusal))?;
    Ok(PartitionRead {
        plan: read.plan,
        aborted: read.aborted.as_deref().map(aborted_of),
        bytes: read.bytes(),
        records: read.into_segments(),
    })
}

fn aborted_of(aborted: &[crate::partition::AbortedTransaction]) -> Vec<AbortedTransaction> {
    let row = |transaction: &crate::partition::AbortedTransaction| AbortedTransaction {
        producer_id: transaction.producer_id.0,
        first_offset: transaction.first_offset.0,
    };
    aborted.iter().map(row).collect()
}

/// Leaves one watch a partition with its owner and waits for the first to ring, or for the deadline. Over, or dropped, all
/// of them are taken back, on other shards by a letter.
pub async fn wait_for_more<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    asked: &[Asked],
    collected: &Collected<R::File>,
    isolation: IsolationLevel,
    deadline: Monotonic,
) {
    let mut watches: Map<ShardId, Vec<WatchOrder>> = Map::default();
    for (asked, result) in asked.iter().zip(&collected.results) {
        let (Ok(partition), Ok(read)) = (asked.partition, result) else { continue };
        let committed_only = isolation == IsolationLevel::ReadCommitted;
        let seen_end = if committed_only { read.plan.last_stable_offset } else { read.plan.high_watermark };
        let watch = WatchOrder { partition, seen_end, committed_only };
        watches.entry(context.owner_of(partition)).or_default().push(watch);
    }
    let watch = |(owner, orders)| {
        let rung = context.router.wait_on(owner, move |shard| shard.watch(orders));
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
