//! Kafka's error codes: their names, and what a client does about them.

use kafka_protocol::ResponseError;

/// Kafka's name of a code; `UNKNOWN_CODE` of one that the crate does not know.
pub fn name_of(code: i16) -> String {
    let Some(error) = ResponseError::try_from_code(code) else { return "NONE".to_owned() };
    if matches!(error, ResponseError::Unknown(_)) {
        return "UNKNOWN_CODE".to_owned();
    }
    let mut name = String::new();
    for letter in format!("{error:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// Whether a producer may send the batch again, as Kafka's `RetriableException` says.
pub fn is_retriable(code: i16) -> bool {
    ResponseError::try_from_code(code).is_some_and(|error| error.is_retriable())
}

/// OUT_OF_ORDER_SEQUENCE_NUMBER: what an idempotent batch meets whose forerunner was refused. The producer sends both again.
pub const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
/// DUPLICATE_SEQUENCE_NUMBER: the batch is in the log already.
pub const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;
/// FETCH_SESSION_ID_NOT_FOUND and INVALID_FETCH_SESSION_EPOCH: the consumer begins a new fetch session.
pub const FETCH_SESSION_LOST: [i16; 2] = [70, 71];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_kafkas_names_and_are_retriable_as_kafka_says() {
        assert_eq!(name_of(0), "NONE");
        assert_eq!(name_of(6), "NOT_LEADER_OR_FOLLOWER");
        assert_eq!(name_of(10), "MESSAGE_TOO_LARGE");
        assert!(
            is_retriable(6) && is_retriable(7) && is_retriable(56) && !is_retriable(10) && !is_retriable(0)
        );
    }
}
