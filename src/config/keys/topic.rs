use super::*;

keys! {
    /// What a single topic may set for itself.
    TOPIC:
    "cleanup.policy", List, "delete", SomeOf { names: &["compact", "delete"], empty: true }, ClusterWide, Served,
        "What becomes of old segments: delete, compact, both, or neither when empty.";
    "compression.gzip.level", Int, "-1", GzipLevel, ClusterWide, Served,
        "Level where compression.type is gzip.";
    "compression.lz4.level", Int, "9", Between(1, 17), ClusterWide, Ignored,
        "Level where compression.type is lz4.";
    "compression.type", String, "producer", OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), ClusterWide, Served,
        "Compression that records are kept in; producer keeps theirs.";
    "compression.zstd.level", Int, "3", Between(-131_072, 22), ClusterWide, Served,
        "Level where compression.type is zstd.";
    "delete.retention.ms", Long, "86400000", AtLeast(0), ClusterWide, Served,
        "How long the mark of a deleted key is kept when the topic is compacted.";
    "file.delete.delay.ms", Long, "60000", AtLeast(0), ClusterWide, Served,
        "How long the files of something deleted stay on disk.";
    "flush.messages", Long, "9223372036854775807", AtLeast(1), ClusterWide, Served,
        "Records after which an append waits for its sync; disk durability always waits.";
    "flush.ms", Long, "9223372036854775807", AtLeast(0), ClusterWide, Served,
        "Longest time an appended record stays unsynced; disk durability leaves none so.";
    "follower.replication.throttled.replicas", List, "", ThrottledReplicas, ClusterWide, Ignored,
        "Replicas whose fetching is slowed down.";
    "index.interval.bytes", Int, "4096", AtLeast(0), ClusterWide, Served,
        "Bytes of records between two index entries.";
    "internal.segment.bytes", Int, none, AtLeast(1), ClusterWide, Served,
        "Length of a segment at which the next one begins, below the least of segment.bytes, for tests.";
    "leader.replication.throttled.replicas", List, "", ThrottledReplicas, ClusterWide, Ignored,
        "Replicas whose sending to followers is slowed down.";
    "local.retention.bytes", Long, "-2", AtLeast(-2), ClusterWide, Ignored,
        "Bytes kept on this machine beside tiered storage; -2: retention.bytes.";
    "local.retention.ms", Long, "-2", AtLeast(-2), ClusterWide, Ignored,
        "Time kept on this machine beside tiered storage; -2: retention.ms.";
    "max.compaction.lag.ms", Long, "9223372036854775807", AtLeast(1), ClusterWide, Served,
        "Age at which a record of a compacted topic must be open to compaction; its segment ends by then.";
    "max.message.bytes", Int, "1048588", AtLeast(0), ClusterWide, Served,
        "Longest record batch a producer may send, as compressed.";
    "message.timestamp.after.max.ms", Long, "3600000", AtLeast(0), ClusterWide, Served,
        "How far ahead of the broker's clock a record's time may be.";
    "message.timestamp.before.max.ms", Long, "9223372036854775807", AtLeast(0), ClusterWide, Served,
        "How far behind the broker's clock a record's time may be.";
    "message.timestamp.type", String, "CreateTime", OneOf(&["CreateTime", "LogAppendTime"]), ClusterWide, Served,
        "Whether a record keeps its producer's time or gets the time of its append.";
    "min.cleanable.dirty.ratio", Double, "0.5", UpTo(1.0), ClusterWide, Served,
        "Share of uncompacted bytes from which the log is compacted.";
    "min.compaction.lag.ms", Long, "0", AtLeast(0), ClusterWide, Served,
        "Age below which a record is never compacted away.";
    "min.insync.replicas", Int, "1", AtLeast(1), ClusterWide, Served,
        "Replicas that must be in sync before acks=all is taken.";
    "preallocate", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether a segment takes its full length on disk at once; here a little ahead, always.";
    "remote.log.copy.disable", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether tiered storage gets no further segments.";
    "remote.log.delete.on.disable", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether turning tiered storage off deletes what it holds.";
    "remote.storage.enable", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether old segments go to tiered storage; this version has none and refuses true.";
    "retention.bytes", Long, "-1", Any, ClusterWide, Served,
        "Length of a partition above which its oldest segments are deleted; -1: no limit.";
    "retention.ms", Long, "604800000", AtLeast(-1), ClusterWide, Served,
        "Age at which records are deleted; -1: never.";
    "segment.bytes", Int, "1073741824", AtLeast(1_048_576), ClusterWide, Served,
        "Length of a segment at which the next one begins.";
    "segment.index.bytes", Int, "10485760", AtLeast(4), ClusterWide, Served,
        "Length of an index; a segment whose index is full is closed.";
    "segment.jitter.ms", Long, "0", AtLeast(0), ClusterWide, Served,
        "Most of a random part taken off segment.ms, so that segments do not end together.";
    "segment.ms", Long, "604800000", AtLeast(1), ClusterWide, Served,
        "Age of a segment at which the next one begins.";
    "unclean.leader.election.enable", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether a replica that has not all records may become leader.";
}
