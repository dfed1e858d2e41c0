use crate::base::{Offset, Position};

/// The beginning of a batch, or the end of the last one: where an offset stands without a look into the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub(super) offset: Offset,
    /// Base offset of the segment.
    pub(super) segment: Offset,
    pub(super) position: Position,
}

const MARKS_MAX: usize = 8;

/// The latest ends of the log. A consumer at the tail asks from one of them and may read up to another, so its reads look
/// nothing up. At the bound the oldest is forgotten, and a read that would have used it goes through the index.
pub(super) struct Marks {
    ring: [Mark; MARKS_MAX],
    next: usize,
}

impl Marks {
    pub(super) fn new() -> Marks {
        let nowhere = Mark { offset: Offset::NONE, segment: Offset::NONE, position: Position(0) };
        Marks { ring: [nowhere; MARKS_MAX], next: 0 }
    }

    pub(super) fn add(&mut self, mark: Mark) {
        self.ring[self.next] = mark;
        self.next = (self.next + 1) % MARKS_MAX;
    }

    pub(super) fn find(&self, segment: Offset, offset: Offset) -> Option<Position> {
        let mark = self.ring.iter().find(|mark| mark.offset == offset && mark.segment == segment)?;
        Some(mark.position)
    }

    /// Forgets a segment: another one has taken its place.
    pub(super) fn forget(&mut self, segment: Offset) {
        for mark in self.ring.iter_mut().filter(|mark| mark.segment == segment) {
            mark.segment = Offset::NONE;
        }
    }
}
