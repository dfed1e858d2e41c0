use crate::group::outbox::{Then, Turn};
use crate::group::{AppendId, Cluster, Coordinator, GroupId, MemberId, Now, Record, ShareRecord, TimerKey};

use super::group::ShareGroup;

/// One share group in memory: what the log says of it, and what is on its way to the log. Requests go by that, their
/// answers wait until it is durable.
#[derive(Clone, Debug, Default)]
pub(in crate::group) struct LiveShareGroup {
    pub state: ShareGroup,
    /// The version of the cluster's topics that the group last looked at; `None`: it has not since the start.
    pub topics_version: Option<i64>,
    /// Since when the share coordinator is being asked for partitions; `None`: it is not, or not since the start.
    pub asked_at: Option<crate::base::Monotonic>,
}

/// Changes to one group, each in force as soon as it is written.
pub(super) struct Draft<'a> {
    pub id: &'a GroupId,
    pub group: &'a mut LiveShareGroup,
    pub records: Vec<Record>,
}

impl Draft<'_> {
    pub fn write(&mut self, record: ShareRecord) {
        self.group.state.replay(&record);
        self.records.push(Record::Share { group: self.id.clone(), record });
    }

    /// Takes a member out with all its records.
    pub fn write_removal(&mut self, member: &MemberId) {
        self.write(ShareRecord::CurrentAssignment(member.clone(), None));
        self.write(ShareRecord::TargetMember(member.clone(), None));
        self.write(ShareRecord::Member(member.clone(), None));
    }
}

impl Coordinator {
    /// A share group for whoever changes it, made from the log if it was not in memory.
    pub(super) fn enter_share(&mut self, id: &GroupId) -> Option<&mut LiveShareGroup> {
        if !self.share.contains_key(id) {
            let state = self.known(id)?.share.as_deref()?.clone();
            self.share.insert(id.clone(), LiveShareGroup { state, ..LiveShareGroup::default() });
        }
        self.share.get_mut(id)
    }

    /// The group as whoever writes sees it; `None`: there is none, or it is of another kind.
    pub(in crate::group) fn share_group(&self, id: &GroupId) -> Option<&ShareGroup> {
        match self.share.get(id) {
            Some(live) => Some(&live.state),
            None => self.known(id)?.share.as_deref(),
        }
    }

    /// Whether a group of another kind has this name.
    pub(super) fn is_of_another_kind(&self, id: &GroupId) -> bool {
        let is_known = |known: &crate::group::replay::ReplayedGroup| known.share.is_none();
        self.classic.contains_key(id)
            || self.consumer_group(id).is_some()
            || !self.share.contains_key(id) && self.known(id).is_some_and(is_known)
    }

    pub(super) fn append_share(&mut self, records: Vec<Record>) -> Option<AppendId> {
        if records.is_empty() { None } else { Some(self.out.append(records, Then::Nothing)) }
    }

    /// After the log is loaded every member gets a whole session to be heard of.
    pub(in crate::group) fn share_group_loaded(&mut self, now: Now, cluster: &dyn Cluster, id: &GroupId) {
        if self.enter_share(id).is_some() {
            self.arm_share_members(now, cluster, id);
        }
    }

    fn arm_share_members(&mut self, now: Now, cluster: &dyn Cluster, id: &GroupId) {
        let Some(live) = self.share.get(id) else { return };
        let session_timeout = cluster.share_timing(id).session_timeout;
        let members: Vec<MemberId> = live.state.members.keys().cloned().collect();
        let mut turn = self.turn(now);
        for member in members {
            arm_session(&mut turn, id, &member, session_timeout);
        }
    }

    /// Records that did not become durable have changed nothing: the groups are made anew of what is, and of what may still be.
    pub(in crate::group) fn share_append_failed(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        failed: &[Record],
    ) {
        let mut groups: Vec<&GroupId> = (failed.iter())
            .filter_map(|record| match record {
                Record::Share { group, .. } => Some(group),
                _ => None,
            })
            .collect();
        groups.dedup();
        for id in groups {
            if !self.share.contains_key(id) {
                continue;
            }
            let mut state = self.known(id).and_then(|known| known.share.clone());
            for record in self.out.in_flight.iter().flat_map(|append| &append.records) {
                match record {
                    Record::Share { group: of, record: ShareRecord::Group(None) } if of == id => state = None,
                    Record::Share { group: of, record } if of == id => {
                        state.get_or_insert_default().replay(record);
                    }
                    _ => {}
                }
            }
            match state {
                Some(state) => {
                    let live = LiveShareGroup { state: *state, ..LiveShareGroup::default() };
                    self.share.insert(id.clone(), live);
                    self.arm_share_members(now, cluster, id);
                }
                None => drop(self.share.remove(id)),
            }
        }
    }
}

pub(super) fn session_key(group: &GroupId, member: &MemberId) -> TimerKey {
    TimerKey::Session { group: group.clone(), member: member.clone() }
}

pub(super) fn arm_session(
    turn: &mut Turn<'_>,
    group: &GroupId,
    member: &MemberId,
    session_timeout: std::time::Duration,
) {
    turn.arm(session_key(group, member), session_timeout);
}
