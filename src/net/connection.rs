use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_lite::future;

use super::read_buffer::ReadBuffer;
use crate::api::{self, Outcome, RequestContext};
use crate::base::{Monotonic, ShardId, Trouble};
use crate::metrics::Stage;
use crate::protocol::{
    ApiKey, FRAME_LENGTH_BYTES, RequestKind, RequestRefusal, announced_frame_bytes, client_id_of_refused,
    decode_body, read_header, take_frame,
};
use crate::router::{ConnectionFacts, MovedConnection, Router};
use crate::runtime::{Lane, Runtime, SendQueue, Stream};
use crate::shard::{SMALL_FRAME_BYTES_MAX, Shard, Share, connection_idle_max};

/// Requests of one connection that may be in flight together; then its socket is not read.
const IN_FLIGHT_MAX: usize = 128;
/// How long the rest of a large frame may be silent: it holds memory that other large ones wait for.
const FRAME_SILENCE_MAX: Duration = Duration::from_secs(30);
/// Data requests in a row that touched only other shards before the connection is moved again.
const FOREIGN_REQUESTS_BEFORE_MOVE: u32 = 32;
/// Pause before a connection looks again whether another shard takes letters.
const CONGESTION_PAUSE: Duration = Duration::from_millis(1);
/// Answers are sent once this much waits, even when more are ready.
const SEND_BATCH_BYTES_MAX: u64 = 1024 * 1024;

type Answer<R> = Pin<Box<dyn Future<Output = Outcome<<R as Runtime>::File>>>>;

/// One request between its arrival and its answer.
struct InFlight<R: Runtime> {
    answer: Answer<R>,
    /// Bytes of the frame, given back with the answer, but not before what is to be written of them is.
    memory: Share,
    is_produce: bool,
    timed: Option<Timed>,
}

/// A request whose way is measured.
#[derive(Clone, Copy)]
struct Timed {
    encode: Stage,
    send: Stage,
    request: Stage,
    /// When its frame was whole.
    began: Monotonic,
    /// When all that its answer tells had been done.
    done: Monotonic,
}

/// Why the loop goes on.
enum Wakeup<F> {
    /// An answer is ready (the first of those in flight).
    Answered(Outcome<F>),
    /// Bytes have come; 0: the peer has ended.
    Read(usize),
    MemoryGranted(Share),
    /// Another shard's mailbox was full a moment ago.
    Relieved,
    Stop,
    Idle,
}

/// Why the connection ends here.
enum End {
    /// Closed for a reason that is nobody's fault: the peer left, the broker stops, nothing came for too long.
    Quiet,
    /// Closed for what the peer sent; logged once.
    Refused(String),
    /// The socket failed: most often the peer went away without a word, which peers may do.
    Lost(Trouble),
    Moved {
        owner: ShardId,
    },
}

/// Serves one connection of this shard until it ends or moves: reads frames, starts requests, sends answers in order.
///
/// Requests of one connection take effect one after the other. Produce may overlap Produce; every other request is begun
/// only when all before it are answered. Not safe to drop but at the end of the process.
pub async fn serve_connection<R: Runtime>(
    router: Rc<Router<R>>,
    stream: R::Stream,
    unread: BytesMut,
    facts: ConnectionFacts,
) {
    let shard = router.shard.clone();
    let peer = stream.ends().peer;
    let now = shard.runtime.now();
    let context = Rc::new(RequestContext {
        router: router.clone(),
        facts: RefCell::new(facts),
        peer_address: peer,
        looked_at: Cell::new(now),
        produce_turns: Rc::default(),
    });
    let mut connection = Connection {
        idle: Box::pin(shard.runtime.sleep_until(now + connection_idle_max(&shard.config()))),
        last_activity: now,
        last_read: now,
        shard,
        context,
        stream,
        buffer: ReadBuffer::new(unread),
        in_flight: VecDeque::new(),
        out: SendQueue::new(),
        memory: None,
        memory_wanted: None,
        placed: false,
        foreign_requests: 0,
        refused: None,
        answered: Vec::new(),
        peer_has_ended: false,
    };
    let connections = connection.shard.metrics.clone();
    connections.connections.set(connections.connections.get() + 1);
    let end = connection.run().await;
    connections.connections.set(connections.connections.get() - 1);
    connection.leave_unwritten();
    if let End::Moved { owner } = end {
        let facts = connection.context.facts.borrow().clone();
        let unread = connection.buffer.bytes;
        match connection.stream.detach() {
            Ok(parcel) => {
                tracing::debug!(%peer, to_shard = %owner, "connection moved");
                return router.hand_over(owner, MovedConnection { parcel, unread, facts });
            }
            Err(trouble) => tracing::warn!(%peer, %trouble, "a connection could not be moved"),
        }
    } else if let End::Lost(trouble) = end {
        tracing::debug!(%peer, %trouble, "connection lost");
    } else if let End::Refused(why) = end {
        connection
            .shard
            .log_limiter
            .warn(&connection.shard.runtime, || format!("connection from {peer} closed: {why}"));
    }
    drop(router.on(router.entrance(), move |shard| {
        shard.connections.leave(peer.ip());
        async {}
    }));
}

fn why_unreadable(refusal: &RequestRefusal, frame: &[u8]) -> String {
    match client_id_of_refused(frame) {
        Some(client_id) => format!("{refusal} (client id \"{client_id}\")"),
        None => refusal.to_string(),
    }
}

struct Connection<R: Runtime> {
    shard: Rc<Shard<R>>,
    context: Rc<RequestContext<R>>,
    stream: R::Stream,
    buffer: ReadBuffer,
    /// In the order of arrival; only the first is polled, the others have been begun.
    in_flight: VecDeque<InFlight<R>>,
    out: SendQueue<R::File>,
    /// Budget for the frame at the front of the buffer, when it is a large one.
    memory: Option<Share>,
    memory_wanted: Option<Pin<Box<dyn Future<Output = Share>>>>,
    /// Rings when it is time to see whether the peer has been silent for too long.
    idle: Pin<Box<dyn Future<Output = ()>>>,
    last_activity: Monotonic,
    last_read: Monotonic,
    /// Whether a data request has decided on the shard.
    placed: bool,
    foreign_requests: u32,
    /// What the peer sent that ends the connection.
    refused: Option<String>,
    /// Those whose answers stand in `out`.
    answered: Vec<Timed>,
    /// The peer sends nothing more. It may still listen: what came before is answered first, as Kafka does.
    peer_has_ended: bool,
}

impl<R: Runtime> Connection<R> {
    async fn run(&mut self) -> End {
        loop {
            self.context.router.poll_mail();
            match self.begin_requests() {
                // What came before is answered before the connection ends.
                Err(End::Refused(why)) => self.refused = Some(why),
                Err(end) => return end,
                Ok(()) => {}
            }
            if self.in_flight.is_empty()
                && let Some(why) = self.refused.take()
            {
                return End::Refused(why);
            }
            if self.peer_has_ended && self.in_flight.is_empty() && !self.has_whole_frame() {
                return End::Quiet;
            }
            match self.turn().await {
                Err(trouble) => return End::Lost(trouble),
                Ok(Wakeup::Answered(first)) => {
                    if let Err(end) = self.send_answers(first).await {
                        return end;
                    }
                }
                Ok(Wakeup::Stop) => return End::Quiet,
                Ok(Wakeup::Read(0)) => self.peer_has_ended = true,
                Ok(Wakeup::Read(bytes)) => {
                    self.shard.metrics.received_bytes.add(bytes as u64);
                    self.last_read = self.context.look_at_clock();
                }
                Ok(Wakeup::Relieved) => {}
                Ok(Wakeup::MemoryGranted(share)) => {
                    self.memory = Some(share);
                    self.last_read = self.context.look_at_clock();
                    self.look_again_at(self.last_read + FRAME_SILENCE_MAX);
                }
                Ok(Wakeup::Idle) => {
                    if let Some(end) = self.end_of_silence() {
                        return end;
                    }
                }
            }
        }
    }

    /// Whether the connection ends because nothing has come for too long; if not, when to look again.
    fn end_of_silence(&mut self) -> Option<End> {
        let now = self.shard.runtime.now();
        let mut deadline = self.last_activity + connection_idle_max(&self.shard.config());
        if now >= deadline && self.in_flight.is_empty() {
            return Some(End::Quiet);
        }
        if self.memory.is_some() && !self.has_whole_frame() {
            let silence_end = self.last_read + FRAME_SILENCE_MAX;
            if now >= silence_end {
                return Some(End::Refused("the rest of a large request does not come".into()));
            }
            deadline = deadline.min(silence_end);
        }
        self.look_again_at(deadline.max(now + PATIENCE));
        None
    }

    fn look_again_at(&mut self, time: Monotonic) {
        self.idle = Box::pin(self.shard.runtime.sleep_until(time));
    }

    /// Bytes of the frame at the front, its length field not counted.
    fn frame_bytes(&self) -> Option<usize> {
        announced_frame_bytes(&self.buffer.bytes, i32::MAX).ok().flatten()
    }

    fn has_whole_frame(&self) -> bool {
        self.frame_bytes().is_some_and(|bytes| self.buffer.bytes.len() >= FRAME_LENGTH_BYTES + bytes)
    }

    /// Begins every request that is whole and may begin now.
    fn begin_requests(&mut self) -> Result<(), End> {
        while self.may_begin() {
            let refused = |why: String| End::Refused(why);
            let announced = announced_frame_bytes(
                &self.buffer.bytes,
                i32::try_from(self.shard.config().socket_request_max_bytes).unwrap_or(i32::MAX),
            );
            let Some(frame_bytes) = announced.map_err(|refusal| refused(refusal.to_string()))? else {
                return Ok(());
            };
            let key = self.buffer.bytes.get(FRAME_LENGTH_BYTES..FRAME_LENGTH_BYTES + 2);
            let produce =
                key.is_some_and(|key| i16::from_be_bytes([key[0], key[1]]) == ApiKey::Produce as i16);
            if !produce && !self.in_flight.is_empty() {
                return Ok(());
            }
            if self.buffer.bytes.len() < FRAME_LENGTH_BYTES + frame_bytes {
                return Ok(());
            }
            let budget = self.shard.memory.for_frame(frame_bytes);
            let Some(memory) = self.memory.take().or_else(|| budget.try_take(frame_bytes as u64)) else {
                self.want_memory(frame_bytes);
                return Ok(());
            };
            // Bytes have come, an answer was sent, or another request has begun since.
            let began = self.context.looked_at.get();
            let frame = take_frame(&mut self.buffer.bytes, frame_bytes).expect("all of it is there");
            let mut body = frame.clone();
            let unreadable = |refusal| refused(why_unreadable(&refusal, &frame));
            let header = read_header(&mut body).map_err(unreadable)?;
            let request = if api::body_can_be_read(&header) {
                Some(decode_body(&header, body).map_err(unreadable)?)
            } else {
                None
            };
            if let Some(request) = &request
                && let Some(owner) = self.better_shard(request)
            {
                self.put_back(&frame);
                return Err(End::Moved { owner });
            }
            let (key, decoded) = (header.key, self.context.look_at_clock());
            let answer = api::begin(&self.context, header, request);
            self.last_activity = self.context.looked_at.get();
            let timed = self.note_begun(key, began, decoded);
            self.in_flight.push_back(InFlight { answer, memory, is_produce: produce, timed });
        }
        Ok(())
    }

    /// Counts a request that has begun by now.
    fn note_begun(&self, key: ApiKey, began: Monotonic, decoded: Monotonic) -> Option<Timed> {
        let metrics = &self.shard.metrics;
        metrics.requests.count(key as i16);
        let (decode, encode, send, request) = match key {
            ApiKey::Produce => {
                (Stage::ProduceDecode, Stage::ProduceEncode, Stage::ProduceSend, Stage::ProduceRequest)
            }
            ApiKey::Fetch => (Stage::FetchDecode, Stage::FetchEncode, Stage::FetchSend, Stage::FetchRequest),
            _ => return None,
        };
        metrics.stages.of(decode).record(decoded.since(began));
        if key == ApiKey::Produce {
            metrics.stages.of(Stage::ProduceAppend).record(self.last_activity.since(decoded));
        }
        Some(Timed { encode, send, request, began, done: began })
    }

    /// Counts what has been sent by now.
    fn note_sent(&mut self, bytes: u64, sending: Monotonic) {
        let (metrics, now) = (&self.shard.metrics, self.context.look_at_clock());
        metrics.sent_bytes.add(bytes);
        for timed in self.answered.drain(..) {
            metrics.stages.of(timed.encode).record(sending.since(timed.done));
            metrics.stages.of(timed.send).record(now.since(sending));
            metrics.stages.of(timed.request).record(now.since(timed.began));
        }
    }

    fn want_memory(&mut self, frame_bytes: usize) {
        let budget = self.shard.memory.for_frame(frame_bytes).clone();
        self.memory_wanted = Some(Box::pin(async move { budget.take(frame_bytes as u64).await }));
    }

    fn may_begin(&self) -> bool {
        self.refused.is_none()
            && self.in_flight.len() < IN_FLIGHT_MAX
            && self.out.is_empty()
            && !self.context.router.is_congested()
    }

    /// The shard this connection had better live on. Decided by its first data request; later only many in a row that had nothing
    /// to do here change it. Never while something is in flight.
    fn better_shard(&mut self, request: &RequestKind) -> Option<ShardId> {
        let interest = api::interest(&self.context, request)?;
        let is_fine = match self.placed {
            true => interest.here,
            false => interest.preferred == self.shard.id,
        };
        if is_fine {
            self.placed = true;
            self.foreign_requests = 0;
            return None;
        }
        self.foreign_requests += 1;
        let patience = if self.placed { FOREIGN_REQUESTS_BEFORE_MOVE } else { 0 };
        let quiet = self.in_flight.is_empty() && self.out.is_empty();
        (self.foreign_requests > patience && quiet).then_some(interest.preferred)
    }

    /// Undoes `take_frame`, for the shard that the connection moves to.
    fn put_back(&mut self, frame: &Bytes) {
        let mut unread = BytesMut::with_capacity(FRAME_LENGTH_BYTES + frame.len() + self.buffer.bytes.len());
        unread.put_i32(i32::try_from(frame.len()).expect("a frame's length came as an i32"));
        unread.put_slice(frame);
        unread.put_slice(&self.buffer.bytes);
        self.buffer.bytes = unread;
    }

    /// Waits for whatever comes first.
    async fn turn(&mut self) -> Result<Wakeup<R::File>, Trouble> {
        let frame_bytes = self.frame_bytes();
        let large_bytes = frame_bytes.filter(|bytes| *bytes > SMALL_FRAME_BYTES_MAX);
        // An announced length alone gets no memory: it costs the peer nothing.
        if let Some(bytes) = large_bytes
            && self.buffer.bytes.len() >= SMALL_FRAME_BYTES_MAX
            && self.memory.is_none()
            && self.memory_wanted.is_none()
        {
            self.want_memory(bytes);
        }
        let whole_bytes = frame_bytes
            .filter(|_| large_bytes.is_none() || self.memory.is_some())
            .map(|bytes| bytes + FRAME_LENGTH_BYTES);
        // A connection that waits for its turn still reads a little, so as to notice that its peer has left.
        let read_ahead = !self.has_whole_frame()
            || self.buffer.bytes.len() < whole_bytes.unwrap_or(0) + SMALL_FRAME_BYTES_MAX;
        let may_read = self.refused.is_none()
            && !self.peer_has_ended
            && self.in_flight.len() < IN_FLIGHT_MAX
            && self.memory_wanted.is_none()
            && read_ahead;
        if self.in_flight.is_empty() {
            self.buffer.shrink_when_empty();
        }
        let shard = self.shard.clone();
        let stop = shard.stop.watch();
        let congested = self.context.router.is_congested();
        let mut relieved =
            congested.then(|| Box::pin(shard.runtime.sleep_until(shard.runtime.now() + CONGESTION_PAUSE)));
        poll_fn(|context| {
            if let Some(first) = self.in_flight.front_mut()
                && let Poll::Ready(outcome) = first.answer.as_mut().poll(context)
            {
                return Poll::Ready(Ok(Wakeup::Answered(self.end_first(outcome))));
            }
            if let Some(wanted) = &mut self.memory_wanted
                && let Poll::Ready(share) = wanted.as_mut().poll(context)
            {
                self.memory_wanted = None;
                return Poll::Ready(Ok(Wakeup::MemoryGranted(share)));
            }
            if may_read && let Poll::Ready(read) = self.poll_read(context, whole_bytes) {
                return Poll::Ready(read);
            }
            if let Some(relieved) = &mut relieved
                && relieved.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(Wakeup::Relieved));
            }
            if self.in_flight.is_empty() && stop.poll(context).is_ready() {
                return Poll::Ready(Ok(Wakeup::Stop));
            }
            self.idle.as_mut().poll(context).map(|()| Ok(Wakeup::Idle))
        })
        .await
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        whole_bytes: Option<usize>,
    ) -> Poll<Result<Wakeup<R::File>, Trouble>> {
        self.buffer.make_room(whole_bytes);
        let offered_bytes = self.buffer.bytes.capacity() - self.buffer.bytes.len();
        self.stream.poll_read(context, &mut self.buffer.bytes).map(|read| match read {
            Ok(read_bytes) => {
                self.buffer.learn(read_bytes, offered_bytes);
                Ok(Wakeup::Read(read_bytes))
            }
            Err(trouble) => Err(trouble),
        })
    }

    /// Puts `first` and every further answer that is ready by now into one send.
    async fn send_answers(&mut self, first: Outcome<R::File>) -> Result<(), End> {
        let mut next = Some(first);
        let mut close = None;
        while let Some(outcome) = next.take() {
            match outcome {
                Outcome::Answer(mut segments)
                | Outcome::AnswerBeforeWritten { answer: mut segments, written: _ } => {
                    while let Some(segment) = segments.pop() {
                        self.out.push(segment);
                    }
                }
                Outcome::Silent => {}
                Outcome::Close(why) => {
                    close = Some(End::Refused(why));
                    break;
                }
            }
            if self.out.bytes() < SEND_BATCH_BYTES_MAX {
                next = poll_fn(|context| Poll::Ready(self.next_ready(context))).await;
            }
        }
        if !self.out.is_empty() {
            let (bytes, sending) = (self.out.bytes(), self.shard.runtime.now());
            self.last_activity = sending;
            self.send_out(sending).await?;
            self.note_sent(bytes, sending);
        }
        close.map_or(Ok(()), Err)
    }

    /// Sends what waits. A peer that takes nothing for as long as a connection may be idle is given up.
    async fn send_out(&mut self, now: Monotonic) -> Result<(), End> {
        let deadline = now + connection_idle_max(&self.shard.config());
        let sent = async { Some(self.stream.send(&mut self.out).await) };
        let late = async {
            self.shard.runtime.sleep_until(deadline).await;
            None
        };
        match future::or(sent, late).await {
            Some(Ok(())) => Ok(()),
            Some(Err(trouble)) => Err(End::Lost(trouble)),
            None => Err(End::Refused("its peer takes no answers".into())),
        }
    }

    fn next_ready(&mut self, context: &mut Context<'_>) -> Option<Outcome<R::File>> {
        let first = self.in_flight.front_mut()?;
        let Poll::Ready(outcome) = first.answer.as_mut().poll(context) else { return None };
        Some(self.end_first(outcome))
    }

    /// The first request in flight has come to `outcome`; gives what is to be sent.
    fn end_first(&mut self, outcome: Outcome<R::File>) -> Outcome<R::File> {
        let first = self.in_flight.pop_front().expect("it was the first in flight");
        if let (Some(timed), Outcome::Answer(_) | Outcome::AnswerBeforeWritten { .. }) =
            (first.timed, &outcome)
        {
            self.answered.push(Timed { done: self.context.looked_at.get(), ..timed });
        }
        let Outcome::AnswerBeforeWritten { answer, written } = outcome else { return outcome };
        self.shard.runtime.spawn(Lane::Data, async move {
            let _memory = first.memory;
            written.await;
        });
        Outcome::Answer(answer)
    }

    /// Lets what is to be written of the requests in flight hold its memory when the connection ends before.
    fn leave_unwritten(&mut self) {
        for request in self.in_flight.drain(..).filter(|request| request.is_produce) {
            self.shard.runtime.spawn(Lane::Data, async move {
                let _memory = request.memory;
                if let Outcome::AnswerBeforeWritten { written, .. } = request.answer.await {
                    written.await;
                }
            });
        }
    }
}

/// Shortest pause between two looks at an idle connection.
const PATIENCE: Duration = Duration::from_millis(100);
