use crate::group::consumer::CONSUMER_TYPE;
use crate::group::share::SHARE_TYPE;
use crate::group::{Coordinator, ListGroups, ListedGroup, ProtocolName, ReplyToken, Response};

use super::{CLASSIC_TYPE, ClassicState};

impl Coordinator {
    /// Lists the groups that are durably there and pass both filters, by name.
    pub(in crate::group) fn list_groups(&mut self, token: ReplyToken, list: &ListGroups) {
        let mut groups: Vec<ListedGroup> = Vec::new();
        for (id, replayed) in self.replayed.groups() {
            let (group_type, state, protocol_type) = match (&replayed.consumer, self.classic.get(id)) {
                (None, None) if let Some(group) = &replayed.share => {
                    (SHARE_TYPE, group.state_name(), Some(SHARE_TYPE.into()))
                }
                (Some(group), _) => (CONSUMER_TYPE, group.state().name(), Some(CONSUMER_TYPE.into())),
                (None, Some(group)) => (CLASSIC_TYPE, group.state.name(), group.protocol_type.clone()),
                (None, None) => {
                    let metadata = replayed.metadata.as_ref();
                    let protocol_type = metadata.map(|metadata| metadata.protocol_type.clone());
                    (CLASSIC_TYPE, ClassicState::Empty.name(), protocol_type)
                }
            };
            let of_type = list.types.is_empty() || list.types.iter().any(|name| matches(name, group_type));
            let in_state =
                list.states.is_empty() || list.states.iter().any(|name| matches(name.trim(), state));
            if of_type && in_state {
                let protocol_type = protocol_type.unwrap_or_else(|| ProtocolName::new(""));
                groups.push(ListedGroup { group: id.clone(), protocol_type, state, group_type });
            }
        }
        groups.sort_unstable_by(|a, b| a.group.cmp(&b.group));
        self.out.reply(token, Response::ListGroups(Ok(groups)));
    }
}

fn matches(given: &str, name: &str) -> bool {
    given.eq_ignore_ascii_case(name)
}
