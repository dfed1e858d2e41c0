use crate::group::records::Record;

/// Keys and values taken from `__consumer_offsets` of Apache Kafka 4.3.1: two Java members of group `dyn`, one of them static,
/// that came and went; a member of the classic protocol in a consumer group; what a pattern stands for; the end of a group.
const RECORDS: [(&str, Option<&str>); 12] = [
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
    (
        concat!(
            "0005000f6b3137302d682d3134396339383065002c636173656b69742d61356463663539622d643064622d343833302d",
            "383134322d356230643862333961393264"
        ),
        Some(concat!(
            "0000000008636173656b69740b2f3132372e302e302e3102106b3137302d742d62656432333639390100002710000100",
            "2a0100002710020672616e67651c000000000001000f6b3137302d742d6265643233363939ffffffff0000"
        )),
    ),
    (
        "0010000f6b3136362d672d356663303133343600136b3136362d72652d65646536613134312d2e2a",
        Some(concat!(
            "000004176b3136362d72652d65646536613134312d6c61746572156b3136362d72652d65646536613134312d6f6e6515",
            "6b3136362d72652d65646536613134312d74776f0000000000000e41000001a2318686c500"
        )),
    ),
    ("0004000f6b3137302d682d3134396339383065", None),
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
