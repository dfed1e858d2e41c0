//! What is sent and read: settings from a small TOML file, and the record batches made from them.

pub mod batch;
pub mod builtin;
pub mod contents;
pub mod lines;
pub mod settings;
pub mod templates;

pub use settings::Workload;
pub use templates::Templates;
