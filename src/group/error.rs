use std::fmt;

/// Why the coordinator refuses; each variant is named after Kafka's code and carries its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum GroupError {
    UnknownServerError,
    OffsetMetadataTooLarge,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    UnknownMemberId,
    InvalidSessionTimeout,
    RebalanceInProgress,
    UnsupportedVersion,
    InvalidRequest,
    InvalidProducerEpoch,
    InvalidTxnState,
    TransactionCoordinatorFenced,
    NonEmptyGroup,
    GroupIdNotFound,
    MemberIdRequired,
    GroupMaxSizeReached,
    FencedInstanceId,
    GroupSubscribedToTopic,
    FencedMemberEpoch,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    StaleMemberEpoch,
    InvalidRegularExpression,
}

impl GroupError {
    /// The number that stands on the wire.
    pub fn code(self) -> i16 {
        match self {
            GroupError::UnknownServerError => -1,
            GroupError::OffsetMetadataTooLarge => 12,
            GroupError::CoordinatorLoadInProgress => 14,
            GroupError::CoordinatorNotAvailable => 15,
            GroupError::NotCoordinator => 16,
            GroupError::IllegalGeneration => 22,
            GroupError::InconsistentGroupProtocol => 23,
            GroupError::InvalidGroupId => 24,
            GroupError::UnknownMemberId => 25,
            GroupError::InvalidSessionTimeout => 26,
            GroupError::RebalanceInProgress => 27,
            GroupError::UnsupportedVersion => 35,
            GroupError::InvalidRequest => 42,
            GroupError::InvalidProducerEpoch => 47,
            GroupError::InvalidTxnState => 48,
            GroupError::TransactionCoordinatorFenced => 52,
            GroupError::NonEmptyGroup => 68,
            GroupError::GroupIdNotFound => 69,
            GroupError::MemberIdRequired => 79,
            GroupError::GroupMaxSizeReached => 81,
            GroupError::FencedInstanceId => 82,
            GroupError::GroupSubscribedToTopic => 86,
            GroupError::FencedMemberEpoch => 110,
            GroupError::UnreleasedInstanceId => 111,
            GroupError::UnsupportedAssignor => 112,
            GroupError::StaleMemberEpoch => 113,
            GroupError::InvalidRegularExpression => 128,
        }
    }
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} ({})", self.code())
    }
}

/// Why records did not become durable. The engine has not kept them, or the log they went to is out of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendFailure {
    /// For now: no room, the partition is gone or not ready, or it took too long.
    Unavailable,
    /// This broker no longer writes the partition, or its log folder is offline.
    NotCoordinator,
    /// The records are larger than the partition takes.
    TooLarge,
    /// The transaction's producer has a newer epoch.
    InvalidProducerEpoch,
    /// The transaction has ended meanwhile.
    InvalidTxnState,
    /// A newer transaction coordinator has written a marker.
    TransactionCoordinatorFenced,
}

impl AppendFailure {
    /// What the client is told. Source: Kafka's `CoordinatorOperationExceptionHelper`.
    pub fn as_refusal(self) -> GroupError {
        match self {
            AppendFailure::Unavailable => GroupError::CoordinatorNotAvailable,
            AppendFailure::NotCoordinator => GroupError::NotCoordinator,
            AppendFailure::TooLarge => GroupError::UnknownServerError,
            AppendFailure::InvalidProducerEpoch => GroupError::InvalidProducerEpoch,
            AppendFailure::InvalidTxnState => GroupError::InvalidTxnState,
            AppendFailure::TransactionCoordinatorFenced => GroupError::TransactionCoordinatorFenced,
        }
    }
}
