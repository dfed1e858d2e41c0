use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};

use onrush::record::{Batches, ControlType};
use onrush::runtime::Runtime;
use onrush::runtime::sim::{SimMachine, SimRuntime};

use super::TOPIC;
use super::book::{Book, Whole};
use crate::broker::address;
use crate::client::{Client, Lost, topic_name};

/// One answer to a reader of committed lines.
struct Fetched {
    lines: Vec<(i64, String)>,
    next_offset: i64,
    last_stable_offset: i64,
    high_watermark: i64,
}

pub async fn pause(runtime: &SimRuntime, ms: u64) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
}

/// A connection to a broker that leads every partition of the topic.
pub async fn connect(runtime: &SimRuntime, broker: &SimMachine) -> Client {
    loop {
        if let Ok(mut client) = Client::connect(runtime, address(broker)).await
            && let Ok(3) = client.partitions_with_leader(TOPIC).await
        {
            return client;
        }
        pause(runtime, 20).await;
    }
}

/// Reads on and on what is committed, and enters it.
pub async fn read_for_ever(runtime: SimRuntime, broker: SimMachine, partition: i32, book: Rc<RefCell<Book>>) {
    let mut next_offset = 0;
    loop {
        let mut client = connect(&runtime, &broker).await;
        while let Ok(fetched) = fetch(&mut client, partition, next_offset).await {
            match fetched {
                Some(fetched) => {
                    next_offset = fetched.next_offset;
                    book.borrow_mut().saw(partition, fetched.lines);
                }
                None => pause(&runtime, 20).await,
            }
        }
    }
}

/// Reads what is committed, from the first offset to where no more is to be had.
pub async fn read_all(runtime: SimRuntime, broker: SimMachine, partition: i32) -> Whole {
    let mut whole = Whole::default();
    let mut next_offset = 0;
    let mut client = connect(&runtime, &broker).await;
    loop {
        match fetch(&mut client, partition, next_offset).await.expect("nothing goes wrong any more") {
            Some(fetched) => {
                let is_end = fetched.next_offset == next_offset;
                next_offset = fetched.next_offset;
                whole.lines.extend(fetched.lines);
                whole.last_stable_offset = fetched.last_stable_offset;
                whole.high_watermark = fetched.high_watermark;
                if is_end {
                    return whole;
                }
            }
            None => pause(&runtime, 20).await,
        }
    }
}

/// `None`: the partition is not ready.
async fn fetch(client: &mut Client, partition: i32, offset: i64) -> Result<Option<Fetched>, Lost> {
    let wanted = FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(offset)
        .with_partition_max_bytes(16 * 1024);
    let topic = FetchTopic::default().with_topic(topic_name(TOPIC)).with_partitions(vec![wanted]);
    let request = FetchRequest::default()
        .with_max_wait_ms(100)
        .with_min_bytes(1)
        .with_max_bytes(64 * 1024)
        .with_isolation_level(1)
        .with_session_epoch(-1)
        .with_topics(vec![topic]);
    let response = client.call(12, &request).await?;
    let Some(answer) = response.responses.first().map(|topic| &topic.partitions[0]) else { return Ok(None) };
    if answer.error_code != 0 {
        assert!(
            matches!(answer.error_code, 3 | 5 | 6 | 56),
            "a reader is answered error {}",
            answer.error_code
        );
        return Ok(None);
    }
    let aborted = answer.aborted_transactions.iter().flatten();
    let mut ahead: Vec<(i64, i64)> = aborted.map(|one| (one.first_offset, one.producer_id.0)).collect();
    ahead.sort_unstable();
    let (lines, next_offset) = committed_lines(answer.records.as_deref().unwrap_or_default(), offset, &ahead);
    Ok(Some(Fetched {
        lines,
        next_offset,
        last_stable_offset: answer.last_stable_offset,
        high_watermark: answer.high_watermark,
    }))
}

/// Drops what the broker says is aborted, as Kafka's consumer does. `ahead`: first offsets, rising, and producer ids.
fn committed_lines(batches: &[u8], offset: i64, ahead: &[(i64, i64)]) -> (Vec<(i64, String)>, i64) {
    let mut ahead = ahead.iter().peekable();
    let mut aborting = BTreeSet::new();
    let (mut lines, mut next_offset) = (Vec::new(), offset);
    for batch in Batches::new(batches) {
        assert!(batch.crc_matches(), "a reader gets a damaged batch");
        let header = &batch.header;
        while let Some((_, producer_id)) = ahead.next_if(|(first, _)| *first <= header.last_offset().0) {
            aborting.insert(*producer_id);
        }
        let unpacked = batch.unpack().expect("a sound batch can be read");
        let mut records = unpacked.records().map(|record| record.expect("a sound record can be read"));
        if header.is_control() {
            let key = records.next().and_then(|record| record.key);
            if key.and_then(ControlType::read_key) == Some(ControlType::Abort) {
                aborting.remove(&header.producer_id.0);
            }
        } else if !(header.is_transactional() && aborting.contains(&header.producer_id.0)) {
            for record in records.filter(|record| record.offset.0 >= offset) {
                let line = String::from_utf8_lossy(record.value.unwrap_or_default()).into_owned();
                lines.push((record.offset.0, line));
            }
        }
        next_offset = next_offset.max(header.next_offset().0);
    }
    (lines, next_offset)
}
