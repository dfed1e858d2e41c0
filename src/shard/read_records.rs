//! Reading a whole partition's records, for state that is kept in a log.

use std::rc::Rc;

use super::Shard;
use super::data_plane::QueryRefusal;
use crate::base::{Offset, TopicPartition};
use crate::record::Batches;
use crate::runtime::{File, Runtime};

/// Bytes read at a time.
const READ_BYTES: u64 = 1024 * 1024;

impl<R: Runtime> Shard<R> {
    /// Gives every record from the log start up to the high watermark of now: offset, key, value. Control batches are left out.
    /// A batch that cannot be unpacked is left out too, with a warning.
    pub async fn read_records(
        self: &Rc<Self>,
        partition: TopicPartition,
        mut take: impl FnMut(Offset, Option<&[u8]>, Option<&[u8]>),
    ) -> Result<(), QueryRefusal> {
        let replica = self.open_replica_of(partition).await?;
        let log = replica.log.get().expect("an open replica has its log");
        let (mut from, end) = {
            let rules = replica.rules.borrow();
            (rules.log_start_offset(), rules.high_watermark())
        };
        while from < end {
            let found =
                log.read(from, end, READ_BYTES, true).await.map_err(|trouble| self.log_refusal(&trouble))?;
            let Some(slice) = found.slice else { break };
            let bytes = usize::try_from(slice.bytes).expect("a slice is as large as was asked for");
            let bytes = slice
                .file
                .read_at(slice.position, bytes)
                .await
                .map_err(|trouble| self.read_failed(&trouble))?;
            let before = from;
            for batch in Batches::new(&bytes) {
                from = from.max(batch.header.next_offset());
                if batch.header.is_control() {
                    continue;
                }
                let Ok(unpacked) = batch.unpack() else {
                    tracing::warn!(topic = %replica.topic_name, offset = %batch.header.base_offset, "a batch cannot be unpacked");
                    continue;
                };
                for record in unpacked.records().map_while(Result::ok) {
                    take(record.offset, record.key, record.value);
                }
            }
            if from == before {
                return Err(QueryRefusal::CorruptMessage);
            }
            self.runtime.yield_now().await;
        }
        Ok(())
    }
}
