use std::io::BufReader;

use crate::base::{
    LeaderEpoch, Offset, ProducerEpoch, ProducerId,
    seeded::{Seeded, for_each_seed},
};

use super::super::recorded::recorded;
use super::super::varint::{put_varint, put_varlong};
use super::super::{
    Batch, CRC_COVERAGE_START, EndMarker, Front, LENGTH_OVERHEAD_BYTES, MAGIC, UNPACKED_BYTES_MAX, crc_of,
};
use super::*;

const NOW: i64 = 1_796_063_800_000;

fn rules() -> ProduceRules {
    ProduceRules {
        now: TimestampMs(NOW),
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: 3_600_000,
        compression_type: TargetCompression::Producer,
        max_message_bytes: 1_048_588,
        segment_bytes: 1 << 30,
        from_client: true,
        produce_version: 9,
    }
}

/// A record whose every field is open to choice; `headers`: count and all that follows.
fn record(offset_delta: i32, timestamp_delta: i64, key: Option<&[u8]>, headers: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    put_varlong(&mut body, timestamp_delta);
    put_varint(&mut body, offset_delta);
    match key {
        None => put_varint(&mut body, -1),
        Some(key) => {
            put_varint(&mut body, key.len() as i32);
            body.extend(key);
        }
    }
    body.extend(b"\x02v");
    body.extend(headers);
    with_length(body.len() as i32, &body)
}

fn with_length(length: i32, body: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    put_varint(&mut record, length);
    record.extend(body);
    record
}

fn two() -> Vec<u8> {
    [record(0, 0, Some(b"k"), b"\0"), record(1, 5, Some(b"k"), b"\0")].concat()
}

/// A batch with `body` behind its header, which `change` may spoil before the CRC is made.
fn batch(body: &[u8], count: i32, change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let mut header = BatchHeader {
        base_offset: Offset::ZERO,
        batch_length: (HEADER_BYTES - LENGTH_OVERHEAD_BYTES + body.len()) as i32,
        leader_epoch: LeaderEpoch::NONE,
        magic: MAGIC,
        crc: 0,
        attributes: 0,
        last_offset_delta: count - 1,
        base_timestamp: TimestampMs(NOW),
        max_timestamp: TimestampMs(NOW + 5),
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
        base_sequence: -1,
        record_count: count,
    };
    change(&mut header);
    let mut bytes = [&header.to_bytes()[..], body].concat();
    mend_crc(&mut bytes);
    bytes
}

fn mend_crc(batch: &mut [u8]) {
    if batch.len() > CRC_COVERAGE_START {
        let crc = crc_of(batch).to_be_bytes();
        batch[17..21].copy_from_slice(&crc);
    }
}

fn packed(codec: Codec, body: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    codec.compress(body, &mut packed);
    packed
}

const CODECS: [Codec; 5] =
    [Codec::None, Codec::Gzip { level: 6 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }];

/// `body` in a batch that says it is compressed by the codec of this number.
fn packed_batch(code: usize, body: &[u8], count: i32) -> Vec<u8> {
    batch(&packed(CODECS[code], body), count, |header| header.attributes = code as i16)
}

fn refusal(bytes: Vec<u8>, rules: &ProduceRules) -> InvalidBatch {
    check(&Bytes::from(bytes), rules).expect_err("refused")
}

fn records_of(bytes: &[u8]) -> Vec<(i64, i64, Option<Vec<u8>>)> {
    let Front::Whole(batch) = Batch::at_front(bytes) else { panic!("a whole batch") };
    assert!(batch.crc_matches());
    assert_eq!(batch.bytes.len(), bytes.len());
    let unpacked = batch.unpack().unwrap();
    let records = unpacked.records().map(Result::unwrap);
    records.map(|record| (record.offset.0, record.timestamp.0, record.key.map(<[u8]>::to_vec))).collect()
}

/// Each case was sent to Kafka 4.3.1, which answered with this error, and told its log start offset or not.
#[test]
fn a_batch_is_refused_with_the_error_that_kafka_gives() {
    use BatchError::*;
    let good = || batch(&two(), 2, |_| {});
    let spoilt = |change: fn(&mut BatchHeader)| batch(&two(), 2, change);
    let length = |length: i32, bytes: &[u8]| [&bytes[..8], &length.to_be_bytes(), &bytes[12..]].concat();
    let short = |size: usize| length(size as i32 - 12, &good())[..size].to_vec();
    let wrong_crc = |mut bytes: Vec<u8>| {
        bytes[20] ^= 1;
        bytes
    };
    let one = |record: Vec<u8>| batch(&record, 1, |_| {});
    let gzip = |cut: usize| {
        let body = packed(CODECS[1], &two());
        batch(&body[..body.len() - cut], 2, |header| header.attributes = 1)
    };
    let garbage = |code: i16| batch(b"abcdefghijklmnopqrst", 2, |header| header.attributes = code);

    #[rustfmt::skip]
    let cases: Vec<(&str, Vec<u8>, BatchError, bool)> = vec![
        ("no bytes", vec![], InvalidRecord, false),
        ("11 bytes", good()[..11].to_vec(), InvalidRecord, false),
        ("16 bytes", good()[..16].to_vec(), InvalidRecord, false),
        ("a byte short", good()[..good().len() - 1].to_vec(), InvalidRecord, false),
        ("length 13", length(13, &good()), CorruptMessage, false),
        ("length -1", length(-1, &good()), CorruptMessage, false),
        ("length 2^31-1", length(i32::MAX, &good()), UnknownServerError, false),
        ("length 2^31-20", length(i32::MAX - 19, &good()), InvalidRecord, false),
        ("magic 3", spoilt(|h| h.magic = 3), CorruptMessage, false),
        ("magic -1", spoilt(|h| h.magic = -1), CorruptMessage, false),
        ("magic 1", spoilt(|h| h.magic = 1), InvalidRecord, false),
        ("26 bytes long", short(26), UnknownServerError, false),
        ("26 bytes long, zeros behind", [short(26), vec![0; 12]].concat(), CorruptMessage, false),
        ("50 bytes long", short(50), UnknownServerError, false),
        ("51 bytes long", short(51), CorruptMessage, false),
        ("60 bytes long", short(60), CorruptMessage, false),
        ("zeros behind", [good(), vec![0; 12]].concat(), CorruptMessage, false),
        ("two batches", [good(), good()].concat(), InvalidRecord, false),
        ("an unknown magic behind", [good(), spoilt(|h| h.magic = 7)].concat(), CorruptMessage, false),
        ("base offset 7", spoilt(|h| h.base_offset = Offset(7)), InvalidRecord, true),
        ("base offset 7, wrong CRC", wrong_crc(spoilt(|h| h.base_offset = Offset(7))), InvalidRecord, true),
        ("wrong CRC", wrong_crc(good()), CorruptMessage, false),
        ("codec 5", spoilt(|h| h.attributes = 5), UnknownServerError, true),
        ("codec 5, wrong CRC", wrong_crc(spoilt(|h| h.attributes = 5)), CorruptMessage, false),
        ("last delta -1", spoilt(|h| h.last_offset_delta = -1), InvalidRecord, true),
        ("last delta 5", spoilt(|h| h.last_offset_delta = 5), InvalidRecord, true),
        ("count 0", spoilt(|h| h.record_count = 0), InvalidRecord, true),
        ("no records", batch(&[], 0, |_| {}), InvalidRecord, true),
        ("count 3 of 2", batch(&two(), 3, |_| {}), InvalidRecord, true),
        ("count 1 of 2", batch(&two(), 1, |_| {}), InvalidRecord, true),
        ("control", spoilt(|h| h.attributes = 0x20), InvalidRecord, true),
        ("no sequence", spoilt(|h| h.producer_id = ProducerId(77)), InvalidRecord, true),
        ("header count -1", one(record(0, 0, Some(b"k"), b"\x01")), InvalidRecord, true),
        ("header key null", one(record(0, 0, Some(b"k"), b"\x02\x01\x01")), InvalidRecord, true),
        ("record length short", one(with_length(3, &record(0, 0, None, b"\0")[1..])), InvalidRecord, true),
        ("record length negative", one(with_length(-1, &record(0, 0, None, b"\0")[1..])), InvalidRecord, true),
        ("gzip cut", gzip(3), UnknownServerError, true),
        ("gzip of nothing", batch(&[], 2, |h| h.attributes = 1), UnknownServerError, true),
        ("gzip garbage", garbage(1), UnknownServerError, true),
        ("snappy garbage", garbage(2), UnknownServerError, true),
        ("lz4 garbage", garbage(3), UnknownServerError, true),
        ("zstd garbage", garbage(4), UnknownServerError, true),
        ("gzip, count 1 of 2", packed_batch(1, &two(), 1), InvalidRecord, true),
        ("gzip, count 3 of 2", packed_batch(1, &two(), 3), InvalidRecord, true),
        ("gzip, header key null", packed_batch(1, &record(0, 0, None, b"\x02\x01\x01"), 1), InvalidRecord, true),
        ("1.1 MB, wrong CRC", wrong_crc(batch(&vec![0; 1_100_000], 1, |_| {})), MessageTooLarge, false),
    ];
    for (name, bytes, error, tells_log_start_offset) in cases {
        let refusal = refusal(bytes, &rules());
        assert_eq!(
            (refusal.error, refusal.tells_log_start_offset()),
            (error, tells_log_start_offset),
            "{name}"
        );
        assert_eq!(refusal.message(), None, "{name}");
    }

    let old = ProduceRules { produce_version: 6, ..rules() };
    let zstd = refusal(packed_batch(4, &two(), 2), &old);
    assert_eq!((zstd.error, zstd.tells_log_start_offset()), (UnsupportedCompressionType, false));
    let codec = refusal(spoilt(|h| h.attributes = 5), &old);
    assert_eq!((codec.error, codec.tells_log_start_offset()), (UnknownServerError, false));
}

/// Kafka 4.3.1 takes these, too, and stores the bytes as they come.
#[test]
fn a_batch_that_needs_no_change_is_the_received_bytes() {
    let null_header = record(0, 0, Some(b"k"), b"\x02\0\x01");
    let negative_lengths = with_length(6, b"\0\0\0\x0d\x11\0");
    let cases = [
        ("plain", batch(&two(), 2, |_| {})),
        ("producer id -5", batch(&two(), 2, |h| h.producer_id = ProducerId(-5))),
        ("unused attributes", batch(&two(), 2, |h| h.attributes = 0x7f80)),
        ("delete horizon", batch(&two(), 2, |h| h.attributes = 0x40)),
        ("transactional", batch(&two(), 2, |h| h.attributes = 0x10)),
        ("leader epoch", batch(&two(), 2, |h| h.leader_epoch = LeaderEpoch(77))),
        ("null header value", batch(&null_header, 1, |h| h.max_timestamp = TimestampMs(NOW))),
        ("key and value below -1", batch(&negative_lengths, 1, |h| h.max_timestamp = TimestampMs(NOW))),
        ("gzip", packed_batch(1, &two(), 2)),
        ("snappy", packed_batch(2, &two(), 2)),
        ("lz4", packed_batch(3, &two(), 2)),
        ("zstd", packed_batch(4, &two(), 2)),
        (
            "gzip with more behind",
            batch(&[packed(CODECS[1], &two()), b"zzzz".to_vec()].concat(), 2, |h| h.attributes = 1),
        ),
    ];
    let recorded = recorded().map(|(name, _, bytes)| (name, bytes));
    for (name, bytes) in cases.into_iter().chain(recorded) {
        let received = Bytes::from(bytes);
        let checked = check(&received, &rules()).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert_eq!(checked.bytes.as_ptr(), received.as_ptr(), "{name} is not copied");
        assert_eq!(checked.bytes, received, "{name}");
        assert_eq!(checked.header, BatchHeader::read(&received).unwrap(), "{name}");
    }
}

#[test]
fn what_is_no_whole_batch_behind_the_first_is_cut_off() {
    let good = batch(&two(), 2, |_| {});
    for tail in [&b"elevenbytes"[..], &good[..good.len() - 1], &good[..16]] {
        let checked = check(&Bytes::from([&good, tail].concat()), &rules()).unwrap();
        assert_eq!(checked.bytes, good);
    }
}

#[test]
fn records_without_key_are_told_one_by_one_on_a_compacted_topic() {
    let body =
        [record(0, 0, Some(b"a"), b"\0"), record(1, 0, None, b"\0"), record(2, 0, None, b"\0")].concat();
    let compacted = ProduceRules { compacted: true, ..rules() };
    for bytes in [batch(&body, 3, |_| {}), packed_batch(3, &body, 3)] {
        assert!(check(&Bytes::from(bytes.clone()), &rules()).is_ok());
        let refusal = refusal(bytes, &compacted);
        assert_eq!((refusal.error, refusal.tells_log_start_offset()), (BatchError::InvalidRecord, true));
        let indexes: Vec<_> = refusal.record_errors.iter().map(|error| error.batch_index).collect();
        assert_eq!((indexes, refusal.refused_records), (vec![1, 2], 2));
        assert_eq!(
            refusal.message().unwrap(),
            "records refused: 2, the first at index 1: a record without key in a compacted topic"
        );
    }
    let empty_key = batch(&record(0, 0, Some(b""), b"\0"), 1, |_| {});
    assert!(check(&Bytes::from(empty_key), &compacted).is_ok(), "an empty key is a key");

    let malformed_later = [record(0, 0, None, b"\0"), vec![4, 0]].concat();
    let refusal = refusal(batch(&malformed_later, 2, |_| {}), &compacted);
    assert_eq!((refusal.error, refusal.record_errors.len()), (BatchError::InvalidRecord, 0));
}

#[test]
fn timestamps_out_of_range_are_told_one_by_one() {
    let future = record(0, 9_000_000, Some(b"k"), b"\0");
    let refused = refusal(batch(&future, 1, |_| {}), &rules());
    assert_eq!((refused.error, refused.tells_log_start_offset()), (BatchError::InvalidTimestamp, true));
    assert_eq!(refused.record_errors[0].batch_index, 0);

    let mixed = [record(0, 9_000_000, Some(b"k"), b"\0"), record(1, 0, None, b"\0")].concat();
    let refused = refusal(batch(&mixed, 2, |_| {}), &ProduceRules { compacted: true, ..rules() });
    assert_eq!((refused.error, refused.record_errors.len()), (BatchError::InvalidTimestamp, 2));

    let week = ProduceRules { before_max_ms: 7 * 86_400_000, ..rules() };
    let at = |timestamp: i64| {
        batch(&record(0, 0, None, b"\0"), 1, |h| {
            h.base_timestamp = TimestampMs(timestamp);
            h.max_timestamp = TimestampMs(timestamp);
        })
    };
    let error = |timestamp, rules: &ProduceRules| {
        check(&Bytes::from(at(timestamp)), rules).err().map(|refusal| refusal.error)
    };
    let untimely = Some(BatchError::InvalidTimestamp);
    assert_eq!(error(NOW - week.before_max_ms, &week), None);
    assert_eq!(error(NOW - week.before_max_ms - 1, &week), untimely);
    assert_eq!(error(NOW + week.after_max_ms, &week), None);
    assert_eq!(error(NOW + week.after_max_ms + 1, &week), untimely);
    assert_eq!(error(-1, &week), None, "a record without a time");
    assert_eq!(error(-5, &rules()), None);
    assert_eq!(error(i64::MIN, &rules()), untimely, "as Kafka, whose subtraction overflows");
    assert_eq!(error(i64::MAX, &rules()), untimely);
    let append_time = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    assert_eq!(error(i64::MAX, &append_time), None, "the client's clock does not matter");
}

#[test]
fn record_errors_are_bounded_and_counted() {
    let body: Vec<u8> = (0..5000).flat_map(|i| record(i, 0, None, b"\0")).collect();
    let refusal = refusal(batch(&body, 5000, |_| {}), &ProduceRules { compacted: true, ..rules() });
    assert_eq!((refusal.record_errors.len(), refusal.refused_records), (RECORD_ERRORS_MAX, 5000));
}

#[test]
fn log_append_time_goes_into_the_header_and_the_crc() {
    let append_time = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    for code in 0..CODECS.len() {
        let checked = check(&Bytes::from(packed_batch(code, &two(), 2)), &append_time).unwrap();
        assert_eq!(checked.header.attributes, code as i16 | 8);
        assert_eq!(checked.header.max_timestamp, TimestampMs(NOW));
        assert_eq!(checked.header.base_timestamp, TimestampMs(NOW), "the producer's stays");
        assert_eq!(checked.max_timestamp_offset_delta, 0);
        let key = Some(b"k".to_vec());
        assert_eq!(records_of(&checked.bytes), [(0, NOW, key.clone()), (1, NOW, key)]);
        assert_eq!(checked.header, BatchHeader::read(&checked.bytes).unwrap());
    }
    let unused = check(&Bytes::from(batch(&two(), 2, |h| h.attributes = 0x7fc0)), &append_time).unwrap();
    assert_eq!(unused.header.attributes, 0x48);

    let claimed = refusal(batch(&two(), 2, |h| h.attributes = 8), &append_time);
    assert_eq!((claimed.error, claimed.record_errors.len()), (BatchError::InvalidTimestamp, 2));
}

#[test]
fn a_wrong_max_timestamp_or_type_is_put_right() {
    let wrong =
        check(&Bytes::from(batch(&two(), 2, |h| h.max_timestamp = TimestampMs(3))), &rules()).unwrap();
    assert_eq!(wrong.header.max_timestamp, TimestampMs(NOW + 5));
    assert_eq!(wrong.max_timestamp_offset_delta, 1);
    assert_eq!(records_of(&wrong.bytes).len(), 2);

    // Kafka takes a claimed append time for the time of every record, and then drops the claim.
    let claimed = check(&Bytes::from(batch(&two(), 2, |h| h.attributes = 8)), &rules()).unwrap();
    assert_eq!((claimed.header.attributes, claimed.header.max_timestamp), (0, TimestampMs(NOW + 5)));
    let none = batch(&two(), 2, |h| {
        h.attributes = 8;
        h.max_timestamp = TimestampMs::NONE;
    });
    assert_eq!(refusal(none, &rules()).error, BatchError::InvalidTimestamp);
}

#[test]
fn a_topic_with_its_own_compression_gets_the_same_records_in_it() {
    let body: Vec<u8> =
        (0..500).flat_map(|i| record(i, 500 - i64::from(i), Some(&[i as u8]), b"\0")).collect();
    let producer = |header: &mut BatchHeader| {
        header.attributes |= 0x10;
        header.producer_id = ProducerId(5);
        header.producer_epoch = ProducerEpoch(2);
        header.base_sequence = 11;
    };
    for (code, source) in CODECS.into_iter().enumerate() {
        let sent = batch(&packed(source, &body), 500, |header| {
            header.attributes = code as i16;
            producer(header);
        });
        for target in CODECS {
            for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
                let compression_type = TargetCompression::Fixed(target);
                let rules = ProduceRules { compression_type, timestamp_type, ..rules() };
                let checked = check(&Bytes::from(sent.clone()), &rules).unwrap();
                let header = checked.header;
                assert_eq!(header.compression(), Some(target.compression()));
                assert_eq!(header.timestamp_type(), timestamp_type);
                assert_eq!((header.producer_id, header.producer_epoch), (ProducerId(5), ProducerEpoch(2)));
                assert_eq!((header.base_sequence, header.last_offset_delta), (11, 499));
                assert!(header.is_transactional());
                assert_eq!(header, BatchHeader::read(&checked.bytes).unwrap());
                let by_create_time = timestamp_type == TimestampType::CreateTime;
                for (i, record) in (0..).zip(records_of(&checked.bytes)) {
                    let timestamp = if by_create_time { NOW + 500 - i } else { NOW };
                    assert_eq!(record, (i, timestamp, Some(vec![i as u8])));
                }
            }
        }
    }
}

#[test]
fn the_size_limit_counts_the_batch_as_sent_and_as_packed_anew() {
    let body = record(0, 0, Some(&[7; 10_000]), b"\0");
    let small = ProduceRules { max_message_bytes: 1000, ..rules() };
    let sent = packed_batch(4, &body, 1);
    assert!(check(&Bytes::from(sent.clone()), &small).is_ok());
    let plain = TargetCompression::Fixed(Codec::None);
    let refused = refusal(sent, &ProduceRules { compression_type: plain, ..small });
    assert_eq!((refused.error, refused.tells_log_start_offset()), (BatchError::MessageTooLarge, false));

    let bytes = batch(&body, 1, |_| {});
    let size = bytes.len() as u32;
    assert!(check(&Bytes::from(bytes.clone()), &ProduceRules { max_message_bytes: size, ..rules() }).is_ok());
    let refused = refusal(bytes.clone(), &ProduceRules { max_message_bytes: size - 1, ..rules() });
    assert_eq!(refused.error, BatchError::MessageTooLarge);
    let refused = refusal(bytes, &ProduceRules { segment_bytes: size - 1, ..rules() });
    assert_eq!((refused.error, refused.tells_log_start_offset()), (BatchError::RecordListTooLarge, false));
}

#[test]
fn offset_deltas_are_numbered_anew_when_they_are_wrong() {
    let body = [record(5, 0, Some(b"a"), b"\0"), record(5, 5, Some(b"b"), b"\x02\x02h\x01")].concat();
    for (code, codec) in CODECS.into_iter().enumerate() {
        let checked = check(&Bytes::from(packed_batch(code, &body, 2)), &rules()).unwrap();
        assert_eq!(checked.header.compression(), Some(codec.compression()));
        let expected = [(0, NOW, Some(b"a".to_vec())), (1, NOW + 5, Some(b"b".to_vec()))];
        assert_eq!(records_of(&checked.bytes), expected);
    }
}

#[test]
fn coordinators_may_write_control_batches_and_they_stay_uncompressed() {
    let marker = EndMarker { commits: true, coordinator_epoch: 3 };
    let bytes = marker.to_batch(ProducerId(7), ProducerEpoch(0), TimestampMs(NOW));
    let zstd = TargetCompression::Fixed(Codec::Zstd { level: 3 });
    let coordinator = ProduceRules { from_client: false, compression_type: zstd, ..rules() };
    assert_eq!(check(&bytes, &coordinator).unwrap().bytes, bytes);
    assert_eq!(check(&bytes, &rules()).unwrap_err().error, BatchError::InvalidRecord);
}

#[test]
fn a_bomb_is_too_large() {
    let zstd = Codec::Zstd { level: 1 };
    let mut start = vec![0, 0, 0, 1];
    put_varint(&mut start, (UNPACKED_BYTES_MAX + 1) as i32);
    let mut body = packed(zstd, &with_length(UNPACKED_BYTES_MAX as i32 + 100, &start));
    body.extend(packed(zstd, &vec![0; 16 << 20]).repeat(UNPACKED_BYTES_MAX as usize / (16 << 20) + 1));
    let bomb = batch(&body, 1, |header| header.attributes = 4);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(refusal(bomb, &rules()).error, BatchError::MessageTooLarge);
}

/// A batch of random records under random rules, and then damaged.
fn damaged(random: &mut Seeded) -> (Vec<u8>, ProduceRules) {
    let code = random.below(5) as usize;
    let count = 1 + random.below(30) as i32;
    let body: Vec<u8> = (0..count)
        .flat_map(|i| {
            let length = random.below(60) as usize;
            let key = (!random.one_in(4)).then(|| random.bytes(length));
            let headers: &[u8] = if random.one_in(3) { b"\x04\x02h\x02i\x02j\x01" } else { b"\0" };
            record(i, random.below(100) as i64, key.as_deref(), headers)
        })
        .collect();
    let mut body = body;
    for _ in 0..random.below(3) {
        let at = random.below(body.len() as u64) as usize;
        body[at] = random.number() as u8;
    }
    let mut bytes = packed_batch(code, &body, count);
    for _ in 0..random.below(3) {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
    }
    if random.one_in(5) {
        bytes.truncate(random.below(bytes.len() as u64) as usize);
    }
    if !random.one_in(4) {
        mend_crc(&mut bytes);
    }
    let rules = ProduceRules {
        compacted: random.one_in(2),
        from_client: !random.one_in(4),
        timestamp_type: [TimestampType::CreateTime, TimestampType::LogAppendTime][random.below(2) as usize],
        compression_type: match random.below(10) {
            target @ 0..5 => TargetCompression::Fixed(CODECS[target as usize]),
            _ => TargetCompression::Producer,
        },
        ..rules()
    };
    (bytes, rules)
}

#[test]
fn whatever_comes_is_checked_without_panic_and_what_passes_can_be_read() {
    let (mut passed, mut refused) = (0, 0);
    for_each_seed(4000, |mut random| {
        let (bytes, rules) = damaged(&mut random);
        match check(&Bytes::from(bytes), &rules) {
            Ok(checked) if rules.from_client => {
                let records = records_of(&checked.bytes);
                assert_eq!(records.len() as i32, checked.record_count());
                assert!((0..).zip(&records).all(|(i, record)| record.0 == i));
                let at = checked.max_timestamp_offset_delta as usize;
                let max = records.iter().map(|record| record.1).max().unwrap().max(-1);
                assert_eq!(TimestampMs(max), checked.header.max_timestamp);
                assert!(records[..at].iter().all(|record| record.1 < max));
            }
            _ => {}
        }
    });
    for seed in 0..500 {
        let (bytes, rules) = damaged(&mut Seeded::new(seed));
        *if check(&Bytes::from(bytes), &rules).is_ok() { &mut passed } else { &mut refused } += 1;
    }
    assert!(passed > 50 && refused > 50, "{passed} passed, {refused} refused");
}

#[test]
fn records_read_the_same_in_one_piece_and_in_pieces_of_any_size() {
    for_each_seed(3000, |mut random| {
        let (bytes, _) = damaged(&mut random);
        if bytes.len() < HEADER_BYTES {
            return;
        }
        let header =
            BatchHeader { record_count: random.below(40) as i32, ..BatchHeader::read(&bytes).unwrap() };
        let body = &bytes[HEADER_BYTES..];
        let whole: Vec<_> =
            Records::new(&header, body).map(|record| record.map(Shape::from).map_err(|_| ())).collect();
        let pieces = BufReader::with_capacity(1 + random.below(40) as usize, body);
        let by_pieces: Vec<_> = Shapes::new(&header, pieces).map(|shape| shape.map_err(|_| ())).collect();
        assert_eq!(whole, by_pieces);
    });
}
