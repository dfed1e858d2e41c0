use std::time::Duration;

use super::Shard;
use crate::base::GroupId;
use crate::config::{ShareOffsetReset, share_offset_reset};
use crate::metadata::ResourceType;
use crate::partition::IsolationLevel;
use crate::runtime::Runtime;
use crate::share::ShareLimits;

/// What is set for a share group, or for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareSettings {
    pub limits: ShareLimits,
    /// `share.isolation.level`
    pub isolation: IsolationLevel,
    /// `share.auto.offset.reset`
    pub offset_reset: ShareOffsetReset,
}

impl<R: Runtime> Shard<R> {
    pub fn share_settings(&self, group: &GroupId) -> ShareSettings {
        let image = self.image.borrow();
        let own = image.overrides(ResourceType::Group, group.as_str());
        let config = self.config();
        let whole = |name: &str, of_all: i64| {
            own.get(name).and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or(of_all)
        };
        let lock_ms = whole("share.record.lock.duration.ms", config.group_share_record_lock_duration_ms);
        let count_limit = whole("share.delivery.count.limit", config.group_share_delivery_count_limit);
        let committed =
            own.get("share.isolation.level").is_some_and(|level| level.trim() == "read_committed");
        ShareSettings {
            limits: ShareLimits {
                record_locks_max: whole(
                    "share.partition.max.record.locks",
                    config.group_share_partition_max_record_locks,
                ),
                delivery_count_limit: i16::try_from(count_limit).unwrap_or(i16::MAX),
                lock_duration: Duration::from_millis(u64::try_from(lock_ms).unwrap_or(0)),
            },
            isolation: if committed {
                IsolationLevel::ReadCommitted
            } else {
                IsolationLevel::ReadUncommitted
            },
            offset_reset: (own.get("share.auto.offset.reset"))
                .and_then(|text| share_offset_reset(text.trim()))
                .unwrap_or(ShareOffsetReset::Latest),
        }
    }
}
