use std::collections::VecDeque;

use crate::base::ProducerEpoch;

use super::event::{AppendId, Effect, Note, ReplyToken};
use super::names::TransactionVersion;
use super::records::Record;
use super::request::Response;

/// What leaves the coordinator: effects for the engine, and the appends whose outcome is not known yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub effects: Vec<Effect>,
    pub in_flight: VecDeque<InFlight>,
    last_append: u64,
}

/// An append the engine has not reported on. Its records are replayed once it is durable, and not before.
#[derive(Debug)]
pub(super) struct InFlight {
    pub id: AppendId,
    pub records: Vec<Record>,
    pub then: Then,
}

/// What follows once the append is durable.
#[derive(Debug)]
pub(super) enum Then {
    Answer(Answer),
    /// The producer's epoch before this step is one that may ask again.
    Initialized {
        answer: Answer,
        last_producer_epoch: ProducerEpoch,
    },
    /// The end is decided: it is answered, and the markers are written.
    Prepared {
        answer: Option<Answer>,
        last_producer_epoch: ProducerEpoch,
    },
    Completed,
    Forgotten,
}

/// What a request is told if its append succeeds.
#[derive(Debug)]
pub(super) struct Answer {
    pub token: ReplyToken,
    pub response: Response,
}

impl Outbox {
    pub fn reply(&mut self, token: ReplyToken, response: Response) {
        self.effects.push(Effect::Reply { token, response });
    }
    pub fn note(&mut self, note: Note) {
        self.effects.push(Effect::Note(note));
    }

    pub fn append(&mut self, version: TransactionVersion, records: Vec<Record>, then: Then) -> AppendId {
        self.last_append += 1;
        let id = AppendId(self.last_append);
        let records: Vec<Record> = records.into_iter().map(|record| record.as_stored(version)).collect();
        let encoded = records.iter().map(|record| record.encode(version)).collect();
        self.effects.push(Effect::Append { id, records: encoded });
        self.in_flight.push_back(InFlight { id, records, then });
        id
    }

    /// Takes the append out; `None`: it was given up.
    pub fn take(&mut self, id: AppendId) -> Option<InFlight> {
        let place = self.in_flight.iter().position(|append| append.id == id)?;
        self.in_flight.remove(place)
    }
}
