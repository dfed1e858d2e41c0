//! One consumer copies numbers in transactions that carry its group's offset along, while the broker dies again and again: whatever
//! is committed is there once and in order, and the offset says the same.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    EndTxnRequest, FetchRequest, FindCoordinatorRequest, GroupId, InitProducerIdRequest, OffsetFetchRequest,
    ProduceRequest, ProducerId as WireProducerId, TransactionalId, TxnOffsetCommitRequest,
};
use kafka_protocol::protocol::StrBytes;

use onrush::base::{ProducerEpoch, ProducerId, ShardId, TimestampMs};
use onrush::record::{BatchBuilder, Batches, ControlType};
use onrush::runtime::sim::{SimMachine, SimRuntime};
use onrush::runtime::{Lane, Runtime};

use crate::broker::{SimBroker, address};
use crate::client::{Client, Lost, topic_name};
use crate::for_each_seed;

const TOPIC: &str = "copied";
const PARTITIONS: i64 = 2;
const NUMBERS: i64 = 80;
const SETTINGS: &[(&str, &str)] = &[
    ("num.partitions", "2"),
    ("offsets.topic.num.partitions", "2"),
    ("transaction.state.log.num.partitions", "2"),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "200"),
    ("log.roll.ms", "500"),
];
const UNSTABLE_OFFSET_COMMIT: i16 = 88;

/// Why the copier begins anew.
#[derive(Debug)]
struct Setback;

impl From<Lost> for Setback {
    fn from(_: Lost) -> Setback {
        Setback
    }
}

/// A refusal that passes: nothing is there yet after a start, or the transaction before is not complete.
fn passing(code: i16) -> Result<(), Setback> {
    match code {
        0 => Ok(()),
        14..=16 | 19 | 51 => Err(Setback),
        code => panic!("error {code}"),
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

async fn pause(runtime: &SimRuntime) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
}

/// A producer under its current id and epoch.
struct Copier<'a> {
    client: Client,
    runtime: &'a SimRuntime,
    id: i64,
    epoch: i16,
}

async fn begin<'a>(runtime: &'a SimRuntime, broker: &SimMachine) -> Result<Copier<'a>, Setback> {
    let mut client = Client::connect(runtime, address(broker)).await?;
    while client.partitions_with_leader(TOPIC).await? == 0 {
        pause(runtime).await;
    }
    for key_type in [0, 1] {
        let find = FindCoordinatorRequest::default().with_key(text("c")).with_key_type(key_type);
        passing(client.call(3, &find).await?.error_code)?;
    }
    let init = InitProducerIdRequest::default()
        .with_transactional_id(Some(TransactionalId(text("c"))))
        .with_transaction_timeout_ms(60_000)
        .with_producer_id(WireProducerId(-1))
        .with_producer_epoch(-1);
    let answer = client.call(4, &init).await?;
    passing(answer.error_code)?;
    Ok(Copier { client, runtime, id: answer.producer_id.0, epoch: answer.producer_epoch })
}

impl Copier<'_> {
    /// What the group has committed, once nothing may change that.
    async fn position(&mut self) -> Result<i64, Setback> {
        loop {
            let topic = OffsetFetchRequestTopic::default()
                .with_name(topic_name(TOPIC))
                .with_partition_indexes(vec![0]);
            let request = OffsetFetchRequest::default()
                .with_group_id(GroupId(text("c")))
                .with_topics(Some(vec![topic]))
                .with_require_stable(true);
            let answer = self.client.call(7, &request).await?;
            passing(answer.error_code)?;
            let partition = &answer.topics[0].partitions[0];
            match partition.error_code {
                UNSTABLE_OFFSET_COMMIT => pause(self.runtime).await,
                code => {
                    passing(code)?;
                    return Ok(partition.committed_offset.max(0));
                }
            }
        }
    }

    /// Copies `numbers` in one transaction.
    async fn copy(&mut self, numbers: std::ops::Range<i64>) -> Result<(), Setback> {
        let batch_of = |partition: i64| -> Option<PartitionProduceData> {
            let mut batch = BatchBuilder::new().transactional().producer(
                ProducerId(self.id),
                ProducerEpoch(self.epoch),
                0,
            );
            for number in numbers.clone().filter(|number| number % PARTITIONS == partition) {
                batch.push(TimestampMs(1_750_000_000_000), None, Some(&number.to_be_bytes()));
            }
            let index = i32::try_from(partition).unwrap();
            let data = PartitionProduceData::default().with_index(index);
            (!batch.is_empty()).then(|| data.with_records(Some(batch.finish())))
        };
        let data = (0..PARTITIONS).filter_map(batch_of).collect();
        let topic = TopicProduceData::default().with_name(topic_name(TOPIC)).with_partition_data(data);
        let produce = ProduceRequest::default()
            .with_transactional_id(Some(TransactionalId(text("c"))))
            .with_acks(-1)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![topic]);
        let answer = self.client.call(12, &produce).await?;
        for partition in &answer.responses[0].partition_responses {
            passing(partition.error_code)?;
        }
        let partition = TxnOffsetCommitRequestPartition::default()
            .with_partition_index(0)
            .with_committed_offset(numbers.end);
        let topic = TxnOffsetCommitRequestTopic::default()
            .with_name(topic_name(TOPIC))
            .with_partitions(vec![partition]);
        let commit = TxnOffsetCommitRequest::default()
            .with_transactional_id(TransactionalId(text("c")))
            .with_group_id(GroupId(text("c")))
            .with_producer_id(WireProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_topics(vec![topic]);
        let answer = self.client.call(5, &commit).await?;
        passing(answer.topics[0].partitions[0].error_code)?;
        let end = EndTxnRequest::default()
            .with_transactional_id(TransactionalId(text("c")))
            .with_producer_id(WireProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_committed(!self.runtime.random().is_multiple_of(4));
        let answer = self.client.call(5, &end).await?;
        passing(answer.error_code)?;
        (self.id, self.epoch) = (answer.producer_id.0, answer.producer_epoch);
        Ok(())
    }
}

async fn copy_all(runtime: SimRuntime, broker: SimMachine) {
    loop {
        match copy_some(&runtime, &broker).await {
            Ok(()) => return,
            Err(Setback) => pause(&runtime).await,
        }
    }
}

async fn copy_some(runtime: &SimRuntime, broker: &SimMachine) -> Result<(), Setback> {
    let mut copier = begin(runtime, broker).await?;
    loop {
        let position = copier.position().await?;
        if position >= NUMBERS {
            return Ok(());
        }
        let count = 1 + (runtime.random() % 5).cast_signed();
        copier.copy(position..(position + count).min(NUMBERS)).await?;
    }
}

/// The numbers that a reader of committed records gets of one partition.
async fn read_committed(runtime: &SimRuntime, broker: &SimMachine, partition: i32) -> Vec<i64> {
    let mut client = Client::connect(runtime, address(broker)).await.expect("the broker is up");
    let (mut numbers, mut next) = (Vec::new(), 0);
    loop {
        let wanted = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(next)
            .with_partition_max_bytes(400);
        let request = FetchRequest::default()
            .with_isolation_level(1)
            .with_max_bytes(400)
            .with_session_epoch(-1)
            .with_topics(vec![
                FetchTopic::default().with_topic(topic_name(TOPIC)).with_partitions(vec![wanted]),
            ]);
        let answer = client.call(12, &request).await.expect("the broker is up");
        let answer = &answer.responses[0].partitions[0];
        assert_eq!(answer.error_code, 0);
        let records: &Bytes = answer.records.as_ref().expect("records, if none");
        if records.is_empty() {
            assert_eq!(answer.last_stable_offset, answer.high_watermark, "nothing stays open");
            assert_eq!(next, answer.last_stable_offset, "a reader gets there");
            return numbers;
        }
        let mut ahead = answer.aborted_transactions.clone().unwrap_or_default();
        ahead.sort_by_key(|aborted| aborted.first_offset);
        let mut ahead = ahead.into_iter().peekable();
        let mut aborting = BTreeSet::new();
        for batch in Batches::new(records) {
            let header = &batch.header;
            while let Some(aborted) = ahead.next_if(|aborted| aborted.first_offset <= header.last_offset().0)
            {
                aborting.insert(aborted.producer_id.0);
            }
            let unpacked = batch.unpack().expect("a sound batch can be read");
            let mut values = unpacked.records().map(|record| record.expect("a sound record can be read"));
            if header.is_control() {
                let key = values.next().and_then(|record| record.key).and_then(ControlType::read_key);
                if key == Some(ControlType::Abort) {
                    aborting.remove(&header.producer_id.0);
                }
            } else if !aborting.contains(&header.producer_id.0) {
                let number = |value: &[u8]| i64::from_be_bytes(value.try_into().expect("a number of ours"));
                numbers.extend(values.filter_map(|record| record.value.map(number)));
            }
            next = header.next_offset().0;
        }
    }
}

#[test]
fn copied_numbers_are_there_once_and_in_order_whatever_dies() {
    for_each_seed(8, |simulation| {
        let [machine, copiers] = ["broker", "copiers"].map(|name| simulation.machine(name));
        let chance = simulation.client();
        let mut broker = SimBroker::start(&machine, 2, SETTINGS);
        let runtime = copiers.runtime(ShardId(0));
        runtime.spawn(Lane::Data, copy_all(runtime.clone(), machine.clone()));
        while copiers.task_count() > 0 {
            simulation.run_for(Duration::from_millis(chance.random() % 600));
            match chance.random() % 3 {
                0 => machine.crash(),
                1 => machine.kill(),
                _ => broker.stop(simulation).expect("a broker without trouble stops in order"),
            }
            broker = SimBroker::start(&machine, 1 + (chance.random() % 3) as u16, SETTINGS);
        }
        simulation.run_for(Duration::from_secs(2));
        let reader = simulation.client();
        for partition in 0..PARTITIONS {
            let expected: Vec<i64> = (0..NUMBERS).filter(|number| number % PARTITIONS == partition).collect();
            let reading = (reader.clone(), machine.clone(), i32::try_from(partition).unwrap());
            let read =
                simulation.block_on(async move { read_committed(&reading.0, &reading.1, reading.2).await });
            assert_eq!(read, expected, "partition {partition}");
        }
    });
}
