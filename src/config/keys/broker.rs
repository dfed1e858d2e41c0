use super::*;

keys! {
    /// What this broker is, its data, its cluster, and how it reports.
    BROKER:
    "node.id", Int, "0", AtLeast(0), ReadOnly, Served,
        "Number of this broker in its cluster.";
    "broker.id", Int, "-1", Any, ReadOnly, Served,
        "Older name of node.id; where both are set they must agree.";
    "log.dirs", List, "./onrush-data", NotEmpty, ReadOnly, Served,
        "Folder of the data, made when missing; this version takes one.";
    "log.dir", List, none, NotEmpty, ReadOnly, Served,
        "Folder of the data when log.dirs is not set.";
    "controller.listener.names", List, none, NotEmpty, ReadOnly, Served,
        "Listeners of the controller; it is part of this broker and needs none, so they are not opened.";
    "process.roles", List, "broker,controller", SomeOf { names: &["broker", "controller"], empty: false }, ReadOnly, Served,
        "What this process is; without the role broker there is nothing to serve.";
    "metadata.log.dir", String, none, Any, ReadOnly, Ignored,
        "Folder of the metadata log, where it is not the data's.";
    "metadata.log.max.record.bytes.between.snapshots", Long, "20971520", AtLeast(1), ReadOnly, Ignored,
        "Bytes of metadata records after which a snapshot is taken.";
    "metadata.log.max.snapshot.interval.ms", Long, "3600000", AtLeast(0), ReadOnly, Ignored,
        "Longest time between two snapshots of the metadata.";
    "metadata.log.segment.bytes", Int, "1073741824", AtLeast(8_388_608), ReadOnly, Ignored,
        "Length at which a metadata segment is closed.";
    "metadata.log.segment.ms", Long, "604800000", Any, ReadOnly, Ignored,
        "Age at which a metadata segment is closed.";
    "metadata.max.idle.interval.ms", Int, "500", AtLeast(0), ReadOnly, Ignored,
        "How often an idle controller writes an empty record.";
    "metadata.max.retention.bytes", Long, "104857600", Any, ReadOnly, Ignored,
        "Bytes of metadata log and snapshots kept.";
    "metadata.max.retention.ms", Long, "604800000", Any, ReadOnly, Ignored,
        "How long metadata log and snapshots are kept.";
    "internal.metadata.delete.delay.millis", Long, "60000", Any, ReadOnly, Ignored,
        "How long a removed metadata file stays on disk.";
    "internal.metadata.log.segment.bytes", Int, none, Any, ReadOnly, Ignored,
        "Length at which a metadata segment is closed, for tests.";
    "internal.metadata.max.batch.size.in.bytes", Int, "8388608", Any, ReadOnly, Ignored,
        "Longest batch of metadata records.";
    "broker.heartbeat.interval.ms", Int, "2000", Any, ReadOnly, Ignored,
        "How often a broker reports to the controller.";
    "broker.session.timeout.ms", Int, "9000", Any, ReadOnly, Ignored,
        "Silence after which the controller takes a broker for dead.";
    "initial.broker.registration.timeout.ms", Int, "60000", Any, ReadOnly, Ignored,
        "How long a starting broker tries to register with the controller.";
    "server.max.startup.time.ms", Long, "9223372036854775807", AtLeast(0), ReadOnly, Ignored,
        "Longest start before the broker gives up.";
    "controlled.shutdown.enable", Boolean, "true", Any, ReadOnly, Ignored,
        "Whether a stopping broker first moves its leaderships away.";
    "controller.performance.always.log.threshold.ms", Long, "2000", AtLeast(0), ReadOnly, Ignored,
        "Controller work slower than this is logged.";
    "controller.performance.sample.period.ms", Long, "60000", AtLeast(100), ReadOnly, Ignored,
        "How often the controller logs how fast it is.";
    "controller.quorum.append.linger.ms", Int, "25", AtLeast(0), ReadOnly, Ignored,
        "How long the controller gathers records before it writes them.";
    "controller.quorum.auto.join.enable", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether a controller joins the voters by itself.";
    "controller.quorum.bootstrap.servers", List, "", Any, ReadOnly, Ignored,
        "Where to find the controllers, as host:port.";
    "controller.quorum.election.backoff.max.ms", Int, "1000", AtLeast(0), ReadOnly, Ignored,
        "Longest pause between two elections.";
    "controller.quorum.election.timeout.ms", Int, "1000", AtLeast(0), ReadOnly, Ignored,
        "How long a voter waits for the leader before it calls an election.";
    "controller.quorum.fetch.max.bytes", Int, "1048576", AtLeast(1), ReadOnly, Ignored,
        "Most bytes in one fetch of metadata records.";
    "controller.quorum.fetch.snapshot.max.bytes", Int, "1048576", AtLeast(1), ReadOnly, Ignored,
        "Most bytes in one fetch of a metadata snapshot.";
    "controller.quorum.fetch.timeout.ms", Int, "2000", AtLeast(0), ReadOnly, Ignored,
        "Longest time without a fetch before leadership is in doubt.";
    "controller.quorum.request.timeout.ms", Int, "2000", AtLeast(0), ReadOnly, Ignored,
        "How long a controller waits for an answer.";
    "controller.quorum.retry.backoff.ms", Int, "20", AtLeast(0), ReadOnly, Ignored,
        "Pause before a controller's request is tried again.";
    "controller.quorum.voters", List, "", Any, ReadOnly, Ignored,
        "The controllers of the cluster, as id@host:port.";
    "controller.quota.window.num", Int, "11", AtLeast(1), ReadOnly, Ignored,
        "Time windows kept to measure changes to topics.";
    "controller.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly, Ignored,
        "Length of one time window in which changes to topics are measured.";
    "controller.socket.timeout.ms", Int, "30000", Any, ReadOnly, Ignored,
        "How long the controller waits on a socket to a broker.";
    "unstable.api.versions.enable", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether versions of requests still in the making are offered.";
    "unstable.feature.versions.enable", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether features still in the making are offered.";
    "log.dir.failure.timeout.ms", Long, "30000", AtLeast(1), ReadOnly, Ignored,
        "How long a broker that cannot report a failed folder goes on.";
    "cordoned.log.dirs", List, "", Any, PerBroker, Ignored,
        "Folders that get no new partitions.";
    "num.recovery.threads.per.data.dir", Int, "2", AtLeast(1), ClusterWide, Ignored,
        "Threads that check logs at start; here each core checks its own.";
    "num.replica.alter.log.dirs.threads", Int, none, Any, ReadOnly, Ignored,
        "Threads that move replicas between folders.";
    "alter.log.dirs.replication.quota.window.num", Int, "11", AtLeast(1), ReadOnly, Ignored,
        "Time windows kept to measure moves between folders.";
    "alter.log.dirs.replication.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly, Ignored,
        "Length of one time window in which moves between folders are measured.";
    "default.replication.factor", Int, "1", Any, ReadOnly, Ignored,
        "Replicas of a topic that is made without saying how many; here always one.";
    "num.replica.fetchers", Int, "1", AtLeast(1), ClusterWide, Ignored,
        "Threads that fetch from each other broker.";
    "auto.leader.rebalance.enable", Boolean, "true", Any, ReadOnly, Ignored,
        "Whether leadership goes back to the first replica by itself.";
    "leader.imbalance.check.interval.seconds", Long, "300", AtLeast(1), ReadOnly, Ignored,
        "How often partitions led by another than their first replica are looked for.";
    "unclean.leader.election.interval.ms", Long, "300000", AtLeast(1), ReadOnly, Ignored,
        "How often leaderless partitions are looked at.";
    "unclean.leader.election.enable", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether a replica that has not all records may become leader.";
    "replica.fetch.backoff.ms", Int, "1000", AtLeast(0), ReadOnly, Ignored,
        "Pause of a follower after a failed fetch.";
    "replica.fetch.max.bytes", Int, "1048576", AtLeast(0), ReadOnly, Ignored,
        "Bytes a follower asks for per partition.";
    "replica.fetch.min.bytes", Int, "1", Any, ReadOnly, Ignored,
        "Bytes for which a follower's fetch is held.";
    "replica.fetch.response.max.bytes", Int, "10485760", AtLeast(0), ReadOnly, Ignored,
        "Bytes a follower asks for in one fetch.";
    "replica.fetch.wait.max.ms", Int, "500", Any, ReadOnly, Ignored,
        "Longest time a follower's fetch is held.";
    "replica.high.watermark.checkpoint.interval.ms", Long, "5000", Any, ReadOnly, Ignored,
        "How often high watermarks are written to their checkpoint file.";
    "replica.lag.time.max.ms", Long, "30000", Any, ReadOnly, Ignored,
        "How long a follower may lag before it leaves the ISR.";
    "replica.selector.class", String, none, Any, ReadOnly, Ignored,
        "Class that picks the replica a consumer reads from.";
    "replica.socket.receive.buffer.bytes", Int, "65536", Any, ReadOnly, Ignored,
        "The kernel's receive buffer of a follower's socket.";
    "replica.socket.timeout.ms", Int, "30000", Any, ReadOnly, Ignored,
        "How long a follower waits on a socket.";
    "replication.quota.window.num", Int, "11", AtLeast(1), ReadOnly, Ignored,
        "Time windows kept to measure replication.";
    "replication.quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly, Ignored,
        "Length of one time window in which replication is measured.";
    "follower.fetch.last.tiered.offset.enable", Boolean, "false", Any, ClusterWide, Ignored,
        "Whether an empty follower starts behind what tiered storage holds.";
    "quota.window.num", Int, "11", AtLeast(1), ReadOnly, Ignored,
        "Time windows kept to measure clients.";
    "quota.window.size.seconds", Int, "1", AtLeast(1), ReadOnly, Ignored,
        "Length of one time window in which clients are measured.";
    "client.quota.callback.class", Class, none, Any, ReadOnly, Ignored,
        "Class that decides the quotas of clients.";
    "create.topic.policy.class.name", Class, none, Any, ReadOnly, Ignored,
        "Class that may refuse new topics.";
    "alter.config.policy.class.name", Class, none, Any, ReadOnly, Ignored,
        "Class that may refuse changed settings.";
    "config.providers", List, "", Any, ClusterWide, Ignored,
        "Names of classes that fetch values from elsewhere.";
    "kafka.metrics.polling.interval.secs", Int, "10", AtLeast(1), ReadOnly, Ignored,
        "How often the older metrics reporters read.";
    "kafka.metrics.reporters", List, "", Any, ReadOnly, Ignored,
        "Classes of the older metrics reporters.";
    "metric.reporters", List, "org.apache.kafka.common.metrics.JmxReporter", Any, ClusterWide, Ignored,
        "Classes that report metrics.";
    "metrics.num.samples", Int, "2", AtLeast(1), ReadOnly, Ignored,
        "Samples a metric keeps.";
    "metrics.recording.level", String, "INFO", Any, ReadOnly, Ignored,
        "Which metrics are kept: INFO, DEBUG or TRACE.";
    "metrics.sample.window.ms", Long, "30000", AtLeast(1), ReadOnly, Ignored,
        "Time one sample of a metric covers.";
    "telemetry.max.bytes", Int, "1048576", AtLeast(1), ReadOnly, Ignored,
        "Most bytes of metrics a client may push at once.";
}
