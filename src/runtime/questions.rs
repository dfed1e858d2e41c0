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

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Wakes>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(future)
    }

    /// A shard of its own thread that answers with its number until nobody asks.
    fn answering(mut shard: Questions<usize>, number: usize) -> std::thread::JoinHandle<()> {
        std::thread::spawn(move || {
            futures_lite::future::block_on(async {
                while let Some(question) = shard.next().await {
                    question.answer(number);
                }
            });
        })
    }

    #[test]
    fn answers_stand_in_the_order_of_shards_and_the_shards_end_with_the_asker() {
        let (asker, shards) = questions(3);
        let threads: Vec<_> = shards.into_iter().enumerate().map(|(i, shard)| answering(shard, i)).collect();
        for _ in 0..100 {
            assert_eq!(block_on(asker.ask(PATIENCE)), [Some(0), Some(1), Some(2)]);
        }
        drop(asker);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_shard_that_is_gone_gives_no_answer_and_holds_nobody_up() {
        let (asker, mut shards) = questions(2);
        drop(shards.remove(0));
        let thread = answering(shards.remove(0), 1);
        assert_eq!(block_on(asker.ask(PATIENCE)), [None, Some(1)]);
        drop(asker);
        thread.join().unwrap();
    }

    #[test]
    fn a_shard_that_did_not_hear_one_question_has_no_second_in_line() {
        let (asker, mut shards) = questions::<usize>(1);
        assert_eq!(block_on(asker.ask(Duration::ZERO)), [None]);
        // Its one place is taken, so this does not wait for an answer at all.
        assert_eq!(block_on(asker.ask(PATIENCE)), [None]);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(question)) = pin!(shards[0].next()).poll(&mut context) else {
            panic!("the first question is there")
        };
        question.answer(7);
        assert!(pin!(shards[0].next()).poll(&mut context).is_pending());
        let thread = answering(shards.remove(0), 8);
        assert_eq!(block_on(asker.ask(PATIENCE)), [Some(8)]);
        drop(asker);
        thread.join().unwrap();
    }

    #[test]
    fn a_question_and_the_askers_end_wake_a_shard_that_waits() {
        let (asker, mut shards) = questions::<usize>(1);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let mut context = Context::from_waker(&waker);
        assert!(pin!(shards[0].next()).poll(&mut context).is_pending());
        assert_eq!(block_on(asker.ask(Duration::ZERO)), [None]);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(pin!(shards[0].next()).poll(&mut context).is_ready());
        assert!(pin!(shards[0].next()).poll(&mut context).is_pending());
        drop(asker);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
        assert!(matches!(pin!(shards[0].next()).poll(&mut context), Poll::Ready(None)));
    }
}
