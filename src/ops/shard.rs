use std::rc::Rc;

use crate::metrics::ShardSnapshot;
use crate::runtime::Runtime;
use crate::runtime::questions::Questions;
use crate::shard::Shard;

/// Shows what the shard has counted to whoever asks. One task a shard.
pub async fn answer_questions<R: Runtime>(shard: Rc<Shard<R>>, mut questions: Questions<ShardSnapshot>) {
    while let Some(question) = questions.next().await {
        question.answer(shard.snapshot());
    }
}
