//! Share groups whose broker dies again and again: what was acknowledged is not delivered again, and what was not is.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch,
};
use kafka_protocol::messages::share_fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{
    FindCoordinatorRequest, GroupId, IncrementalAlterConfigsRequest, MetadataRequest,
    ShareAcknowledgeRequest, ShareFetchRequest, ShareGroupHeartbeatRequest,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use onrush::base::ShardId;
use onrush::record::Batches;
use onrush::runtime::sim::{DiskOperation, SimMachine, SimRuntime};
use onrush::runtime::{Lane, Runtime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, Lost, topic_name};
use crate::for_each_seed;

const TOPIC: &str = "lines";
const SETTINGS: &[(&str, &str)] = &[
    ("num.partitions", "1"),
    ("offsets.topic.num.partitions", "2"),
    ("share.coordinator.state.topic.num.partitions", "2"),
    ("share.coordinator.snapshot.update.records.per.snapshot", "3"),
];
const LINES: usize = 40;
const MEMBERS: usize = 2;
/// Kafka's `ConfigResource.Type.GROUP`.
const GROUP_RESOURCE: i8 = 32;
const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;

/// What the group has been told and has told, by offset.
#[derive(Default)]
struct Ledger {
    /// Producers were told that these are there.
    produced: BTreeSet<i64>,
    all_produced: bool,
    /// Members were told that their acceptance holds.
    accepted: BTreeSet<i64>,
    /// The same, or the broker died before it answered.
    maybe_accepted: BTreeSet<i64>,
    delivered: BTreeSet<i64>,
}

impl Ledger {
    fn is_over(&self) -> bool {
        self.all_produced && self.produced.iter().all(|offset| self.maybe_accepted.contains(offset))
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
fn group() -> GroupId {
    GroupId(text("sg"))
}

async fn pause(runtime: &SimRuntime, ms: u64) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
}

async fn produce(runtime: SimRuntime, broker: SimMachine, ledger: Rc<RefCell<Ledger>>) {
    let mut sent = 0;
    while sent < LINES {
        let Ok(mut client) = Client::connect(&runtime, address(&broker)).await else {
            pause(&runtime, 20).await;
            continue;
        };
        while sent < LINES {
            let line = format!("line {sent}");
            match client.produce(TOPIC, 0, &line).await {
                Ok(Answer::Done(offset)) => {
                    ledger.borrow_mut().produced.insert(offset);
                    sent += 1;
                    pause(&runtime, 40).await;
                }
                Ok(Answer::Refused(_)) => {
                    if client.partitions_with_leader(TOPIC).await.is_err() {
                        break;
                    }
                    pause(&runtime, 20).await;
                }
                Err(Lost) => break,
            }
        }
    }
    ledger.borrow_mut().all_produced = true;
}

/// A member that accepts most of what it gets and gives some back.
struct Member {
    name: String,
    runtime: SimRuntime,
    broker: SimMachine,
    ledger: Rc<RefCell<Ledger>>,
}

impl Member {
    async fn live(self) {
        while !self.ledger.borrow().is_over() {
            // Lost: the broker has died, and with it the session.
            let _lost: Result<(), Lost> = self.live_on_one_connection().await;
            pause(&self.runtime, 20).await;
        }
    }

    async fn live_on_one_connection(&self) -> Result<(), Lost> {
        let mut client = Client::connect(&self.runtime, address(&self.broker)).await?;
        let find = FindCoordinatorRequest::default().with_key(group().0);
        while client.call(1, &find).await?.error_code != 0 {
            pause(&self.runtime, 20).await;
        }
        self.begin_with_the_first_line(&mut client).await?;
        let mut member_epoch = 0;
        let mut session_epoch = 0;
        while !self.ledger.borrow().is_over() {
            let Some(epoch) = self.heartbeat(&mut client, member_epoch).await? else {
                member_epoch = 0;
                pause(&self.runtime, 20).await;
                continue;
            };
            member_epoch = epoch;
            let Some(topic_id) = topic_id(&mut client).await? else { continue };
            session_epoch = self.consume(&mut client, topic_id, session_epoch).await?;
        }
        Ok(())
    }

    async fn begin_with_the_first_line(&self, client: &mut Client) -> Result<(), Lost> {
        let config = AlterableConfig::default()
            .with_name(text("share.auto.offset.reset"))
            .with_value(Some(text("earliest")));
        let resource = AlterConfigsResource::default()
            .with_resource_type(GROUP_RESOURCE)
            .with_resource_name(group().0)
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        while client.call(1, &request).await?.responses[0].error_code != 0 {
            pause(&self.runtime, 20).await;
        }
        Ok(())
    }

    /// The member's epoch; `None`: it has to join anew, or come again.
    async fn heartbeat(&self, client: &mut Client, epoch: i32) -> Result<Option<i32>, Lost> {
        let names = (epoch == 0).then(|| vec![topic_name(TOPIC)]);
        let request = ShareGroupHeartbeatRequest::default()
            .with_group_id(group())
            .with_member_id(text(&self.name))
            .with_member_epoch(epoch)
            .with_subscribed_topic_names(names);
        let heard = client.call(1, &request).await?;
        Ok((heard.error_code == 0).then_some(heard.member_epoch))
    }

    /// One fetch of the session and what follows from it; gives the epoch of the next one.
    async fn consume(&self, client: &mut Client, topic_id: Uuid, session_epoch: i32) -> Result<i32, Lost> {
        let wanted = FetchPartition::default().with_partition_index(0);
        let request = ShareFetchRequest::default()
            .with_group_id(Some(group()))
            .with_member_id(Some(text(&self.name)))
            .with_share_session_epoch(session_epoch)
            .with_max_wait_ms(100)
            .with_min_bytes(1)
            .with_max_bytes(1024 * 1024)
            .with_max_records(4)
            .with_batch_size(4)
            .with_topics(vec![FetchTopic::default().with_topic_id(topic_id).with_partitions(vec![wanted])]);
        let fetched = client.call(1, &request).await?;
        if fetched.error_code != 0 {
            assert!(matches!(fetched.error_code, 122 | 123), "error {}", fetched.error_code);
            return Ok(0);
        }
        let next = session_epoch + 1;
        let Some(answer) = fetched.responses.first().and_then(|topic| topic.partitions.first()) else {
            return Ok(next);
        };
        let mut batches = Vec::new();
        for run in &answer.acquired_records {
            for offset in run.first_offset..=run.last_offset {
                let mut ledger = self.ledger.borrow_mut();
                assert!(!ledger.accepted.contains(&offset), "{offset} was accepted, and comes again");
                ledger.delivered.insert(offset);
                drop(ledger);
                let gives_back = run.delivery_count == 1 && self.runtime.random().is_multiple_of(4);
                batches.push((offset, if gives_back { RELEASE } else { ACCEPT }));
            }
            let read = offsets(answer.records.as_deref().unwrap_or_default());
            let is_there = |offset: i64| read.contains(&offset);
            assert!((run.first_offset..=run.last_offset).all(is_there), "{run:?} without records: {read:?}");
        }
        if batches.is_empty() {
            return Ok(next);
        }
        self.acknowledge(client, topic_id, next, &batches).await
    }

    async fn acknowledge(
        &self,
        client: &mut Client,
        topic_id: Uuid,
        session_epoch: i32,
        said: &[(i64, i8)],
    ) -> Result<i32, Lost> {
        let accepted = said.iter().filter(|(_, said)| *said == ACCEPT).map(|(offset, _)| *offset);
        self.ledger.borrow_mut().maybe_accepted.extend(accepted.clone());
        let batch = |(offset, said): &(i64, i8)| {
            AcknowledgementBatch::default()
                .with_first_offset(*offset)
                .with_last_offset(*offset)
                .with_acknowledge_types(vec![*said])
        };
        let partition = AcknowledgePartition::default()
            .with_partition_index(0)
            .with_acknowledgement_batches(said.iter().map(batch).collect());
        let topic = AcknowledgeTopic::default().with_topic_id(topic_id).with_partitions(vec![partition]);
        let request = ShareAcknowledgeRequest::default()
            .with_group_id(Some(group()))
            .with_member_id(Some(text(&self.name)))
            .with_share_session_epoch(session_epoch)
            .with_topics(vec![topic]);
        let answer = client.call(1, &request).await?;
        let code = answer.responses.first().map_or(answer.error_code, |topic| topic.partitions[0].error_code);
        if answer.error_code == 0 && code == 0 {
            self.ledger.borrow_mut().accepted.extend(accepted);
            return Ok(session_epoch + 1);
        }
        // Nothing of it holds, if the broker was not about to end.
        Ok(if answer.error_code == 0 { session_epoch + 1 } else { 0 })
    }
}

async fn topic_id(client: &mut Client) -> Result<Option<Uuid>, Lost> {
    if client.partitions_with_leader(TOPIC).await? == 0 {
        return Ok(None);
    }
    let name = kafka_protocol::messages::metadata_request::MetadataRequestTopic::default()
        .with_name(Some(topic_name(TOPIC)));
    let described = client.call(12, &MetadataRequest::default().with_topics(Some(vec![name]))).await?;
    Ok(described.topics.first().map(|topic| topic.topic_id))
}

fn offsets(batches: &[u8]) -> BTreeSet<i64> {
    let mut offsets = BTreeSet::new();
    for batch in Batches::new(batches) {
        assert!(batch.crc_matches(), "a member gets a damaged batch");
        offsets.extend(batch.header.base_offset.0..batch.header.next_offset().0);
    }
    offsets
}

#[test]
fn what_a_share_group_has_acknowledged_never_comes_again_and_all_else_does() {
    for_each_seed(8, |simulation| {
        let [machine, consumers] = ["broker", "consumers"].map(|name| simulation.machine(name));
        let chance = simulation.client();
        let mut broker = SimBroker::start(&machine, 2, SETTINGS);
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        let runtime = consumers.runtime(ShardId(0));
        runtime.spawn(Lane::Data, produce(runtime.clone(), machine.clone(), ledger.clone()));
        for index in 0..MEMBERS {
            let member = Member {
                name: format!("member-{index}"),
                runtime: runtime.clone(),
                broker: machine.clone(),
                ledger: ledger.clone(),
            };
            runtime.spawn(Lane::Data, member.live());
        }
        // What is answered before it is durable is lost by a power cut at that moment.
        let latency = Duration::from_millis(1)..=Duration::from_millis(20);
        machine.disk().set_latency(DiskOperation::WriteDurable, latency.clone());
        machine.disk().set_latency(DiskOperation::Sync, latency);
        let mut deaths = 0;
        while consumers.task_count() > 0 {
            let more = 1 + (chance.random() % 4) as usize;
            let enough = ledger.borrow().accepted.len() + more;
            simulation.run_until(|| ledger.borrow().accepted.len() >= enough || consumers.task_count() == 0);
            match chance.random() % 4 {
                _ if consumers.task_count() == 0 => break,
                0 => machine.kill(),
                1 => broker.stop(simulation).expect("a broker without trouble stops in order"),
                _ => machine.crash(),
            }
            deaths += 1;
            broker = SimBroker::start(&machine, 1 + (chance.random() % 3) as u16, SETTINGS);
        }
        assert!(deaths > 3, "the group lives through some deaths, not {deaths}");
        let ledger = ledger.borrow();
        assert_eq!(ledger.produced.len(), LINES);
        assert!(ledger.produced.is_subset(&ledger.delivered));
    });
}
