//! Records as another implementation packs and reads them: the message crate's.

use std::io::Write;

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use onrush::base::{Offset, ProducerEpoch, ProducerId, TimestampMs};
use onrush::record::{BatchBuilder, Batches, ProduceRules, TargetCompression, check};

use crate::seeded::{Seeded, for_each_seed};

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const NOW: i64 = 1_700_000_000_000;

fn rules() -> ProduceRules {
    ProduceRules {
        now: TimestampMs(NOW),
        compacted: false,
        timestamp_type: onrush::record::TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: i64::MAX,
        compression_type: TargetCompression::Producer,
        max_message_bytes: 1024 * 1024,
        segment_bytes: 1024 * 1024 * 1024,
        from_client: true,
        produce_version: 13,
    }
}

fn made_up(numbers: &mut Seeded) -> Vec<Record> {
    let (producer_id, sequence) = if numbers.one_in(2) { (-1, -1) } else { (7, 40) };
    let count = 1 + numbers.below(20);
    let record = |place: u64| Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id,
        producer_epoch: if producer_id < 0 { -1 } else { 3 },
        timestamp_type: TimestampType::Creation,
        offset: place as i64,
        sequence: if producer_id < 0 { place as i32 - 1 } else { sequence + place as i32 },
        timestamp: NOW - 500 + numbers.below(1000) as i64,
        key: some_bytes(numbers),
        value: some_bytes(numbers),
        headers: (0..numbers.below(3))
            .map(|header| (StrBytes::from_string(format!("h{header}")), some_bytes(numbers)))
            .collect(),
    };
    (0..count).map(record).collect()
}

fn some_bytes(numbers: &mut Seeded) -> Option<Bytes> {
    let count = numbers.below(300) as usize;
    (!numbers.one_in(4)).then(|| Bytes::from(numbers.bytes(count)))
}

fn encode(records: &[Record], compression: Compression) -> Bytes {
    let mut batch = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression };
    let pack = |records: &mut BytesMut, batch: &mut BytesMut, compression: Compression| {
        batch.extend_from_slice(&match compression {
            Compression::None => records.to_vec(),
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(records)?;
                encoder.finish()?
            }
            // As librdkafka sends it, without the frame that Java puts around.
            Compression::Snappy => snap::raw::Encoder::new().compress_vec(records)?,
            Compression::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(records)?;
                encoder.finish()?
            }
            Compression::Zstd => zstd::encode_all(&records[..], 3)?,
        });
        Ok(())
    };
    RecordBatchEncoder::encode_with_custom_compression(&mut batch, records, &options, Some(pack))
        .expect("the records have an encoding");
    batch.freeze()
}

#[test]
fn a_batch_of_the_message_crate_is_taken_as_it_is() {
    for_each_seed(40, |mut numbers| {
        let records = made_up(&mut numbers);
        for codec in CODECS {
            let batch = encode(&records, codec);
            let checked = check(&batch, &rules())
                .unwrap_or_else(|refusal| panic!("{codec:?} is refused: {refusal}, {records:?}"));
            assert_eq!(checked.bytes, batch, "{codec:?}");
            assert_eq!(checked.record_count() as usize, records.len());
            let latest = records.iter().map(|record| record.timestamp).max();
            let first_of_latest = records.iter().position(|record| Some(record.timestamp) == latest);
            assert_eq!(Some(checked.max_timestamp_offset_delta as usize), first_of_latest, "{codec:?}");
            assert_same_records(&batch, &records);
        }
    });
}

fn assert_same_records(batch: &[u8], records: &[Record]) {
    let unpacked: Vec<_> = Batches::new(batch)
        .map(|batch| batch.unpack().expect("a batch that was checked can be unpacked"))
        .collect();
    let mut seen = unpacked.iter().flat_map(|batch| batch.records());
    for wanted in records {
        let record = seen.next().expect("a record for each").expect("a sound record");
        assert_eq!(record.offset, Offset(wanted.offset));
        assert_eq!(record.timestamp, TimestampMs(wanted.timestamp));
        assert_eq!(record.key, wanted.key.as_deref());
        assert_eq!(record.value, wanted.value.as_deref());
        let headers = wanted.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_deref()));
        assert!(record.headers.iter().eq(headers), "{wanted:?}");
    }
    assert!(seen.next().is_none(), "a record too many");
}

#[test]
fn a_batch_with_any_byte_changed_behind_the_stamp_is_refused() {
    for_each_seed(4, |mut numbers| {
        let batch = encode(&made_up(&mut numbers), Compression::None);
        for place in 8..batch.len() {
            let mut changed = batch.to_vec();
            changed[place] ^= 1 << numbers.below(8);
            let leader_epoch = (12..16).contains(&place);
            let refused = check(&Bytes::from(changed), &rules()).is_err();
            assert!(refused != leader_epoch, "byte {place} of {}", batch.len());
        }
    });
}

#[test]
fn the_message_crate_reads_what_our_builder_makes() {
    let mut builder =
        BatchBuilder::new().base_offset(Offset(70)).producer(ProducerId(9), ProducerEpoch(2), 5);
    for place in 0..10u8 {
        let value = [place; 100];
        builder.push(TimestampMs(NOW + i64::from(place)), Some(&[place]), Some(&value));
    }
    let mut batch = builder.finish();
    let set = RecordBatchDecoder::decode(&mut batch).expect("a batch that can be read");
    assert!(batch.is_empty());
    let seen = set.records.iter().map(|record| (record.offset, record.sequence, record.timestamp));
    assert!(seen.eq((0..10).map(|place| (70 + i64::from(place), 5 + place, NOW + i64::from(place)))));
    assert!(set.records.iter().all(|record| (record.producer_id, record.producer_epoch) == (9, 2)));
    assert!(
        set.records.iter().enumerate().all(|(place, record)| record.key.as_deref() == Some(&[place as u8]))
    );
}
