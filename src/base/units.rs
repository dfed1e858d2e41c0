use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0, f) }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0, f) }
        }
    };
}
pub(super) use number;

number! {
    /// Place of a record in its partition's log; the first record of a log that lost nothing has offset 0.
    Offset(i64)
}
number! {
    /// How often a partition has changed its leader; stamped into each batch. -1: unknown or not given.
    LeaderEpoch(i32)
}
number! {
    /// Bytes from the beginning of a file.
    Position(u64)
}
number! {
    /// Wall-clock time, milliseconds since 1970-01-01 UTC. -1: none.
    TimestampMs(i64)
}
number! {
    /// Nanoseconds of a clock that never goes back; only differences mean something.
    Monotonic(u64)
}

impl Offset {
    pub const ZERO: Offset = Offset(0);
    /// Kafka's "no offset" in answers.
    pub const NONE: Offset = Offset(-1);
    pub const MAX: Offset = Offset(i64::MAX);
    pub fn saturating_add(self, count: i64) -> Offset {
        Offset(self.0.saturating_add(count))
    }
    /// The offset after this one.
    pub fn next(self) -> Offset {
        Offset(self.0 + 1)
    }
}
impl Add<i64> for Offset {
    type Output = Offset;
    fn add(self, count: i64) -> Offset {
        Offset(self.0 + count)
    }
}
impl Sub for Offset {
    type Output = i64;
    fn sub(self, other: Offset) -> i64 {
        self.0 - other.0
    }
}

impl LeaderEpoch {
    pub const NONE: LeaderEpoch = LeaderEpoch(-1);
}

impl Add<u64> for Position {
    type Output = Position;
    fn add(self, bytes: u64) -> Position {
        Position(self.0 + bytes)
    }
}
impl Sub for Position {
    type Output = u64;
    fn sub(self, other: Position) -> u64 {
        self.0 - other.0
    }
}

impl TimestampMs {
    pub const NONE: TimestampMs = TimestampMs(-1);
}

impl Add<Duration> for Monotonic {
    type Output = Monotonic;
    fn add(self, duration: Duration) -> Monotonic {
        Monotonic(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}
impl Monotonic {
    /// Time from `earlier` until now; zero when `earlier` is later.
    pub fn since(self, earlier: Monotonic) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
