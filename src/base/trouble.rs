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
    is_of_sync: bool,
}

/// Linux's number for a machine, and for a process, without descriptors.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

impl Trouble {
    pub fn new(operation: &'static str, place: impl AsRef<Path>, cause: io::Error) -> Trouble {
        Trouble { operation, place: place.as_ref().to_path_buf(), position: None, cause, is_of_sync: false }
    }
    pub fn at(operation: &'static str, place: impl AsRef<Path>, position: u64, cause: io::Error) -> Trouble {
        let position = Some(position);
        Trouble { operation, place: place.as_ref().to_path_buf(), position, cause, is_of_sync: false }
    }
    /// The same, met by a sync, or where one was to be and an earlier one has failed.
    pub fn of_sync(self) -> Trouble {
        Trouble { is_of_sync: true, ..self }
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
        self.is_of_sync
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_so_is_of_a_sync() {
        let trouble = || Trouble::new("sync", "/data", io::ErrorKind::StorageFull.into());
        assert!(!trouble().is_of_sync(), "what it is called does not matter");
        assert!(trouble().of_sync().is_of_sync() && trouble().of_sync().is_shortage());
        assert!(!Trouble::at("write", "/data", 7, io::ErrorKind::StorageFull.into()).is_of_sync());
    }
}
