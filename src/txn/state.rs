/// Where a transactional id stands, with the number it has in the log. Source: Kafka's `TransactionState`.
///
/// | state | means | next |
/// | --- | --- | --- |
/// | Empty | it has a producer, which has begun nothing | Ongoing; with version 2 PrepareAbort |
/// | Ongoing | partitions were added | PrepareCommit, PrepareAbort |
/// | PrepareCommit, PrepareAbort | decided; the markers are being written | the Complete state of its name |
/// | CompleteCommit, CompleteAbort | every partition has its marker | as Empty, and Empty |
/// | Dead | it is about to be forgotten | |
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TransactionState {
    Empty = 0,
    Ongoing = 1,
    PrepareCommit = 2,
    PrepareAbort = 3,
    CompleteCommit = 4,
    CompleteAbort = 5,
    Dead = 6,
    /// An abort by the coordinator, in Kafka's memory only; it has a name that tools may ask for.
    PrepareEpochFence = 7,
}

impl TransactionState {
    pub const ALL: [TransactionState; 8] = [
        TransactionState::Empty,
        TransactionState::Ongoing,
        TransactionState::PrepareCommit,
        TransactionState::PrepareAbort,
        TransactionState::CompleteCommit,
        TransactionState::CompleteAbort,
        TransactionState::Dead,
        TransactionState::PrepareEpochFence,
    ];

    pub fn of_number(number: i8) -> Option<TransactionState> {
        TransactionState::ALL.into_iter().find(|state| state.number() == number)
    }
    pub fn number(self) -> i8 {
        self as i8
    }
    /// What tools call it.
    pub fn name(self) -> &'static str {
        match self {
            TransactionState::Empty => "Empty",
            TransactionState::Ongoing => "Ongoing",
            TransactionState::PrepareCommit => "PrepareCommit",
            TransactionState::PrepareAbort => "PrepareAbort",
            TransactionState::CompleteCommit => "CompleteCommit",
            TransactionState::CompleteAbort => "CompleteAbort",
            TransactionState::Dead => "Dead",
            TransactionState::PrepareEpochFence => "PrepareEpochFence",
        }
    }
    pub fn named(name: &str) -> Option<TransactionState> {
        TransactionState::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The end is decided, and not every partition is known to have its marker.
    pub fn is_prepared(self) -> bool {
        matches!(self, TransactionState::PrepareCommit | TransactionState::PrepareAbort)
    }
    /// Nothing is open, so the id may be forgotten once it was silent for long.
    pub fn is_at_rest(self) -> bool {
        matches!(
            self,
            TransactionState::Empty | TransactionState::CompleteCommit | TransactionState::CompleteAbort
        )
    }
}
