//! What the cluster consists of: Kafka's metadata records, the image that every shard folds from them, and the controller's
//! decisions, which are records again.

mod image;
mod records;

pub use image::*;
pub use records::*;
