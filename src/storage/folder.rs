use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::format::{CleanMarker, FolderProperties, OffsetCheckpoint, format_offsets, parse_offsets};
use super::names::{
    BEING_WRITTEN, CLEAN_MARKER, CLEANED_ENDS, HIGH_WATERMARKS, LOCK, LOG_STARTS, META_PROPERTIES,
    PartitionFolderName, RECOVERY_POINTS, folder_name_set_aside, folder_name_to_delete,
    partition_folder_name,
};
use super::small_file::{folder_of, read_text, remove_if_there, write_small};
use super::turns::Turns;
use crate::base::{BrokerEpoch, ClusterId, DirectoryId, NodeId, PartitionIndex, TopicName, Trouble};
use crate::runtime::{Lane, Runtime};

/// A data folder (an entry of `log.dirs`) that this broker alone may use until it drops. One shard holds it.
pub struct LogFolder<R: Runtime> {
    runtime: R,
    path: PathBuf,
    properties: FolderProperties,
    checkpoint_turn: Turns,
    _lock: R::Lock,
}

/// What a data folder held when it was opened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FolderStart {
    /// There were no properties: a new folder.
    pub is_new: bool,
    /// The last broker left it in order; with its epoch if it wrote one.
    pub was_clean: bool,
    pub broker_epoch: Option<BrokerEpoch>,
    pub log_starts: Vec<OffsetCheckpoint>,
    pub recovery_points: Vec<OffsetCheckpoint>,
    pub cleaned_ends: Vec<OffsetCheckpoint>,
    pub high_watermarks: Vec<OffsetCheckpoint>,
    /// Partitions that have a folder.
    pub partitions: Vec<(TopicName, PartitionIndex)>,
    /// Folders of deleted topics; `remove_deleted` ends them.
    pub to_delete: Vec<PathBuf>,
    /// Folders that Kafka set aside (`-stray`, `-future`), left as they are.
    pub set_aside: Vec<PathBuf>,
    /// Checkpoints of which not all could be read.
    pub damaged: Vec<PathBuf>,
}

/// Why a data folder cannot be used.
#[derive(Debug)]
pub enum FolderTrouble {
    /// Another process has it.
    InUse {
        path: PathBuf,
    },
    OtherNode {
        path: PathBuf,
        found: NodeId,
        expected: NodeId,
    },
    OtherCluster {
        path: PathBuf,
        found: ClusterId,
        expected: ClusterId,
    },
    /// The file system is mounted to be read only, or the folder is not this user's.
    NotWritable {
        path: PathBuf,
        cause: io::Error,
    },
    /// `meta.properties` cannot be read.
    Properties {
        path: PathBuf,
        fault: String,
    },
    Disk(Trouble),
}

impl From<Trouble> for FolderTrouble {
    fn from(trouble: Trouble) -> FolderTrouble {
        FolderTrouble::Disk(trouble)
    }
}

impl fmt::Display for FolderTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FolderTrouble::InUse { path } => {
                write!(f, "the data folder {} is in use by another broker", path.display())
            }
            FolderTrouble::NotWritable { path, cause } => {
                write!(f, "the data folder {} cannot be written to: {cause}", path.display())
            }
            FolderTrouble::OtherNode { path, found, expected } => {
                write!(f, "{} belongs to node.id {found}, this is {expected}", path.display())
            }
            FolderTrouble::OtherCluster { path, found, expected } => {
                write!(f, "{} belongs to cluster {found}, this is {expected}", path.display())
            }
            FolderTrouble::Properties { path, fault } => write!(f, "{}: {fault}", path.display()),
            FolderTrouble::Disk(trouble) => fmt::Display::fmt(trouble, f),
        }
    }
}
impl std::error::Error for FolderTrouble {}

impl<R: Runtime> LogFolder<R> {
    /// Opens the data folder, made when missing, for `node_id`. `cluster_id`: the one it must belong to; without, a new folder
    /// gets a random one. The clean marker is taken away: until it is written again the folder counts as left in disorder.
    /// Dropped half-way it may be called again.
    pub async fn open(
        runtime: R,
        path: &Path,
        node_id: NodeId,
        cluster_id: Option<&ClusterId>,
    ) -> Result<(LogFolder<R>, FolderStart), FolderTrouble> {
        runtime.create_folder(path).await?;
        let lock = runtime.lock_file(&path.join(LOCK)).map_err(|trouble| match trouble.cause.kind() {
            io::ErrorKind::WouldBlock => FolderTrouble::InUse { path: path.into() },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                FolderTrouble::NotWritable { path: path.into(), cause: trouble.cause }
            }
            _ => FolderTrouble::Disk(trouble),
        })?;
        let mut start = FolderStart::default();
        let properties = own_properties(&runtime, path, node_id, cluster_id, &mut start).await?;
        let folder = LogFolder {
            runtime,
            path: path.into(),
            properties,
            checkpoint_turn: Turns::default(),
            _lock: lock,
        };
        folder.list(&mut start).await?;
        start.log_starts = folder.read_checkpoint(LOG_STARTS, &mut start.damaged).await?;
        start.recovery_points = folder.read_checkpoint(RECOVERY_POINTS, &mut start.damaged).await?;
        start.cleaned_ends = folder.read_checkpoint(CLEANED_ENDS, &mut start.damaged).await?;
        start.high_watermarks = folder.read_checkpoint(HIGH_WATERMARKS, &mut start.damaged).await?;
        folder.take_clean_marker(&mut start).await?;
        Ok((folder, start))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
    pub fn cluster_id(&self) -> &ClusterId {
        &self.properties.cluster_id
    }
    pub fn directory_id(&self) -> DirectoryId {
        self.properties.directory_id.expect("opening gives a folder an id when it has none")
    }
    /// Folder of a partition, there or not.
    pub fn partition_path(&self, topic: &TopicName, partition: PartitionIndex) -> PathBuf {
        self.path.join(partition_folder_name(topic, partition))
    }

    async fn list(&self, start: &mut FolderStart) -> Result<(), Trouble> {
        for entry in self.runtime.list_folder(&self.path).await? {
            let path = self.path.join(&entry.name);
            if !entry.is_folder {
                if entry.name.ends_with(BEING_WRITTEN) {
                    remove_if_there(&self.runtime, &path).await?;
                }
                continue;
            }
            match PartitionFolderName::parse(&entry.name) {
                Some(PartitionFolderName::Live { topic, partition }) => {
                    start.partitions.push((topic, partition))
                }
                Some(PartitionFolderName::ToDelete) => start.to_delete.push(path),
                Some(PartitionFolderName::SetAside) => start.set_aside.push(path),
                None => {}
            }
        }
        Ok(())
    }

    async fn read_checkpoint(
        &self,
        name: &str,
        damaged: &mut Vec<PathBuf>,
    ) -> Result<Vec<OffsetCheckpoint>, Trouble> {
        let path = self.path.join(name);
        // Kafka makes them empty and fills them later.
        let Some(text) = read_text(&self.runtime, &path).await?.filter(|text| !text.is_empty()) else {
            return Ok(Vec::new());
        };
        let (offsets, is_whole) = parse_offsets(&text);
        if !is_whole {
            damaged.push(path);
        }
        Ok(offsets)
    }

    async fn take_clean_marker(&self, start: &mut FolderStart) -> Result<(), Trouble> {
        let path = self.path.join(CLEAN_MARKER);
        if let Some(text) = read_text(&self.runtime, &path).await? {
            start.was_clean = true;
            start.broker_epoch = CleanMarker::parse(&text).map(|marker| BrokerEpoch(marker.broker_epoch));
            self.runtime.remove_file(&path).await?;
        }
        // A process that was killed may have made partitions here whose names are not durable yet.
        self.runtime.sync_folder(&self.path).await
    }

    /// Writes down up to where each log is known to be durable.
    pub async fn write_recovery_points(&self, offsets: &[OffsetCheckpoint]) -> Result<(), Trouble> {
        self.write_checkpoint(RECOVERY_POINTS, offsets).await
    }
    /// Writes down where each log begins, for those whose first segment begins earlier.
    pub async fn write_log_starts(&self, offsets: &[OffsetCheckpoint]) -> Result<(), Trouble> {
        self.write_checkpoint(LOG_STARTS, offsets).await
    }
    /// Writes down up to where each log is compacted.
    pub async fn write_cleaned_ends(&self, offsets: &[OffsetCheckpoint]) -> Result<(), Trouble> {
        self.write_checkpoint(CLEANED_ENDS, offsets).await
    }
    pub async fn write_high_watermarks(&self, offsets: &[OffsetCheckpoint]) -> Result<(), Trouble> {
        self.write_checkpoint(HIGH_WATERMARKS, offsets).await
    }

    /// The file holds all partitions of the folder: what is not in `offsets` is forgotten.
    async fn write_checkpoint(&self, name: &str, offsets: &[OffsetCheckpoint]) -> Result<(), Trouble> {
        let _turn = self.checkpoint_turn.take().await;
        write_small(&self.runtime, &self.path.join(name), format_offsets(offsets)).await
    }

    /// Moves the folder of a partition out of the way, under a name that says so; nothing in it is removed.
    pub async fn set_aside(&self, topic: &TopicName, partition: PartitionIndex) -> Result<(), Trouble> {
        let unique = u128::from(self.runtime.random()) << 64 | u128::from(self.runtime.random());
        let aside = self.path.join(folder_name_set_aside(topic, partition, unique));
        self.runtime.rename(&self.partition_path(topic, partition), &aside).await?;
        self.runtime.sync_folder(&self.path).await
    }

    /// Removes folders of deleted partitions in the background, `delay` from now. What is not removed by a stop is found by
    /// the next start.
    pub fn remove_deleted(&self, folders: Vec<PathBuf>, delay: Duration) {
        remove_folders(&self.runtime, folders, delay);
    }

    /// Says that all logs of the folder are closed in order, so that the next start reads none of them.
    pub async fn mark_clean(&self, broker_epoch: BrokerEpoch) -> Result<(), Trouble> {
        let marker = CleanMarker { broker_epoch: broker_epoch.0 };
        write_small(&self.runtime, &self.path.join(CLEAN_MARKER), marker.to_text()).await
    }
}

/// A deleted partition whose folder is to go, and how long what is in it stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeletedPartition {
    pub topic: TopicName,
    pub partition: PartitionIndex,
    pub delay: Duration,
}

/// Takes folders of partitions out of use, all with one sync of `data_folder`, and removes each its delay later. From the return
/// on the names are free for new partitions; the old logs' open files go on to be read. Fine when there is no such folder.
/// Errors: the first trouble. What else could be moved is moved, and removed by the next start.
pub async fn retire_folders<R: Runtime>(
    runtime: &R,
    data_folder: &Path,
    deleted: &[DeletedPartition],
) -> Result<(), Trouble> {
    let mut doomed: BTreeMap<Duration, Vec<PathBuf>> = BTreeMap::new();
    let mut first_trouble = None;
    for DeletedPartition { topic, partition, delay } in deleted {
        let unique = u128::from(runtime.random()) << 64 | u128::from(runtime.random());
        let path = data_folder.join(folder_name_to_delete(topic, *partition, unique));
        match runtime.rename(&data_folder.join(partition_folder_name(topic, *partition)), &path).await {
            Ok(()) => doomed.entry(*delay).or_default().push(path),
            Err(trouble) if trouble.is_not_found() => {}
            Err(trouble) => first_trouble = first_trouble.or(Some(trouble)),
        }
    }
    if !doomed.is_empty() {
        runtime.sync_folder(data_folder).await?;
    }
    doomed.into_iter().for_each(|(delay, folders)| remove_folders(runtime, folders, delay));
    first_trouble.map_or(Ok(()), Err)
}

fn remove_folders<R: Runtime>(runtime: &R, folders: Vec<PathBuf>, delay: Duration) {
    let deadline = runtime.now() + delay;
    let background = runtime.clone();
    runtime.spawn(Lane::Background, async move {
        background.sleep_until(deadline).await;
        for folder in folders {
            if let Err(trouble) = background.remove_folder(&folder).await {
                tracing::warn!(%trouble, "folder of a deleted partition not removed");
            }
            background.yield_now().await;
        }
    });
}

/// Reads `meta.properties` and holds it against what is expected; writes what is missing.
async fn own_properties<R: Runtime>(
    runtime: &R,
    folder: &Path,
    node_id: NodeId,
    cluster_id: Option<&ClusterId>,
    start: &mut FolderStart,
) -> Result<FolderProperties, FolderTrouble> {
    let path = folder.join(META_PROPERTIES);
    let mut properties = match read_text(runtime, &path).await? {
        None => {
            start.is_new = true;
            let cluster_id =
                cluster_id.cloned().unwrap_or_else(|| ClusterId(random_id(runtime).to_string().into()));
            FolderProperties { node_id, cluster_id, directory_id: None }
        }
        Some(text) => FolderProperties::parse(&text)
            .map_err(|fault| FolderTrouble::Properties { path: path.clone(), fault })?,
    };
    if properties.node_id != node_id {
        return Err(FolderTrouble::OtherNode {
            path: folder.into(),
            found: properties.node_id,
            expected: node_id,
        });
    }
    if let Some(expected) = cluster_id.filter(|expected| **expected != properties.cluster_id) {
        return Err(FolderTrouble::OtherCluster {
            path: folder.into(),
            found: properties.cluster_id,
            expected: expected.clone(),
        });
    }
    if properties.directory_id.is_none() {
        properties.directory_id = Some(random_id(runtime));
        // First, so that whoever finds the properties after a kill may rely on the way to them.
        sync_ancestors(runtime, folder).await?;
        write_small(runtime, &path, properties.to_text()).await?;
    }
    Ok(properties)
}

/// Makes the folders that lead to `folder` outlive a power cut: some of them may have been made with it.
async fn sync_ancestors<R: Runtime>(runtime: &R, folder: &Path) -> Result<(), Trouble> {
    for child in folder.ancestors().filter(|child| !child.as_os_str().is_empty()) {
        match runtime.sync_folder(folder_of(child)).await {
            // A folder that we may not read is not one that we made.
            Err(trouble) if trouble.cause.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// A random id whose text form does not begin with a dash, which tools would take for a flag.
fn random_id<R: Runtime>(runtime: &R) -> DirectoryId {
    loop {
        let bytes = u128::from(runtime.random()) << 64 | u128::from(runtime.random());
        let id = DirectoryId::random(bytes.to_be_bytes());
        if !id.to_string().starts_with('-') {
            return id;
        }
    }
}
