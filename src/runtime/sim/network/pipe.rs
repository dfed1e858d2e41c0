use std::collections::VecDeque;
use std::task::Waker;

use bytes::{Buf, Bytes, BytesMut};

/// How a direction of a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Ending {
    /// All that was sent arrives, then the end.
    Closed,
    Reset,
}

struct Flight {
    arrives_at: u64,
    data: Bytes,
}

/// One direction of a connection: bytes on their way and bytes that wait to be read, bounded together.
pub(super) struct Pipe {
    flights: VecDeque<Flight>,
    bytes: usize,
    capacity_bytes: usize,
    ending: Option<(u64, Ending)>,
    /// From when on the writer knows that nobody reads any more.
    reader_gone_at: Option<u64>,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
}

/// What a read finds.
#[derive(Debug)]
pub(super) enum Found {
    Bytes(usize),
    End,
    Reset,
    NothingYet,
}

impl Pipe {
    pub(super) fn new(capacity_bytes: usize) -> Pipe {
        Pipe {
            flights: VecDeque::new(),
            bytes: 0,
            capacity_bytes,
            ending: None,
            reader_gone_at: None,
            reader: None,
            writer: None,
        }
    }

    /// Bytes that were sent and not read.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn room(&self) -> usize {
        self.capacity_bytes.saturating_sub(self.bytes)
    }

    /// Bytes do not overtake each other.
    fn after_the_last(&self, at: u64) -> u64 {
        self.flights.back().map_or(at, |last| last.arrives_at.max(at))
    }

    /// Sends `data`, which has room; returns when it arrives.
    pub(super) fn write(&mut self, data: Bytes, arrives_at: u64) -> u64 {
        let arrives_at = self.after_the_last(arrives_at);
        if self.reader_gone_at.is_none() {
            self.bytes += data.len();
            self.flights.push_back(Flight { arrives_at, data });
        }
        arrives_at
    }

    /// Whether the writer knows that what it sends gets lost.
    pub(super) fn is_broken(&self, now: u64) -> bool {
        self.reader_gone_at.is_some_and(|at| at <= now)
            || self.ending.is_some_and(|(at, ending)| at <= now && ending == Ending::Reset)
    }

    /// Ends this direction, after what is on its way; returns when the end arrives.
    pub(super) fn end(&mut self, ending: Ending, arrives_at: u64) -> u64 {
        let arrives_at = self.after_the_last(arrives_at);
        self.ending.get_or_insert((arrives_at, ending)).0
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// Nobody reads any more: what is on its way gets lost.
    pub(super) fn reader_is_gone(&mut self, known_at: u64) {
        self.reader_gone_at.get_or_insert(known_at);
        self.flights.clear();
        self.bytes = 0;
    }

    /// Cuts this direction off at once.
    pub(super) fn reset(&mut self, now: u64) {
        self.flights.clear();
        self.bytes = 0;
        self.ending = Some((now, Ending::Reset));
    }

    /// Bytes that have arrived.
    pub(super) fn arrived(&self, now: u64) -> usize {
        self.flights
            .iter()
            .take_while(|flight| flight.arrives_at <= now)
            .map(|flight| flight.data.len())
            .sum()
    }

    /// Moves up to `limit` arrived bytes to `buffer`.
    pub(super) fn read(&mut self, buffer: &mut BytesMut, limit: usize, now: u64) -> Found {
        let mut moved = 0;
        while let Some(flight) = self.flights.front_mut().filter(|flight| flight.arrives_at <= now) {
            let part = flight.data.len().min(limit - moved);
            buffer.extend_from_slice(&flight.data[..part]);
            flight.data.advance(part);
            moved += part;
            if !flight.data.is_empty() {
                break;
            }
            self.flights.pop_front();
        }
        self.bytes -= moved;
        match self.ending {
            _ if moved > 0 => Found::Bytes(moved),
            Some((at, Ending::Closed)) if at <= now && self.flights.is_empty() => Found::End,
            Some((at, Ending::Reset)) if at <= now && self.flights.is_empty() => Found::Reset,
            _ => Found::NothingYet,
        }
    }

    pub(super) fn wake_both(&mut self) {
        for waker in [self.reader.take(), self.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}
