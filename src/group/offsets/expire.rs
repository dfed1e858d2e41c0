use crate::base::{Set, TimestampMs, TopicName};
use crate::group::{
    CommittedOffset, Coordinator, Effect, GroupId, Note, Now, OffsetKey, Record, TimerKey,
    classic::ClassicGroup, outbox::Then, replay::ReplayedGroup,
};

/// Most groups looked at before others get their turn.
const GROUPS_PER_STEP_MAX: usize = 200;

impl Coordinator {
    pub(in crate::group) fn arm_expiry(&mut self, now: Now) {
        let interval = self.settings.offsets_retention_check_interval;
        self.turn(now).arm(TimerKey::Expiry, interval);
    }

    /// Forgets the offsets that nobody has used for the retention time, then the groups that have none left and no
    /// members, a step at a time.
    pub(in crate::group) fn expire(&mut self, now: Now) {
        if self.to_expire.is_empty() {
            self.to_expire = self.replayed.groups().map(|(id, _)| id.clone()).collect();
            self.to_expire.sort_unstable_by(|a, b| b.cmp(a));
        }
        let step = self.to_expire.len().saturating_sub(GROUPS_PER_STEP_MAX);
        let mut records = Vec::new();
        let mut groups = Vec::new();
        for id in self.to_expire.split_off(step).into_iter().rev() {
            self.expire_group(now, &id, &mut records, &mut groups);
        }
        self.forget(now, records, groups);
        if self.to_expire.is_empty() {
            self.arm_expiry(now);
        } else {
            self.turn(now).arm(TimerKey::Expiry, std::time::Duration::ZERO);
        }
    }

    fn forget(&mut self, now: Now, records: Vec<Record>, groups: Vec<GroupId>) {
        if records.is_empty() {
            return;
        }
        let offsets = records.len() - groups.len();
        self.out.effects.push(Effect::Note(Note::Expired { offsets, groups: groups.len() }));
        if groups.is_empty() {
            self.out.append_tombstones(records, Then::Nothing);
        } else {
            self.delete(now, records, groups);
        }
    }

    fn expire_group(&self, now: Now, id: &GroupId, records: &mut Vec<Record>, groups: &mut Vec<GroupId>) {
        let Some(known) = self.known(id) else { return };
        // Share groups stay until somebody deletes them, as in Kafka.
        if self.share_group(id).is_some() {
            return;
        }
        if let Some(group) = self.consumer_group(id) {
            // As in Kafka it is the topics that the members want now that count, not when they left.
            let unused_since = |topic: &TopicName, committed: &CommittedOffset| {
                (!group.is_subscribed_to(topic)).then_some(committed.commit_timestamp)
            };
            let all_gone = self.expire_offsets(now, id, known, unused_since, records);
            if all_gone && group.members.is_empty() {
                group.tombstones(id, records);
                groups.push(id.clone());
            }
            return;
        }
        let from_log;
        let group = match self.classic.get(id) {
            Some(group) => group,
            None => {
                from_log = ClassicGroup::from_replayed(id, known);
                &from_log
            }
        };
        let unused_since = |topic: &TopicName, committed: &CommittedOffset| {
            group.unused_since(topic, committed.commit_timestamp)
        };
        let all_gone = self.expire_offsets(now, id, known, unused_since, records);
        if all_gone && group.is_empty() && !group.has_pending_members() {
            records.push(Record::Group { group: id.clone(), value: None });
            groups.push(id.clone());
        }
    }

    /// Lists the group's offsets that have expired; says whether that is all there is. `unused_since`: since when an offset
    /// has been of no use; `None`: it is in use.
    fn expire_offsets(
        &self,
        now: Now,
        id: &GroupId,
        known: &ReplayedGroup,
        unused_since: impl Fn(&TopicName, &CommittedOffset) -> Option<TimestampMs>,
        records: &mut Vec<Record>,
    ) -> bool {
        let under_way: Set<&OffsetKey> = self.commits_under_way(id).collect();
        let mut all_gone = under_way.is_empty() && known.pending.is_empty();
        for (topic, partitions) in known.topics() {
            for (partition, committed) in partitions {
                let key = OffsetKey { group: id.clone(), topic: topic.clone(), partition: *partition };
                let unused_since = unused_since(topic, committed);
                let may_change = under_way.contains(&key) || known.pending.holds(topic, *partition);
                if self.is_expired(now.wall, unused_since, committed) && !may_change {
                    records.push(Record::Offset { key, value: None });
                } else {
                    all_gone = false;
                }
            }
        }
        all_gone
    }

    /// Whether an offset has been of no use for the retention time (KIP-211), or for the time its client gave it.
    fn is_expired(
        &self,
        now: TimestampMs,
        unused_since: Option<TimestampMs>,
        committed: &CommittedOffset,
    ) -> bool {
        let Some(unused_since) = unused_since else { return false };
        if committed.expire_timestamp != TimestampMs::NONE {
            return now >= committed.expire_timestamp;
        }
        let unused_ms = u64::try_from(now.0.saturating_sub(unused_since.0)).unwrap_or(0);
        u128::from(unused_ms) >= self.settings.offsets_retention.as_millis()
    }
}
