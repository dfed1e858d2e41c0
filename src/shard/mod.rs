//! One core: its share of the partitions, of the coordinators, and the metadata image it acts on.

mod budget;
mod close;
mod cluster_view;
mod commit_window;
mod compaction;
mod completion;
mod connection_counts;
mod coordinators;
mod data_plane;
mod deadlines;
mod delete_records;
mod descriptors;
mod disk_room;
mod folder_use;
mod housekeeping;
mod kept_offsets;
mod later_syncs;
mod log_limiter;
mod markers;
mod offsets;
mod open_replica;
mod partition_sizes;
mod producer_ids;
mod purgatory;
mod read;
mod read_records;
mod replica;
mod retention;
mod request_memory;
mod scrubbing;
mod settings;
mod share_partitions;
mod share_settings;
mod share_state;
mod signal;
mod snapshots;
mod topics;
mod transactions;
mod without_room;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use crate::base::{ClusterId, Map, Offset, PartitionIndex, Set, ShardId, TopicName, TopicPartition, Trouble};
use crate::config::{BrokerConfig, Durability, TopicConfig};
use crate::metadata::Image;
use crate::metrics::{ShardMetrics, ShardSnapshot};
use crate::partition::fetch_session::FetchSessions;
use crate::runtime::Runtime;
use crate::share::{SharePartitionKey, ShareSessions};
use crate::storage::{Journal, LogFolder, OpenFiles, open_file_system};

pub use budget::{Budget, Share};
pub use close::ClosedLogs;
pub use compaction::CompactionLimits;
pub use completion::{Bell, Completer, Completion, completion};
pub use connection_counts::ConnectionCounts;
pub use data_plane::{AppendOrder, AppendRefusal, Appended, QueryRefusal, WatchOrder};
pub use delete_records::DeleteRecordsRefusal;
pub use folder_use::FolderUser;
pub use kept_offsets::{Kept, KeptOffset, KeptOffsets};
pub use log_limiter::LogLimiter;
pub use offsets::{FoundTimestamp, OffsetQuery, OffsetSearch};
pub use producer_ids::ProducerIds;
pub use read::{Read, ReadOrder, SharedRead};
pub use read_records::AtDamage;
pub use replica::Replica;
pub use request_memory::{RequestMemory, SMALL_FRAME_BYTES_MAX};
pub use settings::{FOR_EVER, connection_idle_max, produce_rules};
pub use share_partitions::{
    ShareRead, ShareReadOrder, ShareRefusal, ShareWatchOrder, SharedPartition, SharedPlace,
};
pub use share_settings::ShareSettings;
pub use signal::{Signal, SignalWatch};
pub use topics::METADATA_LEADER_EPOCH;
pub use transactions::{Errand, TransactionErrand};

use commit_window::CommitWindow;
use coordinators::GroupCoordinators;
use disk_room::DiskRoom;
use folder_use::FolderUse;
use later_syncs::LaterSyncs;
use share_state::ShareStateCoordinators;
use snapshots::SnapshotsDue;
use transactions::TransactionCoordinators;

/// The state of one core. Only tasks of this shard touch it; no borrow of it lives across an await.
pub struct Shard<R: Runtime> {
    pub runtime: R,
    pub id: ShardId,
    /// The settings in force.
    config: RefCell<Rc<BrokerConfig>>,
    /// What this shard knows of the cluster, folded from the metadata log.
    pub image: RefCell<Image>,
    /// Bytes in flight.
    pub memory: RequestMemory,
    /// Connections of the whole broker; used on the shard where they are accepted.
    pub connections: ConnectionCounts,
    pub log_limiter: LogLimiter,
    /// Given when the broker has entered the cluster: whoever listens may take connections.
    pub serving: Signal,
    /// Given when the broker stops: connections end once nothing of theirs is in flight.
    pub stop: Signal,
    /// Given when all is done and this shard's work may end.
    pub finished: Signal,
    /// The one turn at deciding for the cluster; used on shard 0 alone.
    pub controller_turn: Rc<Budget>,
    topic_configs: RefCell<Map<TopicName, Rc<TopicConfig>>>,
    replicas: RefCell<Map<TopicPartition, Rc<Replica<R>>>>,
    window: CommitWindow<R>,
    later_syncs: LaterSyncs<R>,
    snapshots_due: SnapshotsDue<R>,
    disk_room: DiskRoom,
    open_files: OpenFiles<R>,
    /// A task syncs what keeps files open.
    gives_descriptors_back: Cell<bool>,
    /// There once it was opened; never under `onrush.durability=os`.
    journal: OnceCell<Journal<R>>,
    /// A file of the data folder that a sync of the file system goes through; there before anything is written.
    file_system: OnceCell<R::File>,
    /// The data folder; on shard 0 alone.
    pub folder: OnceCell<LogFolder<R>>,
    /// Used on shard 0 alone.
    pub log_starts: KeptOffsets,
    pub cleaned_ends: KeptOffsets,
    pub producer_ids: RefCell<ProducerIds>,
    pub producer_ids_turn: Rc<Budget>,
    /// What the data folder said of its logs at start.
    pub checkpoints: RefCell<FolderCheckpoints>,
    group_coordinators: GroupCoordinators,
    transaction_coordinators: TransactionCoordinators,
    share_state: ShareStateCoordinators,
    /// Partitions of this shard that share groups read; at most as many as share state is kept of.
    share_partitions: RefCell<Map<SharePartitionKey, Rc<SharedPlace>>>,
    /// The share sessions that fall to this shard.
    pub share_sessions: RefCell<ShareSessions>,
    /// Where in the metadata log topics, or their partitions, last came or went.
    topics_version: Cell<i64>,
    /// The fetch sessions whose ids name this shard.
    pub fetch_sessions: RefCell<FetchSessions>,
    /// Given when the log folder cannot be written to any more.
    pub folder_offline: Signal,
    /// Whoever takes segments away or replaces them is in here; closing the logs ends it, and nothing is appended from then on.
    upkeep: FolderUse,
    pub metrics: Rc<ShardMetrics>,
}

/// What the data folder's checkpoint files said at start.
#[derive(Clone, Default, Debug)]
pub struct FolderCheckpoints {
    /// Partitions whose logs a crash may have left torn. Those made since the start are not among them.
    pub torn: Set<(TopicName, PartitionIndex)>,
    /// Partitions of which the journals hold what had no room in their segments: their logs may not be opened.
    pub without_room: Set<(TopicName, PartitionIndex)>,
    pub log_starts: Map<(TopicName, PartitionIndex), Offset>,
    pub recovery_points: Map<(TopicName, PartitionIndex), Offset>,
    pub cleaned_ends: Map<(TopicName, PartitionIndex), Offset>,
}

impl<R: Runtime> Shard<R> {
    /// A shard that knows nothing yet; `count`: how many the broker has.
    pub fn new(runtime: R, config: BrokerConfig, count: usize) -> Rc<Shard<R>> {
        Rc::new(Shard {
            id: runtime.shard(),
            image: RefCell::new(Image::new(ClusterId("".into()))),
            memory: RequestMemory::new(config.memory_per_shard_bytes(count) as u64),
            connections: ConnectionCounts::default(),
            log_limiter: LogLimiter::default(),
            serving: Signal::default(),
            stop: Signal::default(),
            finished: Signal::default(),
            controller_turn: Budget::new(1),
            topic_configs: RefCell::default(),
            replicas: RefCell::default(),
            window: CommitWindow::new(),
            later_syncs: LaterSyncs::new(),
            snapshots_due: SnapshotsDue::new(),
            disk_room: DiskRoom::new(),
            journal: OnceCell::new(),
            file_system: OnceCell::new(),
            folder: OnceCell::new(),
            log_starts: KeptOffsets::new(Kept::LogStart),
            cleaned_ends: KeptOffsets::new(Kept::CleanedEnd),
            producer_ids: RefCell::default(),
            producer_ids_turn: Budget::new(1),
            checkpoints: RefCell::default(),
            topics_version: Cell::new(0),
            group_coordinators: RefCell::default(),
            transaction_coordinators: TransactionCoordinators::default(),
            share_state: RefCell::default(),
            share_partitions: RefCell::default(),
            share_sessions: RefCell::new(ShareSessions::new(settings::share_session_slots(
                &config,
                runtime.shard(),
                count,
            ))),
            fetch_sessions: RefCell::new(FetchSessions::new(
                runtime.shard(),
                settings::fetch_session_limits(&config, runtime.shard(), count),
            )),
            open_files: OpenFiles::new(
                runtime.clone(),
                descriptors::open_files_max(runtime.descriptors_max(), count),
            ),
            gives_descriptors_back: Cell::new(false),
            folder_offline: Signal::default(),
            upkeep: FolderUse::default(),
            metrics: Rc::default(),
            config: RefCell::new(Rc::new(config)),
            runtime,
        })
    }

    /// The broker's settings in force: those it was started with, and over them those that were made since.
    pub fn config(&self) -> Rc<BrokerConfig> {
        self.config.borrow().clone()
    }

    /// What the shard shows of itself now.
    pub fn snapshot(&self) -> ShardSnapshot {
        ShardSnapshot {
            shard: self.id.0,
            metrics: ShardMetrics::clone(&self.metrics),
            turns: self.runtime.turns(),
            file_bytes: self.runtime.file_bytes(),
            partitions: self.replicas.borrow().len() as u64,
            is_serving: self.serving.is_given(),
            is_stopping: self.stop.is_given(),
            is_log_folder_offline: self.is_log_folder_offline(),
        }
    }

    /// Begins to journal, before anything is appended. The journals of the data folder must have been replayed.
    pub async fn open_journal(&self) -> Result<(), Trouble> {
        let file = open_file_system(&self.runtime, &self.config().log_dir).await?;
        self.file_system.set(file).unwrap_or_else(|_| panic!("the data folder is opened once"));
        if self.config().durability == Durability::Disk {
            let config = self.config();
            let opened = Journal::open(self.runtime.clone(), &config.log_dir, config.journal_file_bytes);
            let journal = opened.await?;
            self.journal.set(journal).unwrap_or_else(|_| panic!("the journal is opened once"));
        }
        Ok(())
    }
}
