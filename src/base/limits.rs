/// Longest topic name, in characters (Kafka's `Topic.MAX_NAME_LENGTH`; with `-N` and a deletion suffix it still fits a file name).
pub const TOPIC_NAME_CHARACTERS_MAX: usize = 249;
/// Most shards one broker may have.
pub const SHARDS_MAX: usize = 256;
/// Most bytes handed to one page-cache write call (larger ones are slower: they touch fresh memory in one go).
pub const WRITE_CALL_BYTES_MAX: usize = 256 * 1024;
/// Most bytes one `sendfile` call may move before other tasks of the shard run.
pub const SENDFILE_CALL_BYTES_MAX: usize = 256 * 1024;
/// Below this a file range is sent from memory, above it by `sendfile`.
pub const SENDFILE_BYTES_MIN: usize = 64 * 1024;

const _: () = assert!(SENDFILE_BYTES_MIN <= SENDFILE_CALL_BYTES_MAX);
