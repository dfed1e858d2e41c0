//! The partitions that share groups read on this shard, and what goes on with their records: read, given out, waited for.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use futures_lite::future;

use super::Shard;
use super::budget::Budget;
use super::data_plane::{QueryRefusal, WatchOrder};
use super::purgatory::WatchBell;
use super::read::{Read, ReadOrder};
use super::settings::FOR_EVER;
use super::share_settings::ShareSettings;
use crate::base::{LeaderEpoch, MemberId, Offset, Position};
use crate::partition::{AbortedTransaction, IsolationLevel, ReadError, ReadRequest};
use crate::record::BatchHeader;
use crate::runtime::Runtime;
use crate::share::{
    AcknowledgeError, AcquiredRecords, FetchFrom, FoundBatch, SharePartition, SharePartitionKey, StateError,
};
use crate::storage::FileSlice;

/// One partition of one share group, on the partition's shard.
pub struct SharedPartition {
    pub key: SharePartitionKey,
    /// What the state that was read belongs to; an older one is void.
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    pub rules: RefCell<SharePartition>,
    /// One reader at a time: what it finds is given out before the next one looks.
    turn: Rc<Budget>,
    /// Who waits for records that are given back.
    bells: RefCell<BTreeMap<u64, Rc<WatchBell>>>,
    last_bell: Cell<u64>,
}

/// A partition of a share group is loaded by whoever needs it first.
pub struct SharedPlace {
    pub loading: Rc<Budget>,
    pub loaded: RefCell<Option<Rc<SharedPartition>>>,
}

/// What a member is to get of one partition.
#[derive(Clone, Debug)]
pub struct ShareReadOrder {
    pub key: SharePartitionKey,
    pub member: MemberId,
    /// Records of one run that the member would like to acknowledge together.
    pub batch_size: i64,
}

/// Records that a member has now, and where they stand.
pub struct ShareRead<F> {
    pub acquired: Vec<AcquiredRecords>,
    pub read: Option<Read<F>>,
}

/// Why a partition of a share group cannot be read or acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShareRefusal {
    Acknowledge(AcknowledgeError),
    Query(QueryRefusal),
    State(StateError),
    /// Nobody coordinates its state, or whoever did has stopped.
    NoStateCoordinator,
}

/// A member that wants to know when there is something for it.
#[derive(Clone, Debug)]
pub struct ShareWatchOrder {
    pub key: SharePartitionKey,
}

/// A bell that stands with a partition, taken back when it drops.
struct BellLeft(Rc<SharedPartition>, u64);

impl Drop for BellLeft {
    fn drop(&mut self) {
        self.0.bells.borrow_mut().remove(&self.1);
    }
}

/// Batches looked at in one reading: bounds the memory for their headers.
const HEADERS_MAX: usize = 10_000;
/// Readings that find nothing for anybody, one after the other, before others get their turn.
const EMPTY_READS_MAX: usize = 20;

impl SharedPartition {
    pub fn new(
        key: SharePartitionKey,
        state_epoch: i32,
        leader_epoch: LeaderEpoch,
        rules: SharePartition,
    ) -> SharedPartition {
        SharedPartition {
            key,
            state_epoch,
            leader_epoch,
            rules: RefCell::new(rules),
            turn: Budget::new(1),
            bells: RefCell::default(),
            last_bell: Cell::new(0),
        }
    }

    /// Something may have become available.
    pub fn ring(&self) {
        self.bells.take().into_values().for_each(|bell| bell.ring());
    }

    fn leave_bell(self: &Rc<Self>, bell: &Rc<WatchBell>) -> BellLeft {
        let id = self.last_bell.get() + 1;
        self.last_bell.set(id);
        self.bells.borrow_mut().insert(id, bell.clone());
        BellLeft(self.clone(), id)
    }
}

impl<R: Runtime> Shard<R> {
    /// The place of a partition of a share group; empty if nobody has needed it yet.
    pub fn shared_place(&self, key: &SharePartitionKey) -> Rc<SharedPlace> {
        let mut places = self.share_partitions.borrow_mut();
        let empty = || Rc::new(SharedPlace { loading: Budget::new(1), loaded: RefCell::default() });
        places.entry(key.clone()).or_insert_with(empty).clone()
    }

    /// What was loaded is void: whoever waits looks anew.
    pub fn forget_shared(&self, key: &SharePartitionKey) {
        let place = self.share_partitions.borrow_mut().remove(key);
        if let Some(shared) = place.and_then(|place| place.loaded.take()) {
            shared.ring();
        }
    }

    /// Reads what comes next for the group and gives it to the member, about `records_max` records in at most `bytes_max`; with
    /// `whole_first` at least one batch.
    pub async fn read_shared(
        self: &Rc<Self>,
        shared: &Rc<SharedPartition>,
        order: &ShareReadOrder,
        (records_max, bytes_max, whole_first): (i64, u64, bool),
    ) -> Result<ShareRead<R::File>, QueryRefusal> {
        let nothing = || Ok(ShareRead { acquired: Vec::new(), read: None });
        let _turn = shared.turn.take(1).await;
        let settings = self.share_settings(&order.key.group);
        let log_start_offset = self.log_start_offset(order.key.partition).await?;
        shared.rules.borrow_mut().log_start_moved(log_start_offset);
        for _ in 0..EMPTY_READS_MAX {
            let Some(next) = shared.rules.borrow().next_fetch(&settings.limits) else { return nothing() };
            let found = match self.find_for_group(order, next, &settings, bytes_max, whole_first).await {
                // The log ends before it, or has just begun behind it.
                Err(QueryRefusal::Refused(ReadError::OffsetOutOfRange)) => return nothing(),
                found => found?,
            };
            let Some((read, slice, headers)) = found else { return nothing() };
            let batches: Vec<FoundBatch> = (headers.iter())
                .map(|(header, _)| found_batch(header, read.aborted.as_deref().unwrap_or_default()))
                .collect();
            let acquired = shared.rules.borrow_mut().acquire(
                self.runtime.now(),
                &order.member,
                next.from,
                &batches,
                &settings.limits,
                (records_max, order.batch_size),
            );
            let Some(slice) = trim(slice, &headers, &acquired) else { continue };
            return Ok(ShareRead { acquired, read: Some(Read { slice: Some(slice), ..read }) });
        }
        nothing()
    }

    /// The batches from `next` on, and where each ends. `None`: there are none yet.
    async fn find_for_group(
        self: &Rc<Self>,
        order: &ShareReadOrder,
        next: FetchFrom,
        settings: &ShareSettings,
        bytes_max: u64,
        whole_first: bool,
    ) -> Result<Option<(Read<R::File>, FileSlice<R::File>, Vec<(BatchHeader, Position)>)>, QueryRefusal> {
        let request = ReadRequest {
            fetch_offset: next.from,
            current_leader_epoch: None,
            last_fetched_epoch: None,
            isolation: settings.isolation,
        };
        let read_order = ReadOrder { partition: order.key.partition, request, bytes_max };
        let found = self.read(&[read_order], bytes_max, whole_first).await.pop();
        let mut read = found.unwrap_or(Err(QueryRefusal::ShardStopped))?;
        let Some(slice) = read.slice.take() else { return Ok(None) };
        let headers = slice.batch_headers(next.until, HEADERS_MAX).await;
        let headers = headers.map_err(|trouble| self.read_failed(&trouble))?;
        Ok((!headers.is_empty()).then_some((read, slice, headers)))
    }

    /// Waits until one of the partitions may have something for a member: records that are new, given back, or held for too
    /// long. Once it is over, or dropped, nothing of it stands any more.
    pub fn watch_shared(self: &Rc<Self>, orders: Vec<ShareWatchOrder>) -> impl Future<Output = ()> + use<R> {
        let (bell, rung) = WatchBell::new();
        let mut left = Vec::new();
        let mut logs = Vec::new();
        let mut deadline = self.runtime.now() + FOR_EVER;
        for order in orders {
            let place = self.share_partitions.borrow().get(&order.key).cloned();
            let loaded = place.and_then(|place| place.loaded.borrow().clone());
            let (Some(shared), Some(replica)) = (loaded, self.replica(order.key.partition)) else {
                bell.ring();
                continue;
            };
            let settings = self.share_settings(&order.key.group);
            let rules = shared.rules.borrow();
            deadline = rules.next_deadline().map_or(deadline, |at| at.min(deadline));
            if let Some(next) = rules.next_fetch(&settings.limits) {
                let seen_end = replica.rules.borrow().readable_end(settings.isolation);
                if next.from < seen_end {
                    bell.ring();
                }
                let committed_only = settings.isolation == IsolationLevel::ReadCommitted;
                logs.push(WatchOrder { partition: order.key.partition, seen_end, committed_only });
            }
            drop(rules);
            left.push(shared.leave_bell(&bell));
        }
        let logs = (!logs.is_empty()).then(|| self.watch(logs));
        let shard = self.clone();
        async move {
            let _left = left;
            let grown = async {
                match logs {
                    Some(logs) => logs.await,
                    None => future::pending().await,
                }
            };
            let rung = async { rung.wait().await.unwrap_or(()) };
            future::or(future::or(rung, grown), shard.runtime.sleep_until(deadline)).await;
        }
    }
}

fn found_batch(header: &BatchHeader, aborted: &[AbortedTransaction]) -> FoundBatch {
    let is_of = |transaction: &AbortedTransaction| {
        transaction.producer_id == header.producer_id
            && (transaction.first_offset..=transaction.last_offset).contains(&header.base_offset)
    };
    let is_aborted = header.is_transactional() && aborted.iter().any(is_of);
    FoundBatch {
        first: header.base_offset,
        last: header.last_offset(),
        is_for_nobody: header.is_control() || is_aborted,
    }
}

/// The part of the slice that has the acquired records; `None`: there are none.
fn trim<F>(
    slice: FileSlice<F>,
    headers: &[(BatchHeader, Position)],
    acquired: &[AcquiredRecords],
) -> Option<FileSlice<F>> {
    let (first, last): (Offset, Offset) = (acquired.first()?.first, acquired.last()?.last);
    let begin = headers.iter().position(|(header, _)| header.last_offset() >= first)?;
    let end = headers.iter().rposition(|(header, _)| header.base_offset <= last)?;
    let position = if begin == 0 { slice.position } else { headers[begin - 1].1 };
    Some(FileSlice { position, bytes: headers[end].1.0 - position.0, ..slice })
}
