use uuid::Uuid;

use super::*;
use crate::base::{
    BrokerEpoch, DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, ProducerId, TopicId,
    TopicName,
};

// Values of records that Apache Kafka 4.3.1 wrote into its own `__cluster_metadata-0`.
const FEATURE_LEVEL: &str = "010c00116d657461646174612e76657273696f6e001e00";
const CONFIG_SET: &str = "0104000401146d696e2e696e73796e632e7265706c69636173023100";
const REGISTER_BROKER: &str = "\
    01000400000001007d978f4ea971465b9afc0d38a0c70f0a000000000000000d020a504c41494e544558540a3132372e302e\
    302e314b2800000008116d657461646174612e76657273696f6e0007001e0021656c696769626c652e6c65616465722e7265\
    706c696361732e76657273696f6e0000000100147472616e73616374696f6e2e76657273696f6e0000000200107374726561\
    6d732e76657273696f6e00000001000e67726f75702e76657273696f6e00000001000e6b726166742e76657273696f6e0000\
    0001000e73686172652e76657273696f6e000000010000010001001102a9a4da0c38b118e0fa8889fd545282e6";
const CORDONED: &str = "01110300000001000000000000000d01030101";
const UNFENCED: &str = "01110000000001000000000000000d010001ff";
const TOPIC: &str = "010200076f7264657273040dd83123c14f5193a827e9f4b0db2f00";
const PARTITION: &str = "\
    01030200000000040dd83123c14f5193a827e9f4b0db2f02000000010200000001010100000001000000000000000002a9a4\
    da0c38b118e0fa8889fd545282e600";
const REMOVE_TOPIC: &str = "010900da3b2f3f8dcc4679b1f4a6172f122cbc00";
const CONFIG_TAKEN_BACK: &str = "01040002076f72646572730d726574656e74696f6e2e6d730000";
const PRODUCER_IDS: &str = "010f0000000001000000000000000d00000000000003e800";
const CONTROLLED_SHUTDOWN: &str = "01110100000001000000000000000d01010101";
const LEADER_LOST: &str = "\
    01050200000000dde630d350f747729e920d93df695b42040001010104ffffffff0605020000000107050200000001";
const LEADER_BACK: &str =
    "01050200000000dde630d350f747729e920d93df695b420400050200000001010400000001060101070101";

fn bytes(hex: &str) -> Vec<u8> {
    let hex: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.chunks(2).map(byte).collect()
}
fn decoded(hex: &str) -> Record {
    Record::decode(&bytes(hex)).unwrap()
}
fn config(resource_type: i8, resource_name: &str, name: &str, value: Option<&str>) -> Record {
    Record::Config(ConfigRecord {
        resource_type,
        resource_name: resource_name.to_owned(),
        name: name.to_owned(),
        value: value.map(str::to_owned),
    })
}
fn orders() -> TopicId {
    TopicId::parse("BA3YMSPBT1GTqCfp9LDbLw").unwrap()
}

#[test]
fn records_that_kafka_wrote_are_written_the_same() {
    for hex in [
        FEATURE_LEVEL,
        CONFIG_SET,
        REGISTER_BROKER,
        CORDONED,
        UNFENCED,
        TOPIC,
        PARTITION,
        REMOVE_TOPIC,
        CONFIG_TAKEN_BACK,
        PRODUCER_IDS,
        CONTROLLED_SHUTDOWN,
        LEADER_LOST,
        LEADER_BACK,
        "01140000",
        "01180000",
    ] {
        assert_eq!(decoded(hex).encode(), bytes(hex), "{hex}");
    }
}

#[test]
fn records_that_kafka_wrote_say_what_kafkas_dump_tool_says() {
    let level = FeatureLevelRecord { name: "metadata.version".to_owned(), feature_level: 30 };
    assert_eq!(decoded(FEATURE_LEVEL), Record::FeatureLevel(level));
    assert_eq!(decoded(CONFIG_SET), config(4, "", "min.insync.replicas", Some("1")));
    assert_eq!(decoded(CONFIG_TAKEN_BACK), config(2, "orders", "retention.ms", None));
    let Record::RegisterBroker(broker) = decoded(REGISTER_BROKER) else { panic!("not a registration") };
    assert_eq!((broker.broker_id, broker.broker_epoch, broker.fenced), (NodeId(1), BrokerEpoch(13), true));
    assert_eq!(
        broker.endpoints,
        [BrokerEndpoint {
            name: "PLAINTEXT".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: 19240,
            security_protocol: 0
        }]
    );
    let features: Vec<_> = broker
        .features
        .iter()
        .map(|feature| (feature.name.as_str(), feature.min_supported_version, feature.max_supported_version))
        .collect();
    assert_eq!(
        features,
        [
            ("metadata.version", 7, 30),
            ("eligible.leader.replicas.version", 0, 1),
            ("transaction.version", 0, 2),
            ("streams.version", 0, 1),
            ("group.version", 0, 1),
            ("kraft.version", 0, 1),
            ("share.version", 0, 1),
        ]
    );
    assert_eq!(broker.log_dirs, [DirectoryId::parse("qaTaDDixGOD6iIn9VFKC5g").unwrap()]);
    assert_eq!((broker.rack, broker.cordoned_log_dirs), (None, None));
    assert_eq!(
        decoded(TOPIC),
        Record::Topic(TopicRecord { name: TopicName::new("orders"), topic_id: orders() })
    );
    assert_eq!(
        decoded(PARTITION),
        Record::Partition(PartitionRecord {
            partition: PartitionIndex(0),
            topic_id: orders(),
            replicas: vec![NodeId(1)],
            isr: vec![NodeId(1)],
            removing_replicas: vec![],
            adding_replicas: vec![],
            leader: Some(NodeId(1)),
            leader_recovery: LeaderRecovery::Recovered,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            directories: broker.log_dirs,
            eligible_leader_replicas: vec![],
            last_known_elr: vec![],
        })
    );
    let gone = TopicId::parse("2jsvP43MRnmx9KYXLxIsvA").unwrap();
    assert_eq!(decoded(REMOVE_TOPIC), Record::RemoveTopic(RemoveTopicRecord { topic_id: gone }));
    assert_eq!(
        decoded(PRODUCER_IDS),
        Record::ProducerIds(ProducerIdsRecord {
            broker_id: NodeId(1),
            broker_epoch: BrokerEpoch(13),
            next_producer_id: ProducerId(1000),
        })
    );
    let mut change = BrokerRegistrationChangeRecord::of_fence(NodeId(1), BrokerEpoch(13), Change::Clear);
    assert_eq!(decoded(UNFENCED), Record::BrokerRegistrationChange(change.clone()));
    change.fenced = Change::None;
    change.in_controlled_shutdown = Change::Set;
    assert_eq!(decoded(CONTROLLED_SHUTDOWN), Record::BrokerRegistrationChange(change.clone()));
    change.in_controlled_shutdown = Change::None;
    change.cordoned_log_dirs = Some(vec![]);
    assert_eq!(decoded(CORDONED), Record::BrokerRegistrationChange(change));
    let offsets = TopicId::parse("3eYw01D3R3Kekg2T32lbQg").unwrap();
    let mut change = PartitionChangeRecord {
        isr: Some(vec![]),
        leader: LeaderChange::NoLeader,
        eligible_leader_replicas: Some(vec![NodeId(1)]),
        last_known_elr: Some(vec![NodeId(1)]),
        ..PartitionChangeRecord::of(offsets, PartitionIndex(0))
    };
    assert_eq!(decoded(LEADER_LOST), Record::PartitionChange(change.clone()));
    change.isr = Some(vec![NodeId(1)]);
    change.leader = LeaderChange::Leader(NodeId(1));
    change.eligible_leader_replicas = Some(vec![]);
    change.last_known_elr = Some(vec![]);
    assert_eq!(decoded(LEADER_BACK), Record::PartitionChange(change));
}

#[test]
fn every_record_reads_back_with_all_its_fields() {
    let (one, two) = (vec![NodeId(1)], vec![NodeId(2), NodeId(3)]);
    let directories = vec![DirectoryId::UNASSIGNED, DirectoryId(Uuid::from_u128(99))];
    let topic_id = TopicId(Uuid::from_u128(5));
    for record in [
        Record::UnregisterBroker(UnregisterBrokerRecord {
            broker_id: NodeId(4),
            broker_epoch: BrokerEpoch(5),
        }),
        Record::RegisterBroker(RegisterBrokerRecord {
            broker_id: NodeId(4),
            is_migrating_zk_broker: true,
            incarnation_id: Uuid::from_u128(6),
            broker_epoch: BrokerEpoch(7),
            endpoints: vec![],
            features: vec![],
            rack: Some("r1".to_owned()),
            fenced: false,
            in_controlled_shutdown: true,
            log_dirs: vec![],
            cordoned_log_dirs: Some(directories.clone()),
        }),
        Record::Partition(PartitionRecord {
            partition: PartitionIndex(3),
            topic_id,
            replicas: two.clone(),
            isr: one.clone(),
            removing_replicas: two.clone(),
            adding_replicas: one.clone(),
            leader: None,
            leader_recovery: LeaderRecovery::Recovering,
            leader_epoch: LeaderEpoch(8),
            partition_epoch: PartitionEpoch(9),
            directories: directories.clone(),
            eligible_leader_replicas: one.clone(),
            last_known_elr: two.clone(),
        }),
        Record::PartitionChange(PartitionChangeRecord {
            isr: Some(one.clone()),
            leader: LeaderChange::Leader(NodeId(0)),
            replicas: Some(two.clone()),
            removing_replicas: Some(two.clone()),
            adding_replicas: Some(one.clone()),
            leader_recovery: Some(LeaderRecovery::Recovered),
            eligible_leader_replicas: Some(one),
            last_known_elr: Some(two),
            directories: Some(directories.clone()),
            ..PartitionChangeRecord::of(topic_id, PartitionIndex(1))
        }),
        Record::PartitionChange(PartitionChangeRecord::of(topic_id, PartitionIndex(1))),
        Record::BrokerRegistrationChange(BrokerRegistrationChangeRecord {
            broker_id: NodeId(4),
            broker_epoch: BrokerEpoch(5),
            fenced: Change::Set,
            in_controlled_shutdown: Change::Set,
            log_dirs: Some(directories),
            cordoned_log_dirs: None,
        }),
        Record::ClearElr(ClearElrRecord { topic_name: TopicName::new("") }),
        Record::BeginTransaction,
        Record::AbortTransaction,
    ] {
        assert_eq!(Record::decode(&record.encode()), Ok(record));
    }
}

#[test]
fn records_of_other_types_are_passed_over_and_newer_versions_are_not() {
    // The beginning of a registration of a controller (type 27).
    let controller = bytes("011b000000000143a870b8974b490e");
    assert_eq!(Record::decode(&controller), Ok(Record::Unknown { api_key: 27, version: 0 }));
    assert_eq!(
        Record::decode(&bytes("010303")),
        Err(DecodeError::UnsupportedVersion { api_key: 3, version: 3 })
    );
    assert!(matches!(Record::decode(&bytes("0203")), Err(DecodeError::Malformed { api_key: None, .. })));
}

#[test]
fn no_cut_or_flipped_value_makes_the_reader_panic() {
    for hex in [REGISTER_BROKER, PARTITION, LEADER_LOST, CONFIG_SET, CORDONED] {
        let value = bytes(hex);
        for end in 0..value.len() {
            assert!(Record::decode(&value[..end]).is_err(), "{end} bytes of {hex}");
        }
        for position in 0..value.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = value.clone();
                damaged[position] ^= flip;
                let _ = Record::decode(&damaged);
            }
        }
    }
}
