//! Names of files and folders, as Kafka has them.

use std::path::{Path, PathBuf};

use crate::base::{Offset, PartitionIndex, ShardId, TimestampMs, TopicName};

pub(super) const META_PROPERTIES: &str = "meta.properties";
pub(super) const LOCK: &str = ".lock";
pub(super) const CLEAN_MARKER: &str = ".kafka_cleanshutdown";
pub(super) const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
pub(super) const LOG_STARTS: &str = "log-start-offset-checkpoint";
pub(super) const CLEANED_ENDS: &str = "cleaner-offset-checkpoint";
pub(super) const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
pub(super) const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";
pub(super) const PARTITION_METADATA: &str = "partition.metadata";
/// Appended to a small file's name while it is being written.
pub(super) const BEING_WRITTEN: &str = ".tmp";
/// Appended to a segment file's name when its segment left the log.
pub(super) const DELETED: &str = ".deleted";
/// Appended to the name of a segment that compaction is writing.
pub(super) const CLEANED: &str = ".cleaned";
/// Appended to the name of a compacted segment that is taking the place of others.
pub(super) const SWAP: &str = ".swap";

/// Name of a file of a shard's journal. A plain file: Kafka takes every folder of a data folder for a partition's.
pub(super) fn journal_file_name(shard: ShardId, number: u64) -> String {
    format!("onrush-{shard}-{number}.journal")
}

/// Takes the name of a journal's file apart; `None` when it is no such file.
pub(super) fn parse_journal_file_name(name: &str) -> Option<(ShardId, u64)> {
    let (shard, number) = name.strip_prefix("onrush-")?.strip_suffix(".journal")?.split_once('-')?;
    Some((ShardId(shard.parse().ok()?), number.parse().ok()?))
}

const DAMAGED: &str = ".damaged-";

/// Name that a file of a shard's journal gets when it is damaged, so that nobody writes it over.
pub(super) fn damaged_journal_file_name(shard: ShardId, number: u64, now: TimestampMs) -> String {
    format!("onrush-{shard}-{number}{DAMAGED}{}", now.0)
}

/// Since when the file of this name is set aside as damaged; `None` when it is no such file.
pub(super) fn parse_damaged_journal_file_name(name: &str) -> Option<TimestampMs> {
    let (_, since) = name.strip_prefix("onrush-")?.split_once(DAMAGED)?;
    since.parse().ok().map(TimestampMs)
}

/// The files of one segment, and a producer snapshot, each named by an offset of 20 digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
    ProducerSnapshot,
}

impl FileKind {
    pub const OF_SEGMENT: [FileKind; 4] =
        [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];

    fn suffix(self) -> &'static str {
        match self {
            FileKind::Log => ".log",
            FileKind::OffsetIndex => ".index",
            FileKind::TimeIndex => ".timeindex",
            FileKind::TransactionIndex => ".txnindex",
            FileKind::ProducerSnapshot => ".snapshot",
        }
    }

    /// Path of the file of this kind for `offset` in `folder`.
    pub fn path(self, folder: &Path, offset: Offset) -> PathBuf {
        folder.join(format!("{:020}{}", offset.0, self.suffix()))
    }

    /// Takes a name apart; `None` when it is no such file.
    pub fn parse(name: &str) -> Option<(FileKind, Offset)> {
        let (digits, _) = name.split_once('.')?;
        let suffix = &name[digits.len()..];
        let kind = FileKind::OF_SEGMENT
            .into_iter()
            .chain([FileKind::ProducerSnapshot])
            .find(|kind| kind.suffix() == suffix)?;
        let well_formed = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        well_formed.then(|| digits.parse().ok()).flatten().map(|offset| (kind, Offset(offset)))
    }
}

/// What a folder inside the data folder is for, told by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartitionFolderName {
    /// `topic-N`.
    Live { topic: TopicName, partition: PartitionIndex },
    /// `topic-N.<32 hex digits>-delete`: to be removed.
    ToDelete,
    /// `topic-N.<32 hex digits>-stray`, `…-future`: Kafka set it aside or was moving it; left as it is.
    SetAside,
}

impl PartitionFolderName {
    /// `None`: a folder that is not a partition's.
    pub fn parse(name: &str) -> Option<PartitionFolderName> {
        let marked = |suffix: &str| {
            name.strip_suffix(suffix)
                .and_then(|rest| rest.rsplit_once('.'))
                .is_some_and(|(_, id)| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        if marked("-delete") {
            return Some(PartitionFolderName::ToDelete);
        }
        if marked("-stray") || marked("-future") {
            return Some(PartitionFolderName::SetAside);
        }
        let (topic, partition) = name.rsplit_once('-')?;
        let digits_only = !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
        if topic.is_empty() || !digits_only {
            return None;
        }
        let partition = PartitionIndex(partition.parse().ok()?);
        Some(PartitionFolderName::Live { topic: TopicName::new(topic), partition })
    }
}

/// The path with `suffix` behind its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Name of a partition's folder.
pub fn partition_folder_name(topic: &TopicName, partition: PartitionIndex) -> String {
    format!("{topic}-{partition}")
}

/// Name a partition's folder takes when it is to be removed; `unique` keeps two of them apart. Cut like Kafka's to fit
/// the 255 bytes of a file name.
pub fn folder_name_to_delete(topic: &TopicName, partition: PartitionIndex, unique: u128) -> String {
    cut_name(topic, &format!("-{partition}.{unique:032x}-delete"))
}

/// Name a partition's folder takes when nobody knows what it is of.
pub fn folder_name_set_aside(topic: &TopicName, partition: PartitionIndex, unique: u128) -> String {
    cut_name(topic, &format!("-{partition}.{unique:032x}-stray"))
}

fn cut_name(topic: &TopicName, suffix: &str) -> String {
    let room = 255 - suffix.len();
    let topic = topic.as_str();
    format!("{}{suffix}", &topic[..topic.len().min(room)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_files_are_told_by_name_and_others_are_left_alone() {
        for kind in FileKind::OF_SEGMENT.into_iter().chain([FileKind::ProducerSnapshot]) {
            let path = kind.path(Path::new("/d/t-0"), Offset(1234));
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(FileKind::parse(name), Some((kind, Offset(1234))));
            assert_eq!(FileKind::parse(&format!("{name}{DELETED}")), None);
        }
        assert_eq!(FileKind::Log.path(Path::new("/d"), Offset(7)), Path::new("/d/00000000000000000007.log"));
        for name in [
            "7.log",
            "0000000000000000000x.log",
            "99999999999999999999.log",
            "leader-epoch-checkpoint",
            ".log",
        ] {
            assert_eq!(FileKind::parse(name), None, "{name}");
        }
        // A metadata snapshot of KRaft carries offset and epoch.
        assert_eq!(FileKind::parse("00000000000000000007-0000000001.checkpoint"), None);
    }

    #[test]
    fn journal_files_are_told_by_name() {
        assert_eq!(journal_file_name(ShardId(3), 12), "onrush-3-12.journal");
        assert_eq!(parse_journal_file_name("onrush-3-12.journal"), Some((ShardId(3), 12)));
        for name in ["onrush-3.journal", "onrush-3-12.journal.tmp", "onrush-x-1.journal", "onrush-3-.journal"]
        {
            assert_eq!(parse_journal_file_name(name), None, "{name}");
        }
        let damaged = damaged_journal_file_name(ShardId(3), 12, TimestampMs(1_750_000_000_000));
        assert_eq!(damaged, "onrush-3-12.damaged-1750000000000");
        assert_eq!(parse_journal_file_name(&damaged), None);
        assert_eq!(parse_damaged_journal_file_name(&damaged), Some(TimestampMs(1_750_000_000_000)));
        assert_eq!(parse_damaged_journal_file_name("onrush-3-12.journal"), None);
    }

    #[test]
    fn partition_folders_are_told_by_name() {
        let live = |topic, partition| {
            Some(PartitionFolderName::Live {
                topic: TopicName::new(topic),
                partition: PartitionIndex(partition),
            })
        };
        assert_eq!(PartitionFolderName::parse("a-b-12"), live("a-b", 12));
        assert_eq!(PartitionFolderName::parse("__consumer_offsets-0"), live("__consumer_offsets", 0));
        // A topic may end in the words that mark a folder.
        assert_eq!(PartitionFolderName::parse("x-delete-0"), live("x-delete", 0));
        for name in ["a", "-1", "a-", "a-1x", "a--", "lost+found", "a-99999999999"] {
            assert_eq!(PartitionFolderName::parse(name), None, "{name}");
        }
        let topic = TopicName::new(&"t".repeat(249));
        let doomed = folder_name_to_delete(&topic, PartitionIndex(9), 0xabc);
        assert_eq!(doomed.len(), 255);
        assert_eq!(PartitionFolderName::parse(&doomed), Some(PartitionFolderName::ToDelete));
        let stray = "t-0.0123456789abcdef0123456789abcdef-stray";
        assert_eq!(PartitionFolderName::parse(stray), Some(PartitionFolderName::SetAside));
    }
}
