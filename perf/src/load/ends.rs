//! Where each partition ends once everything that was acknowledged is in it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::shared::Shared;
use crate::verify::Sent;
use crate::wire::admin::{Admin, Failure, TopicPlace};
use crate::workload::settings::Acks;

const LOOK: Duration = Duration::from_millis(100);
/// Without acknowledgements nothing tells when the broker has taken what was sent: it has when the ends stand still so often.
const STANDING_LOOKS: usize = 20;

/// End offset of every partition, asked of its leader.
pub fn end_offsets(shared: &Shared, admin: &mut Admin, sent: &Sent) -> Result<Vec<i64>, Failure> {
    let mut ends = ask(&shared.topic, admin)?;
    if shared.workload.producers.acks == Acks::None {
        let all: u64 = sent.streams.values().map(|stream| stream.records).sum();
        let mut standing = 0;
        while ends.iter().sum::<i64>() < all as i64 && standing < STANDING_LOOKS {
            std::thread::sleep(LOOK);
            let now = ask(&shared.topic, admin)?;
            standing = if now == ends { standing + 1 } else { 0 };
            ends = now;
        }
    }
    Ok(ends)
}

/// Waits until every leader serves its partitions: one that has just been named may still refuse them.
pub fn wait_for_leaders(topic: &TopicPlace, admin: &mut Admin) -> Result<(), Failure> {
    ask(topic, admin).map(drop)
}

fn ask(topic: &TopicPlace, admin: &mut Admin) -> Result<Vec<i64>, Failure> {
    let mut ends = vec![0; topic.leaders.len()];
    let by_leader = topic.partitions_by_leader();
    let is_alone = by_leader.len() == 1;
    for (leader, partitions) in by_leader {
        let address = topic.addresses.get(&leader).map_or("", String::as_str);
        let found: BTreeMap<i32, i64> = match is_alone {
            true => admin.end_offsets(&topic.name, &partitions)?,
            false => Admin::connect(address)?.end_offsets(&topic.name, &partitions)?,
        };
        for (partition, end) in found {
            *ends.get_mut(partition as usize).ok_or("ListOffsets names a partition that is not there")? = end;
        }
    }
    Ok(ends)
}
