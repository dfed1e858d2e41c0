//! Requests of group members and about groups.

use super::{BYTES, INT32, INT64, INT8, Shape, TEXT, UUID, list, list_of};

pub const OFFSET_COMMIT: Shape = Shape::flexible_from(8, &[
    TEXT, INT32, TEXT,                    // group id, generation id or member epoch, member id
    TEXT.since(7), INT64.until(4),        // group instance id, retention time ms
    list(&[                               // topics
        TEXT.until(9), UUID.since(10),    // name, topic id
        list(&[                           // partitions
            INT32, INT64, INT32.since(6), // partition index, committed offset, committed leader epoch
            TEXT,                         // committed metadata
        ]),
    ]),
]);

pub const OFFSET_FETCH: Shape = Shape::flexible_from(6, &[
    TEXT.until(7),                                          // group id
    list(&[TEXT, list_of(&INT32)]).until(7),                // topics: name, partition indexes
    list(&[                                                 // groups
        TEXT, TEXT.since(9), INT32.since(9),                // group id, member id, member epoch
        list(&[                                             // topics
            TEXT.until(9), UUID.since(10), list_of(&INT32), // name, topic id, partition indexes
        ]),
    ]).since(8),
    INT8.since(7),                                          // require stable
]);

pub const FIND_COORDINATOR: Shape = Shape::flexible_from(3, &[
    TEXT.until(3), INT8.since(1), list_of(&TEXT).since(4), // key, key type, coordinator keys
]);

pub const JOIN_GROUP: Shape = Shape::flexible_from(6, &[
    TEXT, INT32, INT32.since(1), TEXT, // group id, session timeout ms, rebalance timeout ms, member id
    TEXT.since(5), TEXT,               // group instance id, protocol type
    list(&[TEXT, BYTES]),              // protocols: name, metadata
    TEXT.since(8),                     // reason
]);

pub const HEARTBEAT: Shape = Shape::flexible_from(4, &[
    TEXT, INT32, TEXT, TEXT.since(3), // group id, generation id, member id, group instance id
]);

pub const LEAVE_GROUP: Shape = Shape::flexible_from(4, &[
    TEXT, TEXT.until(2),                         // group id, member id
    list(&[TEXT, TEXT, TEXT.since(5)]).since(3), // members: member id, group instance id, reason
]);

pub const SYNC_GROUP: Shape = Shape::flexible_from(4, &[
    TEXT, INT32, TEXT, TEXT.since(3), // group id, generation id, member id, group instance id
    TEXT.since(5), TEXT.since(5),     // protocol type, protocol name
    list(&[TEXT, BYTES]),             // assignments: member id, assignment
]);

pub const DESCRIBE_GROUPS: Shape = Shape::flexible_from(5, &[
    list_of(&TEXT), INT8.since(3), // groups, include authorized operations
]);

pub const LIST_GROUPS: Shape = Shape::flexible_from(3, &[
    list_of(&TEXT).since(4), list_of(&TEXT).since(5), // states filter, types filter
]);

pub const DELETE_GROUPS: Shape = Shape::flexible_from(2, &[list_of(&TEXT)]); // groups names

pub const OFFSET_DELETE: Shape = Shape::never_flexible(&[
    TEXT,               // group id
    list(&[             // topics
        TEXT,           // name
        list(&[INT32]), // partitions: partition index
    ]),
]);

pub const CONSUMER_GROUP_HEARTBEAT: Shape = Shape::flexible_from(0, &[
    TEXT, TEXT, INT32, TEXT, TEXT,  // group id, member id, member epoch, instance id, rack id
    INT32, list_of(&TEXT),          // rebalance timeout ms, subscribed topic names
    TEXT.since(1), TEXT,            // subscribed topic regex, server assignor
    list(&[UUID, list_of(&INT32)]), // topic partitions: topic id, partitions
]);

pub const CONSUMER_GROUP_DESCRIBE: Shape = Shape::flexible_from(0, &[
    list_of(&TEXT), INT8, // group ids, include authorized operations
]);
