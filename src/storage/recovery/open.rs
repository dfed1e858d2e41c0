use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use super::super::format::{AbortedTransaction, EpochStart, PartitionMetadata, ProducerSnapshotEntry};
use super::super::log::Log;
use super::super::names::PARTITION_METADATA;
use super::super::open_files::OpenFiles;
use super::super::segment::Segment;
use super::super::settings::LogSettings;
use super::super::small_file::{read_text, write_small};
use super::leftovers::{remove_below, tidy};
use super::opening::LogOpening;
use super::repair::Repair;
use crate::base::{Offset, TopicId, Trouble};
use crate::record::{Batch, BatchHeader};
use crate::runtime::Runtime;

/// What is known of a log before its folder is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenLog {
    /// The data folder was left in order: nothing needs to be read.
    pub was_clean: bool,
    /// From `log-start-offset-checkpoint`; 0 when it says nothing of this log.
    pub log_start_offset: Offset,
    /// From `recovery-point-offset-checkpoint`; 0 when it says nothing of this log.
    pub recovery_point: Offset,
}

/// What an opened log has to tell beside the log itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedLog {
    pub log_start_offset: Offset,
    /// All below it is durable.
    pub log_end_offset: Offset,
    pub repairs: Vec<Repair>,
}

/// Where the state of a partition stands before the batches that follow are replayed into it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayStart {
    pub log_start_offset: Offset,
    /// Offset of the producer snapshot; without one the log start, or the base offset of the batch around it.
    pub replay_start_offset: Offset,
    /// `leader-epoch-checkpoint` up to there.
    pub leader_epochs: Vec<EpochStart>,
    /// The producer snapshot.
    pub producers: Vec<ProducerSnapshotEntry>,
    /// Of all transaction indexes, by marker.
    pub aborted: Vec<AbortedTransaction>,
}

/// What opening a log tells as it goes, to rebuild the partition's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replayed<'a> {
    /// Comes first. When it comes again, all before it is void: a snapshot turned out not to belong to this log.
    Start(ReplayStart),
    /// Each sound batch from the replay start on, in order.
    Batch {
        header: &'a BatchHeader,
        /// All of it if it is a control batch (a marker of a transaction).
        control: Option<Batch<'a>>,
    },
}

/// Why a log is not opened.
#[derive(Debug)]
pub enum OpenTrouble {
    /// There is no such folder: a log is to be made.
    NoFolder,
    /// The folder is another topic's that had the same name.
    OtherTopic {
        found: TopicId,
    },
    Disk(Trouble),
}

impl From<Trouble> for OpenTrouble {
    fn from(trouble: Trouble) -> OpenTrouble {
        OpenTrouble::Disk(trouble)
    }
}

impl fmt::Display for OpenTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenTrouble::NoFolder => f.write_str("there is no folder"),
            OpenTrouble::OtherTopic { found } => write!(f, "the folder belongs to topic id {found}"),
            OpenTrouble::Disk(trouble) => fmt::Display::fmt(trouble, f),
        }
    }
}
impl std::error::Error for OpenTrouble {}

impl<R: Runtime> Log<R> {
    /// Opens the log in `folder`. Bad bytes are no trouble: they are cut, set aside or built again, and
    /// told in `repairs`. After an unclean stop all batches from the newest producer snapshot on are read; those that
    /// had been synced (below that snapshot or the recovery point) stay whatever lies among them, from there on the
    /// first bad one ends the log. On return everything is durable. Not safe to drop half-way, but it may then be
    /// called again as after an unclean stop.
    pub async fn open(
        runtime: R,
        files: OpenFiles<R>,
        folder: &Path,
        topic_id: TopicId,
        settings: LogSettings,
        known: OpenLog,
        mut replay: impl FnMut(Replayed<'_>),
    ) -> Result<(Log<R>, OpenedLog), OpenTrouble> {
        let mut repairs = Vec::new();
        if let Err(trouble) = runtime.list_folder(folder).await {
            let is_missing = trouble.is_not_found();
            return Err(if is_missing { OpenTrouble::NoFolder } else { OpenTrouble::Disk(trouble) });
        }
        check_topic(&runtime, folder, topic_id, &mut repairs).await?;
        let mut found = tidy(&runtime, folder, &mut repairs).await?;
        remove_below(&runtime, folder, known.log_start_offset, &mut found, &mut repairs).await?;
        let folder: Rc<Path> = folder.into();
        let segments: VecDeque<Rc<Segment<R>>> = found
            .segments
            .iter()
            .map(|segment| Rc::new(Segment::found(&runtime, folder.clone(), *segment, &settings)))
            .collect();
        let log = Log::with_segments(runtime, files, folder, topic_id, settings, segments);
        let opened = LogOpening { log: &log, known, found, repairs }.run(&mut replay).await?;
        Ok((log, opened))
    }
}

/// A folder without readable `partition.metadata` is taken for this topic's, and gets one.
async fn check_topic<R: Runtime>(
    runtime: &R,
    folder: &Path,
    topic_id: TopicId,
    repairs: &mut Vec<Repair>,
) -> Result<(), OpenTrouble> {
    let path = folder.join(PARTITION_METADATA);
    let text = read_text(runtime, &path).await?;
    match text.as_deref().map(PartitionMetadata::parse) {
        Some(Some(PartitionMetadata { topic_id: found })) if found == topic_id => return Ok(()),
        Some(Some(PartitionMetadata { topic_id: found })) => return Err(OpenTrouble::OtherTopic { found }),
        Some(None) => repairs.push(Repair::CheckpointDamaged { file: path.clone() }),
        None => {}
    }
    write_small(runtime, &path, PartitionMetadata { topic_id }.to_text()).await?;
    Ok(())
}
