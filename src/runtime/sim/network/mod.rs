//! The network between the machines: listeners, and connections of two bounded pipes.

mod pipe;
mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::disk::error;
use super::executor::Owner;
use super::random::Random;
use super::timers::{Due, Timers};

pub(super) use pipe::Ending;
use pipe::{Found, Pipe};
pub use stream::{SimListener, SimParcel, SimStream};

/// Connections that may wait for an accept; one more is refused.
const BACKLOG_MAX: usize = 4096;
/// The first port given out for port 0 and to clients.
const FREE_PORT_MIN: u16 = 32_768;

/// How the network behaves; a test changes what it wants to see.
#[derive(Clone, Debug)]
pub struct NetworkHabits {
    /// How long bytes travel, drawn evenly for each write.
    pub latency: RangeInclusive<Duration>,
    /// Bytes one direction of a connection holds, on their way and unread together. For new connections.
    pub buffer_bytes: usize,
    /// Of a hundred reads, so many give less than has arrived.
    pub short_reads_percent: u64,
    /// Of a hundred writes, so many take less than has room.
    pub short_writes_percent: u64,
    /// Of a million reads and writes, so many find the connection reset.
    pub resets_per_million: u64,
}

impl Default for NetworkHabits {
    fn default() -> NetworkHabits {
        NetworkHabits {
            latency: Duration::from_micros(15)..=Duration::from_micros(250),
            buffer_bytes: 256 * 1024,
            short_reads_percent: 10,
            short_writes_percent: 10,
            resets_per_million: 0,
        }
    }
}

/// One of the two ends of a connection: 0 has connected, 1 has accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Side {
    pub(super) connection: u64,
    pub(super) end: usize,
}

impl Side {
    fn peer(self) -> usize {
        1 - self.end
    }
}

struct End {
    owner: Owner,
    is_open: bool,
}

struct Connection {
    ends: [End; 2],
    /// By the end that writes.
    pipes: [Pipe; 2],
}

struct ListenerEntry {
    id: u64,
    owner: Owner,
    address: IpAddr,
    backlog: VecDeque<(Side, SocketAddr, SocketAddr)>,
    waker: Option<Waker>,
}

/// What the network needs of the world for one step.
pub(super) struct Moment<'a> {
    pub(super) now: u64,
    pub(super) random: &'a Random,
    pub(super) timers: &'a mut Timers,
}

#[derive(Default)]
pub(super) struct Network {
    /// By machine and port.
    listeners: BTreeMap<(usize, u16), ListenerEntry>,
    connections: BTreeMap<u64, Connection>,
    last_id: u64,
    free_ports: BTreeMap<usize, u16>,
    /// Accepts that are to fail for want of descriptors.
    failing_accepts: u64,
    pub(super) habits: NetworkHabits,
}

impl Network {
    fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn free_port(&mut self, machine: usize) -> u16 {
        loop {
            let next = self.free_ports.entry(machine).or_insert(FREE_PORT_MIN);
            let port = *next;
            *next = port.checked_add(1).unwrap_or(FREE_PORT_MIN);
            if !self.listeners.contains_key(&(machine, port)) {
                return port;
            }
        }
    }

    pub(super) fn arrival(&self, moment: &Moment<'_>) -> u64 {
        let nanos = |duration: &Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2);
        let latency = &self.habits.latency;
        moment.now.saturating_add(moment.random.between(nanos(latency.start()), nanos(latency.end())))
    }

    /// Listens; `own` are the addresses the machine has. Returns the listener's id and where it listens.
    pub(super) fn listen(
        &mut self,
        owner: Owner,
        address: SocketAddr,
        own: IpAddr,
    ) -> io::Result<(u64, SocketAddr)> {
        let ip = address.ip();
        if !ip.is_unspecified() && !ip.is_loopback() && ip != own {
            return Err(error(libc::EADDRNOTAVAIL));
        }
        let port = if address.port() == 0 { self.free_port(owner.machine) } else { address.port() };
        if self.listeners.contains_key(&(owner.machine, port)) {
            return Err(error(libc::EADDRINUSE));
        }
        let id = self.new_id();
        let entry = ListenerEntry { id, owner, address: ip, backlog: VecDeque::new(), waker: None };
        self.listeners.insert((owner.machine, port), entry);
        Ok((id, SocketAddr::new(ip, port)))
    }

    /// Stops listening; who waits to be accepted is reset.
    pub(super) fn stop_listening(&mut self, machine: usize, port: u16, id: u64, moment: &mut Moment<'_>) {
        if self.listeners.get(&(machine, port)).is_some_and(|entry| entry.id == id) {
            let entry = self.listeners.remove(&(machine, port));
            for (side, ..) in entry.into_iter().flat_map(|entry| entry.backlog) {
                self.close(side, Some(Ending::Reset), moment);
            }
        }
    }

    /// Connects from `owner` to a listener of `machine`; both ends are there at once. `local` and `address` are what the two
    /// ends call each other.
    pub(super) fn connect(
        &mut self,
        owner: Owner,
        local: IpAddr,
        machine: usize,
        address: SocketAddr,
    ) -> io::Result<(Side, SocketAddr)> {
        let local = SocketAddr::new(local, self.free_port(owner.machine));
        let id = self.new_id();
        let listener = self
            .listeners
            .get_mut(&(machine, address.port()))
            .filter(|entry| entry.address.is_unspecified() || entry.address == address.ip())
            .filter(|entry| entry.backlog.len() < BACKLOG_MAX)
            .ok_or_else(|| error(libc::ECONNREFUSED))?;
        listener.backlog.push_back((Side { connection: id, end: 1 }, local, address));
        if let Some(waker) = listener.waker.take() {
            waker.wake();
        }
        let ends = [owner, listener.owner].map(|owner| End { owner, is_open: true });
        let pipes = [(); 2].map(|()| Pipe::new(self.habits.buffer_bytes));
        self.connections.insert(id, Connection { ends, pipes });
        Ok((Side { connection: id, end: 0 }, local))
    }

    pub(super) fn fail_accepts(&mut self, count: u64) {
        self.failing_accepts = count;
    }

    /// The next connection of a listener: its side, the peer's address, the local address.
    fn poll_accept(
        &mut self,
        machine: usize,
        port: u16,
        id: u64,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Side, SocketAddr, SocketAddr)>> {
        let Some(entry) = self.listeners.get_mut(&(machine, port)).filter(|entry| entry.id == id) else {
            return Poll::Ready(Err(error(libc::ESHUTDOWN)));
        };
        if entry.backlog.is_empty() {
            entry.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        if self.failing_accepts > 0 {
            self.failing_accepts -= 1;
            return Poll::Ready(Err(error(libc::EMFILE)));
        }
        Poll::Ready(entry.backlog.pop_front().ok_or_else(|| error(libc::EAGAIN)))
    }

    fn open_side(&mut self, side: Side) -> io::Result<&mut Connection> {
        self.connections
            .get_mut(&side.connection)
            .filter(|connection| connection.ends[side.end].is_open)
            .ok_or_else(|| error(libc::ECONNRESET))
    }

    fn strikes(&self, moment: &Moment<'_>) -> bool {
        let resets = self.habits.resets_per_million;
        resets > 0 && moment.random.chance(resets, 1_000_000)
    }

    fn poll_read(
        &mut self,
        side: Side,
        buffer: &mut BytesMut,
        context: &mut Context<'_>,
        moment: &mut Moment<'_>,
    ) -> Poll<io::Result<usize>> {
        let strikes = self.strikes(moment);
        let short = moment.random.chance(self.habits.short_reads_percent, 100);
        let pipe = &mut self.open_side(side)?.pipes[side.peer()];
        let (spare, arrived) = (buffer.capacity() - buffer.len(), pipe.arrived(moment.now));
        assert!(spare > 0, "a read needs spare capacity");
        if strikes {
            self.reset(side.connection, moment.now);
            return Poll::Ready(Err(error(libc::ECONNRESET)));
        }
        let limit = spare.min(arrived);
        let limit = if short && limit > 1 { moment.random.between(1, limit as u64) as usize } else { limit };
        match pipe.read(buffer, limit, moment.now) {
            Found::Bytes(moved) => {
                if let Some(writer) = pipe.writer.take() {
                    writer.wake();
                }
                Poll::Ready(Ok(moved))
            }
            Found::End => Poll::Ready(Ok(0)),
            Found::Reset => Poll::Ready(Err(error(libc::ECONNRESET))),
            Found::NothingYet => {
                pipe.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Takes a beginning of `data`; says how much.
    fn poll_write(
        &mut self,
        side: Side,
        data: &Bytes,
        context: &mut Context<'_>,
        moment: &mut Moment<'_>,
    ) -> Poll<io::Result<usize>> {
        let arrives_at = self.arrival(moment);
        let strikes = self.strikes(moment);
        let short = moment.random.chance(self.habits.short_writes_percent, 100);
        let connection = self.open_side(side)?;
        let incoming_reset = connection.pipes[side.peer()].is_broken(moment.now);
        let pipe = &mut connection.pipes[side.end];
        if strikes {
            self.reset(side.connection, moment.now);
            return Poll::Ready(Err(error(libc::ECONNRESET)));
        }
        if pipe.is_broken(moment.now) || pipe.is_ended() || incoming_reset {
            return Poll::Ready(Err(error(libc::EPIPE)));
        }
        let fits = data.len().min(pipe.room());
        if fits == 0 {
            pipe.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let fits = if short { moment.random.between(1, fits as u64) as usize } else { fits };
        let arrives_at = pipe.write(data.slice(..fits), arrives_at);
        moment.timers.arm(arrives_at, Due::Arrival { connection: side.connection, pipe: side.end });
        Poll::Ready(Ok(fits))
    }

    /// Something on a pipe has arrived: its reader looks again.
    pub(super) fn arrive(&mut self, connection: u64, pipe: usize) {
        let pipes = self.connections.get_mut(&connection).map(|connection| &mut connection.pipes[pipe]);
        if let Some(reader) = pipes.and_then(|pipe| pipe.reader.take()) {
            reader.wake();
        }
    }

    /// Ends what this side sends; it may still read.
    pub(super) fn shut_down_write(&mut self, side: Side, moment: &mut Moment<'_>) {
        let arrives_at = self.arrival(moment);
        if let Ok(connection) = self.open_side(side) {
            let at = connection.pipes[side.end].end(Ending::Closed, arrives_at);
            moment.timers.arm(at, Due::Arrival { connection: side.connection, pipe: side.end });
        }
    }

    /// Closes one side. As on Linux the peer sees a reset when something it sent was not read.
    pub(super) fn close(&mut self, side: Side, ending: Option<Ending>, moment: &mut Moment<'_>) {
        let arrives_at = self.arrival(moment);
        let Ok(connection) = self.open_side(side) else { return };
        connection.ends[side.end].is_open = false;
        let unread = connection.pipes[side.peer()].bytes() > 0;
        let ending = ending.unwrap_or(if unread { Ending::Reset } else { Ending::Closed });
        let at = connection.pipes[side.end].end(ending, arrives_at);
        connection.pipes[side.peer()].reader_is_gone(arrives_at);
        for due in [at, arrives_at] {
            moment.timers.arm(due, Due::Closing { connection: side.connection });
        }
        if !connection.ends[side.peer()].is_open {
            self.connections.remove(&side.connection);
        }
    }

    /// The end of a side has reached the other one.
    pub(super) fn arrive_closing(&mut self, connection: u64) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            connection.pipes.iter_mut().for_each(Pipe::wake_both);
        }
    }

    /// Cuts a connection off at once, for both sides.
    pub(super) fn reset(&mut self, connection: u64, now: u64) {
        if let Some(connection) = self.connections.get_mut(&connection) {
            for pipe in &mut connection.pipes {
                pipe.reset(now);
                pipe.wake_both();
            }
        }
    }

    /// Resets all connections that a machine has.
    pub(super) fn reset_machine(&mut self, machine: usize, now: u64) {
        let touches = |connection: &Connection| {
            connection.ends.iter().any(|end| end.is_open && end.owner.machine == machine)
        };
        let reset: Vec<u64> =
            self.connections.iter().filter(|(_, it)| touches(it)).map(|(id, _)| *id).collect();
        reset.into_iter().for_each(|connection| self.reset(connection, now));
    }

    /// Closes all listeners and all sides of one machine; `ending` as for `close`.
    pub(super) fn close_machine(&mut self, machine: usize, ending: Option<Ending>, moment: &mut Moment<'_>) {
        let listeners: Vec<(u16, u64)> = self
            .listeners
            .range((machine, 0)..=(machine, u16::MAX))
            .map(|((_, port), entry)| (*port, entry.id))
            .collect();
        for (port, id) in listeners {
            self.stop_listening(machine, port, id, moment);
        }
        let sides: Vec<Side> = self
            .connections
            .iter()
            .flat_map(|(connection, it)| {
                [0, 1].map(|end| (Side { connection: *connection, end }, &it.ends[end]))
            })
            .filter(|(_, end)| end.is_open && end.owner.machine == machine)
            .map(|(side, _)| side)
            .collect();
        for side in sides {
            self.close(side, ending, moment);
        }
    }

    /// A power cut: nobody says goodbye, and peers find their connections reset.
    pub(super) fn power_cut(&mut self, machine: usize, moment: &mut Moment<'_>) {
        self.close_machine(machine, Some(Ending::Reset), moment);
    }

    /// How many connections have a side open on this machine.
    pub(super) fn count(&self, machine: usize) -> usize {
        let open = |end: &End| end.is_open && end.owner.machine == machine;
        self.connections.values().filter(|connection| connection.ends.iter().any(open)).count()
    }
}
