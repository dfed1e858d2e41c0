use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use super::request::RequestHeader;
use super::response::response_head;
use crate::runtime::{SendQueue, SendSegment};

/// First version with topic ids in place of names, and first flexible version.
const FIRST_TOPIC_ID_VERSION: i16 = 13;
const FIRST_FLEXIBLE_VERSION: i16 = 12;

/// A Fetch answer before it is bytes; the records are segments that are sent as they lie.
pub struct FetchAnswer<F> {
    pub error_code: i16,
    pub session_id: i32,
    pub topics: Vec<TopicAnswer<F>>,
}

pub struct TopicAnswer<F> {
    /// Sent up to version 12.
    pub name: String,
    /// Sent from version 13 on.
    pub topic_id: Uuid,
    pub partitions: Vec<PartitionAnswer<F>>,
}

pub struct PartitionAnswer<F> {
    pub partition: i32,
    pub error_code: i16,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    /// Where a follower's log parts from this one: epoch and end offset (KIP-595); sent from version 12 on.
    pub diverging: Option<(i32, i64)>,
    /// `None` but for read_committed.
    pub aborted: Option<Vec<AbortedTransaction>>,
    pub records: Vec<SendSegment<F>>,
}

/// A transaction whose records a read_committed reader drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

pub(super) fn segment_bytes<F>(segment: &SendSegment<F>) -> u64 {
    match segment {
        SendSegment::Memory(memory) => memory.len() as u64,
        SendSegment::FileRange { bytes, .. } => *bytes,
    }
}

/// Puts the answer to `header` into `out`: what lies between the records is encoded, the records stay where they are.
/// Source: FetchResponse.json, versions 4 to 18. Tested against the decoder of the message crate.
pub fn encode_fetch<F>(header: &RequestHeader, answer: FetchAnswer<F>, out: &mut SendQueue<F>) -> Option<()> {
    let version = header.version;
    let flexible = version >= FIRST_FLEXIBLE_VERSION;
    let mut pieces: Vec<SendSegment<F>> = Vec::new();
    let mut bytes = BytesMut::with_capacity(64 + 96 * answer.topics.len());
    bytes.put_i32(0); // throttle time
    if version >= 7 {
        bytes.put_i16(answer.error_code);
        bytes.put_i32(answer.session_id);
    }
    put_array_length(&mut bytes, flexible, answer.topics.len())?;
    for topic in answer.topics {
        if version >= FIRST_TOPIC_ID_VERSION {
            bytes.put_slice(topic.topic_id.as_bytes());
        } else {
            put_string(&mut bytes, flexible, &topic.name)?;
        }
        put_array_length(&mut bytes, flexible, topic.partitions.len())?;
        for partition in topic.partitions {
            put_partition(&mut bytes, version, &partition)?;
            if !partition.records.is_empty() {
                pieces.push(SendSegment::Memory(bytes.split().freeze()));
                pieces.extend(partition.records);
            }
            if flexible {
                put_diverging(&mut bytes, partition.diverging);
            }
        }
        if flexible {
            bytes.put_u8(0);
        }
    }
    if flexible {
        bytes.put_u8(0);
    }
    pieces.push(SendSegment::Memory(bytes.freeze()));
    let body_bytes: u64 = pieces.iter().map(segment_bytes).sum();
    let mut head = BytesMut::with_capacity(16);
    response_head(&mut head, header, version, usize::try_from(body_bytes).ok()?)?;
    out.push(SendSegment::Memory(join_front(head, &mut pieces)));
    pieces.into_iter().for_each(|piece| out.push(piece));
    Some(())
}

/// The response header and the first piece of the body as one buffer: most answers are no more than that.
pub(super) fn join_front<F>(mut head: BytesMut, pieces: &mut Vec<SendSegment<F>>) -> Bytes {
    if let Some(SendSegment::Memory(first)) = pieces.first() {
        head.extend_from_slice(first);
        pieces.remove(0);
    }
    head.freeze()
}

fn put_partition<F>(bytes: &mut BytesMut, version: i16, partition: &PartitionAnswer<F>) -> Option<()> {
    let flexible = version >= FIRST_FLEXIBLE_VERSION;
    bytes.put_i32(partition.partition);
    bytes.put_i16(partition.error_code);
    bytes.put_i64(partition.high_watermark);
    bytes.put_i64(partition.last_stable_offset);
    if version >= 5 {
        bytes.put_i64(partition.log_start_offset);
    }
    match &partition.aborted {
        None if flexible => bytes.put_u8(0),
        None => bytes.put_i32(-1),
        Some(aborted) => {
            put_array_length(bytes, flexible, aborted.len())?;
            for transaction in aborted {
                bytes.put_i64(transaction.producer_id);
                bytes.put_i64(transaction.first_offset);
                if flexible {
                    bytes.put_u8(0);
                }
            }
        }
    }
    if version >= 11 {
        bytes.put_i32(-1); // preferred read replica
    }
    let record_bytes: u64 = partition.records.iter().map(segment_bytes).sum();
    if flexible {
        put_unsigned_varint(bytes, u32::try_from(record_bytes + 1).ok()?);
    } else {
        bytes.put_i32(i32::try_from(record_bytes).ok()?);
    }
    Some(())
}

/// The tagged fields of a partition: tag 0 is the diverging epoch.
fn put_diverging(bytes: &mut BytesMut, diverging: Option<(i32, i64)>) {
    let Some((leader_epoch, end_offset)) = diverging else { return bytes.put_u8(0) };
    bytes.put_slice(&[1, 0, 13]);
    bytes.put_i32(leader_epoch);
    bytes.put_i64(end_offset);
    bytes.put_u8(0);
}

pub(super) fn put_array_length(bytes: &mut BytesMut, flexible: bool, length: usize) -> Option<()> {
    if flexible {
        put_unsigned_varint(bytes, u32::try_from(length).ok()?.checked_add(1)?);
    } else {
        bytes.put_i32(i32::try_from(length).ok()?);
    }
    Some(())
}

fn put_string(bytes: &mut BytesMut, flexible: bool, text: &str) -> Option<()> {
    if flexible {
        put_unsigned_varint(bytes, u32::try_from(text.len()).ok()?.checked_add(1)?);
    } else {
        bytes.put_i16(i16::try_from(text.len()).ok()?);
    }
    bytes.put_slice(text.as_bytes());
    Some(())
}

pub(super) fn put_unsigned_varint(bytes: &mut BytesMut, mut value: u32) {
    while value >= 0x80 {
        bytes.put_u8((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    use bytes::Buf;
    use kafka_protocol::messages::{ApiKey, FetchResponse, ResponseHeader};
    use kafka_protocol::protocol::{Decodable, HeaderVersion};

    use super::*;

    fn answer() -> FetchAnswer<()> {
        let partition = |partition: i32, records: &'static [u8]| PartitionAnswer {
            partition,
            error_code: 0,
            high_watermark: 40,
            last_stable_offset: 30,
            log_start_offset: 3,
            diverging: (partition == 1).then_some((7, 20)),
            aborted: (partition == 1).then(|| vec![AbortedTransaction { producer_id: 9, first_offset: 11 }]),
            records: match records {
                [] => Vec::new(),
                _ => vec![SendSegment::Memory(Bytes::from_static(records))],
            },
        };
        let topic = |name: &str, partitions| TopicAnswer {
            name: name.into(),
            topic_id: Uuid::from_u128(77),
            partitions,
        };
        FetchAnswer {
            error_code: 0,
            session_id: 5,
            topics: vec![
                topic("a", vec![partition(0, b"0123456789"), partition(1, b"")]),
                topic("bc", vec![partition(2, &[7; 300])]),
            ],
        }
    }

    #[test]
    fn the_message_crate_reads_every_version_to_the_last_byte() {
        for version in 4..=18 {
            let header = RequestHeader { key: ApiKey::Fetch, version, correlation_id: 99, client_id: None };
            let mut out = SendQueue::new();
            encode_fetch(&header, answer(), &mut out).expect("an answer that fits");
            let mut all = BytesMut::new();
            while let Some(segment) = out.pop() {
                let SendSegment::Memory(memory) = segment else { panic!("no file ranges here") };
                all.extend_from_slice(&memory);
            }
            let mut all = all.freeze();
            assert_eq!(all.get_i32() as usize, all.len());
            let head = ResponseHeader::decode(&mut all, FetchResponse::header_version(version))
                .expect("a response header");
            assert_eq!(head.correlation_id, 99);
            let body = FetchResponse::decode(&mut all, version).expect("a body of this version");
            assert!(all.is_empty(), "version {version} leaves {} bytes", all.len());
            assert_eq!(body.responses.len(), 2);
            let first = &body.responses[0];
            assert_eq!(first.topic.as_str(), if version < 13 { "a" } else { "" });
            assert_eq!(first.partitions[0].records.as_deref(), Some(&b"0123456789"[..]));
            assert_eq!(first.partitions[1].aborted_transactions.as_ref().map(Vec::len), Some(1));
            assert_eq!(first.partitions[0].aborted_transactions, None);
            assert_eq!(first.partitions[1].diverging_epoch.epoch, if version < 12 { -1 } else { 7 });
            assert_eq!(body.responses[1].partitions[0].records.as_ref().map(Bytes::len), Some(300));
            assert_eq!(body.responses[1].partitions[0].high_watermark, 40);
        }
    }
}
