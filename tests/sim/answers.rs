//! What a broker answers to requests that ask for something odd: as Kafka 4.3.1 answers them.

use std::future::Future;

use bytes::Bytes;
use kafka_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    DeleteRecordsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest, ProduceRequest, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;

use onrush::base::{ProducerEpoch, ProducerId, TimestampMs};
use onrush::record::{BatchBuilder, BatchHeader, CRC_COVERAGE_START, crc_of};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, Line, Lost, topic_name};
use crate::for_each_seed;

const TOPIC: &str = "lines";

/// Runs `scenario` against a broker of three shards whose topic has three partitions.
fn with_broker<F: Future<Output = Result<(), Lost>>>(scenario: impl Fn(Client) -> F) {
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 3, &[("num.partitions", "3")]);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = loop {
                if let Ok(client) = Client::connect(&runtime, address(&machine)).await {
                    break client;
                }
            };
            while client.partitions_with_leader(TOPIC).await.expect("the broker runs") < 3 {}
            scenario(client).await.expect("no connection is lost");
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

/// One batch of one record with the header as `change` makes it.
fn batch(change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut builder = BatchBuilder::new();
    builder.push(TimestampMs(1_750_000_000_000), None, Some(b"line"));
    let bytes = builder.finish();
    let mut header = BatchHeader::read(&bytes).expect("it was built");
    change(&mut header);
    let mut changed = header.to_bytes().to_vec();
    changed.extend_from_slice(&bytes[changed.len()..]);
    header.crc = crc_of(&changed);
    changed[..CRC_COVERAGE_START].copy_from_slice(&header.to_bytes()[..CRC_COVERAGE_START]);
    changed.into()
}

fn of_producer(header: &mut BatchHeader, base_sequence: i32) {
    (header.producer_id, header.producer_epoch) = (ProducerId(4000), ProducerEpoch(0));
    header.base_sequence = base_sequence;
}

async fn produce(
    client: &mut Client,
    acks: i16,
    transactional_id: Option<&'static str>,
    records: Bytes,
) -> Result<PartitionProduceResponse, Lost> {
    let data = PartitionProduceData::default().with_index(0).with_records(Some(records));
    let topic = TopicProduceData::default().with_name(topic_name(TOPIC)).with_partition_data(vec![data]);
    let request = ProduceRequest::default()
        .with_acks(acks)
        .with_timeout_ms(30_000)
        .with_transactional_id(transactional_id.map(|id| TransactionalId(StrBytes::from_static_str(id))))
        .with_topic_data(vec![topic]);
    let mut response = client.call(9, &request).await?;
    Ok(response.responses.remove(0).partition_responses.remove(0))
}

async fn delete_records(client: &mut Client, offsets: &[i64]) -> Result<Vec<(i16, i64)>, Lost> {
    let asked = |offset: &i64| DeleteRecordsPartition::default().with_partition_index(0).with_offset(*offset);
    let topic = DeleteRecordsTopic::default()
        .with_name(topic_name(TOPIC))
        .with_partitions(offsets.iter().map(asked).collect());
    let request = DeleteRecordsRequest::default().with_timeout_ms(30_000).with_topics(vec![topic]);
    let response = client.call(2, &request).await?;
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    Ok(partitions.map(|partition| (partition.error_code, partition.low_watermark)).collect())
}

/// Fetches each of `partitions` from its offset on.
async fn fetch(
    client: &mut Client,
    isolation_level: i8,
    bytes_max: i32,
    partitions: &[(i32, i64)],
) -> Result<Vec<PartitionData>, Lost> {
    let asked = |(partition, offset): &(i32, i64)| {
        FetchPartition::default()
            .with_partition(*partition)
            .with_fetch_offset(*offset)
            .with_partition_max_bytes(bytes_max)
    };
    let topic = FetchTopic::default()
        .with_topic(topic_name(TOPIC))
        .with_partitions(partitions.iter().map(asked).collect());
    let request = FetchRequest::default()
        .with_session_epoch(-1)
        .with_isolation_level(isolation_level)
        .with_max_bytes(bytes_max)
        .with_topics(vec![topic]);
    let mut response = client.call(12, &request).await?;
    Ok(response.responses.remove(0).partitions)
}

#[test]
fn what_the_log_refuses_comes_with_its_start() {
    with_broker(async |mut client| {
        for sequence in 0..3 {
            let sound = batch(|header| of_producer(header, sequence));
            assert_eq!(produce(&mut client, -1, None, sound).await?.base_offset, i64::from(sequence));
        }
        assert_eq!(delete_records(&mut client, &[2]).await?, [(0, 2)]);
        let gap = batch(|header| of_producer(header, 7));
        let control = batch(|header| header.attributes |= 32);
        let damaged = batch(|header| header.magic = 1);
        for (records, error_code, log_start_offset) in [(gap, 45, 2), (control, 87, 2), (damaged, 87, -1)] {
            let answer = produce(&mut client, -1, None, records).await?;
            assert_eq!(
                (answer.error_code, answer.log_start_offset, answer.base_offset),
                (error_code, log_start_offset, -1)
            );
        }
        Ok(())
    });
}

#[test]
fn a_batch_in_a_transaction_that_nobody_has_begun_is_refused() {
    with_broker(async |mut client| {
        let transactional = || {
            batch(|header| {
                of_producer(header, 0);
                header.attributes |= 16;
            })
        };
        assert_eq!(produce(&mut client, -1, None, transactional()).await?.error_code, 53);
        // There is no coordinator to ask; the client tries again.
        assert_eq!(produce(&mut client, -1, Some("t"), transactional()).await?.error_code, 19);
        assert_eq!(fetch(&mut client, 0, 1024, &[(0, 0)]).await?[0].last_stable_offset, 0);
        Ok(())
    });
}

#[test]
fn unknown_acks_are_refused_after_what_is_wrong_with_the_request_and_before_what_the_log_refuses() {
    with_broker(async |mut client| {
        for (records, error_code) in
            [(Bytes::new(), 87), (batch(|header| header.attributes |= 32), 21), (batch(|_| {}), 21)]
        {
            let answer = produce(&mut client, 2, None, records).await?;
            assert_eq!((answer.error_code, answer.log_start_offset), (error_code, -1));
        }
        Ok(())
    });
}

#[test]
fn of_partitions_on_several_shards_only_the_first_batch_comes_whole() {
    with_broker(async |mut client| {
        for partition in 0..3 {
            assert_eq!(client.produce(TOPIC, partition, "line").await?, Answer::Done(0));
        }
        let offsets = [(2, 0), (1, 1), (0, 1)];
        let nonsense = fetch(&mut client, 0, -1, &offsets).await?;
        let codes: Vec<i16> = nonsense.iter().map(|read| read.error_code).collect();
        assert_eq!(codes, [-1, 0, 0], "a limit below 0 is looked at when there is something to read");
        for bytes_max in [0, 1] {
            let read = fetch(&mut client, 0, bytes_max, &[(2, 0), (1, 0), (0, 0)]).await?;
            let holds: Vec<bool> =
                read.iter().map(|one| one.records.as_ref().is_some_and(|r| !r.is_empty())).collect();
            assert_eq!(holds, [true, false, false], "{bytes_max}");
        }
        Ok(())
    });
}

#[test]
fn aborted_transactions_are_null_unless_committed_records_were_looked_for() {
    with_broker(async |mut client| {
        assert_eq!(client.produce(TOPIC, 0, "line").await?, Answer::Done(0));
        let list = |read: Vec<PartitionData>| {
            (read[0].error_code, read[0].aborted_transactions.as_ref().map(Vec::len))
        };
        assert_eq!(list(fetch(&mut client, 1, 1024, &[(0, 0)]).await?), (0, Some(0)));
        assert_eq!(list(fetch(&mut client, 1, 1024, &[(0, 1)]).await?), (0, Some(0)), "at the end");
        assert_eq!(list(fetch(&mut client, 0, 1024, &[(0, 0)]).await?), (0, None));
        assert_eq!(list(fetch(&mut client, 1, 1024, &[(0, 7)]).await?), (1, None));
        assert_eq!(list(fetch(&mut client, 0, 1024, &[(9, 0)]).await?), (3, Some(0)));
        assert_eq!(list(fetch(&mut client, 2, 1024, &[(0, 0)]).await?), (-1, Some(0)), "no such level");
        Ok(())
    });
}

#[test]
fn a_topic_that_is_asked_for_is_unknown_once_and_then_there() {
    with_broker(async |mut client| {
        for version in 0..=13 {
            let mut ask = async |name: &str, may_create: bool| {
                let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
                let request = MetadataRequest::default()
                    .with_topics(Some(vec![topic]))
                    .with_allow_auto_topic_creation(may_create);
                let topic = client.call(version, &request).await?.topics.remove(0);
                Ok::<_, Lost>((topic.error_code, topic.partitions.len(), topic.topic_id.is_nil()))
            };
            let has_no_id = version < 10;
            let name = format!("asked.in-{version}");
            if version >= 4 {
                assert_eq!(ask(&name, false).await?, (3, 0, true), "{version}");
                assert_eq!(ask(&name, false).await?, (3, 0, true), "{version}: not made");
            }
            assert_eq!(ask(&name, true).await?, (3, 0, true), "{version}");
            assert_eq!(ask(&name, true).await?, (0, 3, has_no_id), "{version}");
            for _ in 0..2 {
                assert_eq!(ask("no topic", true).await?, (17, 0, true), "{version}");
                assert_eq!(ask(&name.replace('.', "_"), true).await?, (3, 0, true), "{version}: too like");
            }
        }
        Ok(())
    });
}

#[test]
fn a_partition_named_twice_is_answered_once() {
    with_broker(async |mut client| {
        for offset in 0..3 {
            assert_eq!(client.produce(TOPIC, 0, "line").await?, Answer::Done(offset));
        }
        assert_eq!(delete_records(&mut client, &[3, 1]).await?, [(0, 1)], "the last one counts");
        let entry = |value: &str| {
            let mut builder = BatchBuilder::new();
            builder.push(TimestampMs(0), None, Some(value.as_bytes()));
            PartitionProduceData::default().with_index(1).with_records(Some(builder.finish()))
        };
        let topic = TopicProduceData::default()
            .with_name(topic_name(TOPIC))
            .with_partition_data(vec![entry("first"), entry("last")]);
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
        assert_eq!(client.call(9, &request).await?.responses[0].partition_responses.len(), 1);
        let line = Line { offset: 0, value: "last".into() };
        assert_eq!(client.fetch(TOPIC, 1, 0).await?, Answer::Done(vec![line]));
        let latest = ListOffsetsPartition::default().with_timestamp(-1).with_current_leader_epoch(-1);
        let topic =
            |partitions| ListOffsetsTopic::default().with_name(topic_name(TOPIC)).with_partitions(partitions);
        let asked = [topic(vec![latest.clone(), latest.clone()]), topic(vec![])];
        let response = client.call(7, &ListOffsetsRequest::default().with_topics(asked.to_vec())).await?;
        let answered: Vec<_> = response.topics.iter().flat_map(|topic| &topic.partitions).collect();
        assert_eq!((answered.len(), answered[0].error_code), (1, 42));
        let fenced = topic(vec![latest.with_current_leader_epoch(-5)]);
        let response = client.call(7, &ListOffsetsRequest::default().with_topics(vec![fenced])).await?;
        assert_eq!(response.topics[0].partitions[0].error_code, 74);
        Ok(())
    });
}
