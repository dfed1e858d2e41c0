//! What takes segments out of a log: a later log start, and an end that a start finds torn.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::log::Log;
use super::names::{DELETED, FileKind, with_suffix};
use super::segment::Segment;
use super::small_file::remove_if_there;
use crate::base::{Offset, Trouble};
use crate::runtime::{Lane, Runtime};

impl<R: Runtime> Log<R> {
    /// Base offset of the segment that the log begins with once it starts at `log_start_offset`; `None`: none is to be retired.
    /// A producer snapshot must stand there or above before those below it are: the next start replays from it.
    pub fn retires_below(&self, log_start_offset: Offset) -> Option<Offset> {
        let segments = self.0.segments.borrow();
        let first_kept = first_kept(segments.iter().map(|segment| segment.base_offset), log_start_offset);
        (first_kept > 0).then(|| segments[first_kept].base_offset)
    }

    /// Makes `offset` the first one that may be asked for, unless a later one is; at most the log end. Segments wholly below it
    /// leave the log, all but the newest: their files are renamed at once and removed `file.delete.delay.ms` later, for
    /// fetches that are being sent. The caller has written `log-start-offset-checkpoint`: it alone keeps a start inside a
    /// segment, and after a power cut it tells which retired segments' names have come back. Returns the base offsets of the
    /// retired segments.
    pub async fn advance_log_start(&self, offset: Offset) -> Result<Vec<Offset>, Trouble> {
        let _names = self.0.names_turn.take().await;
        let log_start_offset = self.log_start_offset().max(offset.min(self.log_end_offset()));
        self.0.log_start_offset.set(log_start_offset);
        if self.retires_below(log_start_offset).is_some() {
            // Else a power cut may take the name of the segment that the log begins with now, and leave those behind it.
            self.0.runtime.sync_folder(&self.0.folder).await?;
        }
        let retired: VecDeque<Rc<Segment<R>>> = {
            let mut segments = self.0.segments.borrow_mut();
            let first_kept = first_kept(segments.iter().map(|segment| segment.base_offset), log_start_offset);
            let kept = segments.split_off(first_kept);
            std::mem::replace(&mut segments, kept)
        };
        let mut doomed = Vec::new();
        for segment in &retired {
            for kind in FileKind::OF_SEGMENT {
                let path = segment.path(kind);
                let renamed = with_suffix(&path, DELETED);
                match self.0.runtime.rename(&path, &renamed).await {
                    Err(trouble) if trouble.is_not_found() => {}
                    result => {
                        result?;
                        doomed.push(renamed);
                    }
                }
            }
        }
        self.remove_later(doomed);
        Ok(retired.iter().map(|segment| segment.base_offset).collect())
    }

    pub(super) fn remove_later(&self, files: Vec<PathBuf>) {
        if files.is_empty() {
            return;
        }
        let runtime = self.0.runtime.clone();
        let deadline = runtime.now() + Duration::from_millis(self.settings().file_delete_delay_ms);
        self.0.runtime.spawn(Lane::Background, async move {
            runtime.sleep_until(deadline).await;
            for file in files {
                if let Err(trouble) = remove_if_there(&runtime, &file).await {
                    tracing::warn!(%trouble, "file of a retired segment not removed");
                }
                runtime.yield_now().await;
            }
        });
    }

    /// Removes the segments whose base offset is above `offset`, and returns their log files and bytes.
    pub(super) async fn drop_segments_after(&self, offset: Offset) -> Result<Vec<(PathBuf, u64)>, Trouble> {
        let dropped = {
            let mut segments = self.0.segments.borrow_mut();
            let kept = segments.partition_point(|segment| segment.base_offset <= offset);
            segments.split_off(kept)
        };
        let mut files = Vec::new();
        // The last one first, so that a crash in between leaves no hole.
        for segment in dropped.into_iter().rev() {
            for kind in FileKind::OF_SEGMENT {
                remove_if_there(&self.0.runtime, &segment.path(kind)).await?;
            }
            files.push((segment.path(FileKind::Log), segment.bytes.get()));
        }
        Ok(files)
    }
}

/// Index of the segment, of those with these rising base offsets, that `log_start_offset` falls into.
pub(super) fn first_kept(base_offsets: impl Iterator<Item = Offset>, log_start_offset: Offset) -> usize {
    base_offsets.take_while(|base_offset| *base_offset <= log_start_offset).count().max(1) - 1
}
