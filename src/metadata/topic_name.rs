use crate::base::TOPIC_NAME_CHARACTERS_MAX;

/// The group coordinator's topic.
pub const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// The transaction coordinator's topic.
pub const TRANSACTION_TOPIC: &str = "__transaction_state";
/// The share coordinator's topic.
pub const SHARE_TOPIC: &str = "__share_group_state";
/// The controller's log, which is no topic that a client could make, name or delete.
pub const METADATA_TOPIC: &str = "__cluster_metadata";

/// Whether a topic belongs to the broker itself; Metadata answers say so. Source: Kafka's `Topic.isInternal`.
pub fn is_internal_topic(name: &str) -> bool {
    matches!(name, OFFSETS_TOPIC | TRANSACTION_TOPIC | SHARE_TOPIC)
}

/// Says what is wrong with a topic's name: it takes 1 to 249 of `[a-zA-Z0-9._-]`, and may not be `.` or `..`, since it names a folder.
/// Source: Kafka's `Topic.validate`.
pub fn check_topic_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() {
        Err("a topic name may not be empty".to_owned())
    } else if name == "." || name == ".." {
        Err(format!("a topic name may not be '{name}'"))
    } else if name.chars().count() > TOPIC_NAME_CHARACTERS_MAX {
        let count = name.chars().count();
        Err(format!("the topic name has {count} characters, more than {TOPIC_NAME_CHARACTERS_MAX}"))
    } else if !name.bytes().all(is_allowed) {
        Err(format!("topic name '{name}' has a character other than a-z, A-Z, 0-9, '.', '_' and '-'"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_folders_are_refused() {
        for name in ["a", "A.b_c-9", "...", "__consumer_offsets", &"x".repeat(249)] {
            assert_eq!(check_topic_name(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a b", "é", "a\0", &"x".repeat(250)] {
            assert!(check_topic_name(name).is_err(), "{name}");
        }
    }
}
