//! Requests as they stand on the wire: bodies of every kind, damaged ones, and those that real clients have sent.

mod allocation;
mod bodies;
mod recorded;
mod records;
mod sample;
#[allow(dead_code, reason = "shared with the tests of the library")]
#[path = "../../src/base/seeded.rs"]
mod seeded;
