use crate::base::{LeaderEpoch, ProducerEpoch, ProducerId, seeded::for_each_seed};

use super::super::codec::Codec;
use super::super::recorded::recorded;
use super::super::{BatchBuilder, EndMarker};
use super::*;

type Header<'a> = (&'a [u8], Option<&'a [u8]>);

fn whole(bytes: &[u8]) -> Batch<'_> {
    match Batch::at_front(bytes) {
        Front::Whole(batch) => batch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn batches_of_a_java_producer_are_read_in_every_compression() {
    for (name, base_timestamp, bytes) in recorded() {
        let batch = whole(&bytes);
        assert_eq!((batch.bytes.len(), batch.crc_matches()), (bytes.len(), true), "{name}");
        assert_eq!(format!("{:?}", batch.header.compression().unwrap()).to_lowercase(), name);
        let unpacked = batch.unpack().unwrap();
        let records: Vec<Record<'_>> = unpacked.records().map(Result::unwrap).collect();
        assert_eq!(records.len(), 2, "{name}");
        assert_eq!((records[0].offset, records[0].timestamp), (Offset(0), TimestampMs(base_timestamp)));
        assert_eq!((records[1].offset, records[1].timestamp), (Offset(1), batch.header.max_timestamp));
        assert_eq!(records[0].key, Some(&b"key-a"[..]));
        assert_eq!(records[1].value, Some(&b"value two two two two two two"[..]));
        let headers: Vec<Header<'_>> = records[0].headers.iter().collect();
        assert_eq!(headers, [(&b"h1"[..], Some(&b"v1"[..])), (b"h2", Some(b"v2"))], "{name}");
        assert_eq!(records[1].headers.count(), 1);
    }
}

#[test]
fn a_built_batch_is_byte_for_byte_what_java_built_from_the_same_records() {
    let (_, _, bytes) = recorded().next().unwrap();
    let batch = whole(&bytes);
    let mut builder =
        BatchBuilder::new().leader_epoch(LeaderEpoch(0)).producer(ProducerId(0), ProducerEpoch(0), 0);
    let unpacked = batch.unpack().unwrap();
    for record in unpacked.records().map(Result::unwrap) {
        let headers: Vec<Header<'_>> = record.headers.iter().collect();
        builder.push_with_headers(record.timestamp, record.key, record.value, &headers);
    }
    assert_eq!(builder.finish(), bytes);
}

#[test]
fn batches_are_given_out_until_the_first_that_is_not_whole() {
    let marker = EndMarker { commits: true, coordinator_epoch: 0 };
    let one = marker.to_batch(ProducerId(1), ProducerEpoch(0), TimestampMs(9));
    let mut log = one.repeat(3);
    log.extend(&one[..one.len() - 1]);
    let mut batches = Batches::new(&log);
    assert_eq!(batches.by_ref().filter(|batch| batch.bytes == one).count(), 3);
    assert_eq!(batches.rest(), &one[..one.len() - 1]);

    assert_eq!(Batch::at_front(&one[..60]), Front::Needs { bytes: 61 });
    assert_eq!(Batch::at_front(&one[..61]), Front::Needs { bytes: one.len() as u64 });
    assert_eq!(
        Batch::at_front(&[0; 100]),
        Front::NotABatch,
        "magic 0, as where a file was cut by a power loss"
    );
    let mut wrong = one.to_vec();
    wrong[8..12].copy_from_slice(&48i32.to_be_bytes());
    assert_eq!(Batch::at_front(&wrong), Front::NotABatch, "a length without room for the header");
    wrong[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    assert_eq!(Batch::at_front(&wrong), Front::Needs { bytes: (1 << 31) + 11 });
}

#[test]
fn random_records_read_back_as_built() {
    for_each_seed(200, |mut random| {
        let codecs =
            [Codec::None, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 1 }, Codec::Gzip { level: 1 }];
        let base = random.below(1 << 40) as i64;
        let mut builder =
            BatchBuilder::new().base_offset(Offset(base)).codec(codecs[random.below(5) as usize]);
        let mut fields = || {
            let length = random.below(200) as usize;
            (!random.one_in(5)).then(|| random.bytes(length))
        };
        let made: Vec<_> = (0..20i64).map(|i| (i * i % 7, fields(), fields(), fields())).collect();
        for (time, key, value, header) in &made {
            let header = [(&b"name"[..], header.as_deref())];
            let headers: &[Header<'_>] = if *time == 3 { &[] } else { &header };
            builder.push_with_headers(TimestampMs(*time), key.as_deref(), value.as_deref(), headers);
        }
        let bytes = builder.finish();
        let batch = whole(&bytes);
        assert!(batch.crc_matches());
        assert_eq!(batch.header.last_offset(), Offset(base + 19));
        let unpacked = batch.unpack().unwrap();
        let mut count = 0;
        for (record, (i, (time, key, value, header))) in unpacked.records().zip((0..).zip(&made)) {
            let record = record.unwrap();
            assert_eq!((record.offset, record.timestamp), (Offset(base + i), TimestampMs(*time)));
            assert_eq!((record.key, record.value), (key.as_deref(), value.as_deref()));
            let first = record.headers.iter().next();
            assert_eq!(first, (*time != 3).then_some((&b"name"[..], header.as_deref())));
            count += 1;
        }
        assert_eq!(count, 20);
    });
}

#[test]
fn compaction_keeps_offsets_and_the_end_of_a_batch() {
    let mut builder =
        BatchBuilder::new().base_offset(Offset(50)).producer(ProducerId(4), ProducerEpoch(1), 30);
    for i in 0..10 {
        builder.push(TimestampMs(100 + i), Some(&[i as u8]), None);
    }
    let bytes = builder.finish();
    let old = whole(&bytes);
    let unpacked = old.unpack().unwrap();
    let mut kept = BatchBuilder::like(&old.header)
        .last_offset_delta_min(old.header.last_offset_delta)
        .delete_horizon(TimestampMs(7777));
    for record in unpacked.records().map(Result::unwrap).filter(|record| record.offset.0 % 3 == 0) {
        kept.keep_record(&record);
    }
    let bytes = kept.finish();
    let new = whole(&bytes);
    assert_eq!(new.header.base_timestamp, TimestampMs(7777));
    assert_eq!((new.header.base_offset, new.header.last_offset()), (Offset(50), Offset(59)));
    assert_eq!((new.header.base_sequence, new.header.last_sequence()), (30, 39));
    let unpacked = new.unpack().unwrap();
    let seen: Vec<_> = unpacked.records().map(Result::unwrap).map(|r| (r.offset.0, r.timestamp.0)).collect();
    assert_eq!(seen, [(51, 101), (54, 104), (57, 107)]);

    let empty = BatchBuilder::like(&old.header).last_offset_delta_min(9).codec(Codec::Lz4).finish();
    assert_eq!((empty.len(), whole(&empty).header.last_offset()), (HEADER_BYTES, Offset(59)));
    assert_eq!(whole(&empty).header.max_timestamp, TimestampMs(109));
    assert!(whole(&empty).crc_matches());
    assert_eq!(whole(&empty).unpack().unwrap().records().count(), 0);
}

#[test]
fn malformed_records_end_with_one_error() {
    let (_, _, bytes) = recorded().next().unwrap();
    let batch = whole(&bytes);
    let count = |header: &BatchHeader, body: &[u8]| {
        let records: Vec<_> = Records::new(header, body).collect();
        (records.len(), records.iter().filter(|record| record.is_err()).count())
    };
    let more = BatchHeader { record_count: 3, ..batch.header };
    assert_eq!(count(&more, batch.body()), (3, 1), "fewer records than the header says");
    let fewer = BatchHeader { record_count: 1, ..batch.header };
    assert_eq!(count(&fewer, batch.body()), (1, 1), "bytes behind the last record");
    let negative = BatchHeader { record_count: -1, ..batch.header };
    assert_eq!(count(&negative, batch.body()), (0, 0));
    for at in [0, 1, 4] {
        let mut body = batch.body().to_vec();
        body[at] = 0x7f;
        let (_, errors) = count(&batch.header, &body);
        assert_eq!(errors, usize::from(at != 1), "byte {at} (1: the unused attributes)");
    }
}
