use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What went wrong between the broker and a disk or a peer: operation, place, position, cause.
#[derive(Debug)]
pub struct Trouble {
    /// What was tried: `write`, `sync`, `open`, `rename`, `accept`, …
    pub operation: &'static str,
    /// File, folder, or peer address.
    pub place: PathBuf,
    /// Where in the file, when that means something.
    pub position: Option<u64>,
    pub cause: io::Error,
}

/// Linux's number for a machine, and for a process, without descriptors.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

impl Trouble {
    pub fn new(operation: &'static str, place: impl AsRef<Path>, cause: io::Error) -> Trouble {
        Trouble { operation, place: place.as_ref().to_path_buf(), position: None, cause }
    }
    pub fn at(operation: &'static str, place: impl AsRef<Path>, position: u64, cause: io::Error) -> Trouble {
        Trouble { operation, place: place.as_ref().to_path_buf(), position: Some(position), cause }
    }
    /// No space left on the device or in the quota.
    pub fn is_disk_full(&self) -> bool {
        matches!(self.cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
    /// This process, or the machine, has no descriptor left. Nothing was done.
    pub fn is_out_of_descriptors(&self) -> bool {
        matches!(self.cause.raw_os_error(), Some(ENFILE | EMFILE))
    }
    /// Something ran out of which there may be more again: it is worth another try. No fault of the disk.
    pub fn is_shortage(&self) -> bool {
        self.is_disk_full() || self.is_out_of_descriptors()
    }
    /// Something was to outlive a power cut, and nobody knows whether it does: never to be tried again on the same data.
    pub fn is_of_sync(&self) -> bool {
        self.operation.starts_with("sync")
    }
    pub fn is_not_found(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.place.display())?;
        if let Some(position) = self.position {
            write!(f, " at {position}")?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl std::error::Error for Trouble {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
