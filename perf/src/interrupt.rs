//! Ctrl-C and SIGTERM: the run ends, and brokers that were started are stopped before the program goes.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::wire::admin::Failure;

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on both signals only set a mark. Call it once.
pub fn watch() -> Result<(), Failure> {
    // Ordering: the mark tells nothing but itself.
    ctrlc::set_handler(|| IS_INTERRUPTED.store(true, Ordering::Relaxed))
        .map_err(|error| format!("signals cannot be watched: {error}"))
}

/// Errors once a signal has come.
pub fn check() -> Result<(), Failure> {
    if IS_INTERRUPTED.load(Ordering::Relaxed) { Err("interrupted".to_owned()) } else { Ok(()) }
}
