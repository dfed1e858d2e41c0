//! Bytes that Apache Kafka 4.3.1 wrote to `__transaction_state` (transaction.version 2, a Java producer), and our own.

use super::*;

const KEY: &str = "0000000474782d61";
/// InitProducerId; the first batch; commit, with the new epoch; complete.
const EMPTY: &str =
    "0001000000000000000000000000ea600000000001a2316c99b0ffffffffffffffff0100080000000000000000";
const ONGOING: &str = "0001000000000000000000000000ea6001020274020000000000000001a2316c9aa9000001a2316c9aa9020008000000000000000002020002";
const PREPARE_COMMIT: &str = "0001000000000000000000010000ea6002020274020000000000000001a2316c9aee000001a2316c9aa9020008000000000000000002020002";
const COMPLETE_COMMIT: &str =
    "0001000000000000000000010000ea600401000001a2316c9afd000001a2316c9aa9020008000000000000000002020002";
/// Aborted when another producer began under the id; its producer; offsets and records in one transaction.
const FENCED: &str = "0001000000000000000000030000ea6003020274020000000000000001a2316c9c6c000001a2316c9bb9020008000000000000000002020002";
const COMPLETE_ABORT: &str =
    "0001000000000000000000030000ea600501000001a2316c9c6e000001a2316c9bb9020008000000000000000002020002";
const OFFSETS: &str = "0001000000000000000000040000ea600102135f5f636f6e73756d65725f6f666673657473020000000300000001a2316c9e96000001a2316c9e96020008000000000000000002020002";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn decoded(value: &str) -> TransactionMetadata {
    let record = Record::decode(&bytes(KEY), Some(&bytes(value))).unwrap().unwrap();
    assert_eq!(record.transactional_id.as_str(), "tx-a");
    record.value.unwrap()
}

#[test]
fn what_kafka_wrote_is_written_again_byte_for_byte() {
    for value in [EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, FENCED, COMPLETE_ABORT, OFFSETS] {
        let record = Record { transactional_id: "tx-a".into(), value: Some(decoded(value)) };
        let encoded = record.encode(TransactionVersion::V2);
        assert_eq!(encoded.key, bytes(KEY));
        assert_eq!(encoded.value.unwrap(), bytes(value), "{value}");
    }
}

#[test]
fn each_step_writes_what_kafka_wrote_for_it() {
    let (empty, ongoing) = (decoded(EMPTY), decoded(ONGOING));
    let (prepared, complete) = (decoded(PREPARE_COMMIT), decoded(COMPLETE_COMMIT));
    let of = |metadata: &TransactionMetadata| metadata.last_update_timestamp;
    let unused = TransactionMetadata::unused(ProducerId(0));
    assert_eq!(unused.initialized(ProducerId(0), ProducerEpoch(0), 60_000, of(&empty)), empty);
    assert_eq!(empty.with_partitions([at("t", 0)], TransactionVersion::V2, of(&ongoing)), ongoing);
    assert_eq!(ongoing.prepared(true, TransactionVersion::V2, ProducerId::NONE, of(&prepared)), prepared);
    assert_eq!(prepared.completed(of(&complete)), complete);
    let (fenced, aborted) = (decoded(FENCED), decoded(COMPLETE_ABORT));
    let before = TransactionMetadata {
        state: TransactionState::Ongoing,
        producer_epoch: ProducerEpoch(2),
        ..fenced.clone()
    };
    assert_eq!(before.fenced(TransactionVersion::V2, of(&fenced)), fenced);
    assert_eq!(fenced.completed(of(&aborted)), aborted);
}

#[test]
fn a_cluster_without_the_feature_has_the_older_layout() {
    let record = Record { transactional_id: "tx-a".into(), value: Some(decoded(ONGOING)) };
    let value = record.encode(TransactionVersion::V0).value.unwrap();
    let text: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected =
        "0000000000000000000000000000ea6001000000010001740000000100000000000001a2316c9aa9000001a2316c9aa9";
    assert_eq!(text, expected);
    let read = Record::decode(&bytes(KEY), Some(&value)).unwrap().unwrap().value.unwrap();
    assert_eq!(read.partitions, decoded(ONGOING).partitions);
    assert_eq!(read.previous_producer_id, ProducerId::NONE);
    let empty = Record { transactional_id: "tx-a".into(), value: Some(decoded(EMPTY)) };
    assert_eq!(empty.encode(TransactionVersion::V0).value.unwrap()[17..21], [0xff; 4]);
}

#[test]
fn a_record_reads_back_and_what_is_cut_does_not() {
    let mut metadata = decoded(OFFSETS);
    metadata.next_producer_id = ProducerId(77);
    metadata.partitions.extend([at("a", 3), at("a", 5), at("t", 1)]);
    for version in [TransactionVersion::V0, TransactionVersion::V2] {
        let record = Record { transactional_id: "x".into(), value: Some(metadata.clone()) };
        let encoded = record.encode(version);
        let value = encoded.value.unwrap();
        let read = Record::decode(&encoded.key, Some(&value)).unwrap().unwrap();
        match version {
            TransactionVersion::V2 => assert_eq!(read, record),
            _ => assert_eq!(read.value.unwrap().partitions, metadata.partitions),
        }
        for length in 0..value.len() {
            assert!(Record::decode(&encoded.key, Some(&value[..length])).is_err(), "{length} bytes");
        }
        assert_eq!(Record::decode(&encoded.key, None).unwrap().unwrap().value, None);
    }
    assert_eq!(Record::decode(&[0, 9, 0, 0], Some(&[])), Ok(None));
}
