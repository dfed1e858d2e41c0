use bytes::{BufMut, BytesMut};
use uuid::Uuid;

use super::fetch_response::{join_front, put_array_length, put_unsigned_varint, segment_bytes};
use super::request::RequestHeader;
use super::response::response_head;
use crate::runtime::{SendQueue, SendSegment};

/// A ShareFetch answer before it is bytes; the records are segments that are sent as they lie.
pub struct ShareFetchAnswer<F> {
    pub error_code: i16,
    /// How long the member has the records.
    pub acquisition_lock_timeout_ms: i32,
    pub topics: Vec<ShareTopicAnswer<F>>,
}

pub struct ShareTopicAnswer<F> {
    pub topic_id: Uuid,
    pub partitions: Vec<SharePartitionAnswer<F>>,
}

pub struct SharePartitionAnswer<F> {
    pub partition: i32,
    pub error_code: i16,
    pub acknowledge_error_code: i16,
    pub records: Vec<SendSegment<F>>,
    /// First and last offset, inclusive, and how often they were delivered.
    pub acquired: Vec<(i64, i64, i16)>,
}

impl<F> Default for ShareFetchAnswer<F> {
    fn default() -> ShareFetchAnswer<F> {
        ShareFetchAnswer { error_code: 0, acquisition_lock_timeout_ms: 0, topics: Vec::new() }
    }
}

impl<F> Default for SharePartitionAnswer<F> {
    fn default() -> SharePartitionAnswer<F> {
        SharePartitionAnswer {
            partition: 0,
            error_code: 0,
            acknowledge_error_code: 0,
            records: Vec::new(),
            acquired: Vec::new(),
        }
    }
}

/// Puts the answer to `header` into `out`: what lies between the records is encoded, the records stay where they are.
/// Source: ShareFetchResponse.json, version 1. Tested against the decoder of the message crate.
pub fn encode_share_fetch<F>(
    header: &RequestHeader,
    answer: ShareFetchAnswer<F>,
    out: &mut SendQueue<F>,
) -> Option<()> {
    let mut pieces: Vec<SendSegment<F>> = Vec::new();
    let mut bytes = BytesMut::with_capacity(64 + 128 * answer.topics.len());
    bytes.put_i32(0); // throttle time
    bytes.put_i16(answer.error_code);
    bytes.put_u8(0); // no message
    bytes.put_i32(answer.acquisition_lock_timeout_ms);
    put_array_length(&mut bytes, true, answer.topics.len())?;
    for topic in answer.topics {
        bytes.put_slice(topic.topic_id.as_bytes());
        put_array_length(&mut bytes, true, topic.partitions.len())?;
        for partition in topic.partitions {
            bytes.put_i32(partition.partition);
            bytes.put_i16(partition.error_code);
            bytes.put_u8(0); // no message
            bytes.put_i16(partition.acknowledge_error_code);
            bytes.put_u8(0); // no message
            bytes.put_i32(0); // current leader: the default, id 0 and epoch 0
            bytes.put_i32(0);
            bytes.put_u8(0);
            let record_bytes: u64 = partition.records.iter().map(segment_bytes).sum();
            put_unsigned_varint(&mut bytes, u32::try_from(record_bytes.checked_add(1)?).ok()?);
            if !partition.records.is_empty() {
                pieces.push(SendSegment::Memory(bytes.split().freeze()));
                pieces.extend(partition.records);
            }
            put_array_length(&mut bytes, true, partition.acquired.len())?;
            for (first, last, delivery_count) in partition.acquired {
                bytes.put_i64(first);
                bytes.put_i64(last);
                bytes.put_i16(delivery_count);
                bytes.put_u8(0);
            }
            bytes.put_u8(0);
        }
        bytes.put_u8(0);
    }
    put_array_length(&mut bytes, true, 0)?; // node endpoints
    bytes.put_u8(0);
    pieces.push(SendSegment::Memory(bytes.freeze()));
    let body_bytes: u64 = pieces.iter().map(segment_bytes).sum();
    let mut head = BytesMut::with_capacity(16);
    response_head(&mut head, header, header.version, usize::try_from(body_bytes).ok()?)?;
    out.push(SendSegment::Memory(join_front(head, &mut pieces)));
    pieces.into_iter().for_each(|piece| out.push(piece));
    Some(())
}

#[cfg(test)]
mod tests {
    use bytes::{Buf, Bytes};
    use kafka_protocol::messages::{ApiKey, ResponseHeader, ShareFetchResponse};
    use kafka_protocol::protocol::{Decodable, HeaderVersion};

    use super::*;

    #[test]
    fn the_message_crate_reads_it_to_the_last_byte() {
        let partition = |partition, records: &'static [u8]| SharePartitionAnswer {
            partition,
            error_code: 3,
            acknowledge_error_code: 121,
            records: match records {
                [] => Vec::new(),
                _ => vec![SendSegment::Memory(Bytes::from_static(records))],
            },
            acquired: vec![(5, 9, 1), (10, 11, 2)],
        };
        let topic = |partitions| ShareTopicAnswer { topic_id: Uuid::from_u128(77), partitions };
        let answer: ShareFetchAnswer<()> = ShareFetchAnswer {
            error_code: 0,
            acquisition_lock_timeout_ms: 30_000,
            topics: vec![topic(vec![partition(0, b"0123456789"), partition(1, b"")]), topic(Vec::new())],
        };
        let header =
            RequestHeader { key: ApiKey::ShareFetch, version: 1, correlation_id: 99, client_id: None };
        let mut out = SendQueue::new();
        encode_share_fetch(&header, answer, &mut out).expect("an answer that fits");
        let mut all = BytesMut::new();
        while let Some(segment) = out.pop() {
            let SendSegment::Memory(memory) = segment else { panic!("no file ranges here") };
            all.extend_from_slice(&memory);
        }
        let mut all = all.freeze();
        assert_eq!(all.get_i32() as usize, all.len());
        let head = ResponseHeader::decode(&mut all, ShareFetchResponse::header_version(1)).expect("a header");
        assert_eq!(head.correlation_id, 99);
        let body = ShareFetchResponse::decode(&mut all, 1).expect("a body of this version");
        assert!(all.is_empty(), "{} bytes are left", all.len());
        assert_eq!(body.acquisition_lock_timeout_ms, 30_000);
        let [first, second] = &body.responses[0].partitions[..] else { panic!("{body:?}") };
        assert_eq!(first.records.as_deref(), Some(&b"0123456789"[..]));
        assert_eq!((second.error_code, second.acknowledge_error_code), (3, 121));
        let acquired: Vec<_> = (second.acquired_records.iter())
            .map(|run| (run.first_offset, run.last_offset, run.delivery_count))
            .collect();
        assert_eq!(acquired, [(5, 9, 1), (10, 11, 2)]);
    }
}
