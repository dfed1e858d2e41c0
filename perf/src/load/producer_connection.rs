//! One producer's connection to one broker: which batch goes out next, and what is done with the answers.

use std::collections::VecDeque;
use std::sync::Arc;

use mio::{Registry, Token};

use super::connection::Connection;
use super::shared::Shared;
use super::tally::Tally;
use crate::verify::{Sent, SentStream};
use crate::wire::admin::Failure;
use crate::wire::produce::{self, PARTITION_TAIL, PartitionAnswer, TAIL};
use crate::wire::refusal::{DUPLICATE_SEQUENCE_NUMBER, OUT_OF_ORDER_SEQUENCE_NUMBER, is_retriable, name_of};
use crate::workload::batch::{Stamp, Template};
use crate::workload::settings::Acks;

/// From this length on the unchanging end of a batch is sent from where it lies; shorter ones are copied.
const TAIL_BYTES_MIN: usize = 8 * 1024;
/// Kafka's `retry.backoff.ms` and `retry.backoff.max.ms`.
const RETRY_BACKOFF_NS: u64 = 100_000_000;
const RETRY_BACKOFF_MAX_NS: u64 = 1_000_000_000;
/// Kafka's `delivery.timeout.ms`.
const DELIVERY_TIMEOUT_NS: u64 = 120_000_000_000;

pub struct ProducerConnection {
    shared: Arc<Shared>,
    connection: Connection,
    producer: u32,
    streams: Vec<Stream>,
    next_stream: usize,
    correlation_id: i32,
    in_flight: VecDeque<Request>,
    /// The batches of the requests in flight, in their order.
    batches: VecDeque<SentBatch>,
    /// Planned times of requests that wait for room, in order. Bounded by what is planned until the run's end.
    waiting: VecDeque<u64>,
    retries: Retries,
    answers: Vec<PartitionAnswer>,
}

/// One partition of this producer.
struct Stream {
    partition: i32,
    /// Number of the next record.
    next_sequence: u64,
    turn: usize,
}

#[derive(Clone, Copy)]
struct Request {
    correlation_id: i32,
    planned_ns: u64,
    batch_count: usize,
}

#[derive(Clone, Copy)]
struct SentBatch {
    stream: usize,
    turn: usize,
    sequence: u64,
    planned_ns: u64,
}

/// Batches that were refused and may be sent again: one after the other, once nothing is in flight.
#[derive(Default)]
struct Retries {
    batches: Vec<SentBatch>,
    first_refused_ns: u64,
    not_before_ns: u64,
    backoff_ns: u64,
    last_code: i16,
}

impl ProducerConnection {
    pub fn open(
        shared: &Arc<Shared>,
        producer: u32,
        address: &str,
        partitions: &[i32],
        registry: &Registry,
        token: Token,
    ) -> Result<ProducerConnection, Failure> {
        let streams = partitions.iter().map(|partition| Stream {
            partition: *partition,
            next_sequence: 0,
            turn: producer as usize + *partition as usize,
        });
        let count = shared.workload.producers.count.max(1);
        Ok(ProducerConnection {
            shared: Arc::clone(shared),
            connection: Connection::open(address, registry, token)?,
            producer,
            streams: streams.collect(),
            // Producers begin evenly spread over the partitions.
            next_stream: producer as usize * partitions.len() / count,
            correlation_id: 0,
            in_flight: VecDeque::new(),
            batches: VecDeque::new(),
            waiting: VecDeque::new(),
            retries: Retries::default(),
            answers: Vec::new(),
        })
    }

    pub fn plan(&mut self, planned_ns: u64) {
        self.waiting.push_back(planned_ns);
    }

    /// Sends what was planned, as far as there is room.
    pub fn send_planned(&mut self, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        while self.has_room()
            && let Some(planned_ns) = self.waiting.pop_front()
        {
            if self.waiting.is_empty() {
                tally.lateness.record(now_ns.saturating_sub(planned_ns));
            }
            self.send_next(planned_ns);
        }
        self.end_turn(now_ns, tally)
    }

    /// Sends as much as there is room for.
    pub fn send_all(&mut self, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        if self.acks() == Acks::None {
            // Without answers the room is that of the socket.
            if self.in_flight.is_empty() && self.connection.out.is_empty() {
                (0..self.shared.workload.producers.in_flight).for_each(|_| self.send_next(now_ns));
            }
        } else {
            while self.has_room() {
                self.send_next(now_ns);
            }
        }
        self.end_turn(now_ns, tally)
    }

    /// Sends no new batch, but what was begun and what was refused.
    pub fn send_rest(&mut self, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        self.end_turn(now_ns, tally)
    }

    fn end_turn(&mut self, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        self.send_retry(now_ns)?;
        self.connection.flush()?;
        if self.acks() == Acks::None && self.connection.out.is_empty() {
            while let Some(request) = self.in_flight.pop_front() {
                self.count_batches(request, tally);
            }
        }
        Ok(())
    }

    /// Reads answers. Errors: a refusal that no second try heals, what is no answer, a broken connection.
    pub fn receive(&mut self, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        self.connection.receive()?;
        let mut answers = std::mem::take(&mut self.answers);
        let mut outcome = Ok(());
        while let Some(frame) = self.connection.next_frame()? {
            answers.clear();
            let topic = &self.shared.produce_topic;
            let read = produce::read_answer(frame, topic, |answer| answers.push(answer));
            outcome = match (read, self.in_flight.pop_front()) {
                (Ok(correlation_id), Some(request)) if request.correlation_id == correlation_id => {
                    self.take_answers(request, &answers, now_ns, tally)
                }
                _ => Err(format!("{} sent what answers no Produce request", self.connection.address())),
            };
            if outcome.is_err() {
                break;
            }
        }
        self.answers = answers;
        outcome
    }

    fn take_answers(
        &mut self,
        request: Request,
        answers: &[PartitionAnswer],
        now_ns: u64,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        if answers.len() != request.batch_count {
            let address = self.connection.address();
            return Err(format!("{address} answers {} of {} batches", answers.len(), request.batch_count));
        }
        if answers.iter().all(|answer| answer.error_code == 0) {
            tally.produce_latency.record(now_ns.saturating_sub(request.planned_ns));
            self.count_batches(request, tally);
            if !self.retries.batches.is_empty() && self.in_flight.is_empty() {
                self.retries.backoff_ns = 0;
            }
            return Ok(());
        }
        let mut refused = 0;
        for _ in 0..request.batch_count {
            let batch = self.batches.pop_front().expect("each request in flight has its batches there");
            let partition = self.streams[batch.stream].partition;
            let answer = answers.iter().find(|answer| answer.partition == partition);
            let code = answer.map_or(-1, |answer| answer.error_code);
            if code == 0 || code == DUPLICATE_SEQUENCE_NUMBER {
                self.count_batch(&batch, tally);
                continue;
            }
            tally.count_error(code);
            refused += 1;
            let is_follower = code == OUT_OF_ORDER_SEQUENCE_NUMBER && self.is_idempotent();
            if !is_retriable(code) && !is_follower {
                let (topic, code) = (&self.shared.topic.name, name_of(code));
                return Err(format!("partition {partition} of {topic} refused a batch: {code}"));
            }
            self.retries.add(batch, code, now_ns);
        }
        if refused == 0 {
            tally.produce_latency.record(now_ns.saturating_sub(request.planned_ns));
            tally.produced.requests += 1;
        }
        Ok(())
    }

    fn count_batches(&mut self, request: Request, tally: &mut Tally) {
        tally.produced.requests += 1;
        for _ in 0..request.batch_count {
            let batch = self.batches.pop_front().expect("each request in flight has its batches there");
            self.count_batch(&batch, tally);
        }
    }

    fn count_batch(&self, batch: &SentBatch, tally: &mut Tally) {
        let template = self.template(batch);
        tally.produced.records += u64::from(template.record_count());
        tally.produced.bytes += template.length() as u64;
    }

    fn acks(&self) -> Acks {
        self.shared.workload.producers.acks
    }

    fn is_idempotent(&self) -> bool {
        self.shared.workload.producers.idempotent
    }

    fn has_room(&self) -> bool {
        self.retries.batches.is_empty() && self.in_flight.len() < self.shared.workload.producers.in_flight
    }

    /// Nothing is in flight, waiting to be sent, or to be sent again.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.retries.batches.is_empty() && self.connection.out.is_empty()
    }

    /// Gives up what was planned and not sent, in order.
    pub fn take_waiting(&mut self) -> VecDeque<u64> {
        std::mem::take(&mut self.waiting)
    }

    /// Appends a request with the next batches.
    fn send_next(&mut self, planned_ns: u64) {
        let count = self.shared.workload.producers.partitions_per_request.min(self.streams.len());
        let first = self.batches.len();
        for _ in 0..count {
            let index = self.next_stream;
            self.next_stream = (index + 1) % self.streams.len();
            let stream = &mut self.streams[index];
            let batch =
                SentBatch { stream: index, turn: stream.turn, sequence: stream.next_sequence, planned_ns };
            let template = self.shared.templates.get(stream.partition, stream.turn);
            stream.next_sequence += u64::from(template.record_count());
            stream.turn += 1;
            self.batches.push_back(batch);
        }
        self.put_request(first, planned_ns);
    }

    /// Appends a request with the batches from `first` on.
    fn put_request(&mut self, first: usize, planned_ns: u64) {
        let shared = Arc::clone(&self.shared);
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let (batches, streams) = (&self.batches, &self.streams);
        let template = |batch: &SentBatch| shared.templates.get(streams[batch.stream].partition, batch.turn);
        let lengths = batches.range(first..).map(|batch| template(batch).length());
        shared.produce_head.put(self.connection.out.own(), self.correlation_id, lengths);
        for index in first..self.batches.len() {
            let batch = self.batches[index];
            let partition = self.streams[batch.stream].partition;
            let template = shared.templates.get(partition, batch.turn);
            let stamp = self.stamp(&batch);
            if template.is_compressed() {
                shared.planned_times.put(
                    stamp.producer_id,
                    partition,
                    stamp.base_sequence(),
                    batch.planned_ns,
                );
            }
            let own = self.connection.out.own();
            produce::put_partition(own, partition, template.length());
            if shared.verifies {
                template.put_full(own, &stamp);
            } else {
                template.put_light_head(own, &stamp);
                if template.tail().len() < TAIL_BYTES_MIN {
                    own.extend_from_slice(template.tail());
                } else {
                    self.connection.out.push_tail(template);
                }
            }
            self.connection.out.own().push(PARTITION_TAIL);
        }
        self.connection.out.own().extend_from_slice(&TAIL);
        let batch_count = self.batches.len() - first;
        self.in_flight.push_back(Request { correlation_id: self.correlation_id, planned_ns, batch_count });
    }

    fn template(&self, batch: &SentBatch) -> &Arc<Template> {
        self.shared.templates.get(self.streams[batch.stream].partition, batch.turn)
    }

    fn stamp(&self, batch: &SentBatch) -> Stamp {
        let none = (-1, -1);
        let (producer_id, producer_epoch) =
            self.shared.producer_ids.get(self.producer as usize).copied().unwrap_or(none);
        Stamp {
            run: self.shared.run,
            producer: self.producer,
            sequence: batch.sequence,
            planned_ns: batch.planned_ns,
            unix_ms: self.shared.clock.unix_ms(batch.planned_ns),
            producer_id,
            producer_epoch,
        }
    }

    /// One refused batch at a time, the oldest first, when all that was in flight is answered.
    fn send_retry(&mut self, now_ns: u64) -> Result<(), Failure> {
        let retries = &mut self.retries;
        if retries.batches.is_empty() || !self.in_flight.is_empty() || now_ns < retries.not_before_ns {
            return Ok(());
        }
        if now_ns - retries.first_refused_ns > DELIVERY_TIMEOUT_NS {
            let (address, code) = (self.connection.address(), name_of(retries.last_code));
            return Err(format!("{address} has refused a batch for two minutes, the last time with {code}"));
        }
        let key = |index: &usize| (retries.batches[*index].stream, retries.batches[*index].sequence);
        let oldest = (0..retries.batches.len()).min_by_key(key).expect("it is not empty");
        let batch = retries.batches.swap_remove(oldest);
        self.batches.push_back(batch);
        self.put_request(self.batches.len() - 1, batch.planned_ns);
        Ok(())
    }

    /// What this connection sent, and what of it was not acknowledged.
    pub fn add_sent(&self, sent: &mut Sent) {
        for stream in &self.streams {
            let sent_stream = SentStream { records: stream.next_sequence, unacknowledged: Vec::new() };
            sent.streams.insert((self.producer, stream.partition), sent_stream);
        }
        for batch in self.batches.iter().chain(&self.retries.batches) {
            let partition = self.streams[batch.stream].partition;
            let records = u64::from(self.template(batch).record_count());
            let stream = sent.streams.get_mut(&(self.producer, partition)).expect("all streams are there");
            stream.unacknowledged.push(batch.sequence..batch.sequence + records);
        }
    }
}

impl Retries {
    fn add(&mut self, batch: SentBatch, code: i16, now_ns: u64) {
        if self.batches.is_empty() && self.backoff_ns == 0 {
            self.first_refused_ns = now_ns;
        }
        // All that was in flight is refused together, and waits once.
        if now_ns >= self.not_before_ns {
            self.backoff_ns = (self.backoff_ns * 2).clamp(RETRY_BACKOFF_NS, RETRY_BACKOFF_MAX_NS);
            self.not_before_ns = now_ns + self.backoff_ns;
        }
        self.last_code = code;
        self.batches.push(batch);
    }
}

#[cfg(test)]
mod tests;
