use crate::partition::IsolationLevel;

/// What a request's isolation level means (KIP-98); `None`: nothing.
pub fn isolation_level(level: i8) -> Option<IsolationLevel> {
    match level {
        0 => Some(IsolationLevel::ReadUncommitted),
        1 => Some(IsolationLevel::ReadCommitted),
        _ => None,
    }
}
