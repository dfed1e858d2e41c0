use std::rc::Rc;

use super::Shard;
use super::data_plane::QueryRefusal;
use crate::base::{Position, TopicPartition, Trouble};
use crate::partition::{AbortedTransaction, IsolationLevel, ReadError, ReadPlan, ReadRequest};
use crate::runtime::{File, Runtime, SendSegment};
use crate::storage::{FileSlice, ReadTrouble};

/// One partition to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOrder {
    pub partition: TopicPartition,
    pub request: ReadRequest,
    /// The reader's limit for this partition.
    pub bytes_max: u64,
}

/// What was found: offsets, and the records as a range of a file.
pub struct Read<F> {
    pub plan: ReadPlan,
    /// For read_committed: whose records in the range are to be dropped. `None` too where the first batch did not fit the
    /// limits, or the reader's log has parted from this one: Kafka tells null there.
    pub aborted: Option<Vec<AbortedTransaction>>,
    pub slice: Option<FileSlice<F>>,
}

/// The same on its way to another shard.
pub struct SharedRead<R: Runtime> {
    pub plan: ReadPlan,
    pub aborted: Option<Vec<AbortedTransaction>>,
    slice: Option<(<R::File as File>::Shared, Position, u64)>,
}

impl<F> Read<F> {
    pub fn bytes(&self) -> u64 {
        self.slice.as_ref().map_or(0, |slice| slice.bytes)
    }
    pub fn into_segments(self) -> Vec<SendSegment<F>> {
        let segment = |slice: FileSlice<F>| SendSegment::FileRange {
            file: slice.file,
            position: slice.position,
            bytes: slice.bytes,
        };
        self.slice.map(segment).into_iter().collect()
    }
}

impl<R: Runtime> SharedRead<R> {
    /// For the shard that `runtime` is of.
    pub fn adopt(self, runtime: &R) -> Read<R::File> {
        let adopt =
            |(shared, position, bytes)| FileSlice { file: runtime.adopt_file(shared), position, bytes };
        Read { plan: self.plan, aborted: self.aborted, slice: self.slice.map(adopt) }
    }
}

impl<R: Runtime> Shard<R> {
    /// Reads each partition in the order given, at most `bytes_max` in all. With `whole_first` the first batch found
    /// comes whole even when it is larger than every limit, so that a reader always gets on (KIP-74).
    pub async fn read(
        self: &Rc<Self>,
        orders: &[ReadOrder],
        bytes_max: u64,
        whole_first: bool,
    ) -> Vec<Result<Read<R::File>, QueryRefusal>> {
        let mut left_bytes = bytes_max;
        let mut whole_first = whole_first;
        let mut results = Vec::with_capacity(orders.len());
        for order in orders {
            let result = self.read_one(order, left_bytes, whole_first).await;
            let bytes = result.as_ref().map_or(0, Read::bytes);
            whole_first &= bytes == 0;
            left_bytes = left_bytes.saturating_sub(bytes);
            results.push(result);
        }
        results
    }

    /// As `read`, with descriptors that another shard can take over.
    pub async fn read_for_another(
        self: &Rc<Self>,
        orders: &[ReadOrder],
        bytes_max: u64,
        whole_first: bool,
    ) -> Vec<Result<SharedRead<R>, QueryRefusal>> {
        let share = |read: Read<R::File>| self.share_read(read);
        self.read(orders, bytes_max, whole_first)
            .await
            .into_iter()
            .map(|result| result.and_then(share))
            .collect()
    }

    /// What was read, with a descriptor that another shard can take over.
    pub fn share_read(&self, read: Read<R::File>) -> Result<SharedRead<R>, QueryRefusal> {
        let share = |slice: FileSlice<R::File>| Ok((slice.file.share()?, slice.position, slice.bytes));
        let slice =
            read.slice.map(share).transpose().map_err(|trouble: Trouble| self.read_failed(&trouble))?;
        Ok(SharedRead { plan: read.plan, aborted: read.aborted, slice })
    }

    async fn read_one(
        self: &Rc<Self>,
        order: &ReadOrder,
        left_bytes: u64,
        whole_first: bool,
    ) -> Result<Read<R::File>, QueryRefusal> {
        let replica = self.open_replica_of(order.partition).await?;
        let plan = replica.rules.borrow().read(&order.request).map_err(QueryRefusal::Refused)?;
        let bytes_max = order.bytes_max.min(left_bytes);
        let committed = order.request.isolation == IsolationLevel::ReadCommitted;
        if plan.diverging.is_some() {
            return Ok(Read { plan, aborted: None, slice: None });
        }
        if plan.upper_bound <= plan.from || (bytes_max == 0 && !whole_first) {
            return Ok(Read { plan, aborted: committed.then(Vec::new), slice: None });
        }
        let log = replica.log.get().expect("an open replica has its log");
        let found = log.read(plan.from, plan.upper_bound, bytes_max, whole_first).await;
        let found = found.map_err(|trouble| self.log_refusal(&trouble))?;
        let tells_aborted = committed && found.slice.is_some();
        let mut aborted = tells_aborted.then(Vec::new);
        if tells_aborted && !replica.rules.borrow().aborted_transactions().is_empty() {
            let bound = log.bound_of(&found, plan.upper_bound).await;
            let bound = bound.map_err(|trouble| self.log_refusal(&trouble))?;
            aborted = Some(replica.rules.borrow().aborted_between(plan.from, bound));
        }
        Ok(Read { plan, aborted, slice: found.slice })
    }

    /// What a reader is told of trouble with the log.
    pub(super) fn log_refusal(&self, trouble: &ReadTrouble) -> QueryRefusal {
        match trouble {
            ReadTrouble::OutOfRange { .. } => QueryRefusal::Refused(ReadError::OffsetOutOfRange),
            ReadTrouble::Damaged { .. } => {
                self.log_limiter.warn(&self.runtime, || format!("damaged records: {trouble}"));
                QueryRefusal::CorruptMessage
            }
            ReadTrouble::Disk(trouble) => self.read_failed(trouble),
        }
    }

    /// A read that failed is told and concerns that read alone.
    pub(super) fn read_failed(&self, trouble: &Trouble) -> QueryRefusal {
        self.log_limiter.warn(&self.runtime, || format!("a read failed: {trouble}"));
        QueryRefusal::KafkaStorageError
    }
}
