//! Members of one consumer group, and what must hold of what the coordinator tells them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::{Request, StrBytes};

use onrush::base::Monotonic;
use onrush::runtime::Runtime;
use onrush::runtime::sim::{SimMachine, SimRuntime};

use crate::broker::address;
use crate::client::{Client, Lost};

/// What the members share out among them.
pub const PARTITIONS: u8 = 12;
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(6);
pub const REBALANCE_TIMEOUT: Duration = Duration::from_secs(10);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// What the network and late timers may add to a wait.
const LATENESS_MAX: Duration = Duration::from_millis(500);

const UNKNOWN_MEMBER_ID: i16 = 25;
const MEMBER_ID_REQUIRED: i16 = 79;
const FENCED_INSTANCE_ID: i16 = 82;

/// The group as its members see it.
#[derive(Default)]
pub struct Group {
    newest_generation: i32,
    /// Who was given which partition in which generation; nobody else may be.
    owners: BTreeMap<(i32, u8), String>,
    /// What the members that live have now.
    shares: BTreeMap<String, Share>,
}

#[derive(Debug)]
pub struct Share {
    pub generation: i32,
    pub partitions: BTreeSet<u8>,
}

impl Group {
    pub fn shares(&self) -> &BTreeMap<String, Share> {
        &self.shares
    }

    /// The member is gone, or on its way back into the group.
    pub fn gives_up(&mut self, member: &str) {
        self.shares.remove(member);
    }

    fn gets(&mut self, member: &str, generation: i32, partitions: BTreeSet<u8>) {
        for partition in &partitions {
            let owner = self.owners.entry((generation, *partition)).or_insert_with(|| member.to_owned());
            assert_eq!(owner, member, "partition {partition} has two owners in generation {generation}");
        }
        self.shares.insert(member.to_owned(), Share { generation, partitions });
    }
}

/// What a member is told to do beside what the protocol asks for.
#[derive(Clone, Copy)]
pub enum Order {
    /// Says that it leaves, and ends.
    Leave,
    /// Its process stands still until it is told otherwise.
    Stall,
    /// Beats and does nothing else until it is told otherwise, as a client does whose caller is slow.
    Dawdle,
    /// Joins again, wanting something else.
    WantOther,
}

/// A consumer that keeps to the protocol.
pub struct GroupMember {
    pub name: String,
    /// Static (KIP-345): the name is its instance id.
    pub is_static: bool,
    /// Its client knows no ids that are given before a member joins (KIP-394). Never static.
    pub is_old: bool,
    pub runtime: SimRuntime,
    pub broker: SimMachine,
    pub group: Rc<RefCell<Group>>,
    pub order: Rc<Cell<Option<Order>>>,
}

/// What the coordinator has told a member about itself.
#[derive(Default)]
struct Standing {
    id: StrBytes,
    generation: i32,
    wants: u8,
}

impl GroupMember {
    /// Lives until it is told to leave. Whenever its connection is lost it goes on with another.
    pub async fn live(self) {
        let mut standing = Standing::default();
        loop {
            match self.live_on_one_connection(&mut standing).await {
                Ok(()) => break,
                Err(Lost) => self.pause(Duration::from_millis(20)).await,
            }
        }
    }

    async fn live_on_one_connection(&self, standing: &mut Standing) -> Result<(), Lost> {
        let mut client = Client::connect(&self.runtime, address(&self.broker)).await?;
        let find = FindCoordinatorRequest::default().with_key(group_id().0);
        while client.call(1, &find).await?.error_code != 0 {
            self.pause(Duration::from_millis(20)).await;
        }
        loop {
            self.group.borrow_mut().gives_up(&self.name);
            let Some(joined) = self.join(&mut client, standing).await? else { continue };
            self.idle_while_told(&mut client, standing).await?;
            let Some(partitions) = self.sync(&mut client, standing, &joined).await? else { continue };
            self.group.borrow_mut().gets(&self.name, standing.generation, partitions);
            if self.consume(&mut client, standing).await? {
                return Ok(());
            }
        }
    }

    async fn join(
        &self,
        client: &mut Client,
        standing: &mut Standing,
    ) -> Result<Option<JoinGroupResponse>, Lost> {
        let wanted = JoinGroupRequestProtocol::default().with_name(text("range"));
        let request = JoinGroupRequest::default()
            .with_group_id(group_id())
            .with_member_id(standing.id.clone())
            .with_group_instance_id(self.instance())
            .with_session_timeout_ms(milliseconds(SESSION_TIMEOUT))
            .with_rebalance_timeout_ms(milliseconds(REBALANCE_TIMEOUT))
            .with_protocol_type(text("consumer"))
            .with_protocols(vec![wanted.with_metadata(vec![standing.wants].into())]);
        let newest = self.group.borrow().newest_generation;
        let joined = self.ask(client, if self.is_old { 3 } else { 5 }, &request).await?;
        if joined.error_code == MEMBER_ID_REQUIRED {
            standing.id = joined.member_id;
            self.idle_while_told(client, standing).await?;
            return Ok(None);
        }
        if self.is_refused(standing, joined.error_code).await {
            return Ok(None);
        }
        assert!(joined.generation_id >= newest, "{} after {newest}", joined.generation_id);
        let mut group = self.group.borrow_mut();
        group.newest_generation = group.newest_generation.max(joined.generation_id);
        standing.id = joined.member_id.clone();
        standing.generation = joined.generation_id;
        Ok(Some(joined))
    }

    async fn sync(
        &self,
        client: &mut Client,
        standing: &mut Standing,
        joined: &JoinGroupResponse,
    ) -> Result<Option<BTreeSet<u8>>, Lost> {
        let members = joined.members.iter().enumerate().map(|(place, member)| {
            let share: Vec<u8> = (0..PARTITIONS)
                .filter(|partition| usize::from(*partition) % joined.members.len() == place)
                .collect();
            SyncGroupRequestAssignment::default()
                .with_member_id(member.member_id.clone())
                .with_assignment(share.into())
        });
        let request = SyncGroupRequest::default()
            .with_group_id(group_id())
            .with_generation_id(standing.generation)
            .with_member_id(standing.id.clone())
            .with_group_instance_id(self.instance())
            .with_assignments(members.collect());
        let synced = self.ask(client, 3, &request).await?;
        let refused = self.is_refused(standing, synced.error_code).await;
        Ok((!refused).then(|| synced.assignment.iter().copied().collect()))
    }

    /// Beats until the group rebalances; whether the member has left.
    async fn consume(&self, client: &mut Client, standing: &mut Standing) -> Result<bool, Lost> {
        loop {
            self.idle_while_told(client, standing).await?;
            match self.order.take() {
                Some(Order::Leave) => {
                    self.leave(client, standing).await?;
                    self.group.borrow_mut().gives_up(&self.name);
                    return Ok(true);
                }
                Some(Order::WantOther) => {
                    standing.wants = standing.wants.wrapping_add(1);
                    return Ok(false);
                }
                Some(Order::Stall | Order::Dawdle) | None => {}
            }
            let error_code = self.beat(client, standing).await?;
            if self.is_refused(standing, error_code).await {
                return Ok(false);
            }
            self.pause(HEARTBEAT_INTERVAL).await;
        }
    }

    /// Kafka's error code.
    async fn beat(&self, client: &mut Client, standing: &Standing) -> Result<i16, Lost> {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id())
            .with_generation_id(standing.generation)
            .with_member_id(standing.id.clone())
            .with_group_instance_id(self.instance());
        Ok(self.ask(client, 3, &request).await?.error_code)
    }

    async fn leave(&self, client: &mut Client, standing: &Standing) -> Result<(), Lost> {
        let member = MemberIdentity::default()
            .with_member_id(standing.id.clone())
            .with_group_instance_id(self.instance());
        let request = LeaveGroupRequest::default().with_group_id(group_id()).with_members(vec![member]);
        self.ask(client, 3, &request).await.map(drop)
    }

    /// Every request has its answer within the time that a rebalance may take.
    async fn ask<Q: Request>(
        &self,
        client: &mut Client,
        version: i16,
        request: &Q,
    ) -> Result<Q::Response, Lost> {
        let asked = self.runtime.now();
        let answer = client.call(version, request).await?;
        let waited = since(&self.runtime, asked);
        assert!(waited <= REBALANCE_TIMEOUT + LATENESS_MAX, "{} waited {waited:?} for {}", self.name, Q::KEY);
        Ok(answer)
    }

    /// Whether the member has to join anew; if it has been forgotten, as somebody new.
    async fn is_refused(&self, standing: &mut Standing, error_code: i16) -> bool {
        match error_code {
            0 => return false,
            UNKNOWN_MEMBER_ID => standing.id = StrBytes::default(),
            FENCED_INSTANCE_ID => panic!("nobody else is {}", self.name),
            // The coordinator loads or moves (14 to 16), or another generation is under way (22, 27).
            14..=16 | 22 | 27 => self.pause(Duration::from_millis(20)).await,
            other => panic!("{}: error {other}", self.name),
        }
        true
    }

    async fn idle_while_told(&self, client: &mut Client, standing: &Standing) -> Result<(), Lost> {
        loop {
            match self.order.get() {
                Some(Order::Dawdle) => drop(self.beat(client, standing).await?),
                Some(Order::Stall) => {}
                _ => return Ok(()),
            }
            self.pause(HEARTBEAT_INTERVAL / 4).await;
        }
    }

    async fn pause(&self, time: Duration) {
        self.runtime.sleep_until(self.runtime.now() + time).await;
    }

    fn instance(&self) -> Option<StrBytes> {
        self.is_static.then(|| text(&self.name))
    }
}

fn group_id() -> GroupId {
    GroupId(text("g"))
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn milliseconds(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).expect("time-outs are short")
}

fn since(runtime: &SimRuntime, then: Monotonic) -> Duration {
    runtime.now().since(then)
}
