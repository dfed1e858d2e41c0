//! When each connection is to send, and a timer that wakes the thread for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::clock::NS_PER_SECOND;

/// Requests that are planned closer together than this go out together, up to this much late: a wake-up for each of them
/// would take the processor from the broker.
const WAKE_UP_NS_MIN: u64 = 50_000;

/// Requests at even distances on every connection, the connections evenly shifted against each other.
pub struct Schedule {
    next: BinaryHeap<Reverse<(u64, usize)>>,
    connections: Vec<Pace>,
    end_ns: u64,
}

#[derive(Clone, Copy)]
struct Pace {
    first_ns: f64,
    interval_ns: f64,
    sent: u64,
}

impl Schedule {
    /// `requests_per_second` of each connection. Those of 0 never send.
    pub fn new(start_ns: u64, end_ns: u64, requests_per_second: &[f64]) -> Schedule {
        let count = requests_per_second.len() as f64;
        let connections: Vec<Pace> = requests_per_second
            .iter()
            .enumerate()
            .map(|(index, rate)| {
                let interval_ns = NS_PER_SECOND as f64 / rate;
                Pace { first_ns: start_ns as f64 + interval_ns * index as f64 / count, interval_ns, sent: 0 }
            })
            .collect();
        let paced = connections.iter().enumerate().filter(|(_, pace)| pace.interval_ns.is_finite());
        let next = paced.map(|(index, pace)| Reverse((pace.next_ns(), index))).collect();
        Schedule { next, connections, end_ns }
    }

    /// The next request that is due: planned time and connection. `None` when none is, or no more will be.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<(u64, usize)> {
        let planned_ns = self.next_ns()?;
        if planned_ns > now_ns {
            return None;
        }
        let Reverse((planned_ns, index)) = self.next.pop()?;
        let pace = &mut self.connections[index];
        pace.sent += 1;
        self.next.push(Reverse((pace.next_ns(), index)));
        Some((planned_ns, index))
    }

    /// When the next request is planned; `None` when there is none before the end.
    pub fn next_ns(&self) -> Option<u64> {
        let Reverse((planned_ns, _)) = self.next.peek()?;
        (*planned_ns < self.end_ns).then_some(*planned_ns)
    }
}

impl Pace {
    fn next_ns(&self) -> u64 {
        (self.first_ns + self.interval_ns * self.sent as f64) as u64
    }
}

/// Wakes a poll at a time that milliseconds are too coarse for.
pub struct Timer {
    descriptor: OwnedFd,
    armed_ns: Option<u64>,
}

impl Timer {
    pub fn new(registry: &Registry, token: Token) -> io::Result<Timer> {
        // SAFETY: the call takes no pointer; its result is checked before it becomes an owned descriptor.
        let descriptor = unsafe {
            let descriptor =
                libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(descriptor)
        };
        registry.register(&mut SourceFd(&descriptor.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Timer { descriptor, armed_ns: None })
    }

    /// Wakes the poll at `due_ns`, or a little later; `now_ns` is of the same clock.
    pub fn arm(&mut self, due_ns: u64, now_ns: u64) -> io::Result<()> {
        if self.armed_ns.is_some_and(|armed_ns| armed_ns <= due_ns && armed_ns > now_ns) {
            return Ok(());
        }
        let wait_ns = due_ns.saturating_sub(now_ns).max(WAKE_UP_NS_MIN);
        self.armed_ns = Some(now_ns + wait_ns);
        let value = libc::timespec {
            tv_sec: (wait_ns / NS_PER_SECOND) as libc::time_t,
            tv_nsec: (wait_ns % NS_PER_SECOND) as libc::c_long,
        };
        let setting =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: the descriptor is an open timer, and the setting lives until the call returns.
        let result =
            unsafe { libc::timerfd_settime(self.descriptor.as_raw_fd(), 0, &setting, std::ptr::null_mut()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_evenly_spread_over_time_and_connections() {
        let mut schedule = Schedule::new(1_000, NS_PER_SECOND + 1_000, &[100.0; 4]);
        let mut planned = Vec::new();
        while let Some((at, connection)) = schedule.pop_due(u64::MAX) {
            planned.push((at, connection));
        }
        assert_eq!(planned.len(), 400);
        assert!(planned.windows(2).all(|pair| (pair[1].0 - pair[0].0).abs_diff(2_500_000) <= 1));
        assert!(planned.iter().enumerate().all(|(at, (_, connection))| *connection == at % 4));
    }

    #[test]
    fn what_could_not_be_sent_keeps_its_planned_time() {
        let mut schedule = Schedule::new(0, NS_PER_SECOND, &[10.0]);
        assert_eq!(schedule.pop_due(0), Some((0, 0)));
        assert_eq!(schedule.pop_due(50_000_000), None);
        assert_eq!(schedule.pop_due(350_000_000), Some((100_000_000, 0)));
        assert_eq!(schedule.pop_due(350_000_000), Some((200_000_000, 0)));
        assert_eq!(schedule.pop_due(350_000_000), Some((300_000_000, 0)));
        assert_eq!(schedule.pop_due(350_000_000), None);
        assert_eq!(schedule.next_ns(), Some(400_000_000));
    }
}
