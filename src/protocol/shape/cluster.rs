//! Requests about brokers, topics as clients see them, features and the quorum.

use super::{BYTES, INT16, INT32, INT8, Shape, TEXT, UUID, list, optional};

pub const METADATA: Shape = Shape::flexible_from(9, &[
    list(&[UUID.since(10), TEXT]), // topics: topic id, name
    INT8.since(4),                 // allow auto topic creation
    INT8.since(8).until(10),       // include cluster authorized operations
    INT8.since(8),                 // include topic authorized operations
]);

pub const API_VERSIONS: Shape = Shape::flexible_from(3, &[
    TEXT.since(3), TEXT.since(3), // client software name, client software version
]);

pub const DESCRIBE_CLUSTER: Shape = Shape::flexible_from(0, &[
    INT8, INT8.since(1), // include cluster authorized operations, endpoint type
    INT8.since(2),       // include fenced brokers
]);

pub const DESCRIBE_TOPIC_PARTITIONS: Shape = Shape::flexible_from(0, &[
    list(&[TEXT]),            // topics: name
    INT32,                    // response partition limit
    optional(&[TEXT, INT32]), // cursor: topic name, partition index
]);

pub const UPDATE_FEATURES: Shape = Shape::flexible_from(0, &[
    INT32,                          // timeout ms
    list(&[                         // feature updates
        TEXT, INT16, INT8.until(0), // feature, max version level, allow downgrade
        INT8.since(1),              // upgrade type
    ]),
    INT8.since(1),                  // validate only
]);

pub const DESCRIBE_QUORUM: Shape = Shape::flexible_from(0, &[
    list(&[             // topics
        TEXT,           // topic name
        list(&[INT32]), // partitions: partition index
    ]),
]);

pub const UNREGISTER_BROKER: Shape = Shape::flexible_from(0, &[INT32]); // broker id

pub const ADD_RAFT_VOTER: Shape = Shape::flexible_from(0, &[
    TEXT, INT32, INT32, UUID,   // cluster id, timeout ms, voter id, voter directory id
    list(&[TEXT, TEXT, INT16]), // listeners: name, host, port
    INT8.since(1),              // ack when committed
]);

pub const REMOVE_RAFT_VOTER: Shape = Shape::flexible_from(0, &[
    TEXT, INT32, UUID, // cluster id, voter id, voter directory id
]);

pub const GET_TELEMETRY_SUBSCRIPTIONS: Shape = Shape::flexible_from(0, &[UUID]); // client instance id

pub const PUSH_TELEMETRY: Shape = Shape::flexible_from(0, &[
    UUID, INT32, INT8, INT8, // client instance id, subscription id, terminating, compression type
    BYTES,                   // metrics
]);
