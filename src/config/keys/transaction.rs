use super::*;

keys! {
    /// Idempotent producers and transactions.
    TRANSACTION:
    "producer.id.expiration.ms", Int, "86400000", AtLeast(1), ClusterWide, Served,
        "How long the last sequence numbers of a silent producer are kept.";
    "producer.id.expiration.check.interval.ms", Int, "600000", AtLeast(1), ReadOnly, Served,
        "How often silent producers are looked for.";
    "transactional.id.expiration.ms", Int, "604800000", AtLeast(1), ReadOnly, Served,
        "How long a silent transactional id is kept.";
    "transaction.abort.timed.out.transaction.cleanup.interval.ms", Int, "10000", AtLeast(1), ReadOnly, Served,
        "How often overdue transactions are looked for.";
    "transaction.max.timeout.ms", Int, "900000", AtLeast(1), ReadOnly, Served,
        "Longest transaction timeout a producer may ask for.";
    "transaction.partition.verification.enable", Boolean, "true", Any, ClusterWide, Served,
        "Whether a transactional batch is checked against the coordinator's list.";
    "transaction.remove.expired.transaction.cleanup.interval.ms", Int, "3600000", AtLeast(1), ReadOnly, Served,
        "How often expired transactional ids are looked for.";
    "transaction.state.log.load.buffer.size", Int, "5242880", AtLeast(1), ReadOnly, Ignored,
        "Bytes read at a time when transaction state is loaded.";
    "transaction.state.log.min.isr", Int, "2", AtLeast(1), ReadOnly, Served,
        "Replicas of __transaction_state that must be in sync.";
    "transaction.state.log.num.partitions", Int, "50", AtLeast(1), ReadOnly, Served,
        "Partitions of __transaction_state.";
    "transaction.state.log.replication.factor", Short, "3", AtLeast(1), ReadOnly, Ignored,
        "Replicas of __transaction_state.";
    "transaction.state.log.segment.bytes", Int, "104857600", AtLeast(1), ReadOnly, Served,
        "Length of a segment of __transaction_state at which the next one begins.";
    "transaction.two.phase.commit.enable", Boolean, "false", Any, ReadOnly, Ignored,
        "Whether producers may take part in two-phase commits.";
    "add.partitions.to.txn.retry.backoff.max.ms", Int, "100", AtLeast(0), ReadOnly, Served,
        "Longest time a broker keeps trying to add a partition to a transaction.";
    "add.partitions.to.txn.retry.backoff.ms", Int, "20", AtLeast(1), ReadOnly, Ignored,
        "Pause before a broker tries again to add a partition to a transaction.";
}
