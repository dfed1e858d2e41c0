//! Which core owns what, and how work gets there.
//!
//! A call for the own shard is a plain call. One for another shard is a letter in its mailbox: a piece of work that runs
//! there on that shard's state, and whose answer comes back the same way. Connections travel as letters too.

mod compaction;
mod controller;
mod delete_records;
mod links;
mod placement;
mod producer_ids;
mod replay;
mod share_groups;
mod retention;
mod transaction_markers;
mod transactions;
mod waits;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::base::{Map, ShardId};
use crate::runtime::{Lane, Runtime, mailbox};
use crate::shard::{Bell, Completer, Completion, Shard, completion};

pub use controller::{CONTROLLER_SHARD, METADATA_PARTITION};
pub use links::{ConnectionFacts, Links, MovedConnection, links};
pub use placement::{coordinator_partition, shard_of};
pub use producer_ids::ProducerIdRefusal;

use waits::Waits;

/// The answer of a piece of work on its way back.
type Parcelled = Box<dyn Any + Send>;
/// A piece of work on its way to the shard it is for.
type Work<R> = Box<dyn FnOnce(Rc<Router<R>>) -> Pin<Box<dyn Future<Output = Parcelled>>> + Send>;

/// Work that has begun: here, or on its way.
enum Begun<F> {
    Here(F),
    There(Completion<Parcelled>),
}

/// What crosses from one core to another.
pub enum Letter<R: Runtime> {
    Work {
        slot: u64,
        work: Work<R>,
    },
    /// Work that only waits, until its answer or `GiveUp`.
    Wait {
        slot: u64,
        work: Work<R>,
    },
    /// Nobody waits for that answer any more.
    GiveUp {
        slot: u64,
    },
    Answer {
        slot: u64,
        value: Parcelled,
    },
    Connection(MovedConnection<R>),
}

/// One shard's view of all shards.
pub struct Router<R: Runtime> {
    pub shard: Rc<Shard<R>>,
    /// Shards that own partitions: the first ones.
    owner_count: u16,
    outgoing: Vec<Option<mailbox::Sender<Letter<R>>>>,
    incoming: Vec<Option<mailbox::Receiver<Letter<R>>>>,
    /// Letters that found their mailbox full, in order, one line a peer. New requests are not begun while one waits.
    overflow: RefCell<VecDeque<(usize, Letter<R>)>>,
    overflow_bell: Bell,
    next_slot: Cell<u64>,
    /// Work sent out whose answer has not come yet.
    awaited: RefCell<Map<u64, Completer<Parcelled>>>,
    /// What runs here only until another shard gives it up.
    waits: Waits,
    arrivals: RefCell<VecDeque<MovedConnection<R>>>,
    arrivals_bell: Bell,
}

impl<R: Runtime> Router<R> {
    pub fn new(shard: Rc<Shard<R>>, links: Links<R>) -> Rc<Router<R>> {
        Rc::new(Router {
            shard,
            owner_count: links.owner_count,
            outgoing: links.outgoing,
            incoming: links.incoming,
            overflow: RefCell::default(),
            overflow_bell: Bell::default(),
            next_slot: Cell::new(0),
            awaited: RefCell::default(),
            waits: Waits::default(),
            arrivals: RefCell::default(),
            arrivals_bell: Bell::default(),
        })
    }

    pub fn id(&self) -> ShardId {
        self.shard.id
    }
    /// How many shards own partitions; they are the first ones.
    pub fn owner_count(&self) -> u16 {
        self.owner_count
    }
    /// How many shards the broker has, with the one that only accepts connections if there is one.
    pub fn shard_count(&self) -> u16 {
        u16::try_from(self.outgoing.len()).expect("shards are at most SHARDS_MAX")
    }
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + use<R> {
        (0..self.shard_count()).map(ShardId)
    }
    /// Where connections are accepted and counted: a shard of its own that owns nothing (`onrush.router.core`), or the first.
    pub fn entrance(&self) -> ShardId {
        if self.shard_count() > self.owner_count { ShardId(self.owner_count) } else { ShardId(0) }
    }

    /// Runs `work` on the shard `owner` and gives its answer; `None` when that shard has stopped.
    ///
    /// The closure itself runs in the order of these calls (here at once, elsewhere in the order of arrival); only the
    /// future it returns waits. So whoever calls twice has its first call take effect first. The caller may drop the
    /// future: the work is done all the same.
    pub fn on<T, F, W>(
        self: &Rc<Self>,
        owner: ShardId,
        work: W,
    ) -> impl Future<Output = Option<T>> + use<R, T, F, W>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        W: FnOnce(Rc<Shard<R>>) -> F + Send + 'static,
    {
        self.at(owner, move |router| work(router.shard.clone()))
    }

    /// As `on`, for work that needs the whole router there.
    pub fn at<T, F, W>(
        self: &Rc<Self>,
        owner: ShardId,
        work: W,
    ) -> impl Future<Output = Option<T>> + use<R, T, F, W>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        W: FnOnce(Rc<Router<R>>) -> F + Send + 'static,
    {
        self.begin(owner, work, |slot, work| Letter::Work { slot, work }).1
    }

    /// Runs `future` on this shard until it ends, even when whoever waits for its value goes away half-way.
    pub fn to_the_end<T, F>(&self, future: F) -> impl Future<Output = Option<T>> + use<R, T, F>
    where
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        let (completer, completion) = completion();
        self.shard.runtime.spawn(Lane::Data, async move { completer.complete(future.await) });
        completion.wait()
    }

    /// Begins `work`, here or by the letter that `letter` makes of it. With the future of its answer comes the slot for it,
    /// where it is on its way.
    fn begin<T, F, W>(
        self: &Rc<Self>,
        owner: ShardId,
        work: W,
        letter: fn(u64, Work<R>) -> Letter<R>,
    ) -> (Option<u64>, impl Future<Output = Option<T>> + use<R, T, F, W>)
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        W: FnOnce(Rc<Router<R>>) -> F + Send + 'static,
    {
        let (slot, begun) = if owner == self.id() {
            (None, Begun::Here(work(self.clone())))
        } else {
            let slot = self.next_slot.replace(self.next_slot.get() + 1);
            let (completer, completion) = completion();
            self.awaited.borrow_mut().insert(slot, completer);
            let work: Work<R> = Box::new(move |router| {
                let future = work(router);
                Box::pin(async move { Box::new(future.await) as Parcelled })
            });
            self.shard.metrics.hops.add(1);
            self.send(owner, letter(slot, work));
            (Some(slot), Begun::There(completion))
        };
        let answer = async move {
            match begun {
                Begun::Here(future) => Some(future.await),
                Begun::There(completion) => {
                    let value = completion.wait().await?;
                    Some(*value.downcast::<T>().expect("an answer has the type its work returns"))
                }
            }
        };
        (slot, answer)
    }

    /// Hands a connection to the shard `owner`.
    pub fn hand_over(&self, owner: ShardId, connection: MovedConnection<R>) {
        self.shard.metrics.connections_moved.add(1);
        self.send(owner, Letter::Connection(connection));
    }

    /// The next connection that another shard has handed over. One task calls this.
    pub async fn next_arrival(&self) -> MovedConnection<R> {
        loop {
            if let Some(connection) = self.arrivals.borrow_mut().pop_front() {
                return connection;
            }
            self.arrivals_bell.wait().await;
        }
    }

    /// Takes in what has come from other shards. Called between the tasks of a busy shard; never waits.
    pub fn poll_mail(self: &Rc<Self>) {
        for (from, incoming) in self.incoming.iter().enumerate() {
            while let Some(letter) = incoming.as_ref().and_then(mailbox::Receiver::try_receive) {
                self.open(from, letter);
            }
        }
    }

    /// Whether a mailbox has been found full; then no new request is begun until what waits for room in one is gone.
    pub fn is_congested(&self) -> bool {
        !self.overflow.borrow().is_empty()
    }

    /// Serves the mailboxes until every other shard has gone. One task a shard, in the data lane.
    pub async fn serve(self: Rc<Self>) {
        let flusher = self.clone();
        self.shard.runtime.spawn(Lane::Data, async move { flusher.flush_overflow().await });
        poll_fn(|context| self.poll_serve(context)).await;
    }

    fn poll_serve(self: &Rc<Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut open = false;
        for (from, incoming) in self.incoming.iter().enumerate() {
            let Some(incoming) = incoming else { continue };
            loop {
                match incoming.poll_receive(context) {
                    Poll::Ready(Some(letter)) => self.open(from, letter),
                    Poll::Ready(None) => break,
                    Poll::Pending => {
                        open = true;
                        break;
                    }
                }
            }
        }
        if open { Poll::Pending } else { Poll::Ready(()) }
    }

    fn open(self: &Rc<Self>, from: usize, letter: Letter<R>) {
        match letter {
            Letter::Work { slot, work } => {
                let future = work(self.clone());
                let router = self.clone();
                self.shard.runtime.spawn(Lane::Data, async move {
                    let value = future.await;
                    router.send_to(from, Letter::Answer { slot, value });
                });
            }
            Letter::Wait { slot, work } => self.begin_wait(from, slot, work),
            Letter::GiveUp { slot } => self.waits.give_up(from, slot),
            Letter::Answer { slot, value } => {
                if let Some(completer) = self.awaited.borrow_mut().remove(&slot) {
                    completer.complete(value);
                }
            }
            Letter::Connection(connection) => {
                self.arrivals.borrow_mut().push_back(connection);
                self.arrivals_bell.ring();
            }
        }
    }

    fn send(&self, to: ShardId, letter: Letter<R>) {
        self.send_to(usize::from(to.0), letter);
    }

    fn send_to(&self, to: usize, letter: Letter<R>) {
        let waits = self.overflow.borrow().iter().any(|(peer, _)| *peer == to);
        let refused = if waits { Some(letter) } else { self.try_send(to, letter).err() };
        if let Some(letter) = refused {
            self.overflow.borrow_mut().push_back((to, letter));
            self.overflow_bell.ring();
        }
    }

    /// A letter for a shard that has stopped is dropped, and with it the wait for its answer.
    fn try_send(&self, to: usize, letter: Letter<R>) -> Result<(), Letter<R>> {
        let Some(sender) = self.outgoing.get(to).and_then(Option::as_ref) else { return Ok(()) };
        match sender.try_send(letter) {
            Err(Letter::Work { slot, .. } | Letter::Wait { slot, .. }) if sender.is_closed() => {
                self.awaited.borrow_mut().remove(&slot);
                Ok(())
            }
            Err(_) if sender.is_closed() => Ok(()),
            sent => sent,
        }
    }

    /// Tries again, a moment apart, what found its mailbox full.
    async fn flush_overflow(self: Rc<Self>) {
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
        loop {
            self.overflow_bell.wait().await;
            while self.is_congested() {
                let waiting = self.overflow.take();
                let mut still_waiting: VecDeque<(usize, Letter<R>)> = VecDeque::new();
                for (to, letter) in waiting {
                    let behind = still_waiting.iter().any(|(peer, _)| *peer == to);
                    match if behind { Err(letter) } else { self.try_send(to, letter) } {
                        Ok(()) => {}
                        Err(letter) => still_waiting.push_back((to, letter)),
                    }
                }
                still_waiting.append(&mut self.overflow.borrow_mut());
                *self.overflow.borrow_mut() = still_waiting;
                if self.is_congested() {
                    let deadline = self.shard.runtime.now() + PAUSE;
                    self.shard.runtime.sleep_until(deadline).await;
                }
            }
        }
    }
}
