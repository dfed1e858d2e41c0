use super::*;

/// Keys and values taken from `__consumer_offsets` of Apache Kafka 4.3.1 after a static member of group `grpA` (client
/// id `kcl`, librdkafka) joined and committed, and `kafka-consumer-groups` reset the offsets of group `simpleG`.
const COMMIT_KEY: &str = "00010004677270410008677270746f70696300000001";
const COMMIT_VALUE: &str =
    "00040000000000000008ffffffff01000001a22db011bf01001083bdbadb9f2d4340a614d0368e078e5e";
const GROUP_KEY: &str = "0002000467727041";
const NEW_GROUP_VALUE: &str = "0003000000000000ffffffff000001a22db0023800000000";
const STABLE_GROUP_VALUE: &str = concat!(
    "00030008636f6e73756d657200000001000572616e6765002a696e7374312d30373763386261622d643630322d346234612d386461302d",
    "353162303734306164363032000001a22db0025d00000001002a696e7374312d30373763386261622d643630322d346234612d38646130",
    "2d3531623037343061643630320005696e73743100036b636c000a2f3132372e302e302e31000493e00000afc800000018000100000001",
    "0008677270746f7069630000000000000000000000280000000000010008677270746f7069630000000400000000000000010000000200",
    "00000300000000"
);

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn both_ways(key: &str, value: &str) -> Record {
    let record = Record::decode(&bytes(key), Some(&bytes(value))).unwrap().unwrap();
    let encoded = record.encode();
    assert_eq!(encoded.key, bytes(key));
    assert_eq!(encoded.value.as_deref(), Some(&bytes(value)[..]));
    record
}

#[test]
fn an_offset_reads_and_writes_as_kafka_wrote_it() {
    let record = both_ways(COMMIT_KEY, COMMIT_VALUE);
    let Record::Offset { key, value: Some(value) } = record else { panic!("{record:?}") };
    assert_eq!((key.group.as_str(), key.topic.as_str(), key.partition.0), ("grpA", "grptopic", 1));
    assert_eq!((value.offset, value.leader_epoch, &*value.metadata), (Offset(8), LeaderEpoch::NONE, ""));
    assert_eq!(value.commit_timestamp, TimestampMs(0x1a2_2db0_11bf));
    assert_eq!(value.topic_id.0.to_string(), "83bdbadb-9f2d-4340-a614-d0368e078e5e");
}

#[test]
fn a_group_reads_and_writes_as_kafka_wrote_it() {
    let record = both_ways(GROUP_KEY, NEW_GROUP_VALUE);
    let Record::Group { group, value: Some(value) } = record else { panic!("{record:?}") };
    assert_eq!(group.as_str(), "grpA");
    assert!(value.protocol_type.is_empty() && value.protocol.is_none() && value.leader.is_none());

    let record = both_ways(GROUP_KEY, STABLE_GROUP_VALUE);
    let Record::Group { value: Some(value), .. } = record else { panic!("{record:?}") };
    let [member] = &value.members[..] else { panic!("{value:?}") };
    assert_eq!(value.protocol_type.as_str(), "consumer");
    assert_eq!(value.generation, Generation(1));
    assert_eq!(value.leader.as_ref(), Some(&member.member));
    assert_eq!(member.instance, Some(InstanceId::new("inst1")));
    assert_eq!((&*member.client_id, &*member.client_host), ("kcl", "/127.0.0.1"));
    assert_eq!((member.rebalance_timeout_ms, member.session_timeout_ms), (300_000, 45_000));
    assert_eq!((member.subscription.len(), member.assignment.len()), (24, 40));
}

#[test]
fn tombstones_have_no_value() {
    for key in [COMMIT_KEY, GROUP_KEY] {
        let record = Record::decode(&bytes(key), None).unwrap().unwrap();
        assert!(matches!(record, Record::Offset { value: None, .. } | Record::Group { value: None, .. }));
        assert_eq!(record.encode(), EncodedRecord { key: bytes(key).into(), value: None });
    }
}

#[test]
fn older_and_newer_versions_of_an_offset_are_read() {
    let key = bytes(COMMIT_KEY);
    for (version, value) in [
        (0, "0000000000000000000900016d0000000000000064"),
        (1, "0001000000000000000900016d000000000000006400000000000000c8"),
        (2, "0002000000000000000900016d0000000000000064"),
        (3, "000300000000000000090000000700016d0000000000000064"),
        (4, "0004000000000000000900000007026d000000000000006400"),
    ] {
        let record = Record::decode(&key, Some(&bytes(value))).unwrap().unwrap();
        let Record::Offset { value: Some(read), .. } = &record else { panic!("{record:?}") };
        assert_eq!((read.offset, &*read.metadata, read.commit_timestamp), (Offset(9), "m", TimestampMs(100)));
        assert_eq!(read.leader_epoch, if version >= 3 { LeaderEpoch(7) } else { LeaderEpoch::NONE });
        assert_eq!(read.expire_timestamp, if version == 1 { TimestampMs(200) } else { TimestampMs::NONE });
        let rewritten = record.encode().value.unwrap();
        assert_eq!(rewritten == bytes(value), version == 1 || version == 4, "version {version}");
    }
}

#[test]
fn older_and_newer_versions_of_a_group_are_read() {
    let key = bytes(GROUP_KEY);
    let head = "000163000000050001720001 6c".replace(' ', "");
    let rest = "0000000173000000017 4".replace(' ', "");
    for (version, value) in [
        (0, format!("0000{head}0000000100016c00016900016800000bb8{rest}")),
        (1, format!("0001{head}0000000100016c0001690001680000177000000bb8{rest}")),
        (2, format!("0002{head}00000000000000640000000100016c0001690001680000177000000bb8{rest}")),
        (3, format!("0003{head}00000000000000640000000100016cffff0001690001680000177000000bb8{rest}")),
        (4, "0004026300000005 0272 026c 0000000000000064 02 026c 00 0269 0268 00001770 00000bb8 0273 0274 00 00".replace(' ', "")),
    ] {
        let record = Record::decode(&key, Some(&bytes(&value))).unwrap().unwrap();
        let Record::Group { value: Some(read), .. } = record else { panic!("{record:?}") };
        let [member] = &read.members[..] else { panic!("{read:?}") };
        assert_eq!((read.protocol_type.as_str(), read.generation), ("c", Generation(5)));
        assert_eq!((read.protocol.unwrap().as_str(), read.leader.unwrap().as_str()), ("r", "l"));
        assert_eq!(read.state_timestamp, if version >= 2 { TimestampMs(100) } else { TimestampMs::NONE });
        assert_eq!(member.rebalance_timeout_ms, if version >= 1 { 6000 } else { 3000 }, "version {version}");
        assert_eq!((member.session_timeout_ms, &member.instance), (3000, &None));
        assert_eq!((&member.subscription[..], &member.assignment[..]), (&b"s"[..], &b"t"[..]));
    }
}

#[test]
fn what_belongs_to_other_kinds_of_groups_is_let_be_and_rubbish_is_told() {
    assert_eq!(Record::decode(&bytes("0011000467727041"), Some(&[0, 0])), Ok(None));
    assert_eq!(Record::decode(&bytes("0003000467727041"), Some(&[0, 0])), Err(MalformedRecord));
    assert_eq!(Record::decode(&[], None), Err(MalformedRecord));
    assert_eq!(Record::decode(&bytes(GROUP_KEY), Some(&[0, 9])), Err(MalformedRecord));
    for cut in 0..COMMIT_VALUE.len() / 2 {
        assert_eq!(
            Record::decode(&bytes(COMMIT_KEY), Some(&bytes(COMMIT_VALUE)[..cut])),
            Err(MalformedRecord),
            "cut {cut}"
        );
    }
    for cut in 0..STABLE_GROUP_VALUE.len() / 2 {
        let value = &bytes(STABLE_GROUP_VALUE)[..cut];
        assert_eq!(Record::decode(&bytes(GROUP_KEY), Some(value)), Err(MalformedRecord), "cut {cut}");
    }
}
