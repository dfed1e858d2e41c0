use super::*;

keys! {
    /// Listeners, connections and the limits of requests.
    NETWORK:
    "listeners", List, "PLAINTEXT://127.0.0.1:9092", NotEmpty, PerBroker, Served,
        "Addresses to listen at, as NAME://host:port; an empty host is every address of the machine.";
    "advertised.listeners", List, none, NotEmpty, ReadOnly, Served,
        "Addresses told to clients, as NAME://host:port; unset: those listened at.";
    "listener.security.protocol.map", String, "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Any, PerBroker, Served,
        "Security protocol of each listener name, as NAME:PROTOCOL pairs.";
    "broker.rack", String, none, Any, ReadOnly, Served,
        "Name of the place this broker stands in; shown to clients, which may prefer a near replica.";
    "max.connections", Int, "2147483647", AtLeast(0), ClusterWide, Served,
        "Connections open at the same time; one more is closed at once.";
    "max.connections.per.ip", Int, "2147483647", AtLeast(0), ClusterWide, Served,
        "Connections open at the same time from one client address.";
    "max.connections.per.ip.overrides", String, "", Any, ClusterWide, Served,
        "Other limits for single client addresses, as address:count pairs.";
    "connections.max.idle.ms", Long, "600000", Any, ReadOnly, Served,
        "A connection without a request for this long is closed; a negative value keeps it for ever.";
    "socket.request.max.bytes", Int, "104857600", AtLeast(1), ReadOnly, Served,
        "Longest request; a longer one closes its connection before memory is taken for it.";
    "fetch.max.bytes", Int, "57671680", AtLeast(1024), ReadOnly, Served,
        "Most record bytes in one answer to a fetch, whatever the client asks for; a first batch is sent whole.";
    "max.incremental.fetch.session.cache.slots", Int, "1000", AtLeast(0), ReadOnly, Served,
        "Fetch sessions kept at the same time.";
    "max.request.partition.size.limit", Int, "2000", AtLeast(1), ReadOnly, Served,
        "Most partitions in one answer to DescribeTopicPartitions.";
    "connection.failed.authentication.delay.ms", Int, "100", AtLeast(0), ReadOnly, Ignored,
        "How long the refusal of a failed login is held back.";
    "connections.max.reauth.ms", Long, "0", Any, ReadOnly, Ignored,
        "How long a login holds before the client must log in again; 0: for ever.";
    "early.start.listeners", List, none, Any, ReadOnly, Ignored,
        "Listeners that open before access rules are loaded.";
    "inter.broker.listener.name", String, none, Any, ReadOnly, Ignored,
        "Listener that brokers use among themselves.";
    "security.inter.broker.protocol", String, "PLAINTEXT", OneOf(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), ReadOnly, Ignored,
        "Security protocol that brokers use among themselves.";
    "max.connection.creation.rate", Int, "2147483647", AtLeast(0), ClusterWide, Ignored,
        "New connections accepted in a second.";
    "num.network.threads", Int, "3", AtLeast(1), ClusterWide, Ignored,
        "Threads that read requests and write answers; here every core does both.";
    "num.io.threads", Int, "8", AtLeast(1), ClusterWide, Ignored,
        "Threads that work on requests; here every core does.";
    "background.threads", Int, "10", AtLeast(1), ClusterWide, Ignored,
        "Threads for chores; here each core does its own.";
    "queued.max.request.bytes", Long, "-1", Any, ReadOnly, Ignored,
        "Bytes of requests that wait for a thread; here onrush.memory bounds them.";
    "queued.max.requests", Int, "500", AtLeast(1), ReadOnly, Ignored,
        "Requests that wait for a thread; here onrush.memory bounds them.";
    "request.timeout.ms", Int, "30000", Any, ReadOnly, Ignored,
        "How long this broker waits for another one's answer.";
    "socket.connection.setup.timeout.max.ms", Long, "30000", Any, ReadOnly, Ignored,
        "Longest wait for a connection to another broker.";
    "socket.connection.setup.timeout.ms", Long, "10000", Any, ReadOnly, Ignored,
        "First wait for a connection to another broker.";
    "socket.listen.backlog.size", Int, "50", AtLeast(1), ReadOnly, Ignored,
        "Connections the kernel holds before they are accepted.";
    "socket.receive.buffer.bytes", Int, "102400", Any, ReadOnly, Ignored,
        "The kernel's receive buffer of a client's socket; here the kernel sizes it.";
    "socket.send.buffer.bytes", Int, "102400", Any, ReadOnly, Ignored,
        "The kernel's send buffer of a client's socket; here the kernel sizes it.";
    "fetch.purgatory.purge.interval.requests", Int, "1000", Any, ReadOnly, Ignored,
        "Finished fetch waits that pile up before they are cleared away.";
    "producer.purgatory.purge.interval.requests", Int, "1000", Any, ReadOnly, Ignored,
        "Finished produce waits that pile up before they are cleared away.";
    "delete.records.purgatory.purge.interval.requests", Int, "1", Any, ReadOnly, Ignored,
        "Finished DeleteRecords waits that pile up before they are cleared away.";
    "share.fetch.purgatory.purge.interval.requests", Int, "1000", Any, ReadOnly, Ignored,
        "Finished share-fetch waits that pile up before they are cleared away.";
}
