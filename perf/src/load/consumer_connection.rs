//! One member of a group at one broker: fetches its partitions, one request at a time, in a fetch session.

use std::sync::Arc;

use mio::{Registry, Token};

use super::connection::Connection;
use super::shared::Shared;
use super::tally::Tally;
use crate::result::Flow;
use crate::verify::{ReadStamp, Reading, next_value};
use crate::wire::admin::{CLIENT_ID, Failure};
use crate::wire::compression::Compression;
use crate::wire::fetch::{self, FetchLimits, FetchSession, FetchedPartition};
use crate::wire::numbers::Reader;
use crate::wire::refusal::{FETCH_SESSION_LOST, is_retriable, name_of};
use crate::workload::batch::header;

/// Kafka's `retry.backoff.ms`.
const RETRY_BACKOFF_NS: u64 = 100_000_000;

pub struct ConsumerConnection {
    shared: Arc<Shared>,
    connection: Connection,
    /// The place of its group among those of its thread.
    pub group: usize,
    limits: FetchLimits,
    partitions: Vec<ConsumedPartition>,
    /// By partition: its place in `partitions`.
    places: Vec<Option<usize>>,
    session: FetchSession,
    correlation_id: i32,
    is_waiting: bool,
    not_before_ns: u64,
}

pub struct ConsumedPartition {
    pub partition: i32,
    /// The offset to read next.
    pub position: i64,
    /// The broker's session has another position, or an error.
    is_changed: bool,
}

/// What is found on the way through one answer.
struct Found<'a> {
    tally: &'a mut Tally,
    reading: Option<&'a mut Reading>,
    /// `None` for a group that is behind on purpose.
    arrived_ns: Option<u64>,
    shared: &'a Shared,
    flow: Flow,
    /// A partition was refused, and will be asked for again.
    has_errors: bool,
}

impl ConsumerConnection {
    pub fn open(
        shared: &Arc<Shared>,
        group: usize,
        address: &str,
        partitions: &[i32],
        registry: &Registry,
        token: Token,
    ) -> Result<ConsumerConnection, Failure> {
        let consumers = &shared.workload.consumers;
        let mut places = vec![None; shared.topic.leaders.len()];
        for (place, partition) in partitions.iter().enumerate() {
            places[*partition as usize] = Some(place);
        }
        let partitions = partitions.iter().map(|partition| ConsumedPartition {
            partition: *partition,
            position: 0,
            is_changed: true,
        });
        Ok(ConsumerConnection {
            shared: Arc::clone(shared),
            connection: Connection::open(address, registry, token)?,
            group,
            limits: FetchLimits {
                max_wait_ms: consumers.fetch_max_wait_ms,
                min_bytes: consumers.fetch_min_bytes,
                max_bytes: consumers.fetch_max_bytes,
                partition_max_bytes: consumers.max_partition_fetch_bytes,
            },
            partitions: partitions.collect(),
            places,
            session: FetchSession::default(),
            correlation_id: 0,
            is_waiting: false,
            not_before_ns: 0,
        })
    }

    /// Reads on from `positions`, by partition.
    pub fn seek(&mut self, positions: &[i64]) {
        for partition in &mut self.partitions {
            partition.position = positions[partition.partition as usize];
        }
    }

    pub fn partitions(&self) -> &[ConsumedPartition] {
        &self.partitions
    }

    /// When the next fetch may go out, if none is on its way.
    pub fn ready_ns(&self) -> Option<u64> {
        (!self.is_waiting).then_some(self.not_before_ns)
    }

    /// Sends the next fetch unless one is on its way or the time has not come.
    pub fn fetch(&mut self, now_ns: u64) -> Result<(), Failure> {
        if self.is_waiting || now_ns < self.not_before_ns {
            return self.connection.flush();
        }
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let is_whole = self.session.epoch == 0;
        let asked: Vec<(i32, i64)> = self
            .partitions
            .iter_mut()
            .filter(|partition| is_whole || partition.is_changed)
            .map(|partition| {
                partition.is_changed = false;
                (partition.partition, partition.position)
            })
            .collect();
        fetch::put_request(
            self.connection.out.own(),
            CLIENT_ID,
            self.correlation_id,
            self.session,
            &self.limits,
            &self.shared.fetch_topic,
            asked.into_iter(),
        );
        self.is_waiting = true;
        self.connection.flush()
    }

    /// Reads an answer if one has come whole; gives its bytes of record batches.
    /// `group`: its index in the run. `is_behind`: its latency is on purpose, and not counted.
    pub fn receive(
        &mut self,
        now_ns: u64,
        group: usize,
        is_behind: bool,
        reading: Option<&mut Reading>,
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        self.connection.receive()?;
        // Before the frame is borrowed.
        let no_answer = format!("{} sent what answers no Fetch request", self.connection.address());
        let Some(frame) = self.connection.next_frame()? else { return Ok(0) };
        let mut found = Found {
            tally,
            reading,
            arrived_ns: (!is_behind).then_some(now_ns),
            shared: &self.shared,
            flow: Flow { requests: 1, ..Flow::default() },
            has_errors: false,
        };
        let (partitions, places) = (&mut self.partitions, &self.places);
        let mut outcome = Ok(());
        let answer = fetch::read_answer(frame, &self.shared.fetch_topic, |fetched| {
            let place =
                usize::try_from(fetched.partition).ok().and_then(|partition| *places.get(partition)?);
            let taken = match place {
                Some(place) => partitions[place].take(&fetched, &mut found),
                None => Err(no_answer.clone()),
            };
            if taken.is_err() {
                outcome = taken;
            }
        });
        let answer = answer.map_err(|_| no_answer.clone())?;
        outcome?;
        if answer.correlation_id != self.correlation_id {
            return Err(no_answer);
        }
        self.is_waiting = false;
        let Found { tally, flow, has_errors, .. } = found;
        tally.consumed.add(flow);
        tally.groups.entry(group).or_default().add(flow);
        self.session = match answer.error_code {
            0 => self.session.next(answer.session_id),
            code => {
                tally.count_error(code);
                if !FETCH_SESSION_LOST.contains(&code) && !is_retriable(code) {
                    let (address, code) = (self.connection.address(), name_of(code));
                    return Err(format!("{address} refused a fetch: {code}"));
                }
                self.hold_until(now_ns + RETRY_BACKOFF_NS);
                FetchSession::default()
            }
        };
        if has_errors {
            self.hold_until(now_ns + RETRY_BACKOFF_NS);
        }
        Ok(flow.bytes)
    }

    /// No fetch before `time_ns`.
    pub fn hold_until(&mut self, time_ns: u64) {
        self.not_before_ns = time_ns;
    }

    /// Records between its positions and `ends`, by partition.
    pub fn lag_records(&self, ends: &[i64]) -> u64 {
        let lag =
            |partition: &ConsumedPartition| (ends[partition.partition as usize] - partition.position).max(0);
        self.partitions.iter().map(|partition| lag(partition) as u64).sum()
    }
}

impl ConsumedPartition {
    fn take(&mut self, fetched: &FetchedPartition, found: &mut Found) -> Result<(), Failure> {
        let FetchedPartition { partition, error_code, records, .. } = *fetched;
        if error_code != 0 {
            found.tally.count_error(error_code);
            if !is_retriable(error_code) {
                return Err(format!("partition {partition} refused a fetch: {}", name_of(error_code)));
            }
            self.is_changed = true;
            found.has_errors = true;
        }
        let mut rest = records;
        while let Some(batch) = next_batch(&mut rest) {
            self.take_batch(batch, found);
        }
        Ok(())
    }

    fn take_batch(&mut self, batch: &[u8], found: &mut Found) {
        let i32_at = |at: usize| i32::from_be_bytes(batch[at..at + 4].try_into().expect("4 bytes"));
        let base_offset = i64::from_be_bytes(batch[..8].try_into().expect("8 bytes"));
        let next = base_offset + i64::from(i32_at(header::LAST_OFFSET_DELTA)) + 1;
        if next <= self.position {
            return;
        }
        self.position = next;
        self.is_changed = true;
        found.flow.records += u64::from(i32_at(header::RECORD_COUNT).max(0) as u32);
        found.flow.bytes += batch.len() as u64;
        if let Some(arrived_ns) = found.arrived_ns
            && let Some(planned_ns) = self.planned_ns(batch, found.shared)
        {
            found.tally.end_to_end_latency.record(arrived_ns.saturating_sub(planned_ns));
        }
        if let Some(reading) = &mut found.reading {
            reading.read_batch(self.partition, batch);
        }
    }

    /// When the batch should have been sent; `None` for one of another run, or a compressed one that is too old.
    fn planned_ns(&self, batch: &[u8], shared: &Shared) -> Option<u64> {
        let attributes = i16::from_be_bytes([batch[header::ATTRIBUTES], batch[header::ATTRIBUTES + 1]]);
        if Compression::of_attributes(attributes)? == Compression::None {
            let value = next_value(&mut Reader::new(&batch[header::LENGTH..])).ok()?;
            let stamp = ReadStamp::unchecked(value).filter(|stamp| stamp.run == shared.run)?;
            return Some(stamp.planned_ns);
        }
        let producer_id = i64::from_be_bytes(*batch[header::PRODUCER_ID..].first_chunk()?);
        let base_sequence = i32::from_be_bytes(*batch[header::BASE_SEQUENCE..].first_chunk()?);
        shared.planned_times.get(producer_id, self.partition, base_sequence)
    }
}

/// Takes the next whole batch off the front; `None` when the rest is none.
fn next_batch<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = rest.get(header::BATCH_LENGTH..header::BATCH_LENGTH + 4)?;
    let length = u32::from_be_bytes(length.try_into().expect("4 bytes")) as usize + header::BATCH_LENGTH + 4;
    if length < header::LENGTH {
        return None;
    }
    let (batch, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(batch)
}

#[cfg(test)]
mod tests;
