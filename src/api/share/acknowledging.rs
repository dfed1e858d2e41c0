//! What a member says of records, taken to the owners of their partitions and remembered before it is answered.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::context::RequestContext;
use crate::base::{GroupId, MemberId, Offset, TopicPartition};
use crate::protocol::{ErrorCode, share_code};
use crate::router::Router;
use crate::runtime::Runtime;
use crate::share::{AcknowledgeType, Acknowledgement, SharePartitionKey};

/// For each partition that was spoken of: 0, or why nothing of it holds.
pub type Codes = BTreeMap<TopicPartition, i16>;

/// One partition of a request, with first offset, last offset and types of each batch.
pub type Said<'a> = (TopicPartition, Vec<(i64, i64, &'a [i8])>);

/// Takes it all to the owners, all at the same time. What is taken is seen through even if the asker has gone.
pub async fn acknowledge<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    member: &MemberId,
    said: Vec<Said<'_>>,
) -> Codes {
    let mut codes = Codes::new();
    let mut under_way = Vec::new();
    for (partition, batches) in said {
        let Some(acknowledgements) = acknowledgements(&batches) else {
            codes.insert(partition, ErrorCode::InvalidRequest.code());
            continue;
        };
        let (key, member) = (SharePartitionKey { group: group.clone(), partition }, member.clone());
        let taken = context.router.at(context.owner_of(partition), move |router: Rc<Router<R>>| {
            let owner = router.clone();
            router.to_the_end(async move { owner.acknowledge_shared(&key, &member, &acknowledgements).await })
        });
        under_way.push((partition, taken));
    }
    for (partition, taken) in under_way {
        codes.insert(
            partition,
            match taken.await.flatten() {
                Some(outcome) => outcome.as_ref().err().map_or(0, share_code),
                None => ErrorCode::NotLeaderOrFollower.code(),
            },
        );
    }
    codes
}

/// Gives back all that a member has of `partitions`.
pub async fn release<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    member: &MemberId,
    partitions: &[TopicPartition],
) {
    let released = partitions.iter().map(|partition| {
        let (key, member) =
            (SharePartitionKey { group: group.clone(), partition: *partition }, member.clone());
        context.router.at(context.owner_of(*partition), move |router: Rc<Router<R>>| {
            let owner = router.clone();
            router.to_the_end(async move { owner.release_shared(&key, &member).await })
        })
    });
    for released in released.collect::<Vec<_>>() {
        if let Some(Some(Err(refusal))) = released.await {
            tracing::debug!(?refusal, "a share session's records are not given back; their locks time out");
        }
    }
}

/// `None`: types that do not exist, or batches that are no such.
fn acknowledgements(batches: &[(i64, i64, &[i8])]) -> Option<Vec<Acknowledgement>> {
    let mut all = Vec::with_capacity(batches.len());
    for (first, last, codes) in batches {
        let types = codes.iter().map(|code| AcknowledgeType::of_code(*code));
        let types: Vec<AcknowledgeType> = types.collect::<Option<_>>()?;
        all.push(Acknowledgement { first: Offset(*first), last: Offset(*last), types });
    }
    Acknowledgement::check_all(&all).ok()?;
    Some(all)
}
