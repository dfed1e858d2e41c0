use std::collections::VecDeque;

use bytes::Bytes;

use crate::base::Position;

/// One piece of what goes out on a connection.
pub enum SendSegment<F> {
    Memory(Bytes),
    /// `bytes` of `file` from `position` on, sent by the kernel without a copy.
    FileRange {
        file: F,
        position: Position,
        bytes: u64,
    },
}

/// What waits to go out on one connection, in order.
pub struct SendQueue<F> {
    segments: VecDeque<SendSegment<F>>,
    bytes: u64,
}

impl<F> SendQueue<F> {
    pub fn new() -> SendQueue<F> {
        SendQueue { segments: VecDeque::new(), bytes: 0 }
    }
    pub fn push(&mut self, segment: SendSegment<F>) {
        self.bytes += match &segment {
            SendSegment::Memory(memory) => memory.len() as u64,
            SendSegment::FileRange { bytes, .. } => *bytes,
        };
        self.segments.push_back(segment);
    }
    pub fn pop(&mut self) -> Option<SendSegment<F>> {
        let segment = self.segments.pop_front()?;
        self.bytes -= match &segment {
            SendSegment::Memory(memory) => memory.len() as u64,
            SendSegment::FileRange { bytes, .. } => *bytes,
        };
        Some(segment)
    }
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
    /// All bytes that wait, in memory and in files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    pub fn segments(&self) -> impl Iterator<Item = &SendSegment<F>> {
        self.segments.iter()
    }
}

impl<F> Default for SendQueue<F> {
    fn default() -> SendQueue<F> {
        SendQueue::new()
    }
}
