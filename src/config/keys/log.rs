use super::*;

keys! {
    /// Topics and their logs: the values a topic has until it sets its own.
    LOG:
    "num.partitions", Int, "1", AtLeast(1), ReadOnly, Served,
        "Partitions of a topic that is made without saying how many.";
    "auto.create.topics.enable", Boolean, "true", Any, ReadOnly, Served,
        "Whether a topic that a client asks for is made when it is missing.";
    "delete.topic.enable", Boolean, "true", Any, ReadOnly, Served,
        "Whether clients may delete topics.";
    "log.segment.bytes", Int, "1073741824", AtLeast(1_048_576), ClusterWide, Served,
        "Length of a segment at which the next one begins.";
    "log.roll.ms", Long, none, Any, ClusterWide, Served,
        "Age of a segment at which the next one begins; unset: log.roll.hours.";
    "log.roll.hours", Int, "168", AtLeast(1), ReadOnly, Served,
        "Age of a segment at which the next one begins, in hours.";
    "log.roll.jitter.ms", Long, none, Any, ClusterWide, Served,
        "Most of a random part taken off log.roll.ms, so that segments do not end together; unset: log.roll.jitter.hours.";
    "log.roll.jitter.hours", Int, "0", AtLeast(0), ReadOnly, Served,
        "Most of a random part taken off log.roll.hours, in hours.";
    "log.index.interval.bytes", Int, "4096", AtLeast(0), ClusterWide, Served,
        "Bytes of records between two index entries.";
    "log.index.size.max.bytes", Int, "10485760", AtLeast(4), ClusterWide, Served,
        "Length of an index; a segment whose index is full is closed.";
    "log.cleanup.policy", List, "delete", SomeOf { names: &["compact", "delete"], empty: true }, ClusterWide, Served,
        "What becomes of old segments: delete, compact, both, or neither when empty.";
    "log.flush.interval.messages", Long, "9223372036854775807", AtLeast(1), ClusterWide, Served,
        "Records after which an append waits for its sync; disk durability always waits.";
    "log.flush.interval.ms", Long, none, Any, ClusterWide, Served,
        "Longest time an appended record stays unsynced; unset: log.flush.scheduler.interval.ms.";
    "log.flush.scheduler.interval.ms", Long, "9223372036854775807", Any, ReadOnly, Served,
        "log.flush.interval.ms where that is unset; logs due for a sync need not be looked for.";
    "log.message.timestamp.type", String, "CreateTime", OneOf(&["CreateTime", "LogAppendTime"]), ClusterWide, Served,
        "Whether a record keeps its producer's time or gets the time of its append.";
    "log.message.timestamp.before.max.ms", Long, "9223372036854775807", AtLeast(0), ClusterWide, Served,
        "How far behind the broker's clock a record's time may be.";
    "log.message.timestamp.after.max.ms", Long, "3600000", AtLeast(0), ClusterWide, Served,
        "How far ahead of the broker's clock a record's time may be.";
    "message.max.bytes", Int, "1048588", AtLeast(0), ClusterWide, Served,
        "Longest record batch a producer may send, as compressed.";
    "min.insync.replicas", Int, "1", AtLeast(1), ClusterWide, Served,
        "Replicas that must be in sync before acks=all is taken.";
    "compression.type", String, "producer", OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), ClusterWide, Served,
        "Compression that records are kept in; producer keeps theirs.";
    "compression.gzip.level", Int, "-1", GzipLevel, ClusterWide, Served,
        "Level where compression.type is gzip.";
    "compression.zstd.level", Int, "3", Between(-131_072, 22), ClusterWide, Served,
        "Level where compression.type is zstd.";
    "log.segment.delete.delay.ms", Long, "60000", AtLeast(0), ClusterWide, Served,
        "How long the files of something deleted stay on disk.";
    "log.cleaner.max.compaction.lag.ms", Long, "9223372036854775807", AtLeast(1), ClusterWide, Served,
        "Age at which a record of a compacted topic must be open to compaction; its segment ends by then.";
    "log.retention.ms", Long, none, Any, ClusterWide, Served,
        "Age at which records are deleted, -1 for never; unset: log.retention.minutes.";
    "log.retention.minutes", Int, none, Any, ReadOnly, Served,
        "Age at which records are deleted, in minutes; unset: log.retention.hours.";
    "log.retention.hours", Int, "168", Any, ReadOnly, Served,
        "Age at which records are deleted, in hours.";
    "log.retention.bytes", Long, "-1", Any, ClusterWide, Served,
        "Length of a partition above which its oldest segments are deleted; -1: no limit.";
    "log.retention.check.interval.ms", Long, "300000", AtLeast(1), ReadOnly, Served,
        "How often old segments are looked for.";
    "log.flush.offset.checkpoint.interval.ms", Int, "60000", AtLeast(0), ReadOnly, Ignored,
        "How often recovery points are written to their checkpoint file.";
    "log.flush.start.offset.checkpoint.interval.ms", Int, "60000", AtLeast(0), ReadOnly, Ignored,
        "How often log start offsets are written to their checkpoint file.";
    "log.preallocate", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether a segment takes its full length on disk at once; here a little ahead, always.";
    "log.initial.task.delay.ms", Long, "30000", AtLeast(0), ReadOnly, Served,
        "Wait after the start before the first cleaning, for tests.";
    "log.cleaner.backoff.ms", Long, "15000", AtLeast(0), ClusterWide, Served,
        "Pause of the cleaner when nothing is to be cleaned.";
    "log.cleaner.dedupe.buffer.size", Long, "134217728", Any, ClusterWide, Served,
        "Memory in which the cleaner notes keys, in bytes.";
    "log.cleaner.delete.retention.ms", Long, "86400000", AtLeast(0), ClusterWide, Served,
        "How long the mark of a deleted key is kept in a compacted topic.";
    "log.cleaner.enable", Boolean, "true", Any, ReadOnly, Served,
        "Whether topics are compacted at all.";
    "log.cleaner.io.buffer.load.factor", Double, "0.9", Any, ClusterWide, Ignored,
        "How full the cleaner's note of keys may get.";
    "log.cleaner.io.buffer.size", Int, "524288", AtLeast(0), ClusterWide, Ignored,
        "The cleaner's read and write buffers, in bytes.";
    "log.cleaner.io.max.bytes.per.second", Double, "1.7976931348623157E308", Any, ClusterWide, Served,
        "Most bytes the cleaner reads and writes in a second.";
    "log.cleaner.min.cleanable.ratio", Double, "0.5", UpTo(1.0), ClusterWide, Served,
        "Share of uncompacted bytes from which a log is compacted.";
    "log.cleaner.min.compaction.lag.ms", Long, "0", AtLeast(0), ClusterWide, Served,
        "Age below which a record is never compacted away.";
    "log.cleaner.threads", Int, "1", AtLeast(0), ClusterWide, Ignored,
        "Threads of the cleaner.";
    "log.local.retention.bytes", Long, "-2", AtLeast(-2), ClusterWide, Ignored,
        "Bytes kept on this machine beside tiered storage; -2: log.retention.bytes.";
    "log.local.retention.ms", Long, "-2", AtLeast(-2), ClusterWide, Ignored,
        "Time kept on this machine beside tiered storage; -2: log.retention.ms.";
    "compression.lz4.level", Int, "9", Between(1, 17), ClusterWide, Ignored,
        "Level where compression.type is lz4.";
}
