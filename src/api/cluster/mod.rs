//! What a client asks about the cluster before it asks for data.

pub mod api_versions;
