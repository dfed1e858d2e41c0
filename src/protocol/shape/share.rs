//! Requests of share groups and of their state.

use super::{INT16, INT32, INT64, INT8, Shape, TEXT, UUID, list, list_of};

pub const SHARE_GROUP_HEARTBEAT: Shape = Shape::flexible_from(0, &[
    TEXT, TEXT, INT32, TEXT, // group id, member id, member epoch, rack id
    list_of(&TEXT),          // subscribed topic names
]);

pub const SHARE_GROUP_DESCRIBE: Shape = Shape::flexible_from(0, &[
    list_of(&TEXT), INT8, // group ids, include authorized operations
]);

pub const SHARE_FETCH: Shape = Shape::flexible_from(0, &[
    TEXT, TEXT, INT32, INT32,                 // group id, member id, share session epoch, max wait ms
    INT32, INT32, INT32, INT32,               // min bytes, max bytes, max records, batch size
    INT8.since(2), INT8.since(2),             // share acquire mode, is renew ack
    list(&[                                   // topics
        UUID,                                 // topic id
        list(&[                               // partitions
            INT32,                            // partition index
            list(&[                           // acknowledgement batches
                INT64, INT64, list_of(&INT8), // first offset, last offset, acknowledge types
            ]),
        ]),
    ]),
    list(&[UUID, list_of(&INT32)]),           // forgotten topics data: topic id, partitions
]);

pub const SHARE_ACKNOWLEDGE: Shape = Shape::flexible_from(0, &[
    TEXT, TEXT, INT32, INT8.since(2),         // group id, member id, share session epoch, is renew ack
    list(&[                                   // topics
        UUID,                                 // topic id
        list(&[                               // partitions
            INT32,                            // partition index
            list(&[                           // acknowledgement batches
                INT64, INT64, list_of(&INT8), // first offset, last offset, acknowledge types
            ]),
        ]),
    ]),
]);

pub const INITIALIZE_SHARE_GROUP_STATE: Shape = Shape::flexible_from(0, &[
    TEXT,                             // group id
    list(&[                           // topics
        UUID,                         // topic id
        list(&[INT32, INT32, INT64]), // partitions: partition, state epoch, start offset
    ]),
]);

pub const READ_SHARE_GROUP_STATE: Shape = Shape::flexible_from(0, &[
    TEXT,                      // group id
    list(&[                    // topics
        UUID,                  // topic id
        list(&[INT32, INT32]), // partitions: partition, leader epoch
    ]),
]);

pub const WRITE_SHARE_GROUP_STATE: Shape = Shape::flexible_from(0, &[
    TEXT,                                  // group id
    list(&[                                // topics
        UUID,                              // topic id
        list(&[                            // partitions
            INT32, INT32, INT32, INT64,    // partition, state epoch, leader epoch, start offset
            INT32.since(1),                // delivery complete count
            list(&[                        // state batches
                INT64, INT64, INT8, INT16, // first offset, last offset, delivery state, delivery count
            ]),
        ]),
    ]),
]);

pub const DELETE_SHARE_GROUP_STATE: Shape = Shape::flexible_from(0, &[
    TEXT,               // group id
    list(&[             // topics
        UUID,           // topic id
        list(&[INT32]), // partitions: partition
    ]),
]);

pub const READ_SHARE_GROUP_STATE_SUMMARY: Shape = Shape::flexible_from(0, &[
    TEXT,                      // group id
    list(&[                    // topics
        UUID,                  // topic id
        list(&[INT32, INT32]), // partitions: partition, leader epoch
    ]),
]);

pub const DESCRIBE_SHARE_GROUP_OFFSETS: Shape = Shape::flexible_from(0, &[
    list(&[                             // groups
        TEXT,                           // group id
        list(&[TEXT, list_of(&INT32)]), // topics: topic name, partitions
    ]),
]);

pub const ALTER_SHARE_GROUP_OFFSETS: Shape = Shape::flexible_from(0, &[
    TEXT,                      // group id
    list(&[                    // topics
        TEXT,                  // topic name
        list(&[INT32, INT64]), // partitions: partition index, start offset
    ]),
]);

pub const DELETE_SHARE_GROUP_OFFSETS: Shape = Shape::flexible_from(0, &[
    TEXT,          // group id
    list(&[TEXT]), // topics: topic name
]);
