//! SIGTERM and SIGINT as events for the main thread, never as interruptions of a shard.

use std::io;
use std::mem::MaybeUninit;
use std::sync::mpsc;

use super::executors::Event;

/// Who asks the process to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGTERM, from a service manager.
    Terminate,
    /// SIGINT, from a keyboard.
    Interrupt,
}

/// Says that the signals are blocked in this thread, and so in all that it starts from now on.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks SIGTERM and SIGINT, and ignores SIGPIPE (a peer that is gone is an error of the send, not a signal). To be
    /// called before any other thread is started: a thread that does not block them would be ended by them.
    pub fn block() -> io::Result<Signals> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `sigemptyset` makes the set valid, the other calls read it.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) {
                0 => Ok(Signals(set)),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// Hands each signal to the main thread, from a thread of its own that only waits for them.
    pub(super) fn forward(self, events: mpsc::Sender<Event>) -> io::Result<()> {
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while let Some(signal) = self.wait() {
                if events.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
        Ok(())
    }

    fn wait(&self) -> Option<Signal> {
        let mut number = 0;
        // SAFETY: the set is valid, and `number` a valid place for one number.
        let result = unsafe { libc::sigwait(&self.0, &mut number) };
        match (result, number) {
            (0, libc::SIGTERM) => Some(Signal::Terminate),
            (0, libc::SIGINT) => Some(Signal::Interrupt),
            _ => None,
        }
    }
}
