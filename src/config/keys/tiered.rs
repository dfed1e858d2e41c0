use super::*;

keys! {
    /// Tiered storage.
    TIERED:
    "remote.log.storage.system.enable", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether old segments may go to tiered storage; this version has none and refuses true.";
    "remote.fetch.max.wait.ms", Int, "500", AtLeast(1), ClusterWide, Ignored,
        "Longest wait for records from tiered storage.";
    "remote.list.offsets.request.timeout.ms", Long, "30000", AtLeast(1), ClusterWide, Ignored,
        "Longest wait for an offset from tiered storage.";
    "remote.log.index.file.cache.total.size.bytes", Long, "1073741824", AtLeast(1), ClusterWide, Ignored,
        "Room for indexes fetched from tiered storage.";
    "remote.log.index.file.cache.ttl.ms", Long, "900000", AtLeast(-1), ReadOnly, Ignored,
        "How long an unused index from tiered storage stays on this machine.";
    "remote.log.manager.copier.thread.pool.size", Int, "10", AtLeast(1), ClusterWide, Ignored,
        "Threads that copy segments to tiered storage.";
    "remote.log.manager.copy.max.bytes.per.second", Long, "9223372036854775807", AtLeast(1), ClusterWide, Ignored,
        "Most bytes copied to tiered storage in a second.";
    "remote.log.manager.copy.quota.window.num", Int, "11", AtLeast(1), ReadOnly, Ignored,
        "Time windows kept to measure copying to tiered storage.";
    "remote.log.manager.copy.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly, Ignored,
        "Length of one time window in which copying to tiered storage is measured.";
    "remote.log.manager.expiration.thread.pool.size", Int, "10", AtLeast(1), ClusterWide, Ignored,
        "Threads that delete expired segments from tiered storage.";
    "remote.log.manager.fetch.max.bytes.per.second", Long, "9223372036854775807", AtLeast(1), ClusterWide, Ignored,
        "Most bytes fetched from tiered storage in a second.";
    "remote.log.manager.fetch.quota.window.num", Int, "11", AtLeast(1), ReadOnly, Ignored,
        "Time windows kept to measure fetching from tiered storage.";
    "remote.log.manager.fetch.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly, Ignored,
        "Length of one time window in which fetching from tiered storage is measured.";
    "remote.log.manager.follower.thread.pool.size", Int, "2", AtLeast(1), ClusterWide, Ignored,
        "Threads that learn what a leader has copied.";
    "remote.log.manager.task.interval.ms", Long, "30000", AtLeast(1), ReadOnly, Ignored,
        "How often work for tiered storage is looked for.";
    "remote.log.manager.task.retry.backoff.max.ms", Long, "30000", AtLeast(1), ReadOnly, Ignored,
        "Longest pause before work for tiered storage is tried again.";
    "remote.log.manager.task.retry.backoff.ms", Long, "500", AtLeast(1), ReadOnly, Ignored,
        "First pause before work for tiered storage is tried again.";
    "remote.log.manager.task.retry.jitter", Double, "0.2", UpTo(0.5), ReadOnly, Ignored,
        "Random part of the pause before work for tiered storage is tried again.";
    "remote.log.manager.thread.pool.size", Int, "2", AtLeast(1), ReadOnly, Ignored,
        "Older name of remote.log.manager.follower.thread.pool.size.";
    "remote.log.metadata.custom.metadata.max.bytes", Int, "128", AtLeast(0), ReadOnly, Ignored,
        "Most bytes a storage plugin may note for a segment.";
    "remote.log.metadata.manager.class.name", String, "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", NotEmpty, ReadOnly, Ignored,
        "Class that keeps the list of copied segments.";
    "remote.log.metadata.manager.class.path", String, none, Any, ReadOnly, Ignored,
        "Where the class that keeps the list of copied segments is.";
    "remote.log.metadata.manager.impl.prefix", String, "rlmm.config.", NotEmpty, ReadOnly, Ignored,
        "Beginning of the names of the settings meant for the class that keeps the list of copied segments.";
    "remote.log.metadata.manager.listener.name", String, none, NotEmpty, ReadOnly, Ignored,
        "Listener over which the list of copied segments is kept.";
    "remote.log.reader.max.pending.tasks", Int, "100", AtLeast(1), ReadOnly, Ignored,
        "Reads from tiered storage that may wait for a thread.";
    "remote.log.reader.threads", Int, "10", AtLeast(1), ClusterWide, Ignored,
        "Threads that read from tiered storage.";
    "remote.log.storage.manager.class.name", String, none, NotEmpty, ReadOnly, Ignored,
        "Class that stores segments elsewhere.";
    "remote.log.storage.manager.class.path", String, none, Any, ReadOnly, Ignored,
        "Where the class that stores segments elsewhere is.";
    "remote.log.storage.manager.impl.prefix", String, "rsm.config.", NotEmpty, ReadOnly, Ignored,
        "Beginning of the names of the settings meant for the class that stores segments.";
}
