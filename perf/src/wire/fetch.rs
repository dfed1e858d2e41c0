//! Fetch by hand: request and answer of versions 12 and 13, with fetch sessions. KIP-227, KIP-516.

use super::numbers::{Malformed, Reader, put_compact_length};
use super::produce::{TopicReference, request_head};

pub const API_KEY: i16 = 1;
/// Versions that this file knows, inclusive.
pub const VERSIONS: (i16, i16) = (12, 13);

/// What a consumer asks of every fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub partition_max_bytes: i32,
}

/// A fetch session as the broker knows it. The id 0 with epoch 0 asks for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchSession {
    pub id: i32,
    pub epoch: i32,
}

impl FetchSession {
    /// What the next request says, after an answer that named the session `id` (0: the broker has none for us).
    pub fn next(self, id: i32) -> FetchSession {
        if id == 0 {
            return FetchSession::default();
        }
        FetchSession { id, epoch: if self.epoch == i32::MAX { 1 } else { self.epoch + 1 } }
    }
}

/// Appends a request for `partitions`: index and offset to read from.
pub fn put_request(
    out: &mut Vec<u8>,
    client: &str,
    correlation_id: i32,
    session: FetchSession,
    limits: &FetchLimits,
    topic: &TopicReference,
    partitions: impl ExactSizeIterator<Item = (i32, i64)>,
) {
    let start = out.len();
    let version = match topic {
        TopicReference::Name(_) => 12i16,
        TopicReference::Id(_) => 13,
    };
    out.extend_from_slice(&request_head(API_KEY, version, client));
    out[start + 8..start + 12].copy_from_slice(&correlation_id.to_be_bytes());
    for field in [-1, limits.max_wait_ms, limits.min_bytes, limits.max_bytes] {
        out.extend_from_slice(&i32::to_be_bytes(field));
    }
    let read_uncommitted = 0;
    out.push(read_uncommitted);
    out.extend_from_slice(&session.id.to_be_bytes());
    out.extend_from_slice(&session.epoch.to_be_bytes());
    if partitions.len() == 0 {
        put_compact_length(out, 0);
    } else {
        put_compact_length(out, 1);
        topic.put(out);
        put_compact_length(out, partitions.len());
        for (partition, offset) in partitions {
            let (no_epoch, no_offset) = (-1i32, -1i64);
            out.extend_from_slice(&partition.to_be_bytes());
            out.extend_from_slice(&no_epoch.to_be_bytes());
            out.extend_from_slice(&offset.to_be_bytes());
            out.extend_from_slice(&no_epoch.to_be_bytes());
            out.extend_from_slice(&no_offset.to_be_bytes());
            out.extend_from_slice(&limits.partition_max_bytes.to_be_bytes());
            out.push(0);
        }
        out.push(0);
    }
    let no_forgotten_topics = 0;
    put_compact_length(out, no_forgotten_topics);
    let no_rack = 0;
    put_compact_length(out, no_rack);
    out.push(0);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// The answer but for its partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchAnswer {
    pub correlation_id: i32,
    pub error_code: i16,
    pub session_id: i32,
}

/// What came of one partition. `records` are whole batches, the last one may be cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchedPartition<'a> {
    pub partition: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    pub log_start_offset: i64,
    pub records: &'a [u8],
}

/// Reads an answer, without its length; calls `each` for every partition in it.
pub fn read_answer<'a>(
    frame: &'a [u8],
    topic: &TopicReference,
    mut each: impl FnMut(FetchedPartition<'a>),
) -> Result<FetchAnswer, Malformed> {
    let mut reader = Reader::new(frame);
    let correlation_id = reader.i32()?;
    reader.skip_tagged_fields()?;
    let _throttle_time_ms = reader.i32()?;
    let (error_code, session_id) = (reader.i16()?, reader.i32()?);
    for _ in 0..reader.compact_length()?.ok_or(Malformed)? {
        topic.skip(&mut reader)?;
        for _ in 0..reader.compact_length()?.ok_or(Malformed)? {
            let (partition, error_code, high_watermark) = (reader.i32()?, reader.i16()?, reader.i64()?);
            let (_last_stable_offset, log_start_offset) = (reader.i64()?, reader.i64()?);
            for _ in 0..reader.compact_length()?.unwrap_or(0) {
                let (_producer_id, _first_offset) = (reader.i64()?, reader.i64()?);
                reader.skip_tagged_fields()?;
            }
            let _preferred_read_replica = reader.i32()?;
            let records = reader.compact_bytes()?.unwrap_or_default();
            reader.skip_tagged_fields()?;
            each(FetchedPartition { partition, error_code, high_watermark, log_start_offset, records });
        }
        reader.skip_tagged_fields()?;
    }
    Ok(FetchAnswer { correlation_id, error_code, session_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use kafka_protocol::messages::{FetchRequest, FetchResponse, RequestHeader, ResponseHeader, TopicName};
    use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};

    const LIMITS: FetchLimits =
        FetchLimits { max_wait_ms: 500, min_bytes: 1, max_bytes: 50 << 20, partition_max_bytes: 1 << 20 };

    fn topics() -> [(i16, TopicReference); 2] {
        [(12, TopicReference::Name("t".to_owned())), (13, TopicReference::Id([7; 16]))]
    }

    #[test]
    fn a_request_is_what_the_crate_reads() {
        for (version, topic) in topics() {
            let mut out = Vec::new();
            let session = FetchSession { id: 5, epoch: 6 };
            put_request(&mut out, "me", 99, session, &LIMITS, &topic, [(3, 1_000), (4, 0)].into_iter());
            assert_eq!(u32::from_be_bytes(out[..4].try_into().expect("4 bytes")) as usize, out.len() - 4);
            let mut frame = Bytes::from(out.split_off(4));
            let header = RequestHeader::decode(&mut frame, 2).expect("a header");
            assert_eq!((header.request_api_key, header.request_api_version), (API_KEY, version));
            assert_eq!((header.correlation_id, header.client_id.as_deref()), (99, Some("me")));
            let request = FetchRequest::decode(&mut frame, version).expect("a request");
            assert!(frame.is_empty());
            assert_eq!((request.session_id, request.session_epoch, request.max_wait_ms), (5, 6, 500));
            let partitions = &request.topics[0].partitions;
            let found: Vec<(i32, i64)> = partitions.iter().map(|p| (p.partition, p.fetch_offset)).collect();
            assert_eq!(found, [(3, 1_000), (4, 0)]);
            assert_eq!(partitions[0].partition_max_bytes, 1 << 20);
        }
    }

    #[test]
    fn an_answer_of_the_crate_is_read() {
        for (version, topic) in topics() {
            let partition = |index: i32| {
                PartitionData::default()
                    .with_partition_index(index)
                    .with_high_watermark(10)
                    .with_log_start_offset(2)
                    .with_records(Some(Bytes::from(vec![index as u8; 300])))
            };
            let named = FetchableTopicResponse::default()
                .with_topic(TopicName(StrBytes::from_static_str(if version == 12 { "t" } else { "" })))
                .with_topic_id(if version == 13 { uuid_of(7) } else { uuid_of(0) })
                .with_partitions(vec![partition(1), partition(2).with_records(None)]);
            let answer = FetchResponse::default().with_session_id(8).with_responses(vec![named]);
            let mut frame = Vec::new();
            let header = ResponseHeader::default().with_correlation_id(4);
            header.encode(&mut frame, FetchResponse::header_version(version)).expect("a header");
            answer.encode(&mut frame, version).expect("an answer");
            let mut found = Vec::new();
            let read = read_answer(&frame, &topic, |partition| found.push(partition));
            assert_eq!(read, Ok(FetchAnswer { correlation_id: 4, error_code: 0, session_id: 8 }));
            let records = [1; 300];
            let first = FetchedPartition {
                partition: 1,
                error_code: 0,
                high_watermark: 10,
                log_start_offset: 2,
                records: &records,
            };
            assert_eq!(found, [first, FetchedPartition { partition: 2, records: &[], ..first }]);
        }
    }

    fn uuid_of(byte: u8) -> uuid::Uuid {
        uuid::Uuid::from_bytes([byte; 16])
    }

    #[test]
    fn a_session_goes_on_until_the_broker_has_none() {
        let begun = FetchSession::default().next(7);
        assert_eq!(begun, FetchSession { id: 7, epoch: 1 });
        assert_eq!(begun.next(7), FetchSession { id: 7, epoch: 2 });
        assert_eq!(FetchSession { id: 7, epoch: i32::MAX }.next(7), FetchSession { id: 7, epoch: 1 });
        assert_eq!(begun.next(0), FetchSession::default());
    }
}
