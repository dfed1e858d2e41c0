//! Questions of the operator's thread to every shard, and their answers.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use atomic_waker::AtomicWaker;
use futures_lite::future::poll_fn;
use std::task::Poll;
use tokio::sync::{Mutex, oneshot};

/// Where one shard hears questions. Holds one at a time.
pub struct Questions<A> {
    line: mpsc::Receiver<oneshot::Sender<A>>,
    waker: Arc<AtomicWaker>,
}

/// Who answers one question.
pub struct Question<A>(oneshot::Sender<A>);

struct Asked<A> {
    line: mpsc::SyncSender<oneshot::Sender<A>>,
    waker: Arc<AtomicWaker>,
}

/// Asks all shards, one round at a time.
pub struct Asker<A> {
    shards: Vec<Asked<A>>,
    turn: Mutex<()>,
}

/// The ends for `count` shards.
pub fn questions<A>(count: usize) -> (Asker<A>, Vec<Questions<A>>) {
    let pair = |_| {
        let ((sender, line), waker) = (mpsc::sync_channel(1), Arc::new(AtomicWaker::new()));
        (Asked { line: sender, waker: waker.clone() }, Questions { line, waker })
    };
    let (shards, heard) = (0..count).map(pair).unzip();
    (Asker { shards, turn: Mutex::new(()) }, heard)
}

impl<A> Asker<A> {
    /// Asks every shard; `None` in the place of one that does not answer within `patience`. For tasks of `http::serve`. Safe to drop.
    pub async fn ask(&self, patience: Duration) -> Vec<Option<A>> {
        let _turn = self.turn.lock().await;
        let deadline = tokio::time::Instant::now() + patience;
        let mut waits = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let (answer, wait) = oneshot::channel();
            // Full: it has not heard the question before this one.
            let asked = shard.line.try_send(answer).is_ok();
            shard.waker.wake();
            waits.push(asked.then_some(wait));
        }
        let mut answers = Vec::with_capacity(waits.len());
        for wait in waits {
            answers.push(match wait {
                Some(wait) => tokio::time::timeout_at(deadline, wait).await.ok().and_then(Result::ok),
                None => None,
            });
        }
        answers
    }
}

impl<A> Questions<A> {
    /// The next question; `None`: nobody asks any more. One task calls this. Safe to drop.
    pub async fn next(&mut self) -> Option<Question<A>> {
        poll_fn(|context| {
            self.waker.register(context.waker());
            match self.line.try_recv() {
                Ok(answer) => Poll::Ready(Some(Question(answer))),
                Err(mpsc::TryRecvError::Empty) => Poll::Pending,
                Err(mpsc::TryRecvError::Disconnected) => Poll::Ready(None),
            }
        })
        .await
    }
}

impl<A> Drop for Asker<A> {
    fn drop(&mut self) {
        self.shards.drain(..).for_each(|Asked { line, waker }| {
            drop(line);
            waker.wake();
        });
    }
}

impl<A> Question<A> {
    pub fn answer(self, answer: A) {
        // Who asked may have lost patience.
        let _ = self.0.send(answer);
    }
}
