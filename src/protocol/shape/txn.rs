//! Requests of transactional producers and about transactions.

use super::{INT16, INT32, INT64, INT8, Shape, TEXT, list, list_of};

pub const INIT_PRODUCER_ID: Shape = Shape::flexible_from(2, &[
    TEXT, INT32, INT64.since(3),                  // transactional id, transaction timeout ms, producer id
    INT16.since(3), INT8.since(6), INT8.since(6), // producer epoch, enable 2pc, keep prepared txn
]);

pub const ADD_PARTITIONS_TO_TXN: Shape = Shape::flexible_from(3, &[
    list(&[                                        // transactions
        TEXT, INT64, INT16,                        // transactional id, producer id, producer epoch
        INT8,                                      // verify only
        list(&[TEXT, list_of(&INT32)]),            // topics: name, partitions
    ]).since(4),
    TEXT.until(3), INT64.until(3), INT16.until(3), // transactional id, producer id, producer epoch
    list(&[TEXT, list_of(&INT32)]).until(3),       // topics: name, partitions
]);

pub const ADD_OFFSETS_TO_TXN: Shape = Shape::flexible_from(3, &[
    TEXT, INT64, INT16, TEXT, // transactional id, producer id, producer epoch, group id
]);

pub const END_TXN: Shape = Shape::flexible_from(3, &[
    TEXT, INT64, INT16, INT8, // transactional id, producer id, producer epoch, committed
]);

pub const WRITE_TXN_MARKERS: Shape = Shape::flexible_from(1, &[
    list(&[                             // markers
        INT64, INT16, INT8,             // producer id, producer epoch, transaction result
        list(&[TEXT, list_of(&INT32)]), // topics: name, partition indexes
        INT32, INT8.since(2),           // coordinator epoch, transaction version
    ]),
]);

pub const TXN_OFFSET_COMMIT: Shape = Shape::flexible_from(3, &[
    TEXT, TEXT, INT64, INT16,                     // transactional id, group id, producer id, producer epoch
    INT32.since(3), TEXT.since(3), TEXT.since(3), // generation id, member id, group instance id
    list(&[                                       // topics
        TEXT,                                     // name
        list(&[                                   // partitions
            INT32, INT64, INT32.since(2),         // partition index, committed offset, committed leader epoch
            TEXT,                                 // committed metadata
        ]),
    ]),
]);

pub const DESCRIBE_TRANSACTIONS: Shape = Shape::flexible_from(0, &[list_of(&TEXT)]); // transactional ids

pub const LIST_TRANSACTIONS: Shape = Shape::flexible_from(0, &[
    list_of(&TEXT), list_of(&INT64), // state filters, producer id filters
    INT64.since(1), TEXT.since(2),   // duration filter, transactional id pattern
]);
