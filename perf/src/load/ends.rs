//! Where each partition ends once everything that was acknowledged is in it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::shared::Shared;
use crate::verify::Sent;
use crate::wire::admin::{Admin, Failure};
use crate::workload::settings::Acks;

const LOOK: Duration = Duration::from_millis(100);
/// Without acknowledgements nothing tells when the broker has taken what was sent: it has when the ends stand still so often.
const STANDING_LOOKS: usize = 20;

/// End offset of every partition, asked of its leader.
pub fn end_offsets(shared: &Shared, admin: &mut Admin, sent: &Sent) -> Result<Vec<i64>, Failure> {
    let mut ends = ask(shared, admin)?;
    if shared.workload.producers.acks == Acks::None {
        let all: u64 = sent.streams.values().map(|stream| stream.records).sum();
        let mut standing = 0;
        while ends.iter().sum::<i64>() < all as i64 && standing < STANDING_LOOKS {
            std::thread::sleep(LOOK);
            let now = ask(shared, admin)?;
            standing = if now == ends { standing + 1 } else { 0 };
            ends = now;
        }
    }
    Ok(ends)
}

fn ask(shared: &Shared, admin: &mut Admin) -> Result<Vec<i64>, Failure> {
    let mut ends = vec![0; shared.topic.leaders.len()];
    let by_leader = shared.partitions_by_leader();
    let is_alone = by_leader.len() == 1;
    for (leader, partitions) in by_leader {
        let address = shared.topic.addresses.get(&leader).map_or("", String::as_str);
        let found: BTreeMap<i32, i64> = match is_alone {
            true => admin.end_offsets(&shared.topic.name, &partitions)?,
            false => Admin::connect(address)?.end_offsets(&shared.topic.name, &partitions)?,
        };
        for (partition, end) in found {
            *ends.get_mut(partition as usize).ok_or("ListOffsets names a partition that is not there")? = end;
        }
    }
    Ok(ends)
}
