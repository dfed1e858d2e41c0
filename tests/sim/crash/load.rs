//! Writers, readers and an administrator, who run beside the shards and note what they are promised.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future;

use onrush::base::{Offset, PartitionIndex, ProducerEpoch, ShardId, TimestampMs, TopicName, TopicPartition};
use onrush::metadata::{NewTopic, TopicToDelete};
use onrush::partition::{AppendError, AppendOrigin, IsolationLevel, ReadError, ReadRequest, Verification};
use onrush::record::{BatchBuilder, Batches, CheckedBatch, Codec};
use onrush::router::shard_of;
use onrush::runtime::sim::{SimMachine, SimRuntime, Simulation};
use onrush::runtime::{File, Lane, Runtime};
use onrush::shard::{AppendOrder, AppendRefusal, Appended, FOR_EVER, QueryRefusal, ReadOrder, WatchOrder};

use super::model::{
    COMPACTED, LARGE, NAME_HEADER, REMADE, RecordName, SHRINKING, Sent, SharedModel, Style, index_of,
};
use super::server::SimRouter;

const READ_BYTES_MAX: u64 = 64 * 1024;
/// Batches that one idempotent writer has in flight at most, as Kafka's clients do.
const IN_FLIGHT_MAX: u64 = 5;
/// `delete.retention.ms` of the topic that is compacted.
pub const DELETE_RETENTION_MS: i64 = 30;

/// All that works on one broker, from its start until its process ends.
#[derive(Clone)]
pub struct Load {
    runtime: SimRuntime,
    router: Rc<SimRouter>,
    pub model: SharedModel,
    /// Nobody is to begin anything any more.
    is_over: Rc<Cell<bool>>,
    /// Writers, readers and administrators that have not ended.
    at_work: Rc<Cell<u32>>,
}

/// Where the batches of a partition begin and end, and the bytes of some of them.
pub struct Fetched {
    pub high_watermark: Offset,
    pub bytes: Bytes,
}

impl Load {
    pub fn new(machine: &SimMachine, router: Rc<SimRouter>, model: SharedModel) -> Load {
        let runtime = machine.runtime(ShardId(0));
        Load { runtime, router, model, is_over: Rc::default(), at_work: Rc::default() }
    }

    /// Lets everybody end what is begun, and waits until they have: as connections do when a broker stops.
    pub fn end(&self, simulation: &Simulation) {
        self.is_over.set(true);
        simulation.run_until(|| self.at_work.get() == 0);
    }

    fn spawn(&self, work: impl Future<Output = ()> + 'static) {
        let at_work = self.at_work.clone();
        at_work.set(at_work.get() + 1);
        self.runtime.spawn(Lane::Data, async move {
            work.await;
            at_work.set(at_work.get() - 1);
        });
    }

    /// Lets writers and readers of all topics go on where they stood.
    pub fn begin(&self) {
        let partitions = self.model.borrow().partitions();
        for partition in partitions {
            self.begin_partition(partition);
        }
    }

    /// Beside them, topics are made and deleted, and records deleted.
    pub fn begin_administrator(&self) {
        let load = self.clone();
        self.spawn(async move { load.administer().await });
    }

    fn begin_partition(&self, partition: TopicPartition) {
        let reading = self.clone();
        self.spawn(async move { reading.read(partition).await });
        let writing = self.clone();
        self.spawn(async move {
            let mut is_served = false;
            let count = writing.model.borrow().writers.len();
            for number in 0..count {
                let resumes = {
                    let model = writing.model.borrow();
                    let writer = &model.writers[number];
                    writer.partition == partition && !writer.is_done
                };
                if resumes {
                    is_served = true;
                    writing.begin_writer(number);
                }
            }
            if !is_served {
                writing.begin_new_writer(partition, true).await;
                let is_large = writing.model.borrow().style_of(partition) == Style::Large;
                if !is_large && writing.one_in(2) {
                    writing.begin_new_writer(partition, false).await;
                }
            }
        });
    }

    async fn begin_new_writer(&self, partition: TopicPartition, is_idempotent: bool) {
        let producer_id = match is_idempotent {
            true => {
                let Ok(id) = self.router.next_producer_id().await else { return };
                assert!(self.model.borrow_mut().producer_ids.insert(id), "producer id {id} is given twice");
                Some(id)
            }
            false => None,
        };
        let number = self.model.borrow_mut().add_writer(partition, producer_id);
        self.begin_writer(number);
    }

    fn begin_writer(&self, number: usize) {
        let load = self.clone();
        self.spawn(async move {
            let is_idempotent = load.model.borrow().writers[number].producer_id.is_some();
            match is_idempotent {
                true => load.write_idempotent(number).await,
                false => load.write_once(number).await,
            }
        });
    }

    /// Sends each batch once, and gives up what is refused.
    async fn write_once(self, number: usize) {
        let partition = self.model.borrow().writers[number].partition;
        while !self.is_over.get() {
            let count = 1 + self.below(4) as u32;
            let sent = self.model.borrow_mut().writers[number].send_next(count);
            match self.send(number, sent).await {
                Some(Ok(appended)) => self.promise_batch(number, sent, appended),
                Some(Err(AppendRefusal::UnknownTopicOrPartition)) if self.has_ended(partition) => return,
                _ => self.pause(20).await,
            }
            if self.one_in(3) {
                self.pause(10).await;
            }
        }
    }

    /// Sends batches, up to five at a time, until each is answered; now and then one of them twice, or one that was answered.
    async fn write_idempotent(self, number: usize) {
        let partition = self.model.borrow().writers[number].partition;
        let style = self.model.borrow().style_of(partition);
        while !self.is_over.get() {
            let mut batches = Vec::new();
            {
                let mut model = self.model.borrow_mut();
                let writer = &mut model.writers[number];
                if writer.unanswered.is_empty() {
                    batches.extend(writer.last_answered.filter(|_| self.one_in(6)).map(|(sent, _)| sent));
                    let (batches_max, records_max) = match style {
                        // All of them together are written through.
                        Style::Large => (IN_FLIGHT_MAX, 1),
                        _ => (1 + self.below(IN_FLIGHT_MAX) * self.below(2), 4),
                    };
                    for _ in 0..batches_max {
                        let sent = writer.send_next(1 + self.below(records_max) as u32);
                        writer.unanswered.push_back(sent);
                    }
                }
                batches.extend(writer.unanswered.iter());
                if self.one_in(3) {
                    batches.push(*writer.unanswered.back().expect("there is something to send"));
                }
            }
            let sending: Vec<_> = batches.iter().map(|sent| self.send(number, *sent)).collect();
            let (mut is_refused, mut is_out_of_order) = (false, false);
            for (sent, answer) in batches.into_iter().zip(sending) {
                match answer.await {
                    Some(Ok(appended)) => self.promise_batch(number, sent, appended),
                    Some(Err(AppendRefusal::UnknownTopicOrPartition)) if self.has_ended(partition) => return,
                    Some(Err(AppendRefusal::Refused {
                        error: AppendError::OutOfOrderSequenceNumber,
                        ..
                    })) => {
                        is_out_of_order = true;
                    }
                    _ => is_refused = true,
                }
            }
            if is_out_of_order && !is_refused {
                let writer = self.model.borrow().writers[number].clone();
                assert!(
                    writer.was_cut,
                    "{partition}: writer {number} goes on with {:?} and is refused as out of order",
                    writer.unanswered
                );
                self.model.borrow_mut().writers[number].is_done = true;
                return self.begin_new_writer_later(partition).await;
            }
            if style == Style::Large {
                self.pause(60).await;
            } else if is_refused {
                self.pause(20).await;
            } else if self.one_in(3) {
                self.pause(10).await;
            }
        }
    }

    async fn begin_new_writer_later(&self, partition: TopicPartition) {
        Box::pin(self.begin_new_writer(partition, true)).await
    }

    /// Has the batch on its way when it returns.
    fn send(
        &self,
        number: usize,
        sent: Sent,
    ) -> impl Future<Output = Option<Result<Appended, AppendRefusal>>> + use<> {
        let (partition, producer_id, style) = {
            let model = self.model.borrow();
            let writer = &model.writers[number];
            (writer.partition, writer.producer_id, model.style_of(writer.partition))
        };
        let mut batch = BatchBuilder::new();
        if let Some(producer_id) = producer_id {
            batch = batch.producer(producer_id, ProducerEpoch(0), sent.first as i32);
        }
        let named = |record| RecordName { writer: number as u32, number: record };
        if style == Style::Keyed {
            batch = batch.codec(match named(sent.first).mixed() >> 32 & 7 {
                0 => Codec::Lz4,
                1 => Codec::Zstd { level: 1 },
                _ => Codec::None,
            });
        }
        let now = self.runtime.wall_clock();
        for name in (sent.first..sent.first + sent.count).map(named) {
            let (key, value) = (name.key(style), name.value(style));
            let headers = [(NAME_HEADER, Some(&name.to_bytes()[..]))];
            batch.push_with_headers(now, Some(&key), value.as_deref(), &headers);
            if value.is_none() {
                self.model.borrow_mut().tombstones.entry(name).or_insert(now);
            }
        }
        let batch = CheckedBatch::ours(batch.finish());
        let origin = AppendOrigin::Client { verification: Verification::Unasked };
        let deadline = self.runtime.now() + FOR_EVER;
        let answer = self.router.on(shard_of(partition, self.router.owner_count()), move |shard| {
            shard.append(vec![AppendOrder { partition, batch, origin }], deadline)
        });
        async move { answer.await.map(|mut results| results.remove(0)) }
    }

    fn promise_batch(&self, number: usize, sent: Sent, appended: Appended) {
        let mut model = self.model.borrow_mut();
        let writer = &mut model.writers[number];
        let (partition, offset) = (writer.partition, appended.base_offset.0);
        assert_eq!(
            appended.last_offset.0 - offset + 1,
            i64::from(sent.count),
            "{number}: {sent:?}, {appended:?}"
        );
        if let Some((last, at)) = writer.last_answered {
            assert!(last != sent || at == offset, "{number}: {sent:?} at {at}, then at {offset}");
        }
        if writer.unanswered.contains(&sent) {
            writer.unanswered.retain(|unanswered| *unanswered != sent);
            writer.last_answered = Some((sent, offset));
        }
        if writer.unanswered.is_empty() {
            writer.was_cut = false;
        }
        for i in 0..sent.count {
            let record = RecordName { writer: number as u32, number: sent.first + i };
            model.promise(partition, offset + i64::from(i), record);
        }
    }

    /// Reads the partition from its beginning on, and goes on as more comes.
    async fn read(self, partition: TopicPartition) {
        let mut next = 0;
        let style = self.model.borrow().style_of(partition);
        while !self.is_over.get() {
            match self.fetch(partition, next).await {
                Ok(fetched) if fetched.bytes.is_empty() => {
                    self.wait_for_more(partition, fetched.high_watermark).await;
                }
                Ok(fetched) => {
                    let (records, end) = records_of(&fetched.bytes, style);
                    for (offset, record) in records {
                        if offset >= next {
                            self.model.borrow_mut().promise(partition, offset, record);
                        }
                    }
                    next = end;
                }
                Err(QueryRefusal::UnknownTopicOrPartition) if self.has_ended(partition) => return,
                Err(QueryRefusal::Refused(ReadError::OffsetOutOfRange)) => {
                    next = self.log_start(partition).await.unwrap_or(next).max(next);
                    self.pause(5).await;
                }
                Err(_) => self.pause(20).await,
            }
        }
    }

    /// Some batches from the one that holds `offset` on, in whole.
    pub async fn fetch(&self, partition: TopicPartition, offset: i64) -> Result<Fetched, QueryRefusal> {
        let request = ReadRequest {
            fetch_offset: Offset(offset),
            current_leader_epoch: None,
            last_fetched_epoch: None,
            isolation: IsolationLevel::ReadUncommitted,
        };
        let order = ReadOrder { partition, request, bytes_max: READ_BYTES_MAX };
        let fetched =
            self.router.on(shard_of(partition, self.router.owner_count()), move |shard| async move {
                let read = shard.read(&[order], READ_BYTES_MAX, true).await.remove(0)?;
                let bytes = match &read.slice {
                    None => Bytes::new(),
                    Some(slice) => slice
                        .file
                        .read_at(slice.position, slice.bytes as usize)
                        .await
                        .map_err(|_| QueryRefusal::KafkaStorageError)?,
                };
                Ok(Fetched { high_watermark: read.plan.high_watermark, bytes })
            });
        fetched.await.unwrap_or(Err(QueryRefusal::ShardStopped))
    }

    pub async fn log_start(&self, partition: TopicPartition) -> Result<i64, QueryRefusal> {
        let owner = shard_of(partition, self.router.owner_count());
        let start =
            self.router.on(owner, move |shard| async move { shard.log_start_offset(partition).await });
        start.await.unwrap_or(Err(QueryRefusal::ShardStopped)).map(|offset| offset.0)
    }

    async fn wait_for_more(&self, partition: TopicPartition, seen_end: Offset) {
        let order = WatchOrder { partition, seen_end, committed_only: false };
        let owner = shard_of(partition, self.router.owner_count());
        let rung = self.router.wait_on(owner, move |shard| shard.watch(vec![order]));
        let late = self.runtime.sleep_until(self.runtime.now() + Duration::from_millis(500));
        future::or(async { rung.await.unwrap_or(()) }, late).await;
    }

    async fn administer(self) {
        while !self.is_over.get() {
            match self.below(6) {
                0..=2 => self.delete_records().await,
                3 => self.delete_topic().await,
                _ => self.create_topic(REMADE).await,
            }
            self.pause(8).await;
        }
    }

    /// Makes a topic of one to three partitions unless there is one of this name.
    pub async fn create_topic(&self, name: &str) {
        {
            let mut model = self.model.borrow_mut();
            if model.topics.values().any(|topic| topic.name == name) {
                return;
            }
            model.asked.insert(name.to_owned());
        }
        let segment_bytes = match name {
            COMPACTED => 1500 + self.below(3_000),
            LARGE => 3_500_000,
            _ => 2000 + self.below(20_000),
        };
        let retention_bytes = match name {
            SHRINKING => "10000",
            LARGE => "1000000",
            _ => "-1",
        };
        let topic = NewTopic {
            name: name.to_owned(),
            partition_count: if [LARGE, COMPACTED].contains(&name) { 1 } else { 1 + self.below(3) as i32 },
            replication_factor: -1,
            assignments: Vec::new(),
            configs: [
                ("internal.segment.bytes", segment_bytes.to_string()),
                ("index.interval.bytes", "500".to_owned()),
                ("file.delete.delay.ms", "20".to_owned()),
                ("retention.bytes", retention_bytes.to_owned()),
                ("cleanup.policy", if name == COMPACTED { "compact" } else { "delete" }.to_owned()),
                ("min.cleanable.dirty.ratio", "0.3".to_owned()),
                ("delete.retention.ms", DELETE_RETENTION_MS.to_string()),
            ]
            .map(|(name, value)| (name.to_owned(), Some(value)))
            .to_vec(),
        };
        let decided =
            self.router.decide(move |controller, seed| controller.create_topics(&[topic], false, seed));
        let Ok(mut created) = decided.await else { return };
        let created = created.remove(0).result.expect("the topic can be made");
        {
            let mut model = self.model.borrow_mut();
            model.asked.remove(name);
            model.add_topic(created.topic_id, name, created.partition_count as usize);
        }
        for index in 0..created.partition_count {
            self.begin_partition(TopicPartition {
                topic_id: created.topic_id,
                partition: PartitionIndex(index),
            });
        }
    }

    async fn delete_topic(&self) {
        let found = {
            let mut model = self.model.borrow_mut();
            let topic = model.topics.iter_mut().find(|(_, topic)| topic.name == REMADE);
            topic.map(|(id, topic)| {
                topic.is_ending = true;
                *id
            })
        };
        let Some(topic_id) = found else { return };
        let topic = TopicToDelete { name: None, topic_id };
        let decided = self.router.decide(move |controller, _| controller.delete_topics(&[topic]));
        if let Ok(mut deleted) = decided.await {
            deleted.remove(0).result.expect("the topic is there");
            self.model.borrow_mut().remove_topic(topic_id);
        }
    }

    async fn delete_records(&self) {
        let asked = {
            let mut model = self.model.borrow_mut();
            let partitions = model.partitions();
            if partitions.is_empty() {
                return;
            }
            let partition = partitions[self.below(partitions.len() as u64) as usize];
            let topic = model.topics[&partition.topic_id].name.clone();
            if topic == COMPACTED {
                return;
            }
            let promises = model.promises(partition).expect("it is one of the model's");
            let Some((last, _)) = promises.records.last_key_value() else { return };
            let before = promises.log_start + self.below((last + 2 - promises.log_start) as u64) as i64;
            promises.log_start_asked = promises.log_start_asked.max(before);
            (partition, TopicName::new(&topic), before)
        };
        let (partition, topic, before) = asked;
        if let Ok(log_start) = self.router.delete_records(topic, partition, Offset(before)).await
            && let Some(promises) = self.model.borrow_mut().promises(partition)
        {
            promises.log_start = promises.log_start.max(log_start.0);
            let kept = promises.records.split_off(&promises.log_start);
            promises.records = kept;
        }
    }

    /// The broker's wall clock.
    pub fn now(&self) -> TimestampMs {
        self.runtime.wall_clock()
    }

    fn has_ended(&self, partition: TopicPartition) -> bool {
        let model = self.model.borrow();
        let topic = model.topics.get(&partition.topic_id);
        let lives =
            topic.is_some_and(|topic| !topic.is_ending && index_of(partition) < topic.partitions.len());
        assert!(!lives, "{partition} is not known any more");
        true
    }

    async fn pause(&self, ms_max: u64) {
        let pause = Duration::from_micros(self.below(ms_max * 1000));
        self.runtime.sleep_until(self.runtime.now() + pause).await;
    }

    fn below(&self, bound: u64) -> u64 {
        self.runtime.random() % bound
    }

    fn one_in(&self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Every record of whole batches with its offset, and the offset after them. Panics when a batch is damaged, or a record is not
/// as it was written.
pub fn records_of(bytes: &[u8], style: Style) -> (Vec<(i64, RecordName)>, i64) {
    let mut records = Vec::new();
    let mut end = 0;
    for batch in Batches::new(bytes) {
        assert!(batch.crc_matches(), "a reader gets a damaged batch");
        let unpacked = batch.unpack().expect("a sound batch can be read");
        for record in unpacked.records() {
            let record = record.expect("a sound record can be read");
            records.push((record.offset.0, RecordName::parse(&record, style)));
        }
        end = batch.header.next_offset().0;
    }
    (records, end)
}
