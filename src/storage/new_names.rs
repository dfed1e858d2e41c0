use std::cell::Cell;

use crate::base::Offset;

/// The names in a log's folder that may not outlive a power cut.
#[derive(Default)]
pub(super) struct NewNames {
    made: Cell<u64>,
    durable: Cell<u64>,
    journaled: Cell<Option<Offset>>,
}

/// What a sync of the folder makes durable.
pub(super) struct NamesSynced {
    made: u64,
    journaled: Option<Offset>,
}

impl NewNames {
    /// Some name was made, or taken away.
    pub(super) fn note(&self) {
        self.made.set(self.made.get() + 1);
    }

    /// The segment at `base_offset` was begun, and all it has got stands in the journal, by which a start would make it anew.
    pub(super) fn note_journaled(&self, base_offset: Offset) {
        self.journaled.set(Some(base_offset));
    }

    /// Names that nothing would bring back.
    pub(super) fn is_any(&self) -> bool {
        self.made != self.durable
    }

    /// Whether the newest segment's name is such that only the journal would bring it back.
    pub(super) fn is_any_journaled(&self) -> bool {
        self.journaled.get().is_some()
    }

    /// `None`: the folder need not be synced.
    pub(super) fn begin_sync(&self) -> Option<NamesSynced> {
        let (made, journaled) = (self.made.get(), self.journaled.get());
        (self.is_any() || journaled.is_some()).then_some(NamesSynced { made, journaled })
    }

    /// The folder is synced; what was made meanwhile may not be.
    pub(super) fn end_sync(&self, synced: &NamesSynced) {
        self.durable.set(self.durable.get().max(synced.made));
        if self.journaled == Cell::new(synced.journaled) {
            self.journaled.set(None);
        }
    }

    /// All is durable that was made so far.
    pub(super) fn all_are_durable(&self) {
        self.durable.set(self.made.get());
        self.journaled.set(None);
    }
}
