//! Syncing what stands in units that are full, so that their files can be written over.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::task::Poll;

use super::units::{LOGS_OF_A_UNIT_MAX, Unit, make_void};
use super::{FILES_MAX, Journal, SYNCED_SINGLY_MAX};
use crate::base::{Set, Trouble};
use crate::runtime::{Crossing, Runtime};
use crate::storage::flush::{sync_logs, sync_with_file_system};
use crate::storage::log::Log;

/// Units with many logs are retired so many at a time, so that each log's share is worth a sync.
const UNITS_TOGETHER: usize = 8;
const _: () = assert!(UNITS_TOGETHER < FILES_MAX, "windows go on while units are retired");

impl<R: Runtime> Journal<R> {
    /// What is to be run in the background, if it is time to retire units. An error is one of `Log::sync`.
    pub fn retiring(&self) -> Option<impl Future<Output = Result<(), Trouble>> + use<R>> {
        if self.0.is_retiring.get() || !self.is_due() {
            return None;
        }
        self.0.is_retiring.set(true);
        let journal = self.clone();
        Some(async move {
            while journal.is_due() {
                journal.retire_up_to(u64::MAX).await?;
            }
            journal.0.is_retiring.set(false);
            Ok(())
        })
    }

    fn is_due(&self) -> bool {
        let units = self.0.units.borrow();
        let logs: usize = units.full.iter().map(|unit| unit.logs.len()).sum();
        let is_cheap = logs <= SYNCED_SINGLY_MAX && !units.full.is_empty();
        is_cheap || units.full.len() >= UNITS_TOGETHER || logs >= LOGS_OF_A_UNIT_MAX
    }

    /// Retires all there is; the journal is void then. For the end of a shard.
    pub async fn close(&self) -> Result<(), Trouble> {
        self.close_and_retire(u64::MAX).await?;
        self.0.runtime.end_witness();
        Ok(())
    }

    /// Retires every unit that has entries of this log.
    async fn drain(&self, log: &Log<R>) -> Result<(), Trouble> {
        match log.0.newest_unit.get() {
            Some(newest) => self.close_and_retire(newest).await,
            None => Ok(()),
        }
    }

    async fn close_and_retire(&self, last: u64) -> Result<(), Trouble> {
        poll_fn(|context| {
            if self.0.units.borrow_mut().close_up_to(last) {
                return Poll::Ready(());
            }
            self.0.window_waiters.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
        self.retire_up_to(last).await
    }

    /// Retires the full units up to unit `last`, inclusive. After an error no unit is retired any more.
    async fn retire_up_to(&self, last: u64) -> Result<(), Trouble> {
        let _turn = self.0.retire_turn.take().await;
        loop {
            if self.0.has_failed.get() {
                let cause = io::Error::other("a segment could not be synced");
                return Err(Trouble::new("retire journal in", &self.0.folder, cause));
            }
            let units = self.take_full(last);
            if units.is_empty() {
                return Ok(());
            }
            let retired = self.retire(units).await;
            self.0.has_failed.set(retired.is_err());
            retired?;
        }
    }

    fn take_full(&self, last: u64) -> Vec<Unit<R>> {
        let full: &mut VecDeque<Unit<R>> = &mut self.0.units.borrow_mut().full;
        let count = full.iter().take(UNITS_TOGETHER).take_while(|unit| unit.number <= last).count();
        full.drain(..count).collect()
    }

    /// Syncs every log that has entries in these units, then makes them void and their files free. After an
    /// error the files are not used again: the next start replays them.
    async fn retire(&self, units: Vec<Unit<R>>) -> Result<(), Trouble> {
        let mut seen = Set::default();
        let logs: Vec<Log<R>> = units
            .iter()
            .flat_map(|unit| &unit.logs)
            .filter(|log| seen.insert(log.as_ptr()))
            .filter_map(|log| log.upgrade().map(Log))
            .collect();
        for log in &logs {
            log.write_back().await?;
            self.0.runtime.yield_now().await;
        }
        if logs.len() <= SYNCED_SINGLY_MAX || self.0.syncs_as_one {
            sync_logs(&self.0.runtime, &logs).await?;
        } else {
            sync_with_file_system(&logs, &units[0].file).await?;
        }
        for unit in units {
            if make_void(&self.0.runtime, &unit.file).await? {
                self.0.units.borrow_mut().add_free(unit.file);
                self.0.runtime.crossed(Crossing::JournalRecycled);
            } else {
                self.0.units.borrow_mut().forget_file();
            }
        }
        Ok(())
    }
}

impl<R: Runtime> Log<R> {
    /// Takes this log out of the journal: everything appended before the call is synced in its segments, and
    /// no start will write to them again. To be called before positions of a segment are used anew, a segment
    /// is replaced, or the folder is handed to somebody else. May be called beside appends; those count for
    /// the next drain. Not safe to drop half-way.
    pub async fn drain(&self) -> Result<(), Trouble> {
        if let Some(journal) = self.0.journal.get() {
            journal.drain(self).await?;
        }
        self.sync().await.map(drop)
    }
}
