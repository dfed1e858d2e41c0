use std::collections::BTreeSet;

use crate::base::Map;

use super::names::TransactionalId;
use super::records::{Record, TransactionMetadata};
use super::state::TransactionState;

/// What the log says, up to some record: the same records give the same state, whether they were just
/// appended or read at start. Only `replay` changes it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ReplayedTransactions {
    ids: Map<TransactionalId, TransactionMetadata>,
    /// Those that are Ongoing, or whose end is decided and not complete.
    open: BTreeSet<TransactionalId>,
}

impl ReplayedTransactions {
    pub fn replay(&mut self, record: Record) {
        let id = record.transactional_id;
        match record.value {
            Some(value) => {
                if value.state == TransactionState::Ongoing || value.state.is_prepared() {
                    self.open.insert(id.clone());
                } else {
                    self.open.remove(&id);
                }
                self.ids.insert(id, value);
            }
            None => {
                self.open.remove(&id);
                self.ids.remove(&id);
            }
        }
    }

    pub fn get(&self, id: &TransactionalId) -> Option<&TransactionMetadata> {
        self.ids.get(id)
    }
    /// In no order.
    pub fn all(&self) -> impl Iterator<Item = (&TransactionalId, &TransactionMetadata)> {
        self.ids.iter()
    }
    /// Those that are open, in the order of their ids.
    pub fn open(&self) -> impl Iterator<Item = (&TransactionalId, &TransactionMetadata)> {
        self.open.iter().map(|id| (id, self.ids.get(id).expect("what is open is known")))
    }
    pub fn has_ongoing(&self) -> bool {
        self.open().any(|(_, metadata)| metadata.state == TransactionState::Ongoing)
    }
}
