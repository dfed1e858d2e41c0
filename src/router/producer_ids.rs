use std::rc::Rc;

use super::Router;
use crate::base::ProducerId;
use crate::metadata::{Decision, ProducerIdsError};
use crate::runtime::Runtime;

/// Why no producer id is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProducerIdRefusal {
    Refused(ProducerIdsError),
    /// The metadata log cannot be written.
    Unavailable,
}

impl<R: Runtime> Router<R> {
    /// A producer id that nobody else has or had. Each shard holds a block of them; a new block is decided on when it is used
    /// up, and what is left of a block at the end is never given.
    pub async fn next_producer_id(self: &Rc<Self>) -> Result<ProducerId, ProducerIdRefusal> {
        let ids = &self.shard.producer_ids;
        loop {
            if let Some(id) = ids.borrow_mut().take() {
                return Ok(id);
            }
            let _turn = self.shard.producer_ids_turn.take(1).await;
            if !ids.borrow().is_empty() {
                continue;
            }
            let decided = self.decide(|controller, _| match controller.allocate_producer_ids() {
                Ok(decision) => Decision { records: decision.records, answer: Ok(decision.answer) },
                Err(error) => Decision { records: Vec::new(), answer: Err(error) },
            });
            let block = decided
                .await
                .map_err(|_| ProducerIdRefusal::Unavailable)?
                .map_err(ProducerIdRefusal::Refused)?;
            ids.borrow_mut().refill(block.first, block.end());
        }
    }
}
