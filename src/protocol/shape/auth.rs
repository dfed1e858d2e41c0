//! Requests about who a client is and what it may do.

use super::{BYTES, INT32, INT64, INT8, Shape, TEXT, list};

pub const SASL_HANDSHAKE: Shape = Shape::never_flexible(&[TEXT]); // mechanism

pub const SASL_AUTHENTICATE: Shape = Shape::flexible_from(2, &[BYTES]); // auth bytes

pub const DESCRIBE_ACLS: Shape = Shape::flexible_from(2, &[
    INT8, TEXT, INT8,       // resource type filter, resource name filter, pattern type filter
    TEXT, TEXT, INT8, INT8, // principal filter, host filter, operation, permission type
]);

pub const CREATE_ACLS: Shape = Shape::flexible_from(2, &[
    list(&[                     // creations
        INT8, TEXT, INT8, TEXT, // resource type, resource name, resource pattern type, principal
        TEXT, INT8, INT8,       // host, operation, permission type
    ]),
]);

pub const DELETE_ACLS: Shape = Shape::flexible_from(2, &[
    list(&[                     // filters
        INT8, TEXT, INT8,       // resource type filter, resource name filter, pattern type filter
        TEXT, TEXT, INT8, INT8, // principal filter, host filter, operation, permission type
    ]),
]);

pub const CREATE_DELEGATION_TOKEN: Shape = Shape::flexible_from(2, &[
    TEXT.since(3), TEXT.since(3), // owner principal type, owner principal name
    list(&[TEXT, TEXT]),          // renewers: principal type, principal name
    INT64,                        // max lifetime ms
]);

pub const RENEW_DELEGATION_TOKEN: Shape = Shape::flexible_from(2, &[BYTES, INT64]); // hmac, renew period ms

pub const EXPIRE_DELEGATION_TOKEN: Shape = Shape::flexible_from(2, &[
    BYTES, INT64, // hmac, expiry time period ms
]);

pub const DESCRIBE_DELEGATION_TOKEN: Shape = Shape::flexible_from(2, &[
    list(&[TEXT, TEXT]), // owners: principal type, principal name
]);

pub const DESCRIBE_USER_SCRAM_CREDENTIALS: Shape = Shape::flexible_from(0, &[list(&[TEXT])]); // users: name

pub const ALTER_USER_SCRAM_CREDENTIALS: Shape = Shape::flexible_from(0, &[
    list(&[TEXT, INT8]),                 // deletions: name, mechanism
    list(&[                              // upsertions
        TEXT, INT8, INT32, BYTES, BYTES, // name, mechanism, iterations, salt, salted password
    ]),
]);
