use super::*;

keys! {
    /// Consumer groups of all kinds, and their offsets.
    GROUP:
    "group.initial.rebalance.delay.ms", Int, "3000", Any, ReadOnly, Served,
        "How long the first rebalance of a new classic group waits for more members.";
    "group.max.session.timeout.ms", Int, "1800000", Any, ReadOnly, Served,
        "Longest session timeout a member of a classic group may ask for.";
    "group.max.size", Int, "2147483647", AtLeast(1), ReadOnly, Served,
        "Most members of a classic group.";
    "group.min.session.timeout.ms", Int, "6000", Any, ReadOnly, Served,
        "Shortest session timeout a member of a classic group may ask for.";
    "offset.metadata.max.bytes", Int, "4096", Any, ReadOnly, Served,
        "Longest note a client may store beside a committed offset.";
    "offsets.retention.check.interval.ms", Long, "600000", AtLeast(1), ReadOnly, Served,
        "How often expired offsets are looked for.";
    "offsets.retention.minutes", Int, "10080", AtLeast(1), ReadOnly, Served,
        "How long the offsets of a group without members are kept.";
    "offsets.topic.num.partitions", Int, "50", AtLeast(1), ReadOnly, Served,
        "Partitions of __consumer_offsets; to be chosen before the first start.";
    "offsets.topic.segment.bytes", Int, "104857600", AtLeast(1), ReadOnly, Served,
        "Length of a segment of __consumer_offsets at which the next one begins.";
    "offsets.commit.timeout.ms", Int, "5000", AtLeast(1), ReadOnly, Ignored,
        "Longest wait until a committed offset is written.";
    "offsets.load.buffer.size", Int, "5242880", AtLeast(1), ReadOnly, Ignored,
        "Bytes read at a time when offsets are loaded.";
    "offsets.topic.compression.codec", Int, "0", Any, ReadOnly, Ignored,
        "Number of the compression of __consumer_offsets.";
    "offsets.topic.replication.factor", Short, "1", AtLeast(1), ReadOnly, Ignored,
        "Replicas of __consumer_offsets; here always one.";
    "group.coordinator.append.linger.ms", Int, "-1", AtLeast(-1), ReadOnly, Ignored,
        "How long the coordinator gathers records before it writes them; -1: its own choice.";
    "group.coordinator.background.threads", Int, "2", AtLeast(1), ReadOnly, Ignored,
        "Threads of the coordinator for chores.";
    "group.coordinator.cached.buffer.max.bytes", Int, "1048588", AtLeast(524_288), ClusterWide, Ignored,
        "Longest write buffer that the coordinator keeps for another use.";
    "group.coordinator.rebalance.protocols", List, "classic,consumer,streams", SomeOf { names: &["consumer", "classic", "share", "streams"], empty: false }, ReadOnly, Ignored,
        "Kinds of groups that are served.";
    "group.coordinator.threads", Int, "4", AtLeast(1), ReadOnly, Ignored,
        "Threads of the coordinator.";
    "group.consumer.assignment.interval.ms", Int, "1000", AtLeast(0), ClusterWide, Served,
        "Pause between two assignments of a consumer group.";
    "group.consumer.assignors", List, "uniform,range", SomeOf { names: &["uniform", "range"], empty: false }, ReadOnly, Served,
        "Ways to share out partitions in a consumer group, the default first.";
    "group.consumer.heartbeat.interval.ms", Int, "5000", AtLeast(1), ReadOnly, Served,
        "How often a member of a consumer group reports.";
    "group.consumer.max.assignment.interval.ms", Int, "15000", AtLeast(0), ReadOnly, Served,
        "Most a consumer group's pause between assignments may be set to.";
    "group.consumer.max.heartbeat.interval.ms", Int, "15000", AtLeast(1), ReadOnly, Served,
        "Most a consumer group's heartbeat interval may be set to.";
    "group.consumer.max.session.timeout.ms", Int, "60000", AtLeast(1), ReadOnly, Served,
        "Most a consumer group's session timeout may be set to.";
    "group.consumer.max.size", Int, "2147483647", AtLeast(1), ReadOnly, Served,
        "Most members of a consumer group.";
    "group.consumer.migration.policy", String, "bidirectional", OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]), ReadOnly, Served,
        "Which way a group with members may change between classic and consumer.";
    "group.consumer.min.assignment.interval.ms", Int, "0", AtLeast(0), ReadOnly, Served,
        "Least a consumer group's pause between assignments may be set to.";
    "group.consumer.min.heartbeat.interval.ms", Int, "5000", AtLeast(1), ReadOnly, Served,
        "Least a consumer group's heartbeat interval may be set to.";
    "group.consumer.min.session.timeout.ms", Int, "45000", AtLeast(1), ReadOnly, Served,
        "Least a consumer group's session timeout may be set to.";
    "group.consumer.regex.refresh.interval.ms", Int, "600000", AtLeast(10_000), ReadOnly, Served,
        "How often the topics of subscribed patterns are looked up.";
    "group.consumer.session.timeout.ms", Int, "45000", AtLeast(1), ReadOnly, Served,
        "Silence after which a member of a consumer group is expelled.";
    "group.share.assignment.interval.ms", Int, "1000", AtLeast(0), ClusterWide, Served,
        "Pause between two assignments of a share group.";
    "group.share.assignors", List, "simple", NotEmpty, ReadOnly, Ignored,
        "Ways to share out partitions in a share group.";
    "group.share.delivery.count.limit", Int, "5", Between(2, 10), ReadOnly, Served,
        "How often a record is delivered before a share group gives it up.";
    "group.share.heartbeat.interval.ms", Int, "5000", AtLeast(1), ReadOnly, Served,
        "How often a member of a share group reports.";
    "group.share.initialize.retry.interval.ms", Int, "30000", AtLeast(1), ReadOnly, Served,
        "Pause before a share group's start is tried again.";
    "group.share.max.assignment.interval.ms", Int, "15000", AtLeast(0), ReadOnly, Served,
        "Most a share group's pause between assignments may be set to.";
    "group.share.max.delivery.count.limit", Int, "10", Between(5, 25), ReadOnly, Served,
        "Most a share group's delivery count may be set to.";
    "group.share.max.heartbeat.interval.ms", Int, "15000", AtLeast(1), ReadOnly, Served,
        "Most a share group's heartbeat interval may be set to.";
    "group.share.max.partition.max.record.locks", Int, "4000", Between(2000, 10_000), ReadOnly, Served,
        "Most a share group's record locks may be set to.";
    "group.share.max.record.lock.duration.ms", Int, "60000", Between(30_000, 3_600_000), ReadOnly, Served,
        "Longest lock a share group may be set to.";
    "group.share.max.session.timeout.ms", Int, "60000", AtLeast(1), ReadOnly, Served,
        "Most a share group's session timeout may be set to.";
    "group.share.max.share.sessions", Int, "2000", AtLeast(1), ReadOnly, Served,
        "Share sessions kept at the same time.";
    "group.share.max.size", Int, "200", Between(1, 1000), ReadOnly, Served,
        "Most members of a share group.";
    "group.share.min.assignment.interval.ms", Int, "0", AtLeast(0), ReadOnly, Served,
        "Least a share group's pause between assignments may be set to.";
    "group.share.min.delivery.count.limit", Int, "2", Between(2, 5), ReadOnly, Served,
        "Least a share group's delivery count may be set to.";
    "group.share.min.heartbeat.interval.ms", Int, "5000", AtLeast(1), ReadOnly, Served,
        "Least a share group's heartbeat interval may be set to.";
    "group.share.min.partition.max.record.locks", Int, "100", Between(100, 2000), ReadOnly, Served,
        "Least a share group's record locks may be set to.";
    "group.share.min.record.lock.duration.ms", Int, "15000", Between(1000, 30_000), ReadOnly, Served,
        "Shortest lock a share group may be set to.";
    "group.share.min.session.timeout.ms", Int, "45000", AtLeast(1), ReadOnly, Served,
        "Least a share group's session timeout may be set to.";
    "group.share.partition.max.record.locks", Int, "2000", Between(100, 10_000), ReadOnly, Served,
        "Records of one partition that a share group may hold at a time.";
    "group.share.persister.class.name", String, "org.apache.kafka.server.share.persister.DefaultStatePersister", Any, ReadOnly, Ignored,
        "Class that keeps the state of share groups.";
    "group.share.record.lock.duration.ms", Int, "30000", Between(1000, 3_600_000), ReadOnly, Served,
        "How long a member of a share group holds a record.";
    "group.share.session.timeout.ms", Int, "45000", AtLeast(1), ReadOnly, Served,
        "Silence after which a member of a share group is expelled.";
    "group.streams.assignment.interval.ms", Int, "1000", AtLeast(0), ClusterWide, Ignored,
        "Pause between two assignments of a streams group.";
    "group.streams.heartbeat.interval.ms", Int, "5000", AtLeast(1), ReadOnly, Ignored,
        "How often a member of a streams group reports.";
    "group.streams.initial.rebalance.delay.ms", Int, "3000", AtLeast(0), ReadOnly, Ignored,
        "How long the first rebalance of a streams group waits for more members.";
    "group.streams.max.assignment.interval.ms", Int, "15000", AtLeast(0), ReadOnly, Ignored,
        "Most a streams group's pause between assignments may be set to.";
    "group.streams.max.heartbeat.interval.ms", Int, "15000", AtLeast(1), ReadOnly, Ignored,
        "Most a streams group's heartbeat interval may be set to.";
    "group.streams.max.session.timeout.ms", Int, "60000", AtLeast(1), ReadOnly, Ignored,
        "Most a streams group's session timeout may be set to.";
    "group.streams.max.size", Int, "2147483647", AtLeast(1), ReadOnly, Ignored,
        "Most members of a streams group.";
    "group.streams.max.standby.replicas", Int, "2", AtLeast(0), ReadOnly, Ignored,
        "Most a streams group's standby copies may be set to.";
    "group.streams.min.assignment.interval.ms", Int, "0", AtLeast(0), ReadOnly, Ignored,
        "Least a streams group's pause between assignments may be set to.";
    "group.streams.min.heartbeat.interval.ms", Int, "5000", AtLeast(1), ReadOnly, Ignored,
        "Least a streams group's heartbeat interval may be set to.";
    "group.streams.min.session.timeout.ms", Int, "45000", AtLeast(1), ReadOnly, Ignored,
        "Least a streams group's session timeout may be set to.";
    "group.streams.num.standby.replicas", Int, "0", AtLeast(0), ReadOnly, Ignored,
        "Standby copies of each task of a streams group.";
    "group.streams.session.timeout.ms", Int, "45000", AtLeast(1), ReadOnly, Ignored,
        "Silence after which a member of a streams group is expelled.";
    "share.coordinator.append.linger.ms", Int, "-1", AtLeast(-1), ReadOnly, Ignored,
        "How long the share coordinator gathers records before it writes them; -1: its own choice.";
    "share.coordinator.cached.buffer.max.bytes", Int, "1048588", AtLeast(524_288), ClusterWide, Ignored,
        "Longest write buffer that the share coordinator keeps for another use.";
    "share.coordinator.cold.partition.snapshot.interval.ms", Int, "300000", AtLeast(1), ReadOnly, Served,
        "How often the state of a quiet partition is written whole.";
    "share.coordinator.load.buffer.size", Int, "5242880", AtLeast(1), ReadOnly, Ignored,
        "Bytes read at a time when share state is loaded.";
    "share.coordinator.snapshot.update.records.per.snapshot", Int, "500", Between(0, 500), ReadOnly, Served,
        "Changes of share state written between two whole ones.";
    "share.coordinator.state.topic.compression.codec", Int, "0", Any, ReadOnly, Ignored,
        "Number of the compression of __share_group_state.";
    "share.coordinator.state.topic.min.isr", Short, "2", AtLeast(1), ReadOnly, Ignored,
        "Replicas of __share_group_state that must be in sync.";
    "share.coordinator.state.topic.num.partitions", Int, "50", AtLeast(1), ReadOnly, Served,
        "Partitions of __share_group_state.";
    "share.coordinator.state.topic.prune.interval.ms", Int, "300000", AtLeast(1), ReadOnly, Served,
        "How often outlived share state is deleted.";
    "share.coordinator.state.topic.replication.factor", Short, "3", AtLeast(1), ReadOnly, Ignored,
        "Replicas of __share_group_state.";
    "share.coordinator.state.topic.segment.bytes", Int, "104857600", AtLeast(1), ReadOnly, Served,
        "Length of a segment of __share_group_state at which the next one begins.";
    "share.coordinator.threads", Int, "1", AtLeast(1), ReadOnly, Ignored,
        "Threads of the share coordinator.";
    "share.coordinator.write.timeout.ms", Int, "5000", AtLeast(1), ReadOnly, Ignored,
        "Longest wait until share state is written.";
}
