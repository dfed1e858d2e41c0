use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, EndTxnRequest, FindCoordinatorRequest, InitProducerIdRequest, ProduceRequest,
    ProducerId, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;

use onrush::base::{ProducerEpoch, TimestampMs};
use onrush::record::BatchBuilder;
use onrush::runtime::Runtime;
use onrush::runtime::sim::{SimMachine, SimRuntime};

use super::book::{Book, Ending, Transaction};
use super::reader::{connect, pause};
use super::{PARTITIONS, TOPIC};
use crate::client::{Client, Lost, topic_name};

const TRANSACTIONS_OF_A_WRITER: usize = 12;
/// How long a transaction may take, and how long a writer dawdles that lets it be aborted.
const TIMEOUT_MS: i32 = 1000;
const DAWDLE_MS: u64 = 1600;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Before KIP-890: partitions are added first, the epoch stays.
    Older,
    /// KIP-890: partitions join with their first batch, each end gives a new epoch.
    WithNewEpochs,
}

/// Who the writer is, and the next sequence of each partition.
#[derive(Clone)]
struct Identity {
    producer_id: i64,
    epoch: i16,
    sequences: BTreeMap<i32, i32>,
}

/// Why a writer does not go on as who it was.
#[derive(Debug)]
enum Halt {
    Lost,
    /// The broker says that somebody else has begun, or that time was over.
    Refused,
}

impl From<Lost> for Halt {
    fn from(_: Lost) -> Halt {
        Halt::Lost
    }
}

/// One producer, which writes numbered lines in transactions.
pub struct Writer {
    runtime: SimRuntime,
    broker: SimMachine,
    number: usize,
    id: &'static str,
    protocol: Protocol,
    book: Rc<RefCell<Book>>,
    next_line: usize,
}

fn is_passing(code: i16) -> bool {
    // Not ready, not here, somebody's transaction is not complete, not enough replicas (the coordinator is not ready, KIP-890).
    matches!(code, 3 | 5 | 6 | 7 | 14..=16 | 19 | 51 | 56)
}

impl Writer {
    pub fn new(
        runtime: SimRuntime,
        broker: SimMachine,
        number: usize,
        id: &'static str,
        protocol: Protocol,
        book: Rc<RefCell<Book>>,
    ) -> Writer {
        Writer { runtime, broker, number, id, protocol, book, next_line: 0 }
    }

    pub async fn run(mut self) {
        let mut done = 0;
        while done < TRANSACTIONS_OF_A_WRITER {
            let mut client = connect(&self.runtime, &self.broker).await;
            let Ok(mut identity) = self.begin(&mut client).await else {
                pause(&self.runtime, 10).await;
                continue;
            };
            if self.runtime.random().is_multiple_of(3) {
                pause(&self.runtime, self.runtime.random() % 200).await;
            }
            while done < TRANSACTIONS_OF_A_WRITER {
                done += 1;
                match self.transact(&mut client, identity).await {
                    Ok(next) => identity = next,
                    Err(_) => break,
                }
            }
            // Whoever was fenced lets the other one do something.
            pause(&self.runtime, 20 + self.runtime.random() % 300).await;
        }
    }

    fn transactional_id(&self) -> TransactionalId {
        TransactionalId(StrBytes::from_static_str(self.id))
    }

    async fn begin(&self, client: &mut Client) -> Result<Identity, Halt> {
        let find = FindCoordinatorRequest::default().with_key_type(1).with_key(self.transactional_id().0);
        while client.call(1, &find).await?.error_code != 0 {
            pause(&self.runtime, 10).await;
        }
        let request = InitProducerIdRequest::default()
            .with_transactional_id(Some(self.transactional_id()))
            .with_transaction_timeout_ms(TIMEOUT_MS)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1);
        loop {
            let response = client.call(4, &request).await?;
            match response.error_code {
                0 => {
                    return Ok(Identity {
                        producer_id: response.producer_id.0,
                        epoch: response.producer_epoch,
                        sequences: BTreeMap::new(),
                    });
                }
                code if is_passing(code) => pause(&self.runtime, 5).await,
                code => panic!("a new producer is refused with {code}"),
            }
        }
    }

    /// Writes one transaction, and enters how it ended. Gives who the writer is after it.
    async fn transact(&mut self, client: &mut Client, mut identity: Identity) -> Result<Identity, Halt> {
        let mut lines = Vec::new();
        let written = self.write_some(client, &mut identity, &mut lines).await;
        let dawdles = self.runtime.random().is_multiple_of(10);
        let commits = !self.runtime.random().is_multiple_of(4);
        let mut ending = Ending::Aborted;
        let result = match written {
            // It may go on only after an abort that is sure; a new beginning is one.
            Err(halt) => Err(halt),
            Ok(()) => {
                if dawdles {
                    pause(&self.runtime, DAWDLE_MS).await;
                }
                self.end(client, identity, commits, &mut ending).await
            }
        };
        if let Err(Halt::Refused) = &result {
            let mut book = self.book.borrow_mut();
            *(if dawdles { &mut book.timed_out } else { &mut book.fenced }) += 1;
        }
        self.book.borrow_mut().ended(Transaction { writer: self.number, lines, ending });
        result
    }

    async fn write_some(
        &mut self,
        client: &mut Client,
        identity: &mut Identity,
        lines: &mut Vec<(i32, String)>,
    ) -> Result<(), Halt> {
        let first = (self.runtime.random() % 3) as i32;
        let count = 1 + (self.runtime.random() % 3) as i32;
        let partitions: Vec<i32> = (0..count).map(|place| (first + place) % PARTITIONS).collect();
        if self.protocol == Protocol::Older {
            self.add(client, identity, &partitions).await?;
        }
        for partition in partitions {
            for _ in 0..1 + self.runtime.random() % 2 {
                self.next_line += 1;
                let filler = "x".repeat((self.runtime.random() % 300) as usize);
                let line = format!("{} {} {filler}", self.number, self.next_line);
                lines.push((partition, line.clone()));
                self.produce(client, identity, partition, &line).await?;
            }
        }
        Ok(())
    }

    async fn add(&self, client: &mut Client, identity: &Identity, partitions: &[i32]) -> Result<(), Halt> {
        let topic = AddPartitionsToTxnTopic::default()
            .with_name(topic_name(TOPIC))
            .with_partitions(partitions.to_vec());
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(self.transactional_id())
            .with_v3_and_below_producer_id(ProducerId(identity.producer_id))
            .with_v3_and_below_producer_epoch(identity.epoch)
            .with_v3_and_below_topics(vec![topic]);
        loop {
            let response = client.call(3, &request).await?;
            let partitions =
                response.results_by_topic_v3_and_below.iter().flat_map(|topic| &topic.results_by_partition);
            match partitions.map(|partition| partition.partition_error_code).max().unwrap_or(0) {
                0 => return Ok(()),
                code if is_passing(code) => pause(&self.runtime, 5).await,
                _ => return Err(Halt::Refused),
            }
        }
    }

    async fn produce(
        &self,
        client: &mut Client,
        identity: &mut Identity,
        partition: i32,
        line: &str,
    ) -> Result<(), Halt> {
        let sequence = identity.sequences.entry(partition).or_insert(0);
        let mut batch = BatchBuilder::new().transactional().producer(
            onrush::base::ProducerId(identity.producer_id),
            ProducerEpoch(identity.epoch),
            *sequence,
        );
        batch.push(TimestampMs(self.runtime.wall_clock().0), None, Some(line.as_bytes()));
        let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch.finish()));
        let topic = TopicProduceData::default().with_name(topic_name(TOPIC)).with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_transactional_id(Some(self.transactional_id()))
            .with_acks(-1)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![topic]);
        let version = if self.protocol == Protocol::Older { 11 } else { 12 };
        loop {
            let response = client.call(version, &request).await?;
            match response.responses[0].partition_responses[0].error_code {
                0 => {
                    *sequence += 1;
                    return Ok(());
                }
                code if is_passing(code) => pause(&self.runtime, 5).await,
                _ => return Err(Halt::Refused),
            }
        }
    }

    /// Ends the transaction; asks again, on other connections too, until it is told how it ended.
    async fn end(
        &self,
        client: &mut Client,
        identity: Identity,
        commits: bool,
        ending: &mut Ending,
    ) -> Result<Identity, Halt> {
        let request = EndTxnRequest::default()
            .with_transactional_id(self.transactional_id())
            .with_producer_id(ProducerId(identity.producer_id))
            .with_producer_epoch(identity.epoch)
            .with_committed(commits);
        let version = if self.protocol == Protocol::Older { 3 } else { 5 };
        // Once a commit may have been taken, only its own answer tells more.
        let unsure = if commits { Ending::Unknown } else { Ending::Aborted };
        loop {
            match client.call(version, &request).await {
                Err(Lost) => {
                    *ending = unsure;
                    *client = connect(&self.runtime, &self.broker).await;
                }
                Ok(response) => match response.error_code {
                    0 => {
                        *ending = if commits { Ending::Committed } else { Ending::Aborted };
                        return Ok(match self.protocol {
                            Protocol::Older => identity,
                            Protocol::WithNewEpochs => Identity {
                                producer_id: response.producer_id.0,
                                epoch: response.producer_epoch,
                                sequences: BTreeMap::new(),
                            },
                        });
                    }
                    // It is being ended, as was asked for before, or not.
                    51 if commits && *ending == Ending::Aborted => {
                        *ending = Ending::Unknown;
                        pause(&self.runtime, 5).await;
                    }
                    code if is_passing(code) => {
                        // The coordinator may have stored the end and been lost before it answered.
                        *ending = if commits { Ending::Unknown } else { Ending::Aborted };
                        pause(&self.runtime, 5).await;
                    }
                    _ => return Err(Halt::Refused),
                },
            }
        }
    }
}
