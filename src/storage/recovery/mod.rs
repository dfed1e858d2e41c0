//! Opening the log of a partition whose folder is there: after a clean stop without reading what it holds, after any other
//! end by reading what may not have reached the disk.

mod leftovers;
mod open;
mod opening;
mod repair;
mod resume;

pub use open::{OpenLog, OpenTrouble, OpenedLog, ReplayStart, Replayed};
pub use repair::Repair;
