use std::path::PathBuf;
use std::rc::Rc;

use super::super::log::{Inner, Log};
use super::super::names::{CLEANED, DELETED, FileKind, SWAP, with_suffix};
use super::super::segment::Segment;
use crate::base::Trouble;
use crate::runtime::{Crossing, Runtime};

impl<R: Runtime> Log<R> {
    /// Puts a compacted segment, whose files are synced and open, in the place of those it was made of.
    /// Whatever stops this half-way, the next start finds the old ones whole, or the new one and ends the
    /// work: each step's names are durable before the next one begins.
    ///
    /// | step | files | a start after it |
    /// | --- | --- | --- |
    /// | 1 | new: `.cleaned` | removes them |
    /// | 2 | new: `.swap` | removes the old ones that the new one reaches over, and gives it its names |
    /// | 3 | old: `.deleted` | removes them, then as above |
    /// | 4 | new: their names | finds nothing to do |
    ///
    /// Readers go on in the old files, which stay as they are. False: some of the old ones have left the log
    /// meanwhile, and nothing was done. An error takes the log offline. Not safe to drop half-way. Source:
    /// Kafka's `LocalLog.replaceSegments`.
    pub(super) async fn swap_in(
        &self,
        new: &Rc<Segment<R>>,
        old: &[Rc<Segment<R>>],
    ) -> Result<bool, Trouble> {
        let _names = self.0.names_turn.take().await;
        let mut rebuilds = Vec::with_capacity(old.len());
        for segment in old {
            rebuilds.push(segment.rebuild_turn.take().await);
        }
        let Some(first) = self.place_of(old) else { return Ok(false) };
        self.drain().await?;
        self.sync_aborted().await?;
        self.0.runtime.crossed(Crossing::SwapBegun);
        let swapped = async {
            let Inner { runtime, folder, .. } = &*self.0;
            runtime.sync_folder(folder).await?;
            self.rename_files(new, CLEANED, SWAP).await?;
            runtime.sync_folder(folder).await?;
            self.replace(first, new, old);
            drop(rebuilds);
            let mut doomed = Vec::new();
            for segment in old {
                doomed.extend(self.rename_files(segment, "", DELETED).await?);
            }
            runtime.sync_folder(folder).await?;
            self.rename_files(new, SWAP, "").await?;
            runtime.sync_folder(folder).await?;
            runtime.crossed(Crossing::SwapEnded);
            new.let_go(&self.0.files);
            self.remove_later(doomed);
            Ok(true)
        };
        let swapped = swapped.await;
        if swapped.is_err() {
            self.take_offline();
        }
        swapped
    }

    /// Where `old` stand in the list, if all are there one behind the other.
    fn place_of(&self, old: &[Rc<Segment<R>>]) -> Option<usize> {
        let segments = self.0.segments.borrow();
        let first = segments.iter().position(|segment| Rc::ptr_eq(segment, &old[0]))?;
        let are_there =
            segments.iter().skip(first).zip(old).filter(|(there, old)| Rc::ptr_eq(there, old)).count();
        (are_there == old.len()).then_some(first)
    }

    /// From here on readers find the new segment. It is read through the files it was written through until
    /// they have their names.
    fn replace(&self, first: usize, new: &Rc<Segment<R>>, old: &[Rc<Segment<R>>]) {
        let mut segments = self.0.segments.borrow_mut();
        drop(segments.drain(first..first + old.len()));
        segments.insert(first, new.clone());
        for segment in old {
            segment.is_replaced.set(true);
            self.0.marks.borrow_mut().forget(segment.base_offset);
        }
        self.0.replacements.set(self.0.replacements.get() + 1);
    }

    /// Gives each file of the segment that is there another ending; returns the new names.
    async fn rename_files(
        &self,
        segment: &Segment<R>,
        from: &str,
        to: &str,
    ) -> Result<Vec<PathBuf>, Trouble> {
        let mut renamed = Vec::new();
        for kind in FileKind::OF_SEGMENT {
            let path = segment.path(kind);
            let (from, to) = (with_suffix(&path, from), with_suffix(&path, to));
            match self.0.runtime.rename(&from, &to).await {
                Err(trouble) if trouble.is_not_found() => {}
                result => {
                    result?;
                    renamed.push(to);
                }
            }
        }
        Ok(renamed)
    }
}
