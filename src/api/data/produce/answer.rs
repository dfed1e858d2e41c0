use std::rc::Rc;

use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::super::super::context::RequestContext;
use crate::base::TopicPartition;
use crate::partition::AppendError;
use crate::protocol::{ErrorCode, RequestHeader, append_code};
use crate::record::InvalidBatch;
use crate::runtime::Runtime;
use crate::shard::{AppendRefusal, Appended};

/// First version that tells the log start offset.
const FIRST_LOG_START_VERSION: i16 = 5;

/// The answer of one partition entry.
pub struct Answer {
    response: PartitionProduceResponse,
    /// A refusal by who has not asked the log, that also tells where this partition's log starts; that is still to be asked for.
    log_start_of: Option<TopicPartition>,
}

impl Answer {
    /// Refused before the log was asked.
    pub fn refused(index: i32, code: ErrorCode) -> Answer {
        Answer { response: refusal(index, code.code()), log_start_of: None }
    }

    pub fn of_invalid(index: i32, partition: TopicPartition, invalid: &InvalidBatch) -> Answer {
        let errors = invalid.record_errors.iter().map(|error| {
            BatchIndexAndErrorMessage::default()
                .with_batch_index(error.batch_index)
                .with_batch_index_error_message(Some(StrBytes::from_string(error.message.clone())))
        });
        let response = refusal(index, invalid.error.code())
            .with_error_message(invalid.message().map(StrBytes::from_string))
            .with_record_errors(errors.collect());
        Answer { response, log_start_of: invalid.tells_log_start_offset().then_some(partition) }
    }

    pub fn of_append<R: Runtime>(
        context: &RequestContext<R>,
        index: i32,
        result: Result<Appended, AppendRefusal>,
    ) -> Answer {
        let refused = match result {
            Ok(appended) => {
                let response = PartitionProduceResponse::default()
                    .with_index(index)
                    .with_base_offset(appended.base_offset.0)
                    .with_log_append_time_ms(appended.log_append_time.0)
                    .with_log_start_offset(appended.log_start_offset.0);
                return Answer { response, log_start_of: None };
            }
            Err(refused) => refused,
        };
        let code = append_code(&refused);
        let mut response = refusal(index, code);
        if code == ErrorCode::NotLeaderOrFollower.code() {
            let leader = BrokerId(context.shard().config().node_id.0);
            response = response.with_current_leader(LeaderIdAndEpoch::default().with_leader_id(leader));
        }
        if let AppendRefusal::Refused { error, log_start_offset } = refused
            && tells_log_start_offset(error)
        {
            response = response.with_log_start_offset(log_start_offset.0);
        }
        Answer { response, log_start_of: None }
    }

    /// The answer with all it tells. Safe to drop half-way.
    pub async fn complete<R: Runtime>(
        mut self,
        context: &Rc<RequestContext<R>>,
        header: &RequestHeader,
    ) -> PartitionProduceResponse {
        if let Some(partition) = self.log_start_of
            && header.version >= FIRST_LOG_START_VERSION
        {
            let asked = context.router.on(context.owner_of(partition), move |shard| async move {
                shard.log_start_offset(partition).await
            });
            if let Some(Ok(log_start_offset)) = asked.await {
                self.response.log_start_offset = log_start_offset.0;
            }
        }
        self.response
    }
}

/// What the log itself refuses comes with its start, but for the errors that Kafka counts as expected.
/// Source: Kafka's `ReplicaManager.appendToLocalLog`.
fn tells_log_start_offset(error: AppendError) -> bool {
    match error {
        AppendError::NotLeaderOrFollower | AppendError::KafkaStorageError => false,
        AppendError::NotEnoughReplicas
        | AppendError::OutOfOrderSequenceNumber
        | AppendError::InvalidProducerEpoch
        | AppendError::InvalidTxnState
        | AppendError::TransactionCoordinatorFenced => true,
    }
}

fn refusal(index: i32, code: i16) -> PartitionProduceResponse {
    PartitionProduceResponse::default()
        .with_index(index)
        .with_error_code(code)
        .with_base_offset(-1)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(-1)
}
