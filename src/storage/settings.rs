/// What of a topic's settings its log files depend on; times in ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSettings {
    /// `segment.bytes`: a segment takes no batch that would make it larger, unless it is empty.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment takes no batch later than this after its first one.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: each segment ends earlier by a random time up to this, so that not all roll at once.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: a segment whose indexes are this large takes no batch.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`: at most one index entry in so many bytes of log.
    pub index_interval_bytes: u64,
    /// `file.delete.delay.ms`: how long files outlive their segment, for fetches that are being sent.
    pub file_delete_delay_ms: u64,
    /// Whether offsets may be missing between batches, as compaction leaves them. Where not, a batch found after a crash
    /// that does not follow the one before is not part of the log.
    pub gaps_allowed: bool,
}

impl Default for LogSettings {
    fn default() -> LogSettings {
        LogSettings {
            segment_bytes: 1024 * 1024 * 1024,
            segment_ms: 7 * 24 * 3600 * 1000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 * 1024 * 1024,
            index_interval_bytes: 4096,
            file_delete_delay_ms: 60_000,
            gaps_allowed: false,
        }
    }
}
