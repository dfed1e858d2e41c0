//! Requests that make and change topics, settings, quotas and replicas.

use super::{INT16, INT32, INT64, INT8, Shape, TEXT, UUID, list, list_of};

pub const CREATE_TOPICS: Shape = Shape::flexible_from(5, &[
    list(&[                              // topics
        TEXT, INT32, INT16,              // name, num partitions, replication factor
        list(&[INT32, list_of(&INT32)]), // assignments: partition index, broker ids
        list(&[TEXT, TEXT]),             // configs: name, value
    ]),
    INT32, INT8,                         // timeout ms, validate only
]);

pub const DELETE_TOPICS: Shape = Shape::flexible_from(4, &[
    list(&[TEXT, UUID]).since(6),   // topics: name, topic id
    list_of(&TEXT).until(5), INT32, // topic names, timeout ms
]);

pub const CREATE_PARTITIONS: Shape = Shape::flexible_from(2, &[
    list(&[                       // topics
        TEXT, INT32,              // name, count
        list(&[list_of(&INT32)]), // assignments: broker ids
    ]),
    INT32, INT8,                  // timeout ms, validate only
]);

pub const DESCRIBE_CONFIGS: Shape = Shape::flexible_from(4, &[
    list(&[                         // resources
        INT8, TEXT, list_of(&TEXT), // resource type, resource name, configuration keys
    ]),
    INT8, INT8.since(3),            // include synonyms, include documentation
]);

pub const ALTER_CONFIGS: Shape = Shape::flexible_from(2, &[
    list(&[                  // resources
        INT8, TEXT,          // resource type, resource name
        list(&[TEXT, TEXT]), // configs: name, value
    ]),
    INT8,                    // validate only
]);

pub const INCREMENTAL_ALTER_CONFIGS: Shape = Shape::flexible_from(1, &[
    list(&[                        // resources
        INT8, TEXT,                // resource type, resource name
        list(&[TEXT, INT8, TEXT]), // configs: name, config operation, value
    ]),
    INT8,                          // validate only
]);

pub const LIST_CONFIG_RESOURCES: Shape = Shape::flexible_from(0, &[
    list_of(&INT8).since(1), // resource types
]);

pub const ALTER_REPLICA_LOG_DIRS: Shape = Shape::flexible_from(2, &[
    list(&[                             // dirs
        TEXT,                           // path
        list(&[TEXT, list_of(&INT32)]), // topics: name, partitions
    ]),
]);

pub const DESCRIBE_LOG_DIRS: Shape = Shape::flexible_from(2, &[
    list(&[TEXT, list_of(&INT32)]), // topics: topic, partitions
]);

pub const ELECT_LEADERS: Shape = Shape::flexible_from(2, &[
    INT8.since(1),                  // election type
    list(&[TEXT, list_of(&INT32)]), // topic partitions: topic, partitions
    INT32,                          // timeout ms
]);

pub const ALTER_PARTITION_REASSIGNMENTS: Shape = Shape::flexible_from(0, &[
    INT32, INT8.since(1),                // timeout ms, allow replication factor change
    list(&[                              // topics
        TEXT,                            // name
        list(&[INT32, list_of(&INT32)]), // partitions: partition index, replicas
    ]),
]);

pub const LIST_PARTITION_REASSIGNMENTS: Shape = Shape::flexible_from(0, &[
    INT32,                          // timeout ms
    list(&[TEXT, list_of(&INT32)]), // topics: name, partition indexes
]);

pub const DESCRIBE_CLIENT_QUOTAS: Shape = Shape::flexible_from(1, &[
    list(&[TEXT, INT8, TEXT]), // components: entity type, match type, match
    INT8,                      // strict
]);

pub const ALTER_CLIENT_QUOTAS: Shape = Shape::flexible_from(1, &[
    list(&[                         // entries
        list(&[TEXT, TEXT]),        // entity: entity type, entity name
        list(&[TEXT, INT64, INT8]), // ops: key, value, remove
    ]),
    INT8,                           // validate only
]);
