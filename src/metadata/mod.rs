//! What the cluster consists of: Kafka's metadata records, the image that every shard folds from them, and the controller's
//! decisions, which are records again.

mod controller;
mod image;
mod records;
mod topic_name;

pub use controller::*;
pub use image::*;
pub use records::*;
pub use topic_name::{
    METADATA_TOPIC, OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC, check_topic_name, is_internal_topic,
};
