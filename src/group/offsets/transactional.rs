use crate::base::TopicId;
use crate::group::{
    Coordinator, EndTransaction, Generation, GroupError, Now, OffsetCommit, ReplyToken, Response,
    TxnOffsetCommit,
    names::NAME_BYTES_MAX,
    outbox::{Then, Waiting},
};

impl Coordinator {
    /// Remembers offsets that hold once the producer's transaction commits; answered when they are durable. Whoever says who it
    /// is in the group must be in it; clients before KIP-447 do not say, and may commit whatever the group does.
    /// Errors for all: `InvalidGroupId`, `IllegalGeneration`, `UnknownMemberId`, `FencedInstanceId`, `InvalidProducerEpoch`,
    /// `InvalidTxnState` (the transaction has ended meanwhile). For one: `OffsetMetadataTooLarge`.
    /// Source: KIP-447; Kafka's `OffsetMetadataManager.commitTransactionalOffset`.
    pub(in crate::group) fn commit_in_transaction(
        &mut self,
        now: Now,
        token: ReplyToken,
        request: TxnOffsetCommit,
    ) {
        if let Err(error) = self.check_transactional(now, &request.commit) {
            return self.out.reply(token, Response::TxnOffsetCommit(Err(error)));
        }
        let mut commit = request.commit;
        // TxnOffsetCommit has no topic ids, and Kafka writes none.
        commit.topics.iter_mut().for_each(|topic| topic.topic_id = TopicId::ZERO);
        let (records, outcomes) = self.records_of(now, commit);
        let response = Response::TxnOffsetCommit(Ok(outcomes));
        if records.is_empty() {
            return self.out.reply(token, response);
        }
        let append = self.out.append_of(Some(request.producer), records, Then::Nothing);
        self.out.wait(append, Waiting::Answer { token, response });
    }

    fn check_transactional(&mut self, now: Now, commit: &OffsetCommit) -> Result<(), GroupError> {
        if commit.group.is_empty() || commit.group.as_str().len() > NAME_BYTES_MAX {
            return Err(GroupError::InvalidGroupId);
        }
        let is_anonymous =
            commit.generation < Generation(0) && commit.member.is_empty() && commit.instance.is_none();
        if is_anonymous {
            return Ok(());
        }
        if let Some(group) = self.consumer_group(&commit.group) {
            return group.check_commit(commit).map_err(|error| match error {
                GroupError::StaleMemberEpoch => GroupError::IllegalGeneration,
                error => error,
            });
        }
        if let Some((group, _)) = self.enter_live(now, &commit.group) {
            return group.check_transactional(commit);
        }
        if commit.generation < Generation(0) {
            return Ok(());
        }
        let is_known = self.known(&commit.group).is_some();
        Err(if is_known { GroupError::UnknownMemberId } else { GroupError::IllegalGeneration })
    }

    /// Ends a producer's transaction in this partition: its marker is written, and once that is durable its offsets hold, or are
    /// dropped. Errors: `InvalidProducerEpoch`, `TransactionCoordinatorFenced`.
    pub(in crate::group) fn end_transaction(&mut self, token: ReplyToken, end: EndTransaction) {
        let append = self.out.append_marker(end);
        self.out.wait(append, Waiting::Answer { token, response: Response::EndTransaction(Ok(())) });
    }
}
