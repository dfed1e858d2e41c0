use super::*;

keys! {
    /// What a group may set for itself. Of the groups that know these settings, consumer and share groups are served.
    GROUP_OWN:
    "consumer.session.timeout.ms", Int, "45000", AtLeast(1), ClusterWide, Served,
        "Silence after which a member of a consumer group is expelled.";
    "consumer.heartbeat.interval.ms", Int, "5000", AtLeast(1), ClusterWide, Served,
        "How often a member of a consumer group is to be heard.";
    "consumer.assignment.interval.ms", Int, "1000", AtLeast(0), ClusterWide, Served,
        "Least time between two assignments of a consumer group.";
    "share.session.timeout.ms", Int, "45000", AtLeast(1), ClusterWide, Served,
        "Silence after which a member of a share group is expelled.";
    "share.heartbeat.interval.ms", Int, "5000", AtLeast(1), ClusterWide, Served,
        "How often a member of a share group is to be heard.";
    "share.record.lock.duration.ms", Int, "30000", AtLeast(1000), ClusterWide, Served,
        "How long a record belongs to the member of a share group that fetched it.";
    "share.delivery.count.limit", Int, "5", AtLeast(2), ClusterWide, Served,
        "How often a share group is given one record.";
    "share.partition.max.record.locks", Int, "2000", AtLeast(100), ClusterWide, Served,
        "Records of one partition that the members of a share group hold at a time.";
    "share.auto.offset.reset", String, "latest", ShareOffsetReset, ClusterWide, Served,
        "Where a share group begins.";
    "share.isolation.level", String, "read_uncommitted", OneOf(&["read_committed", "read_uncommitted"]), ClusterWide, Served,
        "Whether a share group is given records of transactions that have not ended.";
    "share.renew.acknowledge.enable", Boolean, "true", Any, ClusterWide, Ignored,
        "Whether a member of a share group may keep a record for longer; the version of ShareAcknowledge that asks for it is not served.";
    "share.assignment.interval.ms", Int, "1000", AtLeast(0), ClusterWide, Served,
        "Least time between two assignments of a share group.";
    "streams.session.timeout.ms", Int, "45000", AtLeast(1), ClusterWide, Ignored,
        "Silence after which a member of a Streams group is expelled.";
    "streams.heartbeat.interval.ms", Int, "5000", AtLeast(1), ClusterWide, Ignored,
        "How often a member of a Streams group is to be heard.";
    "streams.num.standby.replicas", Int, "0", AtLeast(0), ClusterWide, Ignored,
        "Further copies of each task's state in a Streams group.";
    "streams.initial.rebalance.delay.ms", Int, "3000", AtLeast(0), ClusterWide, Ignored,
        "How long an empty Streams group waits for more members after its first one.";
    "streams.assignment.interval.ms", Int, "1000", AtLeast(0), ClusterWide, Ignored,
        "Least time between two assignments of a Streams group.";
}
