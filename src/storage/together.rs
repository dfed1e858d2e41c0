use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Runs all of `futures`, `most` at a time. Dropped half-way, so are those under way.
pub async fn together<F: Future<Output = ()>>(most: usize, futures: impl IntoIterator<Item = F>) {
    let mut waiting = futures.into_iter();
    let mut running: Vec<Pin<Box<F>>> = Vec::new();
    poll_fn(|context| {
        loop {
            running.extend(waiting.by_ref().take(most - running.len()).map(Box::pin));
            let begun = running.len();
            running.retain_mut(|future| future.as_mut().poll(context).is_pending());
            if running.len() == begun {
                return if begun == 0 { Poll::Ready(()) } else { Poll::Pending };
            }
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_lite::future::{block_on, yield_now};

    use super::*;

    #[test]
    fn all_are_run_and_never_more_than_asked_for_at_a_time() {
        let (running, most, done) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let work = |steps: usize| {
            let (running, most, done) = (&running, &most, &done);
            async move {
                running.set(running.get() + 1);
                most.set(running.get().max(most.get()));
                for _ in 0..steps {
                    yield_now().await;
                }
                running.set(running.get() - 1);
                done.set(done.get() + 1);
            }
        };
        block_on(together(3, (0..20).map(|i| work(i % 4))));
        assert_eq!((running.get(), most.get(), done.get()), (0, 3, 20));
    }
}
