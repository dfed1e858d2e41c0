//! Requests about records and where they lie.

use super::{BYTES, INT16, INT32, INT64, INT8, Shape, TEXT, UUID, group, list, list_of};

pub const PRODUCE: Shape = Shape::flexible_from(9, &[
    TEXT, INT16, INT32,                 // transactional id, acks, timeout ms
    list(&[                             // topic data
        TEXT.until(12), UUID.since(13), // name, topic id
        list(&[INT32, BYTES]),          // partition data: index, records
    ]),
]);

pub const FETCH: Shape = Shape::flexible_from(12, &[
    TEXT.since(12).tag(0), INT32.until(14),              // cluster id, replica id
    group(&[                                             // replica state
        INT32, INT64,                                    // replica id, replica epoch
    ]).since(15).tag(1),
    INT32, INT32, INT32, INT8,                           // max wait ms, min bytes, max bytes, isolation level
    INT32.since(7), INT32.since(7),                      // session id, session epoch
    list(&[                                              // topics
        TEXT.until(12), UUID.since(13),                  // topic, topic id
        list(&[                                          // partitions
            INT32, INT32.since(9), INT64,                // partition, current leader epoch, fetch offset
            INT32.since(12), INT64.since(5),             // last fetched epoch, log start offset
            INT32, UUID.since(17).tag(0),                // partition max bytes, replica directory id
            INT64.since(18).tag(1),                      // high watermark
        ]),
    ]),
    list(&[                                              // forgotten topics data
        TEXT.until(12), UUID.since(13), list_of(&INT32), // topic, topic id, partitions
    ]).since(7),
    TEXT.since(11),                                      // rack id
]);

pub const LIST_OFFSETS: Shape = Shape::flexible_from(6, &[
    INT32, INT8.since(2),                 // replica id, isolation level
    list(&[                               // topics
        TEXT,                             // name
        list(&[                           // partitions
            INT32, INT32.since(4), INT64, // partition index, current leader epoch, timestamp
        ]),
    ]),
    INT32.since(10),                      // timeout ms
]);

pub const DELETE_RECORDS: Shape = Shape::flexible_from(2, &[
    list(&[                    // topics
        TEXT,                  // name
        list(&[INT32, INT64]), // partitions: partition index, offset
    ]),
    INT32,                     // timeout ms
]);

pub const OFFSET_FOR_LEADER_EPOCH: Shape = Shape::flexible_from(4, &[
    INT32.since(3),                   // replica id
    list(&[                           // topics
        TEXT,                         // topic
        list(&[INT32, INT32, INT32]), // partitions: partition, current leader epoch, leader epoch
    ]),
]);

pub const DESCRIBE_PRODUCERS: Shape = Shape::flexible_from(0, &[
    list(&[TEXT, list_of(&INT32)]), // topics: name, partition indexes
]);
