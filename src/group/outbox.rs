use std::collections::VecDeque;
use std::time::Duration;

use super::classic::ReplacedMember;
use super::error::GroupError;
use super::event::{AppendId, BatchProducer, Effect, Note, Now, ReplyToken, TimerKey};
use super::names::{Generation, GroupId, InstanceId, MemberId};
use super::records::Record;
use super::request::{EndTransaction, OffsetFetch, Response};
use super::settings::GroupSettings;
use super::timers::Timers;

/// Most tombstones in one batch: with names of usual length it stays far below `max.message.bytes`.
const TOMBSTONES_PER_APPEND_MAX: usize = 1000;

/// What leaves the coordinator: effects for the engine, and the appends whose outcome is not known yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub effects: Vec<Effect>,
    pub timers: Timers,
    pub in_flight: VecDeque<InFlight>,
    last_append: u64,
}

/// An append the engine has not reported on. Its records are replayed once it is durable, and not before.
#[derive(Debug)]
pub(super) struct InFlight {
    pub id: AppendId,
    pub records: Vec<Record>,
    /// Whose transaction the records belong to.
    pub producer: Option<BatchProducer>,
    pub then: Then,
    /// Answered after `then`, in this order.
    pub waiting: Vec<Waiting>,
    /// Durable, but an older append is not known to be: it is taken up after that one.
    pub done: bool,
}

/// What else an append decides.
#[derive(Debug)]
pub(super) enum Then {
    Nothing,
    /// The group exists from then on; if it fails, it never did.
    GroupCreated(GroupId),
    /// The assignment holds and is given out; if it fails, the members must join again.
    AssignmentStored {
        group: GroupId,
        generation: Generation,
    },
    /// A static member goes on under a new member id; if it fails, under the old one.
    StaticMemberReplaced(Box<StaticMemberReplaced>),
    /// These groups were taken out of service; if it fails, they are back.
    GroupsDeleted(Vec<GroupId>),
    /// It is an end marker: the offsets of that transaction hold, or are dropped.
    TransactionEnded(EndTransaction),
}

#[derive(Debug)]
pub(super) struct StaticMemberReplaced {
    pub group: GroupId,
    pub generation: Generation,
    pub instance: InstanceId,
    pub new_member: MemberId,
    /// Who led before: what a client older than JoinGroup 9 must hear, lest it assigns anew.
    pub old_leader: Option<MemberId>,
    pub can_skip_assignment: bool,
    /// The member as it was.
    pub replaced: ReplacedMember,
}

/// A request that an append keeps waiting.
#[derive(Debug)]
pub(super) enum Waiting {
    Answer {
        token: ReplyToken,
        response: Response,
    },
    /// Reads what is committed by then.
    Fetch {
        token: ReplyToken,
        request: OffsetFetch,
    },
}

/// One event being handled: the time, the settings, and where to put what follows from it.
pub(super) struct Turn<'a> {
    pub now: Now,
    pub settings: &'a GroupSettings,
    pub out: &'a mut Outbox,
}

impl Turn<'_> {
    pub fn reply(&mut self, token: ReplyToken, response: Response) {
        self.out.reply(token, response);
    }
    pub fn arm(&mut self, key: TimerKey, after: Duration) {
        self.out.timers.arm(key, self.now.monotonic + after, &mut self.out.effects);
    }
    pub fn cancel(&mut self, key: TimerKey) {
        self.out.timers.cancel(key, &mut self.out.effects);
    }
    pub fn note(&mut self, note: Note) {
        self.out.effects.push(Effect::Note(note));
    }
    pub fn append(&mut self, records: Vec<Record>, then: Then) -> AppendId {
        self.out.append(records, then)
    }
}

impl Outbox {
    pub fn reply(&mut self, token: ReplyToken, response: Response) {
        self.effects.push(Effect::Reply { token, response });
    }

    pub fn append(&mut self, records: Vec<Record>, then: Then) -> AppendId {
        self.append_of(None, records, then)
    }

    /// As `append`, for records that belong to the transaction of `producer`.
    pub fn append_of(
        &mut self,
        producer: Option<BatchProducer>,
        records: Vec<Record>,
        then: Then,
    ) -> AppendId {
        let id = self.next_append();
        let encoded = records.iter().map(Record::encode).collect();
        self.effects.push(Effect::Append { id, records: encoded, producer });
        self.in_flight.push_back(InFlight { id, records, producer, then, waiting: Vec::new(), done: false });
        id
    }

    pub fn append_marker(&mut self, end: EndTransaction) -> AppendId {
        let id = self.next_append();
        self.effects.push(Effect::AppendMarker { id, end });
        self.in_flight.push_back(InFlight {
            id,
            records: Vec::new(),
            producer: None,
            then: Then::TransactionEnded(end),
            waiting: Vec::new(),
            done: false,
        });
        id
    }

    fn next_append(&mut self) -> AppendId {
        self.last_append += 1;
        AppendId(self.last_append)
    }

    /// Appends tombstones, in several parts if they are many; `then` holds for the last, whose id this gives.
    pub fn append_tombstones(&mut self, mut records: Vec<Record>, then: Then) -> AppendId {
        while records.len() > TOMBSTONES_PER_APPEND_MAX {
            let rest = records.split_off(TOMBSTONES_PER_APPEND_MAX);
            self.append(std::mem::replace(&mut records, rest), Then::Nothing);
        }
        self.append(records, then)
    }

    /// The newest append still under way.
    pub fn newest(&self) -> Option<AppendId> {
        self.in_flight.back().map(|append| append.id)
    }

    /// Answers once append `id` is decided; it is still under way.
    pub fn wait(&mut self, id: AppendId, waiting: Waiting) {
        let append = self.in_flight.iter_mut().rev().find(|append| append.id == id);
        append.expect("only an append under way is waited for").waiting.push(waiting);
    }

    /// Answers once what `append` wrote is durable, or at once if it wrote nothing.
    pub fn answer_after(&mut self, append: Option<AppendId>, token: ReplyToken, response: Response) {
        match append {
            Some(id) => self.wait(id, Waiting::Answer { token, response }),
            None => self.reply(token, response),
        }
    }
}

impl Response {
    /// What a request is told that seemed to work until its append failed.
    pub(super) fn failed(self, error: GroupError) -> Response {
        match self {
            Response::JoinGroup(join) => {
                Response::JoinGroup(super::request::JoinGroupResponse::refused(join.member, error))
            }
            Response::SyncGroup(_) => Response::SyncGroup(Err(error)),
            Response::Heartbeat(_) => Response::Heartbeat(Err(error)),
            Response::LeaveGroup(_) => Response::LeaveGroup(Err(error)),
            Response::OffsetCommit(_) => Response::OffsetCommit(Err(error)),
            Response::TxnOffsetCommit(_) => Response::TxnOffsetCommit(Err(error)),
            Response::EndTransaction(_) => Response::EndTransaction(Err(error)),
            Response::OffsetFetch(_) => Response::OffsetFetch(Err(error)),
            Response::OffsetDelete(_) => Response::OffsetDelete(Err(error)),
            Response::DeleteGroups(groups) => Response::DeleteGroups(
                groups.into_iter().map(|(group, result)| (group, result.and(Err(error)))).collect(),
            ),
            Response::DescribeGroups(groups) => {
                Response::DescribeGroups(groups.into_iter().map(|(group, _)| (group, Err(error))).collect())
            }
            Response::ListGroups(_) => Response::ListGroups(Err(error)),
            Response::ConsumerGroupHeartbeat(_) => Response::ConsumerGroupHeartbeat(Err(error)),
            Response::ConsumerGroupDescribe(groups) => Response::ConsumerGroupDescribe(
                groups.into_iter().map(|(group, _)| (group, Err(error))).collect(),
            ),
            Response::ShareGroupHeartbeat(_) => Response::ShareGroupHeartbeat(Err(error)),
            Response::ShareGroupDescribe(groups) => Response::ShareGroupDescribe(
                groups.into_iter().map(|(group, _)| (group, Err(error))).collect(),
            ),
            Response::ShareState(_) => Response::ShareState(Err(error)),
        }
    }
}
