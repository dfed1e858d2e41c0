use crate::group::records::Record;

/// Keys and values taken from `__consumer_offsets` of Apache Kafka 4.3.1: two Java members of group `dyn`, one of them static,
/// that came and went.
const RECORDS: [(&str, Option<&str>); 9] = [
    (
        "0005000364796e0016707452325f415a6a53695756724f5f6f666f77534e67",
        Some("000006696e73743100056b636c320b2f3132372e302e302e31020463676101000493e00001000100"),
    ),
    ("0003000364796e", Some("000000000002010008a17da28801d8f76b")),
    (
        "0007000364796e0016707452325f415a6a53695756724f5f6f666f77534e67",
        Some("000002be760f171f5c4f0ab90d3376eab07db205000000000000000100000002000000030000"),
    ),
    ("0006000364796e", Some("000000000002010008000001a22ffd3dde")),
    (
        "0008000364796e0016707452325f415a6a53695756724f5f6f666f77534e67",
        Some(concat!(
            "000000000002000000000002be760f171f5c4f0ab90d3376eab07db205000000000000000100000002000000030100",
            "1105000000020000000200000002000000020100"
        )),
    ),
    ("0008000364796e0016367a6c787579696f5477575776763873553569356877", Some("0000000000020000000000010100")),
    ("0003000364796e", Some("00000000000500")),
    ("0005000364796e0016367a6c787579696f5477575776763873553569356877", None),
    ("0008000364796e0016707452325f415a6a53695756724f5f6f666f77534e67", None),
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

#[test]
fn records_of_consumer_groups_read_and_write_as_kafka_wrote_them() {
    for (key, value) in RECORDS {
        let (key, value) = (bytes(key), value.map(bytes));
        let record = Record::decode(&key, value.as_deref()).unwrap().unwrap();
        let encoded = record.encode();
        assert_eq!(encoded.key, key, "{record:?}");
        assert_eq!(encoded.value.as_deref(), value.as_deref(), "{record:?}");
    }
}
