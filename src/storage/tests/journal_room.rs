//! Journals on a file system that writes nothing in place, so that a block needs room to be written over.

use super::super::*;
use super::journal::*;
use crate::runtime::sim::{DiskFault, DiskOperation, Simulation};

/// Linux's number for a full disk.
const FULL: DiskFault = DiskFault::Error(28);

#[test]
fn a_file_that_finds_no_room_to_be_emptied_goes_for_good() {
    for is_retired in [true, false] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let disk = machine.disk();
        let (journal, log, model) = journaled(&simulation, &machine);
        assert_eq!(journal_files(&machine).len(), 1);
        if is_retired {
            disk.fail_from(DiskOperation::WriteDurable, ".journal", 1, FULL);
            simulation.block_on(async move { journal.close().await.unwrap() });
            assert!(journal_files(&machine).is_empty());
            machine.crash();
        } else {
            machine.crash();
            disk.fail_from(DiskOperation::WriteDurable, ".journal", 1, FULL);
            assert!(replayed(&simulation, &machine).entries > 0);
            machine.crash();
        }
        assert!(journal_files(&machine).is_empty(), "a power cut brings the name back");
        assert_eq!(replayed(&simulation, &machine), ReplayedJournals::default());
        holds(&simulation, &machine, model);
        drop(log);
    }
}
