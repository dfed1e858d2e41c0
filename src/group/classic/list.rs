use crate::group::{Coordinator, ListGroups, ListedGroup, ProtocolName, ReplyToken, Response};

use super::{CLASSIC_TYPE, ClassicState};

impl Coordinator {
    /// Lists the groups that are durably there and pass both filters, by name.
    pub(in crate::group) fn list_groups(&mut self, token: ReplyToken, list: &ListGroups) {
        let mut groups: Vec<ListedGroup> = Vec::new();
        let wanted_type = list.types.is_empty() || list.types.iter().any(|name| matches(name, CLASSIC_TYPE));
        for (id, replayed) in self.replayed.groups().filter(|_| wanted_type) {
            let (state, protocol_type) = match self.classic.get(id) {
                Some(group) => (group.state, group.protocol_type.clone()),
                None => {
                    let metadata = replayed.metadata.as_ref();
                    (ClassicState::Empty, metadata.map(|metadata| metadata.protocol_type.clone()))
                }
            };
            let state = state.name();
            if list.states.is_empty() || list.states.iter().any(|name| matches(name.trim(), state)) {
                let protocol_type = protocol_type.unwrap_or_else(|| ProtocolName::new(""));
                groups.push(ListedGroup {
                    group: id.clone(),
                    protocol_type,
                    state,
                    group_type: CLASSIC_TYPE,
                });
            }
        }
        groups.sort_unstable_by(|a, b| a.group.cmp(&b.group));
        self.out.reply(token, Response::ListGroups(Ok(groups)));
    }
}

fn matches(given: &str, name: &str) -> bool {
    given.eq_ignore_ascii_case(name)
}
