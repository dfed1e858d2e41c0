//! The one way into a partition: called on its owner, from there or out of the mailbox.

use std::future::Future;
use std::rc::Rc;

use futures_lite::future;

use super::Shard;
use super::completion::Completion;
use super::purgatory::{WatchBell, WatchId};
use super::replica::{Opening, Planned, Replica, Ticket};
use crate::base::{Monotonic, Offset, TimestampMs, TopicPartition, Trouble};
use crate::partition::{AppendError, AppendOrigin, ReadError, VerificationGuard};
use crate::record::{CheckedBatch, TimestampType};
use crate::runtime::{Lane, Mistake, Runtime};

/// A batch for one partition, checked by whoever sends it.
pub struct AppendOrder {
    pub partition: TopicPartition,
    pub batch: CheckedBatch,
    pub origin: AppendOrigin,
}

/// What one batch counts for.
#[derive(Clone, Copy, Debug)]
struct BatchSize {
    records: u64,
    bytes: u64,
    /// Not one of the broker's own.
    is_producers: bool,
}

/// Where an appended batch lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    pub base_offset: Offset,
    /// Inclusive.
    pub last_offset: Offset,
    /// -1 where the topic keeps the producer's times.
    pub log_append_time: TimestampMs,
    pub log_start_offset: Offset,
}

/// Why a batch is not in the log, or not known to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendRefusal {
    /// By the log, which starts there.
    Refused { error: AppendError, log_start_offset: Offset },
    /// This shard knows no such partition (any more).
    UnknownTopicOrPartition,
    /// Nothing is decided: whoever sends the batch has to ask the transaction coordinator first, and may come again with this.
    Unverified(VerificationGuard),
    /// There is no room above the reserve; nothing was decided.
    DiskFull,
    /// Not durable when the request's time was over; it may yet become so.
    RequestTimedOut,
    /// The owner has stopped.
    ShardStopped,
}

/// Why a question about a partition has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueryRefusal {
    Refused(ReadError),
    UnknownTopicOrPartition,
    KafkaStorageError,
    /// The records looked through are damaged.
    CorruptMessage,
    ShardStopped,
}

/// A reader that wants to know when a partition has more than it has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatchOrder {
    pub partition: TopicPartition,
    pub seen_end: Offset,
    /// The reader's end is the last stable offset, not the high watermark.
    pub committed_only: bool,
}

/// The watches of one Fetch on this shard, taken back when it drops.
struct WatchesLeft<R: Runtime>(Vec<(Rc<Replica<R>>, WatchId)>);

impl<R: Runtime> Drop for WatchesLeft<R> {
    fn drop(&mut self) {
        self.0.iter().for_each(|(replica, watch)| replica.purgatory.take_back(*watch));
    }
}

/// Where a batch goes, its append time where the log gives it one, its bytes, and what became of it.
type Decided<R> = (Rc<Replica<R>>, TimestampMs, BatchSize, Ticket);

impl<R: Runtime> Shard<R> {
    /// The partition, if this shard owns it and its topic exists.
    pub fn replica(&self, partition: TopicPartition) -> Option<Rc<Replica<R>>> {
        self.replicas.borrow().get(&partition).cloned()
    }

    /// Decides on every batch before it returns, in the order given; the future gives the results once all are durable, or
    /// refused, or `deadline` has passed. Dropping the future leaves the appends as they are.
    pub fn append(
        self: &Rc<Self>,
        orders: Vec<AppendOrder>,
        deadline: Monotonic,
    ) -> impl Future<Output = Vec<Result<Appended, AppendRefusal>>> + use<R> {
        let now = self.runtime.now();
        let tickets: Vec<_> = orders.into_iter().map(|order| self.decide(order, now)).collect();
        let shard = self.clone();
        async move {
            let mut results = Vec::with_capacity(tickets.len());
            for ticket in tickets {
                results.push(match ticket {
                    Err(refusal) => Err(refusal),
                    Ok((replica, stored_time, size, ticket)) => {
                        shard.settle(&replica, stored_time, size, ticket, deadline).await
                    }
                });
            }
            results
        }
    }

    fn decide(self: &Rc<Self>, order: AppendOrder, now: Monotonic) -> Result<Decided<R>, AppendRefusal> {
        // The logs are being closed.
        if self.upkeep.has_ended() {
            return Err(AppendRefusal::ShardStopped);
        }
        let replica = self.replica(order.partition).ok_or(AppendRefusal::UnknownTopicOrPartition)?;
        self.begin_opening(&replica);
        let is_producers = matches!(order.origin, AppendOrigin::Client { .. });
        let has_room = !is_producers || self.has_room_for(order.batch.bytes.len() as u64);
        if !has_room || replica.waits_for_room.get() {
            return Err(refused(&replica, AppendError::KafkaStorageError));
        }
        let header = &order.batch.header;
        let stored = header.timestamp_type() == TimestampType::LogAppendTime;
        let stored_time = if stored { header.max_timestamp } else { TimestampMs::NONE };
        let records = u64::from(header.record_count.max(0).unsigned_abs());
        let size = BatchSize { records, bytes: order.batch.bytes.len() as u64, is_producers };
        let (ticket, to_write) = replica.append(order.batch, order.origin, now);
        if to_write {
            self.window.enqueue(&replica);
        }
        Ok((replica, stored_time, size, ticket))
    }

    /// Sees one append through to its answer.
    async fn settle(
        &self,
        replica: &Replica<R>,
        stored_time: TimestampMs,
        size: BatchSize,
        ticket: Ticket,
        deadline: Monotonic,
    ) -> Result<Appended, AppendRefusal> {
        let mut ticket = ticket;
        let planned: Planned = loop {
            match ticket {
                Ticket::Refused(_) if replica.deleted.get() => {
                    return Err(AppendRefusal::UnknownTopicOrPartition);
                }
                Ticket::Refused(error) => return Err(refused(replica, error)),
                Ticket::Unverified(guard) => return Err(AppendRefusal::Unverified(guard)),
                Ticket::Planned(planned) => break planned,
                Ticket::Deferred(later) => {
                    ticket = later.wait().await.ok_or(AppendRefusal::UnknownTopicOrPartition)?
                }
            }
        };
        if planned.duplicate_timestamp.is_none() && size.is_producers {
            self.metrics.produced.count(size.records, size.bytes);
        }
        let answers_early =
            planned.duplicate_timestamp.is_some() && self.runtime.makes(Mistake::DuplicateAnsweredEarly);
        if let Some(durable) = planned.wait.filter(|_| !answers_early) {
            self.wait_until(replica, durable, deadline).await?;
        }
        if replica.deleted.get() {
            return Err(AppendRefusal::UnknownTopicOrPartition);
        }
        Ok(Appended {
            base_offset: planned.base_offset,
            last_offset: planned.last_offset,
            log_append_time: planned.duplicate_timestamp.unwrap_or(stored_time),
            log_start_offset: replica.rules.borrow().log_start_offset(),
        })
    }

    async fn wait_until(
        &self,
        replica: &Replica<R>,
        durable: Completion<Result<(), AppendError>>,
        deadline: Monotonic,
    ) -> Result<(), AppendRefusal> {
        let done = async {
            durable
                .wait()
                .await
                .unwrap_or(Err(AppendError::NotLeaderOrFollower))
                .map_err(|error| refused(replica, error))
        };
        let late = async {
            self.runtime.sleep_until(deadline).await;
            Err(AppendRefusal::RequestTimedOut)
        };
        future::or(done, late).await
    }

    /// Waits until all that was appended to the partition is durable, or will not be.
    pub async fn until_written(self: Rc<Self>, partition: TopicPartition) {
        let Some(replica) = self.replica(partition) else { return };
        let written = {
            let rules = replica.rules.borrow();
            replica.wait_until_durable(&rules, rules.log_end_offset())
        };
        if let Some(written) = written {
            written.wait().await;
        }
    }

    /// Leaves a watch with each partition before it returns; the future is over when the first rings. Once it is over, or
    /// dropped, none of them stands any more.
    pub fn watch(&self, orders: Vec<WatchOrder>) -> impl Future<Output = ()> + use<R> {
        let (bell, rung) = WatchBell::new();
        let mut left = WatchesLeft(Vec::with_capacity(orders.len()));
        for order in orders {
            let Some(replica) = self.replica(order.partition) else {
                bell.ring();
                continue;
            };
            let rules = replica.rules.borrow();
            let end = if order.committed_only { rules.last_stable_offset() } else { rules.high_watermark() };
            // One that went offline after it was opened is still read, and ends no wait: it will have nothing new.
            let is_unreadable = replica.opening.get() == Opening::Failed && replica.log.get().is_none();
            if end != order.seen_end || is_unreadable {
                bell.ring();
            } else {
                let watch = replica.purgatory.watch(order.seen_end, order.committed_only, bell.clone());
                left.0.push((replica.clone(), watch));
            }
        }
        async move {
            let _left = left;
            rung.wait().await.unwrap_or(());
        }
    }

    /// How many watches stand with the partitions of this shard.
    #[cfg(test)]
    pub fn watch_count(&self) -> usize {
        self.replicas.borrow().values().map(|replica| replica.purgatory.watch_count()).sum()
    }

    /// A write or sync has failed: nothing more is taken in on this folder until the next start. Reads go on.
    pub(super) fn take_log_folder_offline(&self, trouble: &Trouble) {
        if !self.folder_offline.is_given() {
            tracing::error!(%trouble, "the log folder goes offline: produce is refused until the broker is started again");
        }
        self.give_up_log_folder();
    }

    /// After trouble that cost nothing by itself: if it was a failed sync the log folder goes offline all the same, since nobody knows
    /// what else that sync was to make durable.
    pub(super) fn mind_failed_sync(&self, trouble: &Trouble) {
        if trouble.is_of_sync() {
            self.take_log_folder_offline(trouble);
        }
    }

    /// Takes nothing in any more: this shard or another one cannot write to the folder that all share.
    pub fn give_up_log_folder(&self) {
        self.folder_offline.give();
        let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
        replicas.iter().for_each(|replica| replica.take_offline());
    }

    pub(super) fn is_log_folder_offline(&self) -> bool {
        self.folder_offline.is_given()
    }

    /// Begins to open the files of `replica` unless that was done; who needs them waits on `opened`. What failed is tried again
    /// when somebody asks `OPENING_PAUSE` later, but not once the folder is offline.
    pub(super) fn begin_opening(self: &Rc<Self>, replica: &Rc<Replica<R>>) {
        let is_due = |at| self.runtime.now() >= at && !self.is_log_folder_offline();
        match replica.opening.get() {
            Opening::Closed => {}
            Opening::Failed if replica.opening_again_at.get().is_some_and(is_due) => {
                replica.opened.take();
            }
            Opening::Failed | Opening::Running | Opening::Open => return,
        }
        replica.opening.set(Opening::Running);
        let (shard, replica) = (self.clone(), replica.clone());
        self.runtime.spawn(Lane::Data, async move { shard.open_replica(&replica).await });
    }

    /// The replica with its files open.
    pub(super) async fn open_replica_of(
        self: &Rc<Self>,
        partition: TopicPartition,
    ) -> Result<Rc<Replica<R>>, QueryRefusal> {
        let replica = self.replica(partition).ok_or(QueryRefusal::UnknownTopicOrPartition)?;
        self.begin_opening(&replica);
        if replica.opening.get() == Opening::Running {
            replica.until_opened().await;
        }
        match replica.log.get() {
            Some(_) => Ok(replica),
            None => Err(QueryRefusal::KafkaStorageError),
        }
    }
}

fn refused<R: Runtime>(replica: &Replica<R>, error: AppendError) -> AppendRefusal {
    AppendRefusal::Refused { error, log_start_offset: replica.rules.borrow().log_start_offset() }
}
