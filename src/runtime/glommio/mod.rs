//! The runtime on io_uring: one pinned glommio executor a core.
