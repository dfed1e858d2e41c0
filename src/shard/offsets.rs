use std::rc::Rc;

use super::Shard;
use super::data_plane::QueryRefusal;
use crate::base::{LeaderEpoch, TopicPartition};
use crate::partition::EpochEnd;
use crate::runtime::Runtime;

impl<R: Runtime> Shard<R> {
    /// Up to where `asked` reaches in this log.
    pub async fn end_of_epoch(
        self: &Rc<Self>,
        partition: TopicPartition,
        asked: LeaderEpoch,
        current: Option<LeaderEpoch>,
    ) -> Result<EpochEnd, QueryRefusal> {
        let replica = self.open_replica_of(partition).await?;
        let end = replica.rules.borrow().end_of_epoch(asked, current);
        end.map_err(QueryRefusal::Refused)
    }
}
