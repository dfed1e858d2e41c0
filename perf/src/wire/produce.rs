//! Produce by hand: request and answer of versions 9 to 13, all flexible. KIP-482, KIP-951, KIP-516.

use super::numbers::{Malformed, Reader, put_compact_length, unsigned_varint_length};

pub const API_KEY: i16 = 0;
/// Versions that this file knows, inclusive.
pub const VERSIONS: (i16, i16) = (9, 13);

/// How a topic is named in Produce and Fetch: by its name, or by its id in later versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicReference {
    Name(String),
    Id([u8; 16]),
}

impl TopicReference {
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            TopicReference::Name(name) => {
                put_compact_length(out, name.len());
                out.extend_from_slice(name.as_bytes());
            }
            TopicReference::Id(id) => out.extend_from_slice(id),
        }
    }

    /// Reads past the name or id of a topic in an answer to requests that name topics as this one is named.
    pub fn skip(&self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        match self {
            TopicReference::Name(_) => reader.compact_bytes().map(|_| ()),
            TopicReference::Id(id) => reader.take(id.len()).map(|_| ()),
        }
    }
}

/// Everything of a Produce request that does not change from one request to the next.
pub struct ProduceHead {
    /// Length, request header version 2, and the body up to the number of partitions.
    bytes: Vec<u8>,
}

const CORRELATION_ID_AT: usize = 8;

impl ProduceHead {
    pub fn new(version: i16, client: &str, acks: i16, timeout_ms: i32, topic: &TopicReference) -> Self {
        let mut bytes = request_head(API_KEY, version, client);
        bytes.push(0);
        bytes.extend_from_slice(&acks.to_be_bytes());
        bytes.extend_from_slice(&timeout_ms.to_be_bytes());
        put_compact_length(&mut bytes, 1);
        topic.put(&mut bytes);
        ProduceHead { bytes }
    }

    /// Begins a request with `partition_count` batches of `batch_bytes` in all; each follows as `put_partition` and its bytes
    /// and a 0, the whole is closed by `TAIL`.
    pub fn put(
        &self,
        out: &mut Vec<u8>,
        correlation_id: i32,
        batch_lengths: impl Iterator<Item = usize> + Clone,
    ) {
        let count = batch_lengths.clone().count();
        let partitions: usize = batch_lengths.map(partition_length).sum();
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        put_compact_length(out, count);
        let length = out.len() - start - 4 + partitions + TAIL.len();
        let length = u32::try_from(length).expect("a request is shorter than 2 GiB");
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        out[start + CORRELATION_ID_AT..][..4].copy_from_slice(&correlation_id.to_be_bytes());
    }
}

/// What ends one partition: no tagged fields.
pub const PARTITION_TAIL: u8 = 0;
/// What ends the request: no tagged fields of the topic, none of the request.
pub const TAIL: [u8; 2] = [0, 0];

pub fn put_partition(out: &mut Vec<u8>, partition: i32, batch_length: usize) {
    out.extend_from_slice(&partition.to_be_bytes());
    put_compact_length(out, batch_length);
}

fn partition_length(batch_length: usize) -> usize {
    4 + unsigned_varint_length(batch_length as u32 + 1) + batch_length + 1
}

/// Length (to be written later), header version 2 with correlation id 0.
pub fn request_head(api_key: i16, version: i16, client: &str) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    bytes.extend_from_slice(&api_key.to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(client.len() as i16).to_be_bytes());
    bytes.extend_from_slice(client.as_bytes());
    bytes.push(0);
    bytes
}

/// What became of one partition's batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionAnswer {
    pub partition: i32,
    pub error_code: i16,
    pub base_offset: i64,
}

/// Reads an answer, without its length; calls `each` for every partition. Gives the correlation id.
pub fn read_answer(
    frame: &[u8],
    topic: &TopicReference,
    mut each: impl FnMut(PartitionAnswer),
) -> Result<i32, Malformed> {
    let mut reader = Reader::new(frame);
    let correlation_id = reader.i32()?;
    reader.skip_tagged_fields()?;
    for _ in 0..reader.compact_length()?.ok_or(Malformed)? {
        topic.skip(&mut reader)?;
        for _ in 0..reader.compact_length()?.ok_or(Malformed)? {
            let (partition, error_code, base_offset) = (reader.i32()?, reader.i16()?, reader.i64()?);
            let (_log_append_time, _log_start_offset) = (reader.i64()?, reader.i64()?);
            for _ in 0..reader.compact_length()?.unwrap_or(0) {
                let _batch_index = reader.i32()?;
                let _message = reader.compact_bytes()?;
                reader.skip_tagged_fields()?;
            }
            let _error_message = reader.compact_bytes()?;
            reader.skip_tagged_fields()?;
            each(PartitionAnswer { partition, error_code, base_offset });
        }
        reader.skip_tagged_fields()?;
    }
    Ok(correlation_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
    use kafka_protocol::messages::{ProduceRequest, ProduceResponse, RequestHeader, ResponseHeader};
    use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};

    fn topic_of(version: i16) -> TopicReference {
        if version < 13 { TopicReference::Name("logs".to_owned()) } else { TopicReference::Id([7; 16]) }
    }

    #[test]
    fn a_request_is_what_the_crate_reads() {
        for version in VERSIONS.0..=VERSIONS.1 {
            let head = ProduceHead::new(version, "me", -1, 30_000, &topic_of(version));
            let batches = [vec![1; 10], vec![2; 300]];
            let mut out = Vec::new();
            head.put(&mut out, 42, batches.iter().map(Vec::len));
            for (index, batch) in batches.iter().enumerate() {
                put_partition(&mut out, index as i32, batch.len());
                out.extend_from_slice(batch);
                out.push(PARTITION_TAIL);
            }
            out.extend_from_slice(&TAIL);
            assert_eq!(u32::from_be_bytes(out[..4].try_into().expect("4 bytes")) as usize, out.len() - 4);
            let mut frame = Bytes::from(out.split_off(4));
            let header = RequestHeader::decode(&mut frame, 2).expect("a header");
            assert_eq!((header.request_api_key, header.request_api_version), (API_KEY, version));
            assert_eq!(header.correlation_id, 42);
            let request = ProduceRequest::decode(&mut frame, version).expect("a request");
            assert!(frame.is_empty());
            assert_eq!((request.acks, request.timeout_ms), (-1, 30_000));
            let partitions = &request.topic_data[0].partition_data;
            assert_eq!(partitions.len(), 2);
            assert!(partitions.iter().zip(&batches).all(|(p, batch)| p.records.as_deref() == Some(batch)));
        }
    }

    #[test]
    fn an_answer_of_the_crate_is_read() {
        for version in VERSIONS.0..=VERSIONS.1 {
            let good = PartitionProduceResponse::default().with_index(3).with_base_offset(77);
            let message = Some(StrBytes::from_static_str("no"));
            let refused = good
                .clone()
                .with_index(4)
                .with_error_code(10)
                .with_base_offset(-1)
                .with_error_message(message);
            let mut named = TopicProduceResponse::default().with_partition_responses(vec![good, refused]);
            if version < 13 {
                named.name.0 = StrBytes::from_static_str("logs");
            }
            let mut frame = Vec::new();
            let header = ResponseHeader::default().with_correlation_id(5);
            header.encode(&mut frame, ProduceResponse::header_version(version)).expect("a header");
            let answer = ProduceResponse::default().with_responses(vec![named]);
            answer.encode(&mut frame, version).expect("an answer");
            let mut found = Vec::new();
            assert_eq!(read_answer(&frame, &topic_of(version), |answer| found.push(answer)), Ok(5));
            let good = PartitionAnswer { partition: 3, error_code: 0, base_offset: 77 };
            assert_eq!(found, [good, PartitionAnswer { partition: 4, error_code: 10, base_offset: -1 }]);
        }
    }
}
