//! The share coordinator's own requests: each asks the same of many partitions of one group, and is answered for each.

use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::group::wire::text;
use super::group_state::ask_each;
use crate::base::{GroupId, PartitionIndex, TopicId, TopicPartition};
use crate::protocol::{ErrorCode, share_state_code};
use crate::runtime::Runtime;
use crate::share::{StateAnswer, StateQuestion};

/// An error's code and what goes with it.
pub type Refused = (i16, Option<StrBytes>);

/// Asks of every partition of `topics` what `question` says, and gives the answers in the same order. `None` of it: such a
/// question cannot be.
pub async fn ask_all<R: Runtime, P>(
    context: &Rc<RequestContext<R>>,
    group: &str,
    topics: &[(Uuid, &[P])],
    question: impl Fn(&P) -> (i32, Option<StateQuestion>),
) -> Vec<(Uuid, Vec<(i32, Result<StateAnswer, Refused>)>)> {
    let mut answers: BTreeMap<TopicPartition, Result<StateAnswer, Refused>> = BTreeMap::new();
    let mut questions = Vec::new();
    let is_sound = !group.is_empty();
    for (topic_id, partitions) in topics {
        for asked in *partitions {
            let (index, question) = question(asked);
            let partition = TopicPartition { topic_id: TopicId(*topic_id), partition: PartitionIndex(index) };
            let question = question.filter(|_| is_sound && index >= 0);
            let exists = context.shard().image.borrow().partition(partition).is_some();
            match question {
                Some(question) if exists => questions.push((partition, question)),
                Some(_) => {
                    let refused = (ErrorCode::UnknownTopicOrPartition.code(), None);
                    answers.insert(partition, Err(refused));
                }
                None => {
                    answers.insert(partition, Err((ErrorCode::InvalidRequest.code(), None)));
                }
            }
        }
    }
    let group = GroupId::new(group);
    for (partition, result) in ask_each(context, &group, questions).await {
        let refused = |refusal| (share_state_code(&refusal), Some(text(&format!("{refusal:?}"))));
        answers.insert(partition, result.map_err(refused));
    }
    let answer_of = |topic_id: Uuid, index: i32| {
        let partition = TopicPartition { topic_id: TopicId(topic_id), partition: PartitionIndex(index) };
        answers.get(&partition).cloned().unwrap_or(Err((ErrorCode::InvalidRequest.code(), None)))
    };
    let of_topic = |(topic_id, partitions): &(Uuid, &[P])| {
        let rows = partitions.iter().map(|asked| {
            let (index, _) = question(asked);
            (index, answer_of(*topic_id, index))
        });
        (*topic_id, rows.collect())
    };
    topics.iter().map(of_topic).collect()
}
